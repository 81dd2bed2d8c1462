//! The end of the log: groups are appended in memory and written a block at a time.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Result};
use tantalum_runtime::sync::WaitQueue;

use super::block::{BLOCK_BYTES, Block, Group, LogBlock};
use super::block_pages_max;
use super::group_commit::{GroupCommit, closed};
use crate::btree::Lsn;
use crate::fault_points::Fault;
use crate::records::{Codec, Draft, FRAME_BYTES, PAGE_ROOM, RecordDevice};
use crate::values::Value;

/// The place where a log continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LogEnd {
    /// Number of device pages of the log ever used, including those skipped at its end.
    pub position: u64,
    /// LSN of the next group there.
    pub next: Lsn,
}

/// A redo log.
pub(crate) struct Log<D, C, V> {
    device: RecordDevice<D, C>,
    region: PageRange,
    groups: GroupCommit<Rc<Group<V>>>,
    state: RefCell<State>,
    /// The queues of commits that need room, and of the checkpointer.
    room: WaitQueue,
    used: WaitQueue,
}

struct State {
    /// Bytes of groups that are appended but not in a block yet.
    pending_bytes: usize,
    /// The place of the next block.
    position: u64,
    /// The begin of the log according to the newest checkpoint.
    begin: u64,
    /// Whether a commit waits for room.
    full: bool,
}

/// Number of device pages of a block with this many bytes of groups.
fn pages_of(group_bytes: usize) -> u64 {
    (FRAME_BYTES + BLOCK_BYTES + group_bytes).div_ceil(PAGE_ROOM) as u64
}

/// The position of a block of `pages` pages in a log of `log_pages` whose end is at `position`: a block does not wrap around.
pub(super) fn place(position: u64, pages: u64, log_pages: u64) -> u64 {
    let offset = position % log_pages;
    if offset + pages > log_pages { position + log_pages - offset } else { position }
}

impl<D, C, V> Log<D, C, V>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    /// The log in `region`, which continues at `end`. Everything before is durable.
    pub(crate) fn new(device: RecordDevice<D, C>, region: PageRange, end: LogEnd) -> Self {
        let position = end.position;
        Log {
            device,
            region,
            groups: GroupCommit::new(end.next),
            state: RefCell::new(State { pending_bytes: 0, position, begin: position, full: false }),
            room: WaitQueue::new("room in the log"),
            used: WaitQueue::new("a log to make a checkpoint of"),
        }
    }

    /// The groups that are pending or being written.
    pub(crate) fn groups(&self) -> &GroupCommit<Rc<Group<V>>> {
        &self.groups
    }

    /// The device, with the log's counters.
    pub(crate) fn device(&self) -> &RecordDevice<D, C> {
        &self.device
    }

    /// Waits until there is room for a group, after all appended ones.
    ///
    /// # Errors
    /// `TooLarge`; the error because of which the log failed.
    pub(crate) async fn room(&self, group: &Group<V>) -> Result<()> {
        let (bytes, pages) = (group.bytes(), pages_of(group.bytes()));
        let most = block_pages_max(self.region.pages);
        if pages > most {
            let context =
                format!("a transaction takes {pages} pages of the log, which allows {most}");
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        let room = || {
            if let Err(error) = self.groups.check() {
                return Some(Err(error));
            }
            let mut state = self.state.borrow_mut();
            // Each block may leave half of its pages unused, and all of them the end of the log.
            let needed = 2 * pages_of(state.pending_bytes + bytes) + 2 * most;
            let free = self.region.pages - (state.position - state.begin);
            if needed <= free || Fault::NoWaitForLogRoom.is_planted() {
                return Some(Ok(()));
            }
            if !std::mem::replace(&mut state.full, true) {
                drop(state);
                self.used.wake_all();
            }
            None
        };
        self.room.until(room).await
    }

    /// Appends a group that has room; returns its LSN.
    pub(crate) fn append(&self, group: Group<V>) -> Lsn {
        if !Fault::GroupsCutShort.is_planted() {
            return self.append_whole(group);
        }
        let parts = group.pages.into_iter().map(|page| Group { pages: vec![page] });
        parts.map(|part| self.append_whole(part)).max().unwrap_or_default()
    }

    fn append_whole(&self, group: Group<V>) -> Lsn {
        self.state.borrow_mut().pending_bytes += group.bytes();
        self.groups.append(Rc::new(group))
    }

    /// The place where a recovery would begin if the pages had all appended changes. It would repeat groups that are not in a
    /// block yet.
    pub(crate) fn end(&self) -> LogEnd {
        LogEnd { position: self.state.borrow().position, next: self.groups.first_pending() }
    }

    /// Frees the log before `position`, after a checkpoint.
    pub(crate) fn give_up_before(&self, position: u64) {
        let mut state = self.state.borrow_mut();
        state.begin = position;
        state.full = false;
        drop(state);
        self.room.wake_all();
    }

    /// Waits until a checkpoint is due: half of the log is used, or a commit waits for room. `false` once the log is stopped.
    pub(crate) async fn until_checkpoint_due(&self) -> bool {
        let due = || {
            if self.groups.check().is_err() {
                return Some(false);
            }
            let state = self.state.borrow();
            let used = state.position - state.begin;
            (state.full || 2 * used > self.region.pages).then_some(true)
        };
        self.used.until(due).await
    }

    /// Stops the log and waits for the block in progress. Groups that were not written are lost.
    pub(crate) async fn close(&self) {
        self.fail(closed());
        self.groups.until_quiet().await;
    }

    /// Stops the log with this error.
    pub(crate) fn fail(&self, error: Error) {
        self.groups.fail(error);
        self.room.wake_all();
        self.used.wake_all();
    }

    /// Writes appended groups until the log is stopped. Groups appended while a block is written share the next block.
    pub(crate) async fn run(&self) {
        while self.groups.until_pending().await {
            match self.write_block().await {
                Ok(()) => self.groups.written(Ok(())),
                Err(error) => {
                    self.groups.written(Err(error.wrap("the redo log")));
                    self.room.wake_all();
                    self.used.wake_all();
                }
            }
        }
    }

    async fn write_block(&self) -> Result<()> {
        let (at, block) = self.take_block();
        self.room.wake_all();
        self.used.wake_all();
        let mut draft = Draft::new(PageNo(self.region.first.0 + at % self.region.pages));
        draft.align(Rc::new(Block::Log(block)));
        self.device.write(&draft).await?;
        if !Fault::NoFlushAfterLog.is_planted() {
            self.device.flush().await?;
        }
        Ok(())
    }

    /// The next block, with as many groups as fit, and its position.
    fn take_block(&self) -> (u64, LogBlock<V>) {
        let most = block_pages_max(self.region.pages);
        let mut bytes = 0;
        let (first, groups) = self.groups.take(|group| {
            let more = bytes + group.bytes();
            let fits = bytes == 0 || pages_of(more) <= most;
            bytes = if fits { more } else { bytes };
            fits
        });
        let mut state = self.state.borrow_mut();
        let pages = pages_of(bytes);
        let at = place(state.position, pages, self.region.pages);
        state.pending_bytes -= bytes;
        state.position = at + pages;
        let used = state.position - state.begin;
        let full = used <= self.region.pages || Fault::NoWaitForLogRoom.is_planted();
        assert!(full, "the log is written over: {used} of {} pages", self.region.pages);
        (at, LogBlock { first, groups })
    }
}
