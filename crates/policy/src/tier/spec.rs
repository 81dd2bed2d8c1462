//! Middle tiers by name. To add a tier, add it to this list.
use super::flash_blocks::BlockGeometry;
use super::indirect::Indirect;
use super::lazy::Lazy;
use super::native::Native;
use super::none::NoTier;
use super::random_write::{Order, RandomWrite, RandomWriteOptions};
use super::sequential_write::{SequentialWrite, SequentialWriteOptions};
use super::{Admission, MiddleTier, Tracks};
use crate::page_table::{DirectTable, PageTable, SparseTable};
use std::fmt;
use tantalum_base::{Error, ErrorKind, Result, Spec};

/// A middle tier with its parameters, as text and as parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct TierSpec {
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Random { admission: Admission, order: Order, tracks: Tracks },
    Sequential { admission: Admission, tracks: Tracks },
    Indirect { deletes: u32, flash: Flash },
    Native { flash: Flash },
    Lazy { keep: f64, flash: Flash },
    None,
}

/// One page per track: the tracks of the disk are unknown.
const UNKNOWN: Tracks = Tracks { pages: 1, coalesce: false, piggyback: false };

/// The parameters of the flash, except its size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Flash {
    block_pages: u32,
    low: f64,
    high: f64,
}

impl Flash {
    fn parse(spec: &mut Spec) -> Result<Flash> {
        let flash = Flash {
            block_pages: spec.count("block", 1..=255, 128)? as u32,
            low: spec.number("low", 0.0..=0.5, 0.05)?,
            high: spec.number("high", 0.0..=0.5, 0.10)?,
        };
        if flash.low >= flash.high {
            return Err(refusal("free blocks: low must be less than high".into()));
        }
        Ok(flash)
    }

    /// The smallest flash that holds a cache of `pages` pages in addition to the reserved free blocks.
    fn geometry(self, pages: u32) -> BlockGeometry {
        let mut blocks = pages.div_ceil(self.block_pages).max(3);
        loop {
            let high = ((f64::from(blocks) * self.high) as u32).max(2);
            let low = ((f64::from(blocks) * self.low) as u32).clamp(1, high - 1);
            if u64::from(blocks - high) * u64::from(self.block_pages) >= u64::from(pages) {
                let (free_blocks_low, free_blocks_high) = (low, high);
                let block_pages = self.block_pages;
                return BlockGeometry { blocks, block_pages, free_blocks_low, free_blocks_high };
            }
            blocks += 1;
        }
    }
}

