//! A store with transient I/O errors.
use super::{BlockStore, IoBuf, StoreLayer};
use crate::episodes::{Episodes, IoClass};
use std::iter;
use tantalum_base::Result;
use tantalum_runtime::Runtime;

/// Fails the operations that a running episode covers. They do not reach the inner store. If a sync fails, the next
/// one makes its writes durable.
#[derive(Clone)]
pub struct Flaky<S, R: Clone> {
    inner: S,
    episodes: Episodes<R>,
}

impl<S: BlockStore, R: Runtime> Flaky<S, R> {
    /// Fails operations of `inner` according to `episodes`.
    pub fn new(inner: S, episodes: Episodes<R>) -> Self {
        Flaky { inner, episodes }
    }

    async fn pass(&self, class: IoClass, offset: u64, bytes: u64) -> Result<()> {
        self.episodes.pass(class, iter::once(offset..offset + bytes)).await
    }
}

impl<S: BlockStore, R: Runtime> StoreLayer for Flaky<S, R> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        self.pass(IoClass::Read, offset, buf.len() as u64).await?;
        self.inner.read(offset, buf).await
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        self.pass(IoClass::Write, offset, buf.len() as u64).await?;
        self.inner.write(offset, buf, durable).await
    }

    async fn sync(&self) -> Result<()> {
        self.episodes.pass(IoClass::Sync, iter::empty()).await?;
        self.inner.sync().await
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        self.pass(IoClass::Reset, offset, bytes).await?;
        self.inner.zero(offset, bytes).await
    }

    async fn give_room_back(&self, offset: u64, bytes: u64) -> Result<bool> {
        self.pass(IoClass::Reset, offset, bytes).await?;
        self.inner.give_room_back(offset, bytes).await
    }

    async fn prepare(&self, offset: u64, bytes: u64) -> Result<()> {
        self.pass(IoClass::Write, offset, bytes).await?;
        self.inner.prepare(offset, bytes).await
    }
}
