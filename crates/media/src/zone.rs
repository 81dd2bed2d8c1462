//! Append-only zones: the contract between the FTL and what its pages live on.
//!
//! A zone has `slots` places of one page each. It is filled by appends from slot 0 on, read at
//! any slot, and reset as a whole. An append is described by an [`AppendHeader`] and one
//! [`Spare`] a slot; both are stored with the pages (in NAND's spare area, or in a header page
//! before the pages of a file zone), so that a scan finds out what a zone holds.
use tantalum_base::{PageBuf, PageNo, Payload, Result, SlotNo, Version, ZoneNo};

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
    pub fn append_slots(&self, pages: u32) -> u32 {
        (self.append_overhead_slots + pages).next_multiple_of(self.append_unit_slots)
    }

    /// Pages that one append into `free_slots` remaining slots of a zone can hold.
    pub fn append_pages_fit(&self, free_slots: u32) -> u32 {
        let usable = free_slots / self.append_unit_slots * self.append_unit_slots;
        usable.saturating_sub(self.append_overhead_slots).min(self.append_pages_max)
    }

    /// The slot at `offset` slots into `zone`.
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

/// What is stored once an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AppendHeader {
    /// Counts zone openings of the whole device; the same in all appends of one opening of a
    /// zone, larger in every later opening. An append with another epoch than the zone's first
    /// one is left over from before a reset.
    pub epoch: u64,
    /// Which stream the zone belongs to; the FTL's business.
    pub stream: u8,
    /// Every change up to this version was durable when this append was started.
    pub durable: Version,
    /// First version of the atomic batch that this append belongs to.
    pub batch_first: Version,
    /// Versions in that batch; the batch may span several appends.
    pub batch_len: u32,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotKind {
    /// A host's page, as written.
    Data = 1,
    /// A host's page, moved by cleaning under its old version.
    Copy = 2,
    /// Records of the FTL (changes of mapping alone).
    Record = 3,
    /// A piece of a checkpoint.
    Checkpoint = 4,
    /// Changes of the mapping since a checkpoint.
    Delta = 5,
    /// A piece of a dump at a power loss; a host's page or bytes of the FTL's own.
    Dump = 6,
    /// As `Copy`, of a page that a share remapped: the version is that of the share.
    RemappedCopy = 7,
}

impl SlotKind {
    /// The kind that is stored as `byte`.
    pub fn from_byte(byte: u8) -> Option<SlotKind> {
        Some(match byte {
            1 => SlotKind::Data,
            2 => SlotKind::Copy,
            3 => SlotKind::Record,
            4 => SlotKind::Checkpoint,
            5 => SlotKind::Delta,
            6 => SlotKind::Dump,
            7 => SlotKind::RemappedCopy,
            _ => return None,
        })
    }

    /// Whether the slot holds a page of a host, where it is read from.
    pub fn is_page(self) -> bool {
        matches!(self, SlotKind::Data | SlotKind::Copy | SlotKind::RemappedCopy)
    }
}

/// What is stored beside a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// What the slot holds.
    pub kind: SlotKind,
    /// The logical page (for records and checkpoints a number of the FTL's own).
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
    /// Bytes of the FTL's own; real bytes also where hosts' pages are stamps.
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
    /// A spare a page, in order. `None`: what the slot holds does not match its spare (torn,
    /// never landed, or decayed). `Some` means that content and spare were checked.
    pub spares: Vec<Option<Spare>>,
    /// What was written to slots whose content does not match, by their index among `spares`, as
    /// far as their spares can be read: always where these are in a header, on flash only where
    /// the medium gives the spare back.
    pub damaged: Vec<(u32, Spare)>,
}

