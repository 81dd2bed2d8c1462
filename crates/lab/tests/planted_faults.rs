//! Every protection has a test that fails when it is switched off.
#[path = "support/cycles.rs"]
mod cycles;
#[path = "support/power.rs"]
mod power;
#[path = "support/prefix.rs"]
mod prefix;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use tantalum_base::fault_points::{FaultPoint, plant};
use tantalum_base::{Error, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Stamp};
use tantalum_ftl::fault_points::Fault;
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_lab::crash::{CampaignOptions, FileRig, NandRig, Rig, Workload, campaign};
use tantalum_media::wrappers::{AppendFault, Faults, FaultsOptions};
use tantalum_media::{CutPlan, Fate};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// What notices a fault: an answer, or a panic of `validate` or an assertion.
fn notices(search: impl FnOnce() -> Option<String>) -> Option<String> {
    catch_unwind(AssertUnwindSafe(search)).unwrap_or_else(|_| Some("an assertion".into()))
}

/// Plants `fault` and looks for a violation with `search`; without it there must be none.
fn found(fault: impl Into<FaultPoint>, search: impl Fn() -> Option<String>) {
    let fault = fault.into();
    assert_eq!(notices(&search), None, "without {fault:?}");
    let _planted = plant(fault);
    let found = notices(&search);
    println!("{fault:?}: {found:?}");
    assert!(found.is_some(), "{fault:?} was not noticed");
}

/// Random loads on the FTL alone.
fn prefix_loads(seeds: std::ops::Range<u64>) -> impl Fn() -> Option<String> {
    move || seeds.clone().find_map(|seed| prefix::every_cut(prefix::random_load(seed), 5).err())
}

/// The same with pages that share contents.
fn share_loads(seeds: std::ops::Range<u64>) -> impl Fn() -> Option<String> {
    move || seeds.clone().find_map(|seed| prefix::every_cut(prefix::random_shares(seed), 5).err())
}

/// The crash lab's random lives, as `tantalum crash` runs them: so many verified cuts at most.
fn crash_lab(device: &str, media: &str, cuts: u64) -> impl Fn() -> Option<String> {
    lives_of("mixed", device, media, cuts)
}

/// The same, in all of which the medium is damaged as it is read.
fn decaying_lives(device: &str, media: &str) -> impl Fn() -> Option<String> {
    lives_of("mixed:decay=1", device, media, 8000)
}

fn lives_of(
    workload: &str,
    device: &str,
    media: &str,
    cuts: u64,
) -> impl Fn() -> Option<String> + use<> {
    let options = CampaignOptions {
        device: device.to_owned(),
        media: media.to_owned(),
        workload: Workload::parse(workload).unwrap(),
        cuts,
        exhaustive: false,
        aged: false,
        seed: 1,
        violations_max: 1,
        shrink_tries: 0,
        threads: 1,
    };
    move || {
        let done = campaign(&options, &mut |_, _| {}).unwrap();
        let found = done.found.first()?;
        Some(format!("after {} cuts: {}", found.after_cuts, found.violation))
    }
}

/// One device that loses power again and again; a violation is an assertion.
fn cut_again_and_again(seeds: std::ops::Range<u64>) -> impl Fn() -> Option<String> {
    move || {
        for seed in seeds.clone() {
            cycles::cycles::<FileRig>(seed, 60, 4 + 8 * seed, 1 + seed, 0.0);
        }
        None
    }
}

#[test]
fn half_batches() {
    found(Fault::HalfBatches, prefix_loads(0..40));
}

#[test]
fn copies_are_synced() {
    found(Fault::NoSyncOfCopies, prefix_loads(0..40));
}

#[test]
fn replacements_are_waited_for() {
    found(Fault::NoWaitForReplacements, || prefix::every_cut(prefix::LOAD, 1).err());
}

#[test]
fn own_pages_are_checked() {
    // Damage must fall on what such a page says, behind the scan that found it intact.
    found(Fault::OwnPagesUnchecked, lives_of("mixed:decay=1", "ssd:cache=ordered", "file", 12_000));
    found(Fault::OwnPagesUnchecked, lives_of("mixed:decay=1", "atomic-log", "file", 12_000));
}

#[test]
fn lost_pages_stay_errors() {
    found(Fault::LostPagesForgotten, decaying_lives("ssd:cache=through", "nand"));
    found(Fault::LostPagesForgotten, decaying_lives("ssd:cache=ordered", "file"));
}

#[test]
fn damage_is_not_the_end_of_the_log() {
    found(Fault::DamageTakenForEnd, decaying_lives("ssd:cache=through", "nand"));
    found(Fault::DamageTakenForEnd, decaying_lives("ssd:cache=through", "file"));
}

#[test]
fn a_footer_comes_last() {
    found(Fault::NoSyncBeforeFooter, prefix_loads(0..40));
}

/// A share is acknowledged as durable; then the power goes.
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
    rig.settle(&runtime).unwrap();
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
    found(Fault::SharesNotLogged, acknowledged_share);
}

#[test]
fn all_sharers_are_written_down() {
    found(Fault::SharersLeftBehind, share_loads(0..40));
}

#[test]
fn sharers_wait_for_the_log() {
    found(Fault::SharersAheadOfLog, share_loads(0..40));
}

/// Zones whose contents were all replaced are erased before any append said that the versions in
/// them were durable; then the power goes.
fn erased_in_silence() -> Option<String> {
    const PAGES: u64 = 120;
    let mut rig = NandRig::<Stamp>::new(1);
    // Only zones without live content are cleaned: what is copied would say it too.
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
    rig.settle(&runtime).unwrap();
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
    found(Fault::NoWatermark, erased_in_silence);
}

