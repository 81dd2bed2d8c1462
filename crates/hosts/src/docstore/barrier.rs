//! Where a store waits for durability, and why.
//!
//! | barrier | `volatile` | `on_flush` | `on_ack` | without it |
//! |---|---|---|---|---|
//! | before a header | flush | | | the header survives a cut, and something that it refers to does not |
//! | after a header | flush | flush | | a commit is acknowledged and gets lost |
//! | after an announcement | flush | | | what a compaction wrote survives, in a file that counts as unused: old headers are found in it later |
//! | before a switch | flush | | | the directory names a file that is not all there |
//! | before a deletion | flush | | | the directory still names a file that is gone |
//! | after a deletion | flush | | | as after an announcement |
//! | between changes of the directory | flush | | | both of its pages are torn, or an older one counts again (the barriers after an announcement and before a deletion are such, too) |
//! | after opening | flush | flush | | what was found and shown gets lost |
//!
//! `on_flush` keeps the order of what completed, so that only acknowledgements need a flush there; `on_ack` keeps all
//! of it. A commit by SHARE passes no barrier: a share is durable when it returns, with all that was written before.
use tantalum_base::{Durability, PageDevice, Result};

use crate::fault_points::Fault;
use crate::records::{Codec, RecordDevice};

/// A point that what was written before must be durable at.
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
    /// Passes it, with a flush where a device of this durability needs one.
    pub(super) async fn pass<D, C>(self, device: &RecordDevice<D, C>) -> Result<()>
    where
        D: PageDevice,
        C: Codec<Page = D::Page>,
    {
        let (acknowledges, left_out) = match self {
            Barrier::BeforeHeader => (false, Fault::NoFlushBeforeHeader.is_planted()),
            Barrier::AfterHeader => (true, Fault::NoFlushAfterHeader.is_planted()),
            Barrier::AfterAnnouncement | Barrier::AfterDeletion => (false, false),
            Barrier::BeforeSwitch => (false, Fault::NoFlushBeforeSwitch.is_planted()),
            Barrier::BeforeDeletion => (false, Fault::NoFlushBeforeDeletion.is_planted()),
            Barrier::BetweenDirectories => (false, Fault::NoFlushBetweenDirectories.is_planted()),
            Barrier::AfterOpening => (true, false),
        };
        let needed = match device.limits().durability {
            Durability::Volatile => true,
            Durability::OnFlush => acknowledges,
            Durability::OnAck => false,
        };
        match needed && !left_out {
            true => device.flush().await,
            false => Ok(()),
        }
    }
}
