//! Moving what is live: cleaning's copies, group by group, each group one append.
//!
//! A copy keeps page and version of its original. Where several pages share a slot it is one of
//! theirs, and a page of sharers in the same append names the others, each with its version. So
//! the way from every page to its newest place is on media as long as the copy is, and a
//! recovery treats all sharers alike, whichever of them changed since.
use tantalum_base::{ErrorKind, PageNo, Payload, Result, SlotNo, Version};
use tantalum_media::{Body, SlotKind, Spare, ZoneGeometry, ZoneMedia};

use crate::fault_points::Fault;
use crate::ftl::{AppendBuffer, Ftl, State};
use crate::logged::counts;
use crate::map::{Entry, Occupant, Place};
use crate::read::OwnPage;
use crate::records::{self, SHARERS_MAX, Sharer};
use crate::taken::origin;
use crate::zones::{Stream, Zone};

/// Pages that emptying `zone` appends at the most: the live slots, pages of sharers for each
/// append, and one copy for a slot whose sharers did not fit behind it. Never more than there are
/// logical pages in the zone.
pub(crate) fn pages_to_move(geometry: &ZoneGeometry, zone: &Zone) -> u32 {
    if zone.sharers == 0 {
        return zone.live_slots;
    }
    let appends = zone.live_slots / geometry.append_pages_max + 3;
    let own = appends + zone.sharers / SHARERS_MAX as u32 + 1;
    zone.live_slots + own.min(zone.sharers)
}

/// Live slots that are copied in one append.
pub(crate) struct Group {
    /// One page of each slot, with what is known of it.
    pages: Vec<(SlotNo, PageNo, Entry)>,
    /// The other pages of these slots, in the same order.
    sharers: Vec<(SlotNo, PageNo, Entry)>,
    records: Vec<SlotNo>,
}

/// What became of a group.
pub(crate) struct Moved {
    /// An append was made.
    pub moved: bool,
    /// Versions that recovery finds there and that no checkpoint covers.
    pub kept: Vec<Version>,
    /// A page was marked lost.
    pub lost: bool,
}

/// An append of copies that is being put together.
struct Copies<P> {
    buffer: AppendBuffer<P>,
    // Where each copy or record comes from, in the order of the buffer.
    sources: Vec<SlotNo>,
    sharers: Vec<Sharer>,
    lost: bool,
}

impl<M: ZoneMedia> Ftl<M> {
    /// The next of the `live` slots, from `next` on, that go together into an append of at most
    /// `most` pages.
    pub(crate) fn group(&self, live: &[SlotNo], next: &mut usize, most: usize) -> Group {
        let state = self.state.borrow();
        let mut group = Group { pages: Vec::new(), sharers: Vec::new(), records: Vec::new() };
        let page = |slot: &SlotNo| match state.map.occupant(*slot) {
            Occupant::Page(page) => Some(page),
            Occupant::Shared | Occupant::Record | Occupant::Dead => None,
        };
        let candidates = &live[*next..live.len().min(*next + most)];
        state.map.fetch(candidates.iter().filter_map(page));
        for slot in candidates {
            match state.map.occupant(*slot) {
                Occupant::Dead => {}
                Occupant::Record => group.records.push(*slot),
                Occupant::Page(page) => group.pages.push((*slot, page, state.map.get(page))),
                Occupant::Shared => {
                    let before = (group.pages.len(), group.sharers.len());
                    let pages = state.map.pages_of(*slot);
                    group.sharers.extend(pages.map(|page| (*slot, page, state.map.get(page))));
                    group.pages.push(group.sharers.remove(before.1));
                    if group.append_pages() > most {
                        group.sharers.truncate(before.1);
                        if before == (0, 0) && group.records.is_empty() {
                            // No room for the others' page: one of them goes alone, and the slot
                            // stays with the rest.
                            return group;
                        }
                        group.pages.truncate(before.0);
                        return group;
                    }
                }
            }
            if group.append_pages() > most {
                // A page of sharers took the last place.
                group.pages.pop_if(|(at, ..)| at == slot);
                group.records.pop_if(|at| at == slot);
                return group;
            }
            *next += 1;
        }
        group
    }

