//! The shape of the paper's figures, on devices and traces of a small part of the size.
use super::devices::{Device, measure};
use super::sensitivity::LARGE_PAGES;
use super::*;
use tantalum_models::tx_cache::HeaderRelease;

fn nothing(_: &str) {}

#[test]
fn recovery_takes_as_long_as_what_it_must_read() {
    let setup = Setup::new(Scale::Small, 1).unwrap();
    let rows = recovery::run(&setup, &mut nothing).unwrap();
    let of = |name: &str| rows.iter().find(|row| row.case.starts_with(name)).unwrap().measured;
    let (serves, home) =
        (of("WAL, log of 4 MiB, until it serves"), of("WAL, log of 4 MiB, until all"));
    let (tx_flash, tx_cache) = (of("TxFlash"), of("TxCache, 16 transactions, scan of 512"));
    let few = of("TxCache, 16 transactions, scan of 128 headers");
    // Table III has 64, 6957 and 0.019 ms; here log and drive are an eighth and a fiftieth.
    assert!((0.0005..0.1).contains(&tx_cache), "TxCache {tx_cache} ms");
    // The log's 1,024 pages of 4,096 bytes cross 8 channels of 40 MB/s once until it serves, and twice more until all is home.
    let channels_ms = 1_024.0 * 4_096.0 / (8.0 * 40e6) * 1e3;
    let crossings = |ms: f64| ms / channels_ms;
    assert!((1.0..1.3).contains(&crossings(serves)), "WAL {serves} ms");
    assert!((1.9..4.5).contains(&crossings(home)), "WAL {serves} ms, then {home} ms");
    assert!(serves > 10.0 * few && serves > tx_cache && tx_flash > serves, "WAL {serves} ms");
    assert!((30.0..500.0).contains(&tx_flash), "TxFlash {tx_flash} ms");
    assert!(of("TxCache, 16 transactions, indexes") > tx_cache);
    // One more header is one more access.
    assert!((tx_cache - few - 384.0 * 0.000_15).abs() < 1e-9, "{few} and {tx_cache} ms");
}

#[test]
fn a_larger_log_or_cache_writes_less() {
    let setup = Setup::new(Scale::Small, 1).unwrap();
    let programmed = |device| measure(device, &setup.sizes, setup.tpcc()).unwrap().pages_programmed;
    let pages = setup.cache_pages;
    let cache = |pages| Device::TxCache(pages, HeaderRelease::WrittenBack);
    assert!(programmed(Device::Wal(4 * pages)) < programmed(Device::Wal(pages)));
    assert!(programmed(cache(4 * pages)) < 0.8 * programmed(cache(pages)));
}

#[test]
fn the_same_seed_measures_the_same() {
    let measured = |seed| {
        let setup = Setup::new(Scale::Small, seed).unwrap();
        let device = Device::TxCache(setup.cache_pages, HeaderRelease::WrittenBack);
        format!("{:?}", measure(device, &setup.sizes, setup.tpcc()).unwrap())
    };
    assert_eq!(measured(5), measured(5));
    assert_ne!(measured(5), measured(6));
}

