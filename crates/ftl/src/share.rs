//! Shares: remap pages to other pages' contents, by a change of the mapping alone (SHARE, section 4.2).
//!
//! A batch occupies as many record pages of the log as its pairs need, so it is atomic like any batch. The mapping has
//! it as soon as its versions are assigned, so a later write in the log counts as newer; readers see the batch when all
//! of it is in force. The shared slots stay live: each has one more page from then on.
//!
//! If stored energy keeps the changed entries of the mapping, a batch that only remaps is not logged: a power loss
//! dumps the entries, and until then they are written with others, many to a page (SHARE, section 4.2.2, which needs no
//! log page if the mapping is durable). This does not apply if a flush must survive even without that energy.
//!
//! Some contents are written again instead, in the same batch: if the table of reference lists is full, if a slot has
//! as many pages as cleaning can name in one append, or if cleaning is emptying the slot's zone.
use tantalum_base::{
    Error, ErrorKind, FastMap, PageNo, PageRange, Payload, Result, SlotNo, Version,
};
use tantalum_media::ZoneMedia;
use tantalum_runtime::sync::{Permit, Waiting};

use crate::dump::backup::Reservation;
use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::log::records::{self, REFERENCES_MAX, Record, SHARES_MAX, Share, TRIMS_MAX};
use crate::log::shares::Undo;
use crate::map::{MapEntry, Place};
use crate::parts::Parts;
use crate::read::lost;

/// A plan to carry out a batch of pairs.
struct Plan {
    shares: Vec<Share>,
    copies: Vec<Copy>,
    /// The number of `copies` whose right page is in a zone being emptied.
    copies_emptied: usize,
    epoch: u64,
}

/// A pair whose content is written again.
#[derive(Clone, Copy, PartialEq)]
struct Copy {
    left: PageNo,
    right: PageNo,
    right_version: Version,
}

impl Plan {
    /// The number of its record pages in the log; each has a version.
    fn record_pages(&self) -> u32 {
        self.shares.len().div_ceil(SHARES_MAX) as u32
    }

    /// The number of pages of the batch in the log, if it also trims the ranges `trims`.
    fn pages(&self, trims: &[PageRange]) -> u32 {
        self.copies.len() as u32 + self.record_pages() + trims.len().div_ceil(TRIMS_MAX) as u32
    }

    /// Whether the batch only remaps pages, given that it also trims the ranges `trims`.
    fn only_remaps(&self, trims: &[PageRange]) -> bool {
        self.copies.is_empty() && trims.is_empty()
    }
}

impl<M: ZoneMedia> Ftl<M> {
    /// The number of pairs that can always be shared: they fit in the free space even if all of them are written again.
    /// More pairs succeed if not all need that. With a dump, its energy must also suffice to undo them.
    pub fn share_pairs_max(&self) -> u32 {
        self.batch_pages_max().min(self.shares_dumped_max())
    }

    /// Computes the changes that make the pages of `to` equal to those of `from`, which has the same length: pairs to
    /// share, and ranges to trim. A pair that is in one slot already needs no change.
    pub fn differences(
        &self,
        to: PageRange,
        from: PageRange,
    ) -> (Vec<(PageNo, PageNo)>, Vec<PageRange>) {
        let map = &self.parts.borrow().map;
        let (mut pairs, mut trims) = (Vec::new(), Vec::<PageRange>::new());
        for (left, right) in to.iter().zip(from.iter()) {
            let (before, after) = (map.get(left).place, map.get(right).place);
            match (before, after) {
                (Place::Unmapped, Place::Unmapped) => {}
                (Place::At(here), Place::At(there)) if here == there => {}
                (_, Place::Unmapped) => match trims.last_mut() {
                    Some(last) if last.end() == left => last.pages += 1,
                    _ => trims.push(PageRange::new(left, 1)),
                },
                _ => pairs.push((left, right)),
            }
        }
        (pairs, trims)
    }

