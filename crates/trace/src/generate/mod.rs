//! Generated traces, described by text: `zipf:pages=1m,requests=10m,theta=1.0,writes=0.3,commit=8,seed=1`.
//!
//! ```text
//! pattern      single pages drawn from a distribution, commit points at equal distances
//! synthetic    single pages and scans, as in the measurements of CFDC
//! buffer_trace stand-ins with the statistics of real buffer traces
//! ycsb         the core workloads of YCSB
//! transactions whole transactions, one after the other, as page events
//! file_system  filebench's file, mail and proxy servers on a small ext3, one transaction per commit
//! tpcc         pages that TPC-C's transactions read and change
//! link_bench   LinkBench's transactions
//! gamma        sizes of files
//! ```
//! The same text always gives the same events.
mod buffer_trace;
mod file_system;
mod gamma;
mod link_bench;
mod pattern;
mod synthetic;
mod tpcc;
mod transactions;
mod ycsb;

use crate::event::PageEvent;
use buffer_trace::BufferTrace;
use file_system::FileSystem;
use link_bench::LinkBenchEvents;
use pattern::Pattern;
use synthetic::Synthetic;
use tantalum_base::{Result, Spec};
use tpcc::Tpcc;
use transactions::Transactions;
use ycsb::Ycsb;

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
    "cfdc_synthetic",
    "cfdc_scans",
    "buffer_trace",
    "ycsb",
];

/// A summary of each of [`NAMES`], in a line.
const SUMMARIES: [&str; NAMES.len()] = [
    "every page equally often",
    "page of rank k in proportion to k^-theta",
    "a share 1-h of the requests to a share h of the pages, and so on within these",
    "page after page, round and round",
    "filebench's file server on a small ext3, a transaction a commit of its journal",
    "filebench's mail server, likewise",
    "filebench's web proxy, likewise",
    "the pages that TPC-C's transactions read and change",
    "LinkBench's operations on trees of nodes, links and counts",
    "single page reads and updates after 80-20, and scans (CFDC, section 3.3.1)",
    "the same after 90-10, scans behind the single pages (CFDC, section 3.3.2)",
    "a random order of requests with the statistics of a trace of the CFDC dissertation, table B.1",
    "the core workloads A to F of YCSB",
];

/// The generators with their parameters, as text.
pub fn list() -> String {
    let mut text = String::from("NAME:PARAMETER=VALUE,... with these names and parameters:\n");
    for (name, summary) in NAMES.iter().zip(SUMMARIES) {
        text.push_str(&format!("\n{name}: {summary}\n"));
        for (key, words) in parameters(name) {
            text.push_str(&format!("    {key:<16} {words}\n"));
        }
    }
    text
}

/// The parameters of a generator, each with its range and default as text.
fn parameters(name: &str) -> Vec<(&'static str, String)> {
    let Ok(mut spec) = Spec::parse(name) else { return Vec::new() };
    match Generator::of(&mut spec) {
        Ok(_) => spec.accepted().to_vec(),
        Err(_) => Vec::new(),
    }
}

/// Generates page events: an iterator.
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
    Synthetic(Box<Synthetic>),
    BufferTrace(Box<BufferTrace>),
    Ycsb(Box<Ycsb>),
}

impl Generator {
    /// Makes the generator that `text` names; an invalid text is refused with the accepted names and parameters.
    /// `docs/traces.md` has the parameters.
    ///
    /// # Errors
    /// `InvalidInput`.
    pub fn parse(text: &str) -> Result<Generator> {
        let text = &*Spec::spelled(text, NAMES);
        let mut spec = Spec::parse(text)?;
        let generator = Generator::of(&mut spec)?;
        spec.finish()?;
        Ok(generator)
    }

    fn of(spec: &mut Spec<'_>) -> Result<Generator> {
        let seed = spec.count("seed", 0..=u64::MAX, 1)?;
        let (pages, kind) = match spec.name() {
            "fileserver" | "varmail" | "webproxy" => {
                let left = transactions(spec)?;
                let source = FileSystem::of(spec, seed)?;
                (source.pages(), Kind::FileSystem(Box::new(Transactions::new(source, left))))
            }
            "tpcc" => {
                let left = transactions(spec)?;
                let source = Tpcc::of(spec, left, seed)?;
                (source.pages(), Kind::Tpcc(Box::new(Transactions::new(source, left))))
            }
            "link_bench" => {
                let left = transactions(spec)?;
                let events = LinkBenchEvents::of(spec, left, seed)?;
                (events.pages(), Kind::LinkBench(Box::new(events)))
            }
            "cfdc_synthetic" | "cfdc_scans" => {
                let synthetic = Synthetic::of(spec, seed)?;
                (synthetic.pages(), Kind::Synthetic(Box::new(synthetic)))
            }
            "buffer_trace" => {
                let trace = BufferTrace::of(spec, seed)?;
                (trace.pages(), Kind::BufferTrace(Box::new(trace)))
            }
            "ycsb" => {
                let ycsb = Ycsb::of(spec, seed)?;
                (ycsb.pages(), Kind::Ycsb(Box::new(ycsb)))
            }
            _ => {
                let pattern = Pattern::of(spec, seed)?;
                (pattern.pages(), Kind::Pattern(Box::new(pattern)))
            }
        };
        Ok(Generator { kind, pages, seed })
    }

    /// All pages are below this.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The number of reads and writes still to come, each of one page; `None` if it is not known in advance.
    pub fn requests(&self) -> Option<u64> {
        match &self.kind {
            Kind::Pattern(pattern) => Some(pattern.requests()),
            Kind::Synthetic(synthetic) => Some(synthetic.requests()),
            _ => None,
        }
    }

    /// The seed of the generator.
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
            Kind::Synthetic(synthetic) => synthetic.next(),
            Kind::BufferTrace(trace) => trace.next(),
            Kind::Ycsb(ycsb) => ycsb.next(),
        }
    }
}
