//! Small devices over simulated NAND in virtual time.
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{Result, Stamp};
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandTiming};
use tantalum_models::{NandOptions, NandZones, NandZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

pub type Zones = ErasedZones<Stamp>;

/// The properties of the flash.
#[derive(Clone, Copy)]
pub struct Shape {
    pub blocks_per_plane: u32,
    /// Probability that a program fails; it is then repeated elsewhere, which takes longer.
    pub program_fail: f64,
}

impl Shape {
    pub const SMALL: Shape = Shape { blocks_per_plane: 30, program_fail: 0.0 };
}

pub fn zones(runtime: &Virtual, shape: Shape) -> Result<Zones> {
    let nand = NandOptions {
        geometry: NandGeometry {
            channels: 2,
            packages_per_channel: 1,
            planes_per_package: 2,
            blocks_per_plane: shape.blocks_per_plane,
            pages_per_block: 8,
            page_bytes: 4096,
            spare_bytes: 128,
        },
        timing: NandTiming {
            read_ns: 25_000,
            program_ns: 200_000,
            program_upper_ns: 200_000,
            erase_ns: 1_500_000,
            channel_bytes_per_second: 400_000_000,
        },
        faults: NandFaults { program_fail: shape.program_fail, ..NandFaults::default() },
        seed: 1,
    };
    let options = NandZonesOptions { spare_blocks_per_plane: 2, append_pages_max: 4 };
    Ok(ErasedZones::new(NandZones::new(runtime.clone(), Nand::new(&nand)?, options)?))
}

/// An SSD with a small cache of any kind.
pub async fn ssd(
    runtime: Virtual,
    cache: CacheKind,
    mut ftl: FtlOptions,
) -> Result<Rc<Ssd<Zones>>> {
    let zones = zones(&runtime, Shape { blocks_per_plane: 40, ..Shape::SMALL })?;
    if cache == CacheKind::Durable {
        ftl.dump = Some(DumpOptions::least(&zones.geometry(), ftl.pages, 16));
    }
    let ftl = Ftl::format(zones, ftl).await?;
    let mut options = SsdOptions::new(cache, 16);
    options.write_back_start_pages = 4;
    options.write_backs_in_flight = 4;
    options.transaction_pages_max = 12;
    let device = Rc::new(Ssd::new(ftl, options)?);
    device.start(&runtime);
    Ok(device)
}

/// Runs `test` with the order of tasks drawn from `seed`, and returns its result.
pub fn run<F, T, O>(seed: u64, test: F) -> O
where
    F: FnOnce(Virtual) -> T + 'static,
    T: Future<Output = O> + 'static,
    O: 'static,
{
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let (handle, out) = (runtime.clone(), Rc::new(RefCell::new(None)));
    let told = Rc::clone(&out);
    let main = async move { *told.borrow_mut() = Some(test(handle).await) };
    runtime.run(main).unwrap_or_else(|deadlock| panic!("{deadlock}"));
    runtime.drop_tasks();
    out.take().unwrap()
}
