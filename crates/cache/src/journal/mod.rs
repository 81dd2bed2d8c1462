//! The journal beside a home. It contains the pages that the destager is about to write in place. So the
//! home can be brought to a consistent image even if it is caught between two images, and even if the
//! flash is lost.
//!
//! # On the store
//! ```text
//! byte 0        head, first copy                       head.rs
//! byte 4096     two records of the claim on the home   claims.rs
//! byte 12288    two marks of a home without one        ../claim/mark.rs
//! byte 524288   head, second copy
//! byte 1 MiB    contents: one page each, in the order in which they were appended
//! after them    the index: the page of each content, and the ranges of zeros      index.rs
//! ```
//! Every epoch begins at the same position and overwrites the one before it.
//!
//! # How an epoch becomes valid
//! 1. If the head says that an epoch is committed, the head is first rewritten to say that none is. This
//!    is durable before anything else is written. That epoch has been applied, and will be overwritten.
//! 2. Contents and index are written, in any order, and synced.
//! 3. The head is written: the epoch, its numbers of contents and of ranges, and a checksum of its index.
//!
//! So if the head says that an epoch is committed, the whole epoch was written: anything missing was
//! damaged, which is an error. Remains of an earlier epoch, or of an attempt at the same one, that the
//! head does not refer to are ignored. Checks detect pages that a disk lost or mixed up: the index
//! contains volume and epoch, the head has the checksum of the index, and the index has the checksum of
//! each content.
//!
//! Each time the head is written, one copy is durable before the other one is touched, and the newer one
//! counts. So a power cut damages at most one of them. If both are damaged, that is an error too.
mod apply;
mod checking;
mod claims;
mod head;
mod home_state;
mod index;
mod reading;
mod writing;

use crate::fault_points::Fault;
use crate::refusals::OTHERS_JOURNAL;
pub use apply::{Applied, apply};
use claims::Standing;
use head::{Commit, Found, Head, State};
pub use home_state::is_no_journal;
use home_state::{Heads, read_head};
use index::{ENTRIES_PER_PAGE, Index, Reader, pages_for};
use reading::{Committed, Window};
use std::cell::{Cell, RefCell};
use tantalum_base::checksum::crc32c_append;
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageNo, PageRange, Payload, Result, ResultExt, Version,
};
use tantalum_ftl::Lacks;
use tantalum_media::BlockStore;
use tantalum_runtime::sync::{Semaphore, WaitQueue};
use writing::{InFlight, Writing};

const FIRST_CONTENT_BYTE: u64 = 1 << 20;

/// Pages of a write or of a read: 1 MiB.
const CONTENTS_PER_WRITE: usize = 256;

/// The owner of a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// Identity of the volume.
    pub volume_id: u128,
    /// Pages of its home.
    pub pages: u64,
}

/// An epoch, as it is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Closed {
    /// Its number, from 1 on; later epochs have larger ones.
    pub epoch: u64,
    /// When its last change was acknowledged, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Every change up to this version is in the epoch, or was destaged before, except for pages
    /// that the flash could not [read](Journal::lacks). These changes were durable in the flash.
    /// [`Version::NEVER`] if unknown.
    pub version: Version,
}

/// Consecutive pages of a committed epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Run<P> {
    /// Pages that were written.
    Contents {
        /// The first of them.
        first: PageNo,
        /// Their contents.
        pages: Vec<P>,
    },
    /// Pages that were trimmed.
    Zeros(PageRange),
}

impl<P> Run<P> {
    /// Its pages.
    pub fn range(&self) -> PageRange {
        match self {
            Run::Contents { first, pages } => PageRange::new(*first, pages.len() as u64),
            Run::Zeros(range) => *range,
        }
    }
}

/// A journal of one epoch at a time.
///
/// It is [begun](Self::begin), filled, [committed](Self::commit), read back, and begun anew. An
/// index in memory takes 16 bytes a page. After a write error an epoch cannot be committed, but can
/// be begun anew. The futures of its calls must not be dropped before they end, unless the journal
/// is dropped too.
pub struct Journal<S, P> {
    store: S,
    pair: Pair,
    limits: Limits,
    phase: RefCell<Phase<P>>,
    window: RefCell<Window<P>>,
    /// The last epoch that was committed.
    last: Cell<Option<Closed>>,
    /// Pages or changes that the home may still lack when it has that epoch, or the one that was
    /// begun.
    lacks: RefCell<Lacks>,
    heads: Heads,
    /// Wakes tasks that wait for writes of contents.
    ended: WaitQueue,
}

