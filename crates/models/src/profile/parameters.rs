//! Text parameters that several kinds of devices accept.
use tantalum_base::size::Size;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result, Spec};
use tantalum_ftl::{DumpOptions, FtlOptions};
use tantalum_policy::CleaningSpec;

use super::{DeviceConfig, Profile};
use crate::energy::Capacitors;
use tantalum_ssd::{CacheKind, FlushMeaning};

/// Maximum size in pages of the write cache of a device of `pages` pages: more would never be used,
/// and frames take memory when the device is made. `usual` is the default size.
pub(super) fn cache_pages_max(pages: u64, usual: u64) -> u64 {
    pages.max(usual).min(u64::from(u32::MAX / 2))
}

/// Options for cleaning and wear levelling of a page-mapping FTL, if given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FtlParameters {
    /// The cleaning policy.
    pub cleaning: Option<CleaningSpec>,
    /// Maximum difference in resets between zones; `u32::MAX` switches levelling off.
    pub wear_spread_max: Option<u32>,
}

impl FtlParameters {
    /// Takes `cleaning` (a policy: `greedy`, `cost-benefit`, `fifo`, `d-choices:8`) and `wear_spread`
    /// (resets; 0 switches wear levelling off), and adds them to the device's `name`.
    pub(super) fn take(spec: &mut Spec, name: &mut String) -> Result<Self> {
        let usual = FtlOptions::new(1);
        let words = format!("{}, default {}", CleaningSpec::WORDS, usual.cleaning);
        let cleaning = match spec.text("cleaning", &words) {
            None => None,
            Some(text) => {
                let policy =
                    CleaningSpec::parse(text).map_err(|_| spec.refuse("cleaning", text))?;
                name.push_str(&format!(",cleaning={text}"));
                Some(policy)
            }
        };
        let words = format!(
            "resets that zones may differ by, 1 to {}, or 0 for any, default {}",
            u32::MAX - 1,
            usual.wear_spread_max
        );
        let wear_spread_max = match spec.text("wear_spread", &words) {
            None => None,
            Some(text) => {
                let resets = text.parse().ok().filter(|resets| *resets < u32::MAX);
                let resets = resets.ok_or_else(|| spec.refuse("wear_spread", text))?;
                name.push_str(&format!(",wear_spread={resets}"));
                Some(if resets == 0 { u32::MAX } else { resets })
            }
        };
        Ok(FtlParameters { cleaning, wear_spread_max })
    }

    /// Applies the given options to `ftl`.
    pub(super) fn apply(&self, ftl: &mut FtlOptions) {
        ftl.cleaning = self.cleaning.unwrap_or(ftl.cleaning);
        ftl.wear_spread_max = self.wear_spread_max.unwrap_or(ftl.wear_spread_max);
    }
}

/// Options for durable caches only, if given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DurableParameters {
    /// The effect of a flush.
    pub flush: Option<FlushMeaning>,
    energy: Option<Energy>,
}

impl DurableParameters {
    /// Takes `flush`, and `energy` or `capacitors`, if `profile` has a durable cache.
    pub(super) fn take(profile: &Profile, spec: &mut Spec) -> Result<Self> {
        if profile.cache != CacheKind::Durable {
            return Ok(DurableParameters::default());
        }
        let words =
            "order or write-back; barrier=on goes with it, where it is write-back by default";
        let flush = match spec.text("flush", words) {
            None => None,
            Some("order") => Some(FlushMeaning::Order),
            Some("write-back") => Some(FlushMeaning::WriteBack),
            Some(other) => return Err(spec.refuse("flush", other)),
        };
        Ok(DurableParameters { flush, energy: Energy::take(spec)? })
    }

    /// Returns an error if an option was given for the device called `name`, whose cache is off.
    pub(super) fn check_none_given(&self, name: &str) -> Result<()> {
        if *self == DurableParameters::default() {
            return Ok(());
        }
        let context = format!(
            "{name},storage-cache=off: flush, energy and capacitors are of a write cache that is on"
        );
        Err(Error::new(ErrorKind::InvalidInput, context))
    }

