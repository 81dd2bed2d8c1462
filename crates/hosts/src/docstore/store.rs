//! The store: sets, finds, deletes and scans documents, and commits batches.
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageRange, Result};
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::{Semaphore, WaitQueue};

use super::barrier::Barrier;
use super::batch::{Batch, document_bytes};
use super::block::{Block, Directory, Document};
use super::files::{Snapshot, delete_other, last_commit, write_block};
use super::options::{DocStoreOptions, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use super::statistics::{CommitCounts, DocStoreStatistics};
use super::tree;
use super::walk::Walk;
use crate::fault_points::Fault;
use crate::records::{Codec, PAGE_ROOM, Place, RecordDevice, corrupt};
use crate::values::{Key, Value};

/// Documents on a device. See the [module](super).
pub struct DocStore<R, D, V, C> {
    pub(super) runtime: R,
    pub(super) device: RecordDevice<D, C>,
    /// The same device, with the counters of compactions.
    pub(super) compaction: RecordDevice<D, C>,
    pub(super) options: DocStoreOptions,
    pub(super) state: RefCell<State<V>>,
    /// Held by the commit or compaction that changes the file.
    pub(super) writer: Semaphore,
    /// Held by a compaction; it is acquired before the writer.
    pub(super) compactor: Semaphore,
    /// Waits for commits to end.
    committed: WaitQueue,
    /// Waits until a half has no readers.
    unread: WaitQueue,
    pub(super) counts: Cell<CommitCounts>,
}

pub(super) struct State<V> {
    pub(super) directory: Directory,
    pub(super) snapshot: Snapshot,
    /// Updates that wait for a commit, and those of the commit in progress.
    open: Batch<V>,
    open_updates: u64,
    committing: Rc<Batch<V>>,
    /// Numbers of updates and demanded headers so far: accepted, requested to be committed, committed.
    taken: u64,
    wanted: u64,
    durable: u64,
    is_committing: bool,
    /// The error after which nothing is changed any more.
    pub(super) failed: Option<Error>,
    /// Number of readers of each half.
    pub(super) readers: [u64; 2],
    pub(super) stop_compaction: bool,
    /// Whether an automatic compaction is in progress.
    pub(super) compacts_by_itself: bool,
    /// While a compaction copies: keys that commits have changed since its start.
    pub(super) changed: Option<BTreeSet<Key>>,
    /// Number of such keys whose documents compactions transferred.
    pub(super) caught_up: u64,
    pub(super) compactions: u64,
    pub(super) compactions_failed: u64,
}

/// A read of a snapshot; its file is not deleted meanwhile.
struct Reading<'a, V> {
    snapshot: Snapshot,
    state: &'a RefCell<State<V>>,
    unread: &'a WaitQueue,
}

impl<V> Drop for Reading<'_, V> {
    fn drop(&mut self) {
        let readers = &mut self.state.borrow_mut().readers[usize::from(self.snapshot.half)];
        *readers -= 1;
        if *readers == 0 {
            self.unread.wake_all();
        }
    }
}

