//! SHARE: the effects, errors and costs of a batch of pairs, and the state after a power cut.
use crate::support::share::{self, PAGES, Session, session, stamp};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Payload, Stamp};
use tantalum_ftl::FtlOptions;
use tantalum_media::wrappers::AppendFault;
use tantalum_runtime::{LifeCycle, Runtime};
use tantalum_ssd::{CacheKind, Ssd};

const KINDS: [CacheKind; 3] = [CacheKind::Durable, CacheKind::WriteThrough, CacheKind::Ordered];

fn pairs(pairs: &[(u64, u64)]) -> Vec<(PageNo, PageNo)> {
    pairs.iter().map(|(left, right)| (PageNo(*left), PageNo(*right))).collect()
}

fn on_each(test: impl AsyncFn(Session) -> Result<(), Error> + Copy + 'static) {
    for kind in KINDS {
        session(kind, FtlOptions::new(PAGES), test);
    }
}

#[test]
fn either_page_may_change_and_the_other_keeps_its_content() {
    on_each(async |device: Session| {
        device.write(0, 8, 1).await?;
        device.ssd.share(&pairs(&[(100, 0), (101, 1), (102, 2), (103, 3)])).await?;
        device.expect(100, stamp(0, 1)).await?;
        // The right page is overwritten, then trimmed; then the left one.
        device.write(0, 1, 2).await?;
        device.ssd.trim(PageRange::new(PageNo(1), 1)).await?;
        device.write(102, 1, 2).await?;
        device.ssd.trim(PageRange::new(PageNo(103), 1)).await?;
        for (page, held) in [
            (0, stamp(0, 2)),
            (100, stamp(0, 1)),
            (1, Stamp::zero()),
            (101, stamp(1, 1)),
            (2, stamp(2, 1)),
            (102, stamp(102, 2)),
            (3, stamp(3, 1)),
            (103, Stamp::zero()),
        ] {
            device.expect(page, held).await?;
        }
        Ok(())
    });
}

#[test]
fn chains_and_many_to_one() {
    on_each(async |device: Session| {
        device.write(0, 1, 1).await?;
        for left in 1..80 {
            device.ssd.share(&pairs(&[(left, left - 1)])).await?;
        }
        let counted = device.ssd.statistics().ftl;
        assert_eq!((counted.shared_slots, counted.shared_entries), (1, 79));
        device.write(0, 1, 2).await?;
        device.write(50, 1, 2).await?;
        device.ssd.close().await?;
        assert_eq!(device.ssd.statistics().ftl.shared_entries, 77);
        for page in (1..80).filter(|page| *page != 50) {
            device.expect(page, stamp(0, 1)).await?;
        }
        Ok(())
    });
}

#[test]
fn as_many_pages_as_there_are_share_one_content() {
    on_each(async |device: Session| {
        device.write(0, 1, 1).await?;
        for left in 1..PAGES {
            device.ssd.share(&pairs(&[(left, 0)])).await?;
        }
        let counted = device.ssd.statistics().ftl;
        assert_eq!((counted.shared_slots, counted.pages_share_copied), (1, 0), "{counted:?}");
        for page in 0..PAGES {
            device.expect(page, stamp(0, 1)).await?;
        }
        Ok(())
    });
}