/// The limits of an epoch.
struct Limits {
    home_pages: u64,
    /// Room for contents and index, in pages.
    room_pages: u64,
    memory_pages_max: u32,
}

enum Phase<P> {
    Idle,
    Writing(Writing<P>),
    Committed(Committed<P>),
}

impl<S: BlockStore, P: Payload> Journal<S, P> {
    /// Makes an empty journal. It says that the home is an image of its own, until the home is
    /// [owned](Self::own_home). The content of `store` is lost. The contents of up to
    /// `memory_pages_max` pages of each epoch stay in memory until the epoch is forgotten.
    ///
    /// # Errors
    /// `InvalidInput` if the store has no room for a page. Those of the store; this includes a
    /// store that cannot be read, as it may contain the head of an older journal.
    pub async fn format(store: S, pair: Pair, memory_pages_max: u32) -> Result<Self> {
        if pages_max(room_pages(store.bytes())) == 0 {
            let context = format!("a journal does not fit in {} bytes", store.bytes());
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        // If only one copy gets written, the head of an older journal must not count. So the new
        // sequence number must be above that of the older one.
        let (sequence, write_first) = match read_head(&store).await {
            Ok(found) => (found.head.sequence, found.write_first),
            Err(error) if is_no_journal(&error) => (0, 0),
            Err(error) => return Err(error),
        };
        let journal = Self::new(store, pair, memory_pages_max, sequence, write_first);
        journal.write_head(State::Released(Closed::default())).await?;
        Ok(journal)
    }

    /// The volume whose flash may have content that the home lacks; `None` if the home is an image
    /// of its own.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub async fn owner_of(store: &S) -> Result<Option<Pair>> {
        let head = read_head(store).await?.head;
        Ok(match head.state {
            State::Released(_) => None,
            State::Empty | State::GivenUp(_) | State::Committed(_) => Some(head.pair),
        })
    }

