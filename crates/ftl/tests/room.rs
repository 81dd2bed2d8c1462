//! A device on a medium that can take room back: which room it gives back, when, and that recovery needs none of it.
use crate::support::{format, recover};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result, Rng, ZoneNo};
use tantalum_ftl::FtlOptions;
use tantalum_ftl::fault_points::Fault;
use tantalum_media::block_store::MemoryStore;
use tantalum_media::file_zones::anchor_area_bytes;
use tantalum_media::wrappers::{ZoneLayer, ZoneOperation};
use tantalum_media::{BlockStore, FileZones, FileZonesOptions, SlotKind, StoreLayer};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 120;
const ZONES: u32 = 30;
const SLOTS: u32 = 16;
const ANCHORS: u32 = 16;

/// A store in memory whose room comes back.
struct Sparse(MemoryStore);

impl StoreLayer for Sparse {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    async fn give_room_back(&self, offset: u64, bytes: u64) -> Result<bool> {
        BlockStore::zero(&self.0, offset, bytes).await.map(|()| true)
    }
}

type Zones = FileZones<Sparse>;

fn zones(disk: &MemoryStore) -> Zones {
    let options = FileZonesOptions {
        volume_id: 7,
        first_byte: anchor_area_bytes(ANCHORS),
        zones: ZONES,
        slots_per_zone: SLOTS,
    };
    FileZones::new(Sparse(disk.clone()), options).unwrap().with_anchors(0, ANCHORS)
}

/// The image that a kill at some moment would leave, and the contents of the pages then; pages with a change under way
/// may hold either content.
struct Moment {
    image: Vec<u8>,
    held: Vec<u64>,
    on_their_way: Vec<(u64, u64)>,
}

/// The state that is known from outside.
#[derive(Default)]
struct Known {
    held: RefCell<Vec<u64>>,
    on_their_way: RefCell<Vec<(u64, u64)>>,
    moments: RefCell<Vec<Moment>>,
}

/// Checks that no zone gives its room back that a checkpoint in force may name, and records the moments around it.
struct Watched {
    inner: Zones,
    disk: MemoryStore,
    known: Rc<Known>,
    // Numbers of checkpoints: the last one begun, the one in force, and for each zone the last one begun when it was
    // reset.
    begun: Cell<u64>,
    in_force: Cell<u64>,
    reset_under: RefCell<BTreeMap<ZoneNo, u64>>,
}

impl Watched {
    fn note_moment(&self) {
        self.known.moments.borrow_mut().push(Moment {
            image: self.disk.image(),
            held: self.known.held.borrow().clone(),
            on_their_way: self.known.on_their_way.borrow().clone(),
        });
    }
}

impl ZoneLayer for Watched {
    type Inner = Zones;

    fn inner(&self) -> &Zones {
        &self.inner
    }

    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match operation {
            ZoneOperation::Append { spares, .. } if spares[0].kind == SlotKind::Checkpoint => {
                self.begun.set(spares[0].version.0);
            }
            ZoneOperation::Reset(zone) => {
                self.reset_under.borrow_mut().insert(zone, self.begun.get());
            }
            ZoneOperation::WriteAnchor(_) => self.in_force.set(self.begun.get()),
            ZoneOperation::GiveRoomBack(zone) => {
                let named = self.reset_under.borrow().get(&zone).copied().unwrap_or(0);
                assert!(
                    named < self.in_force.get(),
                    "{zone:?} was reset under checkpoint {named}, and {} is in force",
                    self.in_force.get()
                );
                self.note_moment();
            }
            _ => {}
        }
        let gives = matches!(operation, ZoneOperation::GiveRoomBack(_));
        let done = run.await;
        if gives {
            self.note_moment();
        }
        done
    }
}

fn content(page: u64, count: u64) -> PageBuf {
    match count {
        0 => PageBuf::zero(),
        _ => PageBuf::copy_from(&(page << 32 | count).to_le_bytes().repeat(PAGE_BYTES / 8)),
    }
}

fn options() -> FtlOptions {
    FtlOptions { gives_room_back: true, ..FtlOptions::new(PAGES) }
}

/// Makes a device, and writes and trims it at random; records all moments around a zone that gives room back.
async fn live(runtime: Virtual, disk: MemoryStore, known: Rc<Known>, seed: u64) {
    let inner = zones(&disk);
    let medium = Watched {
        inner,
        disk,
        known: Rc::clone(&known),
        begun: Cell::default(),
        in_force: Cell::default(),
        reset_under: RefCell::default(),
    };
    *known.held.borrow_mut() = vec![0; PAGES as usize];
    let ftl = format(medium, options()).await.unwrap();
    ftl.start_tasks(&runtime);
    let mut rng = Rng::split(seed, "room");
    for count in 1..200 {
        let trims = rng.chance(0.1);
        let pages = if trims { 60 } else { 1 + rng.below(14) };
        let first = rng.below(PAGES - pages);
        let range = first..first + pages;
        let now = if trims { 0 } else { count };
        *known.on_their_way.borrow_mut() = range.clone().map(|page| (page, now)).collect();
        if trims {
            ftl.trim(PageRange::new(PageNo(first), pages), true).await.unwrap();
        } else {
            let batch: Vec<_> = range.map(|page| (PageNo(page), content(page, count))).collect();
            ftl.write(&batch, true).await.unwrap();
        }
        for (page, now) in known.on_their_way.take() {
            known.held.borrow_mut()[page as usize] = now;
        }
        if rng.chance(0.1) {
            runtime.sleep(1_000_000).await;
            ftl.validate();
        }
    }
}

/// Opens the image that a kill left; read-only, so that each moment costs little.
async fn assert_is_there(moment: Moment, seed: u64) {
    let disk = MemoryStore::with_image(&moment.image);
    let options = FtlOptions { read_only: true, ..options() };
    let (ftl, _) = recover(zones(&disk), options).await.unwrap();
    assert_eq!(ftl.check(|_, _| ()).await.unwrap(), [], "seed {seed}");
    for page in 0..PAGES {
        let mut found = [PageBuf::zero()];
        ftl.read(&[PageNo(page)], &mut found).await.unwrap();
        let on_its_way =
            moment.on_their_way.iter().find(|(at, _)| *at == page).map(|(_, now)| *now);
        let held = moment.held[page as usize];
        let is_right = [Some(held), on_its_way]
            .into_iter()
            .flatten()
            .any(|count| found[0] == content(page, count));
        assert!(is_right, "seed {seed}: page {page} does not hold write {held}");
    }
}

/// Lives of a device, and the recoveries from all moments around a zone that gives room back.
fn lives(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let disk = MemoryStore::new(
            anchor_area_bytes(ANCHORS) + u64::from(ZONES * SLOTS) * PAGE_BYTES as u64,
        );
        let known = Rc::new(Known::default());
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        runtime.run(live(runtime.clone(), disk, Rc::clone(&known), seed)).unwrap();
        runtime.drop_tasks();
        let moments = known.moments.take();
        assert!(moments.len() > 10, "seed {seed}: {} moments test little", moments.len());
        for moment in moments {
            Virtual::new(Schedule::Fifo).run(assert_is_there(moment, seed)).unwrap();
        }
    }
}

#[test]
fn a_zone_gives_its_room_back_when_no_checkpoint_in_force_names_it() {
    assert_noticed(Fault::RoomGivenBackEarly, || {
        lives(0..8);
        None
    });
}
