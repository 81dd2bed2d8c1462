//! Databases whose pages are written in place, compared with a `BTreeMap`: cut on the worst devices that each durability allows,
//! under many clients, on a volume, live on a real file; in all forms.

use crate::clients::TREES;
use crate::histories::{
    Case, History, cut_everywhere, cut_in_every_form, cuts_notice, fail_once, nightly, nothing,
};
use crate::loads::{ROWS, created, key, options, put, run, value};
use crate::worst_disk::WorstDisk;
use std::cell::Cell;
use std::iter::StepBy;
use std::ops::Range;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{
    DeviceLayer, Durability, ErrorKind, PageBuf, PageDevice, PageNo, Result, Rng, Stamp,
};
use tantalum_hosts::database::Way;
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::{ByteCodec, Remembered};
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::ValueStamp;
use tantalum_hosts::wal_engine::{
    EngineStatistics, WalEngine, WalForm, WalOptions, WalPageOptions,
};
use tantalum_runtime::{Runtime, Virtual, yield_now};

type Bytes = ByteCodec<Block<Rc<[u8]>>>;
type Stamps = Remembered<Block<ValueStamp>>;

/// Pages of 8 KiB in a small pool, a log that wraps around, and device transactions that hold two or three commits.
fn case(form: WalForm, durability: Durability) -> Case<WalForm> {
    let pages = WalPageOptions {
        form,
        database_pages: 60,
        device_pages_per_page: 2,
        pool_pages: 20,
        batch_pages: 4,
        metadata_per_page: 0.1,
        metadata_pages: 2,
    };
    let log_pages = if form == WalForm::Transactions { 0 } else { 256 };
    Case {
        options: WalOptions { pages, log_pages, trees: TREES },
        durability,
        transaction_pages_max: 24,
        log_apart: false,
        may_tear: form == WalForm::NoFullPages && durability == Durability::Volatile,
    }
}

#[test]
fn a_cut_anywhere_leaves_each_transaction_whole_in_bytes() {
    cut_in_every_form::<PageBuf, _, Bytes, _>(case);
}

#[test]
fn a_cut_anywhere_leaves_each_transaction_whole_in_stamps() {
    cut_in_every_form::<Stamp, _, Stamps, _>(case);
}

#[test]
fn a_cut_anywhere_leaves_each_transaction_whole_where_the_log_has_a_device_of_its_own() {
    let (seeds, every) = if nightly() { (20, 1) } else { (1, 31) };
    let case = Case { log_apart: true, ..case(WalForm::FullPages, Durability::Volatile) };
    cut_everywhere::<PageBuf, _, Bytes, _>(&case, seeds, every);
}

#[test]
fn a_device_that_fails_once_loses_nothing() {
    for form in WalForm::ALL {
        fail_once::<PageBuf, _, Bytes, _>(&case(form, Durability::OnFlush));
    }
}

#[test]
fn changes_of_a_page_that_may_be_torn_are_noticed() {
    cuts_notice(Fault::NoWholePages, &case(WalForm::FullPages, Durability::Volatile), 1);
}

#[test]
fn whole_pages_that_come_after_the_checkpoint_are_noticed() {
    cuts_notice(Fault::WholePagesTooLate, &case(WalForm::FullPages, Durability::Volatile), 6);
}

#[test]
fn pages_that_are_read_before_they_are_replaced_are_noticed() {
    cuts_notice(Fault::ReplacedPagesRead, &case(WalForm::FullPages, Durability::Volatile), 6);
}

#[test]
fn a_checkpoint_of_homes_that_may_be_lost_is_noticed() {
    cuts_notice(Fault::NoFlushBeforeCheckpoint, &case(WalForm::FullPages, Durability::Volatile), 4);
}

#[test]
fn a_log_that_is_not_durable_in_time_is_noticed() {
    cuts_notice(Fault::NoFlushAfterLog, &case(WalForm::FullPages, Durability::OnFlush), 2);
    cuts_notice(Fault::PagesBeforeLog, &case(WalForm::NoFullPages, Durability::OnAck), 6);
}

#[test]
fn transactions_in_pieces_are_noticed() {
    cuts_notice(Fault::GroupsCutShort, &case(WalForm::Transactions, Durability::OnAck), 2);
}

