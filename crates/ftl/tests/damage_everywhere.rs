//! Every block of a volume's store damaged in turn, after a kill and after a close: a page never
//! reads as anything but its last content. Reading may fail, and opening may be refused, unless
//! `accept_loss` is set. The oracle is just the list of writes.
use crate::support::{format, recover};
use std::collections::BTreeSet;
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_base::{
    ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result, Rng, SlotNo,
};
use tantalum_ftl::fault_points::Fault;
use tantalum_ftl::{FtlOptions, RecoveryReport};
use tantalum_media::BlockStore;
use tantalum_media::block_store::{MemoryStore, Salvage};
use tantalum_media::file_zones::anchor_area_bytes;
use tantalum_media::{FileZones, FileZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

pub const PAGES: u64 = 150;
/// With many zones replaced content stays for long; with few, zones are soon reused.
pub const MANY_ZONES: u32 = 48;
pub const FEW_ZONES: u32 = 24;
pub const SLOTS_PER_ZONE: u32 = 16;
const ANCHORS: u32 = 8;
pub const ZONES_BYTE: u64 = anchor_area_bytes(ANCHORS);

type Media = FileZones<Salvage<MemoryStore>>;

fn store_bytes(zones: u32) -> u64 {
    ZONES_BYTE + u64::from(zones * SLOTS_PER_ZONE) * PAGE_BYTES as u64
}

pub fn media(disk: &MemoryStore, salvage: bool) -> Media {
    let slots = (disk.bytes() - ZONES_BYTE) / PAGE_BYTES as u64;
    let options = FileZonesOptions {
        volume_id: 7,
        first_byte: ZONES_BYTE,
        zones: slots as u32 / SLOTS_PER_ZONE,
        slots_per_zone: SLOTS_PER_ZONE,
    };
    let store = Salvage::new(disk.clone(), salvage);
    FileZones::new(store, options).unwrap().with_anchors(0, ANCHORS)
}

/// Few checkpoints, so that much is only in the log.
pub fn options() -> FtlOptions {
    FtlOptions { checkpoint_interval_slots: 2500, wear_spread_max: 3, ..FtlOptions::new(PAGES) }
}

/// The content that change `number` gave a page.
fn content(page: u64, number: u64) -> PageBuf {
    let mut bytes = [number as u8; PAGE_BYTES];
    bytes[..8].copy_from_slice(&page.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    PageBuf::copy_from(&bytes)
}

/// For each page the number of the change that wrote its content, and for which page.
type Held = Vec<Option<(u64, u64)>>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    Killed,
    Closed,
}

/// A device after that many changes, and the contents of its pages.
pub struct Used {
    pub disk: MemoryStore,
    held: Held,
}

/// Writes, trims and shares at random, while zones are cleaned and checkpoints are written. The
/// last change is to the last page, which no other change writes: a change at the end of the log
/// may be lost unnoticed.
async fn load(
    runtime: Virtual,
    disk: MemoryStore,
    seed: u64,
    changes: u64,
    end: End,
) -> Result<Held> {
    let ftl = format(media(&disk, false), options()).await?;
    let cleaner = Rc::clone(&ftl);
    runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
    let checkpointer = Rc::clone(&ftl);
    runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
    let mut rng = Rng::split(seed, "damage");
    let mut held: Held = vec![None; PAGES as usize];
    for number in 1..=changes {
        // Some pages change often and some rarely, so that some zones have few live pages.
        let range = if rng.chance(0.8) { 30 } else { PAGES - 10 };
        let first = rng.below(range);
        let pages = 1 + rng.below(6);
        match rng.below(10) {
            0 => {
                ftl.trim(PageRange::new(PageNo(first), pages), true).await?;
                held[first as usize..(first + pages) as usize].fill(None);
            }
            1 => {
                let right = rng.below(PAGES - 1);
                if right != first && held[right as usize].is_some() {
                    ftl.share(&[(PageNo(first), PageNo(right))], true, || ()).await?;
                    held[first as usize] = held[right as usize];
                }
            }
            _ => {
                let write = |page| (PageNo(page), content(page, number));
                let batch: Vec<_> = (first..first + pages).map(write).collect();
                ftl.write(&batch, true).await?;
                (first..first + pages).for_each(|page| held[page as usize] = Some((page, number)));
            }
        }
    }
    if end == End::Closed {
        ftl.close().await?;
    }
    ftl.write(&[(PageNo(PAGES - 1), content(PAGES - 1, 0))], true).await?;
    if end == End::Closed {
        ftl.close().await?;
    }
    Ok(held)
}

impl Used {
    /// A copy of the store, since opening a device changes it.
    fn copy(&self) -> MemoryStore {
        MemoryStore::with_image(&self.disk.image())
    }
}

fn used(seed: u64, end: End) -> Used {
    used_for(seed, 400, end, MANY_ZONES)
}

pub fn used_for(seed: u64, changes: u64, end: End, zones: u32) -> Used {
    let disk = MemoryStore::new(store_bytes(zones));
    let runtime = Virtual::new(Schedule::Fifo);
    let held =
        runtime.run(load(runtime.clone(), disk.clone(), seed, changes, end)).unwrap().unwrap();
    Used { disk, held }
}

/// The result of opening a device.
#[derive(Clone, Debug, Default)]
struct Opened {
    refused: bool,
    errors: u64,
    report: RecoveryReport,
    /// A page that reads as something other than its content.
    wrong: Option<String>,
}

/// Opens the device on `disk` and reads every page, again after everything was cleaned once.
fn open(disk: &MemoryStore, held: &Held, accept_loss: bool) -> Opened {
    let runtime = Virtual::new(Schedule::Fifo);
    let (disk, held) = (disk.clone(), held.clone());
    let opened = runtime.run(async move {
        let mut opened = Opened::default();
        let options = FtlOptions { accept_loss, ..options() };
        let ftl = match recover(media(&disk, accept_loss), options).await {
            Ok((ftl, report)) => {
                opened.report = report;
                ftl
            }
            Err(error) => {
                let kind = error.kind();
                // A block may be readable the next time, but `accept_loss` does not wait for that.
                let damage = matches!(kind, ErrorKind::Corrupt | ErrorKind::Checksum);
                assert!(damage || kind == ErrorKind::Io && !accept_loss, "{error}");
                opened.refused = true;
                return opened;
            }
        };
        ftl.validate();
        for (page, held) in (0..PAGES - 1).zip(held) {
            let mut out = [PageBuf::zero()];
            if ftl.read(&[PageNo(page)], &mut out).await.is_err() {
                opened.errors += 1;
                continue;
            }
            let expected = held.map_or(PageBuf::zero(), |(page, number)| content(page, number));
            if out[0] != expected {
                let number = u64::from_le_bytes(out[0][8..16].try_into().unwrap());
                opened.wrong = Some(format!("page {page} reads as change {number}, not {held:?}"));
            }
        }
        if accept_loss {
            // The loss is settled: from now on the device opens normally.
            ftl.close().await.unwrap();
            let again = recover(media(&disk, false), self::options()).await;
            assert!(again.is_ok(), "{:?}", again.err());
        }
        opened
    });
    opened.unwrap()
}

/// The damage of a block.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Zeroed,
    Flipped,
    Unreadable,
}

