//! Checkpoints. They are fuzzy: transactions go on meanwhile.
use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_runtime::Runtime;

use super::engine::Database;
use super::way::Way;
use crate::records::Codec;
use crate::redo::{Block, Header};
use crate::values::Value;

impl<R, D, V, C, W> Database<R, D, V, C, W>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
    W: Way,
{
    /// Brings the pages home that are dirty now, and gives up the log before.
    ///
    /// # Errors
    /// The device's, also where a page could not be brought home before, or the log failed.
    pub async fn checkpoint(&self) -> Result<()> {
        let _turn = self.checkpoint_turn.acquire(1).await;
        self.log.check()?;
        // What was appended before this is in the pool's pages: both happens in one step.
        let begin = self.log.end();
        self.pool.flush().await?;
        // It may have failed, or been closed, meanwhile.
        self.log.check()?;
        let before = self.headers.newest();
        let (number, position) = (before.number + 1, begin.position);
        let header = Header { number, position, next: begin.next, ..before };
        self.headers.write(&self.records, header).await?;
        self.log.give_up_before(begin.position);
        self.counts.borrow_mut().checkpoints += 1;
        Ok(())
    }

    /// Makes a checkpoint whenever one is due.
    pub(super) async fn run_checkpoints(self: &Rc<Self>) {
        while self.log.until_checkpoint_due().await {
            if let Err(error) = self.checkpoint().await {
                self.log.fail(error.wrap("a checkpoint"));
            }
        }
    }
}
