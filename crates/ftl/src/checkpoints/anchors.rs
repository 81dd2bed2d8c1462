//! Anchors: tell recovery where to begin, on media that keep pages for them beside their zones.
//!
//! An era begins when a checkpoint comes into force. Its anchors give the checkpoint's slots and
//! the zones opened since it was begun; before any other zone is opened, another anchor declares
//! that it may be. So recovery scans only these zones, however many the device has, and cannot
//! mistake a zone that was refilled for its earlier content. An anchor that closes the era says
//! that the checkpoint covers every change.
//!
//! If anchors are damaged, recovery scans every zone.
use std::collections::BTreeMap;
use tantalum_base::{PAGE_BYTES, Result, SlotNo, ZoneNo};
use tantalum_media::ZoneMedia;
use tantalum_media::file_zones::ANCHOR_BYTES_MAX;

use crate::checkpoints::anchor_pages::{
    ANY_ZONE, Anchor, CLEAN, EXTENT_BYTES, Era, Extent, HEAD_BYTES, Head, NotedZone, Read,
    ZONE_BYTES, decode, in_force,
};
use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::parts::Parts;
use crate::space::{Space, Stream, Zone, ZoneState};

/// Bytes of zones that one anchor declares in advance. With more of them fewer anchors are written;
/// with fewer, recovery scans fewer zones that were not opened.
const AHEAD_BYTES: u64 = 64 << 20;

/// The numbering of anchors, and the zones that those of the present era have declared.
pub(crate) struct Anchors {
    // Numbers of the last anchor, and of the first of the present era.
    last: u64,
    first: u64,
    // The highest number of an era so far, and that of the present one.
    highest_era: u64,
    era: u64,
    // Number of anchors of the present era, and of those that began it.
    count: u32,
    starts: u32,
    checkpoint: u64,
    // Zones that may be opened without another anchor.
    declared: Vec<bool>,
    declared_zones: u32,
    any_zone: bool,
    /// The era that an earlier opening left. Possibly only one copy of its anchors exists, so it is
    /// written anew with the first anchor.
    inherited: Option<Era>,
}

impl Anchors {
    pub fn new(zones: u32) -> Self {
        Anchors {
            last: 0,
            first: 1,
            highest_era: 0,
            era: 0,
            count: 0,
            starts: 0,
            checkpoint: 0,
            declared: vec![false; zones as usize],
            declared_zones: 0,
            any_zone: false,
            inherited: None,
        }
    }

    /// Begins the next era, of `checkpoint`.
    fn begin(&mut self, checkpoint: u64) {
        self.highest_era += 1;
        (self.era, self.checkpoint) = (self.highest_era, checkpoint);
        (self.first, self.count, self.starts) = (self.last + 1, 0, 1);
        self.any_zone = false;
        self.inherited = None;
    }

    /// Returns the header of the next anchor, and counts it.
    fn next(&mut self, clean: bool) -> Head {
        self.last += 1;
        let index = self.count;
        self.count += 1;
        let any_zone = if self.any_zone { ANY_ZONE } else { 0 };
        Head {
            era: self.era,
            checkpoint: self.checkpoint,
            flags: any_zone | if clean { CLEAN } else { 0 },
            starts: self.starts,
            index,
        }
    }

    /// Notes that `zone` was given up: it needs another anchor before it is opened again.
    pub fn given_up(&mut self, zone: ZoneNo) {
        self.declared[zone.index()] = false;
    }

