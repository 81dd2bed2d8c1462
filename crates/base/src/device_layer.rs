//! A device that wraps another one and overrides some of its calls.
use crate::{Extent, Limits, PageDevice, PageNo, PageRange, Result, TxId};

/// The page of a layer's device.
type PageOf<L> = <<L as DeviceLayer>::Inner as PageDevice>::Page;

/// A device that wraps another one. Every call goes to the inner device unless the layer overrides it, so a layer
/// cannot forget to forward a call. [`PageDevice`] documents the calls.
#[allow(async_fn_in_trait, reason = "layers live on one thread; their futures need not be Send")]
#[allow(missing_docs, reason = "`PageDevice` documents the calls")]
pub trait DeviceLayer: 'static {
    /// The wrapped device.
    type Inner: PageDevice;

    /// The wrapped device.
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

    async fn until_released(&self, range: PageRange) {
        self.inner().until_released(range).await;
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

    async fn until_released(&self, range: PageRange) {
        DeviceLayer::until_released(self, range).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Stamp};
    use std::cell::RefCell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const LIMITS: Limits = Limits {
        page_bytes: 4096,
        pages: 9,
        atomic_write_pages_max: 1,
        transaction_pages_max: 1,
        transactions_max: 1,
        share_pairs_max: 1,
        durability: Durability::OnAck,
    };

    /// Records the calls it receives.
    #[derive(Default)]
    struct Device(RefCell<Vec<&'static str>>);

    impl Device {
        fn note(&self, call: &'static str) -> Result<()> {
            self.0.borrow_mut().push(call);
            Ok(())
        }
    }

    impl PageDevice for Device {
        type Page = Stamp;

        fn limits(&self) -> &Limits {
            &LIMITS
        }

        async fn read(&self, _: PageNo, _: &mut [Stamp], _: Option<TxId>) -> Result<()> {
            self.note("read")
        }

        async fn write(&self, _: PageNo, _: &[Stamp], _: Option<TxId>) -> Result<()> {
            self.note("write")
        }

        async fn write_scattered(
            &self,
            _: Vec<(PageNo, Stamp)>,
            ended: impl FnOnce() + 'static,
        ) -> Result<()> {
            ended();
            self.note("write_scattered")
        }

        async fn flush(&self) -> Result<()> {
            self.note("flush")
        }

        async fn trim(&self, _: PageRange) -> Result<()> {
            self.note("trim")
        }

        fn extent(&self, _: PageRange) -> Extent {
            Extent::data(7)
        }

        async fn share(&self, _: &[(PageNo, PageNo)]) -> Result<()> {
            self.note("share")
        }

        async fn take_over(
            &self,
            _: Vec<(PageNo, PageNo)>,
            _: Vec<PageRange>,
            ended: impl FnOnce() + 'static,
        ) -> Result<()> {
            ended();
            self.note("take_over")
        }

        async fn clone_range(&self, _: PageNo, _: PageNo, _: u64) -> Result<()> {
            self.note("clone_range")
        }

        async fn begin(&self) -> Result<TxId> {
            self.note("begin").map(|()| TxId(5))
        }

        async fn commit(&self, _: TxId) -> Result<()> {
            self.note("commit")
        }

        async fn abort(&self, _: TxId) -> Result<()> {
            self.note("abort")
        }

        async fn until_released(&self, _: PageRange) {
            self.0.borrow_mut().push("until_released");
        }
    }

    /// A layer that overrides nothing.
    #[derive(Default)]
    struct Plain(Device);

    impl DeviceLayer for Plain {
        type Inner = Device;

        fn inner(&self) -> &Device {
            &self.0
        }
    }

    async fn call_all(device: &impl PageDevice<Page = Stamp>) -> Result<()> {
        let (page, range) = (PageNo(1), PageRange::new(PageNo(1), 1));
        device.read(page, &mut [Stamp::default()], None).await?;
        device.write(page, &[Stamp::default()], None).await?;
        device.write_scattered(vec![(page, Stamp::default())], || ()).await?;
        device.flush().await?;
        device.trim(range).await?;
        device.share(&[(page, PageNo(2))]).await?;
        device.take_over(vec![(page, PageNo(2))], vec![range], || ()).await?;
        device.clone_range(page, PageNo(2), 1).await?;
        assert_eq!(device.begin().await?, TxId(5));
        device.commit(TxId(5)).await?;
        device.abort(TxId(5)).await?;
        device.until_released(range).await;
        Ok(())
    }

    #[test]
    fn a_layer_that_changes_nothing_hands_everything_on() {
        let layer = Plain::default();
        assert_eq!(
            (PageDevice::limits(&layer), PageDevice::extent(&layer, PageRange::new(PageNo(1), 8))),
            (&LIMITS, Extent::data(7))
        );
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(called) = pin!(call_all(&layer)).poll(&mut context) else {
            panic!("waits")
        };
        called.unwrap();
        let calls = [
            "read",
            "write",
            "write_scattered",
            "flush",
            "trim",
            "share",
            "take_over",
            "clone_range",
            "begin",
            "commit",
            "abort",
            "until_released",
        ];
        assert_eq!(*layer.0.0.borrow(), calls);
    }
}
