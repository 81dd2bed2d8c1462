//! The flash vanishes from a running volume: every request ends, and so does closing; home shows the volume at
//! one moment; and a flash that returns has all acknowledged content.
use super::rig::{Life, PAGES, Rig, page};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Rng};
use tantalum_cache::TieredStatistics;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_volume::rescue;

/// Pages that the client changes.
const CHANGED_PAGES: u64 = 1500;

/// The sequence of changes of one client: each has its pages with the number of the write (0: zeros).
#[derive(Default)]
pub(super) struct Done {
    pub changes: Vec<BTreeMap<u64, u64>>,
    pub acknowledged: usize,
}

impl Done {
    /// The largest number of changes after which the pages held this content.
    pub fn moment(&self, found: &[u64]) -> Option<usize> {
        let mut state = vec![0; CHANGED_PAGES as usize];
        let mut moment = (state == found).then_some(0);
        for (before, change) in self.changes.iter().enumerate() {
            change.iter().for_each(|(page, count)| state[*page as usize] = *count);
            if state == found {
                moment = Some(before + 1);
            }
        }
        moment
    }
}

/// Changes pages until a change fails; with scattered transactions, writes and trims.
pub(super) async fn change(life: Life, done: Rc<RefCell<Done>>, seed: u64) {
    let mut rng = Rng::split(seed, "changes");
    for count in 1.. {
        let first = rng.below(CHANGED_PAGES - 8);
        let trims = rng.chance(0.1);
        let scattered = !trims && rng.chance(0.5);
        let pages: Vec<u64> = match scattered {
            true => (0..5).map(|_| rng.below(CHANGED_PAGES)).collect(),
            false => (first..first + 1 + rng.below(8)).collect(),
        };
        let written = if trims { 0 } else { count };
        let changes: BTreeMap<u64, u64> = pages.iter().map(|page| (*page, written)).collect();
        let contents: Vec<(PageNo, PageBuf)> =
            changes.keys().map(|number| (PageNo(*number), page(*number, count))).collect();
        done.borrow_mut().changes.push(changes);
        let changed = if trims {
            life.volume.trim(PageRange::new(PageNo(first), pages.len() as u64)).await
        } else if scattered {
            life.volume.write_scattered(contents, || ()).await
        } else {
            let contents: Vec<PageBuf> = contents.into_iter().map(|(_, content)| content).collect();
            life.volume.write(PageNo(first), &contents, None).await
        };
        if changed.is_err() {
            return;
        }
        done.borrow_mut().acknowledged += 1;
    }
}

/// Reads random pages; a page that is only at home can be read without the flash.
async fn read(life: Life, seed: u64) {
    let mut rng = Rng::split(seed, "reads");
    for _ in 0..400 {
        let first = rng.below(PAGES - 8);
        let mut out = vec![PageBuf::zero(); 8];
        let _ = life.volume.read(PageNo(first), &mut out, None).await;
    }
}

/// The flash vanishes after some operations: the changes made until then, and the resulting statistics.
fn vanish(rig: &Rig, after: u64, seed: u64) -> (Done, TieredStatistics) {
    let done = Rc::new(RefCell::new(Done::default()));
    let told = Rc::clone(&done);
    let statistics = rig.live(move |life| async move {
        life.flash.vanish_after(after);
        let changing = life.runtime.spawn("change", change(life.clone(), told, seed));
        let reading = life.runtime.spawn("read", read(life.clone(), seed));
        changing.await;
        reading.await;
        assert!(life.flash.has_vanished());
        // Every request gets a reply.
        assert!(life.write(1, 1).await.is_err());
        assert!(life.volume.trim(PageRange::new(PageNo(0), 4)).await.is_err());
        let _ = life.volume.flush().await;
        let _ = life.write_home().await;
        life.sleep_s(100).await;
        let statistics = life.statistics();
        let _ = life.volume.close().await;
        statistics
    });
    (Rc::into_inner(done).unwrap().into_inner(), statistics)
}

/// The write numbers of the pages of an image.
pub(super) fn numbers(image: &[u8]) -> Vec<u64> {
    let number = |(at, bytes): (usize, &[u8])| {
        let count = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
        assert!(*bytes == page(at as u64, count)[..], "page {at} holds what was never written");
        count
    };
    image.chunks(PAGE_BYTES).take(CHANGED_PAGES as usize).enumerate().map(number).collect()
}

#[test]
fn ordered_every_request_ends_and_home_can_be_rescued() {
    let (mut rescued, mut older) = (0, 0);
    for seed in 0..60 {
        let rig = Rig::new("ordered");
        let after = seed * seed / 2;
        println!("seed {seed}: gone after {after} operations");
        let (done, told) = vanish(&rig, after, seed);
        let stores = Rig { ..rig };
        let (journal, home) = (stores.journal.clone(), stores.home.clone());
        let report = Virtual::alone("rescue", |_| rescue(journal, home)).unwrap();
        let found = numbers(&stores.home.image());
        let Some(moment) = done.moment(&found) else {
            panic!("seed {seed}: home is no moment: {told:?}")
        };
        rescued += u64::from(report.epoch.is_some());
        older += u64::from(0 < moment && moment < done.acknowledged);
        comes_back(&stores, &done, seed);
    }
    assert!(rescued > 15 && older > 10, "{rescued}, {older} older");
}

#[test]
fn dense_every_request_ends_and_the_flash_may_come_back() {
    for seed in 0..40 {
        let rig = Rig::new("dense");
        println!("seed {seed}: gone after {} operations", seed * seed);
        let (done, _) = vanish(&rig, seed * seed, seed);
        comes_back(&rig, &done, seed);
    }
}

/// The flash was only unplugged: all acknowledged changes are there, and the last change entirely or not at all.
pub(super) fn comes_back(rig: &Rig, done: &Done, seed: u64) {
    let found = rig.live(|life| async move {
        let mut out = vec![PageBuf::zero(); CHANGED_PAGES as usize];
        for (chunk, out) in out.chunks_mut(100).enumerate() {
            life.volume.read(PageNo(chunk as u64 * 100), out, None).await.unwrap();
        }
        life.volume.validate();
        out.iter().flat_map(|page| page.to_vec()).collect::<Vec<u8>>()
    });
    let found = numbers(&found);
    let moment = done.moment(&found);
    assert!(moment >= Some(done.acknowledged), "seed {seed}: {moment:?} of {}", done.acknowledged);
}
