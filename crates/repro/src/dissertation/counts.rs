//! The reads and writes of policies, without a device, and their cost if a write costs a given number of
//! reads.
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_policy::PolicySpec;
use tantalum_replay::cache_replay::{CacheReplayOptions, CacheRow, CacheTrace, replay};
use tantalum_replay::side_by_side::cores;
use tantalum_replay::work::Work;
use tantalum_runtime::supervision;

/// The virtual execution time of formula 5.1, relative to that of LRU.
pub(super) const TIME: (&str, &str) = ("virtual execution time", "ratio to lru");

/// Formula 5.1, for writes that cost `ratio` reads.
pub(super) fn virtual_time(reads: u64, writes: u64, ratio: u32) -> f64 {
    let whole = 1.0 + f64::from(ratio);
    reads as f64 / whole + writes as f64 * f64::from(ratio) / whole
}

/// Counts of every policy with every size.
pub(super) struct Counts(Vec<CacheRow>);

impl Counts {
    pub(super) fn of(trace: &CacheTrace, policies: &[&str], sizes: &[u32]) -> Result<Counts> {
        let policies = policies.iter().map(|policy| PolicySpec::parse(policy));
        let options = CacheReplayOptions {
            policies: policies.collect::<Result<Vec<PolicySpec>>>()?,
            cache_pages: sizes.to_vec(),
            timing: false,
            threads: cores(),
        };
        let counts = replay(trace, &options, &Work::default())?;
        supervision::check_stop()?;
        Ok(Counts(counts))
    }

    pub(super) fn get(&self, policy: &str, pages: u32) -> Result<&CacheRow> {
        let found = self.0.iter().find(|row| row.policy == policy && row.cache_pages == pages);
        found.ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("{policy} was not run with {pages} pages"))
        })
    }

    /// Virtual time of `policy` over that of LRU.
    pub(super) fn relative(&self, policy: &str, pages: u32, ratio: u32) -> Result<f64> {
        let time = |row: &CacheRow| virtual_time(row.physical_reads, row.physical_writes, ratio);
        Ok(time(self.get(policy, pages)?) / time(self.get("lru", pages)?))
    }

    /// The best of `policies` at this ratio.
    pub(super) fn best<'a>(&self, policies: &[&'a str], pages: u32, ratio: u32) -> Result<&'a str> {
        let mut best = (policies[0], f64::INFINITY);
        for policy in policies {
            let time = self.relative(policy, pages, ratio)?;
            if time < best.1 {
                best = (policy, time);
            }
        }
        Ok(best.0)
    }
}

pub(super) fn casa_at(ratio: u32) -> String {
    format!("casa:cost=1:{ratio}")
}
