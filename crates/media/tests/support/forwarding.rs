//! Checks that a wrapper forwards every call that it does not override.
use std::cell::RefCell;
use tantalum_base::{PageBuf, PageNo, Payload, Result, SlotNo, Stamp, Version, ZoneNo};
use tantalum_media::zone::{
    AnchorCopies, AppendHeader, Body, InspectedZone, ScannedAppend, SlotKind, Spare, ZoneGeometry,
    ZoneMedia,
};

/// A medium that records the methods called, and gives each a different answer.
#[derive(Default)]
pub struct Asked(RefCell<Vec<&'static str>>);

/// The asynchronous operations, in an order that the contract allows.
const OPERATIONS: [&str; 15] = [
    "reset",
    "append",
    "read",
    "read_with_spares",
    "read_meta_run",
    "scan",
    "scan_spares",
    "peek",
    "give_room_back",
    "sync",
    "persist_mapping",
    "write_anchor",
    "read_anchors",
    "inspect",
    "inspect_anchors",
];

impl Asked {
    async fn note<T>(&self, operation: &'static str, answer: T) -> Result<T> {
        self.0.borrow_mut().push(operation);
        Ok(answer)
    }
}

impl ZoneMedia for Asked {
    type Page = Stamp;

    fn reads_spares(&self) -> bool {
        true
    }

    fn geometry(&self) -> ZoneGeometry {
        ZoneGeometry {
            zones: 4,
            slots_per_zone: 8,
            append_unit_slots: 1,
            append_overhead_slots: 0,
            append_pages_max: 4,
        }
    }

    fn retired(&self) -> Vec<ZoneNo> {
        vec![ZoneNo(3)]
    }

    fn anchors(&self) -> u32 {
        9
    }

    async fn append(
        &self,
        _zone: ZoneNo,
        _header: &AppendHeader,
        _spares: &[Spare],
        _bodies: &[Body<Stamp>],
        _durable: bool,
    ) -> Result<SlotNo> {
        self.note("append", SlotNo(0)).await
    }

    async fn read(&self, _slots: &[SlotNo], _out: &mut [Stamp]) -> Result<()> {
        self.note("read", ()).await
    }

    async fn read_with_spares(
        &self,
        _slots: &[SlotNo],
        _out: &mut [Stamp],
        _spares: &mut [Option<Spare>],
    ) -> Result<()> {
        self.note("read_with_spares", ()).await
    }

    async fn read_meta_run(&self, _first: SlotNo, _out: &mut [PageBuf]) -> Result<()> {
        self.note("read_meta_run", ()).await
    }

    async fn scan(
        &self,
        _zone: ZoneNo,
        _from_offset: u32,
        _epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        self.note("scan", Vec::new()).await
    }

    async fn scan_spares(&self, _zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        self.note("scan_spares", Vec::new()).await
    }

    async fn peek(&self, _zone: ZoneNo) -> Result<Option<AppendHeader>> {
        self.note("peek", None).await
    }

    async fn reset(&self, _zone: ZoneNo) -> Result<()> {
        self.note("reset", ()).await
    }

    fn zones_with_room(&self) -> Vec<bool> {
        vec![true, false, true, false]
    }

    async fn give_room_back(&self, _zone: ZoneNo) -> Result<bool> {
        self.note("give_room_back", true).await
    }

    async fn sync(&self) -> Result<()> {
        self.note("sync", ()).await
    }

    async fn write_anchor(&self, _number: u64, _content: &[u8]) -> Result<()> {
        self.note("write_anchor", ()).await
    }

    async fn read_anchors(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        self.note("read_anchors", vec![(5, Vec::new())]).await
    }

    async fn inspect(&self, _zone: ZoneNo, _epoch: u64) -> Result<Option<InspectedZone>> {
        self.note("inspect", None).await
    }

    async fn inspect_anchors(&self) -> Result<Option<AnchorCopies>> {
        self.note("inspect_anchors", None).await
    }

    async fn persist_mapping(&self) -> Result<()> {
        self.note("persist_mapping", ()).await
    }
}

/// Calls each operation of `wrapper` once and checks that `asked`, the inner medium, gets the same call and no other.
/// Operations in `own`, which the wrapper answers itself, are excluded.
///
/// # Panics
/// If the wrapper does not forward a call, or makes other calls.
pub async fn forwards<M: ZoneMedia<Page = Stamp>>(wrapper: M, asked: &Asked, own: &[&str]) {
    assert_eq!(wrapper.reads_spares(), asked.reads_spares());
    assert_eq!(wrapper.geometry(), asked.geometry());
    assert_eq!(wrapper.retired(), asked.retired());
    assert_eq!(wrapper.anchors(), if own.contains(&"anchors") { 0 } else { asked.anchors() });
    assert_eq!(wrapper.zones_with_room(), asked.zones_with_room());
    let body = Body::Data(Stamp::new(PageNo(0), 1));
    let (kind, checksum) = (SlotKind::Data, body.checksum());
    let spare = Spare { kind, page: PageNo(0), version: Version(1), checksum };
    let header = AppendHeader { epoch: 1, ..AppendHeader::default() };
    let (mut out, mut spares, mut meta) = ([Stamp::zero()], [None], [PageBuf::zero()]);
    let (zone, slot) = (ZoneNo(0), SlotNo(0));
    for operation in OPERATIONS.into_iter().filter(|operation| !own.contains(operation)) {
        match operation {
            "append" => {
                _ = wrapper.append(zone, &header, &[spare], std::slice::from_ref(&body), true).await
            }
            "give_room_back" => _ = wrapper.give_room_back(zone).await,
            "inspect" => _ = wrapper.inspect(zone, 1).await,
            "inspect_anchors" => _ = wrapper.inspect_anchors().await,
            "peek" => _ = wrapper.peek(zone).await,
            "persist_mapping" => _ = wrapper.persist_mapping().await,
            "read" => _ = wrapper.read(&[slot], &mut out).await,
            "read_anchors" => _ = wrapper.read_anchors().await,
            "read_meta_run" => _ = wrapper.read_meta_run(slot, &mut meta).await,
            "read_with_spares" => {
                _ = wrapper.read_with_spares(&[slot], &mut out, &mut spares).await;
            }
            "reset" => _ = wrapper.reset(zone).await,
            "scan" => _ = wrapper.scan(zone, 0, None).await,
            "scan_spares" => _ = wrapper.scan_spares(zone).await,
            "sync" => _ = wrapper.sync().await,
            "write_anchor" => _ = wrapper.write_anchor(1, &[]).await,
            _ => panic!("nobody asks for {operation}"),
        }
        assert_eq!(asked.0.take(), [operation], "what a wrapper makes of {operation}");
    }
}
