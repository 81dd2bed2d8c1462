//! Walks every structure and says what is wrong, where.
use tantalum_base::{PageNo, Payload, Result, SlotNo};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Finding;

use crate::ftl::Ftl;
use crate::map::{Entry, Mapping, Place};
use crate::read::wrong_content;
use crate::zones::ZoneState;

/// Pages read at a time.
const GROUP: usize = 64;

impl<M: ZoneMedia> Ftl<M> {
    /// Checks the mapping against the zones, and reads every mapped page. Calls `progress` with (pages
    /// done, pages in all). Cleaning may go on meanwhile; changes by hosts must not be in flight.
    /// Costs what was ever written, not what the device could hold.
    pub async fn check(&self, mut progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        let mut findings = self.check_structures();
        let pages = self.options.pages;
        let mut group: Vec<(PageNo, SlotNo, Entry)> = Vec::with_capacity(GROUP);
        let mut next = 0;
        loop {
            let known = self.state.borrow().map.next_known(next).map(PageNo);
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

    /// Adds `page` to the `group` to be read, or what is wrong with it to the `findings`.
    fn look_up(
        &self,
        page: PageNo,
        group: &mut Vec<(PageNo, SlotNo, Entry)>,
        findings: &mut Vec<Finding>,
    ) {
        let map = &self.state.borrow().map;
        if map.lacks_origin(page) {
            // Named among the structures.
            return;
        }
        let entry = map.get(page);
        match entry.place {
            Place::At(slot) => group.push((page, slot, entry)),
            Place::Lost => findings.push(Finding {
                place: format!("page {page}"),
                problem: "its content was lost by the medium".into(),
            }),
            Place::Unmapped => {}
        }
    }

    /// Reads what was looked up in the step in which this is first polled.
    async fn check_contents(&self, group: &[(PageNo, SlotNo, Entry)], findings: &mut Vec<Finding>) {
        let slots: Vec<SlotNo> = group.iter().map(|(_, slot, _)| *slot).collect();
        // It stays where it is, though cleaning may have moved the pages elsewhere since.
        let _reading = self.readers.enter(&slots);
        let mut contents = vec![M::Page::zero(); slots.len()];
        let mut spares = vec![None; slots.len()];
        let all = match slots.is_empty() {
            true => Ok(()),
            false => self.media.read_with_spares(&slots, &mut contents, &mut spares).await,
        };
        let read = group.iter().zip(contents).zip(spares);
        for (((page, slot, entry), mut content), mut spare) in read {
            let mut read = all.clone();
            if read.is_err() {
                let one = (std::slice::from_mut(&mut content), std::slice::from_mut(&mut spare));
                read = self.media.read_with_spares(&[*slot], one.0, one.1).await;
            }
            let problem = match read {
                Err(error) => error.to_string(),
                Ok(()) if entry.holds(*page, &content, spare.as_ref()) => continue,
                Ok(()) => wrong_content(*page, *slot, entry, &content, spare.as_ref()).to_string(),
            };
            findings.push(Finding { place: format!("page {page}"), problem });
        }
    }

    /// Checks that mapping, reverse mapping and live counts agree.
    pub(crate) fn check_structures(&self) -> Vec<Finding> {
        let state = self.state.borrow();
        let mut findings = check_origins(&state.map);
        let mut live = vec![0u32; self.geometry.zones as usize];
        let mut sharers = vec![0u64; self.geometry.zones as usize];
        for page in state.map.known_pages() {
            if state.map.lacks_origin(page) {
                continue;
            }
            let Place::At(slot) = state.map.get(page).place else { continue };
            if let Some(other) = state.map.contradicts(page, slot) {
                let problem = format!("slot {slot} holds it, and another content of page {other}");
                findings.push(Finding { place: format!("page {page}"), problem });
            }
            if !state.map.pages_of(slot).any(|other| other == page) {
                let problem = format!("slot {slot} is held by {:?}", state.map.occupant(slot));
                findings.push(Finding { place: format!("page {page}"), problem });
            }
            let zone = self.geometry.zone_of(slot).index();
            if state.map.pages_of(slot).next() == Some(page) {
                live[zone] += 1;
            } else {
                sharers[zone] += 1;
            }
        }
        let (noted, found) = (state.map.sharers().entries(), sharers.iter().sum::<u64>());
        if noted != found {
            let problem = format!("{noted} entries, {found} found");
            findings.push(Finding { place: "table of sharers".into(), problem });
        }
        let own = state
            .checkpoint_places
            .iter()
            .chain(&state.pinned)
            .copied()
            .chain(state.records.slots());
        for slot in own.chain(state.deltas.places()) {
            live[self.geometry.zone_of(slot).index()] += 1;
        }
        let checkpoint_in_progress =
            self.checkpoint_turn.free() == 0 || state.deltas.is_backing_up();
        for (number, zone) in state.zones.iter() {
            let counted = live[number.index()];
            if counted != zone.live_slots && !checkpoint_in_progress {
                findings.push(Finding {
                    place: format!("zone {number}"),
                    problem: format!("{} live slots noted, {counted} found", zone.live_slots),
                });
            }
            if sharers[number.index()] != u64::from(zone.sharers) {
                let (noted, found) = (zone.sharers, sharers[number.index()]);
                let problem = format!("{noted} sharers noted, {found} found");
                findings.push(Finding { place: format!("zone {number}"), problem });
            }
            if counted > 0 && !matches!(zone.state, ZoneState::Open | ZoneState::Full) {
                findings.push(Finding {
                    place: format!("zone {number}"),
                    problem: format!("holds {counted} live slots and is {:?}", zone.state),
                });
            }
        }
        findings
    }

    /// Panics where a structure contradicts itself. For tests.
    pub fn validate(&self) {
        let findings = self.check_structures();
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

/// Checks the table of what the slots of pages name that took their content: it has these pages, and
/// no other ones.
fn check_origins(map: &Mapping) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in map.known_pages().filter(|page| map.lacks_origin(*page)) {
        let problem = "it took its content, and whose that was is not known".to_owned();
        findings.push(Finding { place: format!("page {page}"), problem });
    }
    let (entries, pages) = map.origins();
    if let Some(entries) = entries.filter(|entries| *entries != pages) {
        let problem = format!("{entries} entries for {pages} pages that took their content");
        findings.push(Finding { place: "table of taken contents".into(), problem });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::origin;
    use tantalum_base::Version;

    /// Page 0 in slot 5 as it was written, and page 3 there, which took its content.
    fn shared() -> Mapping {
        let mut map = Mapping::new(1000, 100, false);
        let place = Place::At(SlotNo(5));
        let own = Entry { version: Version(9), place, taken: false, checksum: 0 };
        map.set(PageNo(0), own);
        let checksum = origin(PageNo(0), Version(9));
        map.set(PageNo(3), Entry { version: Version(10), taken: true, checksum, ..own });
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
    fn what_the_table_of_taken_contents_lacks_or_has_too_much_is_named() {
        let mut map = shared();
        assert_eq!((check_origins(&map), contradictions(&map)), (vec![], vec![]));
        map.forget_origin(PageNo(3));
        let places: Vec<String> = check_origins(&map).into_iter().map(|it| it.place).collect();
        assert_eq!(places, ["page 3", "table of taken contents"]);

        let mut map = shared();
        let other = Entry { checksum: origin(PageNo(0), Version(8)), ..map.get(PageNo(3)) };
        map.set(PageNo(3), other);
        assert_eq!((check_origins(&map), contradictions(&map)), (vec![], vec![PageNo(3)]));
        // Written again by itself, it takes nobody's content.
        let own = Entry { taken: false, place: Place::At(SlotNo(6)), ..other };
        map.set(PageNo(3), own);
        assert_eq!((check_origins(&map), contradictions(&map)), (vec![], vec![]));
    }
}
