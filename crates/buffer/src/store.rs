//! The storage of a pool's pages.
use tantalum_base::{PageDevice, PageNo, Payload, Result};

/// The storage from which a [`Pool`](crate::Pool) reads its pages, and to which it writes them
/// back.
///
/// Every device is a store, with one device page in a frame. A storage engine may put a layer of
/// its own in between. The pages of such a store have any size, are decoded in their frames, and
/// are written to the device in the engine's own way, by [`write_batch`](Self::write_batch).
/// Write-ahead logging belongs there too: a batch waits until the log is durable up to the newest
/// change in it.
#[allow(async_fn_in_trait, reason = "pools live on one thread; their futures need not be Send")]
pub trait PageStore: 'static {
    /// Content of a page. Cloning is cheap.
    type Page: Clone + 'static;

    /// A placeholder for a frame whose page is not read yet.
    fn blank(&self) -> Self::Page;

    /// Number of pages.
    fn pages(&self) -> u64;

    /// Maximum pages in a [`write`](Self::write), at least 1.
    fn write_pages_max(&self) -> u32;

    /// Reads `out.len()` pages from `first`.
    async fn read(&self, first: PageNo, out: &mut [Self::Page]) -> Result<()>;

    /// Writes neighbouring pages.
    async fn write(&self, first: PageNo, pages: &[Self::Page]) -> Result<()>;

    /// Writes pages at any positions, each once. The pool calls it if its options request batches.
    async fn write_batch(&self, pages: Vec<(PageNo, Self::Page)>) -> Result<()>;

    /// Makes everything written so far durable.
    async fn flush(&self) -> Result<()>;
}

impl<D: PageDevice> PageStore for D {
    type Page = D::Page;

    fn blank(&self) -> D::Page {
        D::Page::zero()
    }

    fn pages(&self) -> u64 {
        self.limits().pages
    }

    fn write_pages_max(&self) -> u32 {
        self.limits().atomic_write_pages_max.max(1)
    }

    async fn read(&self, first: PageNo, out: &mut [D::Page]) -> Result<()> {
        PageDevice::read(self, first, out, None).await
    }

    async fn write(&self, first: PageNo, pages: &[D::Page]) -> Result<()> {
        PageDevice::write(self, first, pages, None).await
    }

    /// All or nothing.
    async fn write_batch(&self, pages: Vec<(PageNo, D::Page)>) -> Result<()> {
        self.write_scattered(pages, || ()).await
    }

    async fn flush(&self) -> Result<()> {
        PageDevice::flush(self).await
    }
}
