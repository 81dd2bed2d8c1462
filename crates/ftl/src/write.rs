//! Writes and trims: batches get versions and places in order, and are written to the medium concurrently.
use std::future::{Future, ready};
use std::pin::pin;
use std::task::Poll;
use tantalum_base::{PageNo, PageRange, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{SlotKind, ZoneMedia};
use tantalum_runtime::sync::Permit;

use crate::dump::backup::Reservation;
use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::log::append::Piece;
use crate::log::records::{self, Record};
use crate::log::{AppendBuffer, Batch, OwnPage};
use crate::map::{MapEntry, Place};
use crate::parts::Parts;

/// A batch that has its versions and its places.
struct PlacedBatch {
    batch: Batch,
    pieces: Vec<Piece>,
    // The batch survives a power cut as soon as its append returns.
    durable: bool,
}

impl<M: ZoneMedia> Ftl<M> {
    /// Writes `pages` as one atomic batch, in the order of the calls. No page may occur twice. With `durable`, returns
    /// when this batch and all before it survive a power cut; without, when it can be read back.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing written, if cleaning cannot make space; `Latched` or the medium's error if the log
    /// failed.
    pub async fn write(&self, pages: &[(PageNo, M::Page)], durable: bool) -> Result<()> {
        self.write_behind(pages, durable, ready(Ok(()))).await
    }

    /// As [`write`](Self::write), for pages that were acknowledged to hosts. If they cannot be written, every later
    /// change is refused too, since it would survive without them.
    ///
    /// # Errors
    /// Those of [`write`](Self::write); after one, the log has failed.
    pub async fn write_back(&self, pages: &[(PageNo, M::Page)], durable: bool) -> Result<()> {
        self.write_pages(pages, durable, true, ready(Ok(()))).await
    }

    /// As [`write`](Self::write). `others` are earlier changes of the same pages that are still under way. The batch is
    /// published when its append and `others` are done.
    pub async fn write_behind(
        &self,
        pages: &[(PageNo, M::Page)],
        durable: bool,
        others: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        self.write_pages(pages, durable, false, others).await
    }

    async fn write_pages(
        &self,
        pages: &[(PageNo, M::Page)],
        durable: bool,
        acknowledged: bool,
        others: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        if pages.is_empty() {
            others.await?;
            return self.log_nothing(durable).await;
        }
        let mut buffer = self.buffers.take();
        for (page, content) in pages {
            buffer.push_data(*page, content.clone());
        }
        let result = self.log(&mut buffer, durable, acknowledged, &[], others, || ()).await;
        self.buffers.give(buffer);
        if result.is_ok() {
            self.parts.borrow_mut().statistics.host_pages += pages.len() as u64;
        }
        result
    }

    /// Trims `range`; it reads as zeros afterwards. Durability and errors as for [`write`](Self::write).
    pub async fn trim(&self, range: PageRange, durable: bool) -> Result<()> {
        self.trim_with(range, durable, ready(Ok(())), || ()).await
    }

    /// As [`trim`](Self::trim). `others` are earlier changes of the range that are still under way. The trim is
    /// published when its record and `others` are done. `in_force` is called in the step that publishes it: a caller
    /// that keeps newer contents of the range in a cache drops them there.
    pub async fn trim_with(
        &self,
        range: PageRange,
        durable: bool,
        others: impl Future<Output = Result<()>>,
        in_force: impl FnOnce(),
    ) -> Result<()> {
        let mut buffer = self.buffers.take();
        buffer.push_record(records::encode_trims(&[range]), Version::NEVER);
        let trims = [Record::Trim(range)];
        let result = self.log(&mut buffer, durable, false, &trims, others, in_force).await;
        self.buffers.give(buffer);
        result
    }

    /// Logs one batch: either pages, which may be `acknowledged` already, or one record page with its `changes`.
    async fn log(
        &self,
        buffer: &mut AppendBuffer<M::Page>,
        durable: bool,
        acknowledged: bool,
        changes: &[Record],
        others: impl Future<Output = Result<()>>,
        in_force: impl FnOnce(),
    ) -> Result<()> {
        let turn = self.log.turn.acquire(1).await;
        let room = self.room_in_turn(buffer.spares.len() as u32).await;
        let reservation = room.inspect_err(|error| {
            // No later change can be in the log, because this change still has the turn.
            if acknowledged && !Fault::LaterChangesOutlive.is_planted() {
                self.latch(error);
            }
        })?;
        self.log_in_turn(turn, reservation, buffer, durable, changes, others, in_force).await
    }

    /// Waits until `slots` slots can be appended for hosts.
    async fn room_in_turn(&self, slots: u32) -> Result<Reservation<'_, M>> {
        let reservation = self.reserve_entries(slots).await?;
        self.admit_host(slots).await?;
        Ok(reservation)
    }

    /// Logs one batch in the caller's turn; there must be space for it. The batch is published when its appends and
    /// `others` are done; `in_force` is called in that step.
    #[expect(clippy::too_many_arguments, reason = "the parts of a batch, each once")]
    pub(crate) async fn log_in_turn(
        &self,
        turn: Permit,
        reservation: Reservation<'_, M>,
        buffer: &mut AppendBuffer<M::Page>,
        durable: bool,
        changes: &[Record],
        others: impl Future<Output = Result<()>>,
        in_force: impl FnOnce(),
    ) -> Result<()> {
        // Content that a dumped mapping refers to must survive the power loss.
        let dumps = self.dumper.is_some() && !Fault::EarlyAcknowledgement.is_planted();
        let durable = durable || dumps;
        // No await from here until the first poll of every append: versions, places and the
        // medium's own order agree.
        let placed = {
            let parts = &mut *self.parts.borrow_mut();
            let batch = parts.log.begin_batch(&mut buffer.spares);
            PlacedBatch { batch, pieces: self.place_host(parts, buffer, &batch), durable }
        };
        let slots = {
            let mut appends = pin!(self.append_pieces(&placed.pieces, buffer, durable));
            let first_poll = std::future::poll_fn(|context| {
                Poll::Ready(match appends.as_mut().poll(context) {
                    Poll::Ready(result) => Some(result),
                    Poll::Pending => None,
                })
            });
            let first_poll = first_poll.await;
            drop(turn);
            match first_poll {
                Some(result) => result,
                None => appends.await,
            }
        };
        let slots = slots.inspect_err(|error| self.latch(error))?;
        // A failed batch is never published, nor is one that builds on it: readers would see half of it.
        others.await.inspect_err(|error| self.latch(error))?;
        if !changes.is_empty() {
            // If the log failed meanwhile, a cache above may still show part of the lost changes.
            self.check_latch()?;
        }
        {
            let parts = &mut *self.parts.borrow_mut();
            let data = buffer.spares.iter().filter(|spare| spare.kind.is_page());
            parts.map.fetch(data.map(|spare| spare.page));
            reservation.spend(parts);
            parts.put_batch_in_force(&placed, &slots, buffer, changes);
        }
        in_force();
        self.log.durable_rose.wake_all();
        self.cleaner.wanted.wake_all();
        self.wake_backup();
        if durable {
            return self.make_durable(placed.batch.last).await;
        }
        // If the log failed before this batch, the next recovery stops before it.
        self.check_latch()
    }
}

