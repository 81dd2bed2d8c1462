//! The points at which a store waits for durability, and the reasons.
//!
//! | barrier | `volatile` | `on_flush` | `on_ack` | failure without it |
//! |---|---|---|---|---|
//! | before a header | flush | | | the header survives a cut, and something that it refers to does not |
//! | after a header | flush | flush | | a commit is acknowledged and gets lost |
//! | after an announcement | flush | | | pages of a compaction survive in a file that counts as unused: old headers are found in it later |
//! | before a switch | flush | | | the directory names an incomplete file |
//! | before a deletion | flush | | | the directory still names a file that is gone |
//! | after a deletion | flush | | | as after an announcement |
//! | between changes of the directory | flush | | | both of its pages are torn, or an older one counts again (the barriers after an announcement and before a deletion are such, too) |
//! | after opening | flush | flush | | content that was found and shown gets lost |
//!
//! `on_flush` keeps the order of completed writes, so only acknowledgements need a flush there; `on_ack` needs none. A commit by SHARE
//! passes no barrier: a share is durable when it returns, with all earlier writes.
use tantalum_base::{Durability, Limits, PageDevice, Result};

use crate::fault_points::Fault;
use crate::records::{Codec, RecordDevice};

/// A point before which all writes must be durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Barrier {
    BeforeHeader,
    AfterHeader,
    AfterAnnouncement,
    BeforeSwitch,
    BeforeDeletion,
    AfterDeletion,
    BetweenDirectories,
    AfterOpening,
}

impl Barrier {
    /// Whether a device with these limits needs a flush here.
    pub(super) fn is_needed(self, limits: &Limits) -> bool {
        match limits.durability {
            Durability::Volatile => true,
            Durability::OnFlush => self.acknowledges(),
            Durability::OnAck => false,
        }
    }

    /// Whether a caller is told afterwards that something is durable.
    fn acknowledges(self) -> bool {
        matches!(self, Barrier::AfterHeader | Barrier::AfterOpening)
    }

    fn is_left_out(self) -> bool {
        match self {
            Barrier::BeforeHeader => Fault::NoFlushBeforeHeader.is_planted(),
            Barrier::AfterHeader => Fault::NoFlushAfterHeader.is_planted(),
            Barrier::BeforeSwitch => Fault::NoFlushBeforeSwitch.is_planted(),
            Barrier::BeforeDeletion => Fault::NoFlushBeforeDeletion.is_planted(),
            Barrier::BetweenDirectories => Fault::NoFlushBetweenDirectories.is_planted(),
            Barrier::AfterAnnouncement | Barrier::AfterDeletion | Barrier::AfterOpening => false,
        }
    }

    /// Passes it, with a flush if a device of this durability needs one.
    pub(super) async fn pass<D, C>(self, device: &RecordDevice<D, C>) -> Result<()>
    where
        D: PageDevice,
        C: Codec<Page = D::Page>,
    {
        match self.is_needed(device.limits()) && !self.is_left_out() {
            true => device.flush().await,
            false => Ok(()),
        }
    }
}