/// Damages each block in turn; returns the result for each.
fn damage_everywhere(used: &Used, damage: Damage, accept_loss: bool) -> Vec<(u64, Opened)> {
    let mut found = Vec::new();
    let whole = used.disk.image();
    for block in 0..whole.len() as u64 / PAGE_BYTES as u64 {
        let byte = block * PAGE_BYTES as u64;
        let page = &whole[byte as usize..byte as usize + PAGE_BYTES];
        if page.iter().all(|byte| *byte == 0) {
            continue;
        }
        let disk = MemoryStore::with_image(&whole);
        match damage {
            Damage::Zeroed => disk.wipe_block(byte),
            Damage::Flipped => {
                disk.flip_bit(byte + (block * 37) % PAGE_BYTES as u64, (block % 8) as u8);
            }
            Damage::Unreadable => disk.spoil_block(byte),
        }
        found.push((block, open(&disk, &used.held, accept_loss)));
    }
    assert!(found.len() > 100, "most blocks hold something");
    found
}

fn no_page_is_wrong(end: End, seeds: std::ops::Range<u64>) {
    let (mut refused, mut errors) = (0, 0);
    for (seed, zones) in seeds.flat_map(|seed| [(seed, FEW_ZONES), (seed, MANY_ZONES)]) {
        let used = used_for(seed, 400, end, zones);
        let whole = open(&used.copy(), &used.held, false);
        assert!(!whole.refused && whole.errors == 0 && whole.wrong.is_none(), "{seed}: {whole:?}");
        for damage in [Damage::Zeroed, Damage::Flipped, Damage::Unreadable] {
            for (block, opened) in damage_everywhere(&used, damage, false) {
                assert_eq!(opened.wrong, None, "seed {seed}, {end:?}, block {block} {damage:?}");
                refused += u32::from(opened.refused);
                errors += opened.errors;
            }
        }
    }
    assert!(errors > 0, "no damage was met");
    println!("{end:?}: {refused} refused, {errors} pages were errors");
}

