//! Append-only zones: the contract between the FTL and the medium that stores its pages.
//!
//! A zone has `slots` places of one page each. It is filled by appends from slot 0 on, read at any slot, and reset as
//! a whole. An append is described by an [`AppendHeader`] and one [`Spare`] per slot. Both are stored with the pages
//! (in the spare area on NAND, in a header page before the pages of a file zone), so that a scan can find the content
//! of a zone.
use tantalum_base::{Error, PageBuf, PageNo, Payload, Result, SlotNo, Version, ZoneNo};

/// Geometry of a zoned medium. All zones are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneGeometry {
    /// Number of zones.
    pub zones: u32,
    /// Slots in a zone; a slot holds one page of [`tantalum_base::PAGE_BYTES`].
    pub slots_per_zone: u32,
    /// An append occupies a multiple of this many slots (4 KiB pages in a flash page). Slots without a page are
    /// padding.
    pub append_unit_slots: u32,
    /// Slots that an append occupies before its first page (1 for the header page of a file
    /// zone, 0 on NAND, whose spare area needs none).
    pub append_overhead_slots: u32,
    /// Maximum pages in one append.
    pub append_pages_max: u32,
}

impl ZoneGeometry {
    /// Slots that an append of `pages` pages occupies.
    #[inline]
    pub fn append_slots(&self, pages: u32) -> u32 {
        (self.append_overhead_slots + pages).next_multiple_of(self.append_unit_slots)
    }

    /// Pages that one append into `free_slots` remaining slots of a zone can hold.
    #[inline]
    pub fn append_pages_fit(&self, free_slots: u32) -> u32 {
        let usable = free_slots / self.append_unit_slots * self.append_unit_slots;
        usable.saturating_sub(self.append_overhead_slots).min(self.append_pages_max)
    }

    /// The slot at `offset` slots into `zone`.
    #[inline]
    pub fn slot(&self, zone: ZoneNo, offset: u32) -> SlotNo {
        debug_assert!(offset < self.slots_per_zone);
        SlotNo(zone.0 * self.slots_per_zone + offset)
    }

    /// The zone of `slot`.
    #[inline]
    pub fn zone_of(&self, slot: SlotNo) -> ZoneNo {
        ZoneNo(slot.0 / self.slots_per_zone)
    }

    /// The offset of `slot` within its zone, in slots.
    #[inline]
    pub fn offset_of(&self, slot: SlotNo) -> u32 {
        slot.0 % self.slots_per_zone
    }
}

/// The header of an append, stored once per append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AppendHeader {
    /// Number of the zone's opening, counted over the whole device. It is the same in all appends of one opening, and
    /// larger in every later opening. An append whose epoch differs from that of the zone's first append is a
    /// leftover from before a reset.
    pub epoch: u64,
    /// The stream that the zone belongs to; only the FTL interprets it.
    pub stream: u8,
    /// Every change up to this version was durable when this append started.
    pub durable: Version,
    /// First version of the atomic batch that this append belongs to.
    pub batch_first: Version,
    /// Number of versions in that batch, which may span several appends.
    pub batch_len: u32,
}

impl AppendHeader {
    /// Last version of the batch. Saturates, because a medium may return any values.
    pub fn batch_last(&self) -> Version {
        Version(self.batch_first.0.saturating_add(u64::from(self.batch_len)).saturating_sub(1))
    }
}

/// The kind of content in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotKind {
    /// A host page, as the host wrote it.
    Data = 1,
    /// A host page that cleaning copied; it keeps its old version.
    Copy = 2,
    /// FTL records: changes of the mapping without page content.
    Record = 3,
    /// Part of a checkpoint.
    Checkpoint = 4,
    /// Changes of the mapping since a checkpoint.
    Delta = 5,
    /// Part of a power-loss dump: a host page or FTL metadata.
    Dump = 6,
    /// Like `Copy`, for a page that a share remapped; its version is that of the share.
    RemappedCopy = 7,
    /// A cached page whose home has the same content.
    Clean = 8,
    /// Like `Copy`, for a cached page whose home has the same content.
    CleanCopy = 9,
}

