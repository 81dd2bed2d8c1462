//! Statistics of small traces made by hand, and of the large ones compared with their makers' counts.
use tantalum_base::{PageNo, Result};
use tantalum_testing::found;
use tantalum_trace::{
    AnyReader, BlockOp, BlockStat, OpenOptions, PageEvent, PageStat, open, open_pages, shared,
};

#[test]
fn counts_by_hand() {
    let r = |page, pages| PageEvent::Read { page: PageNo(page), pages };
    let w = |page, pages| PageEvent::Write { page: PageNo(page), pages };
    let trim = PageEvent::Trim { page: PageNo(0), pages: 5 };
    let events = [r(10, 2), w(11, 1), PageEvent::Commit, r(11, 1), trim, w(11, 1), w(3, 1)];
    let stat = PageStat::of(events.map(Ok::<_, ()>)).unwrap();
    assert_eq!((stat.reads, stat.writes, stat.commits, stat.trims), (3, 3, 1, 5));
    assert_eq!((stat.distinct_pages(), stat.written_pages), (3, 2));
    assert_eq!(stat.max_page, Some(PageNo(11)));
    assert_eq!(stat.write_share(), 0.5);
    assert_eq!(stat.reuse_share(), 0.5);
    assert_eq!(stat.reuse_by_log2, [3]);
    // Requests: 10 11 11 11 11 3. Only the second follows its neighbour.
    assert_eq!((stat.sequential, stat.sequential_share()), (1, 1.0 / 6.0));
    // A third of three pages is one: page 11 with four of six requests.
    assert_eq!(stat.hottest_share(0.34), 4.0 / 6.0);
    // Pages in the working set after each request: 1, 2, 2, 2, 2, 3.
    assert_eq!(stat.working_set_pages(), 2.0);
    assert_eq!(PageStat::default().reuse_distance_at(0.5), None);
}

#[test]
fn a_page_leaves_the_working_set_after_its_window() {
    let window = tantalum_trace::stat::WORKING_SET_REQUESTS;
    // Page 0 once, then page 1 for two windows: two pages are in the set except during the last window.
    let read = |page| PageEvent::Read { page: PageNo(page), pages: 1 };
    let events = (0..=2 * window).map(|at| Ok::<_, ()>(read(u64::from(at > 0))));
    let stat = PageStat::of(events).unwrap();
    let expected = (1 + 2 * (window - 1) + window + 1) as f64 / (2 * window + 1) as f64;
    assert!((stat.working_set_pages() - expected).abs() < 1e-9, "{}", stat.working_set_pages());
}

#[test]
fn the_sample_has_the_counts_of_its_lines() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("samples/tpcc-pg-logical-6000.csv.zst");
    let stat = PageStat::of(open_pages(&path, &OpenOptions::default()).unwrap()).unwrap();
    assert_eq!((stat.reads, stat.writes, stat.commits), (4210, 1757, 33));
    assert_eq!(stat.distinct_pages(), 1469);
}

