//! Zones that the medium retired before the FTL was opened.
use crate::support::{Zones, batch, format, recover, start, zones};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, Result, Rng, Stamp, ZoneNo};
use tantalum_ftl::{FtlOptions, pages_max};
use tantalum_media::ZoneMedia;
use tantalum_media::wrappers::{Faults, FaultsOptions, ZoneWindow};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const ZONES: u32 = 40;
const PAGES: u64 = 500;
/// Zones of a device that offers as many pages as they allow.
const FULL_ZONES: u32 = 16;

/// Writes many batches of the most pages that the FTL says it can take, on a device with `retired`
/// zones retired; returns how many pages that is.
fn write_largest_batches(retired: u32) -> Result<u64> {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = Faults::new(Rc::new(zones(&runtime, ZONES)), FaultsOptions::default());
    let rt = runtime.clone();
    let run = async move {
        for zone in 0..retired {
            media.fail_reset(0);
            let failed = media.reset(ZoneNo(zone)).await.unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::ZoneRetired);
        }
        let ftl = format(media, FtlOptions::new(PAGES)).await?;
        assert_eq!(ftl.statistics().zones_retired, retired);
        start(&rt, &ftl);
        let most = u64::from(ftl.batch_pages_max()).min(PAGES);
        for first in (0..PAGES).step_by(10) {
            ftl.write(&batch(first, 10, 1), true).await?;
        }
        let mut rng = Rng::split(1, "batches");
        for count in 2..200 {
            let first = rng.below(PAGES - most + 1);
            ftl.write(&batch(first, most, count), true).await?;
        }
        ftl.validate();
        Ok(u64::from(ftl.batch_pages_max()))
    };
    runtime.run(run).unwrap()
}

#[test]
fn a_batch_of_the_most_pages_finds_room_however_many_zones_are_gone() {
    let whole = write_largest_batches(0).unwrap();
    for retired in 1..=14 {
        let most = write_largest_batches(retired)
            .unwrap_or_else(|error| panic!("{retired} zones retired: {error}"));
        assert!(most < whole, "{retired} zones retired: {most} pages of {whole}");
    }
}

/// Zones that can be retired, and options for as many pages as they allow.
fn full_device(runtime: &Virtual) -> (Rc<Faults<Zones>>, FtlOptions) {
    let inner = zones(runtime, FULL_ZONES);
    let options = FtlOptions::new(pages_max(&inner.geometry(), 0));
    (Rc::new(Faults::new(Rc::new(inner), FaultsOptions::default())), options)
}

/// Zones are retired on a device that was made with as many pages as its zones allowed.
#[test]
fn a_device_is_opened_and_read_also_when_zones_have_gone_since_it_was_made() {
    for retired in 0..4 {
        let runtime = Virtual::new(Schedule::Fifo);
        let (media, options) = full_device(&runtime);
        let rt = runtime.clone();
        let run = async move {
            let open = || ZoneWindow::new(Rc::clone(&media), 0..FULL_ZONES).unwrap();
            let ftl = format(open(), options).await.unwrap();
            start(&rt, &ftl);
            let mut rng = Rng::split(1, "pages");
            let mut counts = vec![0; options.pages as usize];
            let pages: Vec<u64> =
                (0..options.pages).chain((0..300).map(|_| rng.below(options.pages))).collect();
            for (at, page) in pages.into_iter().enumerate() {
                if at as u64 == options.pages {
                    (0..retired).for_each(|reset| media.fail_reset(2 * reset));
                }
                counts[page as usize] += 1;
                let written = ftl.write(&batch(page, 1, counts[page as usize]), true).await;
                if let Err(error) = written {
                    assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{retired} zones: {error}");
                    counts[page as usize] -= 1;
                    break;
                }
            }
            assert_eq!(ftl.statistics().zones_retired, retired as u32);
            // Background work ends.
            rt.sleep(1_000_000_000).await;
            let (ftl, report) = recover(open(), options)
                .await
                .unwrap_or_else(|error| panic!("{retired} zones retired: {error}"));
            assert_eq!((report.pages_lost, ftl.statistics().zones_retired), (0, retired as u32));
            for (page, count) in (0..).zip(counts) {
                let mut out = [Stamp { page_plus_one: 0, count: 0 }];
                ftl.read(&[PageNo(page)], &mut out).await.unwrap();
                assert_eq!(out[0], Stamp::new(PageNo(page), count));
            }
            ftl.validate();
        };
        runtime.run(run).unwrap();
    }
}

/// The zones for a checkpoint are retired while a full device is closed: cleaning makes room for
/// it, though it should rest.
#[test]
fn a_device_is_closed_also_when_the_zones_for_its_checkpoint_go() {
    for retired in 1..4 {
        let runtime = Virtual::new(Schedule::Fifo);
        let (media, options) = full_device(&runtime);
        let rt = runtime.clone();
        let run = async move {
            let open = || ZoneWindow::new(Rc::clone(&media), 0..FULL_ZONES).unwrap();
            let ftl = format(open(), options).await.unwrap();
            start(&rt, &ftl);
            let mut rng = Rng::split(retired, "pages");
            for page in (0..options.pages).chain((0..300).map(|_| rng.below(options.pages))) {
                ftl.write(&batch(page, 1, 1), true).await.unwrap();
            }
            (0..retired).for_each(|reset| media.fail_reset(reset));
            ftl.close().await.unwrap_or_else(|error| panic!("{retired} zones retired: {error}"));
            assert!(ftl.statistics().zones_retired > 0);
            let (ftl, report) = recover(open(), options).await.unwrap();
            assert_eq!((report.replayed, report.pages_lost), (0, 0));
            ftl.validate();
        };
        runtime.run(run).unwrap();
    }
}