/// A device whose transactions take long.
struct Slow {
    disk: Rc<WorstDisk<Stamp>>,
    runtime: Virtual,
}

impl DeviceLayer for Slow {
    type Inner = WorstDisk<Stamp>;

    fn inner(&self) -> &Self::Inner {
        &self.disk
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, Stamp)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.runtime.sleep(1_000_000).await;
        self.disk.write_scattered(pages, ended).await
    }
}

/// Reads evict pages from the pool while their commit is still on its way to the device, and then one of these is read.
fn pushed_out_early() -> Option<String> {
    let found = Rc::new(Cell::new(None));
    let told = Rc::clone(&found);
    run(6, |rt| async move {
        let (disk, codec) = crate::loads::disk();
        let disk = Rc::new(Slow { disk, runtime: rt.clone() });
        let options = options(WalForm::Transactions, 1);
        let engine: Rc<WalEngine<_, _, _, Stamps>> =
            WalEngine::create(&rt, &disk, &codec, options).await.unwrap();
        let put = async |rows: StepBy<Range<u64>>, count: u64| {
            let mut transaction = engine.begin();
            for row in rows {
                transaction.put(ROWS, &key(row), value(count, 900)).await.unwrap();
            }
            transaction
        };
        for first in (0..1_000).step_by(10) {
            put((first..first + 10).step_by(1), 1).await.commit().await.unwrap();
        }
        // Four rows are in a page: twelve pages are changed, and a batch of them is written as soon as they leave the pool.
        let transaction = put((0..48).step_by(4), 2).await;
        let committing = rt.spawn("commit", async move { transaction.commit().await });
        while engine.get(ROWS, &key(0)).await.unwrap() != Some(value(2, 900)) {
            yield_now().await;
        }
        for row in (100..1_000).step_by(4) {
            engine.get(ROWS, &key(row)).await.unwrap();
        }
        told.set(engine.get(ROWS, &key(4)).await.unwrap());
        committing.await.unwrap();
    });
    (found.get() != Some(value(2, 900))).then(|| format!("{:?} was read", found.get()))
}

#[test]
fn a_page_that_is_read_again_before_its_commit_is_at_home_is_noticed() {
    assert_noticed(Fault::PagesBeforeLog, pushed_out_early);
}

#[test]
fn trees_are_as_a_map_is() {
    for form in [WalForm::FullPages, WalForm::Transactions] {
        crate::loads::trees_are_as_a_map_is(form);
    }
}

#[test]
fn what_was_committed_is_there_when_a_process_ends_without_a_close() {
    WalForm::ALL.into_iter().for_each(crate::loads::a_process_that_ends_without_a_close);
}

#[test]
fn thousands_of_clients_share_what_makes_their_commits_durable() {
    for form in WalForm::ALL {
        let counts = crate::loads::many_clients(form, 3_000);
        // The disk is about as fast as the clients that commit, and a transaction takes less time than a block of the log.
        let most = if form == WalForm::Transactions { 10_000 } else { 4_500 };
        assert!(counts.log_flushes + counts.device_commits < most, "{form:?}: {counts:?}");
        assert_eq!(counts.log_flushes == 0, form == WalForm::Transactions);
    }
}

#[test]
fn nothing_is_lost_of_what_clients_count_together() {
    WalForm::ALL.into_iter().for_each(crate::loads::what_clients_count_together);
}

/// The engine on a real volume, over its real bytes.
#[test]
fn rows_in_bytes_survive_a_volume_that_is_opened_again() {
    WalForm::ALL.into_iter().for_each(crate::loads::a_volume_that_is_opened_again);
}

#[test]
fn rows_survive_power_cuts_on_a_real_file() {
    for form in WalForm::ALL {
        let folder = tempfile::tempdir().unwrap();
        crate::live_cuts::survives_cuts(folder.path(), form);
    }
}

fn counted(form: WalForm, seed: u64) -> EngineStatistics {
    let counts = Rc::new(Cell::default());
    let told = Rc::clone(&counts);
    run(seed, move |rt| async move {
        let mut options = options(form, 2);
        options.log_pages = if form.has_log() { 512 } else { 0 };
        let engine = created(&rt, options).await;
        let mut rng = Rng::new(seed);
        for _ in 0..1_500 {
            put(&engine, ROWS, rng.below(2_000), value(1, 400)).await.unwrap();
        }
        engine.close().await.unwrap();
        told.set(engine.statistics());
    });
    counts.get()
}

