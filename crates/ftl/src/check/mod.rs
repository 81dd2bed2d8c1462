//! Checks every structure and page, and reports the problems.
//!
//! ```text
//! mod        checks the tables of the mapping against each other, and the pages in force, in the order of pages
//! zones      checks the pages in force, and all else in the zones in use, in the order of the medium
//! judgement  decides which damaged parts must have been whole once: a power cut may have left the others
//! anchors    checks both copies of the anchors
//! ```
mod anchors;
mod judgement;
mod zones;

use tantalum_base::{Error, ErrorKind, PageNo, Payload, Result, SlotNo};
use tantalum_media::ZoneMedia;
use tantalum_runtime::{DevicePart, Finding};

use crate::ftl::Ftl;
use crate::map::{MapEntry, Mapping, Place};
use crate::read::{is_damage, wrong_content};

/// Pages read at a time.
const GROUP: usize = 64;

impl<M: ZoneMedia> Ftl<M> {
    /// Checks the mapping against the zones, and reads every mapped page. Calls `progress` with (pages done, pages in
    /// all). Cleaning may run meanwhile; changes by hosts must not be in flight. The cost depends on how much was
    /// written, not on the size of the device.
    ///
    /// If opened read-only on a medium that [can be inspected](ZoneMedia::inspect), reads all zones in use in order,
    /// and also finds damage to content that is not in force.
    pub async fn check(&self, mut progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        let mut findings = self.check_structures();
        if self.options.read_only && self.check_zones(&mut findings, &mut progress).await? {
            return Ok(findings);
        }
        let pages = self.options.pages;
        let mut group: Vec<(PageNo, SlotNo, MapEntry)> = Vec::with_capacity(GROUP);
        let mut next = 0;
        loop {
            let known = self.parts.borrow().map.next_known(next).map(PageNo);
            let Some(page) = known else { break };
            next = page.0 + 1;
            self.look_up(page, &mut group, &mut findings);
            if group.len() == GROUP {
                self.check_contents(&group, &mut findings).await;
                group.clear();
                progress(next, pages);
            }
        }
        self.check_contents(&group, &mut findings).await;
        progress(pages, pages);
        Ok(findings)
    }

    /// Adds `page` to the `group` to be read, or a problem with it to the `findings`.
    fn look_up(
        &self,
        page: PageNo,
        group: &mut Vec<(PageNo, SlotNo, MapEntry)>,
        findings: &mut Vec<Finding>,
    ) {
        let map = &self.parts.borrow().map;
        if map.lacks_origin(page) {
            // `check_structures` reports it.
            return;
        }
        let entry = map.get(page);
        match entry.place {
            Place::At(slot) => group.push((page, slot, entry)),
            Place::Lost => {
                let problem = "its content was lost by the medium";
                findings.push(Finding::of_page(page, problem));
            }
            Place::Unmapped | Place::Home => {}
        }
    }

    /// Reads the group, which the caller looked up in the step of this function's first poll.
    async fn check_contents(
        &self,
        group: &[(PageNo, SlotNo, MapEntry)],
        findings: &mut Vec<Finding>,
    ) {
        for (page, _, error) in self.failing(group).await {
            findings.push(match is_damage(error.kind()) {
                true => Finding::of_page(page, error.to_string()),
                false => {
                    let problem = format!("it cannot be read now, and keeps its place: {error}");
                    Finding::of_page(page, problem).unanswered()
                }
            });
        }
    }

    /// Durably marks every page lost whose content cannot be read as it was written; returns how many pages it gave up.
    /// A clean page of a cache is at home from now on.
    ///
    /// # Errors
    /// Those of a checkpoint.
    pub(crate) async fn give_up_unreadable(&self) -> Result<u64> {
        let mut given_up = 0;
        let mut next = 0;
        loop {
            let group = self.next_mapped(&mut next);
            if group.is_empty() {
                break;
            }
            for (page, entry, error) in self.failing(&group).await {
                if error.kind() == ErrorKind::PowerCut {
                    return Err(error);
                }
                given_up += u64::from(self.parts.borrow_mut().lose(page, entry));
            }
        }
        if given_up > 0 {
            self.checkpoint().await?;
        }
        Ok(given_up)
    }

