//! The choice among several sizes: a pure function of the time of each.
//!
//! More memory is seldom slower, so the fastest size is nearly always the largest. Each rule weighs the time against the memory.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};

/// A size, and the time of the trace with the fastest policy of that size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Pages of memory.
    pub cache_pages: u32,
    /// Virtual seconds.
    pub seconds: f64,
}

/// Price per month and gibibyte, in any currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Of memory.
    pub memory: f64,
    /// Of the device.
    pub flash: f64,
}

impl Prices {
    /// Price per month of `cache_pages` pages of memory beside a device of `device_pages` pages.
    pub fn monthly(&self, cache_pages: u32, device_pages: u64) -> f64 {
        let gib = |pages: f64| pages * PAGE_BYTES as f64 / f64::from(1 << 30);
        self.memory * gib(f64::from(cache_pages)) + self.flash * gib(device_pages as f64)
    }
}

/// How the size is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// The smallest size from which no larger one saves `least`, a share from 0 to below 1, of the time for each doubling of the memory.
    /// Four times the memory must save that twice, the second time of the remaining time.
    Doubling {
        /// Share of the time.
        least: f64,
    },
    /// The smallest size whose time exceeds the fastest by at most `slack`, a share.
    Slack {
        /// Share of the time of the fastest.
        slack: f64,
    },
    /// The size with the lowest price for the work: price per month times the time of the trace. Of two equal sizes, the smaller one.
    Price {
        /// The prices of memory and device.
        prices: Prices,
        /// Number of pages of the device.
        device_pages: u64,
    },
}

impl Rule {
    /// Checks the numbers of the rule.
    ///
    /// # Errors
    /// `InvalidInput` for a share or a price that is out of range or not a number.
    pub fn check(&self) -> Result<()> {
        let is_good = match *self {
            Rule::Doubling { least } => (0.0..1.0).contains(&least),
            Rule::Slack { slack } => slack >= 0.0 && slack.is_finite(),
            Rule::Price { prices: Prices { memory, flash }, .. } => {
                let is_price = |price: f64| price >= 0.0 && price.is_finite();
                is_price(memory) && is_price(flash) && memory + flash > 0.0
            }
        };
        if is_good {
            return Ok(());
        }
        Err(Error::new(ErrorKind::InvalidInput, format!("an invalid rule: {self:?}")))
    }

    /// Price per month with `cache_pages` pages of memory; `None` for rules without prices.
    pub fn monthly_price(&self, cache_pages: u32) -> Option<f64> {
        match self {
            Rule::Price { prices, device_pages } => {
                Some(prices.monthly(cache_pages, *device_pages))
            }
            Rule::Doubling { .. } | Rule::Slack { .. } => None,
        }
    }

    /// The index of the advised candidate; `None` if there are no candidates. Of two with the same number of pages the first one counts;
    /// otherwise their order does not matter.
    pub fn choose(&self, candidates: &[Candidate]) -> Option<usize> {
        let fastest = candidates.iter().map(|one| one.seconds).fold(f64::INFINITY, f64::min);
        let every = candidates.iter().enumerate();
        let smallest_of = |is_good: &dyn Fn(&Candidate) -> bool| {
            let good = every.clone().filter(|(_, one)| is_good(one));
            good.min_by_key(|(_, one)| one.cache_pages).map(|(at, _)| at)
        };
        match *self {
            Rule::Doubling { least } => {
                let is_worth = |from: &Candidate, to: &Candidate| saves(from, to, least);
                smallest_of(&|one| !candidates.iter().any(|other| is_worth(one, other)))
            }
            Rule::Slack { slack } => smallest_of(&|one| one.seconds <= fastest * (1.0 + slack)),
            Rule::Price { prices, device_pages } => {
                let price_of_work =
                    |one: &Candidate| prices.monthly(one.cache_pages, device_pages) * one.seconds;
                let cheapest = every.min_by(|(_, a), (_, b)| {
                    let order = price_of_work(a).total_cmp(&price_of_work(b));
                    order.then(a.cache_pages.cmp(&b.cache_pages))
                });
                cheapest.map(|(at, _)| at)
            }
        }
    }

