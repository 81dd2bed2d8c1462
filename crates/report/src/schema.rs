//! The columns of the outputs that scripts rely on. `docs/output.md` documents each with an example, and a test
//! compares the two: fields may be added, but never renamed.
use crate::table::{Column, Style};

/// Rows of a cache-only replay: `tantalum replay TRACE --policy ... --size ...`.
pub const CACHE_REPLAY: &[Column] = &[
    Column::new("trace", "trace", Style::Text),
    Column::new("policy", "policy", Style::Text),
    Column::new("cache_pages", "cache pages", Style::Count),
    Column::new("requests", "requests", Style::Count),
    Column::new("misses", "misses", Style::Count),
    Column::new("hit_ratio", "hits", Style::Percent),
    Column::new("miss_ratio", "miss ratio", Style::Decimals(6)),
    Column::new("read_misses", "read misses", Style::Count),
    Column::new("write_misses", "write misses", Style::Count),
    Column::new("physical_reads", "physical reads", Style::Count),
    Column::new("physical_writes", "physical writes", Style::Count),
    Column::new("dirty_pages_at_end", "dirty at end", Style::Count),
    Column::new("bytes_per_page", "bytes/page", Style::Decimals(1)),
    Column::new("seconds", "time", Style::Seconds),
    Column::new("cache_size", "asked for", Style::Text),
];

/// Rows of a replay on a simulated device: `tantalum replay TRACE --device ...`. The first columns are those of
/// [`CACHE_REPLAY`] that apply here.
pub const DEVICE_REPLAY: &[Column] = &[
    Column::new("trace", "trace", Style::Text),
    Column::new("device", "device", Style::Text),
    Column::new("trace_pages", "trace pages", Style::Count),
    Column::new("device_pages", "device pages", Style::Count),
    Column::new("policy", "policy", Style::Text),
    Column::new("cache_pages", "cache pages", Style::Count),
    Column::new("clients", "clients", Style::Count),
    Column::new("requests", "requests", Style::Count),
    Column::new("misses", "misses", Style::Count),
    Column::new("physical_reads", "flash reads", Style::Count),
    Column::new("physical_writes", "flash writes", Style::Count),
    Column::new("seconds", "virtual time", Style::Seconds),
    Column::new("requests_per_s", "requests/s", Style::Short),
    Column::new("read_p50_ns", "read p50", Style::DurationNs),
    Column::new("read_p99_ns", "read p99", Style::DurationNs),
    Column::new("read_max_ns", "read max", Style::DurationNs),
    Column::new("write_p50_ns", "write p50", Style::DurationNs),
    Column::new("write_p99_ns", "write p99", Style::DurationNs),
    Column::new("write_max_ns", "write max", Style::DurationNs),
    Column::new("trim_p50_ns", "trim p50", Style::DurationNs),
    Column::new("trim_p99_ns", "trim p99", Style::DurationNs),
    Column::new("trim_max_ns", "trim max", Style::DurationNs),
    Column::new("commits", "commits", Style::Count),
    Column::new("commit_p50_ns", "commit p50", Style::DurationNs),
    Column::new("commit_p99_ns", "commit p99", Style::DurationNs),
    Column::new("commit_max_ns", "commit max", Style::DurationNs),
    Column::new("transactions", "transactions", Style::Count),
    Column::new("transactions_split", "split", Style::Count),
    Column::new("flushes", "flushes", Style::Count),
    Column::new("write_amplification", "WA", Style::Decimals(2)),
    Column::new("erases", "erases", Style::Count),
    Column::new("zones_cleaned", "cleaned", Style::Count),
    Column::new("pages_moved", "moved", Style::Count),
    Column::new("dump_bytes_max", "most to dump", Style::Bytes),
    Column::new("dump_budget_bytes", "energy", Style::Bytes),
    Column::new("delta_pages", "delta pages", Style::Count),
];