/// Takes some minutes: runs the same as `tantalum repro txcache`.
#[test]
fn the_whole_size_has_the_shape_of_the_paper() {
    if std::env::var_os("TANTALUM_NIGHTLY").is_none() {
        return;
    }
    let mut rows = Vec::new();
    run(Scale::Full, 1, &mut nothing, &mut rows).unwrap();
    for row in &rows {
        println!(
            "{:10} {:44} {:20} {:?} {:.3}",
            row.figure, row.case, row.metric, row.paper, row.measured
        );
    }
    let of = |case: &str, metric: &str| {
        let row = rows.iter().find(|row| row.case.starts_with(case) && row.metric == metric);
        row.unwrap_or_else(|| panic!("{case}, {metric}")).measured
    };
    for rule in ["TxCache below", "TxCache, headers until mapped, below"] {
        let penalty = of(&format!("largest penalty, {rule}"), "throughput penalty");
        assert!(penalty < 4.5, "{rule}: {penalty} %");
    }
    for trace in ["varmail", "TPC-C"] {
        assert!(of(&format!("{trace}, TxCache over WAL"), "throughput gain") > 50.0);
        assert!(of(&format!("{trace}, TxCache over TxFlash"), "throughput gain") > 40.0);
    }
    // The paper has 20.5 % for webproxy.
    for trace in ["fileserver", "webproxy"] {
        assert!(of(&format!("{trace}, TxCache over TxFlash"), "throughput gain").abs() < 10.0);
    }
    for trace in TRACES {
        let fast = format!("{trace}, TxCache over TxFlash, link of 2147 MB/s");
        assert!(of(&fast, "throughput gain") > 0.0, "{trace}");
        let fast = format!("{trace}, TxCache below NVCache, link of 2147 MB/s");
        // Nothing hides the time of start and commit of varmail's small transactions.
        assert!(of(&fast, "throughput penalty") < 8.0, "{trace}");
    }
    // The paper has 0.019, 64 and 6,957 ms.
    assert!(
        (0.019..0.038).contains(&of("TxCache, 128 transactions, scan of 128", "recovery time"))
    );
    assert!((64.0..128.0).contains(&of("WAL, log of 32 MiB, until it", "recovery time")));
    assert!((128.0..400.0).contains(&of("WAL, log of 32 MiB, until all", "recovery time")));
    assert!((1_000.0..20_000.0).contains(&of("TxFlash, scan", "recovery time")));
    compare_with_the_page(&rows);
}

/// Compares every line of the tables of `docs/devices/txssd.md` with these rows.
fn compare_with_the_page(rows: &[Row]) {
    let page = include_str!("../../../../docs/devices/txssd.md");
    let lines = lines_of_the_page(rows);
    for line in &lines {
        println!("{line}");
    }
    let missing: Vec<&String> =
        lines.iter().filter(|line| !page.lines().any(|of_page| of_page == **line)).collect();
    assert!(missing.is_empty(), "docs/devices/txssd.md lacks {missing:#?}");
}

const TRACES: [&str; 4] = ["fileserver", "varmail", "webproxy", "TPC-C"];

/// Gains, penalty and rate of each file-system trace, with one column per host time; the paper's number first.
fn lines_by_host_time(rows: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    for trace in &TRACES[..3] {
        for (name, what, metric) in [
            ("over WAL", "TxCache over WAL", "throughput gain"),
            ("over TxFlash", "TxCache over TxFlash", "throughput gain"),
            ("penalty", "TxCache below NVCache", "throughput penalty"),
            ("TxCache", "TxCache", "throughput"),
        ] {
            let find = |case: String| {
                let is_it = |row: &&Row| {
                    row.figure == "Figure 4" && row.case == case && row.metric == metric
                };
                rows.iter().find(is_it).unwrap()
            };
            let paper = find(format!("{trace}, {what}")).paper;
            let paper = paper.map_or_else(String::new, |paper| paper.to_string());
            let cells = host_time::TIMES_MS.map(|time_ms| {
                format!("{:.1}", find(format!("{trace}, host {time_ms} ms, {what}")).measured)
            });
            lines.push(format!("| {trace}, {name} | {paper} | {} |", cells.join(" | ")));
        }
    }
    lines
}

