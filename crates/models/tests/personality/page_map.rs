//! The page-mapping FTL on every legal geometry from eight zones on, compared with a map: no
//! deadlock, no false "out of space", every page correct, also after the device is opened again.
use crate::personality::loads::{Known, Load, ORDERS, nand, perform, requests, verify, zones};
use proptest::prelude::*;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind};
use tantalum_ftl::{Ftl, FtlOptions, pages_max};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_policy::CleaningSpec;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

fn cases() -> u32 {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 2000 } else { 60 }
}

/// One opening: checks the known content, then runs the load and checks the result.
fn session(
    media: impl ZoneMedia,
    runtime: &Virtual,
    options: FtlOptions,
    load: Load,
    block: u64,
    mut known: Known,
    first: bool,
) -> Known {
    let (media, rt) = (ErasedZones::new(media), runtime.clone());
    let session = async move {
        let ftl = match first {
            true => Ftl::format(media, options).await?,
            false => Ftl::recover(media, options).await?.0,
        };
        let options_of_ssd = SsdOptions::new(CacheKind::WriteThrough, 64);
        let ssd = Rc::new(Ssd::new(ftl, options_of_ssd)?);
        ssd.start(&rt);
        if let Err(wrong) = verify(&*ssd, &mut known, None).await {
            panic!("{options:?} {load:?}, opened: {wrong}");
        }
        for request in requests(&load, options.pages, block) {
            perform(&*ssd, request).await?;
            known.apply(request);
        }
        if let Err(wrong) = verify(&*ssd, &mut known, None).await {
            panic!("{options:?} {load:?}: {wrong}");
        }
        ssd.close().await?;
        ssd.ftl().validate();
        Ok::<_, Error>(known)
    };
    let ended = runtime.run(session).unwrap_or_else(|deadlock| panic!("{load:?}: {deadlock}"));
    ended.unwrap_or_else(|error| panic!("{options:?}, {load:?}: {error:?}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_geometry_runs_for_ever(
        planes in 1u32..3,
        blocks in 8u32..40,
        pages_per_block in 1u32..20,
        page_bytes in prop::sample::select(vec![4096u32, 8192]),
        seed in 0u64..1000,
        order in prop::sample::select(ORDERS.to_vec()),
        trims in prop_oneof![Just(0.0), Just(0.1)],
        fill in any::<bool>(),
        cleaning in prop::sample::select(CleaningSpec::NAMES.to_vec()),
        wear_spread_max in prop::sample::select(vec![2, 128]),
    ) {
        let nand = nand(planes, blocks, pages_per_block, page_bytes);
        let first = Virtual::new(Schedule::Fifo);
        let zones = zones(&first, &nand);
        let pages = pages_max(&zones.geometry(), 0);
        let cleaning = CleaningSpec::parse(cleaning).unwrap();
        let options = FtlOptions { cleaning, wear_spread_max, ..FtlOptions::new(pages.max(1)) };
        if pages == 0 {
            let media = ErasedZones::new(zones.reopen(first.clone()));
            let refused = first.run(async move { Ftl::format(media, options).await });
            prop_assert_eq!(refused.unwrap().err().unwrap().kind(), ErrorKind::InvalidInput);
            return Ok(());
        }
        let block = u64::from(planes * pages_per_block);
        let mut known = Known::default();
        for opening in 0..3 {
            let runtime = Virtual::new(Schedule::Shuffled(seed + opening));
            let requests = (4 * pages).clamp(200, 1500);
            let fill = fill && opening == 0;
            let load = Load { seed: seed + opening, order, requests, trims, fill };
            let media = zones.reopen(runtime.clone());
            known = session(media, &runtime, options, load, block, known, opening == 0);
            runtime.drop_tasks();
        }
    }
}
