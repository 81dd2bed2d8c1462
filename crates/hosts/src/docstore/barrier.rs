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
use tantalum_base::{Durability, PageDevice, Result};

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
    /// Passes it, with a flush if a device of this durability needs one.
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
