//! An engine's way to its device: what it has of its own. All else is the [database's](super).
use std::fmt;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Result};
use tantalum_runtime::Runtime;

use super::homes::{BatchRules, Homed, Homes, RestoreReport};
use crate::records::Codec;

/// What a way needs of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceNeed {
    /// Reads, writes and flushes.
    Nothing,
    /// Shares of a whole page of the database.
    Share,
    /// Transactions of a whole page of the database.
    Transactions,
}

/// A way to the device, as it is chosen for a database when that is made.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub trait Way: Copy + PartialEq + fmt::Debug + 'static {
    /// All ways of this engine. A database keeps the place of its own among them.
    const WAYS: &'static [Self];

    /// What the papers call it.
    fn name(self) -> &'static str;

    /// What it needs of a device.
    fn needs(self) -> DeviceNeed;

    /// Whether batches are written to an area of their own, so that the layout must have one.
    fn has_area(self) -> bool;

    /// Brings a batch of pages to their homes. The log of their changes is durable, and no other batch is on its way.
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

    /// After a crash, and before anything else reads a page: mends the homes that can be mended without the log.
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