/// (trace, requests, commits, write share, distinct, written, max page), from the traces' README.
type Known = (&'static str, u64, u64, f64, u64, Option<u64>, u64);

const PAGE_TRACES: &[Known] = &[
    ("tpcc-pg-logical", 3_000_000, 14_340, 0.2569, 75_815, Some(67_241), 202_037),
    ("tpcc-pg-pool32", 3_000_000, 21_925, 0.2794, 88_329, Some(77_440), 221_493),
    ("tpcb-pg-logical", 1_500_000, 62_340, 0.2909, 58_688, Some(57_397), 151_952),
    ("tpcb-pg-pool32", 1_500_000, 186_228, 0.3848, 90_566, Some(89_651), 198_032),
    ("tpch-pg-logical", 4_812_525, 0, 0.0, 205_489, Some(1), 303_233),
    ("tpch-refresh-pg-logical", 3_500_000, 2_322, 0.1907, 222_771, Some(23_675), 323_713),
    ("tpch-pg-pool32", 2_690_477, 0, 0.0, 205_489, Some(0), 303_233),
];

#[test]
fn page_traces_have_the_counts_their_makers_state() -> Result<()> {
    for (name, requests, commits, write_share, distinct, written, max_page) in PAGE_TRACES {
        let Some(path) =
            found(shared::find(&format!("traces/databases/{name}.csv.zst")), "shared traces")
        else {
            return Ok(());
        };
        let stat = PageStat::of(open_pages(&path, &OpenOptions::default())?)?;
        assert_eq!((stat.requests(), stat.commits), (*requests, *commits), "{name}");
        assert_eq!(stat.distinct_pages(), *distinct, "{name}");
        assert_eq!(Some(stat.written_pages), *written, "{name}");
        assert_eq!(stat.max_page, Some(PageNo(*max_page)), "{name}");
        assert!((stat.write_share() - write_share).abs() <= 0.00005, "{name}");
    }
    Ok(())
}

/// (trace, records, [(kind, operation, calls)], [(kind, operation, bytes)]).
type KnownBlocks = (
    &'static str,
    u64,
    &'static [(&'static str, BlockOp, u64)],
    &'static [(&'static str, BlockOp, u64)],
);

use BlockOp::{Flush, Read, Truncate, Unlink, Write};

const BLOCK_TRACES: &[KnownBlocks] = &[
    (
        "innodb-sysbench-rw",
        1_286_484,
        &[
            ("data", Read, 698_240),
            ("data", Write, 386_037),
            ("data", Flush, 13_620),
            ("doublewrite", Write, 3_409),
            ("doublewrite", Flush, 3_409),
            ("redo", Write, 75_904),
            ("undo", Flush, 1_217),
        ],
        &[("data", Read, 11_439_964_160), ("doublewrite", Write, 6_370_181_120)],
    ),
    (
        "innodb-sysbench-rw-nodw",
        474_116,
        &[("data", Read, 260_835), ("redo", Flush, 28_281), ("sys", Read, 82)],
        &[("redo", Write, 281_993_216)],
    ),
    (
        "sqlite-oltp-delete",
        438_553,
        &[("journal", Write, 218_509), ("journal", Unlink, 16_448), ("dir", Flush, 16_448)],
        &[("db", Write, 256_634_880), ("journal", Write, 262_537_336)],
    ),
    (
        "sqlite-oltp-wal",
        193_233,
        &[("db", Truncate, 46), ("wal", Write, 94_007), ("wal", Flush, 16_541)],
        &[("wal", Read, 101_519_360), ("wal", Write, 193_559_104)],
    ),
];

#[test]
fn block_traces_have_the_counts_their_makers_state() -> Result<()> {
    for (name, records, calls, bytes) in BLOCK_TRACES {
        let Some(path) =
            found(shared::find(&format!("traces/databases/{name}.csv.zst")), "shared traces")
        else {
            return Ok(());
        };
        let AnyReader::Block(mut reader) = open(&path, &OpenOptions::default())? else {
            panic!("{name} was read as pages");
        };
        let mut stat = BlockStat::default();
        while let Some(event) = reader.next().transpose()? {
            stat.add(event);
        }
        assert_eq!(stat.records(), *records, "{name}");
        let count = |kind: &str, op| {
            let at = reader.names().iter().position(|name| name == kind).unwrap();
            stat.of(tantalum_trace::FileKind(at as u16), op)
        };
        for (kind, op, expected) in *calls {
            assert_eq!(count(kind, *op).calls, *expected, "{name}: {kind} {op:?}");
        }
        for (kind, op, expected) in *bytes {
            assert_eq!(count(kind, *op).bytes, *expected, "{name}: {kind} {op:?}");
        }
        // The whole trace fits the pages laid out for it.
        let pages = open_pages(&path, &OpenOptions::default())?;
        let stat = PageStat::of(pages)?;
        assert!(stat.requests() > 0 && stat.commits > 0);
    }
    Ok(())
}
