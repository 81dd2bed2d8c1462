//! Durable metadata pages that decay: never a silent return to an older state.
use crate::support::{format, recover};
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{
    ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result, SlotNo, ZoneNo,
};
use tantalum_ftl::FtlOptions;
use tantalum_ftl::fault_points::Fault;
use tantalum_media::block_store::MemoryStore;
use tantalum_media::wrappers::ZoneLayer;
use tantalum_media::{FileZones, FileZonesOptions, SlotKind, ZoneMedia};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const PAGES: u64 = 300;
const ZONES: u32 = 24;
const SLOTS_PER_ZONE: u32 = 32;

type Media = FileZones<MemoryStore>;

fn media(disk: &MemoryStore) -> Media {
    let options = FileZonesOptions {
        volume_id: 7,
        first_byte: 0,
        zones: ZONES,
        slots_per_zone: SLOTS_PER_ZONE,
    };
    FileZones::new(disk.clone(), options).unwrap()
}

fn options() -> FtlOptions {
    FtlOptions { checkpoint_interval_slots: 1 << 40, ..FtlOptions::new(PAGES) }
}

/// Writes every page and a checkpoint, then trims half of the pages and writes further checkpoints:
/// `checkpoints` in all, with the one that formatting writes.
async fn fill(disk: MemoryStore, checkpoints: u64) -> Result<()> {
    let ftl = format(media(&disk), options()).await?;
    for first in (0..PAGES).step_by(10) {
        let page = |page| (PageNo(page), PageBuf::copy_from(&[(page % 250) as u8 + 1; PAGE_BYTES]));
        let pages: Vec<_> = (first..first + 10).map(page).collect();
        ftl.write(&pages, true).await?;
    }
    ftl.checkpoint().await?;
    ftl.trim(PageRange::new(PageNo(0), PAGES / 2), true).await?;
    for _ in 2..checkpoints {
        ftl.checkpoint().await?;
    }
    Ok(())
}

/// Slots of the device's own pages of this `kind`: those of checkpoint `id`, its footer last, or the
/// records of change `id`.
async fn own_slots(disk: MemoryStore, kind: SlotKind, id: u64) -> Result<Vec<u32>> {
    let media = media(&disk);
    let mut slots = Vec::new();
    for zone in (0..ZONES).map(ZoneNo) {
        for append in media.scan(zone, 0, None).await? {
            for (offset, spare) in (append.first_offset..).zip(append.spares) {
                let spare = spare.expect("nothing is damaged yet");
                if spare.kind == kind && spare.version.0 == id {
                    slots.push((spare.page, media.geometry().slot(zone, offset).0));
                }
            }
        }
    }
    slots.sort_unstable();
    Ok(slots.into_iter().map(|(_, slot)| slot).collect())
}

fn flip(disk: &MemoryStore, slot: u32) {
    disk.flip_bit(u64::from(slot) * PAGE_BYTES as u64 + 100, 3);
}

/// The result of opening: the checkpoint, or the kind of the error.
fn open(disk: &MemoryStore) -> std::result::Result<u64, ErrorKind> {
    let runtime = Virtual::new(Schedule::Fifo);
    let disk = disk.clone();
    let opened = runtime.run(async move {
        let (ftl, report) = recover(media(&disk), options()).await?;
        let mut out = [PageBuf::zero()];
        for page in 0..PAGES {
            ftl.read(&[PageNo(page)], &mut out).await?;
            let expected = if page < PAGES / 2 { 0 } else { (page % 250) as u8 + 1 };
            assert_eq!(out[0][..], [expected; PAGE_BYTES], "page {page}");
        }
        Ok::<_, tantalum_base::Error>(report.checkpoint)
    });
    opened.unwrap().map_err(|error| error.kind())
}

/// A device with `checkpoints` checkpoints, and the slots of each, in order.
fn filled(checkpoints: u64) -> (MemoryStore, Vec<Vec<u32>>) {
    let disk = MemoryStore::new(u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64);
    let runtime = Virtual::new(Schedule::Fifo);
    runtime.run(fill(disk.clone(), checkpoints)).unwrap().unwrap();
    let slots = (1..=checkpoints)
        .map(|id| runtime.run(own_slots(disk.clone(), SlotKind::Checkpoint, id)).unwrap().unwrap())
        .collect();
    (disk, slots)
}

