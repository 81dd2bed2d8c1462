//! The durable cache over power losses: what is dumped and recovered, at what cost, and which
//! errors occur.
//!
//! The crash lab lets each dump finish, so these tests are separate: here dumps are cut, their
//! zones decay, and costs and reports are checked.
use crate::support::power;
use crate::support::power::{CACHE_PAGES, Device, PAGES, ftl_options, settled, ssd_options};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageBuf, PageDevice, PageNo, PageRange, Stamp};
use tantalum_ftl::FtlOptions;
use tantalum_media::{CutPlan, Fate};
use tantalum_models::rig::{FileRig, NandRig, Rig};
use tantalum_runtime::Runtime;
use tantalum_ssd::{FlushMeaning, Ssd, SsdOptions};

/// Seeds of the devices that lose power again and again.
fn seeds() -> std::ops::Range<u64> {
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    0..if nightly { 200 } else { 4 }
}

#[test]
fn nand_loses_power_400_times() {
    for seed in seeds() {
        power::cycles::<NandRig<Stamp>>(seed, 100, 0);
    }
}

#[test]
fn file_loses_power_400_times() {
    for seed in seeds() {
        power::cycles::<FileRig>(seed, 100, 0);
    }
}

#[test]
fn more_energy_is_used_and_needs_fewer_delta_pages() {
    let least = power::cycles::<NandRig<Stamp>>(7, 20, 0);
    let more = power::cycles::<NandRig<Stamp>>(7, 20, 12);
    assert!(least.delta_pages > 0, "the budget is small enough to be reached: {least:?}");
    assert!(more.delta_pages < least.delta_pages, "{more:?} after {least:?}");
}

#[test]
fn a_reboot_reads_no_zone_of_the_log_and_waits_for_the_capacitors() {
    let rig = power::dumped::<NandRig<Stamp>>(1);
    let device = Device::reopen(rig, 2, 0);
    let report = device.report;
    assert!(report.recovery.merged && report.recovery.zones_scanned == 0, "{report:?}");
    assert!(report.pages_replayed <= u64::from(CACHE_PAGES), "{report:?}");
    assert!(report.reboot_ns >= power::RECHARGE_NS, "{report:?}");
}

#[test]
fn the_cache_the_mapping_and_trims_come_back_from_media_alone() {
    power::verify_dumped(power::dumped::<NandRig<Stamp>>(1));
    power::verify_dumped(power::dumped::<NandRig<PageBuf>>(2));
    power::verify_dumped(power::dumped::<FileRig>(3));
}

#[test]
fn a_reboot_cut_at_every_operation_loses_nothing() {
    let mut cuts = 0;
    for first in 0.. {
        let mut rig = power::dumped::<NandRig<Stamp>>(5);
        let mut done = true;
        // Two cuts at the same operation: the second attempt works on the state that the first
        // left.
        for fate in [Fate::ALL[first as usize % 3], Fate::ALL[(first as usize + 1) % 3]] {
            done &= !power::cut_reboot(&mut rig, CutPlan { after_operations: first, fate }, 0);
        }
        power::verify_dumped(rig);
        if done {
            break;
        }
        cuts += 1;
    }
    println!("{cuts} operations of a reboot were cut");
    assert!(cuts >= 6, "a reboot has more than {cuts} operations");
}

/// Power is cut during the dump, which the energy budget rules out. The device must report it, and
/// must never serve without the acknowledged writes.
#[test]
fn a_dump_cut_short_is_corrupt_and_never_silent_loss() {
    let mut refused = 0;
    for after_operations in 0.. {
        let mut device = Device::<NandRig<Stamp>>::format(5, 0);
        device.run(|ssd| async move {
            for page in 0..10 {
                ssd.write(PageNo(page), &[power::content(page, 2)], None).await?;
            }
            Ok(())
        });
        let plan = CutPlan { after_operations, fate: Fate::Tear };
        if device.power_loss_cut(plan) {
            break;
        }
        match Device::try_reopen(device.rig, 6, 0) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
                refused += 1;
            }
            // Nothing was written, as on a device without a budget.
            Ok(_) => assert!(after_operations <= 2, "cut at operation {after_operations}"),
        }
    }
    assert!(refused >= 2, "{refused} dumps were found incomplete");
}

