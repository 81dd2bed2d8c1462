//! Where the pages of a pool live.
use tantalum_base::{PageDevice, PageNo, Payload, Result};

/// What a [`Pool`](crate::Pool) reads its pages from and writes them back to.
///
/// Every device is one, with a page of the device in a frame. A storage engine may put a layer of its own in between: its pages are
/// as large as it likes, are decoded while they are in their frames, and reach the device in the way that is the engine's own, by
/// [`write_batch`](Self::write_batch). That is the place for write-ahead logging as well: a batch waits there until the log is
/// durable up to the newest change in it.
#[allow(async_fn_in_trait, reason = "pools live on one thread; their futures need not be Send")]
pub trait PageStore: 'static {
    /// Content of a page. Cloning is cheap.
    type Page: Clone + 'static;

    /// A content that stands in a frame until the page's own is there.
    fn blank(&self) -> Self::Page;

    /// Number of pages.
    fn pages(&self) -> u64;

    /// Most pages in a [`write`](Self::write), at least 1.
    fn write_pages_max(&self) -> u32;

    /// Reads `out.len()` pages from `first`.
    async fn read(&self, first: PageNo, out: &mut [Self::Page]) -> Result<()>;

    /// Writes neighbours.
    async fn write(&self, first: PageNo, pages: &[Self::Page]) -> Result<()>;

    /// Writes pages that lie anywhere, each once. The pool calls it where its options ask for batches.
    async fn write_batch(&self, pages: Vec<(PageNo, Self::Page)>) -> Result<()>;

    /// Makes durable what was written.
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
