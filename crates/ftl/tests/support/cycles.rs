//! A device that loses power repeatedly: it must neither run out of zones nor lose durable content,
//! even if every recovery is cut.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, Payload, Rng};
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions, pages_max};
use tantalum_media::{CutPlan, Fate, ZoneMedia};
use tantalum_models::rig::Rig;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

use super::start;

fn content<P: Payload>(page: u64, count: u64) -> P {
    let mut bytes = [count as u8; 4096];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    P::from_bytes(&bytes)
}

/// The page whose content a page holds, and the number of the batch that wrote it; 0 for none.
type Held = (u64, u64);

fn is<P: Payload>(seen: &P, (page, count): Held) -> bool {
    if count == 0 { *seen == P::zero() } else { *seen == content(page, count) }
}

/// A batch that writes pages or shares pairs, and the content of each page after it.
fn batch(
    load: &mut Rng,
    known: &[Held],
    most: u64,
    count: u64,
    shares: f64,
) -> Vec<(u64, Held, Option<u64>)> {
    let pages = known.len() as u64;
    let share = shares > 0.0 && load.chance(shares);
    let mut batch: Vec<(u64, Held, Option<u64>)> = Vec::new();
    for _ in 0..1 + load.below(most) {
        let page = load.below(pages);
        let from = if share { Some(load.below(pages)) } else { None };
        let named = |page| batch.iter().any(|(at, _, from)| *at == page || *from == Some(page));
        match from {
            _ if named(page) => {}
            None => batch.push((page, (page, count), None)),
            Some(from) => {
                let is_left = batch.iter().any(|(at, ..)| *at == from);
                if from != page && !is_left && known[from as usize].1 > 0 {
                    batch.push((page, known[from as usize], Some(from)));
                }
            }
        }
    }
    batch
}

/// The parameters of a device's life.
#[derive(Clone, Copy, Debug)]
pub struct Cycles {
    pub seed: u64,
    /// Power losses.
    pub cycles: u32,
    /// Most operations between two of them.
    pub after_max: u64,
    pub batch_max: u64,
    /// Chance that a batch is a share.
    pub shares: f64,
    /// The device has the least energy for a dump, and zones for it.
    pub dumps: bool,
    /// Much of the device is free, and gives its room back.
    pub gives_room_back: bool,
}

/// Zones for the dump area and the delta pages.
const DUMP_ZONES: u32 = 12;

/// The fullest device on `media`.
fn options<M: ZoneMedia>(media: &M, load: &Cycles) -> FtlOptions {
    let (geometry, retired) = (media.geometry(), media.retired().len() as u32);
    let least = |pages| Some(DumpOptions::least(&geometry, pages, 1));
    let most = pages_max(&geometry, retired);
    let with_dump = FtlOptions { dump: least(most), ..FtlOptions::new(most) };
    let pages = match load.dumps {
        false => most,
        true => pages_max(&geometry, retired + with_dump.dump_zones(&geometry).unwrap()),
    };
    let pages = if load.gives_room_back { pages / 4 } else { pages };
    FtlOptions {
        checkpoint_interval_slots: 200,
        // Every other device has one log.
        copies_with_writes: load.seed % 2 == 1,
        dump: if load.dumps { least(pages) } else { None },
        gives_room_back: load.gives_room_back,
        ..FtlOptions::new(pages)
    }
}

