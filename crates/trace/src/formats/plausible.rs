//! Recognizes impossible binary records. The records have no mark of their format, so bytes of any other kind would be
//! counted as requests if the user names the format. The first impossible record is refused, unless the user sets
//! `check=no`.
use tantalum_base::{Result, Spec};

/// Checks the times of a trace from one record to the next. Some records come a little late; none is years away.
#[derive(Debug)]
pub(crate) struct Plausible {
    checks: bool,
    /// The format, for refusals.
    format: &'static str,
    /// Units of time per second.
    per_second: u64,
    last_time: Option<u64>,
}

/// Most seconds by which a time may precede the previous one.
const BACK_SECONDS_MAX: u64 = 24 * 3600;
/// Most seconds by which it may follow the previous one: ten years.
const AHEAD_SECONDS_MAX: u64 = 10 * 365 * BACK_SECONDS_MAX;

impl Plausible {
    /// Accepts `check` (`yes`, `no`) of the format `format`, whose time has `per_second` units per second.
    pub(crate) fn of(spec: &mut Spec<'_>, format: &'static str, per_second: u64) -> Result<Self> {
        let checks = spec.word("check", &["yes", "no"])? == "yes";
        Ok(Plausible { checks, format, per_second, last_time: None })
    }

    /// Refuses a record if its `time` is impossible, or if `odd` returns a reason why the record is.
    #[inline]
    pub(crate) fn check(
        &mut self,
        time: u64,
        odd: impl FnOnce() -> Option<String>,
    ) -> Result<(), String> {
        if !self.checks {
            return Ok(());
        }
        let jump = self.last_time.replace(time).and_then(|last| self.jump(last, time));
        jump.or_else(odd).map_or(Ok(()), |why| Err(self.refusal(&why)))
    }

    #[inline]
    fn jump(&self, last: u64, time: u64) -> Option<String> {
        let (way, by, seconds_max) = match time < last {
            true => ("back", last - time, BACK_SECONDS_MAX),
            false => ("ahead", time - last, AHEAD_SECONDS_MAX),
        };
        let seconds = by / self.per_second;
        (seconds > seconds_max).then(|| format!("the time jumps {way} by {seconds} seconds"))
    }

    #[cold]
    fn refusal(&self, why: &str) -> String {
        let format = self.format;
        format!(
            "{why}: this is no {format} trace, or it is damaged (--trace-format {format}:check=no accepts it)"
        )
    }
}
