//! A personality over simulated NAND, from text.
use crate::nand::{Nand, NandFaults, NandGeometry, NandTiming};
use crate::{NandOptions, NandZones, NandZonesOptions};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Payload, Result, Spec};
use tantalum_media::ErasedZones;
use tantalum_runtime::Runtime;

use super::{Personality, PersonalityKind, PersonalitySpec};

/// SLC flash as in the DFTL paper (Gupta et al., ASPLOS 2009, table 1): 25 µs, 200 µs and 1.5 ms.
/// The bus is chosen.
const TIMING: NandTiming = NandTiming {
    read_ns: 25_000,
    program_ns: 200_000,
    program_upper_ns: 200_000,
    erase_ns: 1_500_000,
    channel_bytes_per_second: 40_000_000,
};

/// A device of simulated NAND with one of the personalities.
pub type SimulatedPersonality<P> = Personality<ErasedZones<P>>;

/// Configuration of such a device.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonalityConfig {
    /// Its name as requested, with every parameter.
    pub name: String,
    /// The translation layer.
    pub spec: PersonalitySpec,
    /// Logical pages.
    pub pages: u64,
    /// The array. It has one plane, so that a zone is an erase block. The seed is set when the
    /// device is built.
    pub nand: NandOptions,
}

impl PersonalityConfig {
    /// Parses the device in `text`: `block-map`, `bast:logs=8,capacity=64MiB`,
    /// `dftl:cmt=4k,pages=16k,op=0.07,block=64`. `op` is the flash beyond the pages and the layer's
    /// minimum, as a share of the pages; `block` is the number of pages in an erase block.
    ///
    /// # Errors
    /// `InvalidInput`, with a list of the accepted values.
    pub fn parse(text: &str) -> Result<PersonalityConfig> {
        PersonalityConfig::of_spec(Spec::parse(text)?)
    }

    /// As [`parse`](Self::parse), for text that was already split into its parts.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn of_spec(mut text_spec: Spec<'_>) -> Result<PersonalityConfig> {
        let spec = PersonalitySpec::take(&mut text_spec)?;
        let pages = text_spec.capacity_pages(1..=u64::from(u32::MAX / 4), 16_384)?;
        let over_provisioning = text_spec.number("op", 0.0..=8.0, 0.07)?;
        let block = text_spec.count("block", 2..=4096, 64)? as u32;
        text_spec.finish()?;
        let raw = pages + (pages as f64 * over_provisioning).ceil() as u64;
        // Block-mapped layers use more blocks only to spread wear.
        let blocks = spec.blocks_for(raw, block).max(8);
        if blocks * u64::from(block) > u64::from(u32::MAX) {
            let context = format!("{spec} with {pages} pages has more than 2^32 slots");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let geometry = NandGeometry {
            channels: 1,
            packages_per_channel: 1,
            planes_per_package: 1,
            blocks_per_plane: blocks as u32,
            pages_per_block: block,
            page_bytes: PAGE_BYTES as u32,
            spare_bytes: 128,
        };
        let faults = NandFaults::default();
        let joint = if spec.to_string().contains(':') { ',' } else { ':' };
        Ok(PersonalityConfig {
            name: format!("{spec}{joint}pages={pages},op={over_provisioning},block={block}"),
            spec,
            pages,
            nand: NandOptions { geometry, timing: TIMING, faults, seed: 0 },
        })
    }

    /// How the device is made and opened.
    pub fn kind(&self) -> PersonalityKind {
        PersonalityKind { spec: self.spec, pages: self.pages }
    }

    /// The zones over a new array. `seed` determines everything random.
    pub fn new_zones<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        seed: u64,
    ) -> Result<NandZones<R, P>> {
        let nand = Nand::new(&NandOptions { seed, ..self.nand })?;
        NandZones::new(runtime.clone(), nand, NandZonesOptions::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_is_made_from_text() {
        for name in PersonalitySpec::NAMES {
            let config = PersonalityConfig::parse(name).unwrap();
            assert_eq!(config.pages, 16_384);
            assert_eq!(PersonalityConfig::parse(&config.name).unwrap(), config);
        }
        let config = PersonalityConfig::parse("bast:logs=4,capacity=4MiB,block=32").unwrap();
        assert_eq!((config.spec, config.pages), (PersonalitySpec::Bast { logs: 4 }, 1024));
    }

    #[test]
    fn bad_text_lists_what_is_accepted() {
        let error = PersonalityConfig::parse("nftl").unwrap_err().to_string();
        assert!(error.contains("block-map, bast, fast, dftl"), "{error}");
        let error = PersonalityConfig::parse("dftl:logs=3").unwrap_err().to_string();
        assert!(error.contains("cmt (2 to"), "{error}");
        assert!(PersonalityConfig::parse("bast:capacity=much").is_err());
    }
}
