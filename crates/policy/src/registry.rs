//! Policies by name. To add a policy, add it to this list.
use crate::ace::Ace;
use crate::arc::Arc;
use crate::cacheus::Cacheus;
use crate::casa::Casa;
use crate::cfdc::{Cfdc, CfdcOptions};
use crate::clock::Clock;
use crate::cost_detection::CostSpec;
use crate::fifo::Fifo;
use crate::flash_spec::FlashSpec;
use crate::lecar::{Lecar, LecarOptions};
use crate::lfu::Lfu;
use crate::lirs::Lirs;
use crate::lirs_wsr::LirsWsr;
use crate::lru::Lru;
use crate::lru_k::{LruK, LruKOptions};
use crate::opt::Opt;
use crate::page_table::{DirectTable, PageTable, SparseTable};
use crate::policy::{Policy, Request};
use crate::s3_fifo::S3Fifo;
use crate::sawc::Sawc;
use crate::second_chance::SecondChance;
use crate::sieve::Sieve;
use crate::slru::Slru;
use crate::two_q::TwoQ;
use crate::w_tinylfu::WTinyLfu;
use tantalum_base::{Error, ErrorKind, Result, Spec};

/// The workload that a policy is made for.
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    /// All page numbers lie below this; `u64::MAX` if unknown.
    pub pages_end: u64,
    /// The requests to come, for policies that need the future; empty if unknown.
    pub future: &'a [Request],
}

/// A policy with its parameters, as text and as parsed.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicySpec {
    text: String,
    kind: Kind,
}

#[derive(Clone, PartialEq, Debug)]
enum Kind {
    Lru,
    Fifo,
    Clock { bits: u32 },
    Sieve,
    Lfu,
    Slru { protected: f64 },
    Opt,
    Cfdc { options: CfdcOptions, base: Box<PolicySpec> },
    Casa { cost: CostSpec },
    Sawc { cost: CostSpec, cluster_pages: u32 },
    SecondChance,
    TwoQ { in_share: f64, out_share: f64 },
    Arc,
    Lirs { hir: f64, stack: u32, reorders_writes: bool },
    LruK(LruKOptions),
    S3Fifo { small: f64, ghost: f64, move_uses: u8 },
    WTinyLfu { window: f64, sample: u32 },
    Lecar(LecarOptions),
    Cacheus { seed: u64 },
    Ace { write_pages: u32, evict_pages: u32, base: Box<PolicySpec> },
    Flash(FlashSpec),
}

/// Another name of `opt`.
const BELADY: &str = "belady";