/// Rows of a replay through a buffer over simulated devices:
/// `tantalum replay TRACE --policy ... --size ... --device ...`. The first columns are those of [`CACHE_REPLAY`] and
/// [`DEVICE_REPLAY`] that apply here.
pub const BUFFER_REPLAY: &[Column] = &[
    Column::new("trace", "trace", Style::Text),
    Column::new("policy", "policy", Style::Text),
    Column::new("cache_pages", "buffer pages", Style::Count),
    Column::new("device", "device", Style::Text),
    Column::new("trace_pages", "trace pages", Style::Count),
    Column::new("device_pages", "device pages", Style::Count),
    Column::new("clients", "clients", Style::Count),
    Column::new("cpu_ns", "CPU", Style::DurationNs),
    Column::new("page_bytes", "page", Style::Bytes),
    Column::new("requests", "requests", Style::Count),
    Column::new("misses", "misses", Style::Count),
    Column::new("hit_ratio", "hits", Style::Percent),
    Column::new("physical_reads", "physical reads", Style::Count),
    Column::new("physical_writes", "physical writes", Style::Count),
    Column::new("dirty_pages_at_end", "dirty at end", Style::Count),
    Column::new("cluster_switches", "cluster switches", Style::Count),
    Column::new("cluster_switch_factor", "CSF", Style::Decimals(3)),
    Column::new("seconds", "virtual time", Style::Seconds),
    Column::new("requests_per_s", "requests/s", Style::Short),
    Column::new("device_busy_seconds", "device busy", Style::Seconds),
    Column::new("read_mean_ns", "read mean", Style::DurationNs),
    Column::new("write_mean_ns", "write mean", Style::DurationNs),
    Column::new("cache_size", "asked for", Style::Text),
];

/// Rows of a replay through a buffer pool and a flash cache over a home: `tantalum replay TRACE --policy ...
/// --size ... --tier ... --tier-size ...`.
pub const TIER_REPLAY: &[Column] = &[
    Column::new("trace", "trace", Style::Text),
    Column::new("policy", "policy", Style::Text),
    Column::new("cache_pages", "buffer pages", Style::Count),
    Column::new("tier", "middle tier", Style::Text),
    Column::new("tier_pages", "flash pages", Style::Count),
    Column::new("requests", "requests", Style::Count),
    Column::new("misses", "misses", Style::Count),
    Column::new("tier_reads", "reads", Style::Count),
    Column::new("tier_writes", "writes", Style::Count),
    Column::new("tier_hit_ratio", "hits", Style::Percent),
    Column::new("flash_reads", "flash reads", Style::Count),
    Column::new("flash_writes", "flash writes", Style::Count),
    Column::new("pages_moved", "moved", Style::Count),
    Column::new("erases", "erases", Style::Count),
    Column::new("disk_reads", "disk reads", Style::Count),
    Column::new("disk_writes", "disk writes", Style::Count),
    Column::new("seeks", "seeks", Style::Count),
    Column::new("seconds", "virtual time", Style::Seconds),
    Column::new("collection_seconds", "collection", Style::Seconds),
    Column::new("disk_seconds", "disk", Style::Seconds),
    Column::new("cache_size", "asked for", Style::Text),
    Column::new("tier_size", "flash asked for", Style::Text),
];

/// Rows of `tantalum advise`: one per size and policy.
pub const ADVISE: &[Column] = &[
    Column::new("trace", "trace", Style::Text),
    Column::new("device", "device", Style::Text),
    Column::new("policy", "policy", Style::Text),
    Column::new("cache_pages", "cache pages", Style::Count),
    Column::new("requests", "requests", Style::Count),
    Column::new("physical_reads", "physical reads", Style::Count),
    Column::new("physical_writes", "physical writes", Style::Count),
    Column::new("estimated_seconds", "estimate", Style::Seconds),
    Column::new("seconds", "on the device", Style::Seconds),
    Column::new("verdict", "verdict", Style::Text),
    Column::new("cache_size", "asked for", Style::Text),
    Column::new("monthly_price", "price a month", Style::Figures),
];

