//! The text of `tantalum stat`: the fields in groups, each with a short explanation. Rows without information are
//! omitted.
use tantalum_report::{Column, Table, Value};

/// A field: its key, its name in the text, and its explanation.
type Line = (&'static str, &'static str, &'static str);

const GROUPS: [(&str, &[Line]); 7] = [
    (
        "Volume",
        &[
            ("volume", "configuration", ""),
            ("identity", "identity", "random, chosen at creation"),
            ("kind", "kind", ""),
            ("holds", "holds", ""),
            ("open_by", "open by", ""),
            ("durability", "durability", "for programs that open it, and local clients"),
            ("durability_over_nbd", "over NBD", ""),
            ("nbd_tls", "TLS", "for NBD clients"),
            ("nbd_connections", "NBD clients", "connected now"),
            ("nbd_tls_connections", "of these in TLS", ""),
        ],
    ),
    (
        "Program",
        &[
            ("open_seconds", "open for", ""),
            ("told_seconds_ago", "published", "ago: the program publishes counters while it works"),
            ("program_read_bytes", "read", "from the volume"),
            ("program_written_bytes", "written", "to the volume"),
            ("program_transactions", "transactions", "committed"),
            (
                "uncommitted_bytes",
                "in progress",
                "written by transactions that are not committed yet",
            ),
        ],
    ),
    (
        "Space",
        &[
            ("capacity_bytes", "capacity", "as its users see it"),
            ("mapped_bytes", "written", "and not trimmed since"),
            ("store_bytes", "store", "the file or device below"),
            ("live_bytes", "live", "of the store: needed"),
            ("dead_bytes", "dead", "of the store: replaced, headers, padding"),
            ("zones", "zones", ""),
            ("zone_bytes", "zone size", ""),
            ("zones_free", "free zones", "ready to be written"),
            ("zones_reserve", "reserve", "of these, for cleaning and checkpoints"),
            ("shared_slots", "shared pages", "pages of the store that several pages share"),
        ],
    ),
    (
        "Cache",
        &[
            ("mapped_bytes", "in the flash", ""),
            ("dirty_bytes", "dirty", "newer than home"),
            ("clean_bytes", "clean", "the same as at home"),
            ("epoch_at_home", "epoch at home", ""),
            (
                "destage_waits_for_pages",
                "destage waits for",
                "pages that the flash cannot read now",
            ),
            ("destage_waits_for_first", "the first of them", ""),
        ],
    ),
    (
        "State",
        &[
            ("pages_lost", "lost pages", "they read as errors"),
            (
                "replayed_at_open",
                "replayed",
                "changes since the last checkpoint; 0 after a clean close",
            ),
            ("dropped_at_open", "dropped", "changes that were not whole"),
            ("zone_resets_min", "fewest resets", "of a zone"),
            ("zone_resets_max", "most resets", "of a zone"),
            ("zones_retired", "worn-out zones", "given up"),
        ],
    ),
    (
        "Memory",
        &[
            ("mapping_bytes", "mapping", "the table of the places of pages"),
            ("shared_bytes", "of it, shared", ""),
            ("buffer_bytes", "buffer", ""),
            ("buffer_policy", "buffer policy", ""),
        ],
    ),
    (
        "Limits",
        &[
            ("atomic_write_pages_max", "atomic write", "pages"),
            ("transaction_pages_max", "transaction", "pages"),
            ("share_pairs_max", "share", "pages"),
        ],
    ),
];

/// Fields that are omitted if they are 0.
const NOTHING_AT_ZERO: [&str; 6] = [
    "shared_slots",
    "shared_bytes",
    "share_pairs_max",
    "buffer_bytes",
    "zones_retired",
    "destage_waits_for_pages",
];

/// The only row of `table`, as text.
pub fn text(table: &Table) -> String {
    let mut text = String::new();
    for (heading, lines) in GROUPS {
        let shown: Vec<_> = lines.iter().filter_map(|line| shown(table, line)).collect();
        let width = shown.iter().map(|(value, _)| value.chars().count()).max().unwrap_or(0);
        if shown.is_empty() {
            continue;
        }
        text += &format!("{}{heading}\n", if text.is_empty() { "" } else { "\n" });
        for (value, (_, name, word)) in shown {
            text += format!("  {name:17}  {value:width$}  {word}").trim_end();
            text.push('\n');
        }
    }
    text + &held(table)
}

/// The value of a line, if it has one worth showing.
fn shown<'a>(table: &Table, line: &'a Line) -> Option<(String, &'a Line)> {
    let (column, value) = found(table, line.0)?;
    let is_zero = *value == Value::Count(0);
    let is_elsewhere = match line.1 {
        "written" if line.0 == "mapped_bytes" => is_tiered(table),
        "in the flash" | "clean" => !is_tiered(table),
        _ => false,
    };
    if is_elsewhere || is_zero && NOTHING_AT_ZERO.contains(&line.0) {
        return None;
    }
    let pid = found(table, "open_by_pid").filter(|_| line.0 == "open_by");
    let pid = pid.map_or(String::new(), |(_, pid)| format!(" (pid {})", pid.plain()));
    Some((column.show(value) + &pid, line))
}

/// A field, if it has a value.
fn found<'a>(table: &'a Table, key: &str) -> Option<(&'a Column, &'a Value)> {
    let at = table.index(key)?;
    let value = &table.rows().first()?[at];
    (!value.is_null()).then(|| (&table.columns()[at], value))
}

fn is_tiered(table: &Table) -> bool {
    found(table, "kind").is_some_and(|(_, kind)| kind.plain() == "tiered")
}

/// Explains why few fields are known: another program has the volume open, and cannot be queried.
fn held(table: &Table) -> String {
    if found(table, "mapped_bytes").is_some() {
        return String::new();
    }
    "\nOnly the program that has the volume open knows the rest, and it has published no counters \
     yet. stat can ask a server: `tantalum serve VOLUME.toml --socket` lets\nseveral programs use \
     the volume at once.\n"
        .into()
}