impl Parts {
    /// Puts all of a batch in force at once, as it is on the medium. `slots` has the zone and the first slot of each
    /// piece.
    fn put_batch_in_force<P>(
        &mut self,
        placed: &PlacedBatch,
        slots: &[(ZoneNo, SlotNo)],
        buffer: &AppendBuffer<P>,
        changes: &[Record],
    ) {
        // All trims of a batch take effect at once, under the version of its last record.
        let last_record = buffer.spares.iter().rposition(|spare| spare.kind == SlotKind::Record);
        for (piece, (zone, first_slot)) in placed.pieces.iter().zip(slots) {
            // Only now: the content of a zone counts as mapped when its appends have returned.
            self.space.append_returned(*zone, placed.durable, piece.header.durable);
            for (index, spare) in buffer.spares[piece.start..piece.end].iter().enumerate() {
                let slot = SlotNo(first_slot.0 + index as u32);
                let (version, checksum) = (spare.version, spare.checksum);
                if spare.kind == SlotKind::Record {
                    self.put_record(version, OwnPage { slot, checksum });
                    if last_record == Some(piece.start + index) {
                        self.apply_trims(changes, version);
                    }
                } else {
                    let (place, clean) = (Place::At(slot), spare.kind.is_clean());
                    let entry = MapEntry { version, place, remapped: false, clean, checksum };
                    self.batch_wrote(spare.page, entry);
                }
            }
        }
        self.log.batch_returned(&placed.batch, placed.durable);
    }
}
