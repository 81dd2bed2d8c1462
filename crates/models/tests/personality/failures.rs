//! A program that fails, anywhere in a load: from then on changes are refused, and every page can still be read,
//! any number of times, also after the device is opened again. Also reads whose futures are dropped.
use crate::personality::loads::{
    Known, Load, ORDERS, nand, perform, read, requests, stamp, verify, zones,
};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Payload, Rng, Stamp};
use tantalum_media::ErasedZones;
use tantalum_models::personality::{Personality, PersonalitySpec};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const PAGES: u64 = 48;
const PAGES_PER_BLOCK: u32 = 8;

/// Runs a load in which program `nth` fails. Returns whether there was such a program.
fn fails_at(spec: PersonalitySpec, nth: u64) -> bool {
    let load = Load {
        seed: nth,
        order: ORDERS[nth as usize % ORDERS.len()],
        requests: 120,
        trims: 0.05,
        fill: nth.is_multiple_of(2),
    };
    let nand = nand(1, 24, PAGES_PER_BLOCK, 4096);
    let known = Rc::new(RefCell::new(Known::default()));
    let in_flight = Rc::new(RefCell::new(None));
    let runtime = Virtual::new(Schedule::Fifo);
    let medium = zones(&runtime, &nand);
    let media = ErasedZones::new(medium.reopen(runtime.clone()));
    let (shared, refused, failing) = (Rc::clone(&known), Rc::clone(&in_flight), nand.clone());
    let rt = runtime.clone();
    let session = async move {
        let device = Personality::format(&rt, media, spec, PAGES).await?;
        failing.fail_program(nth);
        let mut known = shared.take();
        let mut rng = Rng::split(nth, "reads");
        for request in requests(&load, PAGES, u64::from(PAGES_PER_BLOCK)) {
            if let Err(error) = perform(&*device, request).await {
                assert!(matches!(error.kind(), ErrorKind::ProgramFailed | ErrorKind::Latched));
                refused.replace(Some(request));
                break;
            }
            known.apply(request);
            let page = rng.below(PAGES);
            assert_eq!(read(&*device, page).await?, stamp(page, known.get(page)), "page {page}");
        }
        let in_flight = *refused.borrow();
        for _ in 0..3 {
            if let Err(wrong) = verify(&*device, &mut known, in_flight).await {
                panic!("{spec}, program {nth}: {wrong}");
            }
        }
        shared.replace(known);
        Ok::<_, Error>(())
    };
    runtime.run(session).unwrap().unwrap();
    nand.call_off_failing_programs();
    let runtime = Virtual::new(Schedule::Fifo);
    let media = ErasedZones::new(medium.reopen(runtime.clone()));
    let request = *in_flight.borrow();
    let rt = runtime.clone();
    let session = async move {
        let device = Personality::recover(&rt, media, spec, PAGES).await?;
        if let Err(wrong) = verify(&*device, &mut known.take(), request).await {
            panic!("{spec}, program {nth}, opened again: {wrong}");
        }
        Ok::<_, Error>(())
    };
    runtime.run(session).unwrap().unwrap();
    request.is_some()
}

#[test]
fn what_was_written_stays_readable_when_a_program_fails() {
    for name in ["block-map", "bast:logs=2", "fast:logs=2", "dftl:cmt=5"] {
        let spec = PersonalitySpec::parse(name).unwrap();
        let failed = (0..160).filter(|nth| fails_at(spec, *nth)).count();
        assert!(failed > 100, "{name}: only {failed} of the programs failed");
    }
}

#[test]
fn a_read_that_is_given_up_midway_leaves_the_device_as_it_was() {
    for name in ["block-map", "bast:logs=2", "fast:logs=2", "dftl:cmt=5"] {
        let spec = PersonalitySpec::parse(name).unwrap();
        let runtime = Virtual::new(Schedule::Fifo);
        let media = ErasedZones::new(zones(&runtime, &nand(1, 24, PAGES_PER_BLOCK, 4096)));
        let rt = runtime.clone();
        let session = async move {
            let device = Personality::format(&rt, media, spec, PAGES).await?;
            for page in 0..3 {
                device.write(PageNo(page), &[stamp(page, 1)], None).await?;
            }
            let mut out = [Stamp::zero(); 3];
            {
                let mut read = pin!(device.read(PageNo(0), &mut out, None));
                let waits = |polled: Poll<_>| Poll::Ready(polled.is_pending());
                assert!(poll_fn(|context| waits(read.as_mut().poll(context))).await, "{name}");
            }
            device.write(PageNo(1), &[stamp(1, 2)], None).await?;
            device.read(PageNo(0), &mut out, None).await?;
            assert_eq!(out, [stamp(0, 1), stamp(1, 2), stamp(2, 1)], "{name}");
            Ok::<_, Error>(())
        };
        runtime.run(session).unwrap().unwrap();
    }
}