/// Rows of `tantalum crash`: one per device and medium.
pub const CRASH: &[Column] = &[
    Column::new("device", "device", Style::Text),
    Column::new("media", "media", Style::Text),
    Column::new("lives", "lives", Style::Count),
    Column::new("cuts", "cuts", Style::Count),
    Column::new("cuts_in_recovery", "in recovery", Style::Count),
    Column::new("commands", "commands", Style::Count),
    Column::new("zones_cleaned", "cleaned", Style::Count),
    Column::new("checkpoints", "checkpoints", Style::Count),
    Column::new("pages_spilled", "spilled", Style::Count),
    Column::new("slots_decayed", "decayed", Style::Count),
    Column::new("openings_refused", "refused", Style::Count),
    Column::new("io_errors", "I/O errors", Style::Count),
    Column::new("homes_rescued", "rescued", Style::Count),
    Column::new("violations", "violations", Style::Count),
    Column::new("undecided", "undecided", Style::Count),
    Column::new("cuts_per_minute", "cuts/min", Style::Count),
];

/// The violations that `tantalum crash` found.
pub const CRASH_VIOLATIONS: &[Column] = &[
    Column::new("device", "device", Style::Text),
    Column::new("media", "media", Style::Text),
    Column::new("seed", "seed", Style::Count),
    Column::new("violation", "violation", Style::Text),
    Column::new("replay", "replay", Style::Text),
    Column::new("commands", "commands", Style::Count),
    Column::new("commands_before", "before", Style::Count),
    Column::new("after_cuts", "after cuts", Style::Count),
];

/// Rows of `tantalum repro`: a number from a paper, and the one measured here.
pub const REPRO: &[Column] = &[
    Column::new("figure", "figure", Style::Text),
    Column::new("case", "case", Style::Text),
    Column::new("metric", "metric", Style::Text),
    Column::new("unit", "unit", Style::Text),
    Column::new("paper", "paper", Style::Figures),
    Column::new("measured", "measured", Style::Figures),
    Column::new("ratio", "measured/paper", Style::Decimals(3)),
    Column::new("calibrated", "calibrated", Style::Text),
    Column::new("experiment", "experiment", Style::Text),
    Column::new("panel", "panel", Style::Text),
    Column::new("series", "series", Style::Text),
    Column::new("axis", "axis", Style::Text),
    Column::new("x", "x", Style::Figures),
];

/// The papers' other statements about their figures, and the findings of `tantalum repro`.
pub const REPRO_SHAPES: &[Column] = &[
    Column::new("experiment", "experiment", Style::Text),
    Column::new("figure", "figure", Style::Text),
    Column::new("shape", "statement of the paper", Style::Text),
    Column::new("expected", "expected", Style::Text),
    Column::new("numbers", "measured", Style::Text),
    Column::new("holds", "holds", Style::Text),
    Column::new("known_to_differ", "known to differ", Style::Text),
    Column::new("measured", "measured, as numbers", Style::Text),
    Column::new("relation", "relation", Style::Text),
    Column::new("least", "least", Style::Figures),
    Column::new("most", "most", Style::Figures),
];

/// Those of them that repeat others for programs, and that people do not see.
pub const REPRO_SHAPES_OF_PROGRAMS: [&str; 4] = ["measured", "relation", "least", "most"];

/// The statements for which `tantalum repro --quick` found another result than the known one.
pub const REPRO_SURPRISES: &[Column] = &[
    Column::new("experiment", "experiment", Style::Text),
    Column::new("figure", "figure", Style::Text),
    Column::new("shape", "statement of the paper", Style::Text),
    Column::new("why", "problem", Style::Text),
];

/// Rows of `tantalum trace stat` over pages: one, and optionally one per volume.
pub const PAGE_STAT: &[Column] = &[
    Column::new("trace", "trace", Style::Text),
    Column::new("volume", "volume", Style::Text),
    Column::new("requests", "pages asked for", Style::Count),
    Column::new("reads", "reads", Style::Count),
    Column::new("writes", "writes", Style::Count),
    Column::new("commits", "commits", Style::Count),
    Column::new("trims", "trims", Style::Count),
    Column::new("write_share", "write share", Style::Percent),
    Column::new("distinct_pages", "distinct pages", Style::Count),
    Column::new("written_pages", "written pages", Style::Count),
    Column::new("max_page", "max page", Style::Count),
    Column::new("reuse_share", "re-used", Style::Percent),
    Column::new("reuse_distance_p50", "re-use p50", Style::Count),
    Column::new("reuse_distance_p90", "re-use p90", Style::Count),
    Column::new("sequential_share", "sequential", Style::Percent),
    Column::new("hottest_20_share", "hottest 20 %", Style::Percent),
    Column::new("working_set_pages", "working set", Style::Count),
];

