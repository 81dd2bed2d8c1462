//! The journal of a file system: how an fsync makes a change of a file's metadata durable.
use tantalum_base::Result;

/// The kinds of journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// ext4's: a block, a barrier, and a commit record, which must not be written before the block.
    BlockAndRecord,
    /// That of XFS: one record of the log, behind a barrier for the file's data.
    OneRecord,
}

impl Journal {
    /// An fsync. It writes pages of the journal only if metadata changed; it always ends with a barrier.
    ///
    /// # Errors
    /// Those of `write` and `barrier`.
    pub(crate) async fn sync(
        self,
        has_changes: bool,
        mut write: impl AsyncFnMut() -> Result<()>,
        barrier: impl AsyncFn() -> Result<()>,
    ) -> Result<()> {
        if has_changes {
            if self == Journal::BlockAndRecord {
                write().await?;
            }
            barrier().await?;
            write().await?;
        }
        barrier().await
    }
}
