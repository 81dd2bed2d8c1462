//! Recommends a policy and a number of pages for a trace on a device, with the reasons.
//!
//! ```text
//! costs   the cost of a read and a write on the device in steady use, by measurement
//! count   every policy with every size over the trace, no device: physical reads and writes
//! rank    counts times costs: an estimate for each, which orders the policies of a size
//! try     the best few of each size, and LRU, through the engine's buffer pool over the device
//! rule    takes the fastest of each size; of the sizes, the one that is worth its memory
//! ```
//!
//! The estimate treats every write as a scattered one and ignores overlap. It selects the policies to try; the tries decide.
mod costs;
mod rule;

pub use costs::{CLUSTER_PAGES, DeviceCosts};
pub use rule::{Candidate, Prices, Rule};

use std::sync::Arc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_models::DeviceSpec;
use tantalum_policy::PolicySpec;

use crate::buffer_replay::{self, BufferReplayOptions, BufferRun};
use crate::cache_replay::{self, CacheReplayOptions, CacheTrace};
use crate::work::Work;

/// The default policies: those that a buffer manager could run.
pub const POLICIES: &[&str] = &[
    "lru",
    "clock",
    "sieve",
    "2q",
    "lru_k",
    "arc",
    "lirs",
    "s3_fifo",
    "w_tinylfu",
    "cflru",
    "lru_wsr",
    "lirs_wsr",
    "cfdc",
    "casa",
    "sawc",
];

/// The policy that all sizes are compared with, and the limit that shows how far each is from the optimum.
const BASE: &str = "lru";
const LIMIT: &str = "opt";

/// The options of the advice.
#[derive(Clone, Debug)]
pub struct AdviseOptions {
    /// The device.
    pub device: DeviceSpec,
    /// Sizes in pages.
    pub cache_pages: Vec<u32>,
    /// Policies to compare.
    pub policies: Vec<PolicySpec>,
    /// Number of policies of each size that are tried on the device, besides LRU.
    pub tries: usize,
    /// The rule that chooses the size, by the time of the fastest policy of each.
    pub rule: Rule,
    /// Number of clients of the tries.
    pub clients: u32,
    /// Seed of the device.
    pub seed: u64,
    /// Maximum number of threads; the advice does not depend on it.
    pub threads: usize,
}

/// One policy with one size.
#[derive(Clone, Debug, PartialEq)]
pub struct AdviseRow {
    /// The policy.
    pub policy: String,
    /// Cache size in pages.
    pub cache_pages: u32,
    /// Number of requested pages.
    pub requests: u64,
    /// Number of pages fetched.
    pub physical_reads: u64,
    /// Number of pages written back.
    pub physical_writes: u64,
    /// Reads and writes times their costs, one after the other.
    pub estimated_seconds: f64,
    /// Virtual time on the device; `None` if it was not tried.
    pub seconds: Option<f64>,
    /// Price per month for memory and device; `None` if the rule has no prices.
    pub monthly_price: Option<f64>,
    /// Whether it is the fastest of the policies of its size that were tried.
    pub is_fastest: bool,
    /// Whether it is the advice.
    pub is_advised: bool,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The cost of a read and a write.
    pub costs: DeviceCosts,
    /// How the size was chosen.
    pub rule: Rule,
    /// Every policy and size, sizes in the given order. For each size come the policies that were tried, the fastest first, then
    /// the others by estimate; the limit last. If runs were requested to end, the policies counted and tried by then, in the order
    /// of the estimates, and there is no advice.
    pub rows: Vec<AdviseRow>,
}

impl Advice {
    /// The row of the advice.
    pub fn advised(&self) -> Option<&AdviseRow> {
        self.rows.iter().find(|row| row.is_advised)
    }

    /// The row of `policy` with `cache_pages` pages.
    pub fn row(&self, policy: &str, cache_pages: u32) -> Option<&AdviseRow> {
        self.rows.iter().find(|row| row.policy == policy && row.cache_pages == cache_pages)
    }

