//! The settings of a pool, and the intents of a fix.
use tantalum_base::{Error, ErrorKind, Result};

/// The intent of a fix (fix-use-unfix: dissertation, section 2.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// To read the page; shared with other readers.
    Read,
    /// To change the page, exclusively. It becomes dirty at the unfix if it was really changed (the
    /// update flag of the dissertation's section 5.2.5).
    Update,
    /// To replace the whole page, exclusively: an update that need not read the old content.
    Overwrite,
}

impl Intent {
    /// Whether the policy counts a write.
    pub fn is_write(self) -> bool {
        self != Intent::Read
    }
}

/// Settings of a pool besides its policy, which has its own number of frames. Sizes in pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolOptions {
    /// Frames beyond those of the policy, for evicted pages that are still pinned or being written
    /// back. `None`: a sixteenth of the policy's frames, at least 32.
    pub transit_frames: Option<u32>,
    /// Tasks that write back, each with one device write in flight. 0: the fix that evicts a dirty
    /// page writes it first, as a classic buffer manager does.
    pub writers: u32,
    /// Maximum pages in one device write, for neighbours that are both due. The device's own limit
    /// on atomic writes applies too.
    pub write_run_pages_max: u32,
    /// Passes due pages to [`PageStore::write_batch`](crate::PageStore::write_batch) in batches of
    /// this size, in the order in which their write became due. A batch is smaller if a flush or a
    /// fix without a frame waits. There must be transit frames for two batches: one being written
    /// and one filling up. `None`: neighbours are written together, one write for each run.
    pub batch_pages: Option<u32>,
    /// Pages in a cluster, for counting cluster switches (dissertation, formula 3.4: 16).
    pub cluster_pages: u64,
    /// Writes dirty pages ahead of their eviction; `None`: no flusher.
    pub flusher: Option<FlusherOptions>,
    /// Reads pages ahead of requests; `None`: no prefetching.
    pub prefetch: Option<PrefetchOptions>,
}

/// When pages are read ahead of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchOptions {
    /// Length of a sequence of reads after which pages are read ahead.
    pub after_pages: u32,
    /// Pages that are read ahead, in one read with the requested one. At most half of the transit
    /// frames hold such pages.
    pub window_pages: u32,
}

impl Default for PrefetchOptions {
    fn default() -> Self {
        PrefetchOptions { after_pages: 3, window_pages: 15 }
    }
}

/// When dirty pages are written ahead of their eviction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlusherOptions {
    /// It starts above this share of dirty pages among the policy's frames.
    pub high: f64,
    /// It stops at this share.
    pub low: f64,
    /// Candidates that it requests from the policy at a time.
    pub batch_pages: u32,
}

impl Default for FlusherOptions {
    fn default() -> Self {
        FlusherOptions { high: 0.5, low: 0.4, batch_pages: 64 }
    }
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            transit_frames: None,
            writers: 4,
            write_run_pages_max: 32,
            batch_pages: None,
            cluster_pages: 16,
            flusher: None,
            prefetch: None,
        }
    }
}

impl PoolOptions {
    /// The least default number of `transit_frames`.
    pub const TRANSIT_FRAMES_MIN: u32 = 32;

    /// A classic buffer manager: a fix that evicts a dirty page first writes it, in a write of its
    /// own.
    pub fn classic() -> Self {
        PoolOptions { writers: 0, write_run_pages_max: 1, ..PoolOptions::default() }
    }

    /// Frames beyond those of a policy with `capacity_pages`.
    pub fn transit_frames(&self, capacity_pages: u32) -> u32 {
        let batches = 2 * self.batch_pages.unwrap_or(0);
        let usual = (capacity_pages / 16).max(Self::TRANSIT_FRAMES_MIN).max(batches);
        self.transit_frames.unwrap_or(usual)
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// `InvalidInput` if they are invalid or contradict each other.
    pub fn check(&self) -> Result<()> {
        let share = |share: f64| (0.0..=1.0).contains(&share);
        let problem = if self.transit_frames == Some(0) {
            "a buffer needs at least one transit frame"
        } else if self.write_run_pages_max == 0 {
            "a write has at least one page"
        } else if self.cluster_pages == 0 {
            "a cluster has at least one page"
        } else if self.batch_pages == Some(0) {
            "a batch has at least one page"
        } else if self.batch_pages.is_some() && (self.writers == 0 || self.flusher.is_some()) {
            "batches need a writer, and come with no flusher"
        } else if self
            .batch_pages
            .is_some_and(|pages| self.transit_frames.is_some_and(|frames| frames / 2 < pages))
        {
            "batches need transit frames for two of them"
        } else if self.flusher.is_some_and(|flusher| {
            !share(flusher.high) || !share(flusher.low) || flusher.low > flusher.high
        }) {
            "the flusher's watermarks are shares from 0 to 1, the low one not above the high one"
        } else if self.flusher.is_some_and(|flusher| flusher.batch_pages == 0) {
            "the flusher writes at least one page at a time"
        } else if self.prefetch.is_some_and(|prefetch| prefetch.after_pages == 0) {
            "prefetching starts after at least one page"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidInput, problem))
    }
}
