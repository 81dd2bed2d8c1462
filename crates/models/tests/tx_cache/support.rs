//! A small TxCache over simulated NAND in virtual time.
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Payload, Stamp, TxId};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandTiming};
use tantalum_models::{NandOptions, NandZones, NandZonesOptions};
use tantalum_models::{TxCache, TxCacheOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};

pub type Zones = NandZones<Virtual, Stamp>;
pub type Device = TxCache<Virtual, ErasedZones<Stamp>>;

pub const PAGES: u64 = 160;

pub fn options(cache_pages: u32) -> TxCacheOptions {
    TxCacheOptions {
        transactions_max: 6,
        headers: 6,
        write_pages_max: 4,
        free_frames: 2,
        write_backs_in_flight: 2,
        ..TxCacheOptions::new(cache_pages)
    }
}

pub fn zones(runtime: &Virtual) -> Zones {
    let nand = NandOptions {
        geometry: NandGeometry {
            channels: 2,
            packages_per_channel: 1,
            planes_per_package: 2,
            blocks_per_plane: 30,
            pages_per_block: 8,
            page_bytes: 4096,
            spare_bytes: 128,
        },
        timing: NandTiming {
            read_ns: 25_000,
            program_ns: 200_000,
            program_upper_ns: 200_000,
            erase_ns: 1_500_000,
            channel_bytes_per_second: 40_000_000,
        },
        faults: NandFaults::default(),
        seed: 1,
    };
    let zones = NandZonesOptions { spare_blocks_per_plane: 2, append_pages_max: 4 };
    NandZones::new(runtime.clone(), Nand::new(&nand).unwrap(), zones).unwrap()
}

/// A new device on `media`.
pub async fn device_on(
    runtime: &Virtual,
    media: impl ZoneMedia<Page = Stamp>,
    options: TxCacheOptions,
) -> Rc<Device> {
    let pages = PAGES + u64::from(options.extended_pages);
    let ftl = Ftl::format(ErasedZones::new(media), FtlOptions::new(pages)).await.unwrap();
    let device = Rc::new(TxCache::new(runtime.clone(), ftl, options).unwrap());
    device.start(runtime);
    device
}

/// Runs `test` on a new device.
pub fn run<F, T>(schedule: Schedule, options: TxCacheOptions, test: F)
where
    F: FnOnce(Virtual, Rc<Device>) -> T + 'static,
    T: Future<Output = ()> + 'static,
{
    let runtime = Virtual::new(schedule);
    let handle = runtime.clone();
    let main = async move {
        let device = device_on(&handle, zones(&handle), options).await;
        test(handle, device).await;
    };
    runtime.run(main).unwrap_or_else(|deadlock| panic!("{deadlock}"));
    runtime.drop_tasks();
}

pub fn stamp(page: u64, count: u64) -> Stamp {
    Stamp::new(PageNo(page), count)
}

pub async fn write(device: &Device, page: u64, count: u64, tx: Option<TxId>) {
    device.write(PageNo(page), &[stamp(page, count)], tx).await.unwrap();
}

/// The count stored in `page`; 0 if it is empty.
pub async fn read(device: &Device, page: u64, tx: Option<TxId>) -> u64 {
    let mut out = [Stamp::zero()];
    device.read(PageNo(page), &mut out, tx).await.unwrap();
    assert!(out[0] == Stamp::zero() || out[0] == stamp(page, out[0].count), "{page}: {out:?}");
    out[0].count
}
