//! Protections that a test can switch off, to show that the tests would notice. Without the feature
//! `planted-faults`, which only tests ask for, nothing can be switched off.

/// A protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Recovery accepts a batch of which the end is missing.
    HalfBatches,
    /// Recovery uses the versions again that it dropped.
    NoVersionSkip,
    /// Recovery takes any copy for the one in force.
    NoCopyRank,
    /// A checkpoint's footer does not wait for what it points to.
    NoSyncBeforeFooter,
    /// Zones are reset while what replaced their pages may still vanish.
    NoWaitForReplacements,
    /// What cleaning copied is not synced before the original goes.
    NoSyncOfCopies,
    /// Zones are reset though no watermark elsewhere covers what was in them.
    NoWatermark,
    /// Cleaning does not list the versions that are found nowhere once it has reset a zone.
    DeadVersionsUnlisted,
    /// Zones are opened though no anchor says that they may be.
    ZonesUndeclared,
    /// What cleaning copied stays in force where a sync dropped it.
    CopiesNotTakenBack,
    /// A flush does not wait for what is before it in the log.
    FlushLeavesGaps,
    /// Zones are reset while they are being read.
    NoWaitForReaders,
    /// A share is seen before all of it is in force.
    SharesSeenByHalves,
    /// Contents that were read are not checked.
    NoChecksum,
    /// Writes are acknowledged and frames given up before they are durable.
    EarlyAcknowledgement,
    /// Pages of the mapping's own are not checked when they are read.
    OwnPagesUnchecked,
    /// Cleaning forgets a page that the medium cannot give back.
    LostPagesForgotten,
    /// Recovery takes durable content that has decayed for the end of the log.
    DamageTakenForEnd,
    /// What is in the write cache is not written back when the device is closed.
    CacheDroppedAtClose,
    /// Shares are acknowledged without having been logged.
    SharesNotLogged,
    /// Cleaning does not write down which other pages share what it copied.
    SharersLeftBehind,
    /// Cleaning copies for pages whose share is not durable yet.
    SharersAheadOfLog,
    /// A command of which the caller drops the future stays where it is.
    GivenUpMidway,
    /// Of two changes of the same pages in a device without a write cache the later may be done first.
    ChangesOvertake,
    /// A redo log's recovery gives the numbers of dropped transactions to new ones.
    NumbersReused,
    /// A TxCache sets the commit flag before the last page is in NVRAM.
    EarlyCommitFlag,
    /// A TxCache writes pages of open transactions to their home locations.
    UncommittedGoesHome,
    /// A TxCache's recovery rolls forward what was not committed.
    RedoUncommitted,
    /// A TxCache's recovery does not complete the mapping of what was committed.
    NoRedo,
    /// A TxCache gives the committed version of a page up before the newer one is committed.
    OldVersionFreed,
    /// A TxCache lets commits and aborts overtake commands of their transaction.
    ControlOvertakes,
    /// The footer of a dump is written before its pages.
    DumpFooterFirst,
    /// A dump leaves out the mapping entries that changed.
    DeltasNotDumped,
    /// Changed mapping entries are neither backed up nor held to what the stored energy can dump.
    NoDeltaLimit,
    /// The dump area is cleared before what was in it is durable elsewhere.
    DumpClearedEarly,
    /// The checkpoint after a replay does not say which dump it makes void.
    DumpNotMadeVoid,
    /// Frames of a dump are written back over what came after them.
    FramesOverNewer,
}

#[cfg(feature = "planted-faults")]
mod switch {
    use super::Fault;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Plants one fault on this thread, or none.
    pub fn plant(fault: Option<Fault>) {
        PLANTED.set(fault);
    }

    /// Whether `fault` is planted.
    #[inline]
    pub fn is_planted(fault: Fault) -> bool {
        PLANTED.get() == Some(fault)
    }
}

#[cfg(feature = "planted-faults")]
pub use switch::{is_planted, plant};

/// Whether `fault` is planted: never, without the feature.
#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub const fn is_planted(_fault: Fault) -> bool {
    false
}
