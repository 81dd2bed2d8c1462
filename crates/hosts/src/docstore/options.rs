//! How a store commits, and what it is made with.
use tantalum_base::{Error, ErrorKind, Limits, Result};

/// Longest key, in bytes, as in Couchbase.
pub const KEY_BYTES_MAX: usize = 250;

/// Largest value, in bytes, as in Couchbase.
pub const VALUE_BYTES_MAX: usize = 20 << 20;

/// Pages of the directory, which lie at the beginning of the device.
pub(super) const DIRECTORY_PAGES: u64 = 2;

/// Least pages of a file.
pub(super) const FILE_PAGES_MIN: u64 = 32;

/// How commits and compaction bring documents to their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Append the documents and every node on the way from them to the root, then a header. Compaction copies documents.
    Original,
    /// Append the documents and remap their old places to them; the tree stays as it is. Compaction remaps, too.
    Share,
}

impl Mode {
    /// Both.
    pub const ALL: [Mode; 2] = [Mode::Original, Mode::Share];

    /// What the paper calls it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Original => "Original",
            Mode::Share => "SHARE",
        }
    }
}

/// What a store is made and opened with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DocStoreOptions {
    /// How it commits. A store keeps the mode with which it was made.
    pub mode: Mode,
    /// Updates after which a commit begins by itself, at least 1 (the papers' batch size).
    pub batch_updates: u32,
    /// Ratio of stale pages in the file from which compaction begins by itself, 0 to 1; `None` leaves it to the host.
    pub compact_at: Option<f64>,
    /// Whether a compaction by SHARE reads every document that it remaps: it then ends where one is damaged, and takes the time to
    /// read them all. (SHARE, section 5.3.2: the paper's reads each one's header, for its length.)
    pub compaction_reads: bool,
}

impl DocStoreOptions {
    /// A commit for every update; compaction where 60 % of the file is stale, which reads what it copies alone.
    pub fn new(mode: Mode) -> Self {
        DocStoreOptions { mode, batch_updates: 1, compact_at: Some(0.6), compaction_reads: false }
    }

    /// Checks the settings, and against what the device offers.
    ///
    /// # Errors
    /// `InvalidInput`; `Unsupported` where the mode needs `share` and the device has none.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let refuse = |kind, problem: String| Err(Error::new(kind, problem));
        if self.batch_updates == 0 {
            return refuse(ErrorKind::InvalidInput, "a batch has at least one update".into());
        }
        if let Some(ratio) = self.compact_at
            && !(ratio > 0.0 && ratio <= 1.0)
        {
            let problem = format!("compaction at a stale ratio of {ratio}: it is above 0, up to 1");
            return refuse(ErrorKind::InvalidInput, problem);
        }
        if self.mode == Mode::Share && limits.share_pairs_max == 0 {
            let problem = "mode SHARE needs a device that remaps pages, and this one does not";
            return refuse(ErrorKind::Unsupported, problem.into());
        }
        let least = DIRECTORY_PAGES + 2 * FILE_PAGES_MIN;
        if limits.pages < least {
            let problem =
                format!("a store needs {least} pages at least, the device has {}", limits.pages);
            return refuse(ErrorKind::InvalidInput, problem);
        }
        Ok(())
    }
}
