//! Logs failed requests one by one while they are few, so that a full volume does not also fill the log's disk.
use crate::protocol::transmission::Request;
use std::cell::Cell;
use tantalum_base::{Error, ErrorKind};

/// Most failed requests logged one by one per second.
const TOLD_A_SECOND_MAX: u32 = 10;

/// Counts the failed requests that were logged, and those that were not.
#[derive(Debug, Default)]
pub(crate) struct FailureLog {
    second: Cell<u64>,
    told: Cell<u32>,
    untold: Cell<u64>,
}

impl FailureLog {
    /// Logs a failed request.
    pub(crate) fn tell(&self, now_ns: u64, request: &Request, error: &Error) {
        let untold = self.untold_before(now_ns);
        if untold > 0 {
            tracing::warn!(untold, "more requests failed");
        }
        if self.may_tell() {
            tell_one(request, error);
        }
    }

    /// Takes the number of requests that were not logged before this second.
    fn untold_before(&self, now_ns: u64) -> u64 {
        let second = now_ns / 1_000_000_000;
        if self.second.replace(second) == second {
            return 0;
        }
        self.told.set(0);
        self.untold.take()
    }

    /// Whether one more may be logged in this second; counts it.
    fn may_tell(&self) -> bool {
        let may = self.told.get() < TOLD_A_SECOND_MAX;
        let count = u64::from(!may);
        self.untold.set(self.untold.get() + count);
        self.told.set(self.told.get() + u32::from(may));
        may
    }
}

fn tell_one(request: &Request, error: &Error) {
    let Request { command, offset, length, .. } = request;
    let kind = error.kind().name();
    match error.kind() {
        // Failures of the medium, which need attention.
        ErrorKind::Checksum
        | ErrorKind::Corrupt
        | ErrorKind::Uncorrectable
        | ErrorKind::Io
        | ErrorKind::Latched => {
            tracing::error!(?command, offset, length, kind, %error, "a request failed");
        }
        _ => tracing::warn!(?command, offset, length, kind, %error, "a request failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_in_a_second_some_are_told_and_the_rest_counted() {
        let log = FailureLog::default();
        let in_second = |second: u64| {
            let untold = log.untold_before(second * 1_000_000_000 + 5);
            (untold, (0..25).filter(|_| log.may_tell()).count())
        };
        assert_eq!(in_second(7), (0, 10));
        assert_eq!(in_second(7), (0, 0));
        assert_eq!(in_second(8), (40, 10));
        assert_eq!(in_second(90), (15, 10));
    }
}