/// Rows of `tantalum curve`: one per cache size.
pub const CURVE: &[Column] = &[
    Column::new("trace", "trace", Style::Text),
    Column::new("policy", "policy", Style::Text),
    Column::new("cache_pages", "cache pages", Style::Count),
    Column::new("requests", "requests", Style::Count),
    Column::new("misses", "misses", Style::Count),
    Column::new("hit_ratio", "hits", Style::Percent),
    Column::new("miss_ratio", "miss ratio", Style::Decimals(6)),
    Column::new("read_misses", "read misses", Style::Count),
    Column::new("write_misses", "write misses", Style::Count),
    Column::new("physical_reads", "physical reads", Style::Count),
    Column::new("physical_writes", "physical writes", Style::Count),
    Column::new("dirty_pages_at_end", "dirty at end", Style::Count),
    Column::new("miss_ratio_error", "+-", Style::Decimals(6)),
    Column::new("sample_rate", "sampled", Style::Percent),
    Column::new("sampled_requests", "sampled requests", Style::Count),
    Column::new("cache_size", "asked for", Style::Text),
];

/// Rows of `tantalum trace stat` over a block trace: one per kind of file and operation.
pub const BLOCK_STAT: &[Column] = &[
    Column::new("trace", "trace", Style::Text),
    Column::new("file_kind", "file kind", Style::Text),
    Column::new("op", "op", Style::Text),
    Column::new("calls", "calls", Style::Count),
    Column::new("bytes", "bytes", Style::Bytes),
];

/// The only row of `tantalum stat`.
pub const VOLUME_STAT: &[Column] = &[
    Column::new("volume", "volume", Style::Text),
    Column::new("identity", "identity", Style::Text),
    Column::new("durability", "durability", Style::Text),
    Column::new("capacity_bytes", "capacity", Style::Bytes),
    Column::new("mapped_bytes", "mapped", Style::Bytes),
    Column::new("store_bytes", "store", Style::Bytes),
    Column::new("live_bytes", "live", Style::Bytes),
    Column::new("dead_bytes", "dead", Style::Bytes),
    Column::new("zone_bytes", "zone", Style::Bytes),
    Column::new("zones", "zones", Style::Count),
    Column::new("zones_free", "free", Style::Count),
    Column::new("zones_reserve", "reserve", Style::Count),
    Column::new("zones_retired", "retired", Style::Count),
    Column::new("zone_resets_min", "resets min", Style::Count),
    Column::new("zone_resets_max", "resets max", Style::Count),
    Column::new("mapping_bytes", "mapping", Style::Bytes),
    Column::new("shared_slots", "shared slots", Style::Count),
    Column::new("shared_entries", "share entries", Style::Count),
    Column::new("shared_bytes", "share table", Style::Bytes),
    Column::new("atomic_write_pages_max", "atomic write pages max", Style::Count),
    Column::new("share_pairs_max", "share pages max", Style::Count),
    Column::new("transaction_pages_max", "tx pages max", Style::Count),
    Column::new("buffer_bytes", "buffer", Style::Bytes),
    Column::new("buffer_policy", "policy", Style::Text),
    Column::new("kind", "kind", Style::Text),
    Column::new("clean_bytes", "clean", Style::Bytes),
    Column::new("dirty_bytes", "dirty", Style::Bytes),
    Column::new("epoch_at_home", "epoch", Style::Count),
    Column::new("destage_waits_for_pages", "destage waits for", Style::Count),
    Column::new("destage_waits_for_first", "first page", Style::Count),
    Column::new("replayed_at_open", "replayed", Style::Count),
    Column::new("dropped_at_open", "dropped", Style::Count),
    Column::new("pages_lost", "lost", Style::Count),
    Column::new("durability_over_nbd", "over NBD", Style::Text),
    Column::new("nbd_tls", "TLS", Style::Text),
    Column::new("nbd_connections", "NBD clients", Style::Count),
    Column::new("nbd_tls_connections", "in TLS", Style::Count),
    Column::new("holds", "holds", Style::Text),
    Column::new("open_by", "open by", Style::Text),
    Column::new("open_by_pid", "pid", Style::Count),
    Column::new("open_seconds", "open for", Style::Seconds),
    Column::new("told_seconds_ago", "age of counters", Style::Seconds),
    Column::new("program_read_bytes", "read", Style::Bytes),
    Column::new("program_written_bytes", "written", Style::Bytes),
    Column::new("program_transactions", "transactions", Style::Count),
    Column::new("program_open_transactions", "open transactions", Style::Count),
    Column::new("uncommitted_bytes", "uncommitted", Style::Bytes),
];

