//! A medium that refuses writes.
use super::{ZoneLayer, ZoneOperation};
use crate::zone::ZoneMedia;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};

/// Forwards reads. Refuses every operation that writes, with [`ErrorKind::ReadOnly`], and counts the refusals.
pub struct ReadOnly<M> {
    inner: Rc<M>,
    refused: Cell<u64>,
}

impl<M> ReadOnly<M> {
    /// Makes `inner` read-only.
    pub fn new(inner: Rc<M>) -> Self {
        ReadOnly { inner, refused: Cell::new(0) }
    }

    /// Operations refused so far.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }
}

impl<M: ZoneMedia> ZoneLayer for ReadOnly<M> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        use ZoneOperation::*;
        let what = match operation {
            Read(_) | ReadMeta(..) | Scan(..) | ScanSpares(_) | Peek(_) | ReadAnchors => {
                return run.await;
            }
            Append { zone, .. } => format!("an append to zone {zone}"),
            Reset(zone) => format!("a reset of zone {zone}"),
            GiveRoomBack(zone) => format!("deallocating zone {zone}"),
            Sync => "a sync".into(),
            WriteAnchor(number) => format!("anchor {number}"),
            PersistMapping => "persisting the mapping".into(),
        };
        self.refused.set(self.refused.get() + 1);
        Err(Error::new(ErrorKind::ReadOnly, format!("{what}: the medium is read-only")))
    }
}
