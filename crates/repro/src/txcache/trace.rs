//! The four traces, as transactions in memory: three are generated, TPC-C's is
//! [recorded](super::tpcc).
use std::collections::BTreeSet;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Result};
use tantalum_trace::{Generator, PageEvent};

use super::super::Scale;
use super::tpcc::{self, CONNECTIONS};

/// Maximum number of pages of one write command: 128 KiB. Chosen.
const COMMAND_PAGES: u32 = 32;

/// A transaction that writes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Transaction {
    /// Its writes, in ascending order, one command each.
    pub writes: Vec<PageRange>,
    /// The host's time before it is sent; 0 if it was not recorded.
    pub work_ns: u64,
}

impl Transaction {
    /// Number of pages that it writes.
    pub fn pages(&self) -> u64 {
        self.writes.iter().map(|range| range.pages).sum()
    }
}

/// A trace of transactions.
#[derive(Clone)]
pub(super) struct Trace {
    /// Its name in rows.
    pub name: &'static str,
    /// The transactions that write anything.
    pub transactions: Vec<Transaction>,
    /// Maximum number of outstanding transactions, including those whose commit is in progress.
    pub outstanding: u32,
    /// Maximum number of these that send their pages concurrently.
    pub senders: u32,
    /// The largest transaction, in pages.
    pub pages_max: u32,
    /// Average number of `transactions` into which each one of the workload was split.
    pub parts: f64,
    /// Whether the host's time passes before each transaction is sent.
    pub with_work: bool,
}

/// Approximate number of pages that [`fileserver`] writes: the same as the trace at full scale.
const FILESERVER_PAGES: u32 = 48 * 8192;

/// A trace to generate.
struct Made {
    name: &'static str,
    full: &'static str,
    small: &'static str,
    /// Fileserver and webproxy: nothing waits for a commit, and the journal's thread, which sends one
    /// transaction after the other, continues with the next; chosen. Varmail: its threads wait for
    /// the one commit in progress.
    outstanding: u32,
}

const FILE_SYSTEMS: [Made; 3] = [
    Made {
        name: "fileserver",
        full: "fileserver:transactions=48",
        small: "fileserver:transactions=36,files=600,commit=700",
        outstanding: 4,
    },
    Made {
        name: "varmail",
        full: "varmail:transactions=24000",
        small: "varmail:transactions=1500,files=100",
        outstanding: 1,
    },
    Made {
        name: "webproxy",
        full: "webproxy:transactions=600",
        small: "webproxy:transactions=300,files=1000,commit=12",
        outstanding: 4,
    },
];

/// All four, in the order of figure 4.
pub(super) fn traces(scale: Scale, seed: u64) -> Result<Vec<Trace>> {
    let file_system = |made: &Made| {
        // The paper does not state the number of requests of these.
        let text = if scale == Scale::Small { made.small } else { made.full };
        collect(made, &format!("{text},seed={seed}"))
    };
    let mut traces = FILE_SYSTEMS.iter().map(file_system).collect::<Result<Vec<_>>>()?;
    let transactions = tpcc::record(tpcc::Size::of(scale), seed)?;
    // Each connection sends its own.
    traces.push(Trace::new("TPC-C", transactions, (CONNECTIONS, CONNECTIONS)));
    Ok(traces)
}

/// Fileserver with transactions of up to this many pages instead, and fewer transactions in
/// proportion.
pub(super) fn fileserver(pages: u32, seed: u64) -> Result<Trace> {
    let made = &FILE_SYSTEMS[0];
    let transactions = FILESERVER_PAGES / pages;
    collect(made, &format!("fileserver:transactions={transactions},commit={pages},seed={seed}"))
}

/// A file system's trace of another length.
///
/// # Errors
/// `InvalidInput` if there is none of that name.
pub(super) fn file_system(name: &str, transactions: usize, seed: u64) -> Result<Trace> {
    let made = FILE_SYSTEMS.iter().find(|made| made.name == name).ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, format!("{name:?} is no trace of a file system"))
    })?;
    collect(made, &format!("{name}:transactions={transactions},seed={seed}"))
}

fn collect(made: &Made, text: &str) -> Result<Trace> {
    let transactions = transactions(Generator::parse(text)?.map(Ok));
    let transactions = transactions.map_err(|error| error.wrap(text))?;
    Ok(Trace::new(made.name, transactions, (made.outstanding, 1)))
}

/// The transactions of a page trace.
///
/// # Errors
/// `InvalidInput` if it has anything except writes and commit points; those of `events`.
pub(super) fn transactions(
    events: impl Iterator<Item = Result<PageEvent>>,
) -> Result<Vec<Transaction>> {
    let mut transactions = vec![Transaction::default()];
    for event in events {
        match event? {
            PageEvent::Write { page, pages } => {
                let transaction = transactions.last_mut().expect("there is always one");
                transaction.writes.extend(commands(PageRange::new(page, u64::from(pages))));
            }
            PageEvent::Commit => transactions.push(Transaction::default()),
            other => {
                let context = format!("{other:?} in a trace of transactions");
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
        }
    }
    transactions.retain(|transaction| !transaction.writes.is_empty());
    Ok(transactions)
}

/// Pages in ascending order as write commands, neighbours together.
pub(super) fn ranges(pages: &[PageNo]) -> Vec<PageRange> {
    let neighbours = pages.chunk_by(|page, next| page.0 + 1 == next.0);
    neighbours.flat_map(|run| commands(PageRange::new(run[0], run.len() as u64))).collect()
}

/// A write split into commands.
fn commands(range: PageRange) -> impl Iterator<Item = PageRange> {
    let most = u64::from(COMMAND_PAGES);
    (0..range.pages)
        .step_by(COMMAND_PAGES as usize)
        .map(move |done| PageRange::new(PageNo(range.first.0 + done), most.min(range.pages - done)))
}

impl Trace {
    /// A trace with this many transactions outstanding, and this many of them sent concurrently.
    fn new(
        name: &'static str,
        transactions: Vec<Transaction>,
        (outstanding, senders): (u32, u32),
    ) -> Trace {
        let pages_max = transactions.iter().map(Transaction::pages).max().unwrap_or(0) as u32;
        let (parts, with_work) = (1.0, false);
        Trace { name, transactions, outstanding, senders, pages_max, parts, with_work }
    }

    /// The same writes in transactions of at most `pages_max` pages; the parts are no longer atomic
    /// together.
    pub fn in_parts(&self, pages_max: u32) -> Trace {
        let mut parts: Vec<Transaction> = Vec::new();
        for transaction in &self.transactions {
            let (mut room, mut work_ns) = (0, transaction.work_ns);
            for range in &transaction.writes {
                if range.pages > room {
                    let writes = Vec::new();
                    parts.push(Transaction { writes, work_ns: std::mem::take(&mut work_ns) });
                    room = u64::from(pages_max);
                }
                room -= range.pages;
                parts.last_mut().expect("there is one with room").writes.push(*range);
            }
        }
        let ratio = parts.len() as f64 / self.transactions.len() as f64;
        Trace { transactions: parts, pages_max, parts: self.parts * ratio, ..*self }
    }

    /// Every page that is written, in order.
    pub fn written(&self) -> BTreeSet<PageNo> {
        let writes = self.transactions.iter().flat_map(|transaction| &transaction.writes);
        writes.flat_map(|range| range.iter()).collect()
    }
}
