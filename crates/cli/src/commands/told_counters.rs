//! The counters published by a program that has opened a volume itself: for `tantalum stat`, and for `tantalum top` in
//! place of a server's metrics. Also the name of the program.
use std::os::unix::net::UnixStream;
use std::path::Path;
use tantalum::front_end::{ToldCounters, counters_of};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};
use tantalum_media::block_store::holder;
use tantalum_metrics::Scrape;
use tantalum_report::Value;
use tantalum_volume::asking::control_path;
use tantalum_volume::{Stat, VolumeConfig};

/// Fields of `tantalum stat`, their metrics, and the bytes of one unit of each.
const FIELDS: [(&str, &str, u64); 10] = [
    ("mapped_bytes", "tantalum_ftl_mapped_pages", PAGE_BYTES as u64),
    ("zones_free", "tantalum_ftl_free_zones", 1),
    ("zones_retired", "tantalum_ftl_retired_zones", 1),
    ("zone_resets_min", "tantalum_ftl_zone_resets_min", 1),
    ("zone_resets_max", "tantalum_ftl_zone_resets_max", 1),
    ("mapping_bytes", "tantalum_ftl_mapping_bytes", 1),
    ("dirty_bytes", "tantalum_cache_dirty_pages", PAGE_BYTES as u64),
    ("program_transactions", "tantalum_program_transactions_total", 1),
    ("uncommitted_bytes", "tantalum_program_uncommitted_pages", PAGE_BYTES as u64),
    ("program_open_transactions", "tantalum_program_open_transactions", 1),
];

/// Adds the program's counters to `stat`.
///
/// # Errors
/// `Format` if the text is not metrics.
pub fn tell_counters(stat: &mut Stat, told: &ToldCounters) -> Result<()> {
    let scrape = Scrape::parse(&told.text)?;
    for (field, metric, bytes) in FIELDS {
        if let Some(count) = scrape.sum(metric, &[]) {
            stat.put(field, (count as u64).saturating_mul(bytes));
        }
    }
    for (field, command) in [("program_read_bytes", "read"), ("program_written_bytes", "write")] {
        let bytes = scrape.sum("tantalum_program_request_bytes_total", &[("command", command)]);
        if let Some(bytes) = bytes {
            stat.put(field, bytes as u64);
        }
    }
    let open_seconds = scrape.sum("tantalum_uptime_seconds", &[]);
    if let Some(open_seconds) = open_seconds {
        stat.put("open_seconds", seconds(open_seconds));
    }
    stat.put("told_seconds_ago", seconds(told.age_ms as f64 / 1e3));
    Ok(())
}

fn seconds(seconds: f64) -> String {
    Value::rounded(seconds, 1e3).plain()
}

/// Adds the process `pid`, which has the volume open.
pub fn tell_holder(stat: &mut Stat, pid: u32) {
    // The kernel may not report the name.
    if let Some(program) = program(pid) {
        stat.put("open_by", program);
    }
    stat.put("open_by_pid", pid);
}

/// The name of a process, if the kernel reports it.
fn program(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("comm"));
    name.ok().map(|name| name.trim_end().to_owned())
}

/// The counters of the program that has the volume of `config` open.
///
/// # Errors
/// `Closed` if no program has it open, `Unsupported` if the program publishes nothing.
pub fn scrape(config: &VolumeConfig) -> Result<Scrape> {
    if let Some(told) = counters_of(config) {
        return Scrape::parse(&told.text);
    }
    let name = config.path.display();
    Err(match config.data_path().ok().and_then(|path| holder(&path)) {
        Some(pid) if UnixStream::connect(control_path(&config.path)).is_ok() => Error::new(
            ErrorKind::Unsupported,
            format!(
                "{name}: it is served (pid {pid}), and a server publishes its counters at an \
                 address: give `tantalum top` the address that its option --metrics names, or \
                 serve the volume with `--metrics 127.0.0.1:9809`"
            ),
        ),
        Some(pid) => Error::new(
            ErrorKind::Unsupported,
            format!(
                "{name}: the process that has it open (pid {pid}) has published no counters yet. It \
                 does so once it has worked for a moment, if it may write beside {name}"
            ),
        ),
        None => Error::new(
            ErrorKind::Closed,
            format!(
                "{name}: no program has this volume open to write. Start the program, or serve the volume with `--metrics 127.0.0.1:9809`, \
                 and give `tantalum top` that address"
            ),
        ),
    })
}
