//! The effect of the host's time before each transaction on figure 4's gains. In a closed loop without host time the devices are
//! compared at their fastest; with more of it they differ less. For TPC-C's transactions it was recorded. For those of file systems it
//! is not known, so they are measured with one time after the other.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_models::tx_cache::HeaderRelease;

use super::super::{Progress, Row, Scale};
use super::Setup;
use super::devices::{Device, Sizes, measure};
use super::protocols::{TRACE, gain, percent};
use super::replay::Measured;
use super::trace::{Trace, file_system};

/// The host's times, in ms: from below the shortest transaction of any trace (a third of a millisecond) to above the longest one (a
/// third of a second).
pub(super) const TIMES_MS: [f64; 10] = [0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0];
/// The label of the x axis.
const TIME: &str = "host's time before a transaction, ms";

/// A file system's trace that is replayed with one host time after the other. A device is filled once for all of them, as filling
/// takes longer than the transactions of one time.
#[derive(Clone, Copy)]
struct Stepped {
    name: &'static str,
    /// Number of transactions before the first time, without host time.
    warm_up: usize,
    /// Number of transactions with each time.
    each: usize,
}

/// Before the first time come as many transactions as figure 4 leaves out; for the file server all of its transactions, as cleaning is
/// not steady earlier.
const FILE_SYSTEMS: [Stepped; 3] = [
    Stepped { name: "fileserver", warm_up: 48, each: 12 },
    Stepped { name: "varmail", warm_up: 8_000, each: 1_500 },
    Stepped { name: "webproxy", warm_up: 200, each: 60 },
];
/// Share of a time's transactions that are not measured: they complete the work left from the previous time.
const SETTLING_SHARE: f64 = 1.0 / 3.0;

pub(super) fn run(setup: &Setup, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    rows.extend(recorded(setup, progress)?);
    // The small scale has other file systems.
    if setup.scale != Scale::Small {
        for stepped in FILE_SYSTEMS {
            rows.extend(chosen(stepped, &setup.sizes, setup.cache_pages, progress)?);
        }
    }
    Ok(())
}

/// TPC-C, with a pause before each transaction as long as the host's time when the trace was recorded.
fn recorded(setup: &Setup, progress: Progress) -> Result<Vec<Row>> {
    let trace = setup.tpcc();
    let name = format!("{}, with the host's time", trace.name);
    let working = Rc::new(Trace { with_work: true, ..Trace::clone(trace) });
    let mut on = |device: Device| {
        progress(&format!("{name} on {}", device.name()));
        measure(device, &setup.sizes, &working)
    };
    let pages = setup.cache_pages;
    let (wal, tx_flash) = (on(Device::Wal(pages))?, on(Device::TxFlash)?);
    let tx_cache = on(Device::TxCache(pages, HeaderRelease::WrittenBack))?;
    let nv_cache = on(Device::NvCache(pages))?;
    let panel = "with the host's time";
    let gain_row = |other: &str, measured: &Measured| {
        let case = format!("{name}, TxCache over {other}");
        let row = percent("Figure 4", case, "throughput gain", None, gain(&tx_cache, measured));
        row.at(panel, format!("over {other}"), (TRACE, trace.name))
    };
    let rate = ("throughput", "transactions/s");
    let rate =
        Row::new("Figure 4", format!("{name}, TxCache"), rate, None, tx_cache.transactions_per_s);
    let case = format!("{name}, TxCache below NVCache");
    let penalty =
        percent("Figure 4", case, "throughput penalty", None, -gain(&tx_cache, &nv_cache));
    Ok(vec![
        gain_row("WAL", &wal),
        gain_row("TxFlash", &tx_flash),
        penalty.at(panel, "TxCache", (TRACE, trace.name)),
        rate.at(format!("{panel}, transactions/s"), "TxCache", (TRACE, trace.name)),
    ])
}

