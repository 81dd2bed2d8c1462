//! The log's end: groups are appended in memory and written a block at a time.
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Result};
use tantalum_runtime::sync::WaitQueue;

use super::block::{BLOCK_BYTES, Block, Group, LogBlock};
use super::block_pages_max;
use crate::btree::Lsn;
use crate::fault_points::Fault;
use crate::records::{Codec, Draft, FRAME_BYTES, PAGE_ROOM, RecordDevice};
use crate::values::Value;

/// Where a log goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LogEnd {
    /// Device pages of the log that were ever used, with those that were left out at its end.
    pub position: u64,
    /// LSN of the next group there.
    pub next: Lsn,
}

/// A redo log.
pub(crate) struct Log<D, C, V> {
    device: RecordDevice<D, C>,
    region: PageRange,
    state: RefCell<State<V>>,
    /// Where the log's writer waits, those who commit, those who need room, and who makes checkpoints.
    appended: WaitQueue,
    durable: WaitQueue,
    room: WaitQueue,
    used: WaitQueue,
}

struct State<V> {
    /// Appended and not in a block yet, with their bytes.
    pending: VecDeque<Rc<Group<V>>>,
    pending_bytes: usize,
    /// Where the next block begins, and LSN of the first group in it.
    end: LogEnd,
    /// LSN of the last group that is durable.
    durable: Lsn,
    /// Where the newest checkpoint lets the log begin.
    begin: u64,
    /// Somebody waits for room.
    full: bool,
    /// A block is being written.
    writing: bool,
    failed: Option<Error>,
}

/// Device pages of a block with so many bytes of groups.
fn pages_of(group_bytes: usize) -> u64 {
    (FRAME_BYTES + BLOCK_BYTES + group_bytes).div_ceil(PAGE_ROOM) as u64
}

