//! The damage that a damaged redo log does: at most the last transactions are lost, after which nothing was written. Everything
//! else is reported.
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{
    Durability, ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result,
};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::ByteCodec;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::Tree;
use tantalum_hosts::wal_engine::{WalEngine, WalForm, WalOptions, WalPageOptions};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

use crate::worst_disk::WorstDisk;

type Bytes = ByteCodec<Block<Rc<[u8]>>>;
type Disk = Rc<WorstDisk<PageBuf>>;
type Engine = Rc<WalEngine<Virtual, WorstDisk<PageBuf>, Rc<[u8]>, Bytes>>;

const ROWS: Tree = Tree(0);
const HEADERS: u64 = 2;
const LOG_PAGES: u64 = 128;
const DEVICE_PAGES: u64 = 2_000;

fn options() -> WalOptions {
    let pages = WalPageOptions {
        form: WalForm::NoFullPages,
        database_pages: 400,
        device_pages_per_page: 2,
        pool_pages: 64,
        batch_pages: 8,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    WalOptions { pages, log_pages: LOG_PAGES, trees: 1 }
}

fn run<F: Future<Output = ()> + 'static>(test: impl FnOnce(Virtual) -> F) {
    let runtime = Virtual::new(Schedule::Shuffled(1));
    let ran = runtime.run(test(runtime.clone()));
    runtime.drop_tasks();
    ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
}

/// Transaction `number` writes this many rows of its own: a block of one page of the log, or of several.
fn rows_of(number: u64) -> u64 {
    1 + number % 3 * 4
}

async fn commit(engine: &Engine, number: u64) {
    let mut transaction = engine.begin();
    for row in 0..rows_of(number) {
        let key = format!("{number:04} {row:02}");
        transaction.put(ROWS, key.as_bytes(), vec![number as u8; 1_000].into()).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

/// The number of transactions that are there, from the first on without a gap and whole.
async fn transactions(engine: &Engine) -> Result<u64> {
    let rows = engine.scan(ROWS, b"0", None, usize::MAX).await?;
    let mut rows = rows.iter().peekable();
    let mut number = 0;
    while rows.peek().is_some() {
        for row in 0..rows_of(number) {
            let (key, value) = rows.next().expect("a whole transaction");
            assert_eq!(**key, *format!("{number:04} {row:02}").as_bytes());
            assert_eq!(**value, [number as u8; 1_000]);
        }
        number += 1;
    }
    Ok(number)
}

async fn all_pages(disk: &Disk) -> Vec<PageBuf> {
    let mut pages = vec![PageBuf::zero(); DEVICE_PAGES as usize];
    disk.read(PageNo(0), &mut pages, None).await.unwrap();
    pages
}

async fn put_back(disk: &Disk, pages: &[PageBuf], first: u64) {
    for (page, content) in (first..).map(PageNo).zip(pages) {
        disk.write(page, std::slice::from_ref(content), None).await.unwrap();
    }
}

/// A disk on which `number` transactions were committed, one after the other, with a checkpoint before the last `after`.
async fn committed(rt: &Virtual, number: u64, after: u64) -> (Disk, Rc<Bytes>) {
    let disk = WorstDisk::new(Durability::OnAck, DEVICE_PAGES);
    let codec = Rc::new(Bytes::default());
    let engine = WalEngine::create(rt, &disk, &codec, options()).await.unwrap();
    for at in 0..number {
        if at + after == number {
            engine.checkpoint().await.unwrap();
        }
        commit(&engine, at).await;
    }
    engine.stop().await;
    (disk, codec)
}

/// Damages each page of the log by itself; returns the number of pages whose damage was reported, and the error that it found.
async fn damage_each_page(rt: Virtual) -> (u64, Option<String>) {
    // The log wraps around, and its last blocks extend over its end.
    const COMMITTED: u64 = 112;
    let (disk, codec) = committed(&rt, COMMITTED, 12).await;
    let whole = all_pages(&disk).await;
    let mut told = 0;
    for damaged in HEADERS..HEADERS + LOG_PAGES {
        let mut page = [0; PAGE_BYTES];
        page.copy_from_slice(&whole[damaged as usize][..]);
        page[100] ^= 0x10;
        put_back(&disk, &whole, 0).await;
        disk.write(PageNo(damaged), &[PageBuf::copy_from(&page)], None).await.unwrap();
        let engine = match WalEngine::open(&rt, &disk, &codec, options()).await {
            Ok((engine, _)) => engine,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(error.to_string().contains("the log is damaged"), "{error}");
                told += 1;
                continue;
            }
        };
        let found = transactions(&engine).await.unwrap();
        engine.stop().await;
        if found + 1 < COMMITTED {
            return (told, Some(format!("page {damaged}: {found} of {COMMITTED}")));
        }
    }
    (told, None)
}

#[test]
fn damage_to_the_log_is_told_or_costs_the_last_transaction_alone() {
    run(|rt| async move {
        let (told, wrong) = damage_each_page(rt).await;
        assert_eq!(wrong, None);
        // Eleven of the twelve transactions after the checkpoint have others after them.
        assert!(told >= 11, "{told}");
    });
}

fn lost_in_silence() -> Option<String> {
    let found = Rc::new(std::cell::Cell::new(None));
    let out = Rc::clone(&found);
    run(|rt| async move { out.set(damage_each_page(rt).await.1) });
    found.take()
}

#[test]
fn a_damaged_block_that_is_taken_for_the_end_is_noticed() {
    assert_noticed(Fault::LogDamageTakenForItsEnd, lost_in_silence);
}

/// A device loses the writes to headers and log since a checkpoint, but not those to the homes; returns the error that it
/// found.
fn log_goes_back() -> Option<String> {
    let found = Rc::new(std::cell::Cell::new(None));
    let out = Rc::clone(&found);
    run(|rt| async move {
        let (disk, codec) = committed(&rt, 20, 1).await;
        let old = all_pages(&disk).await;
        let (engine, _) = WalEngine::open(&rt, &disk, &codec, options()).await.unwrap();
        for at in 20..30 {
            commit(&engine, at).await;
        }
        engine.close().await.unwrap();
        put_back(&disk, &old[..(HEADERS + LOG_PAGES) as usize], 0).await;
        let read = match WalEngine::open(&rt, &disk, &codec, options()).await {
            Ok((engine, _)) => {
                let read = transactions(&engine).await;
                engine.stop().await;
                read
            }
            Err(error) => Err(error),
        };
        match read {
            Err(error) if error.to_string().contains("that the log has lost") => {}
            other => out.set(Some(format!("{other:?}"))),
        }
    });
    found.take()
}

#[test]
fn a_page_with_changes_that_the_log_has_lost_is_an_error() {
    assert_noticed(Fault::NewerPagesTaken, log_goes_back);
}