impl PolicySpec {
    /// The accepted names.
    pub const NAMES: &'static [&'static str] = &[
        "lru",
        "fifo",
        "clock",
        "second_chance",
        "sieve",
        "opt",
        "lfu",
        "slru",
        "lru_k",
        "2q",
        "arc",
        "lirs",
        "lirs_wsr",
        "s3_fifo",
        "w_tinylfu",
        "lecar",
        "cacheus",
        "cflru",
        "lru_wsr",
        "ccflru",
        "ad_lru",
        "fab",
        "ref",
        "watt",
        "cfdc",
        "casa",
        "sawc",
        "ace",
    ];

    /// Parses `name` or `name:key=value,...`. The error lists the accepted values. Parameters, their ranges and
    /// defaults are in `docs/policies.md`, their meaning in each policy's file. Case and hyphens of names do not
    /// matter.
    ///
    /// The parameters of a base policy stand after slashes: `cfdc:window=0.3,base=clock/bits=2`.
    /// Everything after the first `base=` belongs to the inner base:
    /// `ace:base=cfdc/window=0.3/base=clock/bits=2`.
    pub fn parse(text: &str) -> Result<PolicySpec> {
        let text = Spec::spelled(text, PolicySpec::NAMES);
        // Belady's MIN is the policy that papers call OPT.
        let text = match Spec::spelled(&text, &[BELADY]).strip_prefix(BELADY) {
            Some(parameters) => format!("opt{parameters}"),
            None => text.into_owned(),
        };
        let text = text.as_str();
        let mut spec = Spec::parse(text)?;
        let kind = match spec.name() {
            "lru" => Kind::Lru,
            "fifo" => Kind::Fifo,
            "clock" => Kind::Clock { bits: spec.count("bits", 1..=7, 1)? as u32 },
            "sieve" => Kind::Sieve,
            "lfu" => Kind::Lfu,
            "slru" => Kind::Slru { protected: spec.number("protected", 0.0..=1.0, 0.8)? },
            "opt" => Kind::Opt,
            "cfdc" => Kind::Cfdc {
                options: CfdcOptions {
                    window: spec.number("window", 0.0..=1.0, 0.5)?,
                    cluster_pages: spec.count("cluster", CfdcOptions::CLUSTER_PAGES, 16)? as u32,
                },
                base: take_base(&mut spec, "lru")?,
            },
            "casa" => Kind::Casa { cost: CostSpec::take(&mut spec)? },
            "sawc" => Kind::Sawc {
                cost: CostSpec::take(&mut spec)?,
                cluster_pages: spec.count("cluster", 1..=1024, 16)? as u32,
            },
            "second_chance" => Kind::SecondChance,
            "2q" => Kind::TwoQ {
                in_share: spec.number("in", 0.0..=1.0, 0.25)?,
                out_share: spec.number("out", 0.0..=2.0, 0.5)?,
            },
            "arc" => Kind::Arc,
            name @ ("lirs" | "lirs_wsr") => Kind::Lirs {
                reorders_writes: name == "lirs_wsr",
                hir: spec.number("hir", 0.0..=1.0, 0.01)?,
                stack: spec.count("stack", 1..=1_000_000, 2500)? as u32,
            },
            "lru_k" => Kind::LruK(LruKOptions {
                k: spec.count("k", 1..=8, 2)? as u32,
                history: spec.number("history", 0.0..=2.0, 1.0)?,
                correlated: spec.count("correlated", 0..=1 << 40, 0)?,
            }),
            "s3_fifo" => Kind::S3Fifo {
                small: spec.number("small", 0.0..=1.0, 0.1)?,
                ghost: spec.number("ghost", 0.0..=2.0, 0.9)?,
                move_uses: spec.count("move", 1..=3, 2)? as u8,
            },
            "w_tinylfu" => Kind::WTinyLfu {
                window: spec.number("window", 0.0..=1.0, 0.01)?,
                sample: spec.count("sample", 1..=1000, 10)? as u32,
            },
            "lecar" => Kind::Lecar(LecarOptions::take(&mut spec)?),
            "cacheus" => Kind::Cacheus { seed: spec.count("seed", 0..=u64::MAX, 0)? },
            "ace" => {
                let write_pages = spec.count("write", 1..=1024, 8)?;
                Kind::Ace {
                    write_pages: write_pages as u32,
                    evict_pages: spec.count("evict", 1..=write_pages, 1)? as u32,
                    base: take_base(&mut spec, "clock")?,
                }
            }
            _ => match FlashSpec::take(&mut spec)? {
                Some(flash) => Kind::Flash(flash),
                None => return Err(spec.unknown_name("policy", PolicySpec::NAMES)),
            },
        };
        spec.finish()?;
        Ok(PolicySpec { text: text.trim().to_owned(), kind })
    }

    /// Parses `policies`, separated by blanks or by commas. A comma before `key=value` separates
    /// parameters of one policy (`clock:bits=2,lru` is two policies).
    pub fn parse_list(text: &str) -> Result<Vec<PolicySpec>> {
        let specs = Spec::list(text);
        if specs.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("no policy given; accepted: {}", PolicySpec::NAMES.join(", ")),
            ));
        }
        specs.iter().map(|spec| PolicySpec::parse(spec)).collect()
    }

    /// The text it was made from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The maximum number of frames of a cache: 2 TiB of pages of 4 KiB.
    pub const FRAMES_MAX: u32 = 1 << 29;

    /// Checks that [`build`](Self::build) would succeed, without allocating the frames.
    ///
    /// # Errors
    /// `InvalidInput` if no policy accepts this number of frames; `Unsupported` or `TooLarge` if the policy cannot
    /// serve this `workload`.
    pub fn check(&self, frames: u32, workload: Workload) -> Result<()> {
        if frames == 0 || frames > PolicySpec::FRAMES_MAX {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("a cache of {frames} pages; accepted: 1 to {}", PolicySpec::FRAMES_MAX),
            ));
        }
        self.check_future(workload.future)
    }

    /// Whether it must know the requests to come.
    pub fn needs_future(&self) -> bool {
        match &self.kind {
            Kind::Opt => true,
            Kind::Cfdc { base, .. } | Kind::Ace { base, .. } => base.needs_future(),
            _ => false,
        }
    }

    /// Fails if the policy cannot serve this `future`.
    fn check_future(&self, future: &[Request]) -> Result<()> {
        match &self.kind {
            Kind::Opt if future.is_empty() => Err(Error::new(
                ErrorKind::Unsupported,
                "policy opt must know all requests of one client before it starts: here there are no requests, or several \
                 clients (--clients) share them; name a trace with requests and one client, or another policy",
            )),
            Kind::Opt if future.len() > Opt::<SparseTable>::REQUESTS_MAX => Err(Error::new(
                ErrorKind::TooLarge,
                format!("policy opt takes at most {} requests", Opt::<SparseTable>::REQUESTS_MAX),
            )),
            Kind::Cfdc { base, .. } | Kind::Ace { base, .. } => base.check_future(future),
            _ => Ok(()),
        }
    }

    /// Makes the policy with `frames` frames. The page table is an array if the address space is
    /// small compared with the cache, otherwise a hash table.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn build(&self, frames: u32, workload: Workload) -> Result<Box<dyn Policy>> {
        self.check(frames, workload)?;
        if DirectTable::is_worth_it(frames, workload.pages_end) {
            self.build_over::<DirectTable>(frames, workload)
        } else {
            self.build_over::<SparseTable>(frames, workload)
        }
    }

    /// Makes the policy over page table `T`.
    pub fn build_over<T: PageTable + 'static>(
        &self,
        frames: u32,
        workload: Workload,
    ) -> Result<Box<dyn Policy>> {
        self.check_future(workload.future)?;
        let pages_end = workload.pages_end;
        Ok(match &self.kind {
            Kind::Lru => Box::new(Lru::<T>::new(frames, pages_end)),
            Kind::Fifo => Box::new(Fifo::<T>::new(frames, pages_end)),
            Kind::Clock { bits } => Box::new(Clock::<T>::new(frames, pages_end, *bits)),
            Kind::Sieve => Box::new(Sieve::<T>::new(frames, pages_end)),
            Kind::Lfu => Box::new(Lfu::<T>::new(frames, pages_end)),
            Kind::Slru { protected } => Box::new(Slru::<T>::new(frames, pages_end, *protected)),
            Kind::Opt => Box::new(Opt::<T>::new(frames, pages_end, workload.future)),
            Kind::Cfdc { options, base } => {
                let working = frames - options.priority_pages(frames);
                let working = base.build_over::<T>(working, workload)?;
                Box::new(Cfdc::<T>::new(frames, pages_end, *options, working))
            }
            Kind::Casa { cost } => Box::new(Casa::<T>::new(frames, pages_end, *cost)),
            Kind::Ace { write_pages, evict_pages, base } => {
                let base = base.build_over::<T>(frames, workload)?;
                Box::new(Ace::new(base, *write_pages, *evict_pages))
            }
            Kind::Sawc { cost, cluster_pages } => {
                Box::new(Sawc::<T>::new(frames, pages_end, *cost, *cluster_pages))
            }
            Kind::SecondChance => Box::new(SecondChance::<T>::new(frames, pages_end)),
            Kind::TwoQ { in_share, out_share } => {
                Box::new(TwoQ::<T>::new(frames, pages_end, *in_share, *out_share))
            }
            Kind::Arc => Box::new(Arc::<T>::new(frames, pages_end)),
            Kind::Lirs { hir, stack, reorders_writes: false } => {
                Box::new(Lirs::<T>::new(frames, pages_end, *hir, *stack))
            }
            Kind::Lirs { hir, stack, reorders_writes: true } => {
                Box::new(LirsWsr::<T>::new(frames, pages_end, *hir, *stack))
            }
            Kind::LruK(options) => Box::new(LruK::<T>::new(frames, pages_end, *options)),
            Kind::S3Fifo { small, ghost, move_uses } => {
                Box::new(S3Fifo::<T>::new(frames, pages_end, *small, *ghost, *move_uses))
            }
            Kind::WTinyLfu { window, sample } => {
                Box::new(WTinyLfu::<T>::new(frames, pages_end, *window, *sample))
            }
            Kind::Lecar(options) => Box::new(Lecar::<T>::new(frames, pages_end, *options)),
            Kind::Cacheus { seed } => Box::new(Cacheus::<T>::new(frames, pages_end, *seed)),
            Kind::Flash(flash) => flash.build::<T>(frames, pages_end),
        })
    }
}

