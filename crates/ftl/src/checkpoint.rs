//! Checkpoints: the mapping on media, written while hosts go on.
//!
//! A checkpoint is a run of pages in zones of the meta stream: the zone table, the map in
//! chunks of as many entries as a page can hold (`entries`), and a footer that puts it in force. Each
//! chunk is caught at its own moment, so it may hold changes newer than the checkpoint's start;
//! recovery replays everything after the start, and versions settle what is newer. The footer is
//! written when all that the chunks point to is durable. `docs/format.md` has the bytes.
use tantalum_base::checksum::{crc32c, crc32c_append};
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, Payload, Result, SlotNo, Version,
};
use tantalum_media::{Body, SlotKind, Spare, ZoneGeometry, ZoneMedia};

use crate::entries::{self, Encoder, Line, NEXT_ENTRY_BYTES_MAX, Order, Style};
use crate::fault_points::Fault;
use crate::ftl::{DumpsVoid, Ftl, State};
use crate::map::Entry;
use crate::zones::{Stream, ZoneState};

const MAGIC: u64 = 0x7470_6b43_746e_6154; // "TantCkpt"
const HEADER_BYTES: usize = 40;
const SEAL_AT: usize = 36;
const ZONE_ENTRY_BYTES: usize = 24;
/// Pages that a chunk of the map covers at the least, where it does not end with the map.
const MAP_ENTRIES_MIN: usize = (PAGE_BYTES - HEADER_BYTES) / NEXT_ENTRY_BYTES_MAX;
/// Zones in a page of the zone table.
pub const ZONE_ENTRIES: usize = (PAGE_BYTES - HEADER_BYTES) / ZONE_ENTRY_BYTES;

/// What a page of a checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PieceKind {
    /// Part of the zone table.
    Zones = 1,
    /// A chunk of the map.
    Map = 2,
    /// The end, which puts the checkpoint in force.
    Footer = 3,
}

/// Head of every page of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceHeader {
    /// Which checkpoint.
    pub id: u64,
    /// What the page is.
    pub kind: PieceKind,
    /// Its number among those of its kind; of a chunk of the map its first page.
    pub index: u32,
    /// Zone openings so far when the page was caught: what it points to is intact unless the
    /// zone was opened later.
    pub epoch: u64,
    /// Entries of a chunk of the map, otherwise 0.
    pub entries: u32,
}

/// What the zone table says of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ZoneEntry {
    /// Its opening at the start of the checkpoint; 0 where it was free.
    pub epoch: u64,
    /// Slots that the checkpoint covers; a scan may start there.
    pub covered_slots: u32,
    /// Resets so far.
    pub resets: u32,
    /// The stream that filled it.
    pub stream: u8,
}

/// What the footer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Every change up to this version is in the checkpoint.
    pub covered: Version,
    /// Every change up to this version is durable.
    pub durable: Version,
    /// No version from here on has been used.
    pub next_version: Version,
    /// Pages of the checkpoint, footer included.
    pub pieces: u32,
    /// Logical pages of the device.
    pub pages: u64,
    /// Which dumps are void.
    pub dumps_void: DumpsVoid,
}

/// Slots that a checkpoint of `pages` logical pages takes at the most.
pub fn slots_max(geometry: &ZoneGeometry, pages: u64) -> u64 {
    let map = pages.div_ceil(MAP_ENTRIES_MIN as u64);
    let zones = u64::from(geometry.zones).div_ceil(ZONE_ENTRIES as u64);
    let most = u64::from(geometry.append_pages_max);
    let appends = (map + zones).div_ceil(most);
    let footer = u64::from(geometry.append_slots(1));
    appends * u64::from(geometry.append_slots(geometry.append_pages_max))
        + footer
        + u64::from(geometry.append_slots(1))
}

struct Writer {
    bytes: [u8; PAGE_BYTES],
    at: usize,
}

impl Writer {
    fn new(header: &PieceHeader) -> Self {
        let mut writer = Writer { bytes: [0; PAGE_BYTES], at: 0 };
        writer.u64(MAGIC);
        writer.u64(header.id);
        writer.u32(header.kind as u32);
        writer.u32(header.index);
        writer.u64(header.epoch);
        writer.u32(header.entries);
        writer.at = HEADER_BYTES;
        writer
    }

    #[inline]
    fn u32(&mut self, value: u32) {
        self.bytes[self.at..self.at + 4].copy_from_slice(&value.to_le_bytes());
        self.at += 4;
    }

    #[inline]
    fn u64(&mut self, value: u64) {
        self.bytes[self.at..self.at + 8].copy_from_slice(&value.to_le_bytes());
        self.at += 8;
    }

    fn finish(&self) -> PageBuf {
        PageBuf::copy_from(&self.bytes)
    }
}

