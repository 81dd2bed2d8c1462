//! Counters of a program that opened a volume itself, for `tantalum stat` and `tantalum top` in other processes.
//!
//! A server answers requests for its counters. A program that opened a volume itself cannot, because it has no thread that
//! would answer. So, beside its calls, it writes its counters to a small file beside the configuration ([`file`]), at most a
//! few times a second. If the file cannot be written, there are no counters, and nothing else changes.
mod file;

pub use file::{ToldCounters, counters_of};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tantalum_base::{PAGE_BYTES, Result, TxId};
use tantalum_local::{Answer, Request};
use tantalum_runtime::live::wall_clock::machine_ms;
use tantalum_runtime::metrics::{MetricKind, Readings, exposition};

use file::CountersFile;
use tantalum_volume::VolumeConfig;

/// Time between two writes of the counters.
const PACE_MS: u64 = 200;
/// After a write, the next one comes no earlier than after this multiple of the write's duration.
const SHARE: u64 = 200;
/// Delay after which the counters are written from within a long call.
const LATE_MS: u64 = 100;
/// Time until the next attempt after a failed write.
const PAUSE_MS: u64 = 10_000;
/// Counters are not written.
const NEVER: u64 = u64::MAX;

/// The labels of the counted commands.
const COMMANDS: [&str; 6] = ["read", "write", "flush", "trim", "share", "commit"];
const READ: usize = 0;
const WRITE: usize = 1;
const TRIM: usize = 3;

/// The counters of this process's requests.
pub(crate) struct Counters {
    /// The time of the next write.
    due_ms: AtomicU64,
    requests: [AtomicU64; COMMANDS.len()],
    pages: [AtomicU64; COMMANDS.len()],
    transactions: AtomicU64,
    /// Pages that open transactions have written.
    open: Mutex<BTreeMap<TxId, u64>>,
    /// Pages of transactions that a front end buffers until they commit.
    kept: AtomicU64,
    told: Mutex<Option<Told>>,
}

/// The destination of the counters, and labels of the volume.
pub(crate) struct Told {
    file: CountersFile,
    device: String,
    kind: &'static str,
    durability: &'static str,
}

/// A request to count when it is done.
pub(crate) struct Counted {
    command: Option<usize>,
    pages: u64,
    tx: Option<TxId>,
    begins: bool,
    ends: bool,
}

impl Counted {
    fn new(command: usize, pages: u64) -> Counted {
        Counted { command: Some(command), pages, tx: None, begins: false, ends: false }
    }

    fn of(request: &Request) -> Counted {
        match request {
            Request::Read { pages, .. } => Counted::new(READ, *pages as u64),
            Request::Write { pages, tx, .. } => {
                Counted { tx: *tx, ..Counted::new(WRITE, pages.len() as u64) }
            }
            Request::WriteScattered(pages) => {
                Counted { ends: true, ..Counted::new(WRITE, pages.len() as u64) }
            }
            Request::Flush => Counted::new(2, 0),
            Request::Trim(range) => Counted::new(TRIM, range.pages),
            Request::Share(pairs) => Counted::new(4, pairs.len() as u64),
            Request::Begin => Counted { command: None, begins: true, ..Counted::new(READ, 0) },
            Request::Commit(tx) => Counted { tx: Some(*tx), ends: true, ..Counted::new(5, 0) },
            Request::Abort(tx) => {
                Counted { command: None, tx: Some(*tx), ends: true, ..Counted::new(READ, 0) }
            }
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            due_ms: AtomicU64::new(NEVER),
            requests: Default::default(),
            pages: Default::default(),
            transactions: AtomicU64::new(0),
            open: Mutex::default(),
            kept: AtomicU64::new(0),
            told: Mutex::default(),
        }
    }
}

impl Told {
    /// The destination for the volume of `config`, which this process has open for writing. The file of another process is
    /// removed. `None` if no file can be written there.
    pub(crate) fn of(config: &VolumeConfig) -> Option<Told> {
        Some(Told {
            file: CountersFile::beside(&config.path)?,
            device: config.path.display().to_string(),
            kind: config.kind.name(),
            durability: config.durability().name(),
        })
    }
}

impl Counters {
    /// Starts to write the counters.
    pub(crate) fn start(&self, told: Option<Told>) {
        if let Some(told) = told {
            *lock(&self.told) = Some(told);
            self.due_ms.store(machine_ms() + PACE_MS, Relaxed);
        }
    }

    /// Stops writing the counters and removes the file.
    pub(crate) fn stop(&self) -> Option<Told> {
        self.due_ms.store(NEVER, Relaxed);
        let mut told = lock(&self.told).take();
        told.iter_mut().for_each(|told| told.file.remove());
        told
    }

    fn is_told(&self) -> bool {
        self.due_ms.load(Relaxed) != NEVER
    }

    /// The entry to count when `request` is done; `None` if counters are not written.
    pub(crate) fn begin(&self, request: &Request) -> Option<Counted> {
        self.is_told().then(|| Counted::of(request))
    }