#[test]
fn a_decayed_page_of_a_dump_is_corrupt() {
    for seed in 0..8 {
        let mut device = Device::<NandRig<Stamp>>::format(seed, 0);
        device.run(|ssd| async move {
            for page in 0..20 {
                ssd.write(PageNo(page), &[power::content(page, 2)], None).await?;
            }
            Ok(())
        });
        let zones = device.dump_zones();
        device.power_loss().unwrap();
        let mut rig = device.rig;
        // Each flash page of the dump area that is read decays, one after the other.
        power::decay(&mut rig, zones[0], seed as u32);
        let error = Device::try_reopen(rig, 9, 0).err().expect("the dump is damaged");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
    }
}

#[test]
fn a_device_that_accepted_nothing_dumps_nothing() {
    let mut device = Device::<NandRig<Stamp>>::format(1, 0);
    assert_eq!(device.power_loss().unwrap().number, 0);
    let device = Device::reopen(device.rig, 2, 0);
    assert!(!device.report.recovery.merged && device.report.recovery.dump == 0);
}

#[test]
fn a_flush_that_writes_back_survives_without_energy() {
    for (flush, survives) in [(FlushMeaning::WriteBack, true), (FlushMeaning::Order, false)] {
        let mut options = ssd_options();
        options.flush = flush;
        let mut device = Device::<NandRig<Stamp>>::format_with(3, 0, options);
        device.run(|ssd| async move {
            for page in 0..5 {
                ssd.write(PageNo(page), &[power::content(page, 4)], None).await?;
            }
            ssd.flush().await?;
            ssd.share_range(PageNo(5), PageNo(0), 5).await?;
            ssd.write(PageNo(10), &[power::content(10, 4)], None).await?;
            ssd.flush().await
        });
        // The capacitors fail, so nothing is dumped.
        device.off();
        let mut device = Device::reopen(device.rig, 4, 0);
        let found = device.run(|ssd| async move { power::read_all(&ssd, 11).await });
        let written = (0..5).chain(0..5).chain([10]);
        let kept = written.zip(found).all(|(page, found)| found == power::content(page, 4));
        assert_eq!(kept, survives, "{flush:?}");
    }
}

/// A command after a flush that only orders commands does not overtake it, although the cache has
/// room for this command and not for the one before the flush.
#[test]
fn no_command_overtakes_a_flush_before_it() {
    let mut device = Device::<NandRig<Stamp>>::format(3, 0);
    let order = device.run(|ssd| async move {
        let order = Rc::new(std::cell::RefCell::new(Vec::new()));
        let fill = |first: u64, pages: u64| -> Vec<Stamp> {
            (first..first + pages).map(|page| power::content(page, 1)).collect()
        };
        // Twenty-two of the 24 frames.
        ssd.write(PageNo(0), &fill(0, 12), None).await?;
        ssd.write(PageNo(12), &fill(12, 10), None).await?;
        let (large, small) = (fill(40, 12), fill(60, 1));
        let (a, b) = (ssd.write(PageNo(40), &large, None), ssd.flush());
        let (c, d) = (ssd.write(PageNo(60), &small, None), ssd.trim(PageRange::new(PageNo(0), 1)));
        let note = |what: &'static str| order.borrow_mut().push(what);
        power::join4(
            async { a.await.map(|()| note("large")) },
            async { b.await.map(|()| note("flush")) },
            async { c.await.map(|()| note("small")) },
            async { d.await.map(|()| note("trim")) },
        )
        .await?;
        Ok(order.take())
    });
    assert_eq!(order, ["large", "flush", "small", "trim"]);
}

/// A flush that only orders commands waits for writers that came before it.
#[test]
fn a_flush_waits_for_the_writes_before_it() {
    let mut device = Device::<NandRig<Stamp>>::format(3, 0);
    let order = device.run(|ssd| async move {
        let order = Rc::new(std::cell::RefCell::new(Vec::new()));
        let fill: Vec<Stamp> = (0..12).map(|page| power::content(page, 1)).collect();
        let (a, b) = (ssd.write(PageNo(0), &fill, None), ssd.write(PageNo(20), &fill, None));
        let (c, d) = (ssd.write(PageNo(40), &fill, None), ssd.flush());
        let note = |what: &'static str| order.borrow_mut().push(what);
        power::join4(
            async { a.await.map(|()| note("a")) },
            async { b.await.map(|()| note("b")) },
            async { c.await.map(|()| note("c")) },
            async { d.await.map(|()| note("flush")) },
        )
        .await?;
        Ok(order.take())
    });
    assert_eq!(order, ["a", "b", "c", "flush"], "the third write waited for frames");
}

