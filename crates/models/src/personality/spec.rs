//! Personalities by name: the layer and its parameters.
use std::fmt;
use tantalum_base::{Error, ErrorKind, Result, Spec};
use tantalum_media::ZoneGeometry;

use super::blocks::pages_per_block;
use super::{bast, block_map, dftl, fast};

/// A translation layer with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonalitySpec {
    /// One erase block per logical block, pages at their offsets.
    BlockMap,
    /// Block mapping with log blocks, one per data block.
    Bast {
        /// Number of log blocks.
        logs: u32,
    },
    /// Block mapping with a sequential log block and shared log blocks.
    Fast {
        /// Number of shared log blocks.
        logs: u32,
    },
    /// Page mapping with a cached map.
    Dftl {
        /// Number of cached entries of the map.
        cmt: u32,
    },
}

impl PersonalitySpec {
    /// The accepted names.
    pub const NAMES: &'static [&'static str] = &["block-map", "bast", "fast", "dftl"];

    /// Takes the layer's parameters from `spec`.
    ///
    /// Parameters: `bast:logs=8`, `fast:logs=8` (log blocks, 1 to 65,536), `dftl:cmt=4k` (cached
    /// entries, at least 2).
    pub(super) fn take(spec: &mut Spec<'_>) -> Result<PersonalitySpec> {
        Ok(match spec.name() {
            "block-map" => PersonalitySpec::BlockMap,
            "bast" => PersonalitySpec::Bast { logs: spec.count("logs", 1..=65_536, 8)? as u32 },
            "fast" => PersonalitySpec::Fast { logs: spec.count("logs", 1..=65_536, 8)? as u32 },
            "dftl" => {
                let cmt = spec.count("cmt", 2..=u64::from(u32::MAX / 2), 4096)?;
                PersonalitySpec::Dftl { cmt: cmt as u32 }
            }
            _ => {
                return Err(spec.unknown_name("translation layer", PersonalitySpec::NAMES));
            }
        })
    }

    /// Parses `name` or `name:key=value`. The error lists the accepted values.
    pub fn parse(text: &str) -> Result<PersonalitySpec> {
        let mut spec = Spec::parse(text)?;
        let personality = PersonalitySpec::take(&mut spec)?;
        spec.finish()?;
        Ok(personality)
    }

    /// Number of erase blocks needed for `pages` pages.
    pub fn blocks_for(&self, pages: u64, pages_per_block: u32) -> u64 {
        let logical = pages.div_ceil(u64::from(pages_per_block));
        logical
            + match self {
                PersonalitySpec::BlockMap => u64::from(block_map::SPARE_BLOCKS),
                PersonalitySpec::Bast { logs } => u64::from(logs + bast::SPARE_BLOCKS),
                PersonalitySpec::Fast { logs } => u64::from(logs + fast::SPARE_BLOCKS),
                PersonalitySpec::Dftl { .. } => {
                    let map = pages.div_ceil(dftl::ENTRIES);
                    map.div_ceil(u64::from(pages_per_block)) + u64::from(dftl::SPARE_BLOCKS)
                }
            }
    }

    /// Maximum number of pages on a medium of `geometry` without `retired` zones; 0 if it is too
    /// small.
    pub fn pages_max(&self, geometry: &ZoneGeometry, retired: u32) -> u64 {
        let per_block = pages_per_block(geometry);
        if per_block == 0 {
            return 0;
        }
        let zones = u64::from(geometry.zones.saturating_sub(retired));
        let (mut low, mut high) = (0, zones * u64::from(per_block));
        while low < high {
            let middle = (low + high).div_ceil(2);
            match self.blocks_for(middle, per_block) <= zones {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        low
    }

    /// Returns an error if the medium is too small for `pages` pages.
    pub(super) fn check(&self, pages: u64, geometry: &ZoneGeometry, retired: u32) -> Result<()> {
        if geometry.append_overhead_slots > 0 {
            // A file's zones keep their old content until it is overwritten.
            let context =
                format!("{self} needs erase blocks, and a reset of these zones erases nothing");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let most = self.pages_max(geometry, retired);
        if (1..=most).contains(&pages) {
            return Ok(());
        }
        let none = if most == 0 { ": it needs more erase blocks than there are" } else { "" };
        Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "{pages} logical pages do not fit: {self} over {} zones of {} slots can offer at \
                 most {most}{none}",
                geometry.zones - retired.min(geometry.zones),
                geometry.slots_per_zone
            ),
        ))
    }
}

impl fmt::Display for PersonalitySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PersonalitySpec::BlockMap => f.write_str("block-map"),
            PersonalitySpec::Bast { logs } => write!(f, "bast:logs={logs}"),
            PersonalitySpec::Fast { logs } => write!(f, "fast:logs={logs}"),
            PersonalitySpec::Dftl { cmt } => write!(f, "dftl:cmt={cmt}"),
        }
    }
}