    /// Copies one group of live slots.
    pub(crate) async fn move_group(&self, group: Group) -> Result<Moved> {
        let entries = group.pages.len() + group.sharers.len();
        let room = self.reserve_entries(entries as u32).await?;
        let mut copies = self.read_group(group).await?;
        let moved = !copies.sources.is_empty();
        let mut kept = Vec::new();
        if moved {
            // Behind the copies, so that their numbers in the append stay.
            for page in copies.sharers.chunks(SHARERS_MAX) {
                if !Fault::SharersLeftBehind.is_planted() {
                    copies.buffer.push_record(records::encode_sharers(page), Version::NEVER);
                }
            }
            let pages = copies.buffer.spares.len() as u32;
            self.admit(Stream::Cleaning, pages, || self.kept_from_cleaning()).await?;
            // What a dump's mapping refers to must be there after the power loss.
            let durable = self.options.dump.is_some();
            let first = self.append_own(Stream::Cleaning, &copies.buffer, durable).await?;
            let state = &mut *self.state.borrow_mut();
            room.spend(state);
            kept = copies.versions_since(state.logged.covered());
            let at = |index: u32| SlotNo(first.0 + index);
            for (index, source) in (0..).zip(&copies.sources) {
                state.redirect(*source, at(index), &copies.buffer.spares[index as usize]);
            }
            let zone = self.geometry.zone_of(first);
            for sharer in &copies.sharers {
                if !sharer.by_share {
                    state.logged.add(zone, sharer.version);
                }
                let source = copies.sources[sharer.index as usize];
                let copy = copies.buffer.spares[sharer.index as usize];
                state.redirect_page(source, at(sharer.index), sharer.page, sharer.version, &copy);
            }
        }
        let Copies { buffer, lost, .. } = copies;
        self.state.borrow_mut().give_buffer(buffer);
        self.wake_backup();
        Ok(Moved { moved, kept, lost })
    }

    /// Reads what is live in `group`, checked. A page that the medium cannot give back is marked
    /// lost, so that reading it stays an error.
    async fn read_group(&self, group: Group) -> Result<Copies<M::Page>> {
        let slots: Vec<SlotNo> = group.pages.iter().map(|(slot, ..)| *slot).collect();
        let mut copies = Copies {
            buffer: self.state.borrow_mut().take_buffer(),
            sources: Vec::with_capacity(slots.len()),
            sharers: Vec::with_capacity(group.sharers.len()),
            lost: false,
        };
        let mut contents = vec![M::Page::zero(); slots.len()];
        let mut spares = vec![None; slots.len()];
        let all = match slots.is_empty() {
            true => Ok(()),
            false => self.media.read_with_spares(&slots, &mut contents, &mut spares).await,
        };
        let mut sharers = group.sharers.into_iter().peekable();
        let read = contents.into_iter().zip(spares);
        for ((slot, page, entry), (mut content, mut spare)) in group.pages.into_iter().zip(read) {
            let mut read = all.clone();
            if read.is_err() {
                let one = (std::slice::from_mut(&mut content), std::slice::from_mut(&mut spare));
                read = self.media.read_with_spares(&[slot], one.0, one.1).await;
            }
            if let Err(error) = &read
                && error.kind() == ErrorKind::PowerCut
            {
                // The medium is gone, not what it holds: whoever still reads must not be told so.
                return Err(error.clone());
            }
            let intact = read.is_ok() && entry.holds(page, &content, spare.as_ref());
            if intact {
                let index = copies.sources.len() as u32;
                let checksum = spare.map_or(entry.checksum, |spare| spare.checksum);
                let version = entry.version;
                let kind = match self.state.borrow().is_of_share(version) {
                    true => SlotKind::TakenCopy,
                    false => SlotKind::Copy,
                };
                copies.buffer.spares.push(Spare { kind, page, version, checksum });
                copies.buffer.bodies.push(Body::Data(content));
                copies.sources.push(slot);
                while let Some((_, page, entry)) = sharers.next_if(|(at, ..)| *at == slot) {
                    let version = entry.version;
                    let by_share = self.state.borrow().is_of_share(version);
                    copies.sharers.push(Sharer { page, version, index, by_share });
                }
                continue;
            }
            let state = &mut *self.state.borrow_mut();
            copies.lost |= state.lose(page, entry);
            while let Some((_, page, entry)) = sharers.next_if(|(at, ..)| *at == slot) {
                copies.lost |= state.lose(page, entry);
            }
        }
        for slot in group.records {
            let Some((version, record)) = self.state.borrow().record(slot) else { continue };
            let body = self.read_own(record).await?;
            // A record that cannot be read must not be dropped: what it undid would come back.
            records::decode(&body)?;
            copies.buffer.push_record(body, version);
            copies.sources.push(slot);
        }
        Ok(copies)
    }
}

