//! Databases compared with a `BTreeMap`, cut while several clients work, on the worst devices that each durability allows, in all
//! forms, as bytes and as stamps.

use crate::clients::{Engine, Expected, Model, TREES};
use crate::histories::{
    Case, History, cut_everywhere, cut_in_every_form, cuts_notice, fail_once, nightly, nothing,
};
use crate::worst_disk::WorstDisk;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Durability, ErrorKind, PageBuf, PageDevice, PageNo, Payload, Rng, Stamp};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Drives, Form, PageOptions};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::{ByteCodec, Remembered};
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Key, Tree, ValueStamp};
use tantalum_runtime::Virtual;

/// Pages of 8 KiB in a small pool, and a log that wraps around.
fn options(form: Form) -> DoubleWriteOptions {
    let pages = PageOptions {
        form,
        database_pages: 60,
        device_pages_per_page: 2,
        pool_pages: 20,
        batch_pages: 4,
        metadata_per_page: 0.1,
        metadata_pages: 2,
    };
    DoubleWriteOptions { pages, log_pages: 128, trees: TREES }
}

fn case(form: Form, durability: Durability) -> Case<Form> {
    let may_tear = form == Form::Off && durability == Durability::Volatile;
    let transaction_pages_max = 6;
    Case { options: options(form), durability, transaction_pages_max, log_apart: false, may_tear }
}

type Bytes = ByteCodec<Block<Rc<[u8]>>>;
type Stamps = Remembered<Block<ValueStamp>>;

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
    for (form, durability) in [(Form::On, Durability::Volatile), (Form::Share, Durability::OnFlush)]
    {
        let case = Case { log_apart: true, ..case(form, durability) };
        cut_everywhere::<PageBuf, _, Bytes, _>(&case, seeds, every);
        cut_everywhere::<Stamp, _, Stamps, _>(&case, seeds, every);
    }
}

