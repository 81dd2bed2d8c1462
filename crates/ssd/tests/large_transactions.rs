//! Transactions that outgrow their memory, on a device with staging pages.
use std::collections::BTreeSet;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Payload, Rng, Stamp, TxId};
use tantalum_ftl::{Ftl, FtlOptions, pages_max};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_models::rig::{NandRig, Rig};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

/// Pages that hosts see.
const PAGES: u64 = 60;
/// Pages of a transaction in memory.
const MEMORY_PAGES: u32 = 4;
const KINDS: [CacheKind; 2] = [CacheKind::WriteThrough, CacheKind::Ordered];

type Media = ErasedZones<Stamp>;

/// An open device.
struct Session(Rc<Ssd<Media>>);

fn stamp(page: u64, count: u64) -> Stamp {
    Stamp::new(PageNo(page), count)
}

impl Session {
    /// Writes each of these pages with content number `count`.
    async fn write(
        &self,
        pages: impl Iterator<Item = u64>,
        count: u64,
        tx: Option<TxId>,
    ) -> Result<(), Error> {
        for page in pages {
            self.0.write(PageNo(page), &[stamp(page, count)], tx).await?;
        }
        Ok(())
    }

    async fn read(&self, tx: Option<TxId>) -> Result<Vec<Stamp>, Error> {
        let mut out = vec![Stamp::zero(); PAGES as usize];
        self.0.read(PageNo(0), &mut out, tx).await?;
        Ok(out)
    }

    /// Pages of the FTL that have content.
    fn mapped(&self) -> u64 {
        self.0.statistics().ftl.pages_mapped
    }
}

fn options(media: &Media, mapped_pages_max: u64) -> FtlOptions {
    assert!(mapped_pages_max <= pages_max(&media.geometry(), 0));
    FtlOptions { mapped_pages_max: Some(mapped_pages_max), ..FtlOptions::new(2 * PAGES) }
}

fn ssd_options(kind: CacheKind) -> SsdOptions {
    SsdOptions {
        transaction_pages_max: MEMORY_PAGES,
        staging_pages: PAGES,
        write_pages_max: 8,
        ..SsdOptions::new(kind, 8)
    }
}

/// Runs `test` on a new device of each kind, on which at most `mapped_pages_max` pages may have
/// content.
fn on_each(
    mapped_pages_max: u64,
    test: impl AsyncFn(Session) -> Result<(), Error> + Copy + 'static,
) {
    for kind in KINDS {
        let mut rig = NandRig::<Stamp>::with_more_zones(1, 6);
        let runtime = Virtual::new(Schedule::Shuffled(1));
        let media = rig.open(&runtime);
        let rt = runtime.clone();
        let session = async move {
            let options = options(&media, mapped_pages_max);
            let ftl = Ftl::format(media, options).await?;
            let ssd = Rc::new(Ssd::new(ftl, ssd_options(kind))?);
            ssd.start(&rt);
            test(Session(Rc::clone(&ssd))).await?;
            ssd.validate();
            ssd.close().await
        };
        runtime.run(session).unwrap().unwrap();
    }
}

fn contents(of: impl Fn(u64) -> Stamp) -> Vec<Stamp> {
    (0..PAGES).map(of).collect()
}

