//! Writes checkpoints while hosts continue.
use tantalum_base::{PageBuf, PageNo, Result, SlotNo, Version};
use tantalum_media::{SlotKind, ZoneMedia};

use crate::checkpoints::pages::{
    Footer, PieceHeader, PieceKind, ZONE_ENTRIES, encode_footer, encode_map, encode_zones,
};
use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::map::Mapping;
use crate::parts::Parts;
use crate::space::{Space, Stream};

/// Progress in writing a checkpoint.
#[derive(Default)]
struct Cursor {
    // Pages of the zone table, and of the map, that were encoded.
    zones: u32,
    next_page: u64,
    written: u32,
}

impl Cursor {
    /// Encodes the next pages of checkpoint `id`, at most `most`.
    fn encode_pieces(
        &mut self,
        id: u64,
        space: &Space,
        (map, covered): (&Mapping, Version),
        most: usize,
    ) -> Vec<(PageNo, PageBuf)> {
        let epoch = space.epoch();
        let zone_pages = (space.geometry().zones as usize).div_ceil(ZONE_ENTRIES) as u32;
        let mut pieces = Vec::with_capacity(most);
        while pieces.len() < most {
            let header =
                PieceHeader { id, kind: PieceKind::Map, index: self.zones, epoch, entries: 0 };
            let page = if self.zones < zone_pages {
                self.zones += 1;
                encode_zones(space, &PieceHeader { kind: PieceKind::Zones, ..header })
            } else {
                let encoded = encode_map(map, covered, header, self.next_page);
                let Some((page, behind)) = encoded else {
                    self.next_page = map.pages();
                    break;
                };
                self.next_page = behind;
                page
            };
            pieces.push((PageNo(u64::from(self.written)), page));
            self.written += 1;
        }
        pieces
    }
}

impl<M: ZoneMedia> Ftl<M> {
    /// Writes checkpoints in the background when they are due, until the FTL latches. Spawn it
    /// once.
    pub async fn run_checkpointer(&self) -> Result<()> {
        loop {
            let due = || {
                let parts = self.parts.borrow();
                (parts.log.latched().is_some() || parts.checkpoint_due()).then_some(())
            };
            self.checkpointer.wanted.until(due).await;
            self.check_latch()?;
            self.checkpoint().await.inspect_err(|error| self.latch(error))?;
        }
    }

    /// Writes a checkpoint and makes it durable, with every change that had returned before the call.
    pub async fn checkpoint(&self) -> Result<()> {
        let turn = self.checkpointer.turn.acquire(1).await;
        let (id, covered) = self.start_checkpoint();
        let places = self.write_pieces(id, covered).await?;
        let caught = self.parts.borrow().log.last_version();
        if !Fault::NoSyncBeforeFooter.is_planted() {
            self.sync_appends().await?;
            self.wait_for_hosts(caught).await?;
        }
        let next_version = self.parts.borrow().log.next_version();
        let footer = self.footer(covered, caught, next_version, &places);
        self.finish_checkpoint(id, footer, places).await?;
        drop(turn);
        // Cleaning need no longer leave zones to the checkpoint.
        self.zones_freed.wake_all();
        self.cleaner.wanted.wake_all();
        Ok(())
    }

    /// Writes the checkpoint that ends a recovery: versions up to `skip_to` are never used, so that
    /// changes that recovery dropped never look newer than later ones.
    pub(crate) async fn checkpoint_recovery(&self, skip_to: Version) -> Result<()> {
        let _turn = self.checkpointer.turn.acquire(1).await;
        let (id, _) = self.start_checkpoint();
        let places = self.write_pieces(id, skip_to).await?;
        self.sync_appends().await?;
        let footer = self.footer(skip_to, skip_to, skip_to.next(), &places);
        self.finish_checkpoint(id, footer, places).await?;
        self.parts.borrow_mut().log.go_on(skip_to, skip_to.next());
        Ok(())
    }

    /// The footer of a checkpoint whose other pages are in `places`.
    fn footer(
        &self,
        covered: Version,
        durable: Version,
        next_version: Version,
        places: &[SlotNo],
    ) -> Footer {
        Footer {
            covered,
            durable,
            next_version,
            pieces: places.len() as u32 + 1,
            pages: self.options.pages,
            dumps_void: self.parts.borrow().checkpoints.dumps_void,
        }
    }

    fn start_checkpoint(&self) -> (u64, Version) {
        let parts = &mut *self.parts.borrow_mut();
        // The id is taken at once, so that pages of a failed attempt never mix with others.
        let (id, left_unfinished) = parts.checkpoints.begin(parts.space.epoch());
        // In one zone, a page of a later checkpoint implies that the earlier one was finished.
        if left_unfinished {
            parts.space.seal(Stream::Meta);
        }
        if let Some(dump) = &mut parts.dump {
            dump.log.checkpoint_started(id);
        }
        let covered = parts.log.durable();
        parts.space.checkpoint_started(covered);
        (id, covered)
    }