/// A medium of zones. One implementation over simulated NAND, one over a flat store; wrappers
/// for faults, recording, throttling and checking are [`ZoneLayer`](crate::ZoneLayer)s, which
/// forward what they do not change.
///
/// Appends to one zone take their places in the order in which the futures are first polled, and
/// may be in flight together. Cutting power (dropping the futures) lets each unfinished append
/// land, vanish or tear, whole or in part.
#[allow(async_fn_in_trait, reason = "media live on one thread; their futures need not be Send")]
pub trait ZoneMedia: 'static {
    /// Content of hosts' pages.
    type Page: Payload;

    /// Whether a read brings each page's spare with it, as on flash, which keeps both in one page.
    /// Who maps pages then need not remember what their contents' checksums are.
    const READS_SPARES: bool;

    /// The shape.
    fn geometry(&self) -> ZoneGeometry;

    /// Zones that cannot be used, in ascending order.
    fn retired(&self) -> Vec<ZoneNo>;

    /// Appends `bodies` (1 to `append_pages_max`) to `zone` and returns the slot of the first;
    /// the others follow it. With `durable`, it also survives a power cut once this returns;
    /// without, only after the next [`sync`](Self::sync) that starts later.
    ///
    /// # Errors
    /// `ProgramFailed`: nothing of this append may be relied on; the zone must not be appended
    /// to before its next reset, what it held before stays readable. `Io`: the medium's own.
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

    /// Reads the hosts' pages at `slots` into `out` (same length), with all the parallelism the
    /// medium has. Contents are not checked against their checksums here; that is the caller's,
    /// who knows what it expects.
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

    /// Reads the FTL's own bytes in the slots from `first` on, as many as `out` has. Errors as
    /// [`read`](Self::read).
    async fn read_meta_run(&self, first: SlotNo, out: &mut [PageBuf]) -> Result<()>;

    /// The same of one slot.
    async fn read_meta(&self, slot: SlotNo) -> Result<PageBuf> {
        let mut page = [PageBuf::zero()];
        self.read_meta_run(slot, &mut page).await?;
        let [page] = page;
        Ok(page)
    }

    /// What the zone holds from `from_offset` (the start of an append) on, content checked. Goes
    /// on behind unreadable places, so a gap between `end_offset` of one append and the next is a
    /// place where an append was torn or has decayed. Only appends of the zone's current epoch
    /// (the latest of its readable appends, or `epoch` where given) are returned.
    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>>;

    /// What the zone holds, as [`scan`](Self::scan) from slot 0, at the price of reading the spare
    /// areas alone where the medium has them apart from the pages.
    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>>;

    /// The header of the zone's first append, where it is readable; cheaper than a scan.
    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>>;

    /// Forgets all that the zone holds; the next append starts at slot 0. The caller has made
    /// sure that nothing in it is needed, also after a power cut before the reset is durable.
    ///
    /// # Errors
    /// `ZoneRetired` where the zone cannot be used again.
    async fn reset(&self, zone: ZoneNo) -> Result<()>;

    /// Makes every append that had returned before this call durable.
    async fn sync(&self) -> Result<()>;

    /// How many anchors the medium keeps beside its zones: pages from which recovery learns where to
    /// begin. 0 where it has no place for them.
    fn anchors(&self) -> u32;

    /// Writes anchor `number`, durably. The one that is [`anchors`](Self::anchors) numbers older
    /// makes room for it. `content` has at most
    /// [`ANCHOR_BYTES_MAX`](crate::file_zones::ANCHOR_BYTES_MAX) bytes.
    ///
    /// # Panics
    /// Where the medium has no anchors.
    async fn write_anchor(&self, number: u64, content: &[u8]) -> Result<()>;

    /// The anchors that are whole, with their numbers, in ascending order: two of one number where its
    /// copies differ.
    async fn read_anchors(&self) -> Result<Vec<(u64, Vec<u8>)>>;

    /// Takes the time of writing down what changed in a mapping table: one flash page, in blocks
    /// beside the zones. The FTL here finds its mapping in the spares of its log and has nothing
    /// to write; the drives that are simulated had (DuraSSD, sections 2.3 and 3.1.2). Costs
    /// nothing where there is no such time to simulate.
    async fn persist_mapping(&self) -> Result<()>;
}
