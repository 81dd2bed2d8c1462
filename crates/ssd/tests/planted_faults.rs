//! The durable cache and its dump with one protection switched off: the checks must notice.
use crate::support::{power, share};
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{PageBuf, PageDevice, PageNo, PageRange, Payload, Stamp};
use tantalum_ftl::fault_points::Fault;
use tantalum_media::{CutPlan, Fate};
use tantalum_models::rig::{FileRig, NandRig, Rig};
use tantalum_runtime::Runtime;
use tantalum_ssd::CacheKind;

/// A write is written back and its frame is freed; then power is cut.
fn written_back_and_cut() -> Option<String> {
    const PAGES: u64 = 12;
    // With the minimum energy, changed entries would soon be backed up, which syncs the medium.
    const MORE_ENERGY_PAGES: u64 = 64;
    (0..20).find_map(|seed| {
        let mut device = power::Device::<FileRig>::format(seed, MORE_ENERGY_PAGES);
        let runtime = device.runtime.clone();
        device.run(|ssd| async move {
            for page in 0..2 * PAGES {
                ssd.write(PageNo(page), &[power::content(page, 2)], None).await?;
            }
            // Long enough to write back the older half, for which no writer waits.
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
    assert_noticed(Fault::EarlyAcknowledgement, written_back_and_cut);
}

/// Footers found in dumps that were cut short; there must be none.
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
    assert_noticed(Fault::DumpFooterFirst, footers_of_cut_dumps);
}

#[test]
fn changed_mapping_entries_are_dumped() {
    assert_noticed(Fault::DeltasNotDumped, || {
        power::verify_dumped(power::dumped::<NandRig<Stamp>>(1));
        None
    });
}

/// Changes more entries than the stored energy can dump.
fn many_changes() -> Option<String> {
    // Enough space in the log for all of them without cleaning.
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
    assert_noticed(Fault::NoDeltaLimit, many_changes);
}

#[test]
fn a_dump_stays_until_it_is_written_back() {
    assert_noticed(Fault::DumpClearedEarly, || {
        for after_operations in 0..12 {
            let mut rig = power::dumped::<NandRig<Stamp>>(5);
            power::cut_reboot(&mut rig, CutPlan { after_operations, fate: Fate::Land }, 0);
            power::verify_dumped(rig);
        }
        None
    });
}

/// Cuts power after an acknowledged share. With `closed`, the device is closed before the share.
fn shared_and_cut(closed: bool) -> Option<String> {
    let held = share::after_a_share_and_a_cut(CacheKind::Durable, 1, closed);
    (held != share::AFTER_A_SHARE).then(|| format!("{held:?}"))
}

/// The log does not contain these shares.
#[test]
fn shares_are_dumped() {
    for closed in [false, true] {
        assert_noticed(Fault::DeltasNotDumped, || shared_and_cut(closed));
    }
    assert_noticed(Fault::UnwrittenForgotten, || shared_and_cut(true));
}
