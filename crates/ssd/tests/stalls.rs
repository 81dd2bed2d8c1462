//! A medium that does not answer for a long time. Writes fail if there is no room without it,
//! acknowledged writes are kept, and everything continues once it answers.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Result, Rng, SlotNo, Stamp};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::wrappers::{Faults, FaultsOptions};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_models::rig::{NandRig, Rig};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

const PAGES: u64 = 60;
const SECOND_NS: u64 = 1_000_000_000;

/// Writes random pages until a write fails. Returns the error. `known` gets the last acknowledged
/// content of each page; a page may also have a later one.
async fn write_until_refused<D: PageDevice<Page = Stamp>>(
    device: &D,
    rng: &mut Rng,
    known: &mut [u64],
) -> Error {
    for count in known.iter().max().unwrap() + 1..100_000 {
        let page = rng.below(PAGES);
        let written = device.write(PageNo(page), &[Stamp::new(PageNo(page), count)], None).await;
        match written {
            Ok(()) => known[page as usize] = count,
            Err(error) => return error,
        }
    }
    panic!("nothing was refused")
}

fn stalls(cache: CacheKind, seed: u64) -> Result<()> {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let mut rig = NandRig::<Stamp>::new(seed);
    let media = Rc::new(Faults::new(Rc::new(rig.open(&runtime)), FaultsOptions::default()));
    let rt = runtime.clone();
    let run = async move {
        let zones = media.geometry().zones;
        let all = SlotNo(0)..SlotNo(zones * media.geometry().slots_per_zone);
        let window = tantalum_media::wrappers::ZoneWindow::new(Rc::clone(&media), 0..zones)?;
        let ftl = Ftl::format(ErasedZones::new(window), FtlOptions::new(PAGES)).await?;
        let device = Rc::new(Ssd::new(ftl, SsdOptions::new(cache, 16))?);
        device.start(&rt);
        let (mut rng, mut known) = (Rng::split(seed, "stalls"), vec![0; PAGES as usize]);
        for count in 1..500 {
            let page = rng.below(PAGES);
            device.write(PageNo(page), &[Stamp::new(PageNo(page), count)], None).await?;
            known[page as usize] = count;
        }
        device.flush().await?;
        media.leave_unanswered(all);
        let refused = write_until_refused(&*device, &mut rng, &mut known).await;
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace, "seed {seed}: {refused}");
        if cache != CacheKind::WriteThrough {
            let flushed = device.flush().await.unwrap_err();
            assert_eq!(flushed.kind(), ErrorKind::OutOfSpace, "seed {seed}: {flushed}");
        }
        rt.sleep(100 * SECOND_NS).await;
        media.leave_unanswered(SlotNo(0)..SlotNo(0));
        rt.sleep(60 * SECOND_NS).await;
        device.flush().await?;
        for page in 0..PAGES {
            let mut out = [Stamp::new(PageNo(0), 0)];
            device.read(PageNo(page), &mut out, None).await?;
            let expected = match known[page as usize] {
                0 => Stamp::default(),
                count => Stamp::new(PageNo(page), count),
            };
            assert_eq!(out[0], expected, "seed {seed}, page {page}");
        }
        for count in 200_000..201_000 {
            let page = rng.below(PAGES);
            device.write(PageNo(page), &[Stamp::new(PageNo(page), count)], None).await?;
        }
        device.close().await?;
        device.validate();
        Ok(())
    };
    runtime.run(run).unwrap_or_else(|deadlock| panic!("{cache:?}, seed {seed}: {deadlock}"))
}

#[test]
fn what_was_acknowledged_waits_and_writes_are_taken_again_when_the_medium_answers() {
    for cache in [CacheKind::Ordered, CacheKind::Volatile, CacheKind::WriteThrough] {
        for seed in 0..10 {
            stalls(cache, seed).unwrap_or_else(|error| panic!("{cache:?}, seed {seed}: {error}"));
        }
    }
}