struct Reader<'a> {
    page: &'a PageBuf,
    at: usize,
}

impl Reader<'_> {
    fn u32(&mut self) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.page[self.at..self.at + 4]);
        self.at += 4;
        u32::from_le_bytes(word)
    }

    fn u64(&mut self) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.page[self.at..self.at + 8]);
        self.at += 8;
        u64::from_le_bytes(word)
    }
}

/// The head of a checkpoint's page; `None` where it is none.
pub fn decode_header(page: &PageBuf) -> Option<PieceHeader> {
    let mut reader = Reader { page, at: 0 };
    if reader.u64() != MAGIC {
        return None;
    }
    let id = reader.u64();
    let kind = match reader.u32() {
        1 => PieceKind::Zones,
        2 => PieceKind::Map,
        3 => PieceKind::Footer,
        _ => return None,
    };
    let (index, epoch) = (reader.u32(), reader.u64());
    Some(PieceHeader { id, kind, index, epoch, entries: reader.u32() })
}

/// Writes the checksum of a checkpoint's page into its head, so that it can be checked without what
/// is stored beside it.
fn seal(mut page: PageBuf) -> PageBuf {
    let checksum = page.checksum();
    page.make_mut()[SEAL_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    page
}

/// Whether a page is what was sealed as a checkpoint's.
pub fn is_sealed(page: &PageBuf) -> bool {
    // As it was before it was sealed.
    let before = crc32c_append(crc32c(&page[..SEAL_AT]), &[0; HEADER_BYTES - SEAL_AT]);
    let checksum = crc32c_append(before, &page[HEADER_BYTES..]);
    page[SEAL_AT..HEADER_BYTES] == checksum.to_le_bytes()
}

/// How the entries of the map are kept.
fn style(checksums: bool) -> Style {
    Style { order: Order::Pages, checksums }
}

/// The entries of a chunk of the map, by page.
///
/// # Errors
/// `Corrupt` where it is none.
pub fn decode_map(
    header: &PieceHeader,
    page: &PageBuf,
    checksums: bool,
) -> Result<Vec<(PageNo, Entry)>> {
    let entry = |line: &Line| Some((PageNo(u64::from(line.page)), Entry::from_line(line)?));
    let (first_page, count) = (header.index, header.entries);
    let entries = entries::decode(page, style(checksums), HEADER_BYTES, first_page, count, entry);
    entries.ok_or_else(|| {
        let context = format!("the map of checkpoint {} from page {} on", header.id, header.index);
        Error::new(ErrorKind::Corrupt, context)
    })
}

/// The entries of a page of the zone table: all of them, also those behind the last zone.
pub fn decode_zones(page: &PageBuf) -> impl Iterator<Item = ZoneEntry> + '_ {
    let mut reader = Reader { page, at: HEADER_BYTES };
    (0..ZONE_ENTRIES).map(move |_| {
        let (epoch, covered_slots, resets) = (reader.u64(), reader.u32(), reader.u32());
        let stream = reader.u32() as u8;
        reader.at += ZONE_ENTRY_BYTES - 20;
        ZoneEntry { epoch, covered_slots, resets, stream }
    })
}

/// What a footer says.
pub fn decode_footer(page: &PageBuf) -> Footer {
    let mut reader = Reader { page, at: HEADER_BYTES };
    let mut footer = Footer {
        covered: Version(reader.u64()),
        durable: Version(reader.u64()),
        next_version: Version(reader.u64()),
        pages: reader.u64(),
        pieces: reader.u32(),
        dumps_void: DumpsVoid::default(),
    };
    reader.at += 4;
    footer.dumps_void = DumpsVoid { mapping: reader.u64(), frames: reader.u64() };
    footer
}

fn encode_footer(header: &PieceHeader, footer: &Footer) -> PageBuf {
    let mut writer = Writer::new(header);
    writer.u64(footer.covered.0);
    writer.u64(footer.durable.0);
    writer.u64(footer.next_version.0);
    writer.u64(footer.pages);
    writer.u32(footer.pieces);
    writer.u32(0);
    writer.u64(footer.dumps_void.mapping);
    writer.u64(footer.dumps_void.frames);
    seal(writer.finish())
}

impl<P> State<P> {
    fn encode_zones(&self, header: &PieceHeader) -> PageBuf {
        let mut writer = Writer::new(header);
        let first = header.index as usize * ZONE_ENTRIES;
        for (_, zone) in self.zones.iter().skip(first).take(ZONE_ENTRIES) {
            let in_use = matches!(zone.state, ZoneState::Open | ZoneState::Full);
            writer.u64(if in_use { zone.epoch } else { 0 });
            writer.u32(zone.covered_slots);
            writer.u32(zone.resets);
            writer.u32(zone.stream as u32);
            writer.at += ZONE_ENTRY_BYTES - 20;
        }
        writer.finish()
    }