    /// The rule with its numbers, for programs: `doubling:10%`, `slack:5%`, `price:4:0.1` (memory, then flash).
    pub fn text(&self) -> String {
        match self {
            Rule::Doubling { least } => format!("doubling:{}%", percent(*least)),
            Rule::Slack { slack } => format!("slack:{}%", percent(*slack)),
            Rule::Price { prices, .. } => format!("price:{}:{}", prices.memory, prices.flash),
        }
    }

    /// The rule as a sentence.
    pub fn sentence(&self) -> String {
        match self {
            Rule::Doubling { least } => format!(
                "It is the smallest size from which no larger one saves {} % of the time for each \
                 doubling of the memory.",
                percent(*least)
            ),
            Rule::Slack { slack } => format!(
                "It is the smallest size that takes at most {} % longer than the fastest.",
                percent(*slack)
            ),
            Rule::Price { prices, .. } => format!(
                "It is the size with the least product of price and time, at {} a month for a GiB \
                 of memory and {} for a GiB of flash.",
                prices.memory, prices.flash
            ),
        }
    }
}

/// Whether `to` is larger than `from`, and saves `least` of the time for each doubling.
fn saves(from: &Candidate, to: &Candidate, least: f64) -> bool {
    if to.cache_pages <= from.cache_pages || to.seconds >= from.seconds {
        return false;
    }
    let doublings = (f64::from(to.cache_pages) / f64::from(from.cache_pages)).log2();
    to.seconds <= from.seconds * (1.0 - least).powf(doublings)
}

