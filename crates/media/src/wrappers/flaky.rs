//! Zones with transient I/O errors.
use super::{ZoneLayer, ZoneOperation};
use crate::episodes::{Episodes, IoClass};
use crate::zone::ZoneMedia;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::iter;
use std::ops::Range;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result, SlotNo, ZoneNo};
use tantalum_runtime::Runtime;

/// Fails the operations that a running episode covers. They do not reach the inner medium. A failing append takes no
/// slot. Later appends to the zone would take that slot, so they fail too until the zone is reset. An append, a scan
/// or a reset counts as covering all slots of its zone.
pub struct Flaky<M, R> {
    inner: Rc<M>,
    episodes: Episodes<R>,
    /// Zones in which an append has failed.
    failing: RefCell<BTreeSet<ZoneNo>>,
}

impl<M: ZoneMedia, R: Runtime> Flaky<M, R> {
    /// Fails operations of `inner` according to `episodes`.
    pub fn new(inner: Rc<M>, episodes: Episodes<R>) -> Self {
        Flaky { inner, episodes, failing: RefCell::default() }
    }

    fn slots_of(&self, zone: ZoneNo) -> Range<u64> {
        let slots = u64::from(self.inner.geometry().slots_per_zone);
        u64::from(zone.0) * slots..(u64::from(zone.0) + 1) * slots
    }

    async fn pass(&self, operation: ZoneOperation<'_>) -> Result<()> {
        let of_zone =
            async |class, zone| self.episodes.pass(class, iter::once(self.slots_of(zone))).await;
        let of_none = async |class| self.episodes.pass(class, iter::empty()).await;
        match operation {
            ZoneOperation::Append { zone, .. } => {
                if self.failing.borrow().contains(&zone) {
                    let context = format!("an append before this one failed in {zone:?}");
                    return Err(Error::new(ErrorKind::Io, context));
                }
                let places = iter::once(self.slots_of(zone));
                let Some(latency_ns) = self.episodes.concern(IoClass::Write, places) else {
                    return Ok(());
                };
                // Before the error is returned, because other appends may be in flight.
                self.failing.borrow_mut().insert(zone);
                Err(self.episodes.fail(IoClass::Write, latency_ns).await)
            }
            ZoneOperation::Read(slots) => {
                let slot = |slot: &SlotNo| u64::from(slot.0)..u64::from(slot.0) + 1;
                self.episodes.pass(IoClass::Read, slots.iter().map(slot)).await
            }
            ZoneOperation::ReadMeta(first, slots) => {
                let run = u64::from(first.0)..u64::from(first.0) + slots as u64;
                self.episodes.pass(IoClass::Read, iter::once(run)).await
            }
            ZoneOperation::Scan(zone, ..)
            | ZoneOperation::ScanSpares(zone)
            | ZoneOperation::Peek(zone) => of_zone(IoClass::Scan, zone).await,
            ZoneOperation::Reset(zone) => {
                of_zone(IoClass::Reset, zone).await?;
                self.failing.borrow_mut().remove(&zone);
                Ok(())
            }
            ZoneOperation::GiveRoomBack(zone) => of_zone(IoClass::Reset, zone).await,
            ZoneOperation::Sync => of_none(IoClass::Sync).await,
            ZoneOperation::WriteAnchor(_) => of_none(IoClass::Write).await,
            ZoneOperation::ReadAnchors => of_none(IoClass::Scan).await,
            // It only takes time and stores nothing.
            ZoneOperation::PersistMapping => Ok(()),
        }
    }
}

impl<M: ZoneMedia, R: Runtime> ZoneLayer for Flaky<M, R> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.pass(operation).await?;
        run.await
    }
}
