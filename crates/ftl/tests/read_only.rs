//! Devices opened read-only: all that was written can be read, nothing is written to the medium,
//! and every change is refused.
use crate::support::{Zones, batch, format, recover, start, zones, zones_of};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, PageRange, Payload, Result, Rng, Stamp};
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::wrappers::ReadOnly;
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const PAGES: u64 = 200;
const ZONES: u32 = 60;

/// How the device is shut down.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Closed,
    Killed,
    Dumped,
}

fn options(end: End) -> FtlOptions {
    let geometry = zones(&Virtual::new(Schedule::Fifo), ZONES).geometry();
    let dump = (end == End::Dumped).then(|| DumpOptions::least(&geometry, PAGES, 8));
    FtlOptions { dump, checkpoint_interval_slots: 500, ..FtlOptions::new(PAGES) }
}

/// Writes, shares and trims at random until much was cleaned; returns the contents of the pages
/// then.
async fn load(ftl: &Rc<Ftl<ErasedZones<Stamp>>>, seed: u64) -> Result<Vec<Stamp>> {
    let mut rng = Rng::split(seed, "load");
    let mut held = vec![Stamp::zero(); PAGES as usize];
    for count in 1..600 {
        let (first, pages) = (rng.below(PAGES - 10), 1 + rng.below(10));
        let range = first as usize..(first + pages) as usize;
        match rng.below(10) {
            0 => {
                ftl.trim(PageRange::new(PageNo(first), pages), true).await?;
                held[range].fill(Stamp::zero());
            }
            1 if held[first as usize] != Stamp::zero() => {
                let left = (first + 10) % PAGES;
                ftl.share(&[(PageNo(left), PageNo(first))], true, || {}).await?;
                held[left as usize] = held[first as usize];
            }
            _ => {
                ftl.write(&batch(first, pages, count), true).await?;
                held[range].copy_from_slice(
                    &batch(first, pages, count).iter().map(|(_, page)| *page).collect::<Vec<_>>(),
                );
            }
        }
    }
    assert!(ftl.statistics().zones_cleaned > 5, "seed {seed}: too little was cleaned");
    Ok(held)
}

/// A device that was shut down by `end`, and the contents of its pages.
fn device(end: End, seed: u64) -> (Zones, Vec<Stamp>) {
    let runtime = Virtual::new(Schedule::Fifo);
    let inner = zones(&runtime, ZONES);
    let media = inner.reopen(runtime.clone());
    let rt = runtime.clone();
    let life = async move {
        let ftl = format(media, options(end)).await?;
        start(&rt, &ftl);
        let held = load(&ftl, seed).await?;
        if end == End::Closed {
            ftl.close().await?;
        }
        Ok::<_, tantalum_base::Error>((ftl, held))
    };
    let (ftl, held) = runtime.run(life).unwrap().unwrap();
    runtime.drop_tasks();
    if end == End::Dumped {
        let runtime = Virtual::new(Schedule::Fifo);
        let media = ErasedZones::new(inner.reopen(runtime.clone()));
        let frames = batch(0, 3, 1000);
        runtime.run(async move { ftl.dump(&media, &frames).await.map(|_| ()) }).unwrap().unwrap();
    }
    (inner, held)
}

async fn contents(ftl: &Ftl<ErasedZones<Stamp>>) -> Result<Vec<Stamp>> {
    let pages: Vec<PageNo> = (0..PAGES).map(PageNo).collect();
    let mut out = vec![Stamp::zero(); pages.len()];
    ftl.read(&pages, &mut out).await.map(|()| out)
}

/// Checks that every kind of change is refused.
async fn assert_refuses_changes(ftl: &Rc<Ftl<ErasedZones<Stamp>>>) {
    for durable in [false, true] {
        for refused in [
            ftl.write(&batch(3, 2, 5000), durable).await,
            ftl.trim(PageRange::new(PageNo(3), 2), durable).await,
            ftl.share(&[(PageNo(3), PageNo(90))], durable, || {}).await,
            ftl.checkpoint().await,
            ftl.close().await,
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
            assert!(error.to_string().contains("read-only"), "{error}");
        }
    }
    // Nothing needs to be made durable.
    ftl.sync().await.unwrap();
}

#[test]
fn all_is_there_nothing_is_written_and_changes_are_refused() {
    for end in [End::Closed, End::Killed, End::Dumped] {
        for seed in 0..3 {
            let (inner, held) = device(end, seed);
            for _ in 0..2 {
                let runtime = Virtual::new(Schedule::Fifo);
                let medium = Rc::new(inner.reopen(runtime.clone()));
                let (rt, expected) = (runtime.clone(), held.clone());
                let life = async move {
                    let options = FtlOptions { read_only: true, ..options(end) };
                    let (ftl, report) = recover(ReadOnly::new(medium), options).await?;
                    assert_eq!(report.pages_lost, 0);
                    assert_eq!(report.replayed > 0, end != End::Closed, "{report:?}");
                    // Background tasks that are started anyway must end.
                    start(&rt, &ftl);
                    assert_eq!(ftl.check(|_, _| {}).await?, []);
                    assert!(contents(&ftl).await? == expected);
                    assert_refuses_changes(&ftl).await;
                    assert_eq!(ftl.check(|_, _| {}).await?, []);
                    assert!(contents(&ftl).await? == expected);
                    let refused = zones_of::<ReadOnly<Zones>>(&ftl).refused();
                    assert_eq!(refused, 0, "something was to be written");
                    assert_eq!(ftl.has_dump(), end == End::Dumped);
                    if end == End::Dumped {
                        assert_eq!(
                            ftl.conclude_dump().await.unwrap_err().kind(),
                            ErrorKind::ReadOnly
                        );
                        assert_eq!(ftl.take_restored(), batch(0, 3, 1000));
                    }
                    Ok::<_, tantalum_base::Error>(())
                };
                let opened = runtime.run(life).unwrap();
                opened.unwrap_or_else(|error| panic!("{end:?}, seed {seed}: {error}"));
                runtime.drop_tasks();
            }
            // An opening for writing finds the device as it was.
            let runtime = Virtual::new(Schedule::Fifo);
            let media = inner.reopen(runtime.clone());
            let life = async move {
                let (ftl, _) = recover(media, options(end)).await?;
                assert!(contents(&ftl).await? == held);
                ftl.write(&batch(3, 2, 5000), true).await
            };
            runtime.run(life).unwrap().unwrap();
        }
    }
}

#[test]
fn nothing_is_made_to_be_read_only() {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = ReadOnly::new(Rc::new(zones(&runtime, ZONES)));
    let options = FtlOptions { read_only: true, ..FtlOptions::new(PAGES) };
    let made = runtime.run(async move { format(media, options).await.map(|_| ()) }).unwrap();
    assert_eq!(made.unwrap_err().kind(), ErrorKind::ReadOnly);
}