/// The only row of `tantalum stat` of a home.
pub const HOME_CLAIM: &[Column] = &[
    Column::new("path", "path", Style::Text),
    Column::new("identity", "identity", Style::Text),
    Column::new("home_bytes", "home bytes", Style::Bytes),
    Column::new("journal", "journal", Style::Text),
    Column::new("claimed_as", "claimed as", Style::Text),
    Column::new("says", "says", Style::Text),
];

/// Zones of a volume by their live share: `zone_fill` of `tantalum stat`.
pub const ZONE_FILL: &[Column] = &[
    Column::new("live_percent_max", "live, up to", Style::Text),
    Column::new("zones", "zones", Style::Count),
];

/// Zones of a volume by the number of their resets: `zone_wear` of `tantalum stat`.
pub const ZONE_WEAR: &[Column] = &[
    Column::new("resets_min", "resets from", Style::Count),
    Column::new("resets_max", "to", Style::Count),
    Column::new("zones", "zones", Style::Count),
];

/// The problems that `tantalum check` found, on its page.
pub const CHECK: &[Column] = &[
    Column::new("place", "where", Style::Text),
    Column::new("problem", "problem", Style::Text),
    Column::new("in_force", "in force", Style::Text),
];

/// The parts that `tantalum check` checked, on its page.
pub const CHECKED: &[Column] = &[
    Column::new("part", "checked", Style::Text),
    Column::new("extent", "extent", Style::Text),
    Column::new("problems", "problems", Style::Count),
];

