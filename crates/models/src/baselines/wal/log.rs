//! The log area: zones that are filled in order and reset from the oldest on.
use crate::fault_points::Fault;
use std::cell::RefCell;
use std::collections::VecDeque;
use tantalum_base::{Error, ErrorKind, PageBuf, PageNo, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_ftl::ZonePins;
use tantalum_media::{AppendHeader, Body, SlotKind, Spare, ZoneGeometry, ZoneMedia};
use tantalum_runtime::join_all;
use tantalum_runtime::sync::{Semaphore, WaitQueue};

use super::options::{WalCommit, WalOptions};

/// Stream number of the log's appends; the FTL's own are 0 to 2.
pub(super) const LOG_STREAM: u8 = 3;

/// A zone of the log with content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    pub zone: ZoneNo,
    pub epoch: u64,
    /// Number of slots used by appends; all slots if this is not known.
    pub used_slots: u32,
    /// Highest transaction with a page or a record in it.
    pub last: u64,
}

/// The place of a transaction in the order of all transactions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub number: u64,
    /// All transactions up to this one are durable, or were dropped by a recovery.
    pub durable: u64,
}

/// The result of logging a commit.
pub(super) struct Committed {
    pub number: u64,
    /// The slot and checksum of each page.
    pub pages: Vec<(SlotNo, u32)>,
}

#[derive(Default)]
struct Areas {
    /// Oldest first; the last one is being filled.
    filled: VecDeque<Filled>,
    free: VecDeque<ZoneNo>,
    epoch: u64,
    /// Number of commit records still to be written, for which room must be kept.
    records_due: u32,
    /// Number of free zones needed by the waiting writer.
    wanted: u32,
}

/// One append of a transaction: its pages `start..end`, to `zone`.
struct Piece {
    zone: ZoneNo,
    epoch: u64,
    start: usize,
    end: usize,
}

/// Appends to the log area.
pub(super) struct Log<M> {
    media: M,
    geometry: ZoneGeometry,
    options: WalOptions,
    areas: RefCell<Areas>,
    /// Transactions wait for room in the order of arrival.
    turn: Semaphore,
    /// Pins the zones from which versions are being read.
    pub pins: ZonePins,
    /// Signals free zones, or the failure of the device.
    pub room: WaitQueue,
    /// Signals that the log is filling up.
    pub filling: WaitQueue,
}

impl<M: ZoneMedia> Log<M> {
    /// An empty log on `media`. All zones must be reset, except retired ones.
    pub(super) fn new(media: M, options: WalOptions) -> Self {
        Log::with(media, options, Vec::new(), 0)
    }

    /// The log on `media` with the zones `filled`, oldest first. All other zones must be reset,
    /// except retired ones. `epoch` must be at least as high as any used before.
    pub(super) fn with(media: M, options: WalOptions, filled: Vec<Filled>, epoch: u64) -> Self {
        let geometry = media.geometry();
        let retired = media.retired();
        let is_free = |zone: &ZoneNo| {
            !retired.contains(zone) && filled.iter().all(|filled| filled.zone != *zone)
        };
        let free = (0..geometry.zones).map(ZoneNo).filter(is_free).collect();
        let areas = Areas { filled: filled.into(), free, epoch, ..Areas::default() };
        Log {
            media,
            geometry,
            options,
            areas: RefCell::new(areas),
            turn: Semaphore::new("the redo log's turn", 1),
            pins: ZonePins::new(geometry),
            room: WaitQueue::new("room in the redo log"),
            filling: WaitQueue::new("a full redo log"),
        }
    }

    pub(super) fn media(&self) -> &M {
        &self.media
    }

    /// Number of slots for a commit of `pages` pages, over all its pieces, without the waste at
    /// zone ends.
    pub(super) fn slots_of(&self, pages: usize) -> u64 {
        let records = u64::from(self.options.commit.records());
        let most = self.geometry.append_pages_max as usize;
        let whole = u64::from(self.geometry.append_slots(self.geometry.append_pages_max));
        let rest = (pages % most) as u32;
        let rest = if rest > 0 { u64::from(self.geometry.append_slots(rest)) } else { 0 };
        let record = u64::from(self.geometry.append_slots(1));
        (pages / most) as u64 * whole + rest + records * record
    }