/// The log with full-page writes is longer by the whole pages; without a log every commit writes its pages home.
#[test]
fn each_form_writes_what_it_is_named_for() {
    let of = |form| counted(form, 9);
    let (full, off) = (of(WalForm::FullPages), of(WalForm::NoFullPages));
    assert!(full.whole_pages > 2 * off.whole_pages, "{full:?}, {off:?}");
    // One client shares a flush with nobody, so a small change occupies at least one page of the log.
    assert!(full.log_pages > off.log_pages + off.log_pages / 8, "{full:?}, {off:?}");
    for counts in [full, off] {
        assert_eq!((counts.pages.area_pages, counts.pages.shared_pages), (0, 0));
        assert!(counts.pages.home_pages > 300, "{counts:?}");
    }
    let share = of(WalForm::Share).pages;
    assert_eq!((share.shared_pages, share.home_pages), (share.area_pages, 0));
    let direct = of(WalForm::Transactions);
    assert_eq!((direct.log_pages, direct.device_commits), (0, direct.commits));
    assert!(direct.pages.home_pages >= 2 * direct.commits, "{direct:?}");
    assert_eq!(full, of(WalForm::FullPages), "the same seed gives the same run");
    assert_ne!(full, counted(WalForm::FullPages, 10));
}

/// A commit that is too large for a device transaction changes nothing, and others continue.
#[test]
fn a_commit_that_the_device_does_not_take_is_refused_whole() {
    run(4, |rt| async move {
        let (disk, codec) = (WorstDisk::<Stamp>::new(Durability::OnAck, 3_000), Rc::default());
        let options = options(WalForm::Transactions, 1);
        let engine: Rc<WalEngine<_, _, _, Stamps>> =
            WalEngine::create(&rt, &disk, &codec, options).await.unwrap();
        for number in 0..40 {
            put(&engine, ROWS, number, value(1, 900)).await.unwrap();
        }
        let mut transaction = engine.begin();
        for number in 0..40 {
            transaction.put(ROWS, &key(number), value(2, 900)).await.unwrap();
        }
        let refused = transaction.commit().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        assert!(refused.to_string().contains("takes 6"), "{refused}");
        put(&engine, ROWS, 7, value(3, 900)).await.unwrap();
        engine.stop().await;
        let engine = WalEngine::open(&rt, &disk, &codec, options).await.unwrap().0;
        let rows = engine.scan(ROWS, &[], None, usize::MAX).await.unwrap();
        let counts = rows.iter().map(|(_, value)| value.count);
        assert!(counts.eq((0..40).map(|number| if number == 7 { 3 } else { 1 })), "{rows:?}");
    });
}

#[test]
fn what_makes_no_sense_is_refused() {
    run(5, |rt| async move {
        let (disk, codec) = crate::loads::disk();
        let log_without_use = WalOptions { log_pages: 256, ..options(WalForm::Transactions, 1) };
        let small = WalOptions { log_pages: 127, ..options(WalForm::FullPages, 1) };
        for wrong in [log_without_use, small] {
            let refused = WalEngine::create(&rt, &disk, &codec, wrong).await.err().unwrap();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{wrong:?}");
        }
        let mut limits = disk.limits().clone();
        (limits.share_pairs_max, limits.transaction_pages_max) = (1, 1);
        for form in [WalForm::Share, WalForm::Transactions] {
            let refused = options(form, 2).check(&limits).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{form:?}");
        }
        let made = options(WalForm::FullPages, 1);
        WalEngine::create(&rt, &disk, &codec, made).await.unwrap().close().await.unwrap();
        let other = WalOptions { log_pages: made.log_pages, ..options(WalForm::NoFullPages, 1) };
        let refused = WalEngine::open(&rt, &disk, &codec, other).await.err().unwrap();
        assert!(refused.to_string().contains("made with FPW-On"), "{refused}");
    });
    // A database without a log needs no device for one.
    let case = Case { log_apart: true, ..case(WalForm::Transactions, Durability::OnAck) };
    let refused = History::<Stamp, Stamps, _>::new(&case, "no log".into()).look(&nothing(1), 1);
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::InvalidInput);
}
