//! What a wrapper does not change, it forwards.
//!
//! [`ZoneMedia`](crate::ZoneMedia) has no default that a wrapper could inherit by mistake, in place of
//! what the medium underneath does: each method is written down or named here.

/// Methods of [`ZoneMedia`](crate::ZoneMedia), by their names, that a wrapper forwards to the medium in one
/// of its fields: `forward_zone_media!((inner) geometry, retired, sync);`. `READS_SPARES` is named like
/// them, with the type of that medium: `READS_SPARES = M`.
#[macro_export]
macro_rules! forward_zone_media {
    ($inner:tt READS_SPARES = $medium:ty $(, $method:ident)* $(,)?) => {
        const READS_SPARES: bool = <$medium as $crate::ZoneMedia>::READS_SPARES;
        $crate::forward_zone_media!($inner $($method),*);
    };
    ($inner:tt $($method:ident),* $(,)?) => {
        $($crate::forward_zone_media!(@$method $inner);)*
    };
    (@geometry ($($inner:tt)+)) => {
        fn geometry(&self) -> $crate::ZoneGeometry {
            self.$($inner)+.geometry()
        }
    };
    (@retired ($($inner:tt)+)) => {
        fn retired(&self) -> Vec<$crate::base::ZoneNo> {
            self.$($inner)+.retired()
        }
    };
    (@append ($($inner:tt)+)) => {
        async fn append(
            &self,
            zone: $crate::base::ZoneNo,
            header: &$crate::AppendHeader,
            spares: &[$crate::Spare],
            bodies: &[$crate::Body<Self::Page>],
            durable: bool,
        ) -> $crate::base::Result<$crate::base::SlotNo> {
            self.$($inner)+.append(zone, header, spares, bodies, durable).await
        }
    };
    (@read ($($inner:tt)+)) => {
        async fn read(
            &self,
            slots: &[$crate::base::SlotNo],
            out: &mut [Self::Page],
        ) -> $crate::base::Result<()> {
            self.$($inner)+.read(slots, out).await
        }
    };
    (@read_with_spares ($($inner:tt)+)) => {
        async fn read_with_spares(
            &self,
            slots: &[$crate::base::SlotNo],
            out: &mut [Self::Page],
            spares: &mut [Option<$crate::Spare>],
        ) -> $crate::base::Result<()> {
            self.$($inner)+.read_with_spares(slots, out, spares).await
        }
    };
    (@read_meta ($($inner:tt)+)) => {
        async fn read_meta(
            &self,
            slot: $crate::base::SlotNo,
        ) -> $crate::base::Result<$crate::base::PageBuf> {
            self.$($inner)+.read_meta(slot).await
        }
    };
    (@scan ($($inner:tt)+)) => {
        async fn scan(
            &self,
            zone: $crate::base::ZoneNo,
            from_offset: u32,
            epoch: Option<u64>,
        ) -> $crate::base::Result<Vec<$crate::ScannedAppend>> {
            self.$($inner)+.scan(zone, from_offset, epoch).await
        }
    };
    (@scan_spares ($($inner:tt)+)) => {
        async fn scan_spares(
            &self,
            zone: $crate::base::ZoneNo,
        ) -> $crate::base::Result<Vec<$crate::ScannedAppend>> {
            self.$($inner)+.scan_spares(zone).await
        }
    };
    (@peek ($($inner:tt)+)) => {
        async fn peek(
            &self,
            zone: $crate::base::ZoneNo,
        ) -> $crate::base::Result<Option<$crate::AppendHeader>> {
            self.$($inner)+.peek(zone).await
        }
    };
    (@reset ($($inner:tt)+)) => {
        async fn reset(&self, zone: $crate::base::ZoneNo) -> $crate::base::Result<()> {
            self.$($inner)+.reset(zone).await
        }
    };
    (@sync ($($inner:tt)+)) => {
        async fn sync(&self) -> $crate::base::Result<()> {
            self.$($inner)+.sync().await
        }
    };
    (@anchors ($($inner:tt)+)) => {
        fn anchors(&self) -> u32 {
            self.$($inner)+.anchors()
        }
    };
    (@write_anchor ($($inner:tt)+)) => {
        async fn write_anchor(&self, number: u64, content: &[u8]) -> $crate::base::Result<()> {
            self.$($inner)+.write_anchor(number, content).await
        }
    };
    (@read_anchors ($($inner:tt)+)) => {
        async fn read_anchors(&self) -> $crate::base::Result<Vec<(u64, Vec<u8>)>> {
            self.$($inner)+.read_anchors().await
        }
    };
    (@persist_mapping ($($inner:tt)+)) => {
        async fn persist_mapping(&self) -> $crate::base::Result<()> {
            self.$($inner)+.persist_mapping().await
        }
    };
}
