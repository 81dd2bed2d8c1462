//! Sharing: pages take other pages' contents by a change of the mapping alone (SHARE, section 4.2).
//!
//! A batch is one record page of the log, so it is all or nothing like any batch. It is in force
//! from the moment at which it takes its version: a write that comes behind it in the log comes
//! behind it for readers too, who see it when all of it is in force. What it points to stays: the slot has one page more from then on.
//!
//! Some contents are written again instead, in the same batch: where the table of sharers is full,
//! where a slot has as many pages as cleaning can name in one append, and where cleaning is
//! emptying the slot's zone.
use std::future::ready;
use tantalum_base::{Error, ErrorKind, PageNo, Payload, Result, Version};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::ftl::{Ftl, State};
use crate::map::{Entry, Place};
use crate::read::lost;
use crate::records::{self, SHARERS_MAX, SHARES_MAX, Share};

/// What a batch of pairs comes to.
struct Plan {
    shares: Vec<Share>,
    copies: Vec<Copy>,
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
    /// Pages of the batch in the log.
    fn pages(&self) -> u32 {
        self.copies.len() as u32 + u32::from(!self.shares.is_empty())
    }
}

impl<M: ZoneMedia> Ftl<M> {
    /// Pairs that one batch may have: what a record page holds, and where all of them were
    /// written again, what finds room.
    pub fn share_pairs_max(&self) -> u32 {
        (SHARES_MAX as u32).min(self.batch_pages_max()).min(self.layout.shares_max)
    }

    /// Each left page takes the right page's content, as one atomic batch. No page may be left
    /// twice, or left and right. `placed` is called when the batch has its place in the order of
    /// all changes and the mapping shows all of it. Durability as [`write`](Self::write).
    ///
    /// # Errors
    /// `Unmapped` where a right page holds nothing, `Uncorrectable` where the medium lost it,
    /// `TooLarge` above [`share_pairs_max`](Self::share_pairs_max); besides those of `write`. All
    /// of them change nothing.
    pub async fn share(
        &self,
        pairs: &[(PageNo, PageNo)],
        durable: bool,
        placed: impl FnOnce(),
    ) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        if pairs.len() > self.share_pairs_max() as usize {
            let context = format!("a share of {} pages is over the limit", pairs.len());
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        // Nobody else takes versions or shares from here on; what was placed before may still
        // return and change the mapping.
        let turn = self.log_turn.acquire(1).await;
        // Until the batch is durable a dump must be able to take it back as well.
        let _undo_room = self.reserve_entries(pairs.len() as u32).await?;
        let room = self.reserve_entries(pairs.len() as u32).await?;
        let (plan, contents) = self.plan_share(pairs).await?;
        // No await from here until the batch is placed.
        let mut buffer = self.state.borrow_mut().take_buffer();
        if !plan.shares.is_empty() {
            let body = records::encode_shares(plan.epoch, &plan.shares);
            buffer.push_record(body, Version::NEVER);
        }
        for (copy, content) in plan.copies.iter().zip(contents) {
            buffer.push_data(copy.left, content);
        }
        let version = {
            let state = &mut *self.state.borrow_mut();
            let version = state.next_version;
            let before = state.apply_shares(&plan.shares);
            state.shares_in_flight.extend_from_slice(&before);
            // Those that are written again come behind the record, under versions of their own.
            let first = version.0 + u64::from(!plan.shares.is_empty());
            for (copy, version) in plan.copies.iter().zip(first..) {
                let before = (copy.left, state.map.get(copy.left), Version(version));
                state.shares_in_flight.push(before);
            }
            // The batch is seen as a whole, which it is when those pages are in the mapping too.
            if !plan.copies.is_empty() && !Fault::SharesSeenByHalves.is_planted() {
                state.shares_unseen.extend_from_slice(&before);
            }
            version
        };
        // Pages that are written again are in the mapping only when that returns: until then another
        // share would see what was there before, and of the others what comes behind.
        let mut placed = Some(placed);
        if plan.copies.is_empty()
            && let Some(placed) = placed.take()
        {
            placed();
        }
        let logged = if Fault::SharesNotLogged.is_planted() {
            Ok(())
        } else {
            self.log_in_turn(turn, room, &mut buffer, durable, &[], ready(Ok(())), || ()).await
        };
        if let Some(placed) = placed {
            placed();
        }
        let state = &mut *self.state.borrow_mut();
        state.give_buffer(buffer);
        state.shares_unseen.retain(|(_, _, unseen)| *unseen != version);
        if logged.is_ok() {
            state.statistics.pages_shared += plan.shares.len() as u64;
            state.statistics.pages_share_copied += plan.copies.len() as u64;
        } else {
            state.undo_shares(version);
        }
        logged
    }

