//! Rows compared with a `BTreeMap`, many clients, the writes of each form, refusals, a full database, bytes on a volume.

use crate::loads::{OTHERS, ROWS, created, disk, key, options, put, run, value};
use crate::worst_disk::WorstDisk;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Durability, ErrorKind, PageBuf, PageDevice, Rng};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, EngineStatistics, Form};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::ByteCodec;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Key, Tree};
use tantalum_runtime::Runtime;

#[test]
fn trees_are_as_a_map_is() {
    crate::loads::trees_are_as_a_map_is(Form::Off);
}

#[test]
fn what_was_committed_is_there_when_a_process_ends_without_a_close() {
    Form::ALL.into_iter().for_each(crate::loads::a_process_that_ends_without_a_close);
}

#[test]
fn a_thousand_clients_share_flushes_of_the_log() {
    let counts = crate::loads::many_clients(Form::On, 1_000);
    // The disk is about as fast as the clients that commit.
    assert!(counts.log_flushes < 1_500, "{counts:?}");
}

#[test]
fn nothing_is_lost_of_what_clients_count_together() {
    crate::loads::what_clients_count_together(Form::Share);
}

/// The engine on a real volume, over its real bytes.
#[test]
fn rows_in_bytes_survive_a_volume_that_is_opened_again() {
    Form::ALL.into_iter().for_each(crate::loads::a_volume_that_is_opened_again);
}

#[test]
fn rows_in_the_order_of_their_keys_fill_their_pages() {
    run(1, |rt| async move {
        let engine = created(&rt, options(Form::Off, 4)).await;
        let before = engine.free_pages().await.unwrap();
        for number in 0..2_000 {
            put(&engine, ROWS, number, value(number, 487)).await.unwrap();
        }
        // A row occupies 500 bytes, so 32 fit into 16 KiB.
        let used = before - engine.free_pages().await.unwrap();
        assert!((63..68).contains(&used), "{used} pages");
    });
}

