//! A device that writes its requests to a page trace, if a recording is configured.
//!
//! Only requests that succeed are recorded. A transaction's writes and its commit are recorded together, in the order of
//! commits; aborted transactions are not recorded. A share is recorded as the writes that it saves.
//!
//! While the file system under the volume is full, this layer refuses requests that need room, without changing anything; it
//! accepts reads, flushes and trims. It also refuses data behind the end of an incomplete last page.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tantalum_base::{DeviceLayer, PageDevice, PageNo, PageRange, Payload, Result, TxId};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::{DeviceCounters, Finding, LifeCycle, Runtime};
use tantalum_trace::{PageEvent, Recorder};

use crate::home_end::LastPage;
use crate::room::Room;

/// Alternative file names to try if the file exists already.
const NUMBERS_MAX: u32 = 1_000_000;

/// A trace that is being written.
pub struct Recording {
    path: PathBuf,
    recorder: Recorder,
    /// Writes of open transactions.
    open: RefCell<BTreeMap<TxId, Vec<PageEvent>>>,
}

impl Recording {
    /// Begins a trace in a new file at `path` with permissions `mode`. If that file exists, the trace gets a number in its
    /// name: `db.csv.zst`, `db-2.csv.zst`.
    ///
    /// # Errors
    /// `Io` if the file cannot be created.
    pub fn begin(path: &Path, mode: u32) -> Result<Recording> {
        let (path, file) = create_beside(path, mode)
            .map_err(|error| tantalum_base::Error::io(path.display().to_string(), error))?;
        let recorder = Recorder::to_sink(&path.to_string_lossy(), Box::new(file))?;
        Ok(Recording { path, recorder, open: RefCell::default() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records writes: those of `tx` when it commits, plain writes at once.
    fn written(&self, tx: Option<TxId>, events: impl Iterator<Item = PageEvent>) {
        match tx {
            Some(tx) => self.open.borrow_mut().entry(tx).or_default().extend(events),
            None => self.recorder.record_all(&events.collect::<Vec<_>>()),
        }
    }

    fn committed(&self, mut events: Vec<PageEvent>) {
        events.push(PageEvent::Commit);
        self.recorder.record_all(&events);
    }

    fn take(&self, tx: TxId) -> Vec<PageEvent> {
        self.open.borrow_mut().remove(&tx).unwrap_or_default()
    }
}

/// A new file at `path`, or with a number in its name if that exists already.
fn create_beside(path: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let (stem, endings) = name.split_at(name.find('.').unwrap_or(name.len()));
    let numbered =
        (2..NUMBERS_MAX).map(|number| path.with_file_name(format!("{stem}-{number}{endings}")));
    for path in std::iter::once(path.to_path_buf()).chain(numbered) {
        match File::options().write(true).create_new(true).mode(mode).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (path, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A device and, if configured, the trace of its requests. The device's other methods are reached by dereferencing.
pub struct Recorded<D> {
    device: Rc<D>,
    recording: Option<Recording>,
    room: Room,
    last: Option<LastPage>,
}

impl<D> Recorded<D> {
    /// Records `device` if `recording` is given.
    pub(crate) fn new(device: D, recording: Option<Recording>, room: Room) -> Self {
        Recorded { device: Rc::new(device), recording, room, last: None }
    }

    /// The same device with an incomplete `last` page, which accepts only zeros behind its end.
    pub(crate) fn ending_in(self, last: Option<LastPage>) -> Self {
        Recorded { last, ..self }
    }

    /// Refuses writes of data behind the end of the last page.
    fn check_end<'a, P: Payload>(
        &self,
        pages: impl Iterator<Item = (PageNo, &'a P)>,
    ) -> Result<()> {
        let Some(last) = &self.last else { return Ok(()) };
        let mut checked = pages.map(|(page, content)| last.check(page, content));
        checked.find(Result::is_err).unwrap_or(Ok(()))
    }

    /// The trace that is being written.
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Records the request with `tell`, if it succeeded and there is a recording.
    fn done(&self, done: Result<()>, tell: impl FnOnce(&Recording)) -> Result<()> {
        if let (Ok(()), Some(recording)) = (&done, &self.recording) {
            tell(recording);
        }
        done
    }
}

impl<D> Deref for Recorded<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.device
    }
}

/// Pages of one request, limited to 32 bits.
fn count(pages: u64) -> u32 {
    u32::try_from(pages).unwrap_or(u32::MAX)
}

/// Writes of `pages`, one event for each contiguous run.
fn writes(pages: &[PageNo]) -> Vec<PageEvent> {
    pages
        .chunk_by(|page, next| page.0 + 1 == next.0)
        .map(|run| PageEvent::Write { page: run[0], pages: count(run.len() as u64) })
        .collect()
}

impl<D: PageDevice> DeviceLayer for Recorded<D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.device
    }

    async fn read(&self, first: PageNo, out: &mut [D::Page], tx: Option<TxId>) -> Result<()> {
        let pages = count(out.len() as u64);
        let read = self.device.read(first, out, tx).await;
        self.done(read, |to| to.recorder.record(PageEvent::Read { page: first, pages }))
    }

    async fn write(&self, first: PageNo, pages: &[D::Page], tx: Option<TxId>) -> Result<()> {
        let event = PageEvent::Write { page: first, pages: count(pages.len() as u64) };
        self.check_end((first.0..).map(PageNo).zip(pages))?;
        self.room.check()?;
        let written = self.device.write(first, pages, tx).await;
        self.done(written, |to| to.written(tx, std::iter::once(event)))
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let numbers = |_: &Recording| pages.iter().map(|(page, _)| *page).collect::<Vec<_>>();
        let written = self.recording.as_ref().map(numbers).unwrap_or_default();
        self.check_end(pages.iter().map(|(page, content)| (*page, content)))?;
        self.room.check()?;
        let done = self.device.write_scattered(pages, ended).await;
        self.done(done, |to| to.committed(writes(&written)))
    }

    async fn flush(&self) -> Result<()> {
        let flushed = self.device.flush().await;
        self.done(flushed, |to| to.recorder.record(PageEvent::Commit))
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        let event = PageEvent::Trim { page: range.first, pages: count(range.pages) };
        let trimmed = self.device.trim(range).await;
        self.done(trimmed, |to| to.recorder.record(event))
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.room.check()?;
        let shared = self.device.share(pairs).await;
        self.done(shared, |to| {
            to.committed(writes(&pairs.iter().map(|(left, _)| *left).collect::<Vec<_>>()));
        })
    }

    async fn clone_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        let event = PageEvent::Write { page: to, pages: count(pages) };
        self.room.check()?;
        let cloned = self.device.clone_range(to, from, pages).await;
        self.done(cloned, |log| log.committed(vec![event]))
    }

    async fn take_over(
        &self,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let taken = |_: &Recording| {
            let written = writes(&pairs.iter().map(|(left, _)| *left).collect::<Vec<_>>());
            let trim = |zeros: &PageRange| PageEvent::Trim {
                page: zeros.first,
                pages: count(zeros.pages),
            };
            written.into_iter().chain(zeros.iter().map(trim)).collect::<Vec<_>>()
        };
        let events = self.recording.as_ref().map(taken).unwrap_or_default();
        self.room.check()?;
        let done = self.device.take_over(pairs, zeros, ended).await;
        self.done(done, |to| to.committed(events))
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        let events = self.recording.as_ref().map(|to| to.take(tx)).unwrap_or_default();
        if let Err(full) = self.room.check() {
            // A failed commit ends its transaction.
            self.device.abort(tx).await?;
            return Err(full);
        }
        let committed = self.device.commit(tx).await;
        self.done(committed, |to| to.committed(events))
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        if let Some(recording) = &self.recording {
            recording.take(tx);
        }
        self.device.abort(tx).await
    }
}

impl<D: LifeCycle> LifeCycle for Recorded<D> {
    fn start(self: &Rc<Self>, runtime: &impl Runtime) {
        self.device.start(runtime);
    }

    /// Also ends the trace.
    ///
    /// # Errors
    /// The error may concern only the trace; the volume is closed then.
    async fn close(&self) -> Result<()> {
        let closed = self.device.close().await;
        let Some(recording) = &self.recording else { return closed };
        let ended = recording.recorder.finish();
        let ended = ended.map_err(|error| {
            error.wrap(format!("recording to {}, which ends early", recording.path.display()))
        });
        closed.and(ended.map(drop))
    }

    fn wait_no_longer(&self) {
        self.device.wait_no_longer();
    }

    async fn check(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        self.device.check(progress).await
    }

    fn counters(&self) -> DeviceCounters {
        self.device.counters()
    }

    fn metrics(&self, out: &mut Readings) {
        self.device.metrics(out);
    }

    fn validate(&self) {
        self.device.validate();
    }
}