    /// Counts a request that is done.
    pub(crate) fn end(&self, counted: Option<Counted>, answer: &Result<Answer>) {
        let Some(Counted { command, pages, tx, begins, ends }) = counted else { return };
        // The transaction has ended, even if the request failed.
        if let Some(tx) = tx.filter(|_| ends) {
            lock(&self.open).remove(&tx);
        }
        let Ok(answer) = answer else { return };
        if begins {
            lock(&self.open).insert(answer.tx, 0);
        }
        let Some(command) = command else { return };
        self.count(command, pages);
        if ends {
            self.transactions.fetch_add(1, Relaxed);
        } else if let Some(tx) = tx
            && let Some(written) = lock(&self.open).get_mut(&tx)
        {
            *written += pages;
        }
    }

    /// Counts a read of pages that need not be contiguous.
    pub(crate) fn read(&self, pages: usize) {
        if self.is_told() {
            self.count(READ, pages as u64);
        }
    }

    fn count(&self, command: usize, pages: u64) {
        self.requests[command].fetch_add(1, Relaxed);
        self.pages[command].fetch_add(pages, Relaxed);
    }

    /// Records the number of pages of transactions in progress that a front end buffers.
    pub(crate) fn keep(&self, pages: u64) {
        self.kept.store(pages, Relaxed);
    }

    /// Writes the counters if they are due; `device` adds the device's. Must not be called if the device cannot report.
    pub(crate) fn tick(&self, device: impl FnOnce(&mut Readings)) {
        let due_ms = self.due_ms.load(Relaxed);
        if due_ms != NEVER && machine_ms() >= due_ms {
            self.write(device);
        }
    }

    /// As [`tick`](Self::tick), from within a call. It waits a little longer: after a short call, `tick` writes them anyway.
    pub(crate) fn tick_within(&self, device: impl FnOnce(&mut Readings)) {
        let due_ms = self.due_ms.load(Relaxed);
        if due_ms != NEVER && machine_ms() >= due_ms + LATE_MS {
            self.write(device);
        }
    }

    #[cold]
    fn write(&self, device: impl FnOnce(&mut Readings)) {
        // If the lock is taken, another thread is writing the counters, or this thread is, further up the stack.
        let Ok(mut told) = self.told.try_lock() else { return };
        let Some(told) = told.as_mut() else { return };
        let begun_ms = machine_ms();
        if begun_ms < self.due_ms.load(Relaxed) {
            return;
        }
        let mut out = Readings::default();
        told.tell(&mut out);
        self.tell(&mut out);
        device(&mut out);
        let written = told.file.write(&exposition(&out));
        let ended_ms = machine_ms();
        let pause_ms = match written {
            // Counting may take long on a volume with very many zones.
            Ok(()) => PACE_MS.max((ended_ms - begun_ms) * SHARE),
            Err(_) => {
                // The file system is full or read-only, or this user may not write there. An incomplete file is useless.
                told.file.remove();
                PAUSE_MS
            }
        };
        self.due_ms.store(ended_ms + pause_ms, Relaxed);
    }

    fn tell(&self, out: &mut Readings) {
        let help = "Requests that the program completed";
        let metric = out.metric(MetricKind::Counter, "tantalum_program_requests_total", help);
        for (command, count) in COMMANDS.into_iter().zip(&self.requests) {
            metric.with(&[("command", command)], count.load(Relaxed));
        }
        let help = "Bytes of these requests";
        let metric = out.metric(MetricKind::Counter, "tantalum_program_request_bytes_total", help);
        for command in [READ, WRITE, TRIM] {
            let bytes = self.pages[command].load(Relaxed).saturating_mul(PAGE_BYTES as u64);
            metric.with(&[("command", COMMANDS[command])], bytes);
        }
        let help = "Transactions that the program committed";
        out.counter("tantalum_program_transactions_total", help, self.transactions.load(Relaxed));
        let (open, written) = {
            let open = lock(&self.open);
            (open.len() as u64, open.values().sum::<u64>())
        };
        let help = "Transactions that the program has open on the device";
        out.gauge("tantalum_program_open_transactions", help, open);
        let help = "Pages that transactions in progress have written, in memory or on the device";
        let pages = written + self.kept.load(Relaxed);
        out.gauge("tantalum_program_uncommitted_pages", help, pages);
    }
}

impl Told {
    fn tell(&self, out: &mut Readings) {
        let help = "The device that is open; always 1";
        let metric = out.metric(MetricKind::Gauge, "tantalum_device_info", help);
        let device = self.device.as_str();
        let labels = [("device", device), ("kind", self.kind), ("durability", self.durability)];
        metric.with(&labels, 1u64);
        let help = "Version of the library in the program; always 1";
        let metric = out.metric(MetricKind::Gauge, "tantalum_build_info", help);
        metric.with(&[("version", env!("CARGO_PKG_VERSION"))], 1u64);
    }
}

/// State behind these mutexes is changed in one step, so it is consistent even after a panic elsewhere.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