impl<P> Copies<P> {
    /// The versions later than `covered` that recovery finds here.
    fn versions_since(&self, covered: Version) -> Vec<Version> {
        let copies = self.buffer.spares.iter().filter(|spare| counts(spare));
        let sharers = self.sharers.iter().filter(|sharer| !sharer.by_share);
        let versions =
            copies.map(|spare| spare.version).chain(sharers.map(|sharer| sharer.version));
        versions.filter(|version| *version > covered).collect()
    }
}

impl Group {
    /// Pages of the append.
    fn append_pages(&self) -> usize {
        self.pages.len() + self.records.len() + self.sharers.len().div_ceil(SHARERS_MAX)
    }
}

impl<P> State<P> {
    /// `source` was copied to `slot`: what is still in force there moves.
    fn redirect(&mut self, source: SlotNo, slot: SlotNo, spare: &Spare) {
        if spare.kind == SlotKind::Record {
            if let Some((version, record)) = self.records.at(source) {
                self.records.insert(version, OwnPage { slot, ..record });
                self.map.set_record(source, false);
                self.zones.remove_live(source);
                self.map.set_record(slot, true);
                self.zones.add_live(slot);
            }
            return;
        }
        self.statistics.pages_moved +=
            u64::from(self.redirect_page(source, slot, spare.page, spare.version, spare));
    }

    /// `source` was copied to `slot`: `page` moves, if it still is there under `version`. The `copy`
    /// names it, or another page that was in `source`, from which it takes the content now.
    fn redirect_page(
        &mut self,
        source: SlotNo,
        slot: SlotNo,
        page: PageNo,
        version: Version,
        copy: &Spare,
    ) -> bool {
        let entry = self.map.get(page);
        let moves = entry.place == Place::At(source) && entry.version == version;
        if moves {
            let place = Place::At(slot);
            let taken = (copy.page, copy.version) != (page, version);
            let checksum = match self.map.has_checksums() {
                true => entry.checksum,
                false if taken => origin(copy.page, copy.version),
                false => 0,
            };
            self.replace(page, Entry { place, taken, checksum, ..entry });
            self.copied.push((page, entry, slot));
        }
        moves
    }

    /// Pages that were moved are where they were before: a sync that failed may have dropped the copies.
    pub(crate) fn take_copies_back(&mut self) {
        for (page, before, copy) in std::mem::take(&mut self.copied) {
            let entry = self.map.get(page);
            if entry.place == Place::At(copy) && entry.version == before.version {
                self.replace(page, before);
            }
        }
    }

    /// Marks `page` lost where it still is what `entry` says; whether it was.
    fn lose(&mut self, page: PageNo, entry: Entry) -> bool {
        let known = self.map.get(page) == entry;
        if known {
            let forgotten = Fault::LostPagesForgotten.is_planted();
            let place = if forgotten { Place::Unmapped } else { Place::Lost };
            self.replace(page, Entry { place, ..entry });
        }
        known
    }

    /// The record in `slot` and its version, if one is in force there.
    fn record(&self, slot: SlotNo) -> Option<(Version, OwnPage)> {
        self.records.at(slot)
    }

    /// Whether the change of `version` was a share, as far as no checkpoint covers it.
    fn is_of_share(&self, version: Version) -> bool {
        version > self.logged.covered() && self.records.get(version).is_some()
    }
}
