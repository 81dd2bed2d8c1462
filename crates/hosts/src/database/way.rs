//! An engine's way to its device: the part that differs between engines. The rest is the [database's](super).
use std::fmt;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Result};
use tantalum_runtime::Runtime;

use super::homes::{BatchRules, Homed, Homes, RestoreReport};
use crate::records::Codec;

/// The features that a way needs of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceNeed {
    /// Reads, writes and flushes.
    Nothing,
    /// Shares of a whole page of the database.
    Share,
    /// Transactions of a whole page of the database.
    Transactions,
}

/// A way to the device, which is chosen when a database is made.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub trait Way: Copy + PartialEq + fmt::Debug + 'static {
    /// All ways of this engine. A database stores the index of its own in this list.
    const WAYS: &'static [Self];

    /// Its name in the papers.
    fn name(self) -> &'static str;

    /// What it needs of a device.
    fn needs(self) -> DeviceNeed;

    /// Whether batches are written to an area of their own, which the layout must contain.
    fn has_area(self) -> bool;

    /// Whether a redo log makes commits durable. Without one, each commit is one device transaction over the pages that it changes,
    /// or shares one with other commits.
    fn has_log(self) -> bool {
        true
    }

    /// Whether the first change of a page after the start of a checkpoint is logged as the page's whole content, so that the state
    /// of its home does not matter.
    fn logs_whole_pages(self) -> bool {
        false
    }

    /// Writes a batch of pages to their homes. The log of their changes is durable, and no other batch is in progress.
    async fn bring<R, D, C, P, B>(
        self,
        homes: &Rc<Homes<R, D, C, P, B, Self>>,
        batch: &[(PageNo, P)],
    ) -> Result<()>
    where
        R: Runtime,
        D: PageDevice,
        P: Homed,
        C: Codec<Page = D::Page, Record = P::Record>,
        B: BatchRules;

    /// Makes the pages written home durable, for a checkpoint.
    async fn settle<R, D, C, P, B>(self, _homes: &Rc<Homes<R, D, C, P, B, Self>>) -> Result<()>
    where
        R: Runtime,
        D: PageDevice,
        P: Homed,
        C: Codec<Page = D::Page, Record = P::Record>,
        B: BatchRules,
    {
        Ok(())
    }

    /// After a crash, before anything else reads a page: repairs the homes that can be repaired without the log.
    async fn restore<R, D, C, P, B>(
        self,
        _homes: &Rc<Homes<R, D, C, P, B, Self>>,
    ) -> Result<RestoreReport>
    where
        R: Runtime,
        D: PageDevice,
        P: Homed,
        C: Codec<Page = D::Page, Record = P::Record>,
        B: BatchRules,
    {
        Ok(RestoreReport::default())
    }
}