#[test]
fn flushes_leave_no_gaps() {
    found(Fault::FlushLeavesGaps, prefix_loads(0..40));
}

#[test]
fn the_latest_copy_counts() {
    found(Fault::NoCopyRank, prefix_loads(0..60));
}

/// A page that the medium changes on its way in must not be given out.
fn wrong_bytes() -> Option<String> {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = FileRig::new(1).open(&runtime);
    let media = Faults::new(Rc::new(media), FaultsOptions::default());
    let read = runtime.run(async move {
        let ftl = Ftl::format(media, FtlOptions::new(20)).await?;
        ftl.media().fail_append(0, AppendFault::Corrupt(0));
        ftl.write(&[(PageNo(3), PageBuf::copy_from(&[7; PAGE_BYTES]))], true).await?;
        let mut out = [PageBuf::zero()];
        ftl.read(&[PageNo(3)], &mut out).await
    });
    read.unwrap().ok().map(|()| "a page with other bytes was read".into())
}

#[test]
fn contents_are_checked() {
    found(Fault::NoChecksum, wrong_bytes);
}

#[test]
fn versions_are_skipped() {
    found(Fault::NoVersionSkip, cut_again_and_again(0..12));
}

#[test]
fn acknowledgements_wait_on_files() {
    found(Fault::EarlyAcknowledgement, crash_lab("ssd:cache=through", "file", 1000));
}

/// A write is written back and its frame is given up; then the power goes.
fn written_back_and_cut() -> Option<String> {
    const PAGES: u64 = 12;
    // With the least energy changed entries are backed up soon, which syncs the medium.
    const MORE_ENERGY_PAGES: u64 = 64;
    (0..20).find_map(|seed| {
        let mut device = power::Device::<FileRig>::format(seed, MORE_ENERGY_PAGES);
        let runtime = device.runtime.clone();
        device.run(|ssd| async move {
            for page in 0..2 * PAGES {
                ssd.write(PageNo(page), &[power::content(page, 2)], None).await?;
            }
            // Long enough for the write-back of the older half, which nobody waits for.
            runtime.sleep(100_000_000).await;
            Ok(())
        });
        let dumped = match device.power_loss() {
            Err(error) => return Some(format!("seed {seed}: {error}")),
            Ok(report) => report.frames,
        };
        assert!(u64::from(dumped) < 2 * PAGES, "nothing was written back");
        let mut device = match power::Device::try_reopen(device.rig, seed, MORE_ENERGY_PAGES) {
            Err(error) => return Some(format!("seed {seed}: {error}")),
            Ok(device) => device,
        };
        device.run(|ssd| async move {
            for page in 0..2 * PAGES {
                let mut held = [PageBuf::zero()];
                let read = ssd.read(PageNo(page), &mut held, None).await;
                if read.is_err() || held[0] != power::content(page, 2) {
                    return Ok(Some(format!("seed {seed}: page {page} is {held:?}, {read:?}")));
                }
            }
            Ok(None)
        })
    })
}

#[test]
fn frames_are_kept_until_durable() {
    found(Fault::EarlyAcknowledgement, written_back_and_cut);
}

/// Dumps that are cut short: none may have a footer.
fn footers_of_cut_dumps() -> Option<String> {
    for after_operations in 0.. {
        let mut device = power::Device::<NandRig<Stamp>>::format(5, 0);
        device.run(|ssd| async move {
            for page in 0..10 {
                ssd.write(PageNo(page), &[power::content(page, 2)], None).await?;
            }
            Ok(())
        });
        if device.power_loss_cut(CutPlan { after_operations, fate: Fate::Land }) {
            return None;
        }
        let refused = power::Device::try_reopen(device.rig, 6, 0).err();
        let text = refused.map(|error| error.to_string()).unwrap_or_default();
        if text.contains("intact") {
            return Some(format!("cut at operation {after_operations}: {text}"));
        }
    }
    None
}

#[test]
fn a_dumps_footer_comes_last() {
    found(Fault::DumpFooterFirst, footers_of_cut_dumps);
}

#[test]
fn changed_mapping_entries_are_dumped() {
    found(Fault::DeltasNotDumped, || {
        power::verify_dumped(power::dumped::<NandRig<Stamp>>(1));
        None
    });
}

/// More changes than the stored energy can dump, each an entry of its own.
fn many_changes() -> Option<String> {
    // Room for all of them in the log, where none is cleaned.
    let rig = NandRig::<Stamp>::with_more_zones(5, 150);
    let mut device = power::Device::format_on(rig, 5, 0, power::ssd_options());
    device.run(|ssd| async move {
        for change in 0..1600 {
            ssd.trim(PageRange::new(PageNo(change * 37 % 100), 2)).await?;
        }
        ssd.write(PageNo(0), &[power::content(0, 2)], None).await
    });
    device.power_loss().err().map(|error| error.to_string())
}

#[test]
fn changed_mapping_entries_are_held_to_the_energy() {
    found(Fault::NoDeltaLimit, many_changes);
}

#[test]
fn a_dump_stays_until_it_is_written_back() {
    found(Fault::DumpClearedEarly, || {
        for after_operations in 0..12 {
            let mut rig = power::dumped::<NandRig<Stamp>>(5);
            power::cut_reboot(&mut rig, CutPlan { after_operations, fate: Fate::Land }, 0);
            power::verify_dumped(rig);
        }
        None
    });
}