    fn shares_dumped_max(&self) -> u32 {
        self.parts.borrow().dump.as_ref().map_or(u32::MAX, |dump| dump.layout.shares_max)
    }

    /// Remaps each left page to the right page's content, as one atomic batch. No page may be on the left of two pairs,
    /// or on the left of one and on the right of another. `placed` is called when the batch has its versions and the
    /// mapping shows all of it. Durability as for [`write`](Self::write).
    ///
    /// # Errors
    /// Nothing is changed on an error. `Unmapped` if a right page has no content, `Uncorrectable` if the medium lost
    /// it, `TooLarge` if the batch needs more than the free space, which never happens up to
    /// [`share_pairs_max`](Self::share_pairs_max), and those of `write`.
    pub async fn share(
        &self,
        pairs: &[(PageNo, PageNo)],
        durable: bool,
        placed: impl FnOnce(),
    ) -> Result<()> {
        self.share_and_trim(pairs, &[], durable, placed).await
    }

    /// As [`share`](Self::share), and trims `trims` in the same batch; no page may be in both.
    ///
    /// # Errors
    /// As for a share.
    pub async fn share_and_trim(
        &self,
        pairs: &[(PageNo, PageNo)],
        trims: &[PageRange],
        durable: bool,
        placed: impl FnOnce(),
    ) -> Result<()> {
        if pairs.is_empty() && trims.is_empty() {
            self.check_latch()?;
            placed();
            return self.log_nothing(durable).await;
        }
        if pairs.len() > self.shares_dumped_max() as usize {
            return Err(too_large(pairs.len()));
        }
        // No other batch takes versions from here on; earlier ones may still return and change the
        // mapping.
        let turn = self.log.turn.acquire(1).await;
        // Until the batch is durable, a dump must have room to undo it.
        let _undo = self.reserve_entries(pairs.len() as u32).await?;
        let reservation = self.reserve_entries(pairs.len() as u32).await?;
        let (plan, contents) = self.plan_share(pairs, trims).await?;
        if self.keeps_unwritten(&plan, trims) {
            return self.remap_unwritten(turn, reservation, &plan, durable, placed).await;
        }
        // No await from here until the batch is placed.
        let mut buffer = self.buffers.take();
        for shares in plan.shares.chunks(SHARES_MAX) {
            buffer.push_record(records::encode_shares(plan.epoch, shares), Version::NEVER);
        }
        for ranges in trims.chunks(TRIMS_MAX) {
            buffer.push_record(records::encode_trims(ranges), Version::NEVER);
        }
        for (copy, content) in plan.copies.iter().zip(contents) {
            buffer.push_data(copy.left, content);
        }
        let (first, last) = self.parts.borrow_mut().apply_plan(&plan, trims);
        // Pages that are written again, or trimmed, change when their append returns. Until then another share would
        // see their old content beside the new content of the other pages.
        let mut placed = Some(placed);
        if plan.only_remaps(trims)
            && let Some(placed) = placed.take()
        {
            placed();
        }
        // The step that puts these in force also shows the others.
        let in_force = || {
            self.parts.borrow_mut().log.shares.batch_returned(first, last);
            if let Some(placed) = placed {
                placed();
            }
        };
        let changes: Vec<Record> = trims.iter().copied().map(Record::Trim).collect();
        let logged = if Fault::SharesNotLogged.is_planted() {
            in_force();
            Ok(())
        } else {
            let earlier = self.dumped_before(trims);
            self.log_in_turn(turn, reservation, &mut buffer, durable, &changes, earlier, in_force)
                .await
        };
        self.buffers.give(buffer);
        let parts = &mut *self.parts.borrow_mut();
        parts.log.shares.batch_returned(first, last);
        parts.share_ended(&plan, (first, last), logged.is_ok());
        logged
    }

    /// Waits for the changes that must be durable before a batch with `trims` is in force. With a dump these are all
    /// changes under way: a dump undoes shares that follow an undurable change, and it cannot undo trims.
    fn dumped_before(&self, trims: &[PageRange]) -> impl Future<Output = Result<()>> {
        let started = self.parts.borrow().log.watermark.last_started();
        let waits =
            self.dumper.is_some() && !trims.is_empty() && !Fault::TrimsOutliveShares.is_planted();
        async move { if waits { self.make_durable(started).await } else { Ok(()) } }
    }

