//! Computes each field of `tantalum top` from the metrics of two scrapes. A device with a new metric needs a line here,
//! and a column of that name in `tantalum_report::schema::TOP`.
use tantalum_metrics::{Bucket, Scrape};
use tantalum_report::{Table, Value, schema};

/// Metrics to read: the sum of all samples with one of the names and, if a label is given, one of its values.
struct Counter {
    names: &'static [&'static str],
    label: Option<(&'static str, &'static [&'static str])>,
}

impl Counter {
    /// Their sum; `None` if none of them is present.
    fn read(&self, scrape: &Scrape) -> Option<f64> {
        let read = |name: &&str| match self.label {
            None => scrape.sum(name, &[]),
            Some((label, values)) => {
                added(values.iter().map(|value| scrape.sum(name, &[(label, *value)])))
            }
        };
        added(self.names.iter().map(read))
    }
}

/// The sum of the numbers that are present; `None` if none is.
fn added(numbers: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    numbers.flatten().reduce(|sum, number| sum + number)
}

/// The source of a field.
enum Source {
    /// A whole number at present.
    Now(Counter),
    /// A present number of pages, in bytes.
    PagesNow(&'static str),
    /// A present time, in seconds.
    Seconds(&'static str),
    /// A label of a metric.
    Label(&'static str, &'static str),
    /// Time since the server was started, in seconds.
    Uptime,
    /// Time between the two scrapes, in seconds.
    Interval,
    /// Growth per second.
    Rate(Counter),
    /// Growth of the first divided by growth of the second.
    Ratio(Counter, Counter),
    /// The first divided by the second, since the start of the server.
    RatioSinceStart(Counter, Counter),
    /// This percentile of the duration of a command's requests, in seconds.
    Percentile(&'static [&'static str], f64),
}

const UPTIME: &str = "tantalum_uptime_seconds";
/// Durations of the requests of NBD clients and of local clients. Both have the same buckets.
const DURATIONS: [&str; 2] =
    ["tantalum_nbd_request_duration_seconds", "tantalum_local_request_duration_seconds"];
const ERRORS: &[&str] = &["tantalum_nbd_errors_total", "tantalum_local_errors_total"];
/// Kinds of errors that the medium causes.
const MEDIA_ERRORS: &[&str] =
    &["checksum", "uncorrectable", "corrupt", "io", "program_failed", "zone_retired"];

/// Local clients have a separate command for writes of pages that are not contiguous.
const WRITES: &[&str] = &["write", "write_scattered"];

const fn counter(names: &'static [&'static str]) -> Counter {
    Counter { names, label: None }
}

const fn now(name: &'static [&'static str]) -> Source {
    Source::Now(counter(name))
}

const fn rate(name: &'static [&'static str]) -> Source {
    Source::Rate(counter(name))
}

const fn requests(commands: &'static [&'static str]) -> Source {
    let names = &[
        "tantalum_nbd_requests_total",
        "tantalum_local_request_duration_seconds_count",
        "tantalum_program_requests_total",
    ];
    Source::Rate(Counter { names, label: Some(("command", commands)) })
}

const fn bytes(commands: &'static [&'static str]) -> Source {
    let names = &[
        "tantalum_nbd_request_bytes_total",
        "tantalum_local_request_bytes_total",
        "tantalum_program_request_bytes_total",
    ];
    Source::Rate(Counter { names, label: Some(("command", commands)) })
}

const BUFFER_HITS: Counter = counter(&["tantalum_buffer_hit_pages_total"]);
const BUFFER_REQUESTS: Counter = counter(&["tantalum_buffer_requested_pages_total"]);
const WRITE_CACHE_HITS: Counter = counter(&["tantalum_write_cache_hit_pages_total"]);
const WRITE_CACHE_REQUESTS: Counter = counter(&["tantalum_write_cache_requested_pages_total"]);
const FLASH_HITS: Counter = counter(&["tantalum_cache_hit_pages_total"]);
const FLASH_READS: Counter = counter(&["tantalum_cache_read_pages_total"]);

