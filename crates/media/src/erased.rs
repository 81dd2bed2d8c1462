//! Zones of any kind behind one type.
//!
//! The engine is generic over its medium, so the compiler generates it once for each kind of medium. Simulations and
//! tests have many kinds, and can afford a dynamic call and an allocation for each operation. With this type the engine
//! is compiled only once for each kind of page.
use std::any::Any;
use std::pin::Pin;
use std::rc::Rc;
use tantalum_base::{PageBuf, Payload, Result, SlotNo, ZoneNo};

use crate::zone::{
    AnchorCopies, AppendHeader, Body, InspectedZone, ScannedAppend, Spare, ZoneGeometry, ZoneMedia,
};

/// A medium of any kind. Clones are the same medium.
pub struct ErasedZones<P>(Rc<dyn AnyZones<P>>);

impl<P> Clone for ErasedZones<P> {
    fn clone(&self) -> Self {
        ErasedZones(Rc::clone(&self.0))
    }
}

impl<P: Payload> ErasedZones<P> {
    /// Erases the type of `media`.
    pub fn new(media: impl ZoneMedia<Page = P>) -> Self {
        Self::shared(Rc::new(media))
    }

    /// Erases the type of `media`, which has other users as well.
    pub fn shared(media: Rc<impl ZoneMedia<Page = P>>) -> Self {
        ErasedZones(media)
    }

    /// The medium, if it is of this kind.
    pub fn downcast_ref<M: ZoneMedia<Page = P>>(&self) -> Option<&M> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// [`ZoneMedia`] as a table of functions.
trait AnyZones<P>: Any {
    fn reads_spares(&self) -> bool;
    fn geometry(&self) -> ZoneGeometry;
    fn retired(&self) -> Vec<ZoneNo>;
    fn append<'a>(
        &'a self,
        zone: ZoneNo,
        header: &'a AppendHeader,
        spares: &'a [Spare],
        bodies: &'a [Body<P>],
        durable: bool,
    ) -> Answer<'a, SlotNo>;
    fn read<'a>(&'a self, slots: &'a [SlotNo], out: &'a mut [P]) -> Answer<'a, ()>;
    fn read_with_spares<'a>(
        &'a self,
        slots: &'a [SlotNo],
        out: &'a mut [P],
        spares: &'a mut [Option<Spare>],
    ) -> Answer<'a, ()>;
    fn read_meta_run<'a>(&'a self, first: SlotNo, out: &'a mut [PageBuf]) -> Answer<'a, ()>;
    fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Answer<'_, Vec<ScannedAppend>>;
    fn scan_spares(&self, zone: ZoneNo) -> Answer<'_, Vec<ScannedAppend>>;
    fn peek(&self, zone: ZoneNo) -> Answer<'_, Option<AppendHeader>>;
    fn reset(&self, zone: ZoneNo) -> Answer<'_, ()>;
    fn give_room_back(&self, zone: ZoneNo) -> Answer<'_, bool>;
    fn zones_with_room(&self) -> Vec<bool>;
    fn sync(&self) -> Answer<'_, ()>;
    fn anchors(&self) -> u32;
    fn write_anchor<'a>(&'a self, number: u64, content: &'a [u8]) -> Answer<'a, ()>;
    fn read_anchors(&self) -> Answer<'_, Vec<(u64, Vec<u8>)>>;
    fn inspect(&self, zone: ZoneNo, epoch: u64) -> Answer<'_, Option<InspectedZone>>;
    fn inspect_anchors(&self) -> Answer<'_, Option<AnchorCopies>>;
    fn persist_mapping(&self) -> Answer<'_, ()>;
}

impl<M: ZoneMedia> AnyZones<M::Page> for M {
    fn reads_spares(&self) -> bool {
        ZoneMedia::reads_spares(self)
    }

    fn geometry(&self) -> ZoneGeometry {
        ZoneMedia::geometry(self)
    }

    fn retired(&self) -> Vec<ZoneNo> {
        ZoneMedia::retired(self)
    }

