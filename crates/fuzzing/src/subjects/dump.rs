//! A simulated device with energy for a dump, whose power was cut. Its image has the pages of each append behind a header, as in a
//! file; the array is written anew from that.
use std::rc::Rc;
use std::sync::OnceLock;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::{AppendHeader, Body, ErasedZones, SlotKind, Spare, ZoneMedia};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::nand_zones::{NandZones, NandZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};
use tantalum_volume::OpenOptions;

use super::Subject;
use super::history::use_device;
use crate::structures::{Limits, SPARE_BYTES, SPARES_AT, Scene, number, put, seal};

const PAGES: u64 = 1200;
const CACHE_PAGES: u32 = 24;
const ZONES: u32 = 60;
/// Pages of a zone in the image: as many headers as pages at most.
const IMAGE_SLOTS: usize = 64;

type Zones = NandZones<Virtual, PageBuf>;

/// The device.
pub(crate) struct Dumped;

fn array() -> Nand<PageBuf> {
    let geometry = NandGeometry {
        channels: 2,
        packages_per_channel: 1,
        planes_per_package: 1,
        blocks_per_plane: ZONES,
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
    let options = NandOptions { geometry, timing, faults: NandFaults::default(), seed: 1 };
    Nand::new(&options).expect("a sound geometry")
}

fn zones(runtime: &Virtual, nand: Nand<PageBuf>) -> Zones {
    let options = NandZonesOptions { spare_blocks_per_plane: 0, append_pages_max: 16 };
    NandZones::new(runtime.clone(), nand, options).expect("sound options")
}

fn options(media: &Zones) -> (FtlOptions, SsdOptions) {
    let dump = Some(DumpOptions::least(&media.geometry(), PAGES, CACHE_PAGES));
    let ftl = FtlOptions { checkpoint_interval_slots: 4000, dump, ..FtlOptions::new(PAGES) };
    let ssd = SsdOptions {
        write_back_start_pages: 8,
        write_backs_in_flight: 2,
        ..SsdOptions::new(CacheKind::Durable, CACHE_PAGES)
    };
    (ftl, ssd)
}

fn made() -> Scene {
    let runtime = Virtual::new(Schedule::Fifo);
    let again = zones(&runtime, array());
    let media = again.reopen(runtime.clone());
    let live = runtime.clone();
    let used = runtime.run(async move {
        let (ftl, ssd) = options(&media);
        let ftl = Ftl::format(ErasedZones::new(media), ftl).await.expect("a new device");
        let device = Rc::new(Ssd::new(ftl, ssd).expect("sound options"));
        device.start(&live);
        use_device(&*device, PAGES, 350, 1, false).await;
        // A checkpoint; of the changes since then delta pages tell.
        device.close().await.expect("closed");
        use_device(&*device, PAGES, 450, 2, false).await;
        device
    });
    let device = used.expect("it comes to an end");
    runtime.drop_tasks();
    let runtime = Virtual::new(Schedule::Fifo);
    let media = again.reopen(runtime.clone());
    let image = runtime.run(async move {
        device.device().power_loss(ErasedZones::new(media)).await.expect("energy for the dump");
    });
    image.expect("it comes to an end");
    let runtime = Virtual::new(Schedule::Fifo);
    let media = again.reopen(runtime.clone());
    let image = runtime.run(async move { image_of(&media).await }).expect("it comes to an end");
    let limits = Limits {
        pages: PAGES,
        zones: ZONES.into(),
        slots_per_zone: 32,
        image_slots: IMAGE_SLOTS,
        zones_byte: 0,
        versions_tell: false,
        has_checksums: false,
    };
    Scene::new(vec![image], limits)
}

/// The appends on `media`, each behind a header.
async fn image_of(media: &Zones) -> Vec<u8> {
    let geometry = media.geometry();
    let mut image = vec![0; ZONES as usize * IMAGE_SLOTS * PAGE_BYTES];
    for zone in (0..ZONES).map(ZoneNo) {
        let mut slot = 0;
        for append in media.scan(zone, 0, None).await.expect("a scan") {
            let at = (zone.index() * IMAGE_SLOTS + slot) * PAGE_BYTES;
            slot += 1 + append.spares.len();
            let AppendHeader { epoch, stream, durable, batch_first, batch_len } = append.header;
            image[at..at + 8].copy_from_slice(b"TantalZA");
            let fields = [
                (10, 2, append.spares.len() as u64),
                (12, 1, stream.into()),
                (32, 4, zone.0.into()),
                (36, 4, (slot - 1 - append.spares.len()) as u64),
                (40, 8, epoch),
                (48, 8, durable.0),
                (56, 8, batch_first.0),
                (64, 4, batch_len.into()),
            ];
            fields
                .iter()
                .for_each(|&(field, width, value)| put(&mut image, at + field, width, value));
            for (index, spare) in append.spares.iter().enumerate() {
                let Some(spare) = spare else { continue };
                let place = geometry.slot(zone, append.first_offset + index as u32);
                let page = read(media, place).await;
                let from = at + SPARES_AT + index * SPARE_BYTES;
                let fields = [
                    (0, 8, spare.page.0),
                    (8, 8, spare.version.0),
                    (16, 4, spare.checksum.into()),
                    (20, 1, spare.kind as u64),
                    // Which of both it is.
                    (21, 1, u64::from(page.1)),
                ];
                fields.iter().for_each(|&(field, width, value)| {
                    put(&mut image, from + field, width, value);
                });
                let to = at + (1 + index) * PAGE_BYTES;
                image[to..to + PAGE_BYTES].copy_from_slice(&page.0[..]);
            }
            seal(&mut image, at);
        }
    }
    image
}

/// The content of `slot`, and whether it is one of the device's own pages.
async fn read(media: &Zones, slot: SlotNo) -> (PageBuf, bool) {
    let mut page = [PageBuf::zero()];
    let is_own = media.read_meta_run(slot, &mut page).await.is_ok();
    if !is_own {
        media.read(&[slot], &mut page).await.expect("a page");
    }
    let [page] = page;
    (page, is_own)
}

/// Writes the appends of `image` to `media`.
async fn write(media: &Zones, image: &[u8]) {
    for zone in (0..ZONES).map(ZoneNo) {
        media.reset(zone).await.expect("a new zone");
    }
    for at in (0..image.len()).step_by(PAGE_BYTES) {
        if !image[at..].starts_with(b"TantalZA") {
            continue;
        }
        let zone = ZoneNo((at / PAGE_BYTES / IMAGE_SLOTS) as u32);
        let header = AppendHeader {
            epoch: number(image, at + 40, 8),
            stream: image[at + 12],
            durable: Version(number(image, at + 48, 8)),
            batch_first: Version(number(image, at + 56, 8)),
            batch_len: number(image, at + 64, 4) as u32,
        };
        // As many as there are, whatever the header says.
        let (mut spares, mut bodies) = (Vec::new(), Vec::new());
        for index in 0..pages_behind(image, at) {
            let (from, page) =
                (at + SPARES_AT + index * SPARE_BYTES, at + (1 + index) * PAGE_BYTES);
            spares.push(Spare {
                kind: SlotKind::from_byte(image[from + 20]).unwrap_or(SlotKind::Data),
                page: PageNo(number(image, from, 8)),
                version: Version(number(image, from + 8, 8)),
                checksum: number(image, from + 16, 4) as u32,
            });
            let content = PageBuf::copy_from(&image[page..page + PAGE_BYTES]);
            bodies.push(match image[from + 21] {
                1 => Body::Meta(content),
                _ => Body::Data(content),
            });
        }
        media.append(zone, &header, &spares, &bodies, true).await.expect("room for it");
    }
}

/// Pages between the header at `at` and the next one in its zone.
fn pages_behind(image: &[u8], at: usize) -> usize {
    let spares = image[at + SPARES_AT..at + PAGE_BYTES - 8].chunks_exact(SPARE_BYTES);
    let rest = IMAGE_SLOTS - at / PAGE_BYTES % IMAGE_SLOTS - 1;
    spares.take(rest).take_while(|spare| **spare != [0; SPARE_BYTES]).count().min(16)
}

impl Subject for Dumped {
    type Device = Ssd<ErasedZones<PageBuf>>;
    type Stores = Rc<Zones>;
    const READ_STEP: usize = 4;
    const HAS_HOME: bool = false;
    const LIFE_NS: u64 = 1_000_000_000;

    fn scene() -> &'static Scene {
        static SCENE: OnceLock<Scene> = OnceLock::new();
        SCENE.get_or_init(made)
    }

    fn stores(images: &[Vec<u8>]) -> Rc<Zones> {
        let runtime = Virtual::new(Schedule::Fifo);
        let media = Rc::new(zones(&runtime, array()));
        let (written, image) = (Rc::clone(&media), images[0].clone());
        runtime.run(async move { write(&written, &image).await }).expect("it comes to an end");
        media
    }

    async fn open(
        runtime: &Virtual,
        stores: Rc<Zones>,
        options_of: OpenOptions,
    ) -> Result<Rc<Self::Device>> {
        let media = stores.reopen(runtime.clone());
        let (ftl, ssd) = options(&media);
        let ftl = FtlOptions { accept_loss: options_of.accept_loss, ..ftl };
        let (device, _) = Ssd::reboot(ErasedZones::new(media), ftl, ssd, runtime).await?;
        Ok(device)
    }
}
