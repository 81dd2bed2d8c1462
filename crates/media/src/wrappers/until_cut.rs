//! A medium that can lose power.
use super::{ZoneLayer, ZoneOperation};
use crate::cut::until_cut;
use crate::zone::ZoneMedia;
use tantalum_base::Result;

/// Forwards everything until the power cut. Then it unwinds the executor within the poll in which power is cut,
/// because code that runs after the cut could change memory that survives it.
pub struct UntilCut<M> {
    inner: M,
    is_cut: Box<dyn Fn() -> bool>,
}

impl<M: ZoneMedia> UntilCut<M> {
    /// Wraps `inner`. Power is cut once `is_cut` returns true.
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
        until_cut(&self.is_cut, run).await
    }
}
