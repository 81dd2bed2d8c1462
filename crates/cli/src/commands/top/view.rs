//! The text of one interval. Fields without a value are omitted.
use tantalum_metrics::Scrape;
use tantalum_report::{Column, Table, Value};

/// Commands: the prefix of their fields, and the name of their requests.
const COMMANDS: [(&str, &str); 5] = [
    ("read", "reads"),
    ("write", "writes"),
    ("flush", "flushes"),
    ("trim", "trims"),
    ("write_zeroes", "write_zeroes"),
];

/// Lines below the commands: a heading, then words, each followed by its field.
const LINES: &[(&str, &[(&str, &str)])] = &[
    (
        "clients",
        &[
            ("connections", "connections"),
            ("in flight", "requests_in_flight"),
            ("holding", "held_bytes"),
            ("TLS", "nbd_tls"),
            ("in TLS", "nbd_tls_connections"),
        ],
    ),
    (
        "transactions",
        &[
            ("committed/s", "transactions_per_second"),
            ("open", "open_transactions"),
            ("written and not committed", "uncommitted_bytes"),
        ],
    ),
    (
        "errors",
        &[
            ("all", "errors"),
            ("of the media", "media_errors"),
            ("refused", "refused_requests"),
            ("failed programs", "program_failures"),
        ],
    ),
    ("hits", &[("buffer", "buffer_hit_ratio"), ("write cache", "write_cache_hit_ratio")]),
    (
        "writing",
        &[("amplification", "write_amplification"), ("checkpoints/s", "checkpoints_per_second")],
    ),
    (
        "cleaning",
        &[("zones/s", "cleaned_zones_per_second"), ("pages moved/s", "moved_pages_per_second")],
    ),
    (
        "zones",
        &[
            ("free", "free_zones"),
            ("of", "zones"),
            ("retired", "retired_zones"),
            ("unreadable pages", "unreadable_pages"),
        ],
    ),
    ("space", &[("mapped", "mapped_bytes"), ("of", "capacity_bytes")]),
    ("dump", &[("now", "dump_bytes"), ("energy for", "dump_budget_bytes")]),
    (
        "cache",
        &[("mode", "cache_mode"), ("flash hits", "flash_hit_ratio"), ("dirty", "dirty_bytes")],
    ),
    (
        "home",
        &[
            ("behind by", "destage_lag_seconds"),
            ("reads/s", "home_reads_per_second"),
            ("writes/s", "home_writes_per_second"),
            ("pages written/s", "home_written_pages_per_second"),
            ("errors", "home_errors"),
        ],
    ),
    (
        "since start",
        &[
            ("buffer hits", "buffer_hit_ratio_since_start"),
            ("write cache hits", "write_cache_hit_ratio_since_start"),
            ("flash hits", "flash_hit_ratio_since_start"),
        ],
    ),
    ("disk", &[("reads/s", "disk_reads_per_second"), ("writes/s", "disk_writes_per_second")]),
];

/// Fields by their names.
struct Row<'a>(&'a Table);

impl Row<'_> {
    fn value(&self, key: &str) -> Option<(&Column, &Value)> {
        let columns = self.0.columns().iter();
        let found = columns.zip(self.0.rows().first()?).find(|(column, _)| column.key == key);
        found.filter(|(_, value)| !value.is_null())
    }

    /// The value as text; a dash if there is none.
    fn shown(&self, key: &str) -> String {
        self.value(key).map_or("-".into(), |(column, value)| column.show(value))
    }
}

/// The lines for `table`, the fields of one interval of the server at `address`.
pub fn lines(address: &str, scrape: &Scrape, table: &Table) -> Vec<String> {
    let row = Row(table);
    let mut lines = vec![heading(address, scrape, &row), String::new()];
    if matches!(row.value("latched"), Some((_, Value::Count(1..)))) {
        lines.push("The log has failed: writes are refused until it is opened again.".into());
    }
    if matches!(row.value("home_failing"), Some((_, Value::Count(1..)))) {
        lines.push("The home fails: dirty pages stay in the flash, and are tried again.".into());
    }
    if matches!(row.value("destage_unreadable_pages"), Some((_, Value::Count(1..)))) {
        lines.push(
            "Dirty pages cannot be read from the flash: they stay there, and are tried again."
                .into(),
        );
    }
    lines.push(format!(
        "{:12}  {:>8}  {:>10}  {:>9}  {:>9}  {:>9}  {:>9}",
        "", "per s", "bytes/s", "p50", "p95", "p99", "p99.9"
    ));
    for (command, number) in COMMANDS {
        let key = if command == number { command } else { number };
        if row.value(&format!("{key}_per_second")).is_none() {
            continue;
        }
        let mut line = format!("{command:12}  {:>8}", row.shown(&format!("{key}_per_second")));
        line += &format!("  {:>10}", row.shown(&format!("{command}_bytes_per_second")));
        for percentile in ["p50", "p95", "p99", "p999"] {
            line += &format!("  {:>9}", row.shown(&format!("{command}_{percentile}_seconds")));
        }
        lines.push(line);
    }
    lines.push(String::new());
    for (heading, fields) in LINES {
        let shown = fields.iter().filter(|(_, key)| row.value(key).is_some());
        let shown: Vec<String> =
            shown.map(|(word, key)| format!("{word} {}", row.shown(key))).collect();
        if !shown.is_empty() {
            lines.push(format!("{heading:12}  {}", shown.join(", ")));
        }
    }
    lines
}