    /// Collects pages with content in a slot, from page number `next` on, and moves `next` behind them.
    fn next_mapped(&self, next: &mut u64) -> Vec<(PageNo, SlotNo, MapEntry)> {
        let map = &self.parts.borrow().map;
        let mut group = Vec::with_capacity(GROUP);
        while group.len() < GROUP
            && let Some(page) = map.next_known(*next)
        {
            *next = page + 1;
            let page = PageNo(page);
            if !map.lacks_origin(page)
                && let Place::At(slot) = map.get(page).place
            {
                group.push((page, slot, map.get(page)));
            }
        }
        group
    }

    /// The pages of the group whose content cannot be read as it was written, each with its error. The caller looked
    /// the group up in the step of this function's first poll.
    async fn failing(
        &self,
        group: &[(PageNo, SlotNo, MapEntry)],
    ) -> Vec<(PageNo, MapEntry, Error)> {
        let slots: Vec<SlotNo> = group.iter().map(|(_, slot, _)| *slot).collect();
        // Pinned slots keep their content, even if cleaning has moved the pages since.
        let _pinned = self.pins.pin(&slots);
        let mut contents = vec![M::Page::zero(); slots.len()];
        let mut spares = vec![None; slots.len()];
        let all = match slots.is_empty() {
            true => Ok(()),
            false => self.media.read_with_spares(&slots, &mut contents, &mut spares).await,
        };
        let mut failing = Vec::new();
        let read = group.iter().zip(contents).zip(spares);
        for (((page, slot, entry), mut content), mut spare) in read {
            let mut read = all.clone();
            if read.is_err() {
                let one = (std::slice::from_mut(&mut content), std::slice::from_mut(&mut spare));
                read = self.media.read_with_spares(&[*slot], one.0, one.1).await;
            }
            let error = match read {
                Err(error) => error,
                Ok(()) if entry.holds(*page, &content, spare.as_ref()) => continue,
                Ok(()) => wrong_content(*page, *slot, entry, &content, spare.as_ref()),
            };
            failing.push((*page, *entry, error));
        }
        failing
    }

    /// Checks that mapping, reverse mapping and live counts agree.
    pub(crate) fn check_structures(&self) -> Vec<Finding> {
        let parts = self.parts.borrow();
        let mut findings = check_origins(&parts.map);
        let mut live = vec![0u32; self.geometry.zones as usize];
        let mut references = vec![0u64; self.geometry.zones as usize];
        for page in parts.map.known_pages() {
            if parts.map.lacks_origin(page) {
                continue;
            }
            let Place::At(slot) = parts.map.get(page).place else { continue };
            if let Some(other) = parts.map.contradicts(page, slot) {
                let problem = format!(
                    "slot {slot} is mapped for this page, and for page {other} with another content"
                );
                findings.push(Finding::of_page(page, problem));
            }
            if !parts.map.pages_of(slot).any(|other| other == page) {
                let problem = format!("slot {slot} is held by {:?}", parts.map.occupant(slot));
                findings.push(Finding::of_page(page, problem));
            }
            let zone = self.geometry.zone_of(slot).index();
            if parts.map.pages_of(slot).next() == Some(page) {
                live[zone] += 1;
            } else {
                references[zone] += 1;
            }
        }
        let (noted, found) = (parts.map.references().entries(), references.iter().sum::<u64>());
        if noted != found {
            let problem = format!("{noted} entries, {found} found");
            findings.push(Finding::new(DevicePart::Zone, "table of references", problem));
        }
        let own = parts.checkpoints.slots.iter().copied().chain(parts.log.records.slots());
        let dump = parts.dump.as_ref();
        for slot in own.chain(dump.into_iter().flat_map(|dump| dump.live_slots())) {
            live[self.geometry.zone_of(slot).index()] += 1;
        }
        let checkpoint_in_progress =
            self.checkpointer.is_at_work() || dump.is_some_and(|dump| dump.log.is_backing_up());
        for (number, zone) in parts.space.iter() {
            let counted = live[number.index()];
            if counted != zone.live_slots && !checkpoint_in_progress {
                let problem = format!("{} live slots noted, {counted} found", zone.live_slots);
                findings.push(Finding::new(DevicePart::Zone, format!("zone {number}"), problem));
            }
            if references[number.index()] != u64::from(zone.extra_references) {
                let (noted, found) = (zone.extra_references, references[number.index()]);
                let problem = format!("{noted} references noted, {found} found");
                findings.push(Finding::new(DevicePart::Zone, format!("zone {number}"), problem));
            }
            if counted > 0 && !zone.is_in_use() {
                let problem = format!("holds {counted} live slots and is {:?}", zone.state);
                findings.push(Finding::new(DevicePart::Zone, format!("zone {number}"), problem));
            }
        }
        findings
    }

