//! Small simulated flash for tests of an FTL.
pub mod changes;
pub mod cycles;
pub mod home;
pub mod prefix;
pub mod unanswered;

use std::rc::Rc;
use tantalum_base::{PageNo, Payload, Result, Stamp};
use tantalum_ftl::{Ftl, FtlOptions, RecoveryReport};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::nand_zones::{NandZones, NandZonesOptions};
use tantalum_runtime::Virtual;

/// The medium.
pub type Zones = NandZones<Virtual, Stamp>;

/// `zones` zones of 32 slots on two channels.
pub fn zones(runtime: &Virtual, zones: u32) -> Zones {
    let geometry = NandGeometry {
        channels: 2,
        packages_per_channel: 1,
        planes_per_package: 1,
        blocks_per_plane: zones,
        pages_per_block: 8,
        page_bytes: 8192,
        spare_bytes: 128,
    };
    let timing = NandTiming {
        read_ns: 50_000,
        program_ns: 500_000,
        program_upper_ns: 500_000,
        erase_ns: 2_000_000,
        channel_bytes_per_second: 200_000_000,
    };
    let nand = NandOptions { geometry, timing, faults: NandFaults::default(), seed: 1 };
    let options = NandZonesOptions { spare_blocks_per_plane: 0, append_pages_max: 16 };
    NandZones::new(runtime.clone(), Nand::new(&nand).unwrap(), options).unwrap()
}

/// A new FTL on zones of any kind: it is compiled once for all of them.
pub async fn format<P: Payload>(
    media: impl ZoneMedia<Page = P>,
    options: FtlOptions,
) -> Result<Rc<Ftl<ErasedZones<P>>>> {
    Ftl::format(ErasedZones::new(media), options).await
}

/// The FTL that zones of any kind hold.
pub async fn recover<P: Payload>(
    media: impl ZoneMedia<Page = P>,
    options: FtlOptions,
) -> Result<(Rc<Ftl<ErasedZones<P>>>, RecoveryReport)> {
    Ftl::recover(ErasedZones::new(media), options).await
}

/// The zones of `ftl`, which are of this kind.
pub fn zones_of<M: ZoneMedia>(ftl: &Ftl<ErasedZones<M::Page>>) -> &M {
    ftl.media().downcast_ref().expect("the FTL was made on zones of this kind")
}

/// Starts the FTL's background tasks.
pub fn start<M: ZoneMedia>(runtime: &Virtual, ftl: &Rc<Ftl<M>>) {
    ftl.start_tasks(runtime);
}

/// `pages` pages from `first` on, with the content of write `count`.
pub fn batch(first: u64, pages: u64, count: u64) -> Vec<(PageNo, Stamp)> {
    let page = |page| (PageNo(page), Stamp::new(PageNo(page), count));
    (first..first + pages).map(page).collect()
}