    /// If the oldest zone should be copied home (no zone is free, or a writer waits), the highest
    /// transaction in it.
    pub(super) fn oldest_due(&self) -> Option<u64> {
        let areas = self.areas.borrow();
        let due = areas.free.len() < areas.wanted.max(1) as usize && areas.filled.len() > 1;
        due.then(|| areas.filled[0].last)
    }

    /// The highest transaction in the log.
    pub(super) fn newest(&self) -> Option<u64> {
        self.areas.borrow().filled.iter().map(|filled| filled.last).max()
    }

    /// Number of slots that appends can still use: in the zone being filled and in free zones.
    fn room_slots(&self, areas: &Areas) -> u64 {
        let zone = self.geometry.slots_per_zone;
        let open = areas.filled.back().map_or(0, |open| zone - open.used_slots);
        u64::from(open) + u64::from(zone) * areas.free.len() as u64
    }

    /// Waits until there is room for `pages` pages and for all commit records still to be written.
    async fn admit(&self, pages: usize, failed: &impl Fn() -> Result<()>) -> Result<()> {
        let fits = || {
            if let Err(error) = failed() {
                return Some(Err(error));
            }
            let areas = &mut *self.areas.borrow_mut();
            let records = areas.records_due + self.options.commit.records();
            let needed = self.options.slots_max(&self.geometry, pages as u64, u64::from(records));
            if self.room_slots(areas) >= needed {
                areas.wanted = 0;
                areas.records_due = records;
                return Some(Ok(()));
            }
            areas.wanted = areas.free.len() as u32 + 1;
            self.filling.wake_all();
            None
        };
        self.room.until(fits).await
    }

    /// Allocates places for `pages` pages of transaction `number`.
    fn place(&self, number: u64, pages: usize) -> Vec<Piece> {
        let areas = &mut *self.areas.borrow_mut();
        let mut pieces = Vec::with_capacity(1);
        let mut start = 0;
        while start < pages {
            let rest = areas.filled.back().map_or(0, |open| {
                self.geometry.append_pages_fit(self.geometry.slots_per_zone - open.used_slots)
            });
            if rest == 0 {
                let zone = areas.free.pop_front().expect("room was admitted before");
                areas.epoch += 1;
                let epoch = areas.epoch;
                areas.filled.push_back(Filled { zone, epoch, used_slots: 0, last: number });
                self.filling.wake_all();
                continue;
            }
            let end = pages.min(start + rest as usize);
            let open = areas.filled.back_mut().expect("there is room in it");
            open.used_slots += self.geometry.append_slots((end - start) as u32);
            open.last = open.last.max(number);
            pieces.push(Piece { zone: open.zone, epoch: open.epoch, start, end });
            start = end;
        }
        pieces
    }

    /// Logs a transaction with these pages, in order with all others. It is committed when this
    /// returns. `take_place` provides its number; it is called when there is room.
    pub(super) async fn commit(
        &self,
        pages: &[(PageNo, M::Page)],
        failed: impl Fn() -> Result<()>,
        take_place: impl FnOnce() -> Place,
    ) -> Result<Committed> {
        let turn = self.turn.acquire(1).await;
        self.admit(pages.len(), &failed).await?;
        let Place { number, durable } = take_place();
        let spares: Vec<Spare> = pages
            .iter()
            .map(|(page, content)| Spare {
                kind: SlotKind::Data,
                page: *page,
                version: Version(number),
                checksum: content.checksum(),
            })
            .collect();
        let bodies: Vec<Body<M::Page>> =
            pages.iter().map(|(_, content)| Body::Data(content.clone())).collect();
        let header = AppendHeader {
            stream: LOG_STREAM,
            durable: Version(durable),
            batch_first: Version(number),
            batch_len: pages.len() as u32 + self.options.commit.records(),
            ..AppendHeader::default()
        };
        let pieces = self.place(number, pages.len());
        drop(turn);
        let slots = self.append(header, pieces, &spares, &bodies).await?;
        if self.options.commit == WalCommit::Record {
            self.append_record(header).await?;
        }
        let checksums = spares.iter().map(|spare| spare.checksum);
        Ok(Committed { number, pages: slots.into_iter().zip(checksums).collect() })
    }

