//! How a store commits, and its options.
use tantalum_base::{Error, ErrorKind, Limits, Result};

/// Maximum length of a key in bytes, as in Couchbase.
pub const KEY_BYTES_MAX: usize = 250;

/// Maximum length of a value in bytes, as in Couchbase.
pub const VALUE_BYTES_MAX: usize = 20 << 20;

/// Pages of the directory, at the beginning of the device.
pub(super) const DIRECTORY_PAGES: u64 = 2;

/// Minimum size of a file, in pages.
pub(super) const FILE_PAGES_MIN: u64 = 32;

/// How commits and compaction put documents at their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Append the documents and every node on the path from them to the root, then a header. Compaction copies documents.
    Original,
    /// Append the documents and remap their old places to them; the tree does not change. Compaction remaps, too.
    Share,
}

impl Mode {
    /// Both.
    pub const ALL: [Mode; 2] = [Mode::Original, Mode::Share];

    /// Its name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Original => "Original",
            Mode::Share => "SHARE",
        }
    }
}

/// The options for making and opening a store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DocStoreOptions {
    /// How it commits. A store keeps the mode with which it was made.
    pub mode: Mode,
    /// Number of updates after which a commit begins automatically, at least 1 (the papers' batch size).
    pub batch_updates: u32,
    /// Ratio of stale pages in the file at which compaction begins automatically, 0 to 1; `None` leaves it to the host.
    pub compact_at: Option<f64>,
    /// Whether a compaction by SHARE reads every document that it remaps: then it fails if one is damaged, and takes the time for
    /// all these reads. (SHARE, section 5.3.2: the paper's compaction reads each document's header, for its length.)
    pub compaction_reads: bool,
}

impl DocStoreOptions {
    /// A commit for every update; compaction once 60 % of the file is stale, reading only documents that it copies.
    pub fn new(mode: Mode) -> Self {
        DocStoreOptions { mode, batch_updates: 1, compact_at: Some(0.6), compaction_reads: false }
    }

    /// Checks the settings by themselves and against the device's limits.
    ///
    /// # Errors
    /// `InvalidInput`; `Unsupported` if the mode needs `share` and the device lacks it.
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
