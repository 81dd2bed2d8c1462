//! A device as it is built: a profile at one capacity.
use std::rc::Rc;
use tantalum_base::size::Size;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Payload, Result, Spec};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::nand::Nand;
use tantalum_media::{NandOptions, NandZones, NandZonesOptions};
use tantalum_runtime::Runtime;

use super::Profile;
use crate::host_queue::{HostQueue, HostQueueOptions};
use crate::options::SsdOptions;
use crate::ssd::Ssd;

/// A device of simulated NAND behind a link.
pub type SimulatedSsd<R, P> = HostQueue<R, Ssd<NandZones<R, P>>>;

/// What a device of a profile is made with, at one capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// As it was asked for, with every parameter.
    pub name: String,
    /// The array. The seed is set when the device is built.
    pub nand: NandOptions,
    /// Zones over it.
    pub zones: NandZonesOptions,
    /// The FTL.
    pub ftl: FtlOptions,
    /// Write cache and transactions.
    pub ssd: SsdOptions,
    /// The link.
    pub link: HostQueueOptions,
}

impl DeviceConfig {
    /// Makes the device that `text` names: `durassd`, `durassd:capacity=4GiB,op=0.07`. Also takes
    /// `pages` instead of `capacity`, and `cache` (pages of the write cache).
    ///
    /// # Errors
    /// `InvalidInput`, which lists what is accepted.
    pub fn parse(text: &str) -> Result<DeviceConfig> {
        let (text, capacity_pages) = take_capacity(text)?;
        let mut spec = Spec::parse(&text)?;
        let profile = Profile::by_name(spec.name())
            .map_err(|_| spec.unknown_name("device profile", Profile::NAMES))?;
        let pages_max = u64::from(u32::MAX / 2);
        let pages = spec.count("pages", 1..=pages_max, capacity_pages.unwrap_or(profile.pages))?;
        let over_provisioning = spec.number("op", 0.0..=8.0, profile.over_provisioning)?;
        let mut config = profile.scaled(pages, over_provisioning)?;
        let cache_pages = u64::from(config.ssd.cache_pages);
        let chosen = spec.count("cache", 64..=u64::from(u32::MAX / 2), cache_pages)?;
        spec.finish()?;
        config.ssd = SsdOptions::new(config.ssd.cache, chosen as u32);
        config.name = format!("{},cache={chosen}", config.name);
        Ok(config)
    }

    /// The same device with room for `pages` pages in its write cache.
    pub fn with_cache_pages(mut self, pages: u32) -> DeviceConfig {
        self.ssd = SsdOptions::new(self.ssd.cache, pages);
        self
    }

    /// Makes the device, formats it and starts its tasks. What is left to chance comes from
    /// `seed`.
    pub async fn build<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        seed: u64,
    ) -> Result<Rc<SimulatedSsd<R, P>>> {
        let nand = Nand::new(&NandOptions { seed, ..self.nand })?;
        let zones = NandZones::new(runtime.clone(), nand, self.zones)?;
        let ftl = Ftl::format(zones, self.ftl).await?;
        let ssd = Rc::new(Ssd::new(ftl, self.ssd)?);
        ssd.start(runtime);
        Ok(Rc::new(HostQueue::new(runtime.clone(), ssd, self.link)?))
    }
}

/// Takes `capacity=4GiB` out of the text: sizes in bytes are no business of [`Spec`].
fn take_capacity(text: &str) -> Result<(String, Option<u64>)> {
    let Some((name, rest)) = text.split_once(':') else { return Ok((text.to_owned(), None)) };
    let mut pages = None;
    let mut kept = Vec::new();
    for part in rest.split(',') {
        match part.trim().strip_prefix("capacity=") {
            None => kept.push(part),
            Some(size) if pages.is_none() => {
                pages = Some(Size::parse_bytes(size)? / PAGE_BYTES as u64);
            }
            Some(_) => {
                let context = format!("{text:?}: \"capacity\" is given twice");
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
        }
    }
    Ok((format!("{name}:{}", kept.join(",")), pages))
}
