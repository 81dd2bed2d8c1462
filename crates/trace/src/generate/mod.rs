//! Made-up traces, from text: `zipf:pages=1m,requests=10m,theta=1.0,writes=0.3,commit=8,seed=1`.
//!
//! ```text
//! pattern      single pages after a distribution, commit points at equal distances
//! transactions whole transactions, one after the other, as page events
//! file_system  filebench's file, mail and proxy servers on a small ext3, a transaction a commit
//! tpcc         pages that TPC-C's transactions read and change
//! link_bench   LinkBench's transactions
//! gamma        sizes of files
//! ```
//! The same text gives the same events, always.
mod file_system;
mod gamma;
mod link_bench;
mod pattern;
mod tpcc;
mod transactions;

use crate::event::PageEvent;
use file_system::FileSystem;
use link_bench::LinkBenchEvents;
use pattern::Pattern;
use tantalum_base::{Result, Spec};
use tpcc::Tpcc;
use transactions::Transactions;

/// The accepted names.
pub const NAMES: &[&str] = &[
    "uniform",
    "zipf",
    "self_similar",
    "scan",
    "fileserver",
    "varmail",
    "webproxy",
    "tpcc",
    "link_bench",
];

/// Makes page events: an iterator.
#[derive(Clone, Debug)]
pub struct Generator {
    kind: Kind,
    pages: u64,
    seed: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Pattern(Box<Pattern>),
    FileSystem(Box<Transactions<FileSystem>>),
    Tpcc(Box<Transactions<Tpcc>>),
    LinkBench(Box<LinkBenchEvents>),
}

impl Generator {
    /// Makes the generator that `text` names; a refusal lists what is accepted.
    /// `docs/traces.md` has the parameters.
    ///
    /// # Errors
    /// `InvalidInput`.
    pub fn parse(text: &str) -> Result<Generator> {
        let mut spec = Spec::parse(text)?;
        let seed = spec.count("seed", 0..=u64::MAX, 1)?;
        let (kind, pages) = match spec.name() {
            "fileserver" | "varmail" | "webproxy" => {
                let left = transactions(&mut spec)?;
                let source = FileSystem::of(&mut spec, seed)?;
                let pages = source.pages();
                (Kind::FileSystem(Box::new(Transactions::new(source, left))), pages)
            }
            "tpcc" => {
                let left = transactions(&mut spec)?;
                let source = Tpcc::of(&mut spec, left, seed)?;
                let pages = source.pages();
                (Kind::Tpcc(Box::new(Transactions::new(source, left))), pages)
            }
            "link_bench" => {
                let left = transactions(&mut spec)?;
                let events = LinkBenchEvents::of(&mut spec, left, seed)?;
                let pages = events.pages();
                (Kind::LinkBench(Box::new(events)), pages)
            }
            _ => {
                let pattern = Pattern::of(&mut spec, seed)?;
                let pages = pattern.pages();
                (Kind::Pattern(Box::new(pattern)), pages)
            }
        };
        spec.finish()?;
        Ok(Generator { kind, pages, seed })
    }

    /// All pages lie below this.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The seed it was made with.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

fn transactions(spec: &mut Spec<'_>) -> Result<u64> {
    spec.count("transactions", 0..=1 << 32, 10 << 10)
}

impl Iterator for Generator {
    type Item = PageEvent;

    #[inline]
    fn next(&mut self) -> Option<PageEvent> {
        match &mut self.kind {
            Kind::Pattern(pattern) => pattern.next(),
            Kind::FileSystem(transactions) => transactions.next(),
            Kind::Tpcc(transactions) => transactions.next(),
            Kind::LinkBench(events) => events.next(),
        }
    }
}
