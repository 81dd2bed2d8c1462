//! Reads the zones in use in order, and checks the pages in force in them and everything else.
use std::collections::BTreeSet;
use tantalum_base::{PageNo, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{InspectedZone, ScannedAppend, SlotKind, Spare, ZoneMedia};
use tantalum_runtime::{DevicePart, Finding};

use crate::check::GROUP;
use crate::check::anchors::CheckedAnchors;
use crate::check::judgement::{InForce, Suspect, ZoneTraces, judge};
use crate::ftl::Ftl;
use crate::map::{MapEntry, Place};
use crate::space::{Stream, Zone};

/// Pages to be read again, one by one.
type Group = Vec<(PageNo, SlotNo, MapEntry)>;

impl<M: ZoneMedia> Ftl<M> {
    /// Reads every zone that holds anything in force, in order, and adds problems to the `findings`; returns false if
    /// the medium does not support that. Nothing may change meanwhile.
    pub(super) async fn check_zones(
        &self,
        findings: &mut Vec<Finding>,
        progress: &mut impl FnMut(u64, u64),
    ) -> Result<bool> {
        let anchors = self.check_anchors().await?;
        let zones = self.zones_to_read(&anchors);
        self.find_lost(findings);
        let slots = u64::from(self.geometry.slots_per_zone);
        let mut traces = Vec::with_capacity(zones.len());
        for (done, (number, zone)) in (1..).zip(&zones) {
            let Some(inspected) = self.media.inspect(*number, zone.epoch).await? else {
                return Ok(false);
            };
            for group in self.not_as_mapped(*number, &inspected).chunks(GROUP) {
                self.check_contents(group, findings).await;
            }
            traces.push(self.traces(*number, zone, &inspected));
            progress(done * slots, zones.len() as u64 * slots);
        }
        findings.extend(judge(traces, &self.in_force(anchors.checkpoint)));
        findings.extend(anchors.damaged);
        Ok(true)
    }

    /// The zones that hold anything in force, and those of the checkpoint that the anchors name.
    fn zones_to_read(&self, anchors: &CheckedAnchors) -> Vec<(ZoneNo, Zone)> {
        let parts = self.parts.borrow();
        let named = anchors.extents.iter().map(|extent| self.geometry.zone_of(extent.first));
        let named: BTreeSet<ZoneNo> = named.collect();
        let zones = parts.space.iter();
        let used = zones.filter(|(number, zone)| zone.live_slots > 0 || named.contains(number));
        used.map(|(number, zone)| (number, *zone)).collect()
    }

    /// Adds the pages that the medium lost.
    fn find_lost(&self, findings: &mut Vec<Finding>) {
        let mut in_slots = Group::new();
        for page in self.parts.borrow().map.known_pages() {
            self.look_up(page, &mut in_slots, findings);
            in_slots.clear();
        }
    }

    /// The pages in slots of `zone` whose contents do not match the map.
    fn not_as_mapped(&self, zone: ZoneNo, inspected: &InspectedZone) -> Group {
        let map = &self.parts.borrow().map;
        let mut group = Group::new();
        for (offset, checksum) in (0..).zip(&inspected.checksums) {
            let slot = self.geometry.slot(zone, offset);
            for page in map.pages_of(slot) {
                let entry = map.get(page);
                if *checksum != Some(entry.checksum) {
                    group.push((page, slot, entry));
                }
            }
        }
        group
    }

    /// The checkpoint in force; the anchors name checkpoint `named`.
    fn in_force(&self, named: Option<u64>) -> InForce {
        let parts = self.parts.borrow();
        let checkpoints = &parts.checkpoints;
        let zone = checkpoints.slots.last().map(|slot| self.geometry.zone_of(*slot));
        InForce {
            number: checkpoints.in_force,
            named,
            epoch: zone.map_or(0, |zone| parts.space.get(zone).epoch),
            durable: checkpoints.durable,
            clean: checkpoints.found_clean,
        }
    }

    /// Summarises the `inspected` content of a zone, and finds its damaged parts that are not in force.
    fn traces(&self, number: ZoneNo, zone: &Zone, inspected: &InspectedZone) -> ZoneTraces {
        let appends = &inspected.appends;
        let stated = appends.iter().map(|append| append.header.durable).max();
        let versions = appends.iter().filter_map(host_versions);
        let versions = versions.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let mut suspects = self.damaged_pages(number, inspected);
        suspects.extend(self.damaged_headers(number, zone.covered_slots, inspected));
        suspects.extend(self.unreadable_slots(number, inspected));
        ZoneTraces {
            epoch: zone.epoch,
            covered_slots: zone.covered_slots,
            versions,
            stated: stated.unwrap_or_default(),
            has_list: appends.iter().any(is_list),
            suspects,
        }
    }

    /// Pages that do not match the headers of their appends, and that nothing refers to.
    fn damaged_pages(&self, zone: ZoneNo, inspected: &InspectedZone) -> Vec<Suspect> {
        let mut suspects = Vec::new();
        for (at, append) in inspected.appends.iter().enumerate() {
            let listed_later = inspected.appends[at + 1..].iter().any(is_list);
            for (index, spare) in &append.damaged {
                let offset = append.first_offset + index;
                let slot = self.geometry.slot(zone, offset);
                let is_unreadable = inspected.checksums[offset as usize].is_none();
                if is_unreadable || self.is_in_force(slot, spare) {
                    continue;
                }
                let problem = format!("{} is damaged", self.name(spare));
                suspects.push(Suspect {
                    offset,
                    durable_with: host_versions(append).map(|(_, last)| last),
                    checkpoint: checkpoint_of(append),
                    was_durable: listed_later,
                    by_cleaning: append.header.stream == Stream::Cleaning as u8,
                    finding: Finding::not_in_force(DevicePart::Zone, place(zone, offset), problem),
                });
            }
        }
        suspects
    }

    /// Whether a slot is in force, or was in force when it was damaged. Such a slot is reported as its page, and not
    /// here.
    fn is_in_force(&self, slot: SlotNo, spare: &Spare) -> bool {
        let parts = self.parts.borrow();
        if parts.map.pages_of(slot).next().is_some() {
            return true;
        }
        let is_of_page = spare.kind.is_page() && spare.page.0 < parts.map.pages();
        let lost = || parts.map.get(spare.page);
        is_of_page && lost().place == Place::Lost && lost().version == spare.version
    }

    /// Describes the former content of the slot of `spare`.
    fn name(&self, spare: &Spare) -> String {
        let Spare { page, version, kind, .. } = *spare;
        match kind {
            SlotKind::Record if version == Version::NEVER => {
                "a list that cleaning wrote, which recovery does not need".into()
            }
            SlotKind::Record => format!("a record of change {version}, which a checkpoint covers"),
            SlotKind::Checkpoint => {
                format!("page {page} of checkpoint {version}, which is not the one in use,")
            }
            SlotKind::Delta | SlotKind::Dump => format!("page {page} of an older dump"),
            _ => format!(
                "the content of page {page} as of change {version}, since moved or replaced,"
            ),
        }
    }

    /// Damaged or missing headers: gaps between whole appends, and after the last one.
    fn damaged_headers(
        &self,
        zone: ZoneNo,
        covered_slots: u32,
        inspected: &InspectedZone,
    ) -> Vec<Suspect> {
        let slots = self.geometry.slots_per_zone;
        let mut suspects = Vec::new();
        let mut next = 0;
        for (at, append) in inspected.appends.iter().enumerate() {
            let header = append.first_offset - 1;
            if header > next {
                let mut suspect = self.lost_header(zone, next, header, inspected);
                let before = host_versions(append).map(|(first, _)| Version(first.0 - 1));
                suspect.durable_with = before;
                suspect.checkpoint = checkpoint_of(append);
                suspect.was_durable |= inspected.appends[at..].iter().any(is_list);
                suspects.push(suspect);
            }
            next = append.end_offset;
        }
        let covers = covered_slots < slots && covered_slots > next;
        if next < slots {
            let suspect = self.lost_header(zone, next, slots, inspected);
            if covers || suspect.was_durable || inspected.broken_headers.contains(&next) {
                suspects.push(suspect);
            }
        }
        suspects.retain(|suspect| inspected.checksums[suspect.offset as usize].is_some());
        for offset in &inspected.odd_headers {
            let problem = "unused bytes of an append's header are not zero";
            suspects.push(Suspect {
                offset: *offset,
                durable_with: None,
                checkpoint: None,
                was_durable: true,
                by_cleaning: false,
                finding: Finding::not_in_force(DevicePart::Zone, place(zone, *offset), problem),
            });
        }
        suspects
    }

    /// The damaged or missing header at `offset` of an append that ends at `end` or before. It was durable if a page
    /// after it is in force: without the header, only a checkpoint can have put that page in force, and a checkpoint
    /// waits for whole appends.
    fn lost_header(
        &self,
        zone: ZoneNo,
        offset: u32,
        end: u32,
        inspected: &InspectedZone,
    ) -> Suspect {
        let map = &self.parts.borrow().map;
        let is_in_force = |at: u32| map.pages_of(self.geometry.slot(zone, at)).next().is_some();
        let was_durable = (offset..end).any(is_in_force);
        let broken = inspected.broken_headers.contains(&offset);
        let what = if broken {
            "the header of an append is damaged"
        } else {
            "the header of an append is missing"
        };
        let problem = format!("{what}: only the slots in force behind it can be checked");
        let finding = Finding::not_in_force(DevicePart::Zone, place(zone, offset), problem);
        // With `copies_with_writes`, hosts may write in the zone behind copies.
        let by_cleaning = self.parts.borrow().space.get(zone).stream == Stream::Cleaning
            && !self.options.copies_with_writes;
        Suspect { offset, durable_with: None, checkpoint: None, was_durable, by_cleaning, finding }
    }

    /// Slots that cannot be read and that nothing refers to. The medium fails there, regardless of their content.
    fn unreadable_slots(&self, zone: ZoneNo, inspected: &InspectedZone) -> Vec<Suspect> {
        let map = &self.parts.borrow().map;
        let mut suspects = Vec::new();
        for (offset, error) in &inspected.unreadable {
            if map.pages_of(self.geometry.slot(zone, *offset)).next().is_some() {
                continue;
            }
            suspects.push(Suspect {
                offset: *offset,
                durable_with: None,
                checkpoint: None,
                was_durable: true,
                by_cleaning: false,
                finding: Finding::unread(DevicePart::Zone, place(zone, *offset), error),
            });
        }
        suspects
    }
}

fn place(zone: ZoneNo, offset: u32) -> String {
    format!("zone {zone}, slot {offset}")
}

/// The first and the last version in an append of the host stream; `None` for other appends.
fn host_versions(append: &ScannedAppend) -> Option<(Version, Version)> {
    if append.header.stream != Stream::Host as u8 {
        return None;
    }
    let damaged = append.damaged.iter().map(|(_, spare)| spare);
    let versions = || append.spares.iter().flatten().chain(damaged.clone()).map(|it| it.version);
    versions().min().zip(versions().max()).filter(|(first, _)| *first > Version::NEVER)
}

/// The checkpoint whose pages an append holds.
fn checkpoint_of(append: &ScannedAppend) -> Option<u64> {
    let damaged = append.damaged.iter().map(|(_, spare)| spare);
    let mut spares = append.spares.iter().flatten().chain(damaged);
    spares.find(|spare| spare.kind == SlotKind::Checkpoint).map(|spare| spare.version.0)
}

/// Whether this append is a list that cleaning wrote after all its earlier copies were durable.
fn is_list(append: &ScannedAppend) -> bool {
    let damaged = append.damaged.iter().map(|(_, spare)| spare);
    let mut spares = append.spares.iter().flatten().chain(damaged);
    append.header.stream == Stream::Cleaning as u8
        && spares.all(|spare| spare.kind == SlotKind::Record && spare.version == Version::NEVER)
}