    /// Reads the anchors of `media`; returns also their era, `None` if an anchor is missing.
    pub async fn read<M: ZoneMedia>(media: &M) -> Result<(Self, Option<Era>)> {
        let mut read: BTreeMap<u64, Read> = BTreeMap::new();
        for (number, bytes) in media.read_anchors().await? {
            let Some(anchor) = decode(&bytes) else { continue };
            let known = read.get(&number).map_or(0, |known| known.head.era);
            if anchor.head.era >= known {
                read.insert(number, anchor);
            }
        }
        let mut anchors = Anchors::new(media.geometry().zones);
        anchors.highest_era = read.values().map(|read| read.head.era).max().unwrap_or(0);
        let found = in_force(&read);
        // Later anchors are of an era that was not begun completely: their numbers are reused, so
        // that the anchors of the era in force stay, however often that happens.
        let last = found.as_ref().and_then(|found| found.last()).map(|(number, _)| *number);
        anchors.last = last.or(read.keys().next_back().copied()).unwrap_or(0);
        let era = found.map(|found| Era::new(&found));
        let era = era.filter(|era| !era.any_zone && era.checkpoint > 0);
        match &era {
            Some(era) => {
                anchors.checkpoint = era.checkpoint;
                anchors.inherited = Some(era.clone());
            }
            None => {
                // Until the next era begins, recovery must not rely on anchors.
                anchors.begin(0);
                anchors.any_zone = true;
            }
        }
        Ok((anchors, era))
    }

    /// `zone`, which is about to be opened, and the next free zones that are not declared.
    fn to_declare(&self, zone: ZoneNo, space: &Space) -> Vec<ZoneNo> {
        let zone_bytes = u64::from(space.geometry().slots_per_zone) * PAGE_BYTES as u64;
        // A long era declares more zones at once, because the number of its anchors is limited.
        let most = (AHEAD_BYTES / zone_bytes).max(u64::from(self.declared_zones) / 4);
        let next = space.next_free(most.clamp(1, u64::from(u32::MAX)) as usize);
        let undeclared = |next: &ZoneNo| !self.declared[next.index()];
        std::iter::once(zone).chain(next.into_iter().filter(undeclared)).collect()
    }

    /// Declares `zones`; returns the content of the anchors that must be written for this.
    fn declare(&mut self, zones: &[ZoneNo]) -> (Vec<Extent>, Vec<NotedZone>) {
        let unopened = zones.iter().map(|zone| NotedZone::unopened(*zone));
        match self.inherited.take() {
            Some(era) => {
                self.begin(era.checkpoint);
                (era.extents, latest(era.zones.into_iter().chain(unopened)))
            }
            None => (Vec::new(), unopened.collect()),
        }
    }

    /// Notes that `zones` are declared: their anchors are durable.
    fn declared(&mut self, zones: &[ZoneNo]) {
        for zone in zones {
            self.declared[zone.index()] = true;
        }
        self.declared_zones += zones.len() as u32;
    }

    /// Splits `extents` and `zones` among the next anchors; an era may have at most `most`. Returns
    /// none if nothing must be written, because this era already states that its list of zones is
    /// incomplete.
    fn divide<'a>(
        &mut self,
        extents: &'a [Extent],
        zones: &'a [NotedZone],
        most: u64,
    ) -> Vec<(&'a [Extent], &'a [NotedZone])> {
        let mut parts = parts(extents, zones);
        let used = self.last + 1 - self.first;
        if used + parts.len() as u64 > most {
            if std::mem::replace(&mut self.any_zone, true) && self.count > 0 {
                return Vec::new();
            }
            parts = vec![(&[], &[])];
        }
        if self.count == 0 {
            self.starts = parts.len() as u32;
        }
        parts
    }

    /// Panics if it is inconsistent. For tests.
    pub fn validate(&self) {
        assert!(self.era <= self.highest_era, "era {} never began", self.era);
        assert!(self.first <= self.last + 1, "anchor {} is behind the last one", self.first);
    }
}

impl<M: ZoneMedia> Ftl<M> {
    /// Changes the state of anchors; `None` if the medium has none that are used.
    fn with_anchors<T>(&self, change: impl FnOnce(&mut Anchors) -> T) -> Option<T> {
        self.parts.borrow_mut().checkpoints.anchors.as_mut().map(change)
    }

    /// Whether `zone` may be opened without another anchor.
    fn is_declared(&self, zone: ZoneNo) -> bool {
        self.with_anchors(|anchors| anchors.declared[zone.index()]).unwrap_or(true)
    }

