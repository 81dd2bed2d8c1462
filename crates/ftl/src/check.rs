//! Walks every structure and says what is wrong, where.
use tantalum_base::{PageNo, Payload, Result, SlotNo};
use tantalum_media::ZoneMedia;

use crate::ftl::Ftl;
use crate::map::Place;
use crate::read::wrong_content;
use crate::zones::ZoneState;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where: a page, a slot, a zone.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Pages read at a time.
const GROUP: usize = 64;

impl<M: ZoneMedia> Ftl<M> {
    /// Checks the mapping against the zones, and reads every mapped page. To be called when
    /// nothing else is in flight. Calls `progress` with (pages done, pages in all).
    pub async fn check(&self, mut progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        let mut findings = self.check_structures();
        let pages = self.options.pages;
        let mut group: Vec<(PageNo, SlotNo)> = Vec::with_capacity(GROUP);
        for page in (0..pages).map(PageNo) {
            match self.state.borrow().map.get(page).place {
                Place::At(slot) => group.push((page, slot)),
                Place::Lost => findings.push(Finding {
                    place: format!("page {page}"),
                    problem: "its content was lost by the medium".into(),
                }),
                Place::Unmapped => {}
            }
            if group.len() == GROUP {
                self.check_contents(&group, &mut findings).await;
                group.clear();
                progress(page.0 + 1, pages);
            }
        }
        self.check_contents(&group, &mut findings).await;
        progress(pages, pages);
        Ok(findings)
    }

    async fn check_contents(&self, group: &[(PageNo, SlotNo)], findings: &mut Vec<Finding>) {
        let slots: Vec<SlotNo> = group.iter().map(|(_, slot)| *slot).collect();
        let mut contents = vec![M::Page::zero(); slots.len()];
        let mut spares = vec![None; slots.len()];
        let all = match slots.is_empty() {
            true => Ok(()),
            false => self.media.read_with_spares(&slots, &mut contents, &mut spares).await,
        };
        for (((page, slot), mut content), mut spare) in group.iter().zip(contents).zip(spares) {
            let mut read = all.clone();
            if read.is_err() {
                let one = (std::slice::from_mut(&mut content), std::slice::from_mut(&mut spare));
                read = self.media.read_with_spares(&[*slot], one.0, one.1).await;
            }
            let entry = self.state.borrow().map.get(*page);
            let problem = match read {
                Err(error) => error.to_string(),
                Ok(()) if entry.holds(*page, &content, spare.as_ref()) => continue,
                Ok(()) => wrong_content(*page, *slot, &entry, &content, spare.as_ref()).to_string(),
            };
            findings.push(Finding { place: format!("page {page}"), problem });
        }
    }

    /// Checks that mapping, reverse mapping and live counts agree.
    pub(crate) fn check_structures(&self) -> Vec<Finding> {
        let state = self.state.borrow();
        let mut findings = Vec::new();
        let mut live = vec![0u32; self.geometry.zones as usize];
        let mut sharers = vec![0u64; self.geometry.zones as usize];
        for page in (0..self.options.pages).map(PageNo) {
            let Place::At(slot) = state.map.get(page).place else { continue };
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
