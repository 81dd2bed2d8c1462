//! A share that also trims other pages is seen as a whole, even while earlier changes in the log are under way.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, PageRange, Payload};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_models::rig::{FileRig, Rig};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const LEFT: PageNo = PageNo(0);
const TRIMMED: PageNo = PageNo(1);
const RIGHT: PageNo = PageNo(2);
const OTHERS: u64 = 8;
const ROUNDS: u64 = 40;

/// The content with which `page` was written in a round.
fn content(page: PageNo, round: u64) -> PageBuf {
    PageBuf::copy_from(&(page.0 << 32 | round).to_le_bytes().repeat(PAGE_BYTES / 8))
}

/// Shares and trims repeatedly behind another write, and reads meanwhile; returns how many reads came before the share
/// was in force.
async fn shares_seen(runtime: Virtual, seed: u64) -> u64 {
    let media = FileRig::new(seed).open(&runtime);
    let ftl = Ftl::format(media, FtlOptions::new(40)).await.unwrap();
    let cleaned = Rc::clone(&ftl);
    drop(runtime.spawn("cleaner", async move { cleaned.run_cleaner().await }));
    let mut before = 0;
    for round in 1..=ROUNDS {
        let pages = [LEFT, TRIMMED, RIGHT].map(|page| (page, content(page, round)));
        ftl.write(&pages, true).await.unwrap();
        let (earlier, sharing) = (Rc::clone(&ftl), Rc::clone(&ftl));
        let others = runtime.spawn("a write", async move {
            let page = |at| (PageNo(OTHERS + at), content(PageNo(OTHERS + at), round));
            earlier.write(&(0..20).map(page).collect::<Vec<_>>(), true).await
        });
        let (done, told) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let (is_done, tells) = (Rc::clone(&done), Rc::clone(&told));
        let share = runtime.spawn("a share", async move {
            let trims = [PageRange::new(TRIMMED, 1)];
            let in_force = || tells.set(true);
            let shared = sharing.share_and_trim(&[(LEFT, RIGHT)], &trims, true, in_force).await;
            is_done.set(true);
            shared
        });
        while !done.get() {
            let is_told = told.get();
            let mut out = [PageBuf::zero(), PageBuf::zero()];
            ftl.read(&[LEFT, TRIMMED], &mut out).await.unwrap();
            let old = [content(LEFT, round), content(TRIMMED, round)];
            let new = [content(RIGHT, round), PageBuf::zero()];
            assert!(out == new || out == old && !is_told, "seed {seed}, round {round}: {out:?}");
            before += u64::from(out == old);
            runtime.sleep(3_000).await;
        }
        others.await.unwrap();
        share.await.unwrap();
    }
    before
}

#[test]
fn what_it_remaps_and_what_it_gives_up_changes_in_one_step() {
    let mut before = 0;
    for seed in 0..20 {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let of = runtime.clone();
        before += runtime.run(async move { shares_seen(of, seed).await }).unwrap();
    }
    assert!(before > 100, "reads met shares: {before}");
}
