//! What the pages of a replay and of a curve draw.
use tantalum_report::html::{Page, Plot, Spread};

/// A figure of every policy against the cache size.
const fn against_size(
    title: &'static str,
    y: &'static str,
    series: &'static [&'static str],
) -> Plot {
    Plot {
        title,
        x: "cache_pages",
        y,
        series,
        panels: &["trace"],
        x_spread: Spread::Log,
        y_spread: Spread::FromZero,
        lines: true,
    }
}

/// The page of a replay of `trace`, on devices or through caches alone.
pub fn page(trace: &str, on_devices: bool) -> Page {
    let plots = if on_devices {
        vec![
            against_size("Virtual time", "seconds", &["policy", "device"]),
            against_size("Requests a second", "requests_per_s", &["policy", "device"]),
            against_size("Pages written to flash", "physical_writes", &["policy", "device"]),
        ]
    } else {
        vec![
            // Policies differ by few of a hundred: from zero nobody would see it.
            Plot {
                y_spread: Spread::Linear,
                ..against_size("Hit ratio", "hit_ratio", &["policy"])
            },
            against_size("Pages fetched", "physical_reads", &["policy"]),
            against_size("Pages written back", "physical_writes", &["policy"]),
            against_size("Time of the run", "seconds", &["policy"]),
        ]
    };
    Page { title: format!("Replay of {trace}"), plots, ..Page::default() }
}

/// The page of a replay of `trace` through flash caches.
pub fn tier_page(trace: &str) -> Page {
    let series = &["policy", "cache_pages", "tier"];
    let against = |title, y| Plot { x: "tier_pages", ..against_size(title, y, series) };
    let plots = vec![
        against("Virtual time", "seconds"),
        against("Hit ratio of the flash cache", "tier_hit_ratio"),
        against("Blocks erased", "erases"),
        against("Pages written to the disk", "disk_writes"),
    ];
    Page { title: format!("Replay of {trace}"), plots, ..Page::default() }
}

/// The page of LRU's curve over `trace`.
pub fn curve_page(trace: &str) -> Page {
    let plots = vec![
        against_size("Miss ratio", "miss_ratio", &["policy"]),
        against_size("Pages written back", "physical_writes", &["policy"]),
    ];
    Page { title: format!("LRU's curve of {trace}"), plots, ..Page::default() }
}
