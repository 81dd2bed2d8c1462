//! The log: batches take versions and places in order, then go to the medium together.
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::Poll;
use tantalum_base::{
    Error, ErrorKind, PageNo, PageRange, Payload, Result, SlotNo, Version, ZoneNo,
};
use tantalum_media::{AppendHeader, Body, SlotKind, Spare, ZoneMedia};

use crate::ftl::{AppendBuffer, Ftl};
use crate::map::{Entry, Place};
use crate::options::packed_slots;
use crate::planted::{Fault, is_planted};
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
        if pages.is_empty() {
            return Ok(());
        }
        let mut buffer = self.state.borrow_mut().take_buffer();
        for (page, content) in pages {
            buffer.spares.push(Spare {
                kind: SlotKind::Data,
                page: *page,
                version: Version::NEVER,
                checksum: content.checksum(),
            });
            buffer.bodies.push(Body::Data(content.clone()));
        }
        let result = self.log(&mut buffer, durable, &[]).await;
        let mut state = self.state.borrow_mut();
        state.give_buffer(buffer);
        if result.is_ok() {
            state.statistics.host_pages += pages.len() as u64;
        }
        result
    }

    /// Gives `range` up; it reads as zeros. Durability and errors as [`write`](Self::write).
    pub async fn trim(&self, range: PageRange, durable: bool) -> Result<()> {
        let changes = &[Record::Trim(range)];
        let body = records::encode(changes);
        let mut buffer = self.state.borrow_mut().take_buffer();
        buffer.spares.push(Spare {
            kind: SlotKind::Record,
            page: PageNo(0),
            version: Version::NEVER,
            checksum: body.checksum(),
        });
        buffer.bodies.push(Body::Meta(body));
        let result = self.log(&mut buffer, durable, changes).await;
        self.state.borrow_mut().give_buffer(buffer);
        result
    }

    /// Logs one batch: pages, or one record page with its `changes`.
    async fn log(
        &self,
        buffer: &mut AppendBuffer<M::Page>,
        durable: bool,
        changes: &[Record],
    ) -> Result<()> {
        let turn = self.log_turn.acquire(1).await;
        self.admit_host(buffer.spares.len() as u32).await?;
        // No await from here until the first poll of every append: versions, places and the
        // medium's own order agree.
        let (number, last, pieces) = {
            let state = &mut *self.state.borrow_mut();
            let first = state.next_version;
            for (spare, version) in buffer.spares.iter_mut().zip(first.0..) {
                spare.version = Version(version);
            }
            state.next_version = Version(first.0 + buffer.spares.len() as u64);
            let last = Version(state.next_version.0 - 1);
            (state.tracker.start(last), last, self.place_host(state, buffer, first))
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
        {
            let state = &mut *self.state.borrow_mut();
            let data = buffer.spares.iter().filter(|spare| spare.kind == SlotKind::Data);
            state.map.fetch(data.map(|spare| spare.page));
            for (piece, (zone, first_slot)) in pieces.iter().zip(&slots) {
                // Only now: a checkpoint takes a zone's settled slots for mapped ones.
                state.zones.append_returned(*zone, durable, piece.header.durable);
                for (index, spare) in buffer.spares[piece.start..piece.end].iter().enumerate() {
                    let slot = SlotNo(first_slot.0 + index as u32);
                    if spare.kind == SlotKind::Record {
                        state.map.set_record(slot, true);
                        state.zones.add_live(slot);
                        state.records.push((spare.version, slot));
                        state.apply_records(changes, spare.version);
                    } else {
                        let (version, checksum) = (spare.version, spare.checksum);
                        state
                            .apply(spare.page, Entry { version, place: Place::At(slot), checksum });
                    }
                }
            }
            state.tracker.returned(number, durable);
            state.returned = state.returned.max(last);
        }
        self.durable_rose.wake_all();
        self.cleaning_wanted.wake_all();
        if durable { self.make_durable(last).await } else { Ok(()) }
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
            zone_durable_slots: state.zones.get(zone).durable_slots,
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
        let stream = match header.stream {
            0 => Stream::Host,
            1 => Stream::Cleaning,
            _ => Stream::Meta,
        };
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
                    self.mark_failing(zone, stream);
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
                    (zone, offset, header) = (again.zone, again.offset, again.header);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A program failed in `zone`: no more appends to it, and cleaning empties it first.
    fn mark_failing(&self, zone: ZoneNo, stream: Stream) {
        let state = &mut *self.state.borrow_mut();
        state.statistics.program_failures += 1;
        if state.zones.open_zone(stream) == Some(zone) {
            state.zones.seal(stream);
        }
        state.zones.append_returned(zone, false, Version::NEVER);
        state.zones.get_mut(zone).failing = true;
        state.evacuation_wanted = true;
        self.cleaning_wanted.wake_all();
    }

    /// Waits for room for a batch of `pages` in the host stream, with its zones reset.
    async fn admit_host(&self, pages: u32) -> Result<()> {
        loop {
            self.check_latch()?;
            {
                let state = &mut *self.state.borrow_mut();
                let prepared =
                    state.prepared.len() as u64 * u64::from(packed_slots(&self.geometry));
                if self.open_room(state, Stream::Host) + prepared >= u64::from(pages) {
                    return Ok(());
                }
            }
            let zone = self.wait_for_zone(|| self.reserve_zones).await?;
            if self.reset_if_needed(zone).await? {
                self.state.borrow_mut().prepared.push(zone);
            }
        }
    }

    /// Makes sure that the stream's open zone has room for one append of `pages`; may leave
    /// only as many zones as `keep_free` says at the time.
    pub(crate) async fn admit(
        &self,
        stream: Stream,
        pages: u32,
        keep_free: impl Fn() -> u32,
    ) -> Result<()> {
        loop {
            self.check_latch()?;
            if self.state.borrow().zones.room_pages(stream) >= pages {
                return Ok(());
            }
            let zone = self.wait_for_zone(&keep_free).await?;
            if self.reset_if_needed(zone).await? {
                let state = &mut *self.state.borrow_mut();
                state.zones.seal(stream);
                state.zones.open(zone, stream);
            }
        }
    }

    /// Pages that appends to the stream's open zone can still hold.
    pub(crate) fn open_room(&self, state: &crate::ftl::State<M::Page>, stream: Stream) -> u64 {
        let Some(zone) = state.zones.open_zone(stream) else { return 0 };
        let mut free = self.geometry.slots_per_zone - state.zones.get(zone).used_slots;
        let mut pages = 0;
        loop {
            let fit = self.geometry.append_pages_fit(free);
            if fit == 0 {
                return pages;
            }
            pages += u64::from(fit);
            free -= self.geometry.append_slots(fit);
        }
    }

    /// Waits until more than `keep_free` zones are free and takes one.
    async fn wait_for_zone(&self, keep_free: impl Fn() -> u32) -> Result<ZoneNo> {
        let zone = || {
            let state = &mut *self.state.borrow_mut();
            if let Some(error) = &state.latched {
                return Some(Err(error.clone()));
            }
            if state.zones.free_count() > keep_free() {
                return state.zones.take_free().map(Ok);
            }
            self.cleaning_wanted.wake_all();
            state.cleaning_stuck.then(|| {
                Err(Error::new(
                    ErrorKind::OutOfSpace,
                    "no zone is free and cleaning finds nothing to give up",
                ))
            })
        };
        let zone = self.room.until(zone).await;
        // The pool shrank: cleaning may have to start.
        self.cleaning_wanted.wake_all();
        zone
    }

    /// Resets a zone that was taken from the pool, where needed; false where it had to be
    /// retired instead.
    async fn reset_if_needed(&self, zone: ZoneNo) -> Result<bool> {
        if !self.state.borrow().zones.get(zone).needs_reset {
            return Ok(true);
        }
        let reset = self.media.reset(zone).await;
        let state = &mut *self.state.borrow_mut();
        match reset {
            Ok(()) => {
                state.statistics.zone_resets += 1;
                let zone = state.zones.get_mut(zone);
                zone.needs_reset = false;
                zone.resets += 1;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::ZoneRetired => {
                state.zones.retire(zone);
                Ok(false)
            }
            Err(error) => Err(error),
        }
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
            }
            piece
        };
        let appended = self.append_piece(&piece, buffer, durable).await;
        let (zone, slot) = appended.inspect_err(|error| self.latch(error))?;
        let says = piece.header.durable;
        self.state.borrow_mut().zones.append_returned(zone, durable, says);
        Ok(slot)
    }

    /// Makes every change that had returned before this call durable, with all changes before
    /// them in the log, which may still be in flight.
    ///
    /// # Errors
    /// The medium's; the FTL is latched then, since nobody knows what became durable.
    pub async fn sync(&self) -> Result<()> {
        if is_planted(Fault::FlushLeavesGaps) {
            return self.sync_appends().await;
        }
        let returned = self.state.borrow().returned;
        self.make_durable(returned).await
    }

    /// Makes every append that had returned before this call durable. Concurrent calls share
    /// one sync of the medium.
    pub(crate) async fn sync_appends(&self) -> Result<()> {
        let turns = &self.sync_turns;
        let mine = turns.started.get() + 1;
        loop {
            self.check_latch()?;
            if turns.done.get() >= mine {
                return Ok(());
            }
            if turns.running.get() {
                self.durable_rose.until(|| (!turns.running.get()).then_some(())).await;
                continue;
            }
            turns.running.set(true);
            turns.started.set(turns.started.get() + 1);
            let _running = RunningSync(self);
            self.sync_medium().await.inspect_err(|error| self.latch(error))?;
            turns.done.set(turns.started.get());
        }
    }

    async fn sync_medium(&self) -> Result<()> {
        let (returned, zones, says) = {
            let state = self.state.borrow();
            let settled = |(number, zone): (ZoneNo, &crate::zones::Zone)| {
                (zone.needs_sync && zone.appends_in_flight == 0).then_some((
                    number,
                    zone.epoch,
                    zone.used_slots,
                ))
            };
            let zones: Vec<_> = state.zones.iter().filter_map(settled).collect();
            let says = |(number, zone): (ZoneNo, &crate::zones::Zone)| {
                (zone.says > zone.says_durably).then_some((number, zone.epoch, zone.says))
            };
            let says: Vec<_> = state.zones.iter().filter_map(says).collect();
            (state.tracker.before_sync(), zones, says)
        };
        self.media.sync().await?;
        let state = &mut *self.state.borrow_mut();
        state.tracker.synced(&returned);
        for (number, epoch, used_slots) in zones {
            let zone = state.zones.get_mut(number);
            if zone.epoch == epoch {
                zone.durable_slots = zone.durable_slots.max(used_slots);
                zone.needs_sync = zone.used_slots != used_slots;
            }
        }
        for (number, epoch, says) in says {
            let zone = state.zones.get_mut(number);
            if zone.epoch == epoch {
                zone.says_durably = zone.says_durably.max(says);
            }
        }
        Ok(())
    }

    /// Whether every change so far is durable already.
    pub fn is_durable(&self) -> bool {
        let state = self.state.borrow();
        state.tracker.watermark().next() == state.next_version
    }

    /// Makes every change up to `version` durable, also those still in flight.
    pub(crate) async fn make_durable(&self, version: Version) -> Result<()> {
        loop {
            // What was appended durably only has to wait for what is in flight before it.
            let next = || {
                let state = self.state.borrow();
                if state.tracker.watermark() >= version {
                    return Some(Ok(true));
                }
                if let Some(error) = &state.latched {
                    return Some(Err(error.clone()));
                }
                state.tracker.wants_sync().then_some(Ok(false))
            };
            if self.durable_rose.until(next).await? {
                return Ok(());
            }
            self.sync_appends().await?;
        }
    }
}

/// Ends a sync's turn, also where its caller was dropped.
struct RunningSync<'a, M: ZoneMedia>(&'a Ftl<M>);

impl<M: ZoneMedia> Drop for RunningSync<'_, M> {
    fn drop(&mut self) {
        self.0.sync_turns.running.set(false);
        self.0.durable_rose.wake_all();
    }
}

impl<P> crate::ftl::State<P> {
    /// Puts records of `version` in force.
    pub(crate) fn apply_records(&mut self, changes: &[Record], version: Version) {
        for Record::Trim(range) in changes {
            for page in range.iter() {
                let held = self.map.get(page).place != Place::Unmapped;
                if self.apply(page, Entry { version, place: Place::Unmapped, checksum: 0 }) && held
                {
                    self.statistics.pages_trimmed += 1;
                }
            }
        }
    }
}
