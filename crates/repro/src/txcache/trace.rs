//! The four traces, as transactions in memory.
use std::collections::BTreeSet;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Result};
use tantalum_trace::{Generator, PageEvent};

use super::super::Scale;

/// Pages of one write command at the most: 128 KiB. Chosen.
const COMMAND_PAGES: u32 = 32;

/// A trace of transactions.
pub(super) struct Trace {
    /// What rows call it.
    pub name: &'static str,
    /// The writes of each transaction that has any.
    pub transactions: Vec<Vec<PageRange>>,
    /// Transactions outstanding at once, those included whose commit has not ended.
    pub outstanding: u32,
    /// Of those, transactions that send their pages side by side.
    pub senders: u32,
    /// The largest transaction, in pages.
    pub pages_max: u32,
    /// Into how many of `transactions` each one of the workload's was cut, on average.
    pub parts: f64,
}

/// Pages that [`fileserver`] makes, about: as many as the trace at full scale.
const FILESERVER_PAGES: u32 = 48 * 8192;

/// A trace to make.
struct Made {
    name: &'static str,
    full: &'static str,
    /// As many requests as the paper has; `None` where it does not tell.
    paper: Option<&'static str>,
    small: &'static str,
    /// Fileserver and webproxy: nobody waits for a commit, and the journal's thread goes on with
    /// the next; chosen. Varmail: its threads wait for the one commit that is under way. TPC-C: the
    /// paper's 7 connections.
    outstanding: u32,
    /// A file system's journal is one thread, which sends one transaction after the other; the
    /// connections of a database each send their own.
    senders: u32,
}

const TRACES: [Made; 4] = [
    Made {
        name: "fileserver",
        full: "fileserver:transactions=48",
        paper: None,
        small: "fileserver:transactions=36,files=600,commit=700",
        outstanding: 4,
        senders: 1,
    },
    Made {
        name: "varmail",
        full: "varmail:transactions=24000",
        paper: None,
        small: "varmail:transactions=1500,files=100",
        outstanding: 1,
        senders: 1,
    },
    Made {
        name: "webproxy",
        full: "webproxy:transactions=600",
        paper: None,
        small: "webproxy:transactions=300,files=1000,commit=12",
        outstanding: 4,
        senders: 1,
    },
    Made {
        name: "TPC-C",
        full: "tpcc:transactions=40000,reads=off",
        // Section IV-A: 1,328,700 requests.
        paper: Some("tpcc:transactions=138000,reads=off"),
        small: "tpcc:transactions=2500,warehouses=2,reads=off",
        outstanding: 7,
        senders: 7,
    },
];

/// All four, in the order of figure 4.
pub(super) fn traces(scale: Scale, seed: u64) -> Result<Vec<Trace>> {
    let text = |made: &Made| match scale {
        Scale::Full => format!("{},seed={seed}", made.full),
        Scale::Paper => format!("{},seed={seed}", made.paper.unwrap_or(made.full)),
        Scale::Small => format!("{},seed={seed}", made.small),
    };
    TRACES.iter().map(|made| collect(made, &text(made))).collect()
}

/// Fileserver with transactions of up to so many pages instead; they are fewer by as much.
pub(super) fn fileserver(pages: u32, seed: u64) -> Result<Trace> {
    let made = &TRACES[0];
    let transactions = FILESERVER_PAGES / pages;
    collect(made, &format!("fileserver:transactions={transactions},commit={pages},seed={seed}"))
}

fn collect(made: &Made, text: &str) -> Result<Trace> {
    let mut transactions = vec![Vec::new()];
    for event in Generator::parse(text)? {
        match event {
            PageEvent::Write { page, pages } => {
                let writes = transactions.last_mut().expect("there is always one");
                for done in (0..pages).step_by(COMMAND_PAGES as usize) {
                    let first = PageNo(page.0 + u64::from(done));
                    writes.push(PageRange::new(first, u64::from(COMMAND_PAGES.min(pages - done))));
                }
            }
            PageEvent::Commit => transactions.push(Vec::new()),
            other => {
                let context = format!("{text}: {other:?} in a trace of transactions");
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
        }
    }
    transactions.retain(|writes| !writes.is_empty());
    let pages = |writes: &Vec<PageRange>| writes.iter().map(|range| range.pages as u32).sum();
    let pages_max = transactions.iter().map(pages).max().unwrap_or(0);
    let Made { name, outstanding, senders, .. } = *made;
    Ok(Trace { name, transactions, outstanding, senders, pages_max, parts: 1.0 })
}

impl Trace {
    /// The same writes in transactions of at most `pages_max` pages, which are no longer atomic
    /// together.
    pub fn in_parts(&self, pages_max: u32) -> Trace {
        let mut parts: Vec<Vec<PageRange>> = Vec::new();
        for writes in &self.transactions {
            let mut room = 0;
            for range in writes {
                if range.pages > room {
                    parts.push(Vec::new());
                    room = u64::from(pages_max);
                }
                room -= range.pages;
                parts.last_mut().expect("there is one with room").push(*range);
            }
        }
        let ratio = parts.len() as f64 / self.transactions.len() as f64;
        Trace { transactions: parts, pages_max, parts: self.parts * ratio, ..*self }
    }

    /// Every page that is written, in order.
    pub fn written(&self) -> BTreeSet<PageNo> {
        self.transactions.iter().flatten().flat_map(|range| range.iter()).collect()
    }
}
