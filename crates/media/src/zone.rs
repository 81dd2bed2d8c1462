//! Append-only zones: the contract between the FTL and the medium that stores its pages.
//!
//! A zone has `slots` places of one page each. It is filled by appends from slot 0 on, read at
//! any slot, and reset as a whole. An append is described by an [`AppendHeader`] and one
//! [`Spare`] a slot; both are stored with the pages (in NAND's spare area, or in a header page
//! before the pages of a file zone), so that a scan finds out what a zone holds.
use tantalum_base::{Error, PageBuf, PageNo, Payload, Result, SlotNo, Version, ZoneNo};

/// Shape of a zoned medium. All zones are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneGeometry {
    /// Number of zones.
    pub zones: u32,
    /// Slots in a zone; a slot holds one page of [`tantalum_base::PAGE_BYTES`].
    pub slots_per_zone: u32,
    /// An append occupies a multiple of this many slots (4 KiB pages in a flash page); what the
    /// pages do not fill is padding.
    pub append_unit_slots: u32,
    /// Slots that an append occupies before its first page (1 for the header page of a file
    /// zone, 0 on NAND, whose spare area needs none).
    pub append_overhead_slots: u32,
    /// Pages in one append at the most.
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

    /// How many slots into its zone `slot` lies.
    #[inline]
    pub fn offset_of(&self, slot: SlotNo) -> u32 {
        slot.0 % self.slots_per_zone
    }
}

/// Stored once per append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AppendHeader {
    /// Number of the zone's opening, counted over the whole device: the same in all appends of one
    /// opening, larger in every later one. An append whose epoch differs from that of the zone's
    /// first append is left over from before a reset.
    pub epoch: u64,
    /// The stream that the zone belongs to; only the FTL interprets it.
    pub stream: u8,
    /// Every change up to this version was durable when this append was started.
    pub durable: Version,
    /// First version of the atomic batch that this append belongs to.
    pub batch_first: Version,
    /// Versions in that batch; the batch may span several appends.
    pub batch_len: u32,
}

impl AppendHeader {
    /// Last version of the batch; what the medium says may be anything.
    pub fn batch_last(&self) -> Version {
        Version(self.batch_first.0.saturating_add(u64::from(self.batch_len)).saturating_sub(1))
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotKind {
    /// A host's page, as written.
    Data = 1,
    /// A host's page, moved by cleaning under its old version.
    Copy = 2,
    /// FTL records: changes of the mapping without page content.
    Record = 3,
    /// Part of a checkpoint.
    Checkpoint = 4,
    /// Changes of the mapping since a checkpoint.
    Delta = 5,
    /// Part of a power-loss dump: a host's page or FTL metadata.
    Dump = 6,
    /// As `Copy`, of a page that a share remapped: the version is that of the share.
    RemappedCopy = 7,
    /// A page of a cache, as its home has it.
    Clean = 8,
    /// As `Copy`, of a page of a cache that its home has too.
    CleanCopy = 9,
}

impl SlotKind {
    /// The kind that is stored as `byte`.
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

    /// Whether the slot holds a host's page that reads are served from.
    #[inline]
    pub fn is_page(self) -> bool {
        match self {
            SlotKind::Data | SlotKind::Copy | SlotKind::RemappedCopy => true,
            SlotKind::Clean | SlotKind::CleanCopy => true,
            SlotKind::Record | SlotKind::Checkpoint | SlotKind::Delta | SlotKind::Dump => false,
        }
    }

    /// Whether it says that the page's home has the content too.
    #[inline]
    pub fn is_clean(self) -> bool {
        matches!(self, SlotKind::Clean | SlotKind::CleanCopy)
    }
}

/// What is stored beside a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// What the slot holds.
    pub kind: SlotKind,
    /// The logical page; for records and checkpoints a number that the FTL chooses.
    pub page: PageNo,
    /// The page's version.
    pub version: Version,
    /// Checksum of the content ([`Payload::checksum`]).
    pub checksum: u32,
}

/// The content of a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<P> {
    /// A host's page.
    Data(P),
    /// FTL metadata: real bytes even where hosts' pages are stamps.
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
    /// One spare per page, in order. `Some`: the slot's content was checked and matches its spare.
    /// `None`: it does not match (torn, never written, or decayed).
    pub spares: Vec<Option<Spare>>,
    /// Spares of the slots whose content does not match, with their index in `spares`, where the
    /// spare itself is readable: always where a header holds it, on flash only where the medium
    /// returns it.
    pub damaged: Vec<(u32, Spare)>,
}

/// All that one opening of a zone left, needed or not ([`ZoneMedia::inspect`]).
#[derive(Clone, Debug, Default)]
pub struct InspectedZone {
    /// The appends of that opening whose headers are whole.
    pub appends: Vec<ScannedAppend>,
    /// Checksum of what each slot of the zone holds; `None` where it cannot be read.
    pub checksums: Vec<Option<u32>>,
    /// Offsets of slots that cannot be read, and why.
    pub unreadable: Vec<(u32, Error)>,
    /// Offsets of headers of that opening that are not whole: torn, or damaged.
    pub broken_headers: Vec<u32>,
    /// Offsets of whole headers in which bytes that nobody uses are not zero.
    pub odd_headers: Vec<u32>,
}

/// Both copies of a medium's anchors, place by place: number and content of each that is whole and in its place.
pub type AnchorCopies = [Vec<Result<Option<(u64, Vec<u8>)>>>; 2];