/// Time from issuing a full queue of writes of `pages` pages each at once to an empty cache, until
/// the last is acknowledged.
fn full_queue_ns(quota: u32, pages: u64) -> u64 {
    let options = SsdOptions { command_quota_pages: quota, ..ssd_options() };
    let mut device = Device::<NandRig<Stamp>>::format_with(3, 0, options);
    let runtime = device.runtime.clone();
    device.run(move |ssd| async move {
        let start_ns = runtime.now_ns();
        let write = |command: u64| {
            let (ssd, first) = (Rc::clone(&ssd), command * pages);
            async move {
                let pages = first..first + pages;
                let contents: Vec<Stamp> = pages.map(|page| power::content(page, 1)).collect();
                ssd.write(PageNo(first), &contents, None).await
            }
        };
        let tasks: Vec<_> = (0..8).map(|at| runtime.spawn("command", write(at))).collect();
        for task in tasks {
            task.await?;
        }
        Ok(runtime.now_ns() - start_ns)
    })
}

#[test]
fn a_queue_full_of_commands_within_the_quota_finds_room_at_once() {
    // Eight commands at a time, each an eighth of the cache.
    let quota = CACHE_PAGES / 8;
    assert_eq!(full_queue_ns(quota, u64::from(quota)), 0, "none waits for a flash page");
    let without = full_queue_ns(0, u64::from(quota) + 1);
    assert!(without > 400_000, "with a page more, which no quota refuses, some do: {without}");
    let options = SsdOptions { command_quota_pages: quota, ..ssd_options() };
    let mut device = Device::<NandRig<Stamp>>::format_with(3, 0, options);
    device.run(move |ssd| async move {
        assert_eq!(ssd.limits().atomic_write_pages_max, quota);
        let more: Vec<Stamp> = (0..=u64::from(quota)).map(|page| power::content(page, 1)).collect();
        let refused = ssd.write(PageNo(0), &more, None).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        Ok(())
    });
}

/// A command whose pages are not all in the cache at the power loss leaves no trace.
#[test]
fn an_incomplete_command_leaves_nothing() {
    let mut device = Device::<NandRig<Stamp>>::format(3, 0);
    let ssd: Rc<Ssd<_>> = Rc::clone(&device.ssd);
    let runtime = device.runtime.clone();
    let fill: Vec<Stamp> = (0..12).map(|page| power::content(page, 1)).collect();
    // Two writes fill the cache; the third waits for frames at the power loss.
    let polled = runtime.run(async move {
        let (a, b) = (ssd.write(PageNo(0), &fill, None), ssd.write(PageNo(20), &fill, None));
        let third: Vec<Stamp> = (0..12).map(|page| power::content(page + 5, 9)).collect();
        let (a, b) = (a.await, b.await);
        let mut third = std::pin::pin!(ssd.write(PageNo(5), &third, None));
        let pending = std::future::poll_fn(|context| {
            std::task::Poll::Ready(third.as_mut().poll(context).is_pending())
        });
        (a.is_ok() && b.is_ok(), pending.await)
    });
    assert_eq!(polled.unwrap(), (true, true));
    device.power_loss().unwrap();
    let mut device = Device::reopen(device.rig, 4, 0);
    let found = device.run(|ssd| async move { power::read_all(&ssd, 32).await });
    for (page, found) in (0..32).zip(found) {
        let count = u64::from(!(12..20).contains(&page));
        let expected =
            if page >= 20 { power::content(page - 20, count) } else { power::content(page, count) };
        assert_eq!(found, expected, "page {page}");
    }
}