const FIELDS: &[(&str, Source)] = &[
    ("uptime_seconds", Source::Uptime),
    ("interval_seconds", Source::Interval),
    ("reads_per_second", requests(&["read"])),
    ("read_bytes_per_second", bytes(&["read"])),
    ("read_p50_seconds", Source::Percentile(&["read"], 0.5)),
    ("read_p95_seconds", Source::Percentile(&["read"], 0.95)),
    ("read_p99_seconds", Source::Percentile(&["read"], 0.99)),
    ("read_p999_seconds", Source::Percentile(&["read"], 0.999)),
    ("writes_per_second", requests(WRITES)),
    ("write_bytes_per_second", bytes(WRITES)),
    ("write_p50_seconds", Source::Percentile(WRITES, 0.5)),
    ("write_p95_seconds", Source::Percentile(WRITES, 0.95)),
    ("write_p99_seconds", Source::Percentile(WRITES, 0.99)),
    ("write_p999_seconds", Source::Percentile(WRITES, 0.999)),
    ("flushes_per_second", requests(&["flush"])),
    ("flush_p50_seconds", Source::Percentile(&["flush"], 0.5)),
    ("flush_p95_seconds", Source::Percentile(&["flush"], 0.95)),
    ("flush_p99_seconds", Source::Percentile(&["flush"], 0.99)),
    ("flush_p999_seconds", Source::Percentile(&["flush"], 0.999)),
    ("trims_per_second", requests(&["trim"])),
    ("trim_bytes_per_second", bytes(&["trim"])),
    ("trim_p50_seconds", Source::Percentile(&["trim"], 0.5)),
    ("trim_p95_seconds", Source::Percentile(&["trim"], 0.95)),
    ("trim_p99_seconds", Source::Percentile(&["trim"], 0.99)),
    ("trim_p999_seconds", Source::Percentile(&["trim"], 0.999)),
    ("write_zeroes_per_second", requests(&["write_zeroes"])),
    ("write_zeroes_bytes_per_second", bytes(&["write_zeroes"])),
    ("write_zeroes_p50_seconds", Source::Percentile(&["write_zeroes"], 0.5)),
    ("write_zeroes_p95_seconds", Source::Percentile(&["write_zeroes"], 0.95)),
    ("write_zeroes_p99_seconds", Source::Percentile(&["write_zeroes"], 0.99)),
    ("write_zeroes_p999_seconds", Source::Percentile(&["write_zeroes"], 0.999)),
    ("connections", now(&["tantalum_nbd_connections", "tantalum_local_clients"])),
    ("nbd_tls", Source::Label("tantalum_nbd_tls_info", "mode")),
    ("nbd_tls_connections", now(&["tantalum_nbd_tls_connections"])),
    (
        "requests_in_flight",
        now(&["tantalum_nbd_requests_in_flight", "tantalum_local_requests_in_flight"]),
    ),
    ("held_bytes", now(&["tantalum_nbd_held_bytes"])),
    ("errors", now(ERRORS)),
    ("media_errors", Source::Now(Counter { names: ERRORS, label: Some(("kind", MEDIA_ERRORS)) })),
    ("refused_requests", now(&["tantalum_nbd_refused_requests_total"])),
    ("program_failures", now(&["tantalum_ftl_program_failures_total"])),
    ("latched", now(&["tantalum_ftl_latched"])),
    ("buffer_hit_ratio", Source::Ratio(BUFFER_HITS, BUFFER_REQUESTS)),
    ("write_cache_hit_ratio", Source::Ratio(WRITE_CACHE_HITS, WRITE_CACHE_REQUESTS)),
    (
        "write_amplification",
        Source::Ratio(
            counter(&[
                "tantalum_ftl_programmed_slots_total",
                "tantalum_redo_log_programmed_slots_total",
            ]),
            counter(&["tantalum_device_written_pages_total"]),
        ),
    ),
    ("moved_pages_per_second", rate(&["tantalum_ftl_moved_pages_total"])),
    ("cleaned_zones_per_second", rate(&["tantalum_ftl_cleaned_zones_total"])),
    ("checkpoints_per_second", rate(&["tantalum_ftl_checkpoints_total"])),
    ("zones", now(&["tantalum_ftl_zones"])),
    ("free_zones", now(&["tantalum_ftl_free_zones"])),
    ("retired_zones", now(&["tantalum_ftl_retired_zones"])),
    ("unreadable_pages", now(&["tantalum_ftl_unreadable_pages"])),
    ("mapped_bytes", Source::PagesNow("tantalum_ftl_mapped_pages")),
    ("capacity_bytes", now(&["tantalum_device_capacity_bytes"])),
    ("dump_bytes", now(&["tantalum_dump_bytes"])),
    ("dump_budget_bytes", now(&["tantalum_dump_budget_bytes"])),
    ("cache_mode", Source::Label("tantalum_cache_mode", "mode")),
    ("flash_hit_ratio", Source::Ratio(FLASH_HITS, FLASH_READS)),
    ("dirty_bytes", Source::PagesNow("tantalum_cache_dirty_pages")),
    ("destage_lag_seconds", Source::Seconds("tantalum_destage_lag_seconds")),
    ("destage_unreadable_pages", now(&["tantalum_destage_unreadable_pages"])),
    ("home_reads_per_second", rate(&["tantalum_home_reads_total"])),
    ("home_writes_per_second", rate(&["tantalum_home_writes_total"])),
    ("home_written_pages_per_second", rate(&["tantalum_home_written_pages_total"])),
    ("home_errors", now(&["tantalum_home_errors_total"])),
    ("home_failing", now(&["tantalum_home_failing"])),
    ("disk_reads_per_second", rate(&["tantalum_disk_reads_total"])),
    ("disk_writes_per_second", rate(&["tantalum_disk_writes_total"])),
    ("buffer_hit_ratio_since_start", Source::RatioSinceStart(BUFFER_HITS, BUFFER_REQUESTS)),
    (
        "write_cache_hit_ratio_since_start",
        Source::RatioSinceStart(WRITE_CACHE_HITS, WRITE_CACHE_REQUESTS),
    ),
    ("flash_hit_ratio_since_start", Source::RatioSinceStart(FLASH_HITS, FLASH_READS)),
    ("transactions_per_second", rate(&["tantalum_program_transactions_total"])),
    ("open_transactions", now(&["tantalum_program_open_transactions"])),
    ("uncommitted_bytes", Source::PagesNow("tantalum_program_uncommitted_pages")),
];

