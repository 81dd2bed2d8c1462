//! Watches a home without a claim, to detect changes made while its cache was away.
//!
//! Before the cache writes to a home that it left settled, it records in the journal that it is
//! writing, and drops the checksums of those of the first pages that will change. When everything
//! is synced, it records all checksums again, and the time of modification. So an opening can check
//! that nothing changed. After a close it checks the time of modification and all of the first
//! pages; after a kill, those of the first pages that were not being written.
use super::mark::{Mark, Marks, PAGES, State, newest};
use crate::fault_points::Fault;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::checksum::crc32c;
use tantalum_base::{PAGE_BYTES, Result, ResultExt};
use tantalum_media::BlockStore;
use tantalum_media::block_store::{IoBuf, StoreLayer};
use tantalum_runtime::sync::Semaphore;

/// A home that may be watched.
pub struct Watched<S> {
    inner: S,
    watch: RefCell<Option<Rc<Watch<S>>>>,
}

struct Watch<S> {
    marks: Marks<S>,
    mark: Cell<Mark>,
    /// The number of changes begun so far, and of those in flight.
    changes: Cell<u64>,
    in_flight: Cell<u64>,
    /// Held while a mark is written, or is about to be written.
    turn: Semaphore,
    is_settling: Cell<bool>,
}

/// A change of the home in flight.
struct InFlight<S>(Rc<Watch<S>>);

impl<S> InFlight<S> {
    fn new(watch: Rc<Watch<S>>) -> Self {
        watch.changes.set(watch.changes.get() + 1);
        watch.in_flight.set(watch.in_flight.get() + 1);
        InFlight(watch)
    }
}

impl<S> Drop for InFlight<S> {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
    }
}

impl<S: BlockStore> Watched<S> {
    /// A home that is not watched.
    pub fn new(inner: S) -> Self {
        Watched { inner, watch: RefCell::new(None) }
    }

    /// Watches the home from now on. Its marks are in `journal`, and are used only if they are
    /// `believed`. Writes nothing.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn watch(&self, journal: S, believed: bool) -> Result<()> {
        let (sequence, mark) = newest(&journal).await?;
        let marks = Marks::new(journal, sequence);
        let mark = Cell::new(if believed { mark } else { Mark::UNKNOWN });
        let turn = Semaphore::new("marks of the home", 1);
        let (changes, in_flight) = (Cell::new(0), Cell::new(0));
        let is_settling = Cell::new(false);
        let watch = Watch { marks, mark, changes, in_flight, turn, is_settling };
        self.watch.replace(Some(Rc::new(watch)));
        Ok(())
    }

    /// Marks the home as it is now, unless its mark is complete. After a kill it is not, as writes
    /// were in flight.
    ///
    /// # Errors
    /// Those of the stores.
    pub async fn mark(&self) -> Result<()> {
        match self.watched() {
            Some(watch) if !matches!(watch.mark.get().state, State::Settled { .. }) => {
                StoreLayer::sync(self).await
            }
            _ => Ok(()),
        }
    }

    /// Stops watching, because the home has a claim, and records durably that its marks are
    /// invalid.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn forget(&self) -> Result<()> {
        let Some(watch) = self.watch.take() else { return Ok(()) };
        match watch.marks.is_empty() {
            true => Ok(()),
            false => watch.marks.write(&Mark::UNKNOWN).await,
        }
    }

    fn watched(&self) -> Option<Rc<Watch<S>>> {
        self.watch.borrow().clone()
    }

    /// Records that the home is settled, unless another change was begun after the first `changes`.
    async fn settle(&self, watch: &Watch<S>, changes: u64) -> Result<()> {
        let _turn = watch.turn.acquire(1).await;
        watch.is_settling.set(true);
        let settled = self.try_settle(watch, changes).await;
        watch.is_settling.set(false);
        settled
    }

    async fn try_settle(&self, watch: &Watch<S>, changes: u64) -> Result<()> {
        let is_idle = watch.in_flight.get() == 0 && watch.changes.get() == changes;
        if !is_idle || matches!(watch.mark.get().state, State::Settled { .. }) {
            return Ok(());
        }
        let checksums = checksums(&self.inner).await?;
        let state = State::Settled { modified_ns: self.inner.modified_ns().unwrap_or(0) };
        let mark = Mark { state, home_bytes: self.inner.bytes(), checksums };
        watch.marks.write(&mark).await?;
        watch.mark.set(mark);
        Ok(())
    }

    /// Records that a range is about to be changed.
    async fn begin_change(&self, offset: u64, bytes: u64) -> Result<Option<InFlight<S>>> {
        let Some(watch) = self.watched() else { return Ok(None) };
        if watch.is_settling.get() || watch.mark.get().is_broken_by(offset, bytes) {
            let _turn = watch.turn.acquire(1).await;
            let mark = watch.mark.get();
            if mark.is_broken_by(offset, bytes) {
                let mark = mark.without(offset, bytes);
                watch.marks.write(&mark).await?;
                watch.mark.set(mark);
            }
            return Ok(Some(InFlight::new(Rc::clone(&watch))));
        }
        Ok(Some(InFlight::new(watch)))
    }
}

