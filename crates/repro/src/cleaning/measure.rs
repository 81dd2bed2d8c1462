//! One device in the steady state of uniform random writes.
use std::rc::Rc;
use tantalum_base::{PageNo, Result, Rng, Stamp};
use tantalum_ftl::{Ftl, FtlOptions, FtlStatistics};
use tantalum_media::ErasedZones;
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::nand_zones::{NandZones, NandZonesOptions};
use tantalum_policy::CleaningSpec;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// The parameters of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// The policy that chooses the next zone to clean.
    pub cleaning: CleaningSpec,
    /// Number of zones of the device.
    pub zones: u32,
    /// Number of pages in a zone.
    pub zone_pages: u32,
    /// Number of pages, as a share of the slots that take part.
    pub utilisation: f64,
    /// Number of writes per page before the measurement, and again during it.
    pub overwrites: u64,
    /// Seed of the random pages.
    pub seed: u64,
}

/// The results of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Number of pages over the number of slots that took part.
    pub utilisation: f64,
    /// Slots programmed per written page.
    pub write_amplification: f64,
}

/// Fills a device, overwrites it at random until it is steady, and measures.
pub fn measure(steady: &Steady) -> Result<Measured> {
    let runtime = Virtual::new(Schedule::Fifo);
    let zones = u64::from(steady.zones);
    let zone_pages = u64::from(steady.zone_pages);
    let slots = zones * zone_pages;
    let mut pages = (slots as f64 * steady.utilisation) as u64;
    // The slots that take part depend on the reserve, which depends on the number of pages.
    let mut utilisation = 0.0;
    for _ in 0..2 {
        let probe = format(&runtime, steady, pages)?;
        // In addition to the reserve, the checkpoint's zone and the host's zone, and half of cleaning's
        // zone.
        let apart = u64::from(probe.reserve_zones()) + 2;
        let taking_part = (zones - apart) * zone_pages - zone_pages / 2;
        pages = (taking_part as f64 * steady.utilisation) as u64;
        utilisation = pages as f64 / taking_part as f64;
    }
    let ftl = format(&runtime, steady, pages)?;
    let cleaner = Rc::clone(&ftl);
    runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
    let checkpointer = Rc::clone(&ftl);
    runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
    let (seed, writes) = (steady.seed, steady.overwrites * pages);
    let load = async move {
        let mut rng = Rng::split(seed, "uniform");
        for page in (0..pages).map(PageNo) {
            ftl.write(&[(page, Stamp::new(page, 1))], true).await?;
        }
        let mut before = ftl.statistics();
        for round in 0..2 {
            for count in 0..writes {
                let page = PageNo(rng.below(pages));
                ftl.write(&[(page, Stamp::new(page, 2 + round * writes + count))], true).await?;
            }
            if round == 0 {
                before = ftl.statistics();
            }
        }
        let after = ftl.statistics();
        // The models do not include checkpoints.
        let data = |counts: FtlStatistics| counts.slots_programmed - counts.checkpoint_slots;
        let programmed = data(after) - data(before);
        Ok(programmed as f64 / (after.host_pages - before.host_pages) as f64)
    };
    let write_amplification = runtime.finish("cleaning", load);
    runtime.drop_tasks();
    Ok(Measured { utilisation, write_amplification: write_amplification? })
}

fn format(runtime: &Virtual, steady: &Steady, pages: u64) -> Result<Rc<Ftl<ErasedZones<Stamp>>>> {
    let geometry = NandGeometry {
        channels: 1,
        packages_per_channel: 1,
        planes_per_package: 1,
        blocks_per_plane: steady.zones,
        pages_per_block: steady.zone_pages,
        page_bytes: 4096,
        spare_bytes: 64,
    };
    let timing = NandTiming {
        read_ns: 25_000,
        program_ns: 200_000,
        program_upper_ns: 200_000,
        erase_ns: 1_500_000,
        channel_bytes_per_second: 200_000_000,
    };
    let (faults, seed) = (NandFaults::default(), steady.seed);
    let nand = Nand::new(&NandOptions { geometry, timing, faults, seed })?;
    let options =
        NandZonesOptions { append_pages_max: steady.zone_pages, ..NandZonesOptions::default() };
    let media = ErasedZones::new(NandZones::new(runtime.clone(), nand, options)?);
    let options = FtlOptions {
        // One zone at a time, as in the models. For pages that a checkpoint covers cleaning writes only
        // copies, no records: pages are overwritten so often that zones are mostly older than the
        // checkpoint.
        cleaning_low_zones: 1,
        cleaning_high_zones: 1,
        checkpoint_interval_slots: u64::from(steady.zones) * u64::from(steady.zone_pages) / 8,
        wear_spread_max: u32::MAX,
        cleaning: steady.cleaning,
        ..FtlOptions::new(pages)
    };
    runtime.finish("formatting", Ftl::format(media, options))
}