#[test]
fn a_killed_device_never_reads_old_content() {
    no_page_is_wrong(End::Killed, 0..4);
}

#[test]
fn a_closed_device_never_reads_old_content() {
    no_page_is_wrong(End::Closed, 0..2);
}

/// Losses that are given up are counted; other pages read as usual.
#[test]
fn what_is_given_up_is_told() {
    let used = used(1, End::Killed);
    let refused: BTreeSet<u64> = damage_everywhere(&used, Damage::Zeroed, false)
        .into_iter()
        .filter(|(_, opened)| opened.refused)
        .map(|(block, _)| block)
        .collect();
    assert!(!refused.is_empty());
    let mut given_up = 0;
    for (block, opened) in damage_everywhere(&used, Damage::Zeroed, true) {
        let RecoveryReport { changes_given_up, pages_given_up, .. } = opened.report;
        if opened.wrong.is_some() {
            assert!(changes_given_up > 0, "block {block}: {:?}", opened.wrong);
        }
        if refused.contains(&block) && !opened.refused {
            assert!(changes_given_up + pages_given_up > 0, "block {block}");
            given_up += 1;
        }
    }
    assert!(given_up > 0);
}

/// With `accept_loss` an unreadable block is no reason to refuse: it counts as damaged.
#[test]
fn what_cannot_be_read_is_given_up_as_what_is_damaged() {
    let used = used(1, End::Killed);
    let refused = damage_everywhere(&used, Damage::Unreadable, false);
    assert!(refused.iter().any(|(_, opened)| opened.refused));
    let unreadable = damage_everywhere(&used, Damage::Unreadable, true);
    let damaged = damage_everywhere(&used, Damage::Zeroed, true);
    for ((block, unreadable), (_, damaged)) in unreadable.into_iter().zip(damaged) {
        let told = |opened: Opened| (opened.refused, opened.errors, opened.wrong);
        assert_eq!(told(unreadable), told(damaged), "block {block}");
    }
}

/// Each protection against old content is needed: without it some block brings old content back, or
/// an undamaged device is refused.
#[test]
fn what_is_switched_off_is_noticed() {
    let faults = [(Fault::DamageTakenForEnd, MANY_ZONES), (Fault::DeadVersionsUnlisted, FEW_ZONES)];
    for (fault, zones) in faults {
        let noticed = (0..4).any(|seed| {
            let _planted = plant(fault);
            let used = used_for(seed, 400, End::Killed, zones);
            let whole = open(&used.copy(), &used.held, false);
            whole.refused
                || damage_everywhere(&used, Damage::Zeroed, false)
                    .iter()
                    .any(|(_, opened)| opened.wrong.is_some())
        });
        assert!(noticed, "{fault:?}");
    }
}

/// A lost write, of the first header of a zone that was opened again: the zone must not appear as
/// it was before.
#[test]
fn a_lost_header_does_not_roll_a_zone_back() {
    let (mut struck, mut refused) = (0, 0);
    for seed in 0..4 {
        let before = used_for(seed, 380, End::Killed, FEW_ZONES);
        let after = used_for(seed, 400, End::Killed, FEW_ZONES);
        for zone in 0..FEW_ZONES {
            let byte = ZONES_BYTE + u64::from(SlotNo(zone * SLOTS_PER_ZONE).0) * PAGE_BYTES as u64;
            let at = byte as usize..byte as usize + PAGE_BYTES;
            let (old, new) = (before.disk.image(), after.disk.image());
            if old[at.clone()] == new[at.clone()] || old[at.clone()].iter().all(|byte| *byte == 0) {
                continue;
            }
            let mut image = new.clone();
            image[at.clone()].copy_from_slice(&old[at]);
            let disk = MemoryStore::with_image(&image);
            let opened = open(&disk, &after.held, false);
            assert_eq!(opened.wrong, None, "seed {seed}, zone {zone}");
            struck += 1;
            refused += u32::from(opened.refused || opened.errors > 0);
        }
    }
    println!("{struck} headers lost, {refused} noticed");
    assert!(struck > 0 && refused > 0);
}