impl SlotKind {
    /// The kind stored as `byte`.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<SlotKind> {
        Some(match byte {
            1 => SlotKind::Data,
            2 => SlotKind::Copy,
            3 => SlotKind::Record,
            4 => SlotKind::Checkpoint,
            5 => SlotKind::Delta,
            6 => SlotKind::Dump,
            7 => SlotKind::RemappedCopy,
            8 => SlotKind::Clean,
            9 => SlotKind::CleanCopy,
            _ => return None,
        })
    }

    /// Whether the slot holds a host page from which reads are served.
    #[inline]
    pub fn is_page(self) -> bool {
        match self {
            SlotKind::Data | SlotKind::Copy | SlotKind::RemappedCopy => true,
            SlotKind::Clean | SlotKind::CleanCopy => true,
            SlotKind::Record | SlotKind::Checkpoint | SlotKind::Delta | SlotKind::Dump => false,
        }
    }

    /// Whether the page's home has the same content.
    #[inline]
    pub fn is_clean(self) -> bool {
        matches!(self, SlotKind::Clean | SlotKind::CleanCopy)
    }
}

/// Metadata stored beside a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// The kind of content in the slot.
    pub kind: SlotKind,
    /// The logical page; for records and checkpoints, a number that the FTL chooses.
    pub page: PageNo,
    /// The page's version.
    pub version: Version,
    /// Checksum of the content ([`Payload::checksum`]).
    pub checksum: u32,
}

/// The content of a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<P> {
    /// A host page.
    Data(P),
    /// FTL metadata: always real bytes, even if host pages are stamps.
    Meta(PageBuf),
}

impl<P: Payload> Body<P> {
    /// Checksum of the content.
    pub fn checksum(&self) -> u32 {
        match self {
            Body::Data(page) => page.checksum(),
            Body::Meta(bytes) => bytes.checksum(),
        }
    }
}

/// One append that a scan found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedAppend {
    /// The header.
    pub header: AppendHeader,
    /// Offset in the zone of the first page.
    pub first_offset: u32,
    /// Offset in the zone of the first slot after the append.
    pub end_offset: u32,
    /// One spare per page, in order. `Some`: the content of the slot matches its spare. `None`: it does not match
    /// (torn, never written, or decayed).
    pub spares: Vec<Option<Spare>>,
    /// Spares of slots whose content does not match, with their index in `spares`, if the spare itself is readable. A
    /// spare in a header is always readable; on flash it depends on the medium.
    pub damaged: Vec<(u32, Spare)>,
}

/// Everything that one opening of a zone left, whether still needed or not ([`ZoneMedia::inspect`]).
#[derive(Clone, Debug, Default)]
pub struct InspectedZone {
    /// The appends of that opening with intact headers.
    pub appends: Vec<ScannedAppend>,
    /// Checksum of the content of each slot of the zone; `None` if the slot cannot be read.
    pub checksums: Vec<Option<u32>>,
    /// Offsets of slots that cannot be read, with the error.
    pub unreadable: Vec<(u32, Error)>,
    /// Offsets of headers of that opening that are torn or damaged.
    pub broken_headers: Vec<u32>,
    /// Offsets of intact headers with unused bytes that are not zero.
    pub odd_headers: Vec<u32>,
}

/// Both copies of a medium's anchors, by place: number and content of each anchor that is intact and in its place.
pub type AnchorCopies = [Vec<Result<Option<(u64, Vec<u8>)>>>; 2];