#[test]
fn a_damaged_piece_of_the_checkpoint_in_force_is_no_way_back_to_an_older_one() {
    let (_, slots) = filled(3);
    assert!(!slots[1].is_empty(), "the checkpoint before is still there");
    let [pieces @ .., _footer] = &slots[2][..] else { panic!("the checkpoint has pages") };
    assert!(pieces.len() > 1, "zone table and map");
    // Each page, and the append header before them.
    for slot in pieces.iter().copied().chain([pieces[0] - 1]) {
        let (disk, _) = filled(3);
        flip(&disk, slot);
        // The previous checkpoint and the log since suffice.
        assert_eq!(open(&disk), Ok(2), "slot {slot}");
    }
}

#[test]
fn a_damaged_footer_behind_which_the_next_checkpoint_was_begun_is_no_way_back() {
    let (disk, slots) = filled(4);
    let footer = |id: usize| slots[id - 1].last().copied().unwrap();
    // As if the fourth had been interrupted: the third is in force.
    flip(&disk, footer(4));
    flip(&disk, footer(3));
    assert_eq!(open(&disk), Ok(2), "and the log since");
    // The same if the append header before it is damaged.
    let (disk, _) = filled(4);
    flip(&disk, footer(4));
    flip(&disk, footer(3) - 1);
    assert_eq!(open(&disk), Ok(2), "and the log since");
    // The third is used if it is undamaged.
    let (disk, _) = filled(4);
    flip(&disk, footer(4));
    assert_eq!(open(&disk), Ok(3));
}

/// A medium, one bit of whose own page in `slot` flips behind the scan that found it intact.
struct Decaying {
    inner: Media,
    slot: SlotNo,
    bit: usize,
}

impl ZoneLayer for Decaying {
    type Inner = Media;

    fn inner(&self) -> &Media {
        &self.inner
    }

    async fn read_meta_run(&self, first: SlotNo, out: &mut [PageBuf]) -> Result<()> {
        self.inner.read_meta_run(first, out).await?;
        let at = self.slot.0.checked_sub(first.0).map(|at| at as usize);
        if let Some(page) = at.and_then(|at| out.get_mut(at)) {
            page.make_mut()[self.bit / 8] ^= 1 << (self.bit % 8);
        }
        Ok(())
    }
}

/// Writes two pages, and has a third and a fourth share the first of them. Returns the slot of the record of that.
async fn share(disk: MemoryStore) -> Result<SlotNo> {
    const VERSION: u64 = 3;
    let ftl = format(media(&disk), options()).await?;
    let content = |byte| PageBuf::copy_from(&[byte; PAGE_BYTES]);
    ftl.write(&[(PageNo(1), content(10)), (PageNo(2), content(20))], true).await?;
    ftl.share(&[(PageNo(3), PageNo(1)), (PageNo(4), PageNo(1))], true, || ()).await?;
    let slots = own_slots(disk, SlotKind::Record, VERSION).await?;
    let [slot] = slots[..] else { panic!("one page says what is shared: {slots:?}") };
    Ok(SlotNo(slot))
}

/// Cuts power, and flips a bit of the record of a share as it is read. Returns the first wrong page that is served
/// then.
fn decayed_record() -> Option<String> {
    const CONTENTS: [(u64, u8); 5] = [(1, 10), (2, 20), (3, 10), (4, 10), (5, 0)];
    const BYTES: usize = 80;
    (0..8 * BYTES).find_map(|bit| {
        let disk = MemoryStore::new(u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64);
        let runtime = Virtual::new(Schedule::Fifo);
        let slot = runtime.run(share(disk.clone())).unwrap().unwrap();
        let media = Decaying { inner: media(&disk), slot, bit };
        let recovered = Virtual::new(Schedule::Fifo).run(async move {
            let (ftl, _) = recover(media, options()).await?;
            let mut out = [PageBuf::zero()];
            for (page, expected) in CONTENTS {
                ftl.read(&[PageNo(page)], &mut out).await?;
                if out[0][..] != [expected; PAGE_BYTES] {
                    return Ok(Some(format!("bit {bit}: page {page} has {:02x}", out[0][0])));
                }
            }
            Ok::<_, tantalum_base::Error>(None)
        });
        recovered.unwrap().unwrap_or(None)
    })
}

#[test]
fn own_pages_are_checked() {
    assert_noticed(Fault::OwnPagesUnchecked, decayed_record);
}