    /// The owner of the journal in `store`.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub async fn pair_of(store: &S) -> Result<Pair> {
        Ok(read_head(store).await?.head.pair)
    }

    /// Opens a journal. The epoch that is committed in it, if any, can be read with
    /// [`next_run`](Self::next_run). Writes nothing.
    ///
    /// # Errors
    /// `Format` if there is no journal, one of another version, or not that of `pair`; `Checksum`
    /// or `Corrupt` if the head or the index of a committed epoch is damaged; those of the store.
    /// Contents are checked when they are read.
    pub async fn open(
        store: S,
        pair: Pair,
        memory_pages_max: u32,
    ) -> Result<(Self, Option<Closed>)> {
        let Found { head, write_first } = read_head(&store).await?;
        if head.pair != pair {
            let context = format!("{OTHERS_JOURNAL} {}, not of {pair}", head.pair);
            return Err(OTHERS_JOURNAL.error(ErrorKind::Format, context));
        }
        let journal = Self::new(store, pair, memory_pages_max, head.sequence, write_first);
        let Some(commit) = journal.take_over(head) else { return Ok((journal, None)) };
        let (index, closed) = (journal.read_index(commit).await?, commit.closed);
        journal.heads.say_committed.set(true);
        journal.last.set(Some(closed));
        let committed = Committed { epoch: closed.epoch, index, kept: Vec::new() };
        journal.phase.replace(Phase::Committed(committed));
        Ok((journal, Some(closed)))
    }

    /// Adopts the content of the head; returns the committed epoch, if there is one.
    fn take_over(&self, head: Head) -> Option<Commit> {
        self.lacks.replace(head.lacks);
        self.heads.claim.set(head.claim);
        self.heads.state.set(head.state);
        match head.state {
            State::Committed(commit) => return Some(commit),
            State::GivenUp(closed) => self.last.set(Some(closed)),
            State::Released(closed) => {
                self.last.set((closed != Closed::default()).then_some(closed));
            }
            State::Empty => {}
        }
        None
    }

    fn new(store: S, pair: Pair, memory_pages_max: u32, sequence: u64, write_first: usize) -> Self {
        let room_pages = room_pages(store.bytes());
        Journal {
            store,
            pair,
            limits: Limits { home_pages: pair.pages, room_pages, memory_pages_max },
            phase: RefCell::new(Phase::Idle),
            window: RefCell::new(Window::empty()),
            last: Cell::new(None),
            lacks: RefCell::default(),
            heads: Heads {
                sequence: Cell::new(sequence),
                write_first: Cell::new(write_first),
                say_committed: Cell::new(false),
                state: Cell::new(State::Empty),
                claim: Cell::new(Standing::None),
                turn: Semaphore::new("the head of the journal", 1),
            },
            ended: WaitQueue::new("writes to the journal"),
        }
    }

    /// Maximum pages with contents in an epoch. A range of zeros needs the space of an index entry,
    /// 16 bytes.
    pub fn pages_max(&self) -> u64 {
        pages_max(self.limits.room_pages)
    }

    /// Maximum ranges of zeros in an epoch with this many `contents`.
    pub fn zero_ranges_max(&self, contents: u64) -> u64 {
        let index_pages = self.limits.room_pages.saturating_sub(contents);
        (index_pages * ENTRIES_PER_PAGE).saturating_sub(contents)
    }

    /// The last epoch that was committed. If the journal no longer has it, it has been applied: the
    /// home is at that epoch.
    pub fn last_committed(&self) -> Option<Closed> {
        self.last.get()
    }

    /// Begins an epoch. The epoch committed before is given up, though it stays valid on the store
    /// until something is appended: the caller must have applied it and synced the home. An epoch
    /// that was begun and not committed is dropped; it may be begun anew.
    ///
    /// # Panics
    /// If `epoch` is not above all that were committed, or something is still being appended.
    pub fn begin(&self, epoch: u64) {
        self.window.replace(Window::empty());
        let before = self.phase.replace(Phase::Writing(Writing::new(epoch)));
        if let Phase::Writing(before) = before {
            assert_eq!(before.in_flight, 0, "epoch {} is still being written", before.epoch);
        }
        let last = self.last.get().map_or(0, |last| last.epoch);
        assert!(epoch > last, "epoch {epoch} does not come after epoch {last}");
    }

    /// Appends pages, in any order; an epoch may have each page at most once. May be called while
    /// another call is in flight. Pages that do not fill a write are written together with later
    /// ones.
    ///
    /// # Errors
    /// `OutOfSpace` if the store is too small, and `OutOfRange`: none of `pages` was appended, and
    /// the epoch may be committed without them. Those of the store: the epoch has failed.
    ///
    /// # Panics
    /// If no epoch was begun, or it is being committed.
    pub async fn append(&self, pages: Vec<(PageNo, P)>) -> Result<()> {
        let batches = self.writing(|writing| writing.take(pages, &self.limits))?;
        // All are counted before the first is written, so that a commit waits for all.
        let writes: Vec<_> = batches.into_iter().map(|batch| InFlight::new(self, batch)).collect();
        for write in writes {
            write.perform().await?;
        }
        Ok(())
    }

    /// Appends pages that read as zeros.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    ///
    /// # Panics
    /// As for [`append`](Self::append).
    pub async fn append_zeros(&self, range: PageRange) -> Result<()> {
        self.writing(|writing| writing.take_zeros(range, &self.limits))
    }

    /// Commits the epoch: when this returns, it is durable and can be read. Waits for pages that
    /// are being appended.
    ///
    /// # Errors
    /// `InvalidInput` if a page changes twice; those of the store and of an append. If the store
    /// failed, the epoch may be committed nevertheless: begin it anew, or open the journal again.
    ///
    /// # Panics
    /// If this epoch was not begun.
    pub async fn commit(&self, closed: Closed) -> Result<()> {
        let result = self.try_commit(closed).await;
        if let Err(error) = &result {
            self.fail(error);
        }
        result.context(|| format!("committing epoch {} to the journal", closed.epoch))
    }

    async fn try_commit(&self, closed: Closed) -> Result<()> {
        let Closed { epoch, .. } = closed;
        let last = self.writing(|writing| {
            assert_eq!(writing.epoch, epoch, "another epoch was begun");
            writing.close()
        })?;
        if let Some(batch) = last {
            InFlight::new(self, batch).perform().await?;
        }
        self.ended.until(|| self.writing(|writing| (writing.in_flight == 0).then_some(()))).await;
        let (index, kept) = self.writing(Writing::finish)?;
        self.give_up_committed().await?;
        let index_checksum = self.write_index(epoch, &index).await?;
        if !Fault::NoSyncBeforeCommit.is_planted() {
            self.store.sync().await?;
        }
        let (contents, zero_ranges) = (index.entries.len() as u32, index.zeros.len() as u64);
        self.heads.say_committed.set(true);
        let commit = Commit { closed, contents, zero_ranges, index_checksum };
        self.write_head(State::Committed(commit)).await?;
        self.last.set(Some(closed));
        self.phase.replace(Phase::Committed(Committed { epoch, index, kept }));
        Ok(())
    }

    fn writing<T>(&self, change: impl FnOnce(&mut Writing<P>) -> T) -> T {
        match &mut *self.phase.borrow_mut() {
            Phase::Writing(writing) => change(writing),
            _ => panic!("no epoch of the journal was begun"),
        }
    }

    fn fail(&self, error: &Error) {
        if let Phase::Writing(writing) = &mut *self.phase.borrow_mut() {
            writing.failure.get_or_insert_with(|| error.clone());
        }
    }

    /// Writes the index behind the contents; returns its checksum.
    async fn write_index(&self, epoch: u64, index: &Index) -> Result<u32> {
        let contents = index.entries.len() as u64;
        let (pages, mut number, mut checksum) = (pages_for(index.len()), 0, 0);
        while number < pages {
            let length = (pages - number).min(CONTENTS_PER_WRITE as u64) as usize;
            let mut buf = self.store.buffer(length * PAGE_BYTES);
            for (number, page) in (number..).zip(buf.chunks_exact_mut(PAGE_BYTES)) {
                let crc = index.encode(self.pair, epoch, number, page);
                checksum = crc32c_append(checksum, &crc.to_le_bytes());
            }
            let written = self.store.write(byte_of(contents + number), buf, false).await;
            self.store.recycle(written.context(|| "writing the index of the journal")?);
            number += length as u64;
        }
        Ok(checksum)
    }

    async fn read_index(&self, commit: Commit) -> Result<Index> {
        let contents = u64::from(commit.contents);
        let pages = contents.checked_add(commit.zero_ranges).map(pages_for);
        let needed = pages.and_then(|pages| pages.checked_add(contents));
        let (Some(pages), true) = (pages, needed.is_some_and(|it| it <= self.limits.room_pages))
        else {
            let Closed { epoch, .. } = commit.closed;
            let context = format!("epoch {epoch} does not fit in the journal: was it cut off?");
            return Err(Error::new(ErrorKind::Corrupt, context));
        };
        let (mut reader, mut number) = (Reader::new(self.pair, commit), 0);
        while number < pages {
            let length = (pages - number).min(CONTENTS_PER_WRITE as u64) as usize;
            let buf = self.store.buffer(length * PAGE_BYTES);
            let read = self.store.read(byte_of(contents + number), buf).await;
            let buf = read.context(|| "reading the index of the journal")?;
            buf.chunks_exact(PAGE_BYTES).try_for_each(|page| reader.page(page))?;
            self.store.recycle(buf);
            number += length as u64;
        }
        reader.finish()
    }
}

/// The position of page number `page` among the contents, in bytes.
fn byte_of(page: u64) -> u64 {
    FIRST_CONTENT_BYTE + page * PAGE_BYTES as u64
}

/// Pages for contents and index in a store of this length. Slots are numbered with 32 bits.
fn room_pages(store_bytes: u64) -> u64 {
    let room = store_bytes.saturating_sub(FIRST_CONTENT_BYTE) / PAGE_BYTES as u64;
    room.min(u64::from(u32::MAX))
}

/// Maximum contents that fit together with the index pages they need.
fn pages_max(room_pages: u64) -> u64 {
    room_pages - room_pages.div_ceil(ENTRIES_PER_PAGE + 1)
}