    /// The advice in sentences, each with the figures that support it.
    pub fn sentences(&self) -> Vec<String> {
        let Some(advised) = self.advised() else { return Vec::new() };
        let AdviseRow { policy, cache_pages, .. } = advised;
        let seconds = advised.seconds.unwrap_or(f64::NAN);
        let mut sentences =
            vec![format!("Take {policy} with {cache_pages} pages: {seconds:.3} s.")];
        sentences.push(self.rule.sentence());
        if let Some(base) = self.row(BASE, *cache_pages).filter(|base| base.policy != *policy)
            && let Some(base_seconds) = base.seconds
        {
            let (reads, writes) = (base.physical_reads as f64, base.physical_writes as f64);
            sentences.push(format!(
                "LRU takes {base_seconds:.3} s there, {:.2} times as long; {policy} reads {} and \
                 writes {} as many pages.",
                base_seconds / seconds,
                share(advised.physical_reads as f64, reads),
                share(advised.physical_writes as f64, writes),
            ));
        }
        if let Some(limit) = self.row(LIMIT, *cache_pages) {
            sentences.push(format!(
                "No policy can read less than {} of that (OPT).",
                share(limit.physical_reads as f64, advised.physical_reads as f64),
            ));
        }
        let fastest = self.rows.iter().filter(|row| row.is_fastest);
        let largest = fastest.max_by_key(|row| row.cache_pages);
        if let Some(largest) = largest.filter(|row| row.cache_pages > *cache_pages)
            && let Some(largest_seconds) = largest.seconds
        {
            sentences.push(format!(
                "{} pages with {} would take {largest_seconds:.3} s.",
                largest.cache_pages, largest.policy,
            ));
        } else if self.rows.iter().any(|row| row.cache_pages < *cache_pages) {
            sentences.push(
                "It is the largest size that was given: a larger one may be worth its memory, too; give some with --size."
                    .to_owned(),
            );
        }
        sentences.push(format!(
            "A scattered write costs {:.2} reads on this device, one among its neighbours {:.2}.",
            self.costs.write_in_reads(),
            self.costs.clustered_write_ns / self.costs.read_ns,
        ));
        sentences
    }
}

fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0} %", part / whole * 100.0) } else { "-".to_owned() }
}