/// Repeatedly opens, checks every page, and writes durably until power is cut.
pub fn cycles<R: Rig>(load: Cycles) {
    let Cycles { seed, cycles, after_max, batch_max, shares, dumps, .. } = load;
    let mut rng = Rng::split(seed, "cycles");
    let mut rig = R::with_more_zones(seed, if dumps { DUMP_ZONES } else { 0 });
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.open(&runtime);
    let options = options(&media, &load);
    let pages = options.pages;
    runtime.run(async move { Ftl::format(media, options).await }).unwrap().unwrap();
    runtime.drop_tasks();
    rig.power_off(&runtime).unwrap();
    // The last acknowledged content of each page, and the pages of the batch in flight.
    let known = Rc::new(RefCell::new(vec![(0, 0); pages as usize]));
    let pending: Rc<RefCell<Vec<(u64, Held)>>> = Rc::default();
    let count = Rc::new(Cell::new(0));
    for cycle in 0..cycles {
        let runtime = Virtual::new(Schedule::Shuffled(seed + u64::from(cycle)));
        let media = rig.open(&runtime);
        let after = rng.below(after_max);
        rig.plan(CutPlan { after_operations: after, fate: Fate::ALL[rng.below(3) as usize] });
        let (known, pending, count) = (Rc::clone(&known), Rc::clone(&pending), Rc::clone(&count));
        let (rt, mut load) = (runtime.clone(), Rng::new(rng.next_u64()));
        // Set only for a device that serves dumps.
        let serving = Rc::new(RefCell::new(None));
        let serves = Rc::clone(&serving);
        let session = async move {
            let (ftl, _) = Ftl::recover(media, options).await?;
            ftl.validate();
            let (mut newer, mut older) = (0, 0);
            for page in 0..pages {
                let mut out = [R::Page::zero()];
                ftl.read(&[PageNo(page)], &mut out).await?;
                let old = known.borrow()[page as usize];
                let new = pending.borrow().iter().find(|(at, _)| *at == page).map(|(_, new)| *new);
                match new {
                    Some(new) if new == old => {}
                    Some(new) if is(&out[0], new) => {
                        newer += 1;
                        continue;
                    }
                    Some(_) => older += 1,
                    None => {}
                }
                let seen = &out[0];
                assert!(
                    is(seen, old),
                    "seed {seed} cycle {cycle}: page {page} is {seen:?}, not {old:?}"
                );
            }
            assert!(newer == 0 || older == 0, "seed {seed} cycle {cycle}: torn batch");
            for (page, held) in pending.take() {
                if newer > 0 {
                    known.borrow_mut()[page as usize] = held;
                }
            }
            // More contents than fit between two cleanings cannot be shared at once.
            let shares_max = u64::from(ftl.share_pairs_max());
            let batch_max = if shares > 0.0 { batch_max.min(shares_max) } else { batch_max };
            start(&rt, &ftl);
            ftl.conclude_dump().await?;
            if dumps {
                *serves.borrow_mut() = Some(Rc::clone(&ftl));
            }
            loop {
                count.set(count.get() + 1);
                let batch = batch(&mut load, &known.borrow(), batch_max, count.get(), shares);
                *pending.borrow_mut() =
                    batch.iter().map(|(page, held, _)| (*page, *held)).collect();
                let shared =
                    batch.iter().map(|(to, _, from)| Some((PageNo(*to), PageNo((*from)?))));
                match shared.collect::<Option<Vec<_>>>() {
                    Some(pairs) => ftl.share(&pairs, true, || ()).await?,
                    None => {
                        let write = |(page, (of, count), _): &(u64, Held, _)| {
                            (PageNo(*page), content(*of, *count))
                        };
                        ftl.write(&batch.iter().map(write).collect::<Vec<_>>(), true).await?;
                    }
                }
                for (page, held) in pending.take() {
                    known.borrow_mut()[page as usize] = held;
                }
            }
            #[allow(unreachable_code)]
            Ok::<(), tantalum_base::Error>(())
        };
        match runtime.run(session) {
            Ok(Err(error)) => assert!(
                rig.is_cut() && matches!(error.kind(), ErrorKind::PowerCut | ErrorKind::Latched),
                "seed {seed} cycle {cycle}, cut after {after}: {error:?}"
            ),
            Ok(Ok(())) => unreachable!(),
            Err(deadlock) => {
                assert!(rig.is_cut(), "seed {seed} cycle {cycle}, cut after {after}: {deadlock}")
            }
        }
        runtime.drop_tasks();
        rig.power_off(&runtime).unwrap();
        if let Some(ftl) = serving.take() {
            let runtime = Virtual::new(Schedule::Fifo);
            let media = rig.open(&runtime);
            runtime.run(async move { ftl.dump(&media, &[]).await.map(|_| ()) }).unwrap().unwrap();
            rig.power_off(&runtime).unwrap();
        }
    }
    println!("seed {seed}: {} batches", count.get());
}
