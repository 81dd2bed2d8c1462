//! Appends: places a batch in zones and sends it to the medium.
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use tantalum_base::{ErrorKind, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{AppendHeader, Spare, ZoneMedia};

use crate::ftl::Ftl;
use crate::log::{AppendBuffer, Batch};
use crate::parts::Parts;
use crate::space::Stream;

/// Attempts to program one append before giving up.
const PROGRAM_ATTEMPTS: u32 = 8;

/// One append: `start..end` of a buffer, to go to `zone`.
pub(crate) struct Piece {
    pub zone: ZoneNo,
    offset: u32,
    pub start: usize,
    pub end: usize,
    pub header: AppendHeader,
}

impl<M: ZoneMedia> Ftl<M> {
    /// Places the whole buffer in the host stream, which has space for it.
    pub(crate) fn place_host(
        &self,
        parts: &mut Parts,
        buffer: &AppendBuffer<M::Page>,
        batch: &Batch,
    ) -> Vec<Piece> {
        let len = buffer.spares.len();
        let header = (batch.first, len as u32);
        let mut pieces = Vec::with_capacity(1);
        let mut start = 0;
        if parts.space.better_in_fresh_zone(len as u32) {
            parts.space.seal(Stream::Host);
        }
        while start < len {
            if parts.space.open_zone(Stream::Host).is_none() && !parts.space.write_behind_copies() {
                parts.space.open_prepared();
            }
            let end = len.min(start + parts.space.append_pages_fit(Stream::Host) as usize);
            pieces.push(self.place(parts, Stream::Host, start, end, header));
            start = end;
        }
        for piece in &pieces {
            parts.space.holds_up_to(piece.zone, batch.last);
            parts.log.uncovered.placed(piece.zone, &buffer.spares[piece.start..piece.end]);
        }
        parts.statistics.host_appends += pieces.len() as u64;
        pieces
    }

    /// Places one append in the stream's open zone.
    fn place(
        &self,
        parts: &mut Parts,
        stream: Stream,
        start: usize,
        end: usize,
        (batch_first, batch_len): (Version, u32),
    ) -> Piece {
        let pages = (end - start) as u32;
        let (zone, offset) = parts.space.place(stream, pages);
        let slots = u64::from(self.geometry.append_slots(pages));
        parts.statistics.slots_programmed += slots;
        if stream == Stream::Host {
            self.cleaner.pace.hosts_appended(slots);
        }
        if stream == Stream::Meta {
            parts.statistics.checkpoint_slots += slots;
        } else {
            // When it returns, the content it replaces is dead: cleaning may find space again.
            parts.relocation.stuck = false;
            parts.checkpoints.slots_since += slots;
            if parts.checkpoint_due() {
                self.checkpointer.wanted.wake_all();
            }
        }
        let header = AppendHeader {
            epoch: parts.space.get(zone).epoch,
            stream: stream as u8,
            durable: parts.log.durable(),
            batch_first,
            batch_len,
        };
        Piece { zone, offset, start, end, header }
    }

    /// Sends the pieces to the medium together; returns zone and first slot of each. The caller must
    /// call `append_returned` after it has mapped them.
    pub(crate) async fn append_pieces(
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

    /// Sends one piece to the medium; if a program fails, repeats it in another zone.
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
                    // Host appends leave one zone free for cleaning, which makes space for all; except
                    // while cleaning or a checkpoint waits for this very append.
                    let keep_free = || {
                        u32::from(
                            stream == Stream::Host && self.cleaner.waiting_for_hosts.get() == 0,
                        )
                    };
                    self.admit(stream, spares.len() as u32, keep_free).await?;
                    let parts = &mut *self.parts.borrow_mut();
                    let batch = (header.batch_first, header.batch_len);
                    let again = self.place(parts, stream, piece.start, piece.end, batch);
                    parts.space.holds_up_to(again.zone, highest_version(spares));
                    if stream != Stream::Meta {
                        parts.log.uncovered.placed(again.zone, spares);
                    }
                    (zone, offset, header) = (again.zone, again.offset, again.header);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Notes that a program failed in `zone`: it takes no more appends, and cleaning empties it first.
    fn mark_failing(&self, zone: ZoneNo, header: &AppendHeader, spares: &[Spare]) {
        let stream = Stream::from_byte(header.stream);
        let parts = &mut *self.parts.borrow_mut();
        parts.statistics.program_failures += 1;
        parts.space.append_failed(zone, stream);
        if stream != Stream::Meta {
            parts.log.uncovered.failed(zone, spares);
        }
        parts.relocation.evacuation_wanted = true;
        self.cleaner.wanted.wake_all();
    }

    /// Appends the buffer, as one append, to `stream` (cleaning or meta), which has space for it.
    pub(crate) async fn append_own(
        &self,
        stream: Stream,
        buffer: &AppendBuffer<M::Page>,
        durable: bool,
    ) -> Result<SlotNo> {
        let piece = {
            let parts = &mut *self.parts.borrow_mut();
            let batch = (Version::NEVER, buffer.spares.len() as u32);
            let piece = self.place(parts, stream, 0, buffer.spares.len(), batch);
            if stream == Stream::Cleaning {
                parts.space.holds_up_to(piece.zone, highest_version(&buffer.spares));
                parts.log.uncovered.placed(piece.zone, &buffer.spares);
            }
            piece
        };
        let appended = self.append_piece(&piece, buffer, durable).await;
        let (zone, slot) = appended.inspect_err(|error| self.latch(error))?;
        let stated = piece.header.durable;
        self.parts.borrow_mut().space.append_returned(zone, durable, stated);
        Ok(slot)
    }

    /// Appends the buffer, as one append, to the meta stream, which has space for it, and adds its
    /// slots, which are live, to `slots`.
    pub(crate) async fn append_meta(
        &self,
        buffer: &AppendBuffer<M::Page>,
        durable: bool,
        slots: &mut Vec<SlotNo>,
    ) -> Result<()> {
        let first = self.append_own(Stream::Meta, buffer, durable).await?;
        let space = &mut self.parts.borrow_mut().space;
        for slot in (first.0..first.0 + buffer.spares.len() as u32).map(SlotNo) {
            space.add_live(slot);
            slots.push(slot);
        }
        Ok(())
    }
}

fn highest_version(spares: &[Spare]) -> Version {
    spares.iter().map(|spare| spare.version).max().unwrap_or_default()
}