impl TierSpec {
    /// The accepted names.
    pub const NAMES: &'static [&'static str] =
        &["write_cache", "loc", "glb", "bl", "lpd", "nfa", "lazy", "none"];

    /// Parses `name` or `name:key=value,...`. The error lists the accepted values.
    ///
    /// - `write_cache:admit=write,place=random,order=lru,coalesce=off,piggyback=off,track=32`: admission on
    ///   `write`, `read` or `eviction`; placement at `random` or `sequential`; eviction in `order=lru` or
    ///   `densest` track first, only with random placement (write cache, table 1);
    /// - `loc` and `glb`: the same with admission on reads and on evictions respectively, random
    ///   placement, LRU;
    /// - `bl`, `lpd:d=1024`, `nfa` and `lazy:keep=0.7` (share of the flash that collections move), each also with
    ///   `block=128,low=0.05,high=0.10`: pages in a block, and the shares of free blocks at which collection starts and
    ///   stops;
    /// - `none`: every request goes home.
    pub fn parse(text: &str) -> Result<TierSpec> {
        let text = &*Spec::spelled(text, TierSpec::NAMES);
        let mut spec = Spec::parse(text)?;
        let kind = match spec.name() {
            "write_cache" => Self::write_cache(&mut spec)?,
            "loc" => {
                Kind::Random { admission: Admission::Read, order: Order::Lru, tracks: UNKNOWN }
            }
            "glb" => {
                Kind::Random { admission: Admission::Eviction, order: Order::Lru, tracks: UNKNOWN }
            }
            "bl" => Kind::Indirect { deletes: 0, flash: Flash::parse(&mut spec)? },
            "lpd" => Kind::Indirect {
                deletes: spec.count("d", 0..=u32::MAX.into(), 1024)? as u32,
                flash: Flash::parse(&mut spec)?,
            },
            "nfa" => Kind::Native { flash: Flash::parse(&mut spec)? },
            "lazy" => Kind::Lazy {
                keep: spec.number("keep", 0.01..=1.0, 0.7)?,
                flash: Flash::parse(&mut spec)?,
            },
            "none" => Kind::None,
            _ => return Err(spec.unknown_name("middle tier", TierSpec::NAMES)),
        };
        spec.finish()?;
        Ok(TierSpec { text: text.to_owned(), kind })
    }

    /// Parses a list. An item `key=value` belongs to the tier with parameters before it.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and if the list is empty.
    pub fn parse_list(text: &str) -> Result<Vec<TierSpec>> {
        let specs = Spec::list(text);
        if specs.is_empty() {
            let names = TierSpec::NAMES.join(", ");
            return Err(refusal(format!("no middle tier given; accepted: {names}")));
        }
        specs.iter().map(|spec| TierSpec::parse(spec)).collect()
    }

    fn write_cache(spec: &mut Spec) -> Result<Kind> {
        let admission = match spec.word("admit", &["write", "read", "eviction"])? {
            "read" => Admission::Read,
            "eviction" => Admission::Eviction,
            _ => Admission::Write,
        };
        let sequential = spec.word("place", &["random", "sequential"])? == "sequential";
        let order = spec.word("order", &["default", "lru", "densest"])?;
        let coalesce = spec.word("coalesce", &["off", "on"])? == "on";
        let piggyback = spec.word("piggyback", &["off", "on"])? == "on";
        let pages = spec.count("track", 1..=64, 32)? as u32;
        let tracks = Tracks { pages, coalesce, piggyback };
        if sequential && order != "default" {
            return Err(refusal(format!(
                "place=sequential and order={order} cannot be combined: a ring always evicts the \
                 page in the next slot (use order with place=random)"
            )));
        }
        if order == "densest" && !coalesce {
            let why = "order=densest needs coalesce=on, because it evicts whole tracks";
            return Err(refusal(why.into()));
        }
        Ok(match (sequential, order) {
            (true, _) => Kind::Sequential { admission, tracks },
            (false, "densest") => {
                Kind::Random { admission, order: Order::DensestTrackFirst, tracks }
            }
            (false, _) => Kind::Random { admission, order: Order::Lru, tracks },
        })
    }

    /// An empty cache of `pages` pages, which are numbered below `pages_end` (`u64::MAX` if unknown). With
    /// flash in blocks, it has as many blocks as that requires.
    pub fn build(&self, pages: u32, pages_end: u64) -> Box<dyn MiddleTier> {
        if DirectTable::is_worth_it(pages, pages_end) {
            self.build_over::<DirectTable>(pages, pages_end)
        } else {
            self.build_over::<SparseTable>(pages, pages_end)
        }
    }

    pub(crate) fn build_over<T: PageTable + 'static>(
        &self,
        slots: u32,
        pages_end: u64,
    ) -> Box<dyn MiddleTier> {
        match self.kind {
            Kind::Random { admission, order, tracks } => {
                let options = RandomWriteOptions { slots, admission, order, tracks };
                Box::new(RandomWrite::<T>::new(options, pages_end))
            }
            Kind::Sequential { admission, tracks } => {
                let options = SequentialWriteOptions { slots, admission, tracks };
                Box::new(SequentialWrite::<T>::new(options, pages_end))
            }
            Kind::Indirect { deletes, flash } => {
                Box::new(Indirect::<T>::new(flash.geometry(slots), deletes, pages_end))
            }
            Kind::Lazy { keep, flash } => {
                Box::new(Lazy::<T>::new(flash.geometry(slots), keep, pages_end))
            }
            Kind::None => Box::new(NoTier::default()),
            Kind::Native { flash } => Box::new(Native::<T>::new(flash.geometry(slots), pages_end)),
        }
    }

    /// Whether the top tier must report the pages that it evicts clean.
    pub fn is_exclusive(&self) -> bool {
        matches!(
            self.kind,
            Kind::Random { admission: Admission::Eviction, .. }
                | Kind::Sequential { admission: Admission::Eviction, .. }
        )
    }
}

impl fmt::Display for TierSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn refusal(why: String) -> Error {
    Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_contradicts_itself_is_refused_and_says_why() {
        for (text, why) in [
            ("write_cache:place=sequential,order=lru", "cannot be combined"),
            ("write_cache:place=sequential,order=densest,coalesce=on", "cannot be combined"),
            ("write_cache:order=densest", "needs coalesce=on"),
            ("write_cache:admit=never", "write or read or eviction"),
            ("nfa:low=0.2,high=0.1", "low must be less than high"),
            ("lpd:e=1", "d (0 to"),
            ("loc:track=3", "loc"),
            ("bcache", "write_cache, loc, glb, bl, lpd, nfa, lazy, none"),
        ] {
            let error = TierSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_list_keeps_parameters_with_their_tier() {
        let list = TierSpec::parse_list("nfa,lpd:d=8,block=64 glb").unwrap();
        let texts: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["nfa", "lpd:d=8,block=64", "glb"]);
        assert!(TierSpec::parse_list(" ").unwrap_err().to_string().contains("no middle tier"));
    }

    #[test]
    fn flash_is_as_large_as_in_the_paper() {
        let flash = Flash { block_pages: 128, low: 0.05, high: 0.10 };
        assert_eq!(flash.geometry(59_008), BlockGeometry::PAPER);
        assert_eq!(BlockGeometry::PAPER.cache_pages(), 59_008);
        for pages in [1, 127, 128, 129, 5000] {
            assert!(flash.geometry(pages).cache_pages() >= pages);
        }
    }
}
