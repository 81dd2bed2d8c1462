//! A store that can lose power.
use super::{BlockStore, IoBuf, StoreLayer};
use crate::cut::until_cut;
use tantalum_base::Result;

/// Forwards everything until the power cut. Then it unwinds the executor within the poll in which power is cut, as
/// [`wrappers::UntilCut`](crate::wrappers::UntilCut) does for zones.
pub struct UntilCut<S> {
    inner: S,
    is_cut: Box<dyn Fn() -> bool>,
}

impl<S: BlockStore> UntilCut<S> {
    /// Wraps `inner`. Power is cut once `is_cut` returns true.
    pub fn new(inner: S, is_cut: impl Fn() -> bool + 'static) -> Self {
        UntilCut { inner, is_cut: Box::new(is_cut) }
    }
}

impl<S: BlockStore> StoreLayer for UntilCut<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        until_cut(&self.is_cut, self.inner.read(offset, buf)).await
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        until_cut(&self.is_cut, self.inner.write(offset, buf, durable)).await
    }

    async fn sync(&self) -> Result<()> {
        until_cut(&self.is_cut, self.inner.sync()).await
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        until_cut(&self.is_cut, self.inner.zero(offset, bytes)).await
    }

    async fn give_room_back(&self, offset: u64, bytes: u64) -> Result<bool> {
        until_cut(&self.is_cut, self.inner.give_room_back(offset, bytes)).await
    }

    async fn prepare(&self, offset: u64, bytes: u64) -> Result<()> {
        until_cut(&self.is_cut, self.inner.prepare(offset, bytes)).await
    }
}
