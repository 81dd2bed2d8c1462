//! Block mapping, BAST, FAST and DFTL on every legal geometry, compared with a map: no deadlock, no
//! false "out of space", every page correct, also after the device is opened again.
use crate::personality::loads::{Known, Load, ORDERS, Order};
use crate::personality::loads::{nand, perform, read, requests, stamp, verify, zones};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Rng, Stamp};
use tantalum_media::block_store::MemoryStore;
use tantalum_media::wrappers::{AppendFault, Faults, FaultsOptions};
use tantalum_media::{ErasedZones, FileZones, FileZonesOptions, ZoneMedia};
use tantalum_models::fault_points::Fault;
use tantalum_models::personality::{
    Personality, PersonalityConfig, PersonalitySpec, PersonalityStatistics,
};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{DeviceKind, Virtual};

/// Runs a load and compares the device with a map, then opens the device again and compares again.
fn beside_a_map<M: ZoneMedia>(
    spec: PersonalitySpec,
    load: &Load,
    pages: u64,
    block: u64,
    open: impl Fn(&Virtual, bool) -> M,
) -> PersonalityStatistics {
    let known = Rc::new(RefCell::new(Known::default()));
    let mut statistics = PersonalityStatistics::default();
    for opening in 0..3 {
        let runtime = Virtual::new(Schedule::Shuffled(load.seed));
        let media = ErasedZones::new(open(&runtime, opening == 0));
        let load = Load { seed: load.seed + opening, fill: load.fill && opening == 0, ..*load };
        let shared = Rc::clone(&known);
        let rt = runtime.clone();
        let session = async move {
            let device = match opening {
                0 => Personality::format(&rt, media, spec, pages).await?,
                _ => Personality::recover(&rt, media, spec, pages).await?,
            };
            let mut known = shared.take();
            if let Err(wrong) = verify(&*device, &mut known, None).await {
                panic!("{spec} {load:?}, opening {opening}: {wrong}");
            }
            let mut rng = Rng::split(load.seed, "reads");
            for request in requests(&load, pages, block) {
                perform(&*device, request).await?;
                known.apply(request);
                let page = rng.below(pages);
                assert_eq!(read(&*device, page).await?, stamp(page, known.get(page)), "{load:?}");
            }
            if let Err(wrong) = verify(&*device, &mut known, None).await {
                panic!("{spec} {load:?}, after opening {opening}: {wrong}");
            }
            shared.replace(known);
            Ok::<_, Error>(device.statistics())
        };
        let ended = runtime.run(session).unwrap_or_else(|deadlock| panic!("{load:?}: {deadlock}"));
        let counted = ended.unwrap_or_else(|error| {
            panic!("{spec} of {pages} pages in blocks of {block}, {load:?}: {error:?}")
        });
        if opening == 0 {
            statistics = counted;
        }
    }
    statistics
}

fn specs() -> impl Strategy<Value = PersonalitySpec> {
    prop_oneof![
        Just(PersonalitySpec::BlockMap),
        (1u32..6).prop_map(|logs| PersonalitySpec::Bast { logs }),
        (1u32..6).prop_map(|logs| PersonalitySpec::Fast { logs }),
        (2u32..60).prop_map(|cmt| PersonalitySpec::Dftl { cmt }),
    ]
}

fn loads() -> impl Strategy<Value = (u64, Order, f64, bool)> {
    (
        0u64..1000,
        prop::sample::select(ORDERS.to_vec()),
        prop_oneof![Just(0.0), Just(0.1)],
        any::<bool>(),
    )
}

fn cases() -> u32 {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 3000 } else { 120 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_nand_runs_for_ever(
        spec in specs(),
        planes in 1u32..3,
        blocks in 8u32..40,
        pages_per_block in 1u32..20,
        page_bytes in prop::sample::select(vec![4096u32, 8192]),
        (seed, order, trims, fill) in loads(),
    ) {
        let nand = nand(planes, blocks, pages_per_block, page_bytes);
        let first = Virtual::new(Schedule::Fifo);
        let zones = zones(&first, &nand);
        let pages = spec.pages_max(&zones.geometry(), 0);
        if pages == 0 {
            let media = ErasedZones::new(zones.reopen(first.clone()));
            let rt = first.clone();
            let refused = first.run(async move { Personality::format(&rt, media, spec, 1).await });
            let refused = refused.unwrap().err().unwrap();
            prop_assert_eq!(refused.kind(), ErrorKind::InvalidInput);
            return Ok(());
        }
        let load = Load { seed, order, requests: (4 * pages).clamp(200, 2000), trims, fill };
        let block = u64::from(planes * pages_per_block);
        beside_a_map(spec, &load, pages, block, |runtime, _| zones.reopen(runtime.clone()));
    }
}

#[test]
fn a_medium_whose_reset_erases_nothing_is_refused() {
    let options = FileZonesOptions { volume_id: 7, first_byte: 0, zones: 20, slots_per_zone: 16 };
    for name in PersonalitySpec::NAMES {
        let spec = PersonalitySpec::parse(name).unwrap();
        let media = FileZones::new(MemoryStore::new(20 * 16 * 4096), options).unwrap();
        let runtime = Virtual::new(Schedule::Fifo);
        let rt = runtime.clone();
        let refused = runtime
            .run(async move { Personality::format(&rt, ErasedZones::new(media), spec, 10).await });
        let error = refused.unwrap().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("erase blocks"), "{error}");
    }
}