/// Position at which a block of so many pages lies, in a log of `log_pages` whose end is at `position`: never across its end.
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
    /// The log in `region`, which goes on at `end`. All before is durable.
    pub(crate) fn new(device: RecordDevice<D, C>, region: PageRange, end: LogEnd) -> Self {
        let state = State {
            pending: VecDeque::new(),
            pending_bytes: 0,
            end,
            durable: Lsn(end.next.0 - 1),
            begin: end.position,
            full: false,
            writing: false,
            failed: None,
        };
        Log {
            device,
            region,
            state: RefCell::new(state),
            appended: WaitQueue::new("something to log"),
            durable: WaitQueue::new("a durable log"),
            room: WaitQueue::new("room in the log"),
            used: WaitQueue::new("a log to make a checkpoint of"),
        }
    }

    /// The device, as the log uses it.
    pub(crate) fn device(&self) -> &RecordDevice<D, C> {
        &self.device
    }

    /// Waits until there is room for a group, behind all that was appended.
    ///
    /// # Errors
    /// `TooLarge`; why the log failed.
    pub(crate) async fn room(&self, group: &Group<V>) -> Result<()> {
        let (bytes, pages) = (group.bytes(), pages_of(group.bytes()));
        let most = block_pages_max(self.region.pages);
        if pages > most {
            let context =
                format!("a transaction takes {pages} pages of the log, which allows {most}");
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        let room = || {
            let mut state = self.state.borrow_mut();
            if let Some(error) = &state.failed {
                return Some(Err(error.clone()));
            }
            // Each block may leave half of itself and all of them the end of the log.
            let needed = 2 * pages_of(state.pending_bytes + bytes) + 2 * most;
            let free = self.region.pages - (state.end.position - state.begin);
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

    /// Appends a group for which there is room; its LSN.
    pub(crate) fn append(&self, group: Group<V>) -> Lsn {
        let mut state = self.state.borrow_mut();
        let lsn = Lsn(state.end.next.0 + state.pending.len() as u64);
        state.pending_bytes += group.bytes();
        state.pending.push_back(Rc::new(group));
        drop(state);
        self.appended.wake_all();
        lsn
    }

    /// Waits until the groups up to `lsn` are durable.
    ///
    /// # Errors
    /// Why they may not be.
    pub(crate) async fn until_durable(&self, lsn: Lsn) -> Result<()> {
        let durable = || {
            let state = self.state.borrow();
            match &state.failed {
                _ if state.durable >= lsn => Some(Ok(())),
                Some(error) => Some(Err(error.clone())),
                None => None,
            }
        };
        self.durable.until(durable).await
    }

    /// Where a recovery would begin if the pages had all that was appended so far.
    pub(crate) fn end(&self) -> LogEnd {
        self.state.borrow().end
    }

    /// A checkpoint lets the log begin at `position`.
    pub(crate) fn give_up_before(&self, position: u64) {
        let mut state = self.state.borrow_mut();
        state.begin = position;
        state.full = false;
        drop(state);
        self.room.wake_all();
    }

    /// Waits until a checkpoint is due: half of the log is used, or somebody waits for room. `false` when nothing goes on.
    pub(crate) async fn until_checkpoint_due(&self) -> bool {
        let due = || {
            let state = self.state.borrow();
            let used = state.end.position - state.begin;
            match state.failed.is_some() {
                true => Some(false),
                false => (state.full || 2 * used > self.region.pages).then_some(true),
            }
        };
        self.used.until(due).await
    }

    /// Lets nothing go on, and waits for the block that is being written. What was not is lost.
    pub(crate) async fn close(&self) {
        self.fail(Error::new(ErrorKind::Closed, "the database is closed"));
        self.durable.until(|| (!self.state.borrow().writing).then_some(())).await;
    }

    /// Whether the log goes on.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn check(&self) -> Result<()> {
        self.state.borrow().failed.clone().map_or(Ok(()), Err)
    }

    /// Nothing goes on.
    pub(crate) fn fail(&self, error: Error) {
        self.state.borrow_mut().failed.get_or_insert(error);
        let queues = [&self.appended, &self.durable, &self.room, &self.used];
        queues.iter().for_each(|queue| queue.wake_all());
    }

    /// Writes what is appended, until nothing goes on. Who appends while a block is written shares the next one.
    pub(crate) async fn run(&self) {
        loop {
            let next = || {
                let state = self.state.borrow();
                match state.failed.is_some() {
                    true => Some(false),
                    false => (!state.pending.is_empty()).then_some(true),
                }
            };
            if !self.appended.until(next).await {
                return;
            }
            let written = self.write_block().await;
            self.state.borrow_mut().writing = false;
            match written {
                Ok(()) => self.durable.wake_all(),
                Err(error) => self.fail(error.wrap("the redo log")),
            }
        }
    }

    async fn write_block(&self) -> Result<()> {
        let (at, block) = self.take_block();
        self.room.wake_all();
        self.used.wake_all();
        let last = Lsn(block.first.0 + block.groups.len() as u64 - 1);
        let mut draft = Draft::new(PageNo(self.region.first.0 + at % self.region.pages));
        draft.align(Rc::new(Block::Log(block)));
        self.device.write(&draft).await?;
        if !Fault::NoFlushAfterLog.is_planted() {
            self.device.flush().await?;
        }
        self.state.borrow_mut().durable = last;
        Ok(())
    }

    /// The next block, with as many groups as it has room for, and its position.
    fn take_block(&self) -> (u64, LogBlock<V>) {
        let mut state = self.state.borrow_mut();
        let most = block_pages_max(self.region.pages);
        let (first, mut bytes, mut groups) = (state.end.next, 0, Vec::new());
        while let Some(group) = state.pending.front() {
            let more = bytes + group.bytes();
            if !groups.is_empty() && pages_of(more) > most {
                break;
            }
            bytes = more;
            groups.extend(state.pending.pop_front());
        }
        let pages = pages_of(bytes);
        let at = place(state.end.position, pages, self.region.pages);
        state.pending_bytes -= bytes;
        state.writing = true;
        state.end = LogEnd { position: at + pages, next: Lsn(first.0 + groups.len() as u64) };
        let used = state.end.position - state.begin;
        let full = used <= self.region.pages || Fault::NoWaitForLogRoom.is_planted();
        assert!(full, "the log is written over: {used} of {} pages", self.region.pages);
        (at, LogBlock { first, groups })
    }
}