#[test]
fn hosts_see_what_was_committed_and_a_transaction_what_it_wrote() {
    on_each(2 * PAGES, async |device: Session| {
        device.write(0..PAGES, 1, None).await?;
        let limits = device.0.limits();
        assert_eq!((limits.pages, limits.transaction_pages_max), (PAGES, PAGES as u32));
        let tx = device.0.begin().await?;
        device.write(0..40, 2, Some(tx)).await?;
        // Some pages again, staged or not, and some zeros.
        device.write((0..40).step_by(3), 3, Some(tx)).await?;
        for page in [1, 39] {
            device.0.write(PageNo(page), &[Stamp::zero()], Some(tx)).await?;
        }
        let seen = contents(|page| match page {
            1 | 39 => Stamp::zero(),
            0..40 if page % 3 == 0 => stamp(page, 3),
            0..40 => stamp(page, 2),
            _ => stamp(page, 1),
        });
        assert_eq!(device.read(Some(tx)).await?, seen);
        assert_eq!(device.read(None).await?, contents(|page| stamp(page, 1)));
        let other = device.0.begin().await?;
        let refused = device.write(5..6, 9, Some(other)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        device.0.commit(tx).await?;
        assert_eq!(device.read(None).await?, seen);
        assert_eq!(device.mapped(), PAGES - 2, "nothing is left where it was staged");
        device.write(5..6, 9, Some(other)).await?;
        device.0.abort(other).await
    });
}

#[test]
fn what_is_aborted_leaves_nothing() {
    on_each(2 * PAGES, async |device: Session| {
        device.write(0..10, 1, None).await?;
        for _ in 0..20 {
            let tx = device.0.begin().await?;
            device.write(0..PAGES, 2, Some(tx)).await?;
            device.0.abort(tx).await?;
            assert_eq!(device.mapped(), 10);
        }
        let written = contents(|page| if page < 10 { stamp(page, 1) } else { Stamp::zero() });
        assert_eq!(device.read(None).await?, written);
        Ok(())
    });
}

#[test]
fn a_single_write_may_be_as_large() {
    on_each(2 * PAGES, async |device: Session| {
        device.write(0..PAGES, 1, None).await?;
        let pages = (0..50).rev().map(|page| (PageNo(page), stamp(page, 2))).collect();
        device.0.write_scattered(pages, || ()).await?;
        let count = |page| if page < 50 { 2 } else { 1 };
        assert_eq!(device.read(None).await?, contents(|page| stamp(page, count(page))));
        assert_eq!(device.mapped(), PAGES);
        Ok(())
    });
}

/// Besides the pages that hosts see, there is room for ten more.
#[test]
fn on_a_full_device_a_transaction_may_give_up_pages_and_not_write_all_again() {
    on_each(PAGES + 10, async |device: Session| {
        device.write(0..PAGES, 1, None).await?;
        let tx = device.0.begin().await?;
        let refused = device.write(0..PAGES, 2, Some(tx)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace);
        device.0.abort(tx).await?;
        assert_eq!(device.read(None).await?, contents(|page| stamp(page, 1)));
        // Overwriting pages outside of a transaction needs no more room.
        device.write(0..PAGES, 3, None).await?;
        let tx = device.0.begin().await?;
        for page in 4..PAGES {
            device.0.write(PageNo(page), &[Stamp::zero()], Some(tx)).await?;
        }
        device.write(0..4, 4, Some(tx)).await?;
        device.0.commit(tx).await?;
        let left = contents(|page| if page < 4 { stamp(page, 4) } else { Stamp::zero() });
        assert_eq!(device.read(None).await?, left);
        // This makes room for others.
        let tx = device.0.begin().await?;
        device.write(0..PAGES, 5, Some(tx)).await?;
        device.0.commit(tx).await?;
        assert_eq!(device.read(None).await?, contents(|page| stamp(page, 5)));
        Ok(())
    });
}

/// The room that an open transaction uses is not available to others, whose writes fail.
#[test]
fn a_host_is_told_where_open_transactions_take_the_room() {
    on_each(PAGES + 10, async |device: Session| {
        device.write(0..30, 1, None).await?;
        let tx = device.0.begin().await?;
        device.write(0..30, 1, Some(tx)).await?;
        let mut refused = None;
        for page in 30..PAGES {
            match device.write(page..page + 1, 2, None).await {
                Ok(()) => {}
                Err(error) => refused = Some((page, error.kind())),
            }
        }
        let (_, kind) = refused.expect("there is no room for all");
        assert_eq!(kind, ErrorKind::OutOfSpace);
        device.0.abort(tx).await?;
        device.write(0..PAGES, 3, None).await?;
        assert_eq!(device.read(None).await?, contents(|page| stamp(page, 3)));
        Ok(())
    });
}

/// A transaction uses most of the room. A model knows at each write how much is left.
#[test]
fn a_write_is_refused_where_it_would_take_more_than_there_is_and_nowhere_else() {
    const SEED: u64 = 7;
    const MOST: u64 = PAGES + 10;
    on_each(MOST, async |device: Session| {
        device.write(30..PAGES, 1, None).await?;
        let tx = device.0.begin().await?;
        device.write(30..PAGES, 2, Some(tx)).await?;
        device.0.flush().await?;
        let (taken, mut held) = (device.mapped(), BTreeSet::new());
        let mut rng = Rng::new(SEED);
        let mut refusals = 0;
        for count in 0..2000 {
            let len = 1 + rng.below(6);
            let first = rng.below(30 - len);
            if rng.chance(0.3) {
                device.0.trim(PageRange::new(PageNo(first), len)).await?;
                held.retain(|page| !(first..first + len).contains(page));
                continue;
            }
            let pages: Vec<Stamp> = (first..first + len).map(|page| stamp(page, count)).collect();
            let after: BTreeSet<u64> = (first..first + len).chain(held.iter().copied()).collect();
            let has_room = taken + after.len() as u64 <= MOST;
            let written = device.0.write(PageNo(first), &pages, None).await;
            assert_eq!(written.is_ok(), has_room || after == held, "seed {SEED}, write {count}");
            match written {
                Ok(()) => held = after,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
                    refusals += 1;
                }
            }
        }
        assert!((100..1000).contains(&refusals), "{refusals} of seed {SEED}");
        device.0.abort(tx).await
    });
}

#[test]
fn pages_behind_the_device_are_none_of_hosts() {
    on_each(2 * PAGES, async |device: Session| {
        let behind = PageNo(PAGES);
        let mut out = [Stamp::zero()];
        let kinds = [
            device.0.read(behind, &mut out, None).await,
            device.0.write(behind, &[stamp(0, 1)], None).await,
            device.0.trim(PageRange::new(behind, 1)).await,
            device.0.share(&[(PageNo(0), behind)]).await,
            device.0.write_scattered(vec![(behind, stamp(0, 1))], || ()).await,
        ];
        for refused in kinds {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::OutOfRange);
        }
        Ok(())
    });
}