/// Shares survive like any change of the mapping, from delta pages and dumps: acknowledged ones
/// completely, one in flight completely or not at all. To give the cut something to hit, the share
/// in flight remaps a page that is still in the cache, so that it waits for the write-back of that
/// page.
#[test]
fn shares_come_back_and_one_in_flight_is_whole_or_not_there() {
    for after_operations in 0.. {
        let mut device = Device::<NandRig<Stamp>>::format(3, 0);
        device.run(|ssd| async move {
            for page in 0..20 {
                ssd.write(PageNo(page), &[power::content(page, 1)], None).await?;
            }
            let pairs: Vec<_> = (0..10).map(|at| (PageNo(50 + at), PageNo(at % 5))).collect();
            ssd.share(&pairs).await?;
            ssd.write(PageNo(0), &[power::content(0, 2)], None).await?;
            ssd.trim(PageRange::new(PageNo(51), 1)).await?;
            ssd.flush().await
        });
        let plan = CutPlan { after_operations, fate: Fate::ALL[after_operations as usize % 3] };
        device.rig.plan(plan);
        let ssd = Rc::clone(&device.ssd);
        let shared = power::until_cut(&device.runtime, async move {
            ssd.write(PageNo(80), &[power::content(80, 1)], None).await?;
            let pairs: Vec<_> = (0..10).map(|at| (PageNo(80 + at), PageNo(52 + at % 8))).collect();
            ssd.share(&pairs).await
        });
        device.power_loss().unwrap();
        let mut device = Device::reopen(device.rig, 4, 0);
        assert!(device.report.recovery.merged);
        let found = device.run(|ssd| async move { power::read_all(&ssd, 90).await });
        for at in (0..10).filter(|at| *at != 1) {
            let expected: Stamp = power::content(at % 5, 1);
            assert_eq!(found[50 + at as usize], expected, "page {}", 50 + at);
        }
        assert_eq!((found[0], found[51]), (power::content(0, 2), power::content(0, 0)));
        let there = (0..10).filter(|at| found[80 + at] == found[52 + at % 8]).count();
        let all = matches!(shared, Some(Ok(())));
        assert!(there == 10 || there == 0 && !all, "{there} of 10 at {after_operations}");
        if all {
            assert!(after_operations > 0);
            break;
        }
    }
}

/// Two failed programs in one dump, wherever they are, do not damage it: zones and energy are
/// reserved for them.
#[test]
fn a_dump_in_which_two_programs_fail_is_whole() {
    let dump = |failing: &[u64]| {
        let mut device = Device::<NandRig<Stamp>>::format(7, 0);
        device.run(|ssd| async move {
            for page in 0..PAGES {
                ssd.write(PageNo(page), &[power::content(page, 1)], None).await?;
            }
            for page in 0..24 {
                ssd.write(PageNo(page * 3), &[power::content(page * 3, 2)], None).await?;
            }
            Ok(())
        });
        device.rig.fail_programs(failing);
        let dumped = device.power_loss();
        let dumped = dumped.unwrap_or_else(|error| panic!("{failing:?}: {error:?}"));
        assert!(dumped.bytes <= dumped.budget_bytes, "{failing:?}: {dumped:?}");
        device.rig.fail_programs(&[]);
        let mut device = Device::reopen(device.rig, 8, 0);
        let found = device.run(|ssd| async move { power::read_all(&ssd, PAGES).await });
        for (page, found) in (0..).zip(found) {
            let count = if page % 3 == 0 && page < 72 { 2 } else { 1 };
            assert_eq!(found, power::content(page, count), "{failing:?}: page {page}");
        }
        dumped.bytes
    };
    let plain_bytes = dump(&[]);
    let programs = plain_bytes / 8192;
    let mut more_bytes = 0;
    for first in 0..programs {
        for second in first + 1..programs + 8 {
            more_bytes = more_bytes.max(dump(&[first, second]) - plain_bytes);
        }
    }
    assert!(more_bytes > 0 && programs > 8, "programs failed in none of the dumps");
}

/// A cache called durable without stored energy would lose acknowledged writes.
#[test]
fn a_durable_cache_without_energy_is_refused() {
    let runtime = settled();
    let media = NandRig::<Stamp>::new(1).open(&runtime);
    let refused = runtime.run(async move {
        let ftl = tantalum_ftl::Ftl::format(media, FtlOptions::new(100)).await?;
        Ssd::new(ftl, power::ssd_options()).map(|_| ())
    });
    let refused = refused.unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("no energy for a dump"), "{refused}");
}

#[test]
fn a_budget_that_is_too_small_is_refused() {
    let mut options = ftl_options(&NandRig::<Stamp>::with_more_zones(1, 5).open(&settled()), 0);
    let dump = options.dump.as_mut().unwrap();
    dump.budget_bytes -= 1;
    let runtime = settled();
    let media = NandRig::<Stamp>::with_more_zones(1, 5).open(&runtime);
    let refused = runtime
        .run(async move { tantalum_ftl::Ftl::format(media, options).await.err() })
        .unwrap()
        .unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}