    /// Whether `plan` writes nothing to the log, because all of its changes would be in a dump.
    fn keeps_unwritten(&self, plan: &Plan, trims: &[PageRange]) -> bool {
        !self.logs_shares.get() && plan.only_remaps(trims)
    }

    /// Remaps as `plan` says, in the caller's turn, without a record in the log. With `durable` it returns when no
    /// earlier change can be lost any more, since the remapping may build on them.
    async fn remap_unwritten(
        &self,
        turn: Permit,
        reservation: Reservation<'_, M>,
        plan: &Plan,
        durable: bool,
        placed: impl FnOnce(),
    ) -> Result<()> {
        let batch = {
            let parts = &mut *self.parts.borrow_mut();
            reservation.spend(parts);
            parts.apply_plan(plan, &[]);
            let batch = parts.log.begin_unwritten(plan.record_pages());
            parts.log.batch_returned(&batch, true);
            batch
        };
        placed();
        drop(turn);
        self.log.durable_rose.wake_all();
        self.cleaner.wanted.wake_all();
        self.wake_backup();
        let kept = match durable {
            true if !Fault::UnwrittenNotAwaited.is_planted() => self.make_durable(batch.last).await,
            _ => self.check_latch(),
        };
        let parts = &mut *self.parts.borrow_mut();
        parts.share_ended(plan, (batch.first, batch.last), kept.is_ok());
        kept
    }

    /// Makes space for `pairs` and reads the contents to write again. The plan holds until the caller's next await.
    async fn plan_share(
        &self,
        pairs: &[(PageNo, PageNo)],
        trims: &[PageRange],
    ) -> Result<(Plan, Vec<M::Page>)> {
        loop {
            let plan = self.plan_to_fit(pairs, trims).await?;
            let rights: Vec<PageNo> = plan.copies.iter().map(|copy| copy.right).collect();
            let mut contents = vec![M::Page::zero(); rights.len()];
            if !rights.is_empty() {
                self.read(&rights, &mut contents).await?;
            }
            let pages = if self.keeps_unwritten(&plan, trims) { 0 } else { plan.pages(trims) };
            self.admit_host(pages).await?;
            // Meanwhile a page may have changed, or cleaning may have begun to empty its zone.
            let now = self.plan(pairs)?;
            if now.copies == plan.copies {
                return Ok((now, contents));
            }
        }
    }

    /// Makes a plan that fits in the free space: waits for cleaning if too many contents are in zones being emptied.
    async fn plan_to_fit(&self, pairs: &[(PageNo, PageNo)], trims: &[PageRange]) -> Result<Plan> {
        let fitting = || {
            let planned = self.check_latch().and_then(|()| self.plan(pairs));
            let fits = |plan: &Plan| plan.pages(trims) <= self.batch_pages_max();
            match planned {
                Ok(plan) if !fits(&plan) && plan.copies_emptied == 0 => {
                    Some(Err(too_large(pairs.len())))
                }
                Ok(plan) if !fits(&plan) => None,
                planned => Some(planned),
            }
        };
        // Cleaning must not wait for hosts meanwhile.
        let _waiting = Waiting::new(&self.cleaner.pace.zones_wanted, 1);
        self.cleaner.wanted.wake_all();
        self.zones_freed.until(fitting).await
    }