/// The fields of one interval in `tantalum top`. A field that the server does not report is null.
pub const TOP: &[Column] = &[
    Column::new("uptime_seconds", "up", Style::Seconds),
    Column::new("interval_seconds", "interval", Style::Seconds),
    Column::new("reads_per_second", "reads/s", Style::Figures),
    Column::new("read_bytes_per_second", "read bytes/s", Style::Bytes),
    Column::new("read_p50_seconds", "read p50", Style::Seconds),
    Column::new("read_p95_seconds", "read p95", Style::Seconds),
    Column::new("read_p99_seconds", "read p99", Style::Seconds),
    Column::new("read_p999_seconds", "read p99.9", Style::Seconds),
    Column::new("writes_per_second", "writes/s", Style::Figures),
    Column::new("write_bytes_per_second", "write bytes/s", Style::Bytes),
    Column::new("write_p50_seconds", "write p50", Style::Seconds),
    Column::new("write_p95_seconds", "write p95", Style::Seconds),
    Column::new("write_p99_seconds", "write p99", Style::Seconds),
    Column::new("write_p999_seconds", "write p99.9", Style::Seconds),
    Column::new("flushes_per_second", "flushes/s", Style::Figures),
    Column::new("flush_p50_seconds", "flush p50", Style::Seconds),
    Column::new("flush_p95_seconds", "flush p95", Style::Seconds),
    Column::new("flush_p99_seconds", "flush p99", Style::Seconds),
    Column::new("flush_p999_seconds", "flush p99.9", Style::Seconds),
    Column::new("trims_per_second", "trims/s", Style::Figures),
    Column::new("trim_bytes_per_second", "trim bytes/s", Style::Bytes),
    Column::new("trim_p50_seconds", "trim p50", Style::Seconds),
    Column::new("trim_p95_seconds", "trim p95", Style::Seconds),
    Column::new("trim_p99_seconds", "trim p99", Style::Seconds),
    Column::new("trim_p999_seconds", "trim p99.9", Style::Seconds),
    Column::new("write_zeroes_per_second", "write_zeroes/s", Style::Figures),
    Column::new("write_zeroes_bytes_per_second", "write_zeroes bytes/s", Style::Bytes),
    Column::new("write_zeroes_p50_seconds", "write_zeroes p50", Style::Seconds),
    Column::new("write_zeroes_p95_seconds", "write_zeroes p95", Style::Seconds),
    Column::new("write_zeroes_p99_seconds", "write_zeroes p99", Style::Seconds),
    Column::new("write_zeroes_p999_seconds", "write_zeroes p99.9", Style::Seconds),
    Column::new("connections", "connections", Style::Count),
    Column::new("nbd_tls", "TLS", Style::Text),
    Column::new("nbd_tls_connections", "in TLS", Style::Count),
    Column::new("requests_in_flight", "in flight", Style::Count),
    Column::new("held_bytes", "held", Style::Bytes),
    Column::new("errors", "errors", Style::Count),
    Column::new("media_errors", "media errors", Style::Count),
    Column::new("refused_requests", "refused", Style::Count),
    Column::new("program_failures", "failed programs", Style::Count),
    Column::new("latched", "latched", Style::Count),
    Column::new("buffer_hit_ratio", "buffer hits", Style::Percent),
    Column::new("write_cache_hit_ratio", "write cache hits", Style::Percent),
    Column::new("write_amplification", "write amplification", Style::Figures),
    Column::new("moved_pages_per_second", "moved pages/s", Style::Figures),
    Column::new("cleaned_zones_per_second", "cleaned zones/s", Style::Figures),
    Column::new("checkpoints_per_second", "checkpoints/s", Style::Figures),
    Column::new("zones", "zones", Style::Count),
    Column::new("free_zones", "free zones", Style::Count),
    Column::new("retired_zones", "retired zones", Style::Count),
    Column::new("unreadable_pages", "unreadable pages", Style::Count),
    Column::new("mapped_bytes", "mapped", Style::Bytes),
    Column::new("capacity_bytes", "capacity", Style::Bytes),
    Column::new("dump_bytes", "dump", Style::Bytes),
    Column::new("dump_budget_bytes", "dump budget", Style::Bytes),
    Column::new("cache_mode", "cache", Style::Text),
    Column::new("flash_hit_ratio", "flash hits", Style::Percent),
    Column::new("dirty_bytes", "dirty", Style::Bytes),
    Column::new("destage_lag_seconds", "home behind by", Style::Seconds),
    Column::new("destage_unreadable_pages", "unreadable", Style::Count),
    Column::new("home_reads_per_second", "home reads/s", Style::Figures),
    Column::new("home_writes_per_second", "home writes/s", Style::Figures),
    Column::new("home_written_pages_per_second", "pages home/s", Style::Figures),
    Column::new("home_errors", "home errors", Style::Count),
    Column::new("home_failing", "home fails", Style::Count),
    Column::new("disk_reads_per_second", "disk reads/s", Style::Figures),
    Column::new("disk_writes_per_second", "disk writes/s", Style::Figures),
    Column::new("buffer_hit_ratio_since_start", "buffer hits in all", Style::Percent),
    Column::new("write_cache_hit_ratio_since_start", "write cache hits in all", Style::Percent),
    Column::new("flash_hit_ratio_since_start", "flash hits in all", Style::Percent),
    Column::new("transactions_per_second", "transactions/s", Style::Figures),
    Column::new("open_transactions", "open transactions", Style::Count),
    Column::new("uncommitted_bytes", "uncommitted", Style::Bytes),
];
