//! The HTML pages of a replay and of a curve: text and charts.
use crate::commands::standing::{Contest, standing};
use tantalum_report::html::{Page, Plot};
use tantalum_report::{Report, Table};

/// A policy that knows the future is a bound for the others; it takes part in no contest.
const BOUND: &str = "opt";

/// The page of a replay of `trace` through caches alone.
pub fn cache_page(trace: &str, report: &Report) -> Page {
    let against_size = |title, y| Plot::new(title, "cache_pages", y, &["policy"]);
    let contest = Contest {
        places: &["cache_pages"],
        names: &["policy"],
        measure: "misses",
        wins: "misses least",
        where_: "sizes",
        bound: Some(BOUND),
    };
    Page {
        title: format!("Replay of {trace}"),
        verdict: standing(&report.table, &contest),
        plots: vec![
            against_size("Miss ratio", &["miss_ratio"]),
            against_size("Pages fetched", &["physical_reads"]),
            against_size("Pages written back", &["physical_writes"]),
            against_size("Time of the run", &["seconds"]),
        ],
        ..Page::default()
    }
}

/// The page of a replay of `trace` on devices.
pub fn device_page(trace: &str, report: &Report) -> Page {
    let by_device = |title, y| Plot::new(title, "device", y, &["trace"]);
    let contest = Contest {
        places: &[],
        names: &["device"],
        measure: "seconds",
        wins: "takes least time",
        where_: "devices",
        bound: None,
    };
    Page {
        title: format!("Replay of {trace} on simulated devices"),
        verdict: standing(&report.table, &contest),
        plots: vec![
            by_device("Virtual time", &["seconds"]),
            by_device("Requests a second", &["requests_per_s"]),
            by_device("Latency of reads", &["read_p50_ns", "read_p99_ns", "read_max_ns"]),
            by_device("Latency of writes", &["write_p50_ns", "write_p99_ns", "write_max_ns"]),
            by_device("Latency of commits", &["commit_p50_ns", "commit_p99_ns", "commit_max_ns"]),
            by_device("Write amplification", &["write_amplification"]),
        ],
        ..Page::default()
    }
}

/// The page of a replay of `trace` through buffers above devices.
pub fn buffer_page(trace: &str, report: &Report) -> Page {
    let against_size = |title, y| Plot::new(title, "cache_pages", y, &["policy", "device"]);
    let contest = Contest {
        places: &["cache_pages"],
        names: &["policy", "device"],
        measure: "seconds",
        wins: "takes least time",
        where_: "sizes",
        bound: Some(BOUND),
    };
    Page {
        title: format!("Replay of {trace} through a buffer on simulated devices"),
        verdict: standing(&report.table, &contest),
        plots: vec![
            against_size("Virtual time", &["seconds"]),
            against_size("Requests a second", &["requests_per_s"]),
            against_size("Mean latency of a read", &["read_mean_ns"]),
            against_size("Mean latency of a write", &["write_mean_ns"]),
            against_size("Hit ratio", &["hit_ratio"]),
            against_size("Pages written to the device", &["physical_writes"]),
        ],
        ..Page::default()
    }
}

/// The page of a replay of `trace` through flash caches.
pub fn tier_page(trace: &str, report: &Report) -> Page {
    let series = &["policy", "cache_pages", "tier"];
    let against = |title, y| Plot::new(title, "tier_pages", y, series);
    let contest = Contest {
        places: &["policy", "cache_pages", "tier_pages"],
        names: &["tier"],
        measure: "seconds",
        wins: "takes least time",
        where_: "settings",
        bound: None,
    };
    Page {
        title: format!("Replay of {trace} through a flash cache"),
        verdict: standing(&report.table, &contest),
        plots: vec![
            against("Virtual time", &["seconds"]),
            against("Hit ratio of the flash cache", &["tier_hit_ratio"]),
            against("Blocks erased", &["erases"]),
            against("Pages written to flash", &["flash_writes"]),
            against("Pages read from the disk", &["disk_reads"]),
            against("Pages written to the disk", &["disk_writes"]),
        ],
        ..Page::default()
    }
}

/// The page of LRU's curve over `trace`.
pub fn curve_page(trace: &str, report: &Report) -> Page {
    Page {
        title: format!("Miss ratios of LRU over {trace}"),
        verdict: curve_verdict(&report.table),
        plots: vec![
            Plot::new("Miss ratio", "cache_pages", &["miss_ratio"], &["policy"]),
            Plot::new("Pages written back", "cache_pages", &["physical_writes"], &["policy"]),
        ],
        ..Page::default()
    }
}

/// The size beyond which more memory helps little: the smallest with at most a tenth more misses than the largest.
fn curve_verdict(table: &Table) -> String {
    let (Some(pages), Some(misses), Some(ratio)) =
        (table.index("cache_pages"), table.index("misses"), table.index("miss_ratio"))
    else {
        return String::new();
    };
    let count =
        |row: &[tantalum_report::Value], at: usize| row[at].plain().parse::<u64>().unwrap_or(0);
    let rows = table.rows();
    let Some(most) = rows.iter().max_by_key(|row| count(row, pages)) else { return String::new() };
    let least = count(most, misses);
    let enough = rows.iter().filter(|row| 10 * count(row, misses) <= 11 * least);
    let enough = enough.min_by_key(|row| count(row, pages)).unwrap_or(most);
    let columns = table.columns();
    let shown = |row: &[tantalum_report::Value], at: usize| columns[at].show(&row[at]);
    format!(
        "With {} pages LRU misses {} of the requests; more, up to {}, misses at most a tenth fewer",
        shown(enough, pages),
        percent(&shown(enough, ratio)),
        shown(most, pages),
    )
}

/// A share, given as text with six decimals, as a percentage.
fn percent(share: &str) -> String {
    share.parse().map_or_else(|_| share.to_owned(), |share: f64| format!("{:.1} %", share * 100.0))
}