    /// Panics if a structure is inconsistent. For tests.
    pub fn validate(&self) {
        self.parts.borrow().validate();
        let findings = self.check_structures();
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

/// Checks that the table of origins has all remapped pages, and no others.
fn check_origins(map: &Mapping) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in map.known_pages().filter(|page| map.lacks_origin(*page)) {
        let problem = "it is remapped, and the page that its slot names is unknown".to_owned();
        findings.push(Finding::of_page(page, problem));
    }
    let (entries, pages) = map.origins();
    if let Some(entries) = entries.filter(|entries| *entries != pages) {
        let problem = format!("{entries} entries for {pages} remapped pages");
        findings.push(Finding::new(DevicePart::Zone, "table of remapped pages", problem));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::remapped::origin;
    use tantalum_base::Version;

    /// Page 0 in slot 5, where it was written, and page 3, remapped to it.
    fn shared() -> Mapping {
        let mut map = Mapping::new(1000, 100, false);
        let place = Place::At(SlotNo(5));
        let version = Version(9);
        let own = MapEntry { version, place, ..MapEntry::default() };
        map.set(PageNo(0), own);
        let checksum = origin(PageNo(0), Version(9));
        map.set(PageNo(3), MapEntry { version: Version(10), remapped: true, checksum, ..own });
        map
    }

    fn contradictions(map: &Mapping) -> Vec<PageNo> {
        let pages = (0..map.pages()).map(PageNo).filter(|page| !map.lacks_origin(*page));
        let at = |page: &PageNo| match map.get(*page).place {
            Place::At(slot) => map.contradicts(*page, slot).is_some(),
            _ => false,
        };
        pages.filter(at).collect()
    }

    #[test]
    fn what_the_table_of_remapped_pages_lacks_or_has_too_much_is_named() {
        let mut map = shared();
        assert_eq!((check_origins(&map), contradictions(&map)), (vec![], vec![]));
        map.forget_origin(PageNo(3));
        let places: Vec<String> = check_origins(&map).into_iter().map(|it| it.place).collect();
        assert_eq!(places, ["page 3", "table of remapped pages"]);

        let mut map = shared();
        let other = MapEntry { checksum: origin(PageNo(0), Version(8)), ..map.get(PageNo(3)) };
        map.set(PageNo(3), other);
        assert_eq!((check_origins(&map), contradictions(&map)), (vec![], vec![PageNo(3)]));
        // A page that is written again is no longer remapped.
        let own = MapEntry { remapped: false, place: Place::At(SlotNo(6)), ..other };
        map.set(PageNo(3), own);
        assert_eq!((check_origins(&map), contradictions(&map)), (vec![], vec![]));
    }
}