impl Mark {
    /// Whether a change in this range makes the mark invalid.
    fn is_broken_by(&self, offset: u64, bytes: u64) -> bool {
        self.state != State::Writing
            || pages_in(offset, bytes).any(|at| self.checksums[at].is_some())
    }

    fn without(mut self, offset: u64, bytes: u64) -> Self {
        pages_in(offset, bytes).for_each(|at| self.checksums[at] = None);
        Mark { state: State::Writing, ..self }
    }
}

/// The first pages that a range overlaps.
fn pages_in(offset: u64, bytes: u64) -> std::ops::Range<usize> {
    let page = |byte: u64| (byte / PAGE_BYTES as u64).min(PAGES as u64) as usize;
    page(offset)..page((offset + bytes).next_multiple_of(PAGE_BYTES as u64))
}

/// Checksums of the first pages.
async fn checksums<S: BlockStore>(home: &S) -> Result<[Option<u32>; PAGES]> {
    let pages = PAGES.min(home.bytes() as usize / PAGE_BYTES);
    let mut checksums = [None; PAGES];
    if pages > 0 {
        let buf = home.read(0, home.buffer(pages * PAGE_BYTES)).await;
        let buf = buf.context(|| "reading the beginning of the home")?;
        for (checksum, page) in checksums.iter_mut().zip(buf.chunks_exact(PAGE_BYTES)) {
            *checksum = Some(crc32c(page));
        }
        home.recycle(buf);
    }
    Ok(checksums)
}

/// The first difference of a home from the marks in `journal`, in words.
///
/// # Errors
/// Those of the stores.
pub async fn changes<S: BlockStore, J: BlockStore>(
    home: &S,
    journal: &J,
) -> Result<Option<String>> {
    let (_, mark) = newest(journal).await?;
    Ok(match mark.state {
        _ if Fault::ChangesUnnoticed.is_planted() => None,
        State::Unknown => None,
        _ if home.bytes() != mark.home_bytes && mark.home_bytes > 0 => {
            Some(format!("it has {} bytes and had {}", home.bytes(), mark.home_bytes))
        }
        State::Settled { modified_ns }
            // A power cut may have lost the time of the last change, but not its content.
            if modified_ns > 0 && home.modified_ns().is_some_and(|now_ns| now_ns > modified_ns) =>
        {
            Some("it was modified since".to_owned())
        }
        State::Writing | State::Settled { .. } => {
            let found = checksums(home).await?;
            let differs = |at: &usize| mark.checksums[*at].is_some() && found[*at] != mark.checksums[*at];
            let page = (0..PAGES).find(differs);
            page.map(|page| format!("page {page} of it has changed"))
        }
    })
}

impl<S: BlockStore> StoreLayer for Watched<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        let _change = self.begin_change(offset, buf.len() as u64).await?;
        self.inner.write(offset, buf, durable).await
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        let _change = self.begin_change(offset, bytes).await?;
        self.inner.zero(offset, bytes).await
    }

    async fn sync(&self) -> Result<()> {
        let Some(watch) = self.watched() else { return self.inner.sync().await };
        // A change in flight now may not be covered by the sync.
        let changes = (watch.in_flight.get() == 0).then(|| watch.changes.get());
        self.inner.sync().await?;
        match changes {
            Some(changes) => self.settle(&watch, changes).await,
            None => Ok(()),
        }
    }
}
