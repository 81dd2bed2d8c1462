//! Limits the log by kind. All lines from one place in the program are of one kind. A few of them per second are
//! written; the rest are counted. So no client can fill the log's disk, and lines of one kind do not displace others.
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// Maximum lines of one kind per second.
const LINES_A_SECOND_MAX: u32 = 10;

/// The counts of all kinds of lines. Clones are handles to the same counts.
#[derive(Clone, Default)]
pub struct LogLimits(Arc<Mutex<BTreeMap<Place, Kind>>>);

/// The place in the program that writes lines of a kind.
type Place = (&'static str, Option<u32>);

/// The lines of one kind.
#[derive(Default)]
struct Kind {
    /// Start of the current second, and lines written since.
    second: Option<Instant>,
    written: u32,
    /// Lines left out, and the message of the first.
    left_out: u64,
    message: String,
}

impl Kind {
    /// Whether one more line may be written at `now`; counts it.
    fn may_write(&mut self, now: Instant) -> bool {
        if self.second.is_none_or(|second| now - second >= Duration::from_secs(1)) {
            (self.second, self.written) = (Some(now), 0);
        }
        let may = self.written < LINES_A_SECOND_MAX;
        self.written += u32::from(may);
        self.left_out += u64::from(!may);
        may
    }
}

impl LogLimits {
    fn kinds<T>(&self, look: impl FnOnce(&mut BTreeMap<Place, Kind>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn may_write(&self, event: &Event<'_>, now: Instant) -> bool {
        let metadata = event.metadata();
        let place = (metadata.file().unwrap_or(metadata.target()), metadata.line());
        self.kinds(|kinds| {
            let kind = kinds.entry(place).or_default();
            let may = kind.may_write(now);
            if kind.left_out == 1 && kind.message.is_empty() {
                event.record(&mut Message(&mut kind.message));
            }
            may
        })
    }

    /// Takes the numbers of lines that were left out, with their messages.
    pub fn take_left_out(&self) -> Vec<(String, u64)> {
        self.kinds(|kinds| {
            let left_out = kinds.values_mut().filter(|kind| kind.left_out > 0);
            let take = |kind: &mut Kind| {
                (std::mem::take(&mut kind.message), std::mem::take(&mut kind.left_out))
            };
            left_out.map(take).collect()
        })
    }

    /// Whether lines were left out.
    pub fn has_left_out(&self) -> bool {
        self.kinds(|kinds| kinds.values().any(|kind| kind.left_out > 0))
    }
}

impl<S: Subscriber> Filter<S> for LogLimits {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.may_write(event, now())
    }
}

#[expect(clippy::disallowed_methods, reason = "the log of a live server, in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Takes the message out of the fields of an event.
struct Message<'a>(&'a mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_in_a_second_some_are_written_and_the_rest_counted() {
        let (mut kind, begin) = (Kind::default(), now());
        let mut in_second = |second: u64| {
            let at = begin + Duration::from_secs(second);
            let written = (0..25).filter(|_| kind.may_write(at)).count();
            (written, std::mem::take(&mut kind.left_out))
        };
        assert_eq!(in_second(0), (10, 15));
        assert_eq!(in_second(0), (0, 25));
        assert_eq!(in_second(1), (10, 15));
        assert_eq!(in_second(90), (10, 15));
    }
}
