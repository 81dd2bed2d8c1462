//! The durability that NBD clients of a volume are promised, and the setting that it comes from.
use anyhow::bail;
use tantalum_volume::VolumeConfig;
use tantalum_volume::config::{DurabilityConfig, Kind};

/// The durability of the writes of NBD clients.
pub struct Promise {
    durability: DurabilityConfig,
    why: &'static str,
}

impl Promise {
    /// The promise for the volume of `config`. `asked` applies to this run alone, and is put into `config`.
    ///
    /// # Errors
    /// If the volume cannot keep the requested promise.
    pub fn choose(config: &mut VolumeConfig, asked: Option<&str>) -> anyhow::Result<Promise> {
        let why = match (asked, config.device.durability) {
            (Some(_), _) => "as --durability says",
            (None, Some(_)) => "as device.durability says",
            (None, None) if config.kind == Kind::Tiered => "as for every cache of a home",
            (None, None) => "the default over NBD",
        };
        if let Some(asked) = asked {
            let Some(durability) = DurabilityConfig::named(asked) else {
                bail!("--durability: {asked:?} is not one of on_ack, on_flush");
            };
            config.device.durability = Some(durability);
            config.check_durability()?;
        }
        Ok(Promise { durability: config.durability_over_nbd(), why })
    }

    /// The configuration with which the volume is opened to keep this promise.
    pub fn apply(&self, config: &VolumeConfig) -> VolumeConfig {
        let mut served = config.clone();
        served.device.durability = Some(self.durability);
        served
    }

    /// The promise as it appears in the server's first line.
    pub fn told(&self) -> String {
        format!("{}, {},", self.durability.name(), self.why)
    }
}
