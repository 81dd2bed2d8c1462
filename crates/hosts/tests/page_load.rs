//! The writes of the forms, and that every read returns the version written last.

use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, Result, Rng, Stamp};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_hosts::double_write::{Form, HostStatistics, PageLoad, PageOptions, versions};
use tantalum_media::ErasedZones;
use tantalum_models::{NandZones, NandZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

const CLIENTS: u64 = 8;
const DATABASE_PAGES: u64 = 300;

fn options(form: Form) -> PageOptions {
    PageOptions {
        form,
        database_pages: DATABASE_PAGES,
        device_pages_per_page: 2,
        pool_pages: 64,
        batch_pages: 8,
        metadata_per_page: 0.25,
        metadata_pages: 16,
    }
}

async fn device(runtime: &Virtual) -> Result<Rc<Ssd<ErasedZones<Stamp>>>> {
    let zones = NandZonesOptions { spare_blocks_per_plane: 0, append_pages_max: 16 };
    let zones = NandZones::new(runtime.clone(), crate::support::nand(1, 2), zones)?;
    let ftl = Ftl::format(ErasedZones::new(zones), FtlOptions::new(760)).await?;
    let ssd = Rc::new(Ssd::new(ftl, SsdOptions::new(CacheKind::Ordered, 64))?);
    ssd.start(runtime);
    Ok(ssd)
}

/// Runs a load of several clients; returns the device accesses, and the time.
fn run(form: Form, seed: u64) -> (HostStatistics, u64) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let rt = runtime.clone();
    let ran = runtime.run(async move {
        let ssd = device(&rt).await?;
        let engine = PageLoad::create(&rt, &ssd, options(form)).await?;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let engine = Rc::clone(&engine);
                let mut rng = Rng::split(seed, &format!("client {client}"));
                rt.spawn("client", async move {
                    for _ in 0..300 {
                        let page = PageNo(rng.below(DATABASE_PAGES));
                        engine.access(page, rng.chance(0.4)).await?;
                    }
                    Ok::<_, tantalum_base::Error>(())
                })
            })
            .collect();
        for client in clients {
            client.await?;
        }
        engine.close().await?;
        let homes = versions(&rt, &ssd, options(form)).await?;
        for (page, version) in homes.into_iter().enumerate() {
            let flushed = engine.bounds(PageNo(page as u64)).0;
            assert_eq!(version, Some(flushed), "{form:?}, page {page}");
        }
        Ok::<_, tantalum_base::Error>(engine.statistics())
    });
    let counts = ran.unwrap().unwrap();
    let end_ns = runtime.now_ns();
    runtime.drop_tasks();
    (counts, end_ns)
}

fn check_common(form: Form, counts: &HostStatistics) {
    assert_eq!(counts.accesses, CLIENTS * 300);
    assert!(counts.pages_read > 1000, "{form:?}: the pool is too large to test anything");
    let flushed = counts.home_pages + counts.shared_pages;
    assert!(counts.batches > 20 && flushed > 2 * 8 * 20, "{form:?}: {counts:?}");
    assert_eq!(counts.metadata_pages, flushed / 4, "{form:?}: a quarter, as asked for");
}

#[test]
fn the_double_write_writes_each_page_twice() {
    let (counts, _) = run(Form::On, 1);
    check_common(Form::On, &counts);
    assert_eq!((counts.area_pages, counts.shared_pages), (counts.home_pages, 0));
}

#[test]
fn share_writes_each_page_once() {
    let (counts, _) = run(Form::Share, 1);
    check_common(Form::Share, &counts);
    assert_eq!((counts.area_pages, counts.home_pages), (counts.shared_pages, 0));
}

#[test]
fn without_it_each_page_is_written_once() {
    let (counts, _) = run(Form::Off, 1);
    check_common(Form::Off, &counts);
    assert_eq!((counts.area_pages, counts.shared_pages), (0, 0));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for form in Form::ALL {
        assert_eq!(run(form, 7), run(form, 7));
        assert_ne!(run(form, 7), run(form, 8));
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let ran = runtime.run(async move {
        let ssd = device(&rt).await.unwrap();
        let small = PageOptions { pool_pages: 31, ..options(Form::On) };
        let large = PageOptions { database_pages: 400, ..options(Form::On) };
        let no_journal = PageOptions { metadata_pages: 0, ..options(Form::Off) };
        for wrong in [small, large, no_journal] {
            let refused = PageLoad::create(&rt, &ssd, wrong).await.map(|_| ());
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong:?}");
        }
    });
    ran.unwrap();
    runtime.drop_tasks();
}