/// Scans of everything beside clients that move rows from tree to tree and split and free pages: each leaf is seen as of one
/// moment, and no row that stays is missed.
#[test]
fn scans_beside_splits_miss_nothing_that_stays() {
    run(5, |rt| async move {
        let engine = created(&rt, options(Form::Off, 1)).await;
        for number in (0..400).step_by(2) {
            put(&engine, ROWS, number, value(number, 100)).await.unwrap();
        }
        let writers = (0..4).map(|client| {
            let (engine, mut rng) = (Rc::clone(&engine), Rng::new(client));
            rt.spawn("writer", async move {
                for _ in 0..200 {
                    let number = 2 * rng.below(200) + 1;
                    let mut transaction = engine.begin();
                    let there = match transaction.get_for_update(ROWS, &key(number)).await {
                        Ok(there) => there,
                        Err(_) => continue,
                    };
                    match there {
                        Some(_) => transaction.delete(ROWS, &key(number)).await.unwrap(),
                        None => transaction.put(ROWS, &key(number), value(1, 800)).await.unwrap(),
                    }
                    transaction.commit().await.unwrap();
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        for _ in 0..60 {
            let rows = engine.scan(ROWS, &[], None, usize::MAX).await.unwrap();
            assert!(rows.is_sorted_by(|(one, _), (two, _)| one < two));
            let stay = rows.iter().filter(|(_, value)| value.bytes == 100);
            assert!(stay.map(|(_, value)| value.count).eq((0..400).step_by(2)));
        }
        for writer in writers {
            writer.await;
        }
    });
}

/// Transactions as large as the log allows, from many clients, in a log that wraps around continuously.
fn a_full_log() -> Option<String> {
    run(6, |rt| async move {
        let (disk, codec) = disk();
        let options = DoubleWriteOptions { log_pages: 64, ..options(Form::On, 1) };
        let engine = DoubleWrite::create(&rt, &disk, &codec, options).await.unwrap();
        let clients: Vec<_> = (0..30)
            .map(|client| {
                let engine = Rc::clone(&engine);
                rt.spawn("client", async move {
                    for round in 0..10 {
                        let mut transaction = engine.begin();
                        for row in 0..9 {
                            let (key, value) = (key(10 * client + row), value(round, 600));
                            transaction.put(ROWS, &key, value).await.unwrap();
                        }
                        transaction.commit().await.unwrap();
                    }
                })
            })
            .collect();
        for client in clients {
            client.await;
        }
        assert!(engine.statistics().checkpoints > 5, "{:?}", engine.statistics());
        engine.stop().await;
        let engine = DoubleWrite::open(&rt, &disk, &codec, options).await.unwrap().0;
        let rows = engine.scan(ROWS, &[], None, usize::MAX).await.unwrap();
        assert!(rows.len() == 270 && rows.iter().all(|(_, value)| value.count == 9));
    });
    None
}

#[test]
fn a_log_that_is_written_over_too_early_is_noticed() {
    assert_noticed(Fault::NoWaitForLogRoom, a_full_log);
}

/// Each page is written twice with double write, once without.
#[test]
fn each_form_writes_what_the_paper_says() {
    for form in Form::ALL {
        let counts = counted(form, 9);
        let pages = counts.pages;
        assert!(pages.batches > 20 && pages.pages_read > 300, "{form:?}: {counts:?}");
        match form {
            Form::On => assert_eq!((pages.area_pages, pages.shared_pages), (pages.home_pages, 0)),
            Form::Share => {
                assert_eq!((pages.shared_pages, pages.home_pages), (pages.area_pages, 0))
            }
            Form::Off | Form::Transactions => {
                assert_eq!((pages.area_pages, pages.shared_pages), (0, 0));
            }
        }
        assert_eq!(counts.log_flushes, counts.commits, "one client shares with nobody");
        assert_eq!(counts, counted(form, 9), "the same seed gives the same run");
        assert_ne!(counts, counted(form, 10));
    }
}

fn counted(form: Form, seed: u64) -> EngineStatistics {
    let counts = Rc::new(std::cell::Cell::default());
    let told = Rc::clone(&counts);
    run(seed, move |rt| async move {
        let engine = created(&rt, options(form, 2)).await;
        let mut rng = Rng::new(seed);
        for _ in 0..1_500 {
            put(&engine, OTHERS, rng.below(2_000), value(1, 400)).await.unwrap();
        }
        engine.close().await.unwrap();
        told.set(engine.statistics());
    });
    counts.get()
}

#[test]
fn a_full_database_refuses_rows_and_still_deletes() {
    run(7, |rt| async move {
        let mut options = options(Form::Share, 1);
        options.pages.database_pages = 40;
        let engine = created(&rt, options).await;
        let mut rows = 0;
        let refused = loop {
            match put(&engine, ROWS, rows, value(rows, 900)).await {
                Ok(()) => rows += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace, "{refused}");
        assert!(rows > 120, "{rows} rows in 40 pages");
        let found = engine.scan(ROWS, &[], None, usize::MAX).await.unwrap();
        assert_eq!(found.len() as u64, rows, "nothing half done");
        for number in 0..rows / 2 {
            let mut transaction = engine.begin();
            transaction.delete(ROWS, &key(number)).await.unwrap();
            transaction.commit().await.unwrap();
        }
        for number in rows..rows + 40 {
            put(&engine, ROWS, number, value(1, 900)).await.unwrap();
        }
    });
}

#[test]
fn what_makes_no_sense_is_refused() {
    run(8, |rt| async move {
        let (disk, codec) = disk();
        let good = options(Form::On, 1);
        let nothing = DoubleWrite::open(&rt, &disk, &codec, good).await;
        assert_eq!(nothing.err().unwrap().kind(), ErrorKind::Format);
        let mut pool = good;
        pool.pages.pool_pages = 31;
        let mut large = good;
        large.pages.database_pages = 5_000;
        let log = DoubleWriteOptions { log_pages: 63, ..good };
        let trees = DoubleWriteOptions { trees: 0, ..good };
        for wrong in [pool, large, log, trees] {
            let refused = DoubleWrite::create(&rt, &disk, &codec, wrong).await.err().unwrap();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{wrong:?}");
        }
        let mut limits = disk.limits().clone();
        (limits.share_pairs_max, limits.transaction_pages_max) = (0, 0);
        for form in [Form::Share, Form::Transactions] {
            let refused = options(form, 1).check(&limits).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{form:?}");
        }
        let engine = DoubleWrite::create(&rt, &disk, &codec, good).await.unwrap();
        let again = DoubleWrite::create(&rt, &disk, &codec, good).await;
        assert_eq!(again.err().unwrap().kind(), ErrorKind::InvalidInput, "it holds a database");
        let other = DoubleWrite::open(&rt, &disk, &codec, options(Form::Off, 1)).await;
        assert_eq!(other.err().unwrap().kind(), ErrorKind::InvalidInput, "another form");
        let refused = |tree: u32, key: Vec<u8>, bytes: u32| {
            let engine = Rc::clone(&engine);
            async move {
                let mut transaction = engine.begin();
                transaction.put(Tree(tree), &key, value(1, bytes)).await.unwrap_err().kind()
            }
        };
        assert_eq!(refused(2, key(1), 1).await, ErrorKind::InvalidInput);
        assert_eq!(refused(0, Vec::new(), 1).await, ErrorKind::InvalidInput);
        assert_eq!(refused(0, vec![7; 251], 1).await, ErrorKind::TooLarge);
        assert_eq!(refused(0, key(1), 1_100).await, ErrorKind::TooLarge);
        assert_eq!(engine.get(Tree(2), b"1").await.unwrap_err().kind(), ErrorKind::InvalidInput);
        // A transaction that has no room in the log changes nothing.
        let mut transaction = engine.begin();
        for number in 0..100 {
            transaction.put(ROWS, &key(number), value(1, 900)).await.unwrap();
        }
        assert_eq!(transaction.commit().await.unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(engine.scan(ROWS, &[], None, 1).await.unwrap(), []);
    });
}

/// The same code reads the content that a live engine writes.
#[test]
fn pages_in_bytes_have_what_was_put_into_them() {
    run(10, |rt| async move {
        let disk = WorstDisk::<PageBuf>::new(Durability::OnAck, 3_000);
        let codec = Rc::new(ByteCodec::<Block<Rc<[u8]>>>::default());
        let options = options(Form::On, 2);
        let engine = DoubleWrite::create(&rt, &disk, &codec, options).await.unwrap();
        let mut model = BTreeMap::<Key, Rc<[u8]>>::new();
        let mut rng = Rng::new(3);
        for _ in 0..400 {
            let mut value = vec![0; rng.below(1_900) as usize];
            rng.fill(&mut value);
            let (key, value): (Key, Rc<[u8]>) = (key(rng.below(500)).into(), value.into());
            let mut transaction = engine.begin();
            transaction.put(OTHERS, &key, Rc::clone(&value)).await.unwrap();
            transaction.commit().await.unwrap();
            model.insert(key, value);
        }
        let all: Vec<_> = model.into_iter().collect();
        assert_eq!(engine.scan(OTHERS, &[], None, usize::MAX).await.unwrap(), all);
        engine.close().await.unwrap();
        let engine = DoubleWrite::open(&rt, &disk, &codec, options).await.unwrap().0;
        assert_eq!(engine.scan(OTHERS, &[], None, usize::MAX).await.unwrap(), all);
    });
}
