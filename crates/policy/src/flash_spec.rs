//! The part of the registry for policies that assume expensive writes or flash blocks, but do not use
//! the costs of reads and writes.
use crate::ad_lru::AdLru;
use crate::ccflru::CcfLru;
use crate::cflru::{Cflru, CflruWalk};
use crate::fab::Fab;
use crate::lru_wsr::LruWsr;
use crate::page_table::PageTable;
use crate::policy::Policy;
use crate::ref_::Ref;
use crate::watt::{Watt, WattOptions};
use tantalum_base::{Result, Spec};

/// One of these policies with its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum FlashSpec {
    Cflru { window: f64, walk: bool },
    LruWsr,
    CcfLru,
    AdLru { min_lc: f64 },
    Fab { block: u32 },
    Ref { window: f64, block: u32, victims: u32 },
    Watt(WattOptions),
}

impl FlashSpec {
    /// Takes the parameters of the policy that `spec` names; `None` if it is not one of these.
    pub(crate) fn take(spec: &mut Spec) -> Result<Option<FlashSpec>> {
        Ok(Some(match spec.name() {
            "cflru" => FlashSpec::Cflru {
                window: spec.number("window", 0.0..=1.0, 0.5)?,
                walk: spec.word("form", &["queues", "walk"])? == "walk",
            },
            "lru_wsr" => FlashSpec::LruWsr,
            "ccflru" => FlashSpec::CcfLru,
            "ad_lru" => FlashSpec::AdLru { min_lc: spec.number("min_lc", 0.0..=0.99, 0.1)? },
            "fab" => FlashSpec::Fab { block: spec.count("block", 1..=1024, 64)? as u32 },
            "ref" => FlashSpec::Ref {
                window: spec.number("window", 0.0..=1.0, 0.5)?,
                block: spec.count("block", 1..=65536, 16)? as u32,
                victims: spec.count("victims", 1..=64, 4)? as u32,
            },
            "watt" => FlashSpec::Watt(WattOptions::take(spec)?),
            _ => return Ok(None),
        }))
    }

    /// Makes the policy with `frames` frames, for pages numbered below `pages_end`.
    pub(crate) fn build<T: PageTable + 'static>(
        self,
        frames: u32,
        pages_end: u64,
    ) -> Box<dyn Policy> {
        match self {
            FlashSpec::Cflru { window, walk: true } => {
                Box::new(CflruWalk::<T>::new(frames, pages_end, window))
            }
            FlashSpec::Cflru { window, walk: false } => {
                Box::new(Cflru::<T>::new(frames, pages_end, window))
            }
            FlashSpec::LruWsr => Box::new(LruWsr::<T>::new(frames, pages_end)),
            FlashSpec::CcfLru => Box::new(CcfLru::<T>::new(frames, pages_end)),
            FlashSpec::AdLru { min_lc } => Box::new(AdLru::<T>::new(frames, pages_end, min_lc)),
            FlashSpec::Fab { block } => Box::new(Fab::<T>::new(frames, pages_end, block)),
            FlashSpec::Ref { window, block, victims } => {
                Box::new(Ref::<T>::new(frames, pages_end, window, block, victims))
            }
            FlashSpec::Watt(options) => Box::new(Watt::<T>::new(frames, pages_end, options)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::PolicySpec;

    #[test]
    fn bad_text_gets_what_is_accepted() {
        for (bad, said) in [
            ("cflru:window=2", "0 to 1, default 0.5"),
            ("cflru:form=list", "queues or walk"),
            ("cflru:size=4", "window (0 to 1, default 0.5); form (queues or walk"),
            ("lru_wsr:window=0.5", "takes no parameters"),
            ("ccflru:window=0.5", "takes no parameters"),
            ("ad_lru:min_lc=1", "0 to 0.99, default 0.1"),
            ("fab:block=0", "1 to 1024, default 64"),
            ("ref:victims=0", "1 to 64, default 4"),
            ("ref:vb=4", "window (0 to 1, default 0.5); block (1 to 65536, default 16)"),
            ("watt:k_read=65", "1 to 64, default 8"),
            ("watt:k=8", "write_cost (0 to 1000, default 4)"),
        ] {
            let error = PolicySpec::parse(bad).unwrap_err().to_string();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
