//! The flash, which is the same for all: DuraSSD's chips and link ([`durassd`](tantalum_models::profile)). Only the firmware differs.
use tantalum_base::Result;
use tantalum_ftl::FtlOptions;
use tantalum_models::DeviceConfig;
use tantalum_ssd::{CacheKind, FlushMeaning, SsdOptions};

use super::cell::Device;

/// The chips and the link with the firmware of this device.
///
/// # Errors
/// `InvalidInput` if there are too few pages.
pub(super) fn flash(device: Device, pages: u64) -> Result<DeviceConfig> {
    let durable = DeviceConfig::parse(&format!("durassd:pages={pages}"))?;
    let mut config = match device {
        Device::DuraSsd => durable,
        Device::Plain => without_energy(durable, CacheKind::Volatile),
        Device::Share | Device::Transactions | Device::Tiered => {
            without_energy(durable, CacheKind::Ordered)
        }
    };
    config.nand.geometry.blocks_per_plane /= device.flash_divisor();
    Ok(config)
}

/// The same without stored energy: a flush reaches the device, which writes back its cache and the mapping. The blocks of the dump remain,
/// for cleaning.
fn without_energy(config: DeviceConfig, cache: CacheKind) -> DeviceConfig {
    let with = config.with_barrier(true);
    let old = with.ssd;
    let ssd = SsdOptions {
        flush: FlushMeaning::WriteBack,
        persist_mapping: old.persist_mapping,
        write_back_pages_max: old.write_back_pages_max,
        write_backs_in_flight: old.write_backs_in_flight,
        ..SsdOptions::new(cache, old.cache_pages)
    };
    DeviceConfig { ssd, ftl: FtlOptions { dump: None, ..with.ftl }, ..with }
}