/// The fields of the interval between two scrapes, as a table of one row. Fields of an interval are null if `before` is
/// missing, or if the server was restarted in between.
pub fn fields(before: Option<&Scrape>, now: &Scrape) -> Table {
    let uptime = |scrape: &Scrape| scrape.sum(UPTIME, &[]);
    let since = before.and_then(|before| Some((before, uptime(now)? - uptime(before)?)));
    let since = since.filter(|(_, seconds)| *seconds > 0.0);
    let row = FIELDS.iter().map(|(key, source)| (*key, source.value(since, now)));
    let mut table = Table::new(schema::TOP);
    table.push_named(row);
    table
}

impl Source {
    fn value(&self, since: Option<(&Scrape, f64)>, now: &Scrape) -> Value {
        let grown = |counter: &Counter| {
            let (before, _) = since?;
            Some(counter.read(now)? - counter.read(before)?)
        };
        match self {
            Source::Now(counter) => whole(counter.read(now)),
            Source::PagesNow(name) => {
                let page_bytes = now.sum("tantalum_device_page_bytes", &[]);
                whole(now.sum(name, &[]).zip(page_bytes).map(|(pages, bytes)| pages * bytes))
            }
            Source::Seconds(name) => real(now.sum(name, &[]), 1e3),
            Source::Label(name, label) => {
                now.label(name, label).map_or(Value::Null, |text| Value::Text(text.to_owned()))
            }
            Source::Uptime => real(now.sum(UPTIME, &[]), 1e3),
            Source::Interval => real(since.map(|(_, seconds)| seconds), 1e3),
            Source::Rate(counter) => {
                let seconds = since.map(|(_, seconds)| seconds);
                real(grown(counter).zip(seconds).map(|(count, seconds)| count / seconds), 1e3)
            }
            Source::Ratio(of, to) => {
                let both = grown(of).zip(grown(to)).filter(|(_, to)| *to > 0.0);
                real(both.map(|(of, to)| of / to), 1e6)
            }
            Source::RatioSinceStart(of, to) => {
                let both = of.read(now).zip(to.read(now)).filter(|(_, to)| *to > 0.0);
                real(both.map(|(of, to)| of / to), 1e6)
            }
            Source::Percentile(commands, share) => {
                let seconds = since.and_then(|(before, _)| {
                    percentile(&durations(before, commands), &durations(now, commands), *share)
                });
                real(seconds, 1e9)
            }
        }
    }
}