    /// Decides for each pair whether it can be shared.
    fn plan(&self, pairs: &[(PageNo, PageNo)]) -> Result<Plan> {
        let parts = self.parts.borrow();
        let entries_max = self.options.share_entries_max.map_or(u64::MAX, u64::from);
        let mut free = entries_max.saturating_sub(parts.map.references().entries());
        let epoch = parts.space.epoch();
        let shares = Vec::with_capacity(pairs.len());
        let mut plan = Plan { shares, copies: Vec::new(), copies_emptied: 0, epoch };
        // Pages that this batch adds to each slot.
        let mut pages: FastMap<SlotNo, usize> = FastMap::default();
        for &(left, right) in pairs {
            let entry = parts.map.get(right);
            let slot = match entry.place {
                Place::At(slot) => slot,
                Place::Lost => return Err(lost(right)),
                Place::Unmapped | Place::Home => {
                    let context = format!("page {right} has no content to share");
                    return Err(Error::new(ErrorKind::Unmapped, context));
                }
            };
            let right_version = entry.version;
            // Cleaning names all pages of a slot in the append of its copy, with one reference page
            // for them.
            let room = REFERENCES_MAX - pages.get(&slot).copied().unwrap_or(0);
            let fits = self.geometry.append_pages_max > 1
                && room > 0
                && parts.map.pages_of(slot).nth(room - 1).is_none();
            let stays = !parts.space.get(self.geometry.zone_of(slot)).being_emptied;
            if free > 0 && fits && stays {
                free -= 1;
                *pages.entry(slot).or_default() += 1;
                let checksum = parts.map.checksum_when_shared(right, &entry);
                plan.shares.push(Share { left, right, right_version, slot, epoch, checksum });
            } else {
                plan.copies_emptied += usize::from(!stays);
                plan.copies.push(Copy { left, right, right_version });
            }
        }
        Ok(plan)
    }
}

impl Parts {
    /// Maps the shares of `plan` under the next versions, one per record page, and notes for each page how to undo it.
    /// Returns the first and the last of these versions.
    fn apply_plan(&mut self, plan: &Plan, trims: &[PageRange]) -> (Version, Version) {
        // The batch becomes visible as a whole, when the pages that are written again are mapped too and the trims are
        // in force.
        let hidden = !plan.only_remaps(trims) && !Fault::SharesSeenByHalves.is_planted();
        let first = self.log.next_version();
        for (number, share) in plan.shares.iter().enumerate() {
            let version = Version(first.0 + (number / SHARES_MAX) as u64);
            let undo = Undo { page: share.left, before: self.map.get(share.left), version };
            let (place, checksum) = (Place::At(share.slot), share.checksum);
            let (remapped, clean) = (true, false);
            self.replace(share.left, MapEntry { version, place, remapped, clean, checksum });
            self.log.shares.began(undo);
            if hidden {
                self.log.shares.hide(undo);
            }
        }
        // Pages that are written again follow the records, with versions of their own.
        let behind = first.0 + u64::from(plan.record_pages());
        let trims = trims.len().div_ceil(TRIMS_MAX) as u64;
        for (copy, version) in plan.copies.iter().zip(behind + trims..) {
            let (page, version) = (copy.left, Version(version));
            self.log.shares.began(Undo { page, before: self.map.get(page), version });
        }
        (first, Version(behind - 1).max(first))
    }

    /// Counts a share of versions `first` to `last`, or undoes it if it failed.
    fn share_ended(&mut self, plan: &Plan, (first, last): (Version, Version), succeeded: bool) {
        if succeeded {
            self.statistics.pages_shared += plan.shares.len() as u64;
            self.statistics.pages_share_copied += plan.copies.len() as u64;
        } else {
            self.undo_shares(first, last);
        }
    }

    /// Undoes the shares of versions `first` to `last` after a failure of the log; none was acknowledged. The content
    /// that they replaced is still on the medium, since its zone waits until they are durable. A later share of the
    /// same page must then restore that content too, instead of the undone share.
    fn undo_shares(&mut self, first: Version, last: Version) {
        for failed in self.log.shares.take_failed(first, last) {
            if self.map.get(failed.page).version == failed.version {
                self.replace(failed.page, failed.before);
            }
            self.log.shares.rebase(&failed);
        }
    }
}

fn too_large(pairs: usize) -> Error {
    Error::new(ErrorKind::TooLarge, format!("a share of {pairs} pages is over the limit"))
}