/// A zoned medium. Implementations: over simulated NAND, and over a flat store. Wrappers for faults, recording,
/// throttling and checking are [`ZoneLayer`](crate::ZoneLayer)s, which forward the calls that they do not override.
///
/// Appends to one zone get their slots in the order of the first polls of their futures; several may be in flight. At
/// a power cut (the futures are dropped) each unfinished append lands, vanishes or tears.
#[allow(async_fn_in_trait, reason = "media live on one thread; their futures need not be Send")]
pub trait ZoneMedia: 'static {
    /// Content of host pages.
    type Page: Payload;

    /// Whether a read also returns the spare of each page, as on flash, where page and spare share a flash page. The
    /// FTL's map then need not keep content checksums.
    fn reads_spares(&self) -> bool;

    /// The geometry.
    fn geometry(&self) -> ZoneGeometry;

    /// Zones that cannot be used, in ascending order.
    fn retired(&self) -> Vec<ZoneNo>;

    /// Appends `bodies` (1 to `append_pages_max`) to `zone` and returns the slot of the first; the others follow it.
    /// With `durable`, they survive a power cut once this returns. Otherwise they do once a [`sync`](Self::sync) that
    /// starts later returns.
    ///
    /// # Errors
    /// `ProgramFailed`: the content of the append is undefined, and the zone accepts no append before its next reset.
    /// Its earlier content stays readable. `Io`: from the medium.
    /// # Panics
    /// If the append does not fit in the rest of the zone, or `spares` and `bodies` differ in length.
    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<Self::Page>],
        durable: bool,
    ) -> Result<SlotNo>;

    /// Reads the host pages at `slots` into `out` (same length), in parallel if the medium can. Does not verify
    /// checksums: the caller knows the expected content.
    ///
    /// # Errors
    /// `Uncorrectable`, with the slot, if the medium cannot read a page back; `Corrupt` if a slot holds no host page.
    /// `out` is unspecified after an error.
    async fn read(&self, slots: &[SlotNo], out: &mut [Self::Page]) -> Result<()>;

    /// Like [`read`](Self::read). If [`reads_spares`](Self::reads_spares), it also stores the spare of each page in
    /// `spares` (same length); otherwise `spares` is unchanged.
    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [Self::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()>;

    /// Reads FTL metadata from `out.len()` slots, starting at `first`. Errors as for [`read`](Self::read).
    async fn read_meta_run(&self, first: SlotNo, out: &mut [PageBuf]) -> Result<()>;

    /// Like [`read_meta_run`](Self::read_meta_run), for one slot.
    async fn read_meta(&self, slot: SlotNo) -> Result<PageBuf> {
        let mut page = [PageBuf::zero()];
        self.read_meta_run(slot, &mut page).await?;
        let [page] = page;
        Ok(page)
    }

    /// Returns the appends of the zone from `from_offset` (the start of an append) on, with contents checked against
    /// their spares. Continues past unreadable slots, so a gap between two appends is an append that was torn or has
    /// decayed. Returns only appends of the zone's current epoch: `epoch` if given, otherwise the latest among the
    /// readable appends.
    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>>;

    /// Like [`scan`](Self::scan) from slot 0. Reads only the spare areas if the medium stores them apart from the
    /// pages.
    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>>;

    /// The header of the zone's first append, if readable; cheaper than a scan.
    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>>;

    /// Discards the content of the zone; the next append starts at slot 0. The caller ensures that nothing in it is
    /// needed, even if a power cut undoes the reset.
    ///
    /// # Errors
    /// `ZoneRetired` if the zone cannot be used again.
    async fn reset(&self, zone: ZoneNo) -> Result<()>;

    /// Deallocates a zone, that is, returns its space to the owner, unless the medium owns it permanently. Returns
    /// whether it did. Afterwards nothing of the zone can be read. The zone must be [reset](Self::reset), no recovery
    /// may look for anything in it, and no other operation on it may be in flight.
    async fn give_room_back(&self, zone: ZoneNo) -> Result<bool> {
        let _ = zone;
        Ok(false)
    }

    /// For each zone, whether it may have space allocated now. The other zones get space as they are written.
    fn zones_with_room(&self) -> Vec<bool> {
        vec![true; self.geometry().zones as usize]
    }

    /// Makes every append that had returned before this call durable.
    async fn sync(&self) -> Result<()>;

    /// Number of anchors that the medium keeps beside its zones. Anchors are pages that tell recovery where to begin.
    /// 0 if the medium has no room for them.
    fn anchors(&self) -> u32;

    /// Writes anchor `number` durably. It replaces the anchor whose number is smaller by [`anchors`](Self::anchors).
    /// `content` has at most [`ANCHOR_BYTES_MAX`](crate::file_zones::ANCHOR_BYTES_MAX) bytes.
    ///
    /// # Panics
    /// If the medium has no anchors.
    async fn write_anchor(&self, number: u64, content: &[u8]) -> Result<()>;

    /// The intact anchors with their numbers, ascending. A number occurs twice if its copies differ.
    async fn read_anchors(&self) -> Result<Vec<(u64, Vec<u8>)>>;

    /// Reads the whole zone in order, and returns everything that its opening `epoch` left. Unreadable slots are part
    /// of the result. `None` if the medium keeps no headers between the pages, so that a scan gives the same
    /// information.
    async fn inspect(&self, zone: ZoneNo, epoch: u64) -> Result<Option<InspectedZone>> {
        let _ = (zone, epoch);
        Ok(None)
    }

    /// Reads both copies of the anchors separately. A copy that cannot be read counts as not intact. `None` if the
    /// medium keeps no copies.
    async fn inspect_anchors(&self) -> Result<Option<AnchorCopies>> {
        Ok(None)
    }

    /// Takes the time of persisting changes of a mapping table: the program of one flash page, in blocks beside the
    /// zones. This FTL recovers its mapping from the spares of its log and writes none; the simulated drives did
    /// (DuraSSD, sections 2.3 and 3.1.2). Returns at once if no time is simulated.
    async fn persist_mapping(&self) -> Result<()>;
}