#[test]
fn refusals_change_nothing() {
    on_each(async |device: Session| {
        device.write(0, 8, 1).await?;
        device.ssd.flush().await?;
        let most = u64::from(device.ssd.limits().share_pairs_max);
        assert!((8..PAGES - 10).contains(&most), "the test is made for a small limit, not {most}");
        let over: Vec<(u64, u64)> = (0..=most).map(|at| (10 + at, at % 8)).collect();
        for (batch, kind) in [
            (&[(100, 0), (PAGES, 1)][..], ErrorKind::OutOfRange),
            (&[(100, 0), (101, PAGES)], ErrorKind::OutOfRange),
            (&[(100, 0), (100, 1)], ErrorKind::InvalidInput),
            (&[(100, 0), (1, 100)], ErrorKind::InvalidInput),
            (&[(100, 0), (5, 5)], ErrorKind::InvalidInput),
            (&[(100, 0), (101, 110)], ErrorKind::Unmapped),
            (&over, ErrorKind::TooLarge),
        ] {
            let refused = device.ssd.share(&pairs(batch)).await.unwrap_err();
            assert_eq!(refused.kind(), kind, "{batch:?}: {refused:?}");
        }
        let range = device.ssd.share_range(PageNo(2), PageNo(0), 4).await.unwrap_err();
        assert_eq!(range.kind(), ErrorKind::InvalidInput);
        device.expect(100, Stamp::zero()).await?;
        device.expect(1, stamp(1, 1)).await?;
        assert_eq!(device.ssd.statistics().ftl.pages_shared, 0);
        Ok(())
    });
}

#[test]
fn a_volatile_cache_does_not_share() {
    session(CacheKind::Volatile, FtlOptions::new(PAGES), async |device: Session| {
        device.write(0, 1, 1).await?;
        let refused = device.ssd.share(&pairs(&[(1, 0)])).await.unwrap_err();
        assert_eq!(
            (refused.kind(), device.ssd.limits().share_pairs_max),
            (ErrorKind::Unsupported, 0)
        );
        Ok(())
    });
}