/// Takes the parameter `base`: a policy whose own parameters stand after slashes (`clock/bits=2`).
fn take_base(spec: &mut Spec, default: &str) -> Result<Box<PolicySpec>> {
    let words = format!("a policy, its parameters after slashes (clock/bits=2), default {default}");
    let text = spec.text("base", &words).unwrap_or(default);
    let (name, mut rest) = text.split_once('/').unwrap_or((text, ""));
    let mut own = format!("{name}:");
    while !rest.is_empty() && !rest.starts_with("base=") {
        let (parameter, others) = rest.split_once('/').unwrap_or((rest, ""));
        own.push_str(parameter);
        own.push(',');
        rest = others;
    }
    own.push_str(rest);
    let own = own.trim_end_matches([':', ',']);
    let base = PolicySpec::parse(own).map_err(|error| error.wrap(format!("base={text}")))?;
    Ok(Box::new(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_made_and_bad_text_lists_them() {
        let future = [Request::new(tantalum_base::PageNo(3), false)];
        let workload = Workload { pages_end: 4, future: &future };
        for name in PolicySpec::NAMES {
            let policy = PolicySpec::parse(name).unwrap().build(2, workload).unwrap();
            assert_eq!(policy.capacity_pages(), 2);
        }
        let error = PolicySpec::parse("lur").unwrap_err().to_string();
        assert!(error.contains("lru, fifo, clock, second_chance, sieve"), "{error}");
        let error = PolicySpec::parse("clock:bits=9").unwrap_err().to_string();
        assert!(error.contains("1 to 7"), "{error}");
        let error = PolicySpec::parse("lru:k=2").unwrap_err().to_string();
        assert!(error.contains("takes no parameters"), "{error}");
        for bad in [
            "casa:cost=4",
            "casa:cost=0:1",
            "casa:cost=1:4,points=9",
            "sawc:cluster=0",
            "slru:protected=1.5",
            "lecar:rate=2",
            "lecar:history=3",
            "cacheus:rate=0.1",
            "lfu:seed=1",
            "ace:write=4,evict=5",
        ] {
            assert!(PolicySpec::parse(bad).is_err(), "{bad}");
        }
        let error = PolicySpec::parse("cfdc:base=clock/bits=9").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = error.to_string();
        assert!(error.contains("base=clock/bits=9") && error.contains("1 to 7"), "{error}");
        let error = PolicySpec::parse("casa:cost=cheap").unwrap_err().to_string();
        assert!(error.contains("READ:WRITE such as 1:4"), "{error}");
        assert!(PolicySpec::parse("lru").unwrap().build(0, workload).is_err());
        let unknown = Workload { pages_end: u64::MAX, future: &[] };
        assert!(PolicySpec::parse("opt").unwrap().build(2, unknown).is_err());
    }

    #[test]
    fn a_base_has_its_own_parameters() {
        let base_of = |text: &str| match PolicySpec::parse(text).unwrap().kind {
            Kind::Cfdc { base, .. } | Kind::Ace { base, .. } => base.text().to_owned(),
            kind => panic!("{kind:?}"),
        };
        assert_eq!(base_of("cfdc"), "lru");
        assert_eq!(base_of("cfdc:base=clock/bits=2,window=0.3"), "clock:bits=2");
        assert_eq!(base_of("ace"), "clock");
        assert_eq!(base_of("cfdc:base=lru_k/k=3/history=0.5"), "lru_k:k=3,history=0.5");
        assert_eq!(base_of("cfdc:base=sawc/cost=1:4/cluster=8"), "sawc:cost=1:4,cluster=8");
        let nested = "ace:base=cfdc/window=0.3/base=clock/bits=2";
        assert_eq!(base_of(nested), "cfdc:window=0.3,base=clock/bits=2");
        let opt = PolicySpec::parse("cfdc:base=opt").unwrap();
        let unknown = Workload { pages_end: 9, future: &[] };
        assert!(opt.build(4, unknown).is_err());
        assert_eq!(opt.check(4, unknown).unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(PolicySpec::parse(nested).unwrap().check(4, unknown).is_ok());
    }

    #[test]
    fn a_list_keeps_parameters_with_their_policy() {
        let list = PolicySpec::parse_list("lru,clock:bits=2,sieve,sawc:cluster=8,cost=1:4,lru");
        let list = list.unwrap();
        let texts: Vec<&str> = list.iter().map(PolicySpec::text).collect();
        assert_eq!(texts, ["lru", "clock:bits=2", "sieve", "sawc:cluster=8,cost=1:4", "lru"]);
        assert!(PolicySpec::parse_list(" ").is_err());
    }
}
