//! A medium that loses its power.
use super::{ZoneLayer, ZoneOperation};
use crate::cut::PowerCut;
use crate::zone::ZoneMedia;
use std::future::poll_fn;
use std::pin::pin;
use tantalum_base::Result;

/// Passes everything on until the power goes: then not even the poll in which that happens goes
/// on, so that no code runs, and changes memory that survives, after its time.
pub struct UntilCut<M> {
    inner: M,
    is_cut: Box<dyn Fn() -> bool>,
}

impl<M: ZoneMedia> UntilCut<M> {
    /// Over `inner`, whose power is gone once `is_cut` says so.
    pub fn new(inner: M, is_cut: impl Fn() -> bool + 'static) -> Self {
        UntilCut { inner, is_cut: Box::new(is_cut) }
    }
}

impl<M: ZoneMedia> ZoneLayer for UntilCut<M> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    async fn around<T>(
        &self,
        _operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut run = pin!(run);
        poll_fn(|context| {
            // The power may have gone elsewhere, at a store to NVRAM.
            if (self.is_cut)() {
                PowerCut::unwind();
            }
            let poll = run.as_mut().poll(context);
            if (self.is_cut)() {
                PowerCut::unwind();
            }
            poll
        })
        .await
    }
}