/// A medium of zones. One implementation over simulated NAND, one over a flat store; wrappers
/// for faults, recording, throttling and checking are [`ZoneLayer`](crate::ZoneLayer)s, which
/// forward what they do not change.
///
/// Appends to one zone take their slots in the order in which their futures are first polled;
/// several may be in flight. At a power cut (the futures are dropped) each unfinished append lands,
/// vanishes or tears.
#[allow(async_fn_in_trait, reason = "media live on one thread; their futures need not be Send")]
pub trait ZoneMedia: 'static {
    /// Content of hosts' pages.
    type Page: Payload;

    /// Whether a read also returns each page's spare, as on flash, where both are in one flash
    /// page. The FTL's map then need not keep checksums of contents.
    const READS_SPARES: bool;

    /// The shape.
    fn geometry(&self) -> ZoneGeometry;

    /// Zones that cannot be used, in ascending order.
    fn retired(&self) -> Vec<ZoneNo>;

    /// Appends `bodies` (1 to `append_pages_max`) to `zone` and returns the slot of the first; the
    /// others follow it. With `durable` they survive a power cut once this returns, otherwise once
    /// a [`sync`](Self::sync) that starts later returns.
    ///
    /// # Errors
    /// `ProgramFailed`: the append's content is undefined, and the zone takes no append before its
    /// next reset; its earlier content stays readable. `Io`: from the medium.
    /// # Panics
    /// Where the append does not fit in what is left of the zone, or `spares` and `bodies`
    /// differ in length.
    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<Self::Page>],
        durable: bool,
    ) -> Result<SlotNo>;

    /// Reads the hosts' pages at `slots` into `out` (same length), in parallel where the medium
    /// can. Does not verify checksums: the caller knows which content it expects.
    ///
    /// # Errors
    /// `Uncorrectable` with the slot where the medium cannot read a page back; `Corrupt` where a
    /// slot holds no host page. `out` is unspecified after an error.
    async fn read(&self, slots: &[SlotNo], out: &mut [Self::Page]) -> Result<()>;

    /// As [`read`](Self::read), with each page's spare in `spares` (same length) where
    /// [`READS_SPARES`](Self::READS_SPARES); elsewhere these stay as they are.
    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [Self::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()>;

    /// Reads FTL metadata from `out.len()` slots, starting at `first`. Errors as
    /// [`read`](Self::read).
    async fn read_meta_run(&self, first: SlotNo, out: &mut [PageBuf]) -> Result<()>;

    /// As [`read_meta_run`](Self::read_meta_run), for one slot.
    async fn read_meta(&self, slot: SlotNo) -> Result<PageBuf> {
        let mut page = [PageBuf::zero()];
        self.read_meta_run(slot, &mut page).await?;
        let [page] = page;
        Ok(page)
    }

    /// The appends in the zone from `from_offset` (the start of an append) on, contents checked
    /// against their spares. Continues past unreadable slots, so a gap between two appends is an
    /// append that was torn or has decayed. Returns only appends of the zone's current epoch
    /// (`epoch` where given, else the latest among the readable appends).
    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>>;

    /// As [`scan`](Self::scan) from slot 0, reading only the spare areas where the medium stores
    /// them apart from the pages.
    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>>;

    /// The header of the zone's first append, where it is readable; cheaper than a scan.
    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>>;

    /// Discards the zone's content; the next append starts at slot 0. The caller ensures that
    /// nothing in it is needed, even if a power cut undoes the reset.
    ///
    /// # Errors
    /// `ZoneRetired` where the zone cannot be used again.
    async fn reset(&self, zone: ZoneNo) -> Result<()>;

    /// Gives the room of a zone back to whoever the medium has it of, where that is not the medium's for good; whether
    /// it did. Nothing of the zone can be read afterwards. It was [reset](Self::reset), and no recovery looks for
    /// anything in it; no other operation on it may be in flight.
    async fn give_room_back(&self, zone: ZoneNo) -> Result<bool> {
        let _ = zone;
        Ok(false)
    }

    /// Whether each zone may have room now. The others get theirs as they are written.
    fn zones_with_room(&self) -> Vec<bool> {
        vec![true; self.geometry().zones as usize]
    }

    /// Makes every append that had returned before this call durable.
    async fn sync(&self) -> Result<()>;

    /// Number of anchors that the medium keeps beside its zones: pages that tell recovery where to
    /// begin. 0 where it has no room for them.
    fn anchors(&self) -> u32;

    /// Writes anchor `number` durably, over the one that is [`anchors`](Self::anchors) numbers
    /// older. `content` has at most [`ANCHOR_BYTES_MAX`](crate::file_zones::ANCHOR_BYTES_MAX)
    /// bytes.
    ///
    /// # Panics
    /// Where the medium has no anchors.
    async fn write_anchor(&self, number: u64, content: &[u8]) -> Result<()>;

    /// The intact anchors with their numbers, ascending; a number comes twice where its copies
    /// differ.
    async fn read_anchors(&self) -> Result<Vec<(u64, Vec<u8>)>>;

    /// Reads the whole zone, in order, and returns all that its opening `epoch` left. Slots that cannot be
    /// read are part of the answer. `None` where the medium keeps no headers between the pages, and a scan says
    /// as much.
    async fn inspect(&self, zone: ZoneNo, epoch: u64) -> Result<Option<InspectedZone>> {
        let _ = (zone, epoch);
        Ok(None)
    }

    /// Reads both copies of the anchors, each by itself; one that cannot be read has none that is whole. `None`
    /// where the medium has no copies.
    async fn inspect_anchors(&self) -> Result<Option<AnchorCopies>> {
        Ok(None)
    }

    /// Takes as long as persisting changes of a mapping table: the program of one flash page, in
    /// blocks beside the zones. This FTL recovers its mapping from the spares of its log and writes
    /// none; the simulated drives did (DuraSSD, sections 2.3 and 3.1.2). Returns at once where no
    /// time is simulated.
    async fn persist_mapping(&self) -> Result<()>;
}