#[test]
fn merges_are_of_the_kind_that_the_order_asks_for() {
    let run = |spec: &str, order, requests| {
        let spec = PersonalitySpec::parse(spec).unwrap();
        let nand = nand(1, 40, 16, 4096);
        let first = Virtual::new(Schedule::Fifo);
        let zones = zones(&first, &nand);
        let pages = spec.pages_max(&zones.geometry(), 0) / 16 * 16;
        let load = Load { seed: 1, order, requests, trims: 0.0, fill: true };
        beside_a_map(spec, &load, pages, 16, |runtime, _| zones.reopen(runtime.clone()))
    };
    for spec in ["block-map", "bast:logs=4", "fast:logs=4"] {
        let sequential = run(spec, Order::Sequential, 3000);
        assert!(sequential.merges_switch > 100, "{spec}: {sequential:?}");
        assert!(sequential.write_amplification() < 1.05, "{spec}: {sequential:?}");
        assert!(sequential.pages_moved < 32, "{spec}: {sequential:?}");
        let uniform = run(spec, Order::Uniform, 3000);
        assert!(uniform.write_amplification() > 2.0, "{spec}: {uniform:?}");
        let full = if spec == "block-map" { uniform.merges_partial } else { uniform.merges_full };
        assert!(full > 100, "{spec}: {uniform:?}");
    }
    for spec in ["bast:logs=4", "fast:logs=4"] {
        let runs = run(spec, Order::Runs, 3000);
        assert!(runs.merges_partial > 20, "{spec}: {runs:?}");
    }
    // If the whole map is cached it is hardly ever read; otherwise it is read for most writes.
    let (large, small) =
        (run("dftl:cmt=4k", Order::Uniform, 3000), run("dftl:cmt=16", Order::Uniform, 3000));
    assert!(large.map_reads < 10 && small.map_reads > 2000, "{large:?} {small:?}");
    assert!(small.map_writes > 1000 && large.map_writes < 200, "{large:?} {small:?}");
}

#[test]
fn devices_are_built_from_text_and_say_what_they_do_not_offer() {
    let runtime = Virtual::new(Schedule::Fifo);
    for text in ["block-map", "bast:logs=2", "fast:logs=2", "dftl:cmt=64"] {
        let joint = if text.contains(':') { ',' } else { ':' };
        let config = PersonalityConfig::parse(&format!("{text}{joint}pages=100,block=8")).unwrap();
        let rt = runtime.clone();
        let session = async move {
            let zones = config.new_zones::<_, Stamp>(&rt, 1).unwrap();
            let device = config.kind().make(&rt, zones).await.unwrap();
            assert_eq!(device.limits().pages, 100);
            let page = |page| stamp::<Stamp>(page, 1);
            device.write(PageNo(99), &[page(99)], None).await.unwrap();
            assert_eq!(read(&*device, 99).await.unwrap(), page(99));
            let kind = |result: Result<(), tantalum_base::Error>| result.unwrap_err().kind();
            let two = [page(0), page(1)];
            assert_eq!(kind(device.write(PageNo(0), &two, None).await), ErrorKind::TooLarge);
            let outside = device.write(PageNo(100), &[page(100)], None).await;
            assert_eq!(kind(outside), ErrorKind::OutOfRange);
            let range = PageRange::new(PageNo(90), 11);
            assert_eq!(kind(device.trim(range).await), ErrorKind::OutOfRange);
            assert_eq!(kind(device.share(&[]).await), ErrorKind::Unsupported);
            assert_eq!(device.begin().await.unwrap_err().kind(), ErrorKind::Unsupported);
            // None of these errors is a failure of the device.
            device.write(PageNo(0), &[page(0)], None).await.unwrap();
            device.flush().await.unwrap();
        };
        runtime.run(session).unwrap();
    }
}

/// Reads a page that the medium corrupted; then a program fails, and a write follows.
fn damaged(spec: PersonalitySpec) -> Option<ErrorKind> {
    let runtime = Virtual::new(Schedule::Fifo);
    let nand = nand(1, 16, 8, 4096);
    let media = Rc::new(zones(&runtime, &nand));
    let media = Faults::new(media, FaultsOptions::default());
    let rt = runtime.clone();
    let session = async move {
        media.fail_append(3, AppendFault::Corrupt(0));
        media.fail_append(6, AppendFault::ProgramFailed);
        let media = ErasedZones::new(media);
        let device = Personality::format(&rt, media, spec, 24).await.unwrap();
        for page in 0..6 {
            device.write(PageNo(page), &[stamp(page, 1)], None).await.unwrap();
        }
        assert_eq!(read(&*device, 2).await.unwrap(), stamp(2, 1));
        let found = read(&*device, 3).await;
        let failed = device.write(PageNo(6), &[stamp(6, 1)], None).await;
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::ProgramFailed);
        let refused = device.write(PageNo(7), &[stamp(7, 1)], None).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Latched);
        assert_eq!(read(&*device, 2).await.unwrap(), stamp(2, 1));
        found.err().map(|error| error.kind())
    };
    runtime.run(session).unwrap()
}

#[test]
fn a_mixed_up_page_is_an_error_and_a_failed_program_latches() {
    for name in PersonalitySpec::NAMES {
        let spec = PersonalitySpec::parse(name).unwrap();
        let spec = match spec {
            PersonalitySpec::Bast { .. } => PersonalitySpec::Bast { logs: 2 },
            PersonalitySpec::Fast { .. } => PersonalitySpec::Fast { logs: 2 },
            spec => spec,
        };
        assert_eq!(damaged(spec), Some(ErrorKind::Checksum), "{spec}");
        let _planted = plant(Fault::BlocksUnchecked);
        assert_eq!(damaged(spec), None, "{spec}");
    }
}