fn whole(number: Option<f64>) -> Value {
    number.map_or(Value::Null, |number| Value::Count(number.max(0.0) as u64))
}

fn real(number: Option<f64>, scale: f64) -> Value {
    number.map_or(Value::Null, |number| Value::rounded(number, scale))
}

/// The buckets of all requests of these commands, of all kinds of clients.
fn durations(scrape: &Scrape, commands: &[&str]) -> Vec<Bucket> {
    let mut all: Vec<Bucket> = Vec::new();
    for (name, command) in DURATIONS.iter().flat_map(|name| commands.iter().map(move |c| (name, c)))
    {
        let buckets = scrape.buckets(name, &[("command", command)]);
        if all.is_empty() {
            all = buckets;
            continue;
        }
        for (sum, bucket) in all.iter_mut().zip(buckets) {
            sum.count += bucket.count;
        }
    }
    all
}

/// The `share` percentile of the observations between two readings, assuming that those of a bucket are spread evenly
/// over it; in the last bucket, its lower bound. `None` if there were no observations.
fn percentile(before: &[Bucket], now: &[Bucket], share: f64) -> Option<f64> {
    let had = |at: usize| before.get(at).map_or(0.0, |bucket| bucket.count);
    let count = |at: usize| now[at].count - had(at);
    let rank = count(now.len().checked_sub(1)?) * share;
    let at = (0..now.len()).find(|at| count(*at) > 0.0 && count(*at) >= rank)?;
    let (lower, below) = at.checked_sub(1).map_or((0.0, 0.0), |at| (now[at].bound, count(at)));
    if now[at].bound.is_infinite() {
        return Some(lower);
    }
    Some(lower + (now[at].bound - lower) * (rank - below) / (count(at) - below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(counts: [f64; 4]) -> Vec<Bucket> {
        let bounds = [0.1, 0.2, 0.4, f64::INFINITY];
        bounds.into_iter().zip(counts).map(|(bound, count)| Bucket { bound, count }).collect()
    }

    #[test]
    fn percentiles_are_those_of_the_interval() {
        let before = buckets([1000.0, 1000.0, 1000.0, 1000.0]);
        let now = buckets([1000.0, 1050.0, 1099.0, 1100.0]);
        let at = |share| percentile(&before, &now, share).unwrap();
        assert!((at(0.5) - 0.2).abs() < 1e-9);
        assert!((at(0.25) - 0.15).abs() < 1e-9);
        assert!((at(0.95) - (0.2 + 0.2 * 45.0 / 49.0)).abs() < 1e-9);
        // Beyond the last finite bound, only that bound is known.
        assert_eq!(at(0.999), 0.4);
        assert_eq!(percentile(&before, &before, 0.5), None);
        assert_eq!(percentile(&[], &[], 0.5), None);
    }

    #[test]
    fn local_clients_count_as_those_of_nbd_do() {
        let scrape = |seconds: u32, count: u32| {
            let of = |kind: &str, command: &str, count: u32| {
                let name = format!("tantalum_{kind}_request_duration_seconds");
                format!(
                    "{name}_bucket{{command=\"{command}\",le=\"0.1\"}} {}\n\
                     {name}_bucket{{command=\"{command}\",le=\"+Inf\"}} {count}\n\
                     {name}_count{{command=\"{command}\"}} {count}\n",
                    count / 2
                )
            };
            let text = format!(
                "tantalum_uptime_seconds {seconds}\n\
                 tantalum_nbd_requests_total{{command=\"write\"}} {count}\n\
                 tantalum_nbd_connections 1\ntantalum_local_clients 2\n\
                 tantalum_local_request_bytes_total{{command=\"write_scattered\"}} {}\n\
                 tantalum_nbd_errors_total{{kind=\"io\"}} 0\n\
                 tantalum_local_errors_total{{kind=\"checksum\"}} 3\n\
                 tantalum_local_errors_total{{kind=\"out_of_space\"}} 4\n{}{}{}",
                count * 4096,
                of("nbd", "write", count),
                of("local", "write", 2 * count),
                of("local", "write_scattered", 3 * count),
            );
            Scrape::parse(&text).unwrap()
        };
        let table = fields(Some(&scrape(10, 0)), &scrape(14, 400));
        let value = |key: &str| {
            let at = table.columns().iter().position(|column| column.key == key).unwrap();
            table.rows()[0][at].clone()
        };
        assert_eq!(value("writes_per_second"), Value::Real(600.0));
        assert_eq!(value("write_bytes_per_second"), Value::Real(409_600.0));
        assert_eq!(value("write_p50_seconds"), Value::Real(0.1));
        assert_eq!(value("connections"), Value::Count(3));
        assert_eq!(value("errors"), Value::Count(7));
        assert_eq!(value("media_errors"), Value::Count(3));
    }

    #[test]
    fn every_field_has_its_column_and_what_is_not_told_is_null() {
        let scrape = |seconds: u32, writes: u32| {
            let text = format!(
                "tantalum_uptime_seconds {seconds}\n\
                 tantalum_nbd_requests_total{{command=\"write\"}} {writes}\n\
                 tantalum_nbd_errors_total{{kind=\"io\"}} 2\n\
                 tantalum_nbd_errors_total{{kind=\"too_large\"}} 1\n"
            );
            Scrape::parse(&text).unwrap()
        };
        let value = |table: &Table, key: &str| {
            let at = table.columns().iter().position(|column| column.key == key).unwrap();
            table.rows()[0][at].clone()
        };
        let table = fields(Some(&scrape(10, 100)), &scrape(14, 300));
        assert_eq!(value(&table, "interval_seconds"), Value::Real(4.0));
        assert_eq!(value(&table, "writes_per_second"), Value::Real(50.0));
        assert_eq!(value(&table, "errors"), Value::Count(3));
        assert_eq!(value(&table, "media_errors"), Value::Count(2));
        for key in ["reads_per_second", "free_zones", "write_amplification", "write_p50_seconds"] {
            assert_eq!(value(&table, key), Value::Null, "{key}");
        }
        // No value exists for an interval in which the server was restarted.
        let table = fields(Some(&scrape(10, 100)), &scrape(2, 300));
        assert_eq!(value(&table, "writes_per_second"), Value::Null);
        assert_eq!(value(&table, "uptime_seconds"), Value::Real(2.0));
    }
}