/// A trace with every host time, in ascending order.
fn chosen(stepped: Stepped, sizes: &Sizes, pages: u32, progress: Progress) -> Result<Vec<Row>> {
    let trace = Rc::new(stepped.trace(sizes.seed)?);
    let mut on = |device: Device| {
        progress(&format!(
            "{} with one time of the host after the other on {}",
            trace.name,
            device.name()
        ));
        stepped.rates(&measure(device, sizes, &trace)?)
    };
    let (wal, tx_flash) = (on(Device::Wal(pages))?, on(Device::TxFlash)?);
    let tx_cache = on(Device::TxCache(pages, HeaderRelease::WrittenBack))?;
    let nv_cache = on(Device::NvCache(pages))?;
    let mut rows = Vec::new();
    for (at, time_ms) in TIMES_MS.into_iter().enumerate() {
        let panel = format!("{}, by the host's time", trace.name);
        let case = |what: &str| format!("{}, host {time_ms} ms, {what}", trace.name);
        let more = |other: &[f64]| 100.0 * (tx_cache[at] / other[at] - 1.0);
        for (other, rates) in [("WAL", &wal), ("TxFlash", &tx_flash)] {
            let case = case(&format!("TxCache over {other}"));
            let row = percent("Figure 4", case, "throughput gain", None, more(rates));
            rows.push(row.at(&*panel, format!("over {other}"), (TIME, time_ms)));
        }
        let case_below = case("TxCache below NVCache");
        let row = percent("Figure 4", case_below, "throughput penalty", None, -more(&nv_cache));
        rows.push(row.at(&*panel, "TxCache", (TIME, time_ms)));
        let rate = ("throughput", "transactions/s");
        let row = Row::new("Figure 4", case("TxCache"), rate, None, tx_cache[at]);
        rows.push(row.at(format!("{panel}, transactions/s"), "TxCache", (TIME, time_ms)));
    }
    Ok(rows)
}

impl Stepped {
    /// The first transaction with the time at index `at` of [`TIMES_MS`].
    fn first(self, at: usize) -> usize {
        self.warm_up + at * self.each
    }

    fn trace(self, seed: u64) -> Result<Trace> {
        let mut trace = file_system(self.name, self.first(TIMES_MS.len()), seed)?;
        for (at, time_ms) in TIMES_MS.into_iter().enumerate() {
            let with_it = self.first(at)..self.first(at + 1);
            for transaction in &mut trace.transactions[with_it] {
                transaction.work_ns = (time_ms * 1e6) as u64;
            }
        }
        trace.with_work = true;
        Ok(trace)
    }

    /// Transactions per second with each time.
    ///
    /// # Errors
    /// `InvalidInput` if the device split transactions, so that more of them ended than the trace has.
    fn rates(self, measured: &Measured) -> Result<Vec<f64>> {
        if measured.ended_ns.len() != self.first(TIMES_MS.len()) {
            let (name, ended) = (self.name, measured.ended_ns.len());
            let context = format!("{ended} transactions of {name} ended");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let rate = |at| {
            let first = self.first(at) + (self.each as f64 * SETTLING_SHARE) as usize;
            let last = self.first(at + 1) - 1;
            let ns = measured.ended_ns[last] - measured.ended_ns[first];
            (last - first) as f64 * 1e9 / ns as f64
        };
        Ok((0..TIMES_MS.len()).map(rate).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_differ_the_less_the_longer_a_host_takes() {
        let setup = Setup::new(Scale::Small, 1).unwrap();
        let stepped = Stepped { name: "varmail", warm_up: 300, each: 60 };
        let rows = chosen(stepped, &setup.sizes, setup.cache_pages, &mut |_| {}).unwrap();
        let of = |what: &str, metric: &str| -> Vec<f64> {
            let found = rows.iter().filter(|row| row.case.ends_with(what) && row.metric == metric);
            found.map(|row| row.measured).collect()
        };
        let gains = of("TxCache over WAL", "throughput gain");
        assert_eq!(gains.len(), TIMES_MS.len());
        assert!(gains.windows(2).all(|pair| pair[1] < pair[0]), "{gains:?}");
        assert!(gains[0] > 50.0 && gains[TIMES_MS.len() - 1] < 1.0, "{gains:?}");
        // One transaction at a time: nearly one per second if the host takes a second for each.
        let rates = of(", TxCache", "throughput");
        assert!((0.99..1.0).contains(rates.last().unwrap()), "{rates:?}");
        assert!(rates[0] > 100.0, "{rates:?}");
        // They are not in the paper, and must not count as agreement.
        assert!(rows.iter().all(|row| row.paper.is_none()));
    }

    #[test]
    fn there_is_a_time_for_every_transaction_after_the_first() {
        let stepped = Stepped { name: "webproxy", warm_up: 5, each: 3 };
        let trace = stepped.trace(1).unwrap();
        let times: Vec<u64> = trace.transactions.iter().map(|one| one.work_ns).collect();
        assert_eq!(times.len(), 5 + 3 * TIMES_MS.len());
        assert!(times[..8].iter().all(|time| *time == 0));
        assert_eq!(times[8..12], [100_000, 100_000, 100_000, 300_000]);
        assert_eq!(times.last(), Some(&1_000_000_000));
        assert!(trace.with_work && file_system("TPC-C", 9, 1).is_err());
    }
}