/// A share in percent, without the noise of binary fractions.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(all: &[(u32, f64)]) -> Vec<Candidate> {
        all.iter().map(|&(cache_pages, seconds)| Candidate { cache_pages, seconds }).collect()
    }

    /// The number of pages that `rule` advises.
    fn advised(rule: Rule, all: &[(u32, f64)]) -> Option<u32> {
        rule.choose(&candidates(all)).map(|at| all[at].0)
    }

    const TENTH: Rule = Rule::Doubling { least: 0.1 };

    #[test]
    fn a_doubling_has_to_save_a_tenth() {
        // 100 to 200 saves 30 %, 200 to 400 saves 5.7 %, 400 to 800 saves 3 %.
        let knee = [(100, 10.0), (200, 7.0), (400, 6.6), (800, 6.4)];
        assert_eq!(advised(TENTH, &knee), Some(200));
        // Exactly a tenth is worth it, and less is not.
        assert_eq!(advised(TENTH, &[(100, 10.0), (200, 9.0)]), Some(200));
        assert_eq!(advised(TENTH, &[(100, 10.0), (200, 9.01)]), Some(100));
        // Two doublings have to save 19 %.
        assert_eq!(advised(TENTH, &[(100, 10.0), (400, 8.09)]), Some(400));
        assert_eq!(advised(TENTH, &[(100, 10.0), (400, 8.11)]), Some(100));
        // A late step justifies the sizes before it: up to 800 are three doublings, which must save 27.1 %.
        let late = [(100, 10.0), (200, 10.0), (400, 10.0), (800, 2.0)];
        assert_eq!(advised(TENTH, &late), Some(800));
        // The largest one of many is not the best: each saves only 2 %.
        let flat = [(100, 10.0), (200, 9.8), (400, 9.604), (800, 9.41)];
        assert_eq!(advised(TENTH, &flat), Some(100));
    }

    #[test]
    fn one_size_equal_times_and_any_order() {
        for rule in [
            TENTH,
            Rule::Doubling { least: 0.0 },
            Rule::Slack { slack: 0.0 },
            Rule::Price { prices: Prices { memory: 1.0, flash: 1.0 }, device_pages: 1 << 18 },
        ] {
            assert_eq!(rule.choose(&[]), None, "{rule:?}");
            assert_eq!(advised(rule, &[(7, 3.0)]), Some(7), "{rule:?}");
            // No gain at all: the smallest.
            assert_eq!(advised(rule, &[(400, 3.0), (100, 3.0), (200, 3.0)]), Some(100), "{rule:?}");
            // The same size twice.
            assert_eq!(rule.choose(&candidates(&[(5, 3.0), (5, 3.0)])), Some(0), "{rule:?}");
            // More memory that is slower.
            assert_eq!(advised(rule, &[(200, 4.0), (100, 3.0)]), Some(100), "{rule:?}");
        }
        let unsorted = [(800, 6.4), (100, 10.0), (400, 6.6), (200, 7.0)];
        assert_eq!(advised(TENTH, &unsorted), Some(200));
        assert_eq!(advised(Rule::Slack { slack: 0.05 }, &unsorted), Some(400));
        // If any saving is worth it, the fastest.
        assert_eq!(advised(Rule::Doubling { least: 0.0 }, &unsorted), Some(800));
    }

    #[test]
    fn slack_is_of_the_fastest() {
        let all = [(100, 10.6), (200, 10.5), (400, 10.0)];
        assert_eq!(advised(Rule::Slack { slack: 0.05 }, &all), Some(200));
        assert_eq!(advised(Rule::Slack { slack: 0.06 }, &all), Some(100));
        assert_eq!(advised(Rule::Slack { slack: 0.0 }, &all), Some(400));
    }

    #[test]
    fn the_price_of_the_work_is_money_a_month_times_time() {
        const GIB: u32 = 1 << 18;
        let rule = |memory, flash| {
            let prices = Prices { memory, flash };
            Rule::Price { prices, device_pages: 10 * u64::from(GIB) }
        };
        assert_eq!(rule(4.0, 0.1).monthly_price(2 * GIB), Some(9.0));
        assert_eq!(TENTH.monthly_price(GIB), None);
        let all = [(GIB, 10.0), (2 * GIB, 6.0), (4 * GIB, 5.0)];
        // 5 x 10 = 50, 9 x 6 = 54, 17 x 5 = 85.
        assert_eq!(advised(rule(4.0, 0.1), &all), Some(GIB));
        // 14 x 10 = 140, 18 x 6 = 108, 26 x 5 = 130: an expensive device is better used with more memory.
        assert_eq!(advised(rule(4.0, 1.0), &all), Some(2 * GIB));
        // If memory costs nothing: the fastest.
        assert_eq!(advised(rule(0.0, 1.0), &all), Some(4 * GIB));
        // 2 x 3 = 6 and 3 x 2 = 6: the smaller.
        let equal = [(3 * GIB, 2.0), (2 * GIB, 3.0)];
        assert_eq!(advised(rule(1.0, 0.0), &equal), Some(2 * GIB));
    }

    #[test]
    fn rules_say_their_numbers_and_refuse_those_that_cannot_be() {
        let price =
            |memory, flash| Rule::Price { prices: Prices { memory, flash }, device_pages: 1 };
        assert_eq!(TENTH.text(), "doubling:10%");
        assert_eq!(Rule::Slack { slack: 0.07 }.text(), "slack:7%");
        assert_eq!(price(4.0, 0.08).text(), "price:4:0.08");
        assert!(TENTH.sentence().contains("saves 10 % of the time"));
        for rule in [TENTH, Rule::Slack { slack: 0.0 }, price(0.0, 1.0)] {
            rule.check().unwrap();
        }
        for rule in [
            Rule::Doubling { least: 1.0 },
            Rule::Doubling { least: -0.1 },
            Rule::Doubling { least: f64::NAN },
            Rule::Slack { slack: -0.1 },
            price(-1.0, 1.0),
            price(0.0, 0.0),
            price(f64::INFINITY, 1.0),
        ] {
            assert_eq!(rule.check().unwrap_err().kind(), ErrorKind::InvalidInput, "{rule:?}");
        }
    }
}
