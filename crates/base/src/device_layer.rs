//! A device over another one that changes some of its calls.
use crate::{Extent, Limits, PageDevice, PageNo, PageRange, Result, TxId};

/// The page of a layer's device.
type PageOf<L> = <<L as DeviceLayer>::Inner as PageDevice>::Page;

/// A device over another one. Every call goes to the device underneath, but for those of which the layer has its own
/// version; so no layer forgets a call that it has nothing to do with. What each means, [`PageDevice`] says.
#[allow(async_fn_in_trait, reason = "as of devices")]
#[allow(missing_docs, reason = "as of devices")]
pub trait DeviceLayer: 'static {
    /// The device underneath.
    type Inner: PageDevice;

    /// The device underneath.
    fn inner(&self) -> &Self::Inner;

    fn limits(&self) -> &Limits {
        self.inner().limits()
    }

    async fn read(&self, first: PageNo, out: &mut [PageOf<Self>], tx: Option<TxId>) -> Result<()> {
        self.inner().read(first, out, tx).await
    }

    async fn write(&self, first: PageNo, pages: &[PageOf<Self>], tx: Option<TxId>) -> Result<()> {
        self.inner().write(first, pages, tx).await
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, PageOf<Self>)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.inner().write_scattered(pages, ended).await
    }

    async fn flush(&self) -> Result<()> {
        self.inner().flush().await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.inner().trim(range).await
    }

    fn extent(&self, range: PageRange) -> Extent {
        self.inner().extent(range)
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.inner().share(pairs).await
    }

    async fn take_over(
        &self,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.inner().take_over(pairs, zeros, ended).await
    }

    async fn clone_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        self.inner().clone_range(to, from, pages).await
    }

    async fn begin(&self) -> Result<TxId> {
        self.inner().begin().await
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        self.inner().commit(tx).await
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        self.inner().abort(tx).await
    }
}

impl<L: DeviceLayer> PageDevice for L {
    type Page = PageOf<L>;

    fn limits(&self) -> &Limits {
        DeviceLayer::limits(self)
    }

    async fn read(&self, first: PageNo, out: &mut [Self::Page], tx: Option<TxId>) -> Result<()> {
        DeviceLayer::read(self, first, out, tx).await
    }

    async fn write(&self, first: PageNo, pages: &[Self::Page], tx: Option<TxId>) -> Result<()> {
        DeviceLayer::write(self, first, pages, tx).await
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, Self::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        DeviceLayer::write_scattered(self, pages, ended).await
    }

    async fn flush(&self) -> Result<()> {
        DeviceLayer::flush(self).await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        DeviceLayer::trim(self, range).await
    }

    fn extent(&self, range: PageRange) -> Extent {
        DeviceLayer::extent(self, range)
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        DeviceLayer::share(self, pairs).await
    }

    async fn take_over(
        &self,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        DeviceLayer::take_over(self, pairs, zeros, ended).await
    }

    async fn clone_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        DeviceLayer::clone_range(self, to, from, pages).await
    }

    async fn begin(&self) -> Result<TxId> {
        DeviceLayer::begin(self).await
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        DeviceLayer::commit(self, tx).await
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        DeviceLayer::abort(self, tx).await
    }
}