    /// Logs the commit record of the transaction of `header`, whose pages are all durable. It does
    /// not wait for a turn: a transaction that waits for room may wait for this very one.
    async fn append_record(&self, header: AppendHeader) -> Result<()> {
        let mut bytes = PageBuf::zero();
        bytes.make_mut()[..8].copy_from_slice(&header.batch_first.0.to_le_bytes());
        bytes.make_mut()[8..12].copy_from_slice(&header.batch_len.to_le_bytes());
        let spare = Spare {
            kind: SlotKind::Record,
            page: PageNo(0),
            version: header.batch_first,
            checksum: bytes.checksum(),
        };
        let pieces = self.place(header.batch_first.0, 1);
        self.areas.borrow_mut().records_due -= 1;
        self.append(header, pieces, &[spare], &[Body::Meta(bytes)]).await.map(|_| ())
    }

    /// Sends the pieces to the medium together, each with `header` and its zone's epoch. All of them are
    /// polled before the first wait, so that they reach the medium in the order in which their places
    /// were allocated.
    async fn append(
        &self,
        header: AppendHeader,
        pieces: Vec<Piece>,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
    ) -> Result<Vec<SlotNo>> {
        let send = |piece: &Piece| {
            let header = AppendHeader { epoch: piece.epoch, ..header };
            let (zone, range) = (piece.zone, piece.start..piece.end);
            async move {
                let (spares, bodies) = (&spares[range.clone()], &bodies[range.clone()]);
                let first = self.media.append(zone, &header, spares, bodies, true).await?;
                Ok((first.0..first.0 + range.len() as u32).map(SlotNo).collect::<Vec<SlotNo>>())
            }
        };
        let slots = join_all(pieces.iter().map(send).collect()).await?;
        Ok(slots.concat())
    }

    /// Reads `slots` and checks each against the page and checksum in `expected`.
    ///
    /// # Errors
    /// `Checksum` with the page that has decayed; errors of the medium.
    pub(super) async fn read(
        &self,
        slots: &[SlotNo],
        expected: impl Iterator<Item = (PageNo, u32)>,
    ) -> Result<Vec<M::Page>> {
        let mut contents = vec![M::Page::zero(); slots.len()];
        if !slots.is_empty() {
            self.media.read(slots, &mut contents).await?;
        }
        for ((page, checksum), (slot, content)) in expected.zip(slots.iter().zip(&contents)) {
            if content.checksum() != checksum && !Fault::LogUnchecked.is_planted() {
                let context = format!("page {page} at {slot:?} of the redo log has decayed");
                return Err(Error::new(ErrorKind::Checksum, context));
            }
        }
        Ok(contents)
    }

    /// Resets every sealed zone that contains nothing of a transaction above `home`.
    pub(super) async fn release(&self, home: u64) -> Result<()> {
        loop {
            let zone = {
                let areas = &mut *self.areas.borrow_mut();
                let due = areas.filled.len() > 1 && areas.filled[0].last <= home;
                if !due {
                    return Ok(());
                }
                areas.filled.pop_front().map(|filled| filled.zone)
            };
            let Some(zone) = zone else { return Ok(()) };
            self.pins.wait_until_unpinned(zone).await;
            match self.media.reset(zone).await {
                Ok(()) => self.areas.borrow_mut().free.push_back(zone),
                // From now on the log is one zone shorter.
                Err(error) if error.kind() == ErrorKind::ZoneRetired => {}
                Err(error) => return Err(error),
            }
            self.room.wake_all();
        }
    }
}