    /// Makes room for `pairs` and reads what has to be written again. The plan holds until the
    /// caller awaits something.
    async fn plan_share(&self, pairs: &[(PageNo, PageNo)]) -> Result<(Plan, Vec<M::Page>)> {
        loop {
            self.check_latch()?;
            let plan = self.plan(pairs)?;
            let rights: Vec<PageNo> = plan.copies.iter().map(|copy| copy.right).collect();
            let mut contents = vec![M::Page::zero(); rights.len()];
            if !rights.is_empty() {
                self.read(&rights, &mut contents).await?;
            }
            self.admit_host(plan.pages()).await?;
            // A page may have changed meanwhile, or its zone be emptied.
            let now = self.plan(pairs)?;
            if now.copies == plan.copies {
                return Ok((now, contents));
            }
        }
    }

    /// Decides for each pair whether it can be shared.
    fn plan(&self, pairs: &[(PageNo, PageNo)]) -> Result<Plan> {
        let state = self.state.borrow();
        let entries_max = self.options.share_entries_max.map_or(u64::MAX, u64::from);
        let mut free = entries_max.saturating_sub(state.map.sharers().entries());
        let epoch = state.zones.epoch();
        let mut plan = Plan { shares: Vec::with_capacity(pairs.len()), copies: Vec::new(), epoch };
        for &(left, right) in pairs {
            let entry = state.map.get(right);
            let slot = match entry.place {
                Place::At(slot) => slot,
                Place::Lost => return Err(lost(right)),
                Place::Unmapped => {
                    let context = format!("page {right} holds nothing that could be shared");
                    return Err(Error::new(ErrorKind::Unmapped, context));
                }
            };
            let right_version = entry.version;
            // Cleaning names all pages of a slot in the append of its copy, which for that needs
            // room for one page more; whatever else of this batch goes to the slot fits as well.
            let fits = self.geometry.append_pages_max > 1
                && state.map.pages_of(slot).nth(SHARERS_MAX - SHARES_MAX).is_none();
            let stays = !state.zones.get(self.geometry.zone_of(slot)).being_emptied;
            if free > 0 && fits && stays {
                free -= 1;
                let checksum = state.map.checksum_to_take(right, &entry);
                plan.shares.push(Share { left, right, right_version, slot, epoch, checksum });
            } else {
                plan.copies.push(Copy { left, right, right_version });
            }
        }
        Ok(plan)
    }
}

impl<P> State<P> {
    /// Puts shares in force under the next version; what was known of the pages.
    fn apply_shares(&mut self, shares: &[Share]) -> Vec<(PageNo, Entry, Version)> {
        let version = self.next_version;
        let apply = |share: &Share| {
            let before = self.map.get(share.left);
            let (place, checksum) = (Place::At(share.slot), share.checksum);
            self.replace(share.left, Entry { version, place, taken: true, checksum });
            (share.left, before, version)
        };
        shares.iter().map(apply).collect()
    }

    /// The log failed: takes the shares of `version` back, of which nobody was told. What they had
    /// replaced is still there, since its zone waits for them to be durable. A later share of the page,
    /// under way as well, is to fall back on that too, and not on what was taken back.
    fn undo_shares(&mut self, version: Version) {
        let failed: Vec<_> =
            self.shares_in_flight.extract_if(.., |share| share.2 == version).collect();
        for (page, entry, _) in failed {
            if self.map.get(page).version == version {
                self.replace(page, entry);
            }
            for (other, before, _) in
                self.shares_in_flight.iter_mut().chain(&mut self.shares_unseen)
            {
                if *other == page && before.version == version {
                    *before = entry;
                }
            }
        }
    }
}
