//! Records the requests to a running device.
use crate::event::PageEvent;
use crate::formats::page_csv::PageCsv;
use crate::writer::{Sink, Writer};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tantalum_base::{Error, ErrorKind, Result};

/// Writes a page trace (`page_csv`), from any thread.
///
/// A failure to record never makes the device fail: the first failure is kept for [`Recorder::finish`], and nothing is
/// recorded after it.
#[derive(Debug)]
pub struct Recorder(Mutex<Recording>);

#[derive(Debug)]
enum Recording {
    Open(Box<Writer<PageEvent>>),
    Failed(Error),
    Finished,
}

impl Recorder {
    /// Records to a new file; a name in `.zst` or `.gz` compresses it.
    pub fn create(path: &Path) -> Result<Recorder> {
        Ok(Recorder(Mutex::new(Recording::Open(Box::new(Writer::create(path, &PageCsv)?)))))
    }

    /// Records to `sink`; `name` is for messages and determines the compression.
    pub fn to_sink(name: &str, sink: Sink) -> Result<Recorder> {
        Ok(Recorder(Mutex::new(Recording::Open(Box::new(Writer::new(name, sink, &PageCsv)?)))))
    }

    /// Records one event.
    pub fn record(&self, event: PageEvent) {
        self.record_all(&[event]);
    }

    /// Records `events` without events of other threads between them: with several concurrent clients, this is needed
    /// to keep a transaction's writes and its commit point together.
    pub fn record_all(&self, events: &[PageEvent]) {
        let mut state = self.lock();
        if let Recording::Open(writer) = &mut *state
            && let Err(error) = events.iter().try_for_each(|event| writer.write(event))
        {
            *state = Recording::Failed(error);
        }
    }

    /// Ends the trace and returns the number of events, or the first failure. Later events are
    /// dropped; a second call is an error.
    pub fn finish(&self) -> Result<u64> {
        match std::mem::replace(&mut *self.lock(), Recording::Finished) {
            Recording::Open(writer) => writer.finish(),
            Recording::Failed(error) => Err(error),
            Recording::Finished => {
                Err(Error::new(ErrorKind::Closed, "the recording was finished before"))
            }
        }
    }

    /// A thread that panicked while recording left only whole events behind: continue.
    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