    /// Applies the given options to `config`, a device of `profile`.
    pub(super) fn apply(
        &self,
        profile: &Profile,
        mut config: DeviceConfig,
    ) -> Result<DeviceConfig> {
        if let Some(flush) = self.flush {
            let text = if flush == FlushMeaning::Order { "order" } else { "write-back" };
            if !config.link.barrier {
                let context = format!(
                    "{}: flush={text} and barrier=off, with which no flush reaches the device",
                    config.name
                );
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
            config.ssd.flush = flush;
            config.name = format!("{},flush={text}", config.name);
        }
        match self.energy {
            Some(energy) => energy.apply(profile, config),
            None => Ok(config),
        }
    }
}

/// The requested stored energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Energy {
    /// As the number of bytes that can be dumped.
    Bytes(u64),
    /// As the number of capacitors of the profile's kind.
    Capacitors(u32),
}

impl Energy {
    /// Takes `energy` (the number of bytes that it can dump, with a unit) or `capacitors` (their
    /// number), if one is given.
    pub(super) fn take(spec: &mut Spec) -> Result<Option<Energy>> {
        let words = "bytes that can be dumped, with a unit; default in proportion to capacity and \
                     cache";
        let energy = spec.text("energy", words);
        let capacitors = spec.text("capacitors", "1 to 65536, instead of energy");
        match (energy, capacitors) {
            (None, None) => Ok(None),
            (Some(bytes), None) => match Size::parse_bytes(bytes) {
                Ok(bytes) => Ok(Some(Energy::Bytes(bytes))),
                Err(_) => Err(spec.refuse("energy", bytes)),
            },
            (None, Some(count)) => match count.parse() {
                Ok(count @ 1..=65_536) => Ok(Some(Energy::Capacitors(count))),
                _ => Err(spec.refuse("capacitors", count)),
            },
            (Some(_), Some(_)) => Err(Error::new(
                ErrorKind::InvalidInput,
                "either \"energy\" or \"capacitors\", not both",
            )),
        }
    }

    /// The parameter as text.
    pub(super) fn text(self) -> String {
        match self {
            Energy::Bytes(bytes) => format!("energy={bytes}B"),
            Energy::Capacitors(count) => format!("capacitors={count}"),
        }
    }

    /// Sets the energy of `config`, a device of `profile`, to exactly this.
    ///
    /// # Errors
    /// `InvalidInput` if its cache needs more energy; the error states how much.
    fn apply(self, profile: &Profile, mut config: DeviceConfig) -> Result<DeviceConfig> {
        let (Some(dump), Some(capacitors)) = (config.ftl.dump, profile.capacitors) else {
            return Ok(config);
        };
        let dump_bytes = |count| Capacitors { count, ..capacitors }.dump_bytes();
        let budget_bytes = match self {
            Energy::Bytes(bytes) => bytes,
            Energy::Capacitors(count) => dump_bytes(count)?,
        };
        let dump = DumpOptions { budget_bytes, ..dump };
        let geometry = config.geometry();
        let least = dump.with_least_budget(&geometry, config.ftl.pages).budget_bytes;
        let name = format!("{},{}", config.name, self.text());
        if budget_bytes < least {
            let mut context = format!(
                "{name}: {budget_bytes} bytes cannot dump a cache of {} pages and the mapping entries \
                 beside it; at least {least} are needed",
                dump.frames_max
            );
            if let Energy::Capacitors(_) = self {
                let needed =
                    (1..).find(|count| !matches!(dump_bytes(*count), Ok(bytes) if bytes < least));
                context.push_str(&format!(", {} capacitors", needed.unwrap_or(u32::MAX)));
            }
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        if let Energy::Capacitors(count) = self {
            config.ssd.recharge_ns = Capacitors { count, ..capacitors }.recharge_ns();
        }
        config.name = name;
        Ok(config.with_dump(Some(dump)))
    }
}

/// Number of frames that one of `depth` commands may take of a cache of `cache_pages`, if each has
/// an equal share (DuraSSD, section 3.1.1): at least 64 KiB, so that a small cache does not refuse
/// the usual writes of hosts.
pub(super) fn command_share_pages(cache_pages: u32, depth: u32) -> u32 {
    (cache_pages / depth).max(COMMAND_SHARE_PAGES_MIN).min(cache_pages)
}

const COMMAND_SHARE_PAGES_MIN: u32 = (64 << 10) / PAGE_BYTES as u32;
