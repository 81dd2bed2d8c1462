//! The log: batches take versions and places in order, then go to the medium together.
use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::task::Poll;
use tantalum_base::{ErrorKind, PageNo, PageRange, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{AppendHeader, SlotKind, Spare, ZoneMedia};
use tantalum_runtime::sync::Permit;

use crate::backup::Reservation;
use crate::fault_points::Fault;
use crate::ftl::{AppendBuffer, Ftl};
use crate::map::{Entry, Place};
use crate::read::OwnPage;
use crate::records::{self, Record};
use crate::zones::Stream;

/// Attempts to program one append before the medium is given up.
const PROGRAM_ATTEMPTS: u32 = 8;

/// One append: `start..end` of a buffer, to go to `zone`.
struct Piece {
    zone: ZoneNo,
    offset: u32,
    start: usize,
    end: usize,
    header: AppendHeader,
}

impl<M: ZoneMedia> Ftl<M> {
    /// Writes `pages` as one atomic batch, in the order of the calls. No page may occur twice.
    /// With `durable`, returns when it and all before it survive a power cut; without, when it
    /// can be read back.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing written, where cleaning cannot make room; `Latched` or the
    /// medium's error where the log failed.
    pub async fn write(&self, pages: &[(PageNo, M::Page)], durable: bool) -> Result<()> {
        self.write_behind(pages, durable, ready(Ok(()))).await
    }

    /// As [`write`](Self::write). Readers see the batch when it is on the medium and `others` has
    /// ended: changes of the same pages that came before and are still under way.
    pub async fn write_behind(
        &self,
        pages: &[(PageNo, M::Page)],
        durable: bool,
        others: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        let mut buffer = self.state.borrow_mut().take_buffer();
        for (page, content) in pages {
            buffer.push_data(*page, content.clone());
        }
        let result = self.log(&mut buffer, durable, &[], others, || ()).await;
        let mut state = self.state.borrow_mut();
        state.give_buffer(buffer);
        if result.is_ok() {
            state.statistics.host_pages += pages.len() as u64;
        }
        result
    }

    /// Gives `range` up; it reads as zeros. Durability and errors as [`write`](Self::write).
    pub async fn trim(&self, range: PageRange, durable: bool) -> Result<()> {
        self.trim_with(range, durable, ready(Ok(())), || ()).await
    }

    /// As [`trim`](Self::trim). It is in force when `others` has ended, changes of the range that came
    /// before and are still under way; `in_force` is called in the step in which readers cease to see
    /// what the range held: who keeps newer contents of it elsewhere gives them up together with it.
    pub async fn trim_with(
        &self,
        range: PageRange,
        durable: bool,
        others: impl Future<Output = Result<()>>,
        in_force: impl FnOnce(),
    ) -> Result<()> {
        let mut buffer = self.state.borrow_mut().take_buffer();
        buffer.push_record(records::encode_trims(&[range]), Version::NEVER);
        let result = self.log(&mut buffer, durable, &[Record::Trim(range)], others, in_force).await;
        self.state.borrow_mut().give_buffer(buffer);
        result
    }

    /// Logs one batch: pages, or one record page with its `changes`.
    async fn log(
        &self,
        buffer: &mut AppendBuffer<M::Page>,
        durable: bool,
        changes: &[Record],
        others: impl Future<Output = Result<()>>,
        in_force: impl FnOnce(),
    ) -> Result<()> {
        let turn = self.log_turn.acquire(1).await;
        let room = self.reserve_entries(buffer.spares.len() as u32).await?;
        self.admit_host(buffer.spares.len() as u32).await?;
        self.log_in_turn(turn, room, buffer, durable, changes, others, in_force).await
    }

    /// Logs one batch, for which there is room, in the caller's turn. The mapping changes when
    /// `others` has ended; `in_force` is called in that step.
    #[expect(clippy::too_many_arguments, reason = "what a batch is made of, each once")]
    pub(crate) async fn log_in_turn(
        &self,
        turn: Permit,
        room: Reservation<'_, M>,
        buffer: &mut AppendBuffer<M::Page>,
        durable: bool,
        changes: &[Record],
        others: impl Future<Output = Result<()>>,
        in_force: impl FnOnce(),
    ) -> Result<()> {
        // What a dump's mapping refers to must be there after the power loss.
        let dumps = self.options.dump.is_some() && !Fault::EarlyAcknowledgement.is_planted();
        let durable = durable || dumps;
        // No await from here until the first poll of every append: versions, places and the
        // medium's own order agree.
        let (number, first, last, pieces) = {
            let state = &mut *self.state.borrow_mut();
            let first = state.next_version;
            for (spare, version) in buffer.spares.iter_mut().zip(first.0..) {
                spare.version = Version(version);
            }
            state.next_version = Version(first.0 + buffer.spares.len() as u64);
            let last = Version(state.next_version.0 - 1);
            (state.tracker.start(last), first, last, self.place_host(state, buffer, first))
        };
        let slots = {
            let mut appends = pin!(self.append_pieces(&pieces, buffer, durable));
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
        // What failed is never in force, nor is what comes behind it: half of each would be seen.
        others.await.inspect_err(|error| self.latch(error))?;
        if !changes.is_empty() {
            // Of what the log lost before it readers may see a part still, in a cache above.
            self.check_latch()?;
        }
        {
            let state = &mut *self.state.borrow_mut();
            let data = buffer.spares.iter().filter(|spare| spare.kind == SlotKind::Data);
            state.map.fetch(data.map(|spare| spare.page));
            room.spend(state);
            // All of the batch is in force from here on, as it is on the medium.
            for (piece, (zone, first_slot)) in pieces.iter().zip(&slots) {
                // Only now: a checkpoint takes a zone's settled slots for mapped ones.
                state.zones.append_returned(*zone, durable, piece.header.durable);
                for (index, spare) in buffer.spares[piece.start..piece.end].iter().enumerate() {
                    let slot = SlotNo(first_slot.0 + index as u32);
                    if spare.kind == SlotKind::Record {
                        state.map.set_record(slot, true);
                        state.zones.add_live(slot);
                        let checksum = spare.checksum;
                        state.records.insert(spare.version, OwnPage { slot, checksum });
                        state.apply_trims(changes, spare.version);
                    } else {
                        let (version, place) = (spare.version, Place::At(slot));
                        let (taken, checksum) = (false, spare.checksum);
                        state.answered(spare.page, Entry { version, place, taken, checksum });
                    }
                }
            }
            state.shares_unseen.retain(|(_, _, version)| *version < first || *version > last);
            state.tracker.returned(number, durable);
            // One that returned before an earlier one may build on that, which can still be lost.
            let durable_up_to = state.tracker.watermark();
            state.shares_in_flight.retain(|(_, _, version)| *version > durable_up_to);
            state.returned = state.returned.max(last);
        }
        in_force();
        self.durable_rose.wake_all();
        self.cleaning_wanted.wake_all();
        self.wake_backup();
        if durable {
            return self.make_durable(last).await;
        }
        // The log may have failed before this: then the next recovery does not come so far.
        self.check_latch()
    }

    /// Takes places for the whole buffer in the host stream, for which there is room.
    fn place_host(
        &self,
        state: &mut crate::ftl::State<M::Page>,
        buffer: &AppendBuffer<M::Page>,
        first: Version,
    ) -> Vec<Piece> {
        let len = buffer.spares.len();
        let batch = (first, len as u32);
        let mut pieces = Vec::with_capacity(1);
        let mut start = 0;
        if self.better_in_fresh_zone(state, len as u32) {
            state.zones.seal(Stream::Host);
        }
        while start < len {
            if state.zones.open_zone(Stream::Host).is_none() {
                let zone = state.prepared.remove(0);
                state.zones.open(zone, Stream::Host);
            }
            let end = len.min(start + state.zones.room_pages(Stream::Host) as usize);
            pieces.push(self.place(state, Stream::Host, start, end, batch));
            start = end;
        }
        let version_max = state.next_version;
        for piece in &pieces {
            state.zones.get_mut(piece.zone).version_max = Version(version_max.0 - 1);
            state.logged.placed(piece.zone, &buffer.spares[piece.start..piece.end]);
        }
        state.statistics.host_appends += pieces.len() as u64;
        pieces
    }

    /// Takes the place of one append in the stream's open zone.
    fn place(
        &self,
        state: &mut crate::ftl::State<M::Page>,
        stream: Stream,
        start: usize,
        end: usize,
        (batch_first, batch_len): (Version, u32),
    ) -> Piece {
        let pages = (end - start) as u32;
        let (zone, offset) = state.zones.place(stream, pages);
        let slots = u64::from(self.geometry.append_slots(pages));
        state.statistics.slots_programmed += slots;
        if stream == Stream::Meta {
            state.statistics.checkpoint_slots += slots;
        } else {
            // When it returns, it leaves something to clean.
            state.cleaning_stuck = false;
            state.slots_since_checkpoint += slots;
            if self.checkpoint_due(state) {
                self.checkpoint_wanted.wake_all();
            }
        }
        let header = AppendHeader {
            epoch: state.zones.get(zone).epoch,
            stream: stream as u8,
            durable: state.tracker.watermark(),
            batch_first,
            batch_len,
        };
        Piece { zone, offset, start, end, header }
    }

    /// Sends the pieces to the medium together; zone and first slot of each. The caller says
    /// `append_returned` when it has mapped them.
    async fn append_pieces(
        &self,
        pieces: &[Piece],
        buffer: &AppendBuffer<M::Page>,
        durable: bool,
    ) -> Result<Vec<(ZoneNo, SlotNo)>> {
        if let [piece] = pieces {
            return Ok(vec![self.append_piece(piece, buffer, durable).await?]);
        }
        let mut appends: Vec<Pin<Box<_>>> = Vec::with_capacity(pieces.len());
        appends
            .extend(pieces.iter().map(|piece| Box::pin(self.append_piece(piece, buffer, durable))));
        let mut slots: Vec<Option<Result<(ZoneNo, SlotNo)>>> =
            pieces.iter().map(|_| None).collect();
        std::future::poll_fn(|context| {
            for (append, slot) in appends.iter_mut().zip(&mut slots) {
                if slot.is_none()
                    && let Poll::Ready(result) = append.as_mut().poll(context)
                {
                    *slot = Some(result);
                }
            }
            if slots.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        slots.into_iter().flatten().collect()
    }

    /// Sends one piece to the medium; elsewhere where it fails to program.
    async fn append_piece(
        &self,
        piece: &Piece,
        buffer: &AppendBuffer<M::Page>,
        durable: bool,
    ) -> Result<(ZoneNo, SlotNo)> {
        let spares = &buffer.spares[piece.start..piece.end];
        let bodies = &buffer.bodies[piece.start..piece.end];
        let (mut zone, mut offset, mut header) = (piece.zone, piece.offset, piece.header);
        let stream = Stream::from_byte(header.stream);
        let mut attempt = 1;
        loop {
            let result = self.media.append(zone, &header, spares, bodies, durable).await;
            match result {
                Ok(slot) => {
                    let overhead = self.geometry.append_overhead_slots;
                    debug_assert_eq!(slot, self.geometry.slot(zone, offset + overhead));
                    return Ok((zone, slot));
                }
                Err(error)
                    if error.kind() == ErrorKind::ProgramFailed && attempt < PROGRAM_ATTEMPTS =>
                {
                    attempt += 1;
                    self.mark_failing(zone, &header, spares);
                    // Cleaning must be able to go on, which makes the room for all others; except
                    // where it waits for this very append, itself or behind a checkpoint.
                    let keep_free =
                        || u32::from(stream == Stream::Host && self.waiting_for_hosts.get() == 0);
                    self.admit(stream, spares.len() as u32, keep_free).await?;
                    let state = &mut *self.state.borrow_mut();
                    let batch = (header.batch_first, header.batch_len);
                    let again = self.place(state, stream, piece.start, piece.end, batch);
                    let version_max = spares.iter().map(|spare| spare.version).max();
                    let placed = state.zones.get_mut(again.zone);
                    placed.version_max = placed.version_max.max(version_max.unwrap_or_default());
                    if stream != Stream::Meta {
                        state.logged.placed(again.zone, spares);
                    }
                    (zone, offset, header) = (again.zone, again.offset, again.header);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A program failed in `zone`: no more appends to it, and cleaning empties it first.
    fn mark_failing(&self, zone: ZoneNo, header: &AppendHeader, spares: &[Spare]) {
        let stream = Stream::from_byte(header.stream);
        let state = &mut *self.state.borrow_mut();
        state.statistics.program_failures += 1;
        if state.zones.open_zone(stream) == Some(zone) {
            state.zones.seal(stream);
        }
        state.zones.append_returned(zone, false, Version::NEVER);
        state.zones.get_mut(zone).failing = true;
        if stream != Stream::Meta {
            state.logged.failed(zone, spares);
        }
        state.evacuation_wanted = true;
        self.cleaning_wanted.wake_all();
    }

    /// Appends the buffer, one append, to `stream` (cleaning or meta), for which there is room.
    pub(crate) async fn append_own(
        &self,
        stream: Stream,
        buffer: &AppendBuffer<M::Page>,
        durable: bool,
    ) -> Result<SlotNo> {
        let piece = {
            let state = &mut *self.state.borrow_mut();
            let batch = (Version::NEVER, buffer.spares.len() as u32);
            let piece = self.place(state, stream, 0, buffer.spares.len(), batch);
            let version_max = buffer.spares.iter().map(|spare| spare.version).max();
            if stream == Stream::Cleaning {
                let zone = state.zones.get_mut(piece.zone);
                zone.version_max = zone.version_max.max(version_max.unwrap_or_default());
                state.logged.placed(piece.zone, &buffer.spares);
            }
            piece
        };
        let appended = self.append_piece(&piece, buffer, durable).await;
        let (zone, slot) = appended.inspect_err(|error| self.latch(error))?;
        let says = piece.header.durable;
        self.state.borrow_mut().zones.append_returned(zone, durable, says);
        Ok(slot)
    }
}

impl<P> crate::ftl::State<P> {
    /// Puts the trims among records of `version` in force.
    pub(crate) fn apply_trims(&mut self, changes: &[Record], version: Version) {
        for change in changes {
            let Record::Trim(range) = change else { continue };
            for page in range.iter() {
                let entry = self.map.get(page);
                if entry.version < version {
                    self.put(page, Entry::trimmed(version));
                    self.statistics.pages_trimmed += u64::from(entry.place != Place::Unmapped);
                } else {
                    self.came_late(page, Entry::trimmed(version));
                }
            }
            self.deltas.trimmed(*range, version);
        }
    }
}
