//! Pools over a device in memory, and one function for each operation on a page.
use super::{Memory, policy};
use std::rc::Rc;
use tantalum_base::{PageNo, Result, Stamp};
use tantalum_buffer::{Guard, Intent, Pool, PoolOptions};
use tantalum_runtime::Virtual;

pub type TestPool = Rc<Pool<Memory, Virtual>>;
pub type TestGuard = Guard<Memory, Virtual>;

pub const PAGES: u64 = 1000;

pub fn small(transit_frames: u32) -> PoolOptions {
    PoolOptions { transit_frames: Some(transit_frames), ..PoolOptions::default() }
}

pub fn lru(
    runtime: &Virtual,
    frames: u32,
    time_ns: u64,
    options: PoolOptions,
) -> (Rc<Memory>, TestPool) {
    let device = Memory::new(runtime, PAGES, time_ns, 1);
    let lru = policy("lru", frames, PAGES);
    let pool = Pool::new(Rc::clone(&device), runtime.clone(), lru, options).unwrap();
    pool.start();
    (device, pool)
}

pub async fn read(pool: &TestPool, page: u64) -> Result<Stamp> {
    let guard = pool.fix(PageNo(page), Intent::Read).await?;
    assert_eq!(guard.number(), PageNo(page));
    Ok(*guard.page())
}

pub async fn update(pool: &TestPool, page: u64, count: u64) -> Result<()> {
    let mut guard = pool.fix(PageNo(page), Intent::Update).await?;
    *guard.page_mut() = Stamp::new(PageNo(page), count);
    Ok(())
}

pub fn stamp(page: u64, count: u64) -> Stamp {
    Stamp::new(PageNo(page), count)
}

pub async fn hold(pool: &TestPool, page: u64) -> TestGuard {
    pool.fix(PageNo(page), Intent::Read).await.unwrap()
}