#[test]
fn a_database_is_opened_with_its_log_or_not_at_all() {
    let case = Case { log_apart: true, ..case(Form::On, Durability::OnAck) };
    let history = History::<Stamp, Stamps, _>::new(&case, "a log apart".into());
    history.make(1, |engine, _| async move { engine.close().await.unwrap() });
    history.look(&nothing(1), 1).unwrap();
    let without = History { log_disk: None, ..history };
    let error = without.look(&nothing(1), 1).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let blank = Some(WorstDisk::new(Durability::OnAck, 130));
    let small = WorstDisk::new(Durability::OnAck, 129);
    let another = History { log_disk: blank, log_codec: Rc::default(), ..without };
    let error = another.look(&nothing(1), 1).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
    // A device that holds a log is refused for another database, and a device must be large enough.
    let full = History::<Stamp, Stamps, _>::new(&case, "a log's device".into());
    full.make(1, |engine, _| async move { engine.close().await.unwrap() });
    for (log, log_codec) in [(full.log_disk.unwrap(), full.log_codec), (small, Rc::default())] {
        let ran = Virtual::alone("creating", |rt| async move {
            let (disk, codec) = (WorstDisk::new(Durability::OnAck, 400), Rc::default());
            let drives = Drives::new(&disk, &codec).with_log_on(&log, &log_codec, 1);
            DoubleWrite::<_, _, ValueStamp, Stamps>::create_on(&rt, &drives, options(Form::On))
                .await
                .map(drop)
        });
        assert_eq!(ran.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn no_other_databases_log_is_taken_for_ones_own() {
    let case = Case { log_apart: true, ..case(Form::On, Durability::OnAck) };
    let made = |database| {
        let new = History::<Stamp, Stamps, _>::new(&case, format!("database {database}"));
        let history = History { database, ..new };
        history.make(1, |engine, _| async move { engine.stop().await });
        history
    };
    let (one, other) = (made(1), made(2));
    one.look(&nothing(1), 1).unwrap();
    let swapped = History { log_disk: other.log_disk, log_codec: other.log_codec, ..one };
    let error = swapped.look(&nothing(1), 1).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
    let misnamed = History { database: 3, ..made(1) };
    let error = misnamed.look(&nothing(1), 1).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

fn volatile(form: Form, name: String) -> History<PageBuf, Bytes, Form> {
    History::new(&case(form, Durability::Volatile), name)
}

#[test]
fn a_device_that_fails_once_loses_nothing() {
    for form in Form::ALL {
        fail_once::<PageBuf, _, Bytes, _>(&case(form, Durability::OnFlush));
    }
}

#[test]
fn a_log_that_is_not_durable_in_time_is_noticed() {
    cuts_notice(Fault::NoFlushAfterLog, &case(Form::On, Durability::OnFlush), 2);
    cuts_notice(Fault::PagesBeforeLog, &case(Form::Transactions, Durability::OnAck), 40);
}

#[test]
fn transactions_in_pieces_are_noticed() {
    cuts_notice(Fault::GroupsCutShort, &case(Form::Share, Durability::OnAck), 2);
}

#[test]
fn a_double_write_that_is_not_durable_in_time_is_noticed() {
    cuts_notice(Fault::NoFlushBeforeHomes, &case(Form::On, Durability::Volatile), 2);
    cuts_notice(Fault::NoFlushAfterHomes, &case(Form::On, Durability::Volatile), 2);
}

#[test]
fn checkpoints_that_are_written_together_are_noticed() {
    assert_noticed(Fault::NoFlushAfterCheckpoint, || {
        for seed in 0..200 {
            let history = volatile(Form::On, format!("seed {seed}"));
            history.make(seed, |engine, _| async move {
                engine.checkpoint().await.unwrap();
                engine.checkpoint().await.unwrap();
            });
            history.power_on(&mut Rng::new(seed));
            history.look(&nothing(1), seed).unwrap();
        }
        None
    });
}

#[test]
fn a_torn_page_that_passes_for_whole_is_noticed() {
    cuts_notice(Fault::ChecksumsIgnored, &case(Form::On, Durability::Volatile), 2);
}

/// A process is killed at its first commit, the power is cut while the next one recovers, and the third one checks.
fn killed_and_cut() -> Option<String> {
    for seed in 0..600 {
        let (killed, cut) = (1 + seed % 5, seed / 5 % 24);
        let history = volatile(Form::Off, format!("killed after {killed}, cut after {cut}"));
        let value: Rc<[u8]> = vec![7; 1_000].into();
        let key: Key = b"0 row".as_slice().into();
        let rows = (0..TREES).map(|tree| ((Tree(tree), key.clone()), Rc::clone(&value)));
        let expected = [Expected { committed: Model::new(), issued: rows.collect() }];
        history.make(seed, move |engine, disk| async move {
            disk.cut_after(killed);
            let mut transaction = engine.begin();
            for tree in 0..TREES {
                transaction.put(Tree(tree), &key, Rc::clone(&value)).await.unwrap();
            }
            drop(transaction.commit().await);
        });
        history.disk.killed();
        history.disk.cut_after(cut);
        drop(history.look(&expected, seed));
        history.power_on(&mut Rng::new(seed));
        match history.look(&expected, seed) {
            // Nothing protects homes from being torn. A log that has lost their changes is a different failure.
            Err(error) if error.to_string().contains("torn or damaged") => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => return Some(error.to_string()),
            looked => drop(looked.unwrap()),
        }
    }
    None
}

#[test]
fn a_recovery_from_what_may_still_be_lost_is_noticed() {
    assert_noticed(Fault::NoFlushBeforeRecovery, killed_and_cut);
}

/// Replaces a page by its state at an earlier checkpoint, as a device would that has lost a write.
fn lost_write() -> Option<String> {
    let history = volatile(Form::Share, "a lost write".into());
    let home = PageNo(2 + 128 + 4 * 2 + 2 + 2);
    let put = |engine: Engine<PageBuf, Rc<[u8]>, Bytes, Form>, key: &'static [u8]| async move {
        let mut transaction = engine.begin();
        transaction.put(Tree(0), key, vec![7; 100].into()).await.unwrap();
        transaction.commit().await.unwrap();
    };
    history.make(1, move |engine, disk| async move {
        put(Rc::clone(&engine), b"0 one").await;
        engine.checkpoint().await.unwrap();
        let mut old = vec![PageBuf::zero(); 2];
        disk.read(home, &mut old, None).await.unwrap();
        put(Rc::clone(&engine), b"0 two").await;
        engine.checkpoint().await.unwrap();
        put(Rc::clone(&engine), b"0 three").await;
        engine.stop().await;
        disk.write(home, &old, None).await.unwrap();
    });
    let found = history.look(&nothing(1), 1);
    match found {
        Err(error) if error.to_string().contains("page 1 of the database has changes") => None,
        other => Some(format!("{:?}", other.err())),
    }
}

#[test]
fn a_write_that_a_device_has_lost_is_noticed() {
    assert_noticed(Fault::LostWritesIgnored, lost_write);
}