    fn append<'a>(
        &'a self,
        zone: ZoneNo,
        header: &'a AppendHeader,
        spares: &'a [Spare],
        bodies: &'a [Body<M::Page>],
        durable: bool,
    ) -> Answer<'a, SlotNo> {
        Box::pin(ZoneMedia::append(self, zone, header, spares, bodies, durable))
    }

    fn read<'a>(&'a self, slots: &'a [SlotNo], out: &'a mut [M::Page]) -> Answer<'a, ()> {
        Box::pin(ZoneMedia::read(self, slots, out))
    }

    fn read_with_spares<'a>(
        &'a self,
        slots: &'a [SlotNo],
        out: &'a mut [M::Page],
        spares: &'a mut [Option<Spare>],
    ) -> Answer<'a, ()> {
        Box::pin(ZoneMedia::read_with_spares(self, slots, out, spares))
    }

    fn read_meta_run<'a>(&'a self, first: SlotNo, out: &'a mut [PageBuf]) -> Answer<'a, ()> {
        Box::pin(ZoneMedia::read_meta_run(self, first, out))
    }

    fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Answer<'_, Vec<ScannedAppend>> {
        Box::pin(ZoneMedia::scan(self, zone, from_offset, epoch))
    }

    fn scan_spares(&self, zone: ZoneNo) -> Answer<'_, Vec<ScannedAppend>> {
        Box::pin(ZoneMedia::scan_spares(self, zone))
    }

    fn peek(&self, zone: ZoneNo) -> Answer<'_, Option<AppendHeader>> {
        Box::pin(ZoneMedia::peek(self, zone))
    }

    fn reset(&self, zone: ZoneNo) -> Answer<'_, ()> {
        Box::pin(ZoneMedia::reset(self, zone))
    }

    fn give_room_back(&self, zone: ZoneNo) -> Answer<'_, bool> {
        Box::pin(ZoneMedia::give_room_back(self, zone))
    }

    fn zones_with_room(&self) -> Vec<bool> {
        ZoneMedia::zones_with_room(self)
    }

    fn sync(&self) -> Answer<'_, ()> {
        Box::pin(ZoneMedia::sync(self))
    }

    fn anchors(&self) -> u32 {
        ZoneMedia::anchors(self)
    }

    fn write_anchor<'a>(&'a self, number: u64, content: &'a [u8]) -> Answer<'a, ()> {
        Box::pin(ZoneMedia::write_anchor(self, number, content))
    }

    fn read_anchors(&self) -> Answer<'_, Vec<(u64, Vec<u8>)>> {
        Box::pin(ZoneMedia::read_anchors(self))
    }

    fn inspect(&self, zone: ZoneNo, epoch: u64) -> Answer<'_, Option<InspectedZone>> {
        Box::pin(ZoneMedia::inspect(self, zone, epoch))
    }

    fn inspect_anchors(&self) -> Answer<'_, Option<AnchorCopies>> {
        Box::pin(ZoneMedia::inspect_anchors(self))
    }

    fn persist_mapping(&self) -> Answer<'_, ()> {
        Box::pin(ZoneMedia::persist_mapping(self))
    }
}

impl<P: Payload> ZoneMedia for ErasedZones<P> {
    type Page = P;

    fn reads_spares(&self) -> bool {
        self.0.reads_spares()
    }

    fn geometry(&self) -> ZoneGeometry {
        self.0.geometry()
    }

    fn retired(&self) -> Vec<ZoneNo> {
        self.0.retired()
    }

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<P>],
        durable: bool,
    ) -> Result<SlotNo> {
        self.0.append(zone, header, spares, bodies, durable).await
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [P]) -> Result<()> {
        self.0.read(slots, out).await
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [P],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        self.0.read_with_spares(slots, out, spares).await
    }

    async fn read_meta_run(&self, first: SlotNo, out: &mut [PageBuf]) -> Result<()> {
        self.0.read_meta_run(first, out).await
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        self.0.scan(zone, from_offset, epoch).await
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        self.0.scan_spares(zone).await
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        self.0.peek(zone).await
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.0.reset(zone).await
    }

    async fn give_room_back(&self, zone: ZoneNo) -> Result<bool> {
        self.0.give_room_back(zone).await
    }

    fn zones_with_room(&self) -> Vec<bool> {
        self.0.zones_with_room()
    }

    async fn sync(&self) -> Result<()> {
        self.0.sync().await
    }

    fn anchors(&self) -> u32 {
        self.0.anchors()
    }

    async fn write_anchor(&self, number: u64, content: &[u8]) -> Result<()> {
        self.0.write_anchor(number, content).await
    }

    async fn read_anchors(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        self.0.read_anchors().await
    }

    async fn inspect(&self, zone: ZoneNo, epoch: u64) -> Result<Option<InspectedZone>> {
        self.0.inspect(zone, epoch).await
    }

    async fn inspect_anchors(&self) -> Result<Option<AnchorCopies>> {
        self.0.inspect_anchors().await
    }

    async fn persist_mapping(&self) -> Result<()> {
        self.0.persist_mapping().await
    }
}
