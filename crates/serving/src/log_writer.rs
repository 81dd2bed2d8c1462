//! Writes the log on a thread of its own, so that a server never waits for the reader of its log. Lines that wait are
//! kept in memory. Lines that do not fit there are dropped and counted.
use crate::log_limits::LogLimits;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Maximum bytes of lines that wait to be written.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Time between two reports of lines that were left out.
const REPORT: Duration = Duration::from_secs(1);
/// Time for which the end of the program waits for the last lines to be written.
const LAST_LINES: Duration = Duration::from_millis(200);

/// The log's lines that wait to be written. Clones are handles to the same lines.
#[derive(Clone, Default)]
pub struct LogWriter(Arc<Lines>);

#[derive(Default)]
struct Lines {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    dropped: u64,
    is_writing: bool,
}

impl LogWriter {
    /// Writes all lines to `to` from now on, by a new thread, and reports those that `limits` left out.
    ///
    /// # Errors
    /// If there are no threads left.
    pub fn start(&self, mut to: impl Write + Send + 'static, limits: LogLimits) -> io::Result<()> {
        let lines = self.clone();
        let write = move || {
            loop {
                let (bytes, dropped) = lines.next(&limits);
                // If the log cannot be written, the server goes on.
                let _ = to.write_all(&bytes).and_then(|()| to.flush());
                lines.lock().is_writing = false;
                lines.0.changed.notify_all();
                report(&limits, dropped);
            }
        };
        std::thread::Builder::new().name("log".into()).spawn(write).map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for lines, or for the time to report those left out. Returns the lines, and the number of dropped ones.
    fn next(&self, limits: &LogLimits) -> (Vec<u8>, u64) {
        let mut waiting = self.lock();
        while waiting.bytes.is_empty() {
            let waited = self.0.changed.wait_timeout(waiting, REPORT);
            let (locked, timed) = waited.unwrap_or_else(PoisonError::into_inner);
            waiting = locked;
            if timed.timed_out() && limits.has_left_out() {
                break;
            }
        }
        waiting.is_writing = !waiting.bytes.is_empty();
        (std::mem::take(&mut waiting.bytes), std::mem::take(&mut waiting.dropped))
    }

    /// Waits for a moment until all lines are written.
    pub fn finish(&self) {
        let is_busy = |waiting: &mut Waiting| waiting.is_writing || !waiting.bytes.is_empty();
        // If they cannot be written in that time, nobody reads the log.
        drop(self.0.changed.wait_timeout_while(self.lock(), LAST_LINES, is_busy));
    }
}

/// Logs how many lines were dropped or left out. These lines take the same way as all others.
fn report(limits: &LogLimits, dropped: u64) {
    if dropped > 0 {
        tracing::warn!(dropped, "lines of this log were dropped: it is not read fast enough");
    }
    for (message, lines) in limits.take_left_out() {
        tracing::warn!(lines, like = message, "more lines of one kind were not written");
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.lock();
        if waiting.bytes.len() + line.len() > WAITING_BYTES_MAX {
            waiting.dropped += 1;
        } else {
            waiting.bytes.extend_from_slice(line);
        }
        drop(waiting);
        self.0.changed.notify_all();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LogWriter;

    fn make_writer(&'a self) -> LogWriter {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_dropped_and_counted_and_nobody_waits() {
        let mut log = LogWriter::default();
        let line = [b'x'; 1000];
        for _ in 0..2000 {
            assert_eq!(log.write(&line).unwrap(), line.len());
        }
        log.finish();
        let (bytes, dropped) = log.next(&LogLimits::default());
        assert!(bytes.len() <= WAITING_BYTES_MAX);
        assert_eq!(bytes.len() / line.len() + dropped as usize, 2000);
    }
}