    /// Makes sure that recovery scans `zone`, which is about to be opened.
    pub(crate) async fn declare(&self, zone: ZoneNo) -> Result<()> {
        if self.is_declared(zone) || Fault::ZonesUndeclared.is_planted() {
            return Ok(());
        }
        let _turn = self.checkpointer.anchor_turn.acquire(1).await;
        let (zones, extents, noted) = {
            let parts = &mut *self.parts.borrow_mut();
            let anchors = parts.checkpoints.anchors.as_mut();
            let Some(anchors) = anchors.filter(|anchors| !anchors.declared[zone.index()]) else {
                return Ok(());
            };
            let zones = anchors.to_declare(zone, &parts.space);
            let (extents, noted) = anchors.declare(&zones);
            (zones, extents, noted)
        };
        self.write_anchors(&extents, &noted, false).await?;
        self.with_anchors(|anchors| anchors.declared(&zones));
        Ok(())
    }

    /// Begins the era of checkpoint `id`, whose pages are in `places`.
    pub(crate) async fn begin_era(&self, id: u64, places: &[SlotNo]) -> Result<()> {
        if self.parts.borrow().checkpoints.anchors.is_none() {
            return Ok(());
        }
        let _turn = self.checkpointer.anchor_turn.acquire(1).await;
        let noted = self.parts.borrow().noted_zones(places);
        self.with_anchors(|anchors| {
            anchors.begin(id);
            anchors.declared_zones = noted.len() as u32;
        });
        self.write_anchors(&extents(places), &noted, false).await
    }

    /// Records that the checkpoint in force covers every change, if that is true. Then the next
    /// opening needs to read nothing else. A later append needs another zone, and so another
    /// anchor.
    pub(crate) async fn end_era(&self) -> Result<()> {
        if self.parts.borrow().checkpoints.anchors.is_none() {
            return Ok(());
        }
        let _turn = self.checkpointer.anchor_turn.acquire(1).await;
        {
            let parts = &mut *self.parts.borrow_mut();
            let checkpoints = &mut parts.checkpoints;
            let (slots_since, in_force) = (checkpoints.slots_since, checkpoints.in_force);
            let Some(anchors) = &mut checkpoints.anchors else { return Ok(()) };
            let is_idle =
                |(_, zone): (ZoneNo, &Zone)| zone.appends_in_flight == 0 && !zone.being_emptied;
            // Changes in flight when the checkpoint was begun may be missing from its map.
            let is_covered = parts.log.uncovered.covered() == parts.log.durable()
                || Fault::UncoveredTakenForClean.is_planted();
            let clean = slots_since == 0
                && is_covered
                && anchors.checkpoint == in_force
                && parts.log.is_durable()
                && parts.space.iter().all(is_idle);
            if !clean || anchors.any_zone {
                return Ok(());
            }
            anchors.declared.fill(false);
            for stream in [Stream::Host, Stream::Cleaning, Stream::Meta] {
                parts.space.seal(stream);
            }
            parts.space.put_prepared_back();
        }
        self.write_anchors(&[], &[], true).await
    }

    /// Writes the anchors of the present era that `extents` and `zones` need, one after the other.
    async fn write_anchors(
        &self,
        extents: &[Extent],
        zones: &[NotedZone],
        clean: bool,
    ) -> Result<()> {
        // The previous era's anchors must stay until the next era has begun.
        let most = u64::from(self.media.anchors() / 2);
        let divided = self.with_anchors(|anchors| anchors.divide(extents, zones, most));
        for (extents, zones) in divided.into_iter().flatten() {
            let next = self.with_anchors(|anchors| {
                let head = anchors.next(clean);
                (anchors.last, Anchor { head, extents, zones }.encode())
            });
            let Some((number, content)) = next else { continue };
            let written = self.media.write_anchor(number, &content).await;
            written.inspect_err(|error| self.latch(error))?;
        }
        Ok(())
    }
}