    /// The chunk that starts with the first page from `next` on that was ever written, as long as
    /// it gets, and the page behind it; `None` where there is no such page.
    fn encode_map(&self, header: PieceHeader, next: u64) -> Option<(PageBuf, u64)> {
        let first = self.map.next_written(next)?;
        let style = style(self.map.has_checksums());
        let mut encoder = Encoder::new(style, HEADER_BYTES, first as u32);
        let mut behind = self.map.pages();
        let mut next = Some(first);
        while let Some(page) = next {
            if !encoder.push(&self.map.get(PageNo(page)).to_line(PageNo(page))) {
                behind = page;
                break;
            }
            next = self.map.next_written(page + 1);
        }
        let header = PieceHeader { index: first as u32, entries: encoder.count(), ..header };
        Some((encoder.finish(&Writer::new(&header).bytes[..HEADER_BYTES]), behind))
    }

    /// The next pages of checkpoint `id`, at most `most`, from `cursor` on; advances it.
    fn catch_pieces(&self, id: u64, cursor: &mut Cursor, most: usize) -> Vec<(PageNo, PageBuf)> {
        let epoch = self.zones.epoch();
        let zone_pages = (self.zones.geometry().zones as usize).div_ceil(ZONE_ENTRIES) as u32;
        let mut pieces = Vec::with_capacity(most);
        while pieces.len() < most {
            let header =
                PieceHeader { id, kind: PieceKind::Map, index: cursor.zones, epoch, entries: 0 };
            let page = if cursor.zones < zone_pages {
                cursor.zones += 1;
                self.encode_zones(&PieceHeader { kind: PieceKind::Zones, ..header })
            } else {
                let Some((page, behind)) = self.encode_map(header, cursor.next_page) else {
                    cursor.next_page = self.map.pages();
                    break;
                };
                cursor.next_page = behind;
                page
            };
            pieces.push((PageNo(u64::from(cursor.written)), seal(page)));
            cursor.written += 1;
        }
        pieces
    }
}

/// How far the writing of a checkpoint has come.
#[derive(Default)]
struct Cursor {
    // Pages of the zone table, and of the map, that are caught.
    zones: u32,
    next_page: u64,
    written: u32,
}

impl<M: ZoneMedia> Ftl<M> {
    /// Writes checkpoints in the background as they fall due, until the FTL latches. Spawn it
    /// once.
    pub async fn run_checkpointer(&self) -> Result<()> {
        loop {
            let due = || {
                let state = self.state.borrow();
                (state.latched.is_some() || self.checkpoint_due(&state)).then_some(())
            };
            self.checkpoint_wanted.until(due).await;
            self.check_latch()?;
            self.checkpoint().await.inspect_err(|error| self.latch(error))?;
        }
    }

    pub(crate) fn checkpoint_due(&self, state: &State<M::Page>) -> bool {
        state.slots_since_checkpoint >= self.options.checkpoint_interval(&self.geometry)
            || state.deltas.checkpoint_due(state.checkpoint_places.len() as u64)
    }

    /// Writes a checkpoint and makes it durable, with every change that had returned before.
    pub async fn checkpoint(&self) -> Result<()> {
        let turn = self.checkpoint_turn.acquire(1).await;
        let (id, covered) = self.start_checkpoint();
        let places = self.write_pieces(id).await?;
        let caught = Version(self.state.borrow().next_version.0 - 1);
        if !Fault::NoSyncBeforeFooter.is_planted() {
            self.sync_appends().await?;
            self.wait_for_hosts(caught).await?;
        }
        let (next_version, dumps_void) = {
            let state = self.state.borrow();
            (state.next_version, state.dumps_void)
        };
        let footer = Footer {
            covered,
            durable: caught,
            next_version,
            pieces: places.len() as u32 + 1,
            pages: self.options.pages,
            dumps_void,
        };
        self.finish_checkpoint(id, footer, places).await?;
        drop(turn);
        // Cleaning need not leave zones to it any more.
        self.room.wake_all();
        self.cleaning_wanted.wake_all();
        Ok(())
    }

    /// Writes the checkpoint that ends a recovery: versions up to `skip_to` are never used, so
    /// that what recovery dropped can never be taken for something newer.
    pub(crate) async fn checkpoint_recovery(&self, skip_to: Version) -> Result<()> {
        let _turn = self.checkpoint_turn.acquire(1).await;
        let (id, _) = self.start_checkpoint();
        let places = self.write_pieces(id).await?;
        self.sync_appends().await?;
        let dumps_void = self.state.borrow().dumps_void;
        let footer = Footer {
            covered: skip_to,
            durable: skip_to,
            next_version: skip_to.next(),
            pieces: places.len() as u32 + 1,
            pages: self.options.pages,
            dumps_void,
        };
        self.finish_checkpoint(id, footer, places).await?;
        let state = &mut *self.state.borrow_mut();
        state.tracker = crate::durable::DurableTracker::new(skip_to);
        state.next_version = skip_to.next();
        Ok(())
    }

