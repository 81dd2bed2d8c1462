//! What the crash lab once found, as it was shrunk: each broke a promise and must not again.
use tantalum_lab::crash::{Outcome, Replay, find};

fn live(text: &str) -> Outcome {
    let replay = Replay::parse(text).unwrap();
    let lives = find(&replay.device, &replay.media).unwrap();
    let outcome = lives.live(&replay.life);
    assert_eq!(outcome, lives.live(&replay.life), "the same text twice is the same");
    outcome
}

/// A durable cache that survived held older content of the page, which was written back behind the
/// trim: nothing knew that the trim had to wait for it.
#[test]
fn a_trim_waits_for_what_survived_in_the_cache() {
    let text = "ssd:cache=durable; nand; pages=120; seed=14826776597221591277; \
                w24 -> dark; t24 -> dark";
    let outcome = live(text);
    assert_eq!(outcome.violations, []);
    assert_eq!(outcome.cuts, 2);
}

/// A write was accepted while a trim of the same pages was under way: one of its pages reached the
/// log before the trim and the other behind it, so that neither order explained what was there.
#[test]
fn a_write_does_not_fall_apart_around_a_trim() {
    let text = "ssd:cache=durable; nand; pages=24; seed=17534550087593906601;  -> dark;  -> dark; \
                 -> dark; w4 c3 w0 -> dark;  -> dark; w3+2 / t3+2 -> dark";
    assert_eq!(live(text).violations, []);
}