/// `extents` and then `zones`, in as few parts as fit in one anchor each; at least one.
fn parts<'a>(
    mut extents: &'a [Extent],
    mut zones: &'a [NotedZone],
) -> Vec<(&'a [Extent], &'a [NotedZone])> {
    let mut parts = Vec::new();
    loop {
        let room = ANCHOR_BYTES_MAX - HEAD_BYTES;
        let (first, rest) = extents.split_at(extents.len().min(room / EXTENT_BYTES));
        let room = room - first.len() * EXTENT_BYTES;
        let (noted, others) = zones.split_at(zones.len().min(room / ZONE_BYTES));
        parts.push((first, noted));
        if rest.is_empty() && others.is_empty() {
            return parts;
        }
        (extents, zones) = (rest, others);
    }
}

impl NotedZone {
    fn unopened(zone: ZoneNo) -> Self {
        NotedZone { zone, epoch: 0, stream: 0, covered_slots: 0 }
    }
}

/// The latest entry of each zone.
fn latest(zones: impl Iterator<Item = NotedZone>) -> Vec<NotedZone> {
    let zones: BTreeMap<ZoneNo, NotedZone> = zones.map(|noted| (noted.zone, noted)).collect();
    zones.into_values().collect()
}

/// The `places`, with neighbours in one extent.
fn extents(places: &[SlotNo]) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for slot in places {
        match extents.last_mut() {
            Some(last) if last.first.0 + last.pages == slot.0 => last.pages += 1,
            _ => extents.push(Extent { first: *slot, pages: 1 }),
        }
    }
    extents
}

impl Parts {
    /// The zones that the first anchors of an era list, for a checkpoint in `places`: those opened
    /// since it was begun, its own, and those that may be opened.
    fn noted_zones(&self, places: &[SlotNo]) -> Vec<NotedZone> {
        let geometry = *self.space.geometry();
        let mut own: Vec<ZoneNo> = places.iter().map(|slot| geometry.zone_of(*slot)).collect();
        own.dedup();
        own.sort_unstable();
        let anchors = self.checkpoints.anchors.as_ref();
        let noted = |(number, zone): (ZoneNo, &Zone)| {
            let (epoch, stream) = (zone.epoch, zone.stream as u8);
            let own = own.binary_search(&number).is_ok();
            match zone.state {
                ZoneState::Open | ZoneState::Full if own => {
                    // All of the checkpoint is durable, and nothing follows it.
                    Some(NotedZone { zone: number, epoch, stream, covered_slots: zone.used_slots })
                }
                ZoneState::Open | ZoneState::Full if epoch > self.checkpoints.begun_at_epoch => {
                    Some(NotedZone { zone: number, epoch, stream, covered_slots: 0 })
                }
                ZoneState::Free if anchors.is_some_and(|it| it.declared[number.index()]) => {
                    Some(NotedZone::unopened(number))
                }
                _ => None,
            }
        };
        self.space.iter().filter_map(noted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_anchor_says_fits_and_no_room_is_left_unused() {
        let room = ANCHOR_BYTES_MAX - HEAD_BYTES;
        for (extents, zones) in [(0, 0), (3, 5), (0, 254), (1, 252), (506, 1), (1100, 700)] {
            let extents = vec![Extent { first: SlotNo(1), pages: 2 }; extents];
            let zones: Vec<NotedZone> = (0..zones).map(ZoneNo).map(NotedZone::unopened).collect();
            let parts = parts(&extents, &zones);
            let bytes = extents.len() * EXTENT_BYTES + zones.len() * ZONE_BYTES;
            assert_eq!(parts.len(), bytes.div_ceil(room).max(1));
            for part in &parts {
                assert!(part.0.len() * EXTENT_BYTES + part.1.len() * ZONE_BYTES <= room);
            }
            let said: Vec<Extent> = parts.iter().flat_map(|part| part.0).copied().collect();
            assert_eq!(said, extents);
            let said: Vec<NotedZone> = parts.iter().flat_map(|part| part.1).copied().collect();
            assert_eq!(said, zones);
        }
    }

    #[test]
    fn neighbours_are_one_extent() {
        let places: Vec<SlotNo> = [3, 4, 5, 7, 20, 21].map(SlotNo).to_vec();
        let found: Vec<(u32, u32)> =
            extents(&places).iter().map(|extent| (extent.first.0, extent.pages)).collect();
        assert_eq!(found, [(3, 3), (7, 1), (20, 2)]);
    }
}