fn lines_of_the_page(rows: &[Row]) -> Vec<String> {
    let find = |figure: &str, case: String, metric: &str| {
        let same = |row: &&Row| row.figure == figure && row.case == case && row.metric == metric;
        rows.iter().find(same)
    };
    let percent = |figure: &str, case: String, metric: &str| {
        let row = find(figure, case, metric).unwrap();
        match row.paper {
            Some(paper) => format!("{:.1} ({paper})", row.measured),
            None => format!("{:.1}", row.measured),
        }
    };
    let number = |figure: &str, case: String, metric: &str, decimals: usize| {
        find(figure, case, metric)
            .map_or_else(|| "none".into(), |row| format!("{:.decimals$}", row.measured))
    };
    let parts = |figure: &str, case: String| {
        find(figure, case, "parts").map_or(String::new(), |row| format!(" in {:.1}", row.measured))
    };
    let mut lines = Vec::new();
    let below = |case: &str, name: &str| {
        percent("Figure 4", format!("{case}, {name} below NVCache"), "throughput penalty")
    };
    for trace in TRACES {
        let over =
            |name| percent("Figure 4", format!("{trace}, TxCache over {name}"), "throughput gain");
        let saved = |name| {
            percent("Figure 5", format!("{trace}, TxCache below {name}"), "write size saved")
        };
        let (wal, flash) = ("WAL", "TxFlash");
        let cells = [over(wal), over(flash), saved(wal), saved(flash)];
        let penalties = [below(trace, "TxCache"), below(trace, "TxCache, headers until mapped,")];
        lines.push(format!("| {trace} | {} | {} |", cells.join(" | "), penalties.join(" | ")));
    }
    for case in ["largest penalty", "mean penalty"] {
        let penalties = [below(case, "TxCache"), below(case, "TxCache, headers until mapped,")];
        lines.push(format!("| {case} | | | | | {} |", penalties.join(" | ")));
    }
    for trace in TRACES {
        let devices = [
            "WAL",
            "WAL, record apart",
            "TxFlash",
            "TxCache",
            "TxCache, headers until mapped",
            "NVCache",
        ];
        let cells = devices.map(|device| {
            let case = || format!("{trace}, {device}");
            let rate = number("Figure 4", case(), "throughput", 1);
            let writes = number("Figure 5", case(), "flash writes", 0);
            format!("{rate}{}, {writes}", parts("Figure 4", case()))
        });
        lines.push(format!("| {trace} | {} |", cells.join(" | ")));
    }
    for trace in TRACES {
        for device in ["WAL", "TxCache"] {
            let cells = [16, 32, 64, 128, 256].map(|mib| {
                let case = || format!("{trace}, {device}, {mib} MiB");
                let rate = number("Figure 6", case(), "throughput", 1);
                let erased = number("Figure 7", case(), "erased", 0);
                format!("{rate}{}, {erased}", parts("Figure 6", case()))
            });
            lines.push(format!("| {trace}, {device} | {} |", cells.join(" | ")));
        }
    }
    for trace in TRACES {
        let link = |what: &str| format!("{trace}, {what}, link of 2147 MB/s");
        let gain =
            |name| percent("Figure 4", link(&format!("TxCache over {name}")), "throughput gain");
        let penalty = percent("Figure 4", link("TxCache below NVCache"), "throughput penalty");
        let rates = [16, 32, 256]
            .map(|mib| number("Figure 6", link(&format!("TxCache, {mib} MiB")), "throughput", 1));
        let (wal, flash) = (gain("WAL"), gain("TxFlash"));
        lines.push(format!("| {trace} | {wal} | {flash} | {penalty} | {} |", rates.join(" | ")));
    }
    let host = |what: &str| format!("TPC-C, with the host's time, {what}");
    let cells = [
        percent("Figure 4", host("TxCache over WAL"), "throughput gain"),
        percent("Figure 4", host("TxCache over TxFlash"), "throughput gain"),
        percent("Figure 4", host("TxCache below NVCache"), "throughput penalty"),
        number("Figure 4", host("TxCache"), "throughput", 1),
    ];
    lines.push(format!("| TPC-C, with the host's time | {} |", cells.join(" | ")));
    lines.extend(lines_by_host_time(rows));
    for pages in LARGE_PAGES {
        let cells = ["WAL", "TxFlash", "TxCache", "NVCache"].map(|device| {
            let case = || format!("fileserver, up to {pages} pages, {device}");
            let writes = number("Figure 5", case(), "flash writes", 0);
            let rate = number("Figure 4", case(), "throughput", 1);
            format!("{rate}{}, {writes}", parts("Figure 4", case()))
        });
        lines.push(format!("| up to {pages} pages | {} |", cells.join(" | ")));
    }
    for row in rows.iter().filter(|row| row.figure == "Table III") {
        let decimals = if row.measured < 1.0 { 3 } else { 1 };
        let paper = row.paper.map_or_else(String::new, |paper| paper.to_string());
        lines.push(format!("| {} | {:.decimals$} | {paper} |", row.case, row.measured));
    }
    lines
}
