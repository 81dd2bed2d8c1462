//! Checkpoints. They are fuzzy: transactions continue meanwhile.
use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_runtime::Runtime;

use super::engine::Database;
use super::way::Way;
use crate::fault_points::Fault;
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
    /// Writes home the pages that are dirty now, and frees the log before this point, if there is a log.
    ///
    /// # Errors
    /// Those of the device, also if an earlier write of a page home failed; or the log failed.
    pub async fn checkpoint(&self) -> Result<()> {
        let _turn = self.checkpoint_turn.acquire(1).await;
        self.commits.check()?;
        let Some(log) = self.commits.log() else { return self.pool.flush().await };
        // Changes appended before this point are in the pool's pages: both happen in one step. So from now on pages must be logged
        // whole again, including those that are not home yet.
        let begin = log.end();
        if !Fault::WholePagesTooLate.is_planted() {
            self.log_whole_pages_from_now_on();
        }
        self.pool.flush().await?;
        // The database may have failed or been closed meanwhile.
        self.commits.check()?;
        let before = self.headers.newest();
        let (number, position) = (before.number + 1, begin.position);
        let header = Header { number, position, next: begin.next, ..before };
        self.headers.write(&self.records, header).await?;
        log.give_up_before(begin.position);
        if Fault::WholePagesTooLate.is_planted() {
            self.log_whole_pages_from_now_on();
        }
        self.counts.borrow_mut().checkpoints += 1;
        Ok(())
    }

    fn log_whole_pages_from_now_on(&self) {
        if self.options.pages.form.logs_whole_pages() {
            self.whole_before.set(self.commits.next());
        }
    }

    /// Makes a checkpoint each time one is due.
    pub(super) async fn run_checkpoints(self: &Rc<Self>) {
        let Some(log) = self.commits.log() else { return };
        while log.until_checkpoint_due().await {
            if let Err(error) = self.checkpoint().await {
                log.fail(error.wrap("a checkpoint"));
            }
        }
    }
}
