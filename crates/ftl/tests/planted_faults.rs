//! The log without one of its protections: the tests must notice. Faults that only a whole device
//! shows are in the crate `simulator`; its `fault_points.rs` names the test of each.
use crate::support::{cycles, format, prefix, zones_of};
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Error, PAGE_BYTES, PageBuf, PageNo, Payload, Stamp};
use tantalum_ftl::fault_points::Fault;
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::ErasedZones;
use tantalum_media::wrappers::{AppendFault, Faults, FaultsOptions};
use tantalum_models::rig::{FileRig, NandRig, Rig};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// Random loads on the FTL alone.
fn prefix_loads(seeds: std::ops::Range<u64>) -> impl Fn() -> Option<String> {
    move || seeds.clone().find_map(|seed| prefix::every_cut(prefix::random_load(seed), 5).err())
}

/// Random loads with pages that share contents.
fn share_loads(seeds: std::ops::Range<u64>) -> impl Fn() -> Option<String> {
    move || seeds.clone().find_map(|seed| prefix::every_cut(prefix::random_shares(seed), 5).err())
}

/// A device that loses power again and again; a violation is a failed assertion.
fn cut_again_and_again(seeds: std::ops::Range<u64>) -> impl Fn() -> Option<String> {
    move || {
        for seed in seeds.clone() {
            let (after_max, batch_max) = (4 + 8 * seed, 1 + seed);
            let (cycles, shares, dumps) = (60, 0.0, false);
            let gives_room_back = false;
            let load = cycles::Cycles {
                seed,
                cycles,
                after_max,
                batch_max,
                shares,
                dumps,
                gives_room_back,
            };
            cycles::cycles::<FileRig>(load);
        }
        None
    }
}

#[test]
fn hosts_write_behind_finished_copies_alone() {
    assert_noticed(Fault::WritesBehindUnfinishedCopies, prefix_loads(0..40));
}

#[test]
fn half_batches() {
    assert_noticed(Fault::HalfBatches, prefix_loads(0..40));
}

#[test]
fn copies_are_synced() {
    assert_noticed(Fault::NoSyncOfCopies, prefix_loads(0..40));
}

#[test]
fn replacements_are_waited_for() {
    assert_noticed(Fault::NoWaitForReplacements, || prefix::every_cut(prefix::LOAD, 1).err());
}

#[test]
fn a_footer_comes_last() {
    assert_noticed(Fault::NoSyncBeforeFooter, prefix_loads(0..40));
}

/// A share is acknowledged as durable; then power is cut.
fn acknowledged_share() -> Option<String> {
    let mut rig = NandRig::<Stamp>::new(1);
    let content = Stamp::new(PageNo(1), 1);
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.open(&runtime);
    let load = async move {
        let ftl = Ftl::format(media, FtlOptions::new(20)).await?;
        ftl.write(&[(PageNo(1), content)], true).await?;
        ftl.share(&[(PageNo(2), PageNo(1))], true, || ()).await
    };
    runtime.run(load).unwrap().unwrap();
    runtime.drop_tasks();
    rig.power_off(&runtime).unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.open(&runtime);
    let verify = async move {
        let (ftl, _) = Ftl::recover(media, FtlOptions::new(20)).await?;
        let mut out = [Stamp::zero()];
        ftl.read(&[PageNo(2)], &mut out).await?;
        Ok::<_, Error>((out[0] != content).then(|| format!("page 2 holds {:?}", out[0])))
    };
    runtime.run(verify).unwrap().unwrap()
}

#[test]
fn shares_are_logged() {
    assert_noticed(Fault::SharesNotLogged, acknowledged_share);
}

#[test]
fn all_references_are_written() {
    assert_noticed(Fault::ReferencesNotWritten, share_loads(0..40));
}

#[test]
fn copies_wait_for_their_shares() {
    assert_noticed(Fault::CopiesOfUndurableShares, share_loads(0..40));
}

/// Zones whose contents were all replaced are reset before any append stated that the versions in
/// them were durable; then power is cut.
fn erased_in_silence() -> Option<String> {
    const PAGES: u64 = 120;
    let mut rig = NandRig::<Stamp>::new(1);
    // Only zones without live content are cleaned: an append of copies would state it too.
    let options = FtlOptions {
        checkpoint_interval_slots: 1 << 40,
        cleaning_low_zones: 2,
        cleaning_high_zones: 2,
        ..FtlOptions::new(PAGES)
    };
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.open(&runtime);
    let rt = runtime.clone();
    let load = async move {
        let ftl = Ftl::format(media, options).await?;
        for count in 1..=2 {
            for first in (0..PAGES).step_by(8) {
                let pages = (first..first + 8).map(PageNo);
                let pages: Vec<_> = pages.map(|page| (page, Stamp::new(page, count))).collect();
                ftl.write(&pages, false).await?;
            }
        }
        ftl.sync().await?;
        let cleaner = Rc::clone(&ftl);
        rt.spawn("cleaner", async move { cleaner.run_cleaner().await });
        rt.sleep(1_000_000_000).await;
        assert!(ftl.statistics().zones_cleaned > 0);
        Ok::<_, Error>(())
    };
    runtime.run(load).unwrap().unwrap();
    runtime.drop_tasks();
    rig.power_off(&runtime).unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.open(&runtime);
    let verify = async move {
        let (ftl, _) = Ftl::recover(media, options).await?;
        let mut out = vec![Stamp::zero(); PAGES as usize];
        ftl.read(&(0..PAGES).map(PageNo).collect::<Vec<_>>(), &mut out).await?;
        let wrong = |page: &u64| out[*page as usize] != Stamp::new(PageNo(*page), 2);
        Ok::<_, Error>((0..PAGES).find(wrong))
    };
    let wrong = runtime.run(verify).unwrap().unwrap();
    wrong.map(|page| format!("page {page} was synced and is gone"))
}

#[test]
fn watermarks_are_written_down() {
    assert_noticed(Fault::NoWatermark, erased_in_silence);
}

#[test]
fn flushes_leave_no_gaps() {
    assert_noticed(Fault::FlushLeavesGaps, prefix_loads(0..40));
}

#[test]
fn the_latest_copy_counts() {
    assert_noticed(Fault::NoCopyRank, prefix_loads(0..60));
}

/// A page that the medium corrupts while writing must not be returned.
fn wrong_bytes() -> Option<String> {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = FileRig::new(1).open(&runtime);
    let media = Faults::new(Rc::new(media), FaultsOptions::default());
    let read = runtime.run(async move {
        let ftl = format(media, FtlOptions::new(20)).await?;
        zones_of::<Faults<ErasedZones<PageBuf>>>(&ftl).fail_append(0, AppendFault::Corrupt(0));
        ftl.write(&[(PageNo(3), PageBuf::copy_from(&[7; PAGE_BYTES]))], true).await?;
        let mut out = [PageBuf::zero()];
        ftl.read(&[PageNo(3)], &mut out).await
    });
    read.unwrap().ok().map(|()| "a page with other bytes was read".into())
}

#[test]
fn contents_are_checked() {
    assert_noticed(Fault::NoChecksum, wrong_bytes);
}

#[test]
fn versions_are_skipped() {
    assert_noticed(Fault::NoVersionSkip, cut_again_and_again(0..12));
}
