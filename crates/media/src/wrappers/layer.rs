//! A wrapper of a medium that overrides only some operations.
use crate::zone::{
    AnchorCopies, AppendHeader, Body, InspectedZone, ScannedAppend, Spare, ZoneGeometry, ZoneMedia,
};
use tantalum_base::{PageBuf, Result, SlotNo, ZoneNo};

/// An operation of a medium.
#[derive(Clone, Copy, Debug)]
pub enum ZoneOperation<'a> {
    /// [`append`](ZoneMedia::append).
    Append {
        /// The zone.
        zone: ZoneNo,
        /// The header.
        header: &'a AppendHeader,
        /// The spares, one per page.
        spares: &'a [Spare],
        /// Whether the append must be durable when it returns.
        durable: bool,
    },
    /// [`read`](ZoneMedia::read) and [`read_with_spares`](ZoneMedia::read_with_spares).
    Read(&'a [SlotNo]),
    /// [`read_meta_run`](ZoneMedia::read_meta_run): the first slot, and the number of slots.
    ReadMeta(SlotNo, usize),
    /// [`scan`](ZoneMedia::scan), with offset and epoch, and [`inspect`](ZoneMedia::inspect).
    Scan(ZoneNo, u32, Option<u64>),
    /// [`scan_spares`](ZoneMedia::scan_spares).
    ScanSpares(ZoneNo),
    /// [`peek`](ZoneMedia::peek).
    Peek(ZoneNo),
    /// [`reset`](ZoneMedia::reset).
    Reset(ZoneNo),
    /// [`give_room_back`](ZoneMedia::give_room_back).
    GiveRoomBack(ZoneNo),
    /// [`sync`](ZoneMedia::sync).
    Sync,
    /// [`write_anchor`](ZoneMedia::write_anchor), with its number.
    WriteAnchor(u64),
    /// [`read_anchors`](ZoneMedia::read_anchors) and [`inspect_anchors`](ZoneMedia::inspect_anchors).
    ReadAnchors,
    /// [`persist_mapping`](ZoneMedia::persist_mapping).
    PersistMapping,
}

type PageOf<L> = <<L as ZoneLayer>::Inner as ZoneMedia>::Page;

/// The asynchronous operations, in one list; `$each` generates a method for each. A missing operation is a compile
/// error, because [`ZoneMedia`] requires it.
macro_rules! operations {
    ($each:ident) => {
        $each! {
            append(
                zone: ZoneNo,
                header: &AppendHeader,
                spares: &[Spare],
                bodies: &[Body<PageOf<Self>>],
                durable: bool
            ) -> SlotNo, ZoneOperation::Append { zone, header, spares, durable };
            read(slots: &[SlotNo], out: &mut [PageOf<Self>]) -> (), ZoneOperation::Read(slots);
            read_with_spares(
                slots: &[SlotNo],
                out: &mut [PageOf<Self>],
                spares: &mut [Option<Spare>]
            ) -> (), ZoneOperation::Read(slots);
            read_meta_run(first: SlotNo, out: &mut [PageBuf]) -> (),
                ZoneOperation::ReadMeta(first, out.len());
            scan(zone: ZoneNo, from_offset: u32, epoch: Option<u64>) -> Vec<ScannedAppend>,
                ZoneOperation::Scan(zone, from_offset, epoch);
            scan_spares(zone: ZoneNo) -> Vec<ScannedAppend>, ZoneOperation::ScanSpares(zone);
            peek(zone: ZoneNo) -> Option<AppendHeader>, ZoneOperation::Peek(zone);
            reset(zone: ZoneNo) -> (), ZoneOperation::Reset(zone);
            give_room_back(zone: ZoneNo) -> bool, ZoneOperation::GiveRoomBack(zone);
            sync() -> (), ZoneOperation::Sync;
            write_anchor(number: u64, content: &[u8]) -> (), ZoneOperation::WriteAnchor(number);
            read_anchors() -> Vec<(u64, Vec<u8>)>, ZoneOperation::ReadAnchors;
            inspect(zone: ZoneNo, epoch: u64) -> Option<InspectedZone>,
                ZoneOperation::Scan(zone, 0, Some(epoch));
            inspect_anchors() -> Option<AnchorCopies>, ZoneOperation::ReadAnchors;
            persist_mapping() -> (), ZoneOperation::PersistMapping;
        }
    };
}

macro_rules! forwarded {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty, $operation:expr;)+) => {$(
        #[doc = concat!("As [`ZoneMedia::", stringify!($name), "`].")]
        async fn $name(&self, $($argument: $type),*) -> Result<$out> {
            self.around($operation, self.inner().$name($($argument),*)).await
        }
    )+};
}

macro_rules! taken_from_the_layer {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty, $operation:expr;)+) => {$(
        fn $name(&self, $($argument: $type),*) -> impl Future<Output = Result<$out>> {
            ZoneLayer::$name(self, $($argument),*)
        }
    )+};
}

/// A medium that wraps another one. Every operation goes to the inner medium. A layer overrides the operations that
/// it changes, or [`around`](Self::around) if it does the same for every operation.
///
/// A layer is a [`ZoneMedia`] with methods of the same names, so callers should import only that trait.
#[allow(async_fn_in_trait, reason = "media live on one thread; their futures need not be Send")]
pub trait ZoneLayer: 'static {
    /// The wrapped medium.
    type Inner: ZoneMedia;

    /// The wrapped medium.
    fn inner(&self) -> &Self::Inner;

    /// Performs `operation`; `run` performs it on the inner medium. Every operation goes through here, unless the
    /// layer overrides it.
    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _ = operation;
        run.await
    }

    /// Like [`ZoneMedia::geometry`].
    fn geometry(&self) -> ZoneGeometry {
        self.inner().geometry()
    }

    /// Like [`ZoneMedia::retired`].
    fn retired(&self) -> Vec<ZoneNo> {
        self.inner().retired()
    }

    /// Like [`ZoneMedia::anchors`].
    fn anchors(&self) -> u32 {
        self.inner().anchors()
    }

    /// Like [`ZoneMedia::zones_with_room`].
    fn zones_with_room(&self) -> Vec<bool> {
        self.inner().zones_with_room()
    }

    operations!(forwarded);
}

impl<L: ZoneLayer> ZoneMedia for L {
    type Page = PageOf<L>;

    fn reads_spares(&self) -> bool {
        self.inner().reads_spares()
    }

    fn geometry(&self) -> ZoneGeometry {
        ZoneLayer::geometry(self)
    }

    fn retired(&self) -> Vec<ZoneNo> {
        ZoneLayer::retired(self)
    }

    fn anchors(&self) -> u32 {
        ZoneLayer::anchors(self)
    }

    fn zones_with_room(&self) -> Vec<bool> {
        ZoneLayer::zones_with_room(self)
    }

    operations!(taken_from_the_layer);
}