/// Counts every policy and size, tries the best on the device, and advises; reports its progress to `work`.
///
/// # Errors
/// `InvalidInput` for a trace without requests, no policy or no size, or a rule that is not valid; those of replays; `Interrupted`
/// if nothing was counted when runs were requested to end.
pub fn advise(
    trace: &Arc<CacheTrace>,
    options: &AdviseOptions,
    work: &Arc<Work>,
) -> Result<Advice> {
    if trace.requests.is_empty() || options.policies.is_empty() || options.cache_pages.is_empty() {
        let context = "advice needs a trace with requests, a policy and a size";
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    options.rule.check()?;
    work.begin("measuring the device", 0, 0);
    let costs = DeviceCosts::measure(&options.device, options.seed)?;
    let (mut rows, all_counted) = counted(trace, options, &costs, work)?;
    if all_counted && try_best(trace, options, &mut rows, work)? {
        mark(options, &mut rows);
    }
    Ok(Advice { costs, rule: options.rule, rows })
}

/// Counts every policy and size, each size's best estimate first; returns whether these are all.
fn counted(
    trace: &CacheTrace,
    options: &AdviseOptions,
    costs: &DeviceCosts,
    work: &Work,
) -> Result<(Vec<AdviseRow>, bool)> {
    let mut policies: Vec<PolicySpec> = Vec::new();
    let always = [PolicySpec::parse(BASE)?, PolicySpec::parse(LIMIT)?];
    for policy in options.policies.iter().chain(&always) {
        let spec = at_cost(policy, costs)?;
        if policies.iter().all(|there| there.text() != spec.text()) {
            policies.push(spec);
        }
    }
    let counting = CacheReplayOptions {
        policies,
        cache_pages: options.cache_pages.clone(),
        timing: false,
        threads: options.threads,
    };
    let counted = cache_replay::replay(trace, &counting, work)?;
    let all_counted = counted.len() == counting.policies.len() * counting.cache_pages.len();
    let mut rows = Vec::with_capacity(counted.len());
    for &cache_pages in &options.cache_pages {
        let of_size = counted.iter().filter(|row| row.cache_pages == cache_pages);
        let mut of_size: Vec<AdviseRow> = of_size
            .map(|row| AdviseRow {
                policy: row.policy.clone(),
                cache_pages,
                requests: row.requests,
                physical_reads: row.physical_reads,
                physical_writes: row.physical_writes,
                estimated_seconds: costs.seconds(row.physical_reads, row.physical_writes),
                seconds: None,
                monthly_price: options.rule.monthly_price(cache_pages),
                is_fastest: false,
                is_advised: false,
            })
            .collect();
        of_size.sort_by(|a, b| {
            let last = |row: &AdviseRow| row.policy == LIMIT;
            last(a).cmp(&last(b)).then(a.estimated_seconds.total_cmp(&b.estimated_seconds))
        });
        rows.extend(of_size);
    }
    Ok((rows, all_counted))
}

/// Sets the device's costs in a policy that weighs costs; other policies do not change.
fn at_cost(policy: &PolicySpec, costs: &DeviceCosts) -> Result<PolicySpec> {
    match policy.text() {
        name @ ("casa" | "sawc") => {
            let ratio = costs.write_in_reads();
            let (read, write) = if ratio >= 1.0 { (1.0, ratio) } else { (1.0 / ratio, 1.0) };
            PolicySpec::parse(&format!("{name}:cost={read:.2}:{write:.2}"))
        }
        _ => Ok(policy.clone()),
    }
}

/// Tries the best few of each size, and LRU, on the device; returns whether all of them were tried.
fn try_best(
    trace: &Arc<CacheTrace>,
    options: &AdviseOptions,
    rows: &mut [AdviseRow],
    work: &Arc<Work>,
) -> Result<bool> {
    let mut chosen: Vec<usize> = Vec::new();
    for &cache_pages in &options.cache_pages {
        let of_size = rows.iter().enumerate();
        let of_size =
            of_size.filter(|(_, row)| row.cache_pages == cache_pages && row.policy != LIMIT);
        let mut tries = 0;
        for (at, row) in of_size {
            if tries < options.tries.max(1) || row.policy == BASE {
                chosen.push(at);
                tries += 1;
            }
        }
    }
    let runs = chosen.iter().map(|&at| {
        Ok(BufferRun {
            policy: PolicySpec::parse(&rows[at].policy)?,
            buffer_pages: rows[at].cache_pages,
            device: options.device.clone(),
        })
    });
    let runs = runs.collect::<Result<Vec<BufferRun>>>()?;
    let trying = BufferReplayOptions {
        clients: options.clients,
        seed: options.seed,
        threads: options.threads,
        ..BufferReplayOptions::default()
    };
    let tried = buffer_replay::replay(trace, &runs, &trying, work)?;
    let all_tried = tried.iter().all(Option::is_some);
    for (at, tried) in chosen.into_iter().zip(tried) {
        rows[at].seconds = tried.map(|tried| tried.seconds);
    }
    Ok(all_tried)
}

/// Orders each size's rows by the results, and marks the fastest ones and the advice.
fn mark(options: &AdviseOptions, rows: &mut [AdviseRow]) {
    let sizes = options.cache_pages.len();
    let mut fastest: Vec<Candidate> = Vec::with_capacity(sizes);
    let of_a_size = rows.len() / sizes;
    for rows in rows.chunks_mut(of_a_size) {
        let seconds = |row: &AdviseRow| row.seconds.unwrap_or(f64::INFINITY);
        // Stable: rows that were not tried keep the order of the estimates.
        rows.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        rows[0].is_fastest = true;
        let (cache_pages, seconds) = (rows[0].cache_pages, seconds(&rows[0]));
        fastest.push(Candidate { cache_pages, seconds });
    }
    if let Some(size) = options.rule.choose(&fastest) {
        rows[size * of_a_size].is_advised = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_trace::Generator;

    fn options(device: &str) -> AdviseOptions {
        AdviseOptions {
            device: DeviceSpec::parse(device).unwrap(),
            cache_pages: vec![1500, 500, 100],
            policies: PolicySpec::parse_list("fifo,lru,casa,cflru:window=0.5").unwrap(),
            tries: 2,
            rule: Rule::Slack { slack: 0.05 },
            clients: 1,
            seed: 1,
            threads: 2,
        }
    }

    fn trace(text: &str) -> Arc<CacheTrace> {
        let events = Generator::parse(text).unwrap().map(Ok);
        Arc::new(CacheTrace::collect("made up", events).unwrap())
    }

    #[test]
    fn what_is_advised_was_tried_and_is_small_and_fast() {
        let trace = trace("zipf:pages=2000,requests=20000,theta=0.9,writes=0.4,seed=3");
        let options = options("bast:pages=4k");
        let advice = advise(&trace, &options, &Arc::default()).unwrap();
        // Four policies and the limit, of three sizes.
        assert_eq!(advice.rows.len(), 15);
        let advised = advice.advised().unwrap();
        assert!(advised.is_fastest);
        let fastest: Vec<&AdviseRow> = advice.rows.iter().filter(|row| row.is_fastest).collect();
        assert_eq!(fastest.len(), 3);
        let best = fastest.iter().map(|row| row.seconds.unwrap()).fold(f64::INFINITY, f64::min);
        assert!(advised.seconds.unwrap() <= best * 1.05);
        for row in &fastest {
            let good = row.seconds.unwrap() <= best * 1.05;
            assert!(!good || row.cache_pages >= advised.cache_pages, "{row:?} {advised:?}");
        }
        for size in [1500, 500, 100] {
            let of_size = advice.rows.iter().filter(|row| row.cache_pages == size);
            let tried: Vec<&AdviseRow> = of_size.filter(|row| row.seconds.is_some()).collect();
            assert!((2..=3).contains(&tried.len()), "{tried:?}");
            assert!(tried.iter().any(|row| row.policy == "lru"));
            assert!(tried.is_sorted_by_key(|row| row.seconds));
            let limit = advice.row("opt", size).unwrap();
            assert!(limit.seconds.is_none());
            assert!(tried.iter().all(|row| row.physical_reads >= limit.physical_reads));
        }
        assert!(advice.sentences()[0].starts_with(&format!("Take {}", advised.policy)));
        assert_eq!(
            advise(&trace, &AdviseOptions { threads: 1, ..options }, &Arc::default()).unwrap(),
            advice
        );
    }

    #[test]
    fn nothing_to_advise_on_is_refused() {
        let events = std::iter::empty();
        let empty = Arc::new(CacheTrace::collect("empty", events).unwrap());
        let refused = advise(&empty, &options("bast:pages=4k"), &Arc::default());
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn more_memory_than_the_trace_needs_is_not_advised() {
        let trace = trace("uniform:pages=300,requests=20000,writes=0.4,seed=3");
        let options =
            AdviseOptions { cache_pages: vec![3000, 400, 100], ..options("bast:pages=4k") };
        for rule in [options.rule, Rule::Doubling { least: 0.1 }] {
            let options = AdviseOptions { rule, ..options.clone() };
            let advice = advise(&trace, &options, &Arc::default()).unwrap();
            assert_eq!(advice.advised().unwrap().cache_pages, 400);
            assert!(!advice.sentences().join(" ").contains("largest size that was given"));
        }
        // Of larger sizes nothing is known.
        let options = AdviseOptions { cache_pages: vec![100, 200], ..options };
        let advice = advise(&trace, &options, &Arc::default()).unwrap();
        assert_eq!(advice.advised().unwrap().cache_pages, 200);
        assert!(advice.sentences().join(" ").contains("largest size that was given"));
    }

    #[test]
    fn prices_weigh_the_memory_against_the_time() {
        let trace = trace("uniform:pages=3000,requests=9000,writes=0.4,seed=3");
        let advised = |memory, flash| {
            let prices = Prices { memory, flash };
            let rule = Rule::Price { prices, device_pages: 4096 };
            let options = AdviseOptions { rule, tries: 1, ..options("bast:pages=4k") };
            let advice = advise(&trace, &options, &Arc::default()).unwrap();
            let row = advice.advised().unwrap();
            // 4,096 pages of 4 KiB are 1/64 GiB.
            let price = memory * f64::from(row.cache_pages) / 262_144.0 + flash / 64.0;
            assert!((row.monthly_price.unwrap() - price).abs() < 1e-9);
            assert!(advice.sentences()[1].contains("least product of price and time"));
            row.cache_pages
        };
        // At best half of the requests hit: 15 times the memory is only worth it if memory costs nothing.
        assert_eq!((advised(0.0, 1.0), advised(1000.0, 1.0)), (1500, 100));
    }
}