#[test]
fn shares_come_behind_the_writes_before_them_and_before_those_behind() {
    on_each(async |device: Session| {
        for round in 1..60 {
            // The pages of either side may still be in the cache.
            device.write(0, 4, round).await?;
            device.write(100, 4, round).await?;
            device.ssd.share_range(PageNo(100), PageNo(0), 4).await?;
            device.expect(101, stamp(1, round)).await?;
            device.write(1, 1, 1000 + round).await?;
            device.write(102, 1, 1000 + round).await?;
            for (page, held) in [
                (1, stamp(1, 1000 + round)),
                (101, stamp(1, round)),
                (102, stamp(102, 1000 + round)),
                (103, stamp(3, round)),
            ] {
                device.expect(page, held).await?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_share_takes_what_is_committed_and_leaves_what_a_transaction_holds() {
    on_each(async |device: Session| {
        device.write(0, 2, 1).await?;
        let tx = device.ssd.begin().await?;
        device.ssd.write(PageNo(0), &[stamp(0, 2)], Some(tx)).await?;
        device.ssd.write(PageNo(101), &[stamp(101, 2)], Some(tx)).await?;
        let refused = device.ssd.share(&pairs(&[(100, 0), (101, 1)])).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        device.expect(100, Stamp::zero()).await?;
        device.ssd.share(&pairs(&[(100, 0), (102, 1)])).await?;
        device.expect(100, stamp(0, 1)).await?;
        device.expect(102, stamp(1, 1)).await?;
        device.ssd.commit(tx).await?;
        device.expect(100, stamp(0, 1)).await?;
        device.expect(0, stamp(0, 2)).await?;
        device.expect(101, stamp(101, 2)).await?;
        Ok(())
    });
}

#[test]
fn a_share_writes_one_page_and_none_of_the_contents() {
    for (kind, slots_a_share) in [
        // One page, which on this medium takes a flash page of two.
        (CacheKind::WriteThrough, 2),
        (CacheKind::Ordered, 2),
        // Stored energy preserves the changed entries.
        (CacheKind::Durable, 0),
    ] {
        session(kind, FtlOptions::new(PAGES), async move |device: Session| {
            device.write(0, 20, 1).await?;
            device.ssd.close().await?;
            let before = device.ssd.statistics().ftl.slots_programmed;
            device.ssd.share_range(PageNo(80), PageNo(0), 20).await?;
            let after = device.ssd.statistics().ftl;
            let slots = after.slots_programmed - before;
            assert_eq!((slots, after.pages_shared), (slots_a_share, 20), "{kind:?}");
            // Each of several small batches costs as much.
            for at in 0..20 {
                device.ssd.share(&pairs(&[(100 + at, at)])).await?;
            }
            let later = device.ssd.statistics().ftl;
            let slots = later.slots_programmed - after.slots_programmed;
            assert_eq!((slots, later.pages_shared), (20 * slots_a_share, 40), "{kind:?}");
            Ok(())
        });
    }
}

/// A page has one entry among the changed ones, however often it is remapped.
#[test]
fn shares_of_the_same_pages_for_long_cost_a_durable_cache_nothing() {
    session(CacheKind::Durable, FtlOptions::new(PAGES), async |device: Session| {
        const SHARES: u64 = 5000;
        for first in (0..60).step_by(20) {
            device.write(first, 20, 1).await?;
        }
        device.ssd.close().await?;
        let before = device.ssd.statistics().ftl;
        for at in 0..SHARES {
            let (left, right) = (60 + at * 7 % 60, at * 11 % 60);
            device.ssd.share(&pairs(&[(left, right)])).await?;
            device.expect(left, stamp(right, 1)).await?;
        }
        let after = device.ssd.statistics().ftl;
        assert_eq!((after.pages_shared, after.changed_entries), (SHARES, 60));
        assert_eq!(after.slots_programmed, before.slots_programmed, "{after:?}");
        Ok(())
    });
}

/// If the table of reference lists is full, contents are copied: the promise is the same.
#[test]
fn a_full_table_of_references_costs_copies_and_loses_nothing() {
    for kind in KINDS {
        let options = FtlOptions { share_entries_max: Some(10), ..FtlOptions::new(PAGES) };
        session(kind, options, async |device: Session| {
            device.write(0, 16, 1).await?;
            device.write(16, 8, 1).await?;
            device.ssd.share_range(PageNo(100), PageNo(0), 16).await?;
            let counted = device.ssd.statistics().ftl;
            assert_eq!((counted.pages_shared, counted.pages_share_copied), (10, 6));
            assert_eq!(counted.shared_entries, 10);
            assert!(counted.shared_bytes > 0);
            // Entries become free when one of the two pages is written.
            device.write(0, 4, 2).await?;
            device.ssd.flush().await?;
            device.ssd.close().await?;
            device.ssd.share_range(PageNo(60), PageNo(16), 6).await?;
            let counted = device.ssd.statistics().ftl;
            assert_eq!((counted.pages_shared, counted.pages_share_copied), (14, 8));
            for (to, from) in (100..116).zip(0..).chain((60..66).zip(16..)) {
                device.expect(to, stamp(from, 1)).await?;
            }
            Ok(())
        });
    }
}

#[test]
fn shared_pages_outlive_cleaning_and_reopening() {
    for (seed, entries) in [(1, None), (2, None), (3, Some(250)), (4, Some(8))] {
        for kind in KINDS {
            share::overwrite_and_reopen(kind, seed, entries);
        }
    }
}

/// The content of a durable cache at a power cut precedes later commands that must come after it.
#[test]
fn what_survived_in_the_cache_comes_before_a_share_and_a_trim() {
    share::with_a_survived_cache(async |device: Session| {
        device.ssd.share(&pairs(&[(100, 0)])).await?;
        device.ssd.trim(PageRange::new(PageNo(1), 1)).await?;
        device.ssd.close().await?;
        for (page, held) in [(0, stamp(0, 1)), (100, stamp(0, 1)), (1, Stamp::zero())] {
            device.expect(page, held).await?;
        }
        Ok(())
    });
}

/// A share takes effect when it has its place in the log. If the log then fails, no part of the
/// share may be readable.
#[test]
fn a_share_whose_record_fails_leaves_nothing() {
    share::with_faults(async |ftl, media| {
        let write = |page, count| [(PageNo(page), stamp(page, count))];
        ftl.write(&write(0, 1), true).await?;
        ftl.write(&write(1, 1), true).await?;
        media.fail_append(0, AppendFault::Io);
        assert!(!ftl.statistics().latched);
        let pairs = [(PageNo(1), PageNo(0)), (PageNo(2), PageNo(0))];
        assert_eq!(ftl.share(&pairs, true, || ()).await.unwrap_err().kind(), ErrorKind::Io);
        let mut out = [Stamp::zero(); 3];
        ftl.read(&[PageNo(0), PageNo(1), PageNo(2)], &mut out).await?;
        assert_eq!(out, [stamp(0, 1), stamp(1, 1), Stamp::zero()]);
        ftl.validate();
        for (pairs, durable) in [(&pairs[..], true), (&[], true), (&[], false)] {
            let refused = ftl.share(pairs, durable, || ()).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Latched);
        }
        assert!(ftl.statistics().latched);
        Ok(())
    });
}

/// A failed program is repeated elsewhere, also for the record of a share.
#[test]
fn a_share_whose_program_fails_is_logged_elsewhere() {
    share::with_faults(async |ftl, media| {
        ftl.write(&[(PageNo(0), stamp(0, 1))], true).await?;
        media.fail_append(0, AppendFault::ProgramFailed);
        ftl.share(&[(PageNo(1), PageNo(0))], true, || ()).await?;
        assert_eq!(ftl.statistics().program_failures, 1);
        let mut out = [Stamp::zero()];
        ftl.read(&[PageNo(1)], &mut out).await?;
        assert_eq!(out, [stamp(0, 1)]);
        ftl.validate();
        Ok(())
    });
}

/// This includes caches in which a write becomes durable only with the next flush.
#[test]
fn an_acknowledged_share_survives_with_what_came_before_it() {
    for kind in KINDS {
        for seed in 0..20 {
            let held = share::after_a_share_and_a_cut(kind, seed, seed % 2 == 1);
            assert_eq!(held, share::AFTER_A_SHARE, "{kind:?}, seed {seed}");
        }
    }
}

/// An empty share has nothing to log, but the same promise as any other.
#[test]
fn a_share_of_no_pages_makes_durable_what_came_before_it() {
    on_each(async |device: Session| {
        device.write(0, 4, 1).await?;
        device.ssd.share(&[]).await?;
        let kept = device.ssd.options().cache == CacheKind::Durable;
        assert!(kept || device.ssd.ftl().mapped_pages() == 4);
        assert!(device.ssd.ftl().is_durable(), "{:?}", device.ssd.options().cache);
        Ok(())
    });
}

/// The second clone finds no difference, because the mapping already shows the first one. A power
/// cut could still undo the first one.
#[test]
fn a_clone_that_is_made_again_waits_for_the_first_one() {
    on_each(async |device: Session| {
        device.write(0, 4, 1).await?;
        device.ssd.flush().await?;
        let first = Rc::clone(&device.ssd);
        let clone =
            |ssd: Rc<Ssd<_>>| async move { ssd.clone_range(PageNo(100), PageNo(0), 4).await };
        let first = device.runtime.spawn("clone", clone(first));
        // Wait until its content is visible.
        while device.ssd.ftl().mapped_pages() < 8 {
            device.runtime.sleep(1_000).await;
        }
        let ftl = Rc::clone(device.ssd.ftl());
        // With a durable cache it is durable at once.
        let at_once = device.ssd.options().cache == CacheKind::Durable;
        assert_eq!(ftl.is_durable(), at_once, "the first clone is still under way");
        clone(Rc::clone(&device.ssd)).await?;
        assert!(ftl.is_durable(), "{:?}", device.ssd.options().cache);
        first.await
    });
}

#[test]
fn concurrent_commands_on_shared_pages() {
    for kind in KINDS {
        for seed in 0..20 {
            session(kind, FtlOptions::new(PAGES), async move |device: Session| {
                share::concurrent(Rc::new(device), seed).await
            });
        }
    }
}