    /// Writes zone table and map of a checkpoint that covers all changes up to `covered`; returns the slot
    /// of each page.
    async fn write_pieces(&self, id: u64, covered: Version) -> Result<Vec<SlotNo>> {
        let mut cursor = Cursor::default();
        let mut places = Vec::new();
        loop {
            let _turn = self.checkpointer.meta_turn.acquire(1).await;
            self.admit(Stream::Meta, 1, || 0).await?;
            let pieces = {
                let parts = self.parts.borrow();
                let fit = parts.space.append_pages_fit(Stream::Meta) as usize;
                cursor.encode_pieces(id, &parts.space, (&parts.map, covered), fit)
            };
            if pieces.is_empty() {
                return Ok(places);
            }
            self.append_checkpoint_pages(id, pieces, &mut places, false).await?;
        }
    }

    async fn append_checkpoint_pages(
        &self,
        id: u64,
        pieces: Vec<(PageNo, PageBuf)>,
        places: &mut Vec<SlotNo>,
        durable: bool,
    ) -> Result<()> {
        let mut buffer = self.buffers.take();
        for (number, body) in pieces {
            buffer.push_own(SlotKind::Checkpoint, number, Version(id), body);
        }
        self.append_meta(&buffer, durable, places).await?;
        self.buffers.give(buffer);
        Ok(())
    }

    /// Writes the footer, which puts the checkpoint in force, and frees the previous one.
    async fn finish_checkpoint(
        &self,
        id: u64,
        footer: Footer,
        mut places: Vec<SlotNo>,
    ) -> Result<()> {
        let epoch = self.parts.borrow().space.epoch();
        let header = PieceHeader { id, kind: PieceKind::Footer, index: 0, epoch, entries: 0 };
        let page = encode_footer(&header, &footer);
        let turn = self.checkpointer.meta_turn.acquire(1).await;
        self.admit(Stream::Meta, 1, || 0).await?;
        let number = PageNo(places.len() as u64);
        self.append_checkpoint_pages(id, vec![(number, page)], &mut places, true).await?;
        drop(turn);
        self.begin_era(id, &places).await?;
        let emptied = {
            let parts = &mut *self.parts.borrow_mut();
            parts.checkpoint_in_force(id, &footer, places);
            parts.space.empty_meta_zones()
        };
        if let Some(dumper) = &self.dumper {
            dumper.entries_freed.wake_all();
            self.wake_backup();
        }
        for zone in emptied {
            self.reset_emptied(zone).await?;
        }
        self.cleaner.wanted.wake_all();
        Ok(())
    }

    /// Makes everything durable and writes a checkpoint, so that the next opening is fast.
    pub async fn close(&self) -> Result<()> {
        self.check_latch()?;
        // Nothing must be appended after the checkpoint.
        self.cleaner.rest.begin();
        self.cleaner.wanted.wake_all();
        self.cleaner.rest.begun().await;
        // The checkpoint covers only changes that are durable when it begins: so those in flight are
        // waited for.
        match Fault::UncoveredTakenForClean.is_planted() {
            true => self.sync().await?,
            false => self.sync_started().await?,
        }
        self.checkpoint().await?;
        while self.has_unwritten() && !Fault::UncoveredTakenForClean.is_planted() {
            // Pages were remapped meanwhile without a record in the log.
            self.sync_started().await?;
            self.checkpoint().await?;
        }
        self.end_era().await
    }

    /// Whether a power loss now would have to dump changes that neither the log nor the checkpoint in
    /// force has.
    pub fn has_unwritten(&self) -> bool {
        self.parts.borrow().log.has_unwritten() && !Fault::UnwrittenForgotten.is_planted()
    }
}

impl Parts {
    /// Whether the next checkpoint is due.
    pub(crate) fn checkpoint_due(&self) -> bool {
        let pages = self.checkpoints.slots.len() as u64;
        self.checkpoints.is_due()
            || self.dump.as_ref().is_some_and(|dump| dump.log.checkpoint_due(pages))
    }

    /// Puts checkpoint `id` in `slots` in force: slots that only the previous one needed are no longer
    /// live.
    fn checkpoint_in_force(&mut self, id: u64, footer: &Footer, slots: Vec<SlotNo>) {
        self.statistics.checkpoints += 1;
        self.log.uncovered.covered_up_to(footer.covered);
        self.forget_pages_at_home(footer.covered);
        self.space.look_for_room();
        let mut void = self.checkpoints.finish(id, footer, slots);
        if let Some(dump) = &mut self.dump {
            void.extend(dump.checkpoint_finished(id));
        }
        void.into_iter().for_each(|slot| self.space.remove_live(slot));
        for slot in self.log.records.take_covered(footer.covered) {
            self.drop_record(slot);
            self.relocation.stuck = false;
        }
    }
}