    fn start_checkpoint(&self) -> (u64, Version) {
        let state = &mut *self.state.borrow_mut();
        state.slots_since_checkpoint = 0;
        // In one zone a page of another checkpoint says that the one before was finished.
        if std::mem::replace(&mut state.checkpoint_unfinished, true) {
            state.zones.seal(Stream::Meta);
        }
        // The id is taken at once: pieces of an attempt that fails are never mixed with others.
        state.checkpoint_id += 1;
        state.deltas.checkpoint_started(state.checkpoint_id);
        let covered = state.tracker.watermark();
        state.zones.checkpoint_started(covered);
        state.checkpoint_epoch = state.zones.epoch();
        (state.checkpoint_id, covered)
    }

    /// Writes zone table and map; where each page went.
    async fn write_pieces(&self, id: u64) -> Result<Vec<SlotNo>> {
        let mut cursor = Cursor::default();
        let mut places = Vec::new();
        loop {
            let _turn = self.meta_turn.acquire(1).await;
            self.admit(Stream::Meta, 1, || 0).await?;
            let pieces = {
                let state = self.state.borrow();
                let room = state.zones.room_pages(Stream::Meta) as usize;
                state.catch_pieces(id, &mut cursor, room)
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
        let mut buffer = self.state.borrow_mut().take_buffer();
        for (page, body) in pieces {
            let checksum = body.checksum();
            let (kind, version) = (SlotKind::Checkpoint, Version(id));
            buffer.spares.push(Spare { kind, page, version, checksum });
            buffer.bodies.push(Body::Meta(body));
        }
        let first = self.append_own(Stream::Meta, &buffer, durable).await?;
        let state = &mut *self.state.borrow_mut();
        for index in 0..buffer.spares.len() as u32 {
            let slot = SlotNo(first.0 + index);
            state.zones.add_live(slot);
            places.push(slot);
        }
        state.give_buffer(buffer);
        Ok(())
    }

    /// Writes the footer, which puts the checkpoint in force, and frees the one before.
    async fn finish_checkpoint(
        &self,
        id: u64,
        footer: Footer,
        mut places: Vec<SlotNo>,
    ) -> Result<()> {
        let epoch = self.state.borrow().zones.epoch();
        let header = PieceHeader { id, kind: PieceKind::Footer, index: 0, epoch, entries: 0 };
        let page = encode_footer(&header, &footer);
        let turn = self.meta_turn.acquire(1).await;
        self.admit(Stream::Meta, 1, || 0).await?;
        let number = PageNo(places.len() as u64);
        self.append_checkpoint_pages(id, vec![(number, page)], &mut places, true).await?;
        drop(turn);
        self.begin_era(id, &places).await?;
        let emptied: Vec<_> = {
            let state = &mut *self.state.borrow_mut();
            state.statistics.checkpoints += 1;
            state.checkpoint_unfinished = false;
            state.checkpoint_says = footer.durable;
            state.checkpoint_in_force = id;
            state.logged.covered_up_to(footer.covered);
            let void = state.deltas.checkpoint_finished(id);
            for slot in void.into_iter().chain(std::mem::take(&mut state.pinned)) {
                state.zones.remove_live(slot);
            }
            for slot in std::mem::replace(&mut state.checkpoint_places, places) {
                state.zones.remove_live(slot);
            }
            for slot in state.records.take_covered(footer.covered) {
                state.map.set_record(slot, false);
                state.zones.remove_live(slot);
                state.cleaning_stuck = false;
            }
            let emptied = state.zones.iter().filter(|(_, zone)| {
                zone.stream == Stream::Meta
                    && zone.state == ZoneState::Full
                    && zone.live_slots == 0
                    && !zone.being_emptied
            });
            let emptied: Vec<_> = emptied.map(|(number, _)| number).collect();
            for number in &emptied {
                state.zones.get_mut(*number).being_emptied = true;
            }
            emptied
        };
        self.entries_room.wake_all();
        self.wake_backup();
        for zone in emptied {
            self.reset_emptied(zone).await?;
        }
        self.cleaning_wanted.wake_all();
        Ok(())
    }

    /// Makes everything durable and writes a checkpoint, so that the next opening is quick.
    pub async fn close(&self) -> Result<()> {
        self.check_latch()?;
        // The checkpoint covers what was durable when it began.
        self.sync().await?;
        // And is to be the last thing that is appended.
        self.cleaner_rest.begin();
        self.cleaning_wanted.wake_all();
        self.cleaner_rest.begun().await;
        self.checkpoint().await?;
        self.end_era().await
    }
}