fn heading(address: &str, scrape: &Scrape, row: &Row<'_>) -> String {
    let label = |name| scrape.label("tantalum_device_info", name).unwrap_or("?");
    let mut heading = format!("{address}: {} ({})", label("device"), label("durability"));
    if let Some((_, Value::Real(seconds))) = row.value("uptime_seconds") {
        heading += &format!(", up {}", uptime(*seconds as u64));
    }
    // The first look, or a program that has published nothing since the last one: there is no rate to show.
    heading
        + &match row.value("interval_seconds") {
            Some(_) => format!(", over {}", row.shown("interval_seconds")),
            None => ", waiting for new counters".into(),
        }
}

/// `3 d 4 h`, `2 h 10 min`, `5 min 1 s`, `12 s`.
fn uptime(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (1.., ..) => format!("{days} d {} h", hours % 24),
        (_, 1.., _) => format!("{hours} h {} min", minutes % 60),
        (_, _, 1..) => format!("{minutes} min {} s", seconds % 60),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::fields;
    use super::*;
    use tantalum_report::schema;

    fn shown(more: &str) -> Vec<String> {
        let scrape = |seconds: u32, reads: u32| {
            let text = format!(
                "tantalum_device_info{{device=\"v.toml\",durability=\"on_ack\"}} 1\n\
                 tantalum_uptime_seconds {seconds}\n\
                 tantalum_nbd_requests_total{{command=\"read\"}} {reads}\n{more}"
            );
            Scrape::parse(&text).unwrap()
        };
        let (before, now) = (scrape(60, 0), scrape(62, 1000));
        lines("unix:/s", &now, &fields(Some(&before), &now))
    }

    #[test]
    fn what_is_not_told_is_not_shown() {
        let lines = shown("");
        assert_eq!(lines[0], "unix:/s: v.toml (on_ack), up 1 min 2 s, over 2.00 s");
        assert!(lines[3].starts_with("read               500           -"), "{}", lines[3]);
        assert_eq!(lines[4..], [""]);
        let with_zones = shown("tantalum_ftl_zones 9\ntantalum_ftl_free_zones 3\n");
        assert_eq!(with_zones.last().unwrap(), "zones         free 3, of 9");
    }

    #[test]
    fn without_new_counters_the_heading_says_so() {
        let scrape = Scrape::parse("tantalum_uptime_seconds 60\n").unwrap();
        for before in [None, Some(&scrape)] {
            let lines = lines("v.toml", &scrape, &fields(before, &scrape));
            assert!(lines[0].ends_with("up 1 min 0 s, waiting for new counters"), "{}", lines[0]);
        }
    }

    #[test]
    fn hits_are_told_of_the_interval_and_since_the_start() {
        let read = "tantalum_cache_read_pages_total 200\n";
        let lines = shown(&format!("tantalum_cache_hit_pages_total 150\n{read}"));
        assert_eq!(lines.last().unwrap(), "since start   flash hits 75.00 %");
        assert!(!shown(read).iter().any(|line| line.contains("since start")));
    }

    #[test]
    fn a_log_that_failed_is_told_before_all_else() {
        assert!(shown("tantalum_ftl_latched 1\n")[2].contains("writes are refused"));
        assert!(!shown("tantalum_ftl_latched 0\n")[2].contains("refused"));
    }

    #[test]
    fn the_lines_name_fields_that_there_are() {
        let known = |key: &str| schema::TOP.iter().any(|column| column.key == key);
        for (_, fields) in LINES {
            fields.iter().for_each(|(_, key)| assert!(known(key), "{key}"));
        }
        for (command, number) in COMMANDS {
            assert!(
                known(&format!("{number}_per_second")) && known(&format!("{command}_p50_seconds"))
            );
        }
    }
}