impl<R, D, V, C> DocStore<R, D, V, C>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    /// Makes an empty store, which takes the whole device, and discards its old content.
    ///
    /// # Errors
    /// Those of [`DocStoreOptions::check`]; `InvalidInput` if the device already holds a store; those of the device.
    pub async fn create(
        runtime: &R,
        device: &Rc<D>,
        codec: &Rc<C>,
        options: DocStoreOptions,
    ) -> Result<Rc<Self>> {
        options.check(device.limits())?;
        let records = RecordDevice::new(device, codec);
        if Directory::read(&records).await?.is_some() {
            let context =
                "the device holds a document store; trim its first two pages to give it up";
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let directory = Directory::new(options.mode, device.limits());
        records.trim(PageRange::new(tantalum_base::PageNo(0), device.limits().pages)).await?;
        records.flush().await?;
        let snapshot = directory.empty_file();
        write_block(&records, snapshot.file.first, Block::Header(snapshot.header)).await?;
        records.flush().await?;
        directory.write(&records).await?;
        records.flush().await?;
        Ok(Self::with(runtime, records, options, directory, snapshot))
    }

    /// Opens a store in the state of its last commit. A file that a compaction did not finish is deleted.
    ///
    /// # Errors
    /// Those of [`DocStoreOptions::check`]; `Format` if there is no store; `InvalidInput` if it was made in another mode; `Corrupt`; those
    /// of the device.
    pub async fn open(
        runtime: &R,
        device: &Rc<D>,
        codec: &Rc<C>,
        options: DocStoreOptions,
    ) -> Result<Rc<Self>> {
        options.check(device.limits())?;
        let records = RecordDevice::new(device, codec);
        records.reopened();
        let Some(mut directory) = Directory::read(&records).await? else {
            return Err(Error::new(ErrorKind::Format, "the device holds no document store"));
        };
        if directory.mode != options.mode {
            let made = directory.mode.name();
            let context = format!("the store was made in mode {made}, and keeps it");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let snapshot = last_commit(&records, &directory).await?;
        Barrier::AfterOpening.pass(&records).await?;
        if directory.other_in_use {
            directory = delete_other(&records, &directory).await?;
        }
        Ok(Self::with(runtime, records, options, directory, snapshot))
    }

    fn with(
        runtime: &R,
        device: RecordDevice<D, C>,
        options: DocStoreOptions,
        directory: Directory,
        snapshot: Snapshot,
    ) -> Rc<Self> {
        let state = State {
            directory,
            snapshot,
            open: Batch::default(),
            open_updates: 0,
            committing: Rc::default(),
            taken: 0,
            wanted: 0,
            durable: 0,
            is_committing: false,
            failed: None,
            readers: [0; 2],
            stop_compaction: false,
            compacts_by_itself: false,
            changed: None,
            caught_up: 0,
            compactions: 0,
            compactions_failed: 0,
        };
        Rc::new(DocStore {
            runtime: runtime.clone(),
            compaction: device.counted_apart(),
            device,
            options,
            state: RefCell::new(state),
            writer: Semaphore::new("the store's writer", 1),
            compactor: Semaphore::new("the store's compaction", 1),
            committed: WaitQueue::new("a commit"),
            unread: WaitQueue::new("readers of an old file"),
            counts: Cell::default(),
        })
    }

    /// Inserts or replaces a document. Other callers see it at once; it is durable after the next commit. If this fills a batch, a commit
    /// begins and this waits for it.
    ///
    /// # Errors
    /// With nothing changed: `InvalidInput` for an empty key, `TooLarge`, `OutOfSpace`. If a commit fails, its error, here and for every
    /// later change; the next opening finds all of its changes or none.
    pub async fn set(self: &Rc<Self>, key: &[u8], value: V) -> Result<()> {
        if value.bytes() > VALUE_BYTES_MAX {
            let context = format!("a value of {} bytes is over {VALUE_BYTES_MAX}", value.bytes());
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        check_key(key)?;
        let bytes = document_bytes(key.len(), value.bytes()) as u64;
        if !self.has_room(bytes) {
            // The old content of documents that waiting updates replace still occupies space while they wait.
            self.commit().await?;
            if !self.has_room(bytes) {
                let context = format!("no room for a document of {bytes} bytes");
                return Err(Error::new(ErrorKind::OutOfSpace, context));
            }
        }
        self.update(key, Some(value)).await
    }

    /// Deletes a document, if there is one. A full store accepts deletions.
    ///
    /// # Errors
    /// As for [`set`](Self::set), except `OutOfSpace`.
    pub async fn delete(self: &Rc<Self>, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.update(key, None).await
    }

    async fn update(self: &Rc<Self>, key: &[u8], value: Option<V>) -> Result<()> {
        let number = {
            let state = &mut *self.state.borrow_mut();
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            state.open.insert(key.into(), value);
            state.open_updates += 1;
            state.taken += 1;
            (state.open_updates >= self.options.batch_updates.into()).then_some(state.taken)
        };
        match number {
            Some(number) => self.commit_up_to(number).await,
            None => Ok(()),
        }
    }

    /// Makes all earlier updates durable.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub async fn commit(self: &Rc<Self>) -> Result<()> {
        let taken = self.state.borrow().taken;
        self.commit_up_to(taken).await
    }

    /// Like [`commit`](Self::commit), and writes a header even if nothing has changed since the last one, as couchstore does.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub async fn commit_header(self: &Rc<Self>) -> Result<()> {
        let number = {
            let state = &mut *self.state.borrow_mut();
            state.open.want_header();
            state.taken += 1;
            state.taken
        };
        self.commit_up_to(number).await
    }

    /// Commits waiting updates, and stops a compaction in progress. Afterwards the store changes nothing on the device, and all calls
    /// except reads return an error. Another store may be opened on the device only after this.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub async fn close(self: &Rc<Self>) -> Result<()> {
        self.commit().await?;
        self.state.borrow_mut().stop_compaction = true;
        self.change_no_more(Error::new(ErrorKind::Closed, "the store was closed"));
        drop(self.compactor.acquire(1).await);
        Ok(())
    }

    /// Waits until the first `number` updates and demanded headers are durable. Simultaneous callers share a commit, which runs as its own task.
    async fn commit_up_to(self: &Rc<Self>, number: u64) -> Result<()> {
        let begins = {
            let state = &mut *self.state.borrow_mut();
            state.wanted = state.wanted.max(number);
            let begins = !state.is_committing && state.wanted > state.durable;
            state.is_committing |= begins;
            begins
        };
        if begins {
            let store = Rc::clone(self);
            drop(self.runtime.spawn("commits", async move { store.commit_what_is_wanted().await }));
        }
        let ended = || {
            let state = self.state.borrow();
            match &state.failed {
                _ if state.durable >= number => Some(Ok(())),
                Some(failed) => Some(Err(failed.clone())),
                None => None,
            }
        };
        self.committed.until(ended).await
    }

    /// Makes every later change fail with this error, and also the waits for a commit that has not begun.
    pub(super) fn change_no_more(&self, error: Error) {
        self.state.borrow_mut().failed.get_or_insert(error);
        self.committed.wake_all();
    }

    async fn commit_what_is_wanted(self: &Rc<Self>) {
        loop {
            let (batch, taken) = {
                let state = &mut *self.state.borrow_mut();
                if state.durable >= state.wanted || state.failed.is_some() {
                    state.is_committing = false;
                    return;
                }
                state.open_updates = 0;
                state.committing = Rc::new(std::mem::take(&mut state.open));
                (Rc::clone(&state.committing), state.taken)
            };
            let committed = self.commit_batch(&batch).await;
            match committed {
                Ok(()) => {
                    let state = &mut *self.state.borrow_mut();
                    state.committing = Rc::default();
                    state.durable = taken;
                }
                Err(error) => self.change_no_more(error),
            }
            self.committed.wake_all();
        }
    }

    /// The document `key`.
    ///
    /// # Errors
    /// `Corrupt`, which names the place; those of the device.
    pub async fn get(&self, key: &[u8]) -> Result<Option<V>> {
        {
            let state = self.state.borrow();
            let batches = [&state.open, &*state.committing];
            if let Some(value) = batches.iter().find_map(|batch| batch.updates().get(key)) {
                return Ok(value.clone());
            }
        }
        let reading = self.reading();
        match tree::find(&self.device, &reading.snapshot.header, key).await? {
            Some(place) => Ok(Some(read_document(&self.device, place, key).await?.value.clone())),
            None => Ok(None),
        }
    }

    /// The first `documents_max` documents from `from` on, below `to` if it is given, in order. They are as of the start of the scan; by
    /// SHARE a document may be newer, if it was replaced meanwhile.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub async fn scan(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        documents_max: usize,
    ) -> Result<Vec<(Key, V)>> {
        let mut waiting = BTreeMap::new();
        if to.is_none_or(|to| from < to) {
            let state = self.state.borrow();
            let range = (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded));
            for batch in [&*state.committing, &state.open] {
                let updates = batch.updates().range::<[u8], _>(range);
                waiting.extend(updates.map(|(key, value)| (key.clone(), value.clone())));
            }
        }
        let reading = self.reading();
        let mut waiting = waiting.into_iter().peekable();
        let mut walk = Walk::seek(&self.device, &reading.snapshot.header, from).await?;
        let mut found = Vec::new();
        let mut next = walk.next(&self.device).await?;
        while found.len() < documents_max {
            let entry = next.as_ref().filter(|entry| to.is_none_or(|to| &*entry.key < to));
            let before = |(key, _): &(Key, _)| entry.is_none_or(|entry| *key <= entry.key);
            if let Some((key, value)) = waiting.next_if(before) {
                if entry.is_some_and(|entry| entry.key == key) {
                    next = walk.next(&self.device).await?;
                }
                found.extend(value.map(|value| (key, value)));
                continue;
            }
            let Some(entry) = entry else { break };
            let document = read_document(&self.device, entry.place, &entry.key).await?;
            found.push((document.key.clone(), document.value.clone()));
            next = walk.next(&self.device).await?;
        }
        Ok(found)
    }

    /// The store's counters so far, and its content in numbers.
    pub fn statistics(&self) -> DocStoreStatistics {
        let state = self.state.borrow();
        let snapshot = &state.snapshot;
        DocStoreStatistics {
            commits: self.counts.get(),
            device: self.device.counts(),
            compaction: self.compaction.counts(),
            compactions: state.compactions,
            compactions_failed: state.compactions_failed,
            caught_up: state.caught_up,
            documents: snapshot.header.documents,
            depth: snapshot.header.depth,
            used_pages: snapshot.used_pages(),
            stale_pages: snapshot.used_pages() - snapshot.live_pages(),
            file_pages: snapshot.file.pages,
        }
    }

    fn reading(&self) -> Reading<'_, V> {
        let mut state = self.state.borrow_mut();
        let snapshot = state.snapshot;
        state.readers[usize::from(snapshot.half)] += 1;
        Reading { snapshot, state: &self.state, unread: &self.unread }
    }

    /// Whether `bytes` more of a document still fit, with all waiting updates, after a compaction and a commit; and after another commit
    /// with deletions only, which rewrites nodes.
    fn has_room(&self, bytes: u64) -> bool {
        let state = self.state.borrow();
        let header = &state.snapshot.header;
        let room = PAGE_ROOM as u64;
        let (open, committing) = (&state.open, &state.committing);
        let updates = 1 + (open.updates().len() + committing.updates().len()) as u64;
        let pages = bytes.div_ceil(room) + open.pages() + committing.pages();
        let documents = header.document_bytes.div_ceil(room) + header.documents / 64 + 1;
        let nodes = 2 * (header.nodes + updates + u64::from(header.depth) + 1);
        documents + pages + nodes + 2 <= state.snapshot.file.pages
    }

    /// Waits until the file in `half` has no readers.
    pub(super) async fn until_unread(&self, half: u8) {
        let unread = || (self.state.borrow().readers[usize::from(half)] == 0).then_some(());
        if !Fault::NoWaitForReaders.is_planted() {
            self.unread.until(unread).await;
        }
    }
}

/// Reads the document at `place`, which must be `key`.
pub(super) async fn read_document<D, V, C>(
    device: &RecordDevice<D, C>,
    place: Place,
    key: &[u8],
) -> Result<Document<V>>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    match &*device.read(place).await? {
        Block::Document(document) if *document.key == *key => Ok(document.clone()),
        _ => Err(corrupt(place, "something else than the document that belongs there")),
    }
}

fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() {
        return Err(Error::new(ErrorKind::InvalidInput, "a document needs a key"));
    }
    if key.len() > KEY_BYTES_MAX {
        let context = format!("a key of {} bytes is over {KEY_BYTES_MAX}", key.len());
        return Err(Error::new(ErrorKind::TooLarge, context));
    }
    Ok(())
}
