//! A device as a store of larger pages.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Limits, PageDevice, PageNo, Payload, Result};
use tantalum_runtime::join_all;

use crate::store::PageStore;

/// A store whose pages each consist of several neighbouring pages of a device: with two parts, page
/// 3 is the device's pages 6 and 7.
///
/// A page is read in one command. It is also written in one command, unless it is longer than the
/// atomic writes of the device. Then its parts are in flight together, and a power cut may leave
/// some of them old.
pub struct LargePages<D> {
    device: Rc<D>,
    /// Device pages in one page of this store.
    parts: u32,
}

impl<D: PageDevice> LargePages<D> {
    /// A store over `device` with pages of `page_bytes`.
    ///
    /// # Errors
    /// `InvalidInput` if `page_bytes` is not a multiple of the device's page size, or the device is
    /// too small for one page.
    pub fn new(device: Rc<D>, page_bytes: u32) -> Result<Self> {
        let limits = device.limits();
        let parts = page_bytes / limits.page_bytes;
        if parts == 0 || !page_bytes.is_multiple_of(limits.page_bytes) {
            let whole = limits.page_bytes;
            let context =
                format!("a page of {page_bytes} bytes is not a multiple of {whole} bytes");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        if limits.pages < u64::from(parts) {
            let context = format!(
                "a page takes {parts} pages of the device, which has only {}",
                limits.pages
            );
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        Ok(LargePages { device, parts })
    }

    /// Device pages in one page of this store.
    pub fn parts(&self) -> u32 {
        self.parts
    }

    fn limits(&self) -> &Limits {
        self.device.limits()
    }

    /// The first device page of `page`.
    fn first_part(&self, page: PageNo) -> PageNo {
        PageNo(page.0 * u64::from(self.parts))
    }

    async fn write_parts(&self, first: PageNo, contents: &[D::Page]) -> Result<()> {
        let most = self.limits().atomic_write_pages_max.max(1) as usize;
        if contents.len() <= most {
            return self.device.write(first, contents, None).await;
        }
        let parts = (first.0..).step_by(most).map(PageNo).zip(contents.chunks(most));
        let writes = parts.map(|(first, part)| self.device.write(first, part, None)).collect();
        join_all(writes).await.map(drop)
    }
}

impl<D: PageDevice> PageStore for LargePages<D> {
    /// The parts of a page, in order.
    type Page = Rc<[D::Page]>;

    fn blank(&self) -> Self::Page {
        (0..self.parts).map(|_| D::Page::zero()).collect()
    }

    fn pages(&self) -> u64 {
        self.limits().pages / u64::from(self.parts)
    }

    fn write_pages_max(&self) -> u32 {
        (self.limits().atomic_write_pages_max / self.parts).max(1)
    }

    async fn read(&self, first: PageNo, out: &mut [Self::Page]) -> Result<()> {
        let parts = self.parts as usize;
        let mut contents = vec![D::Page::zero(); out.len() * parts];
        self.device.read(self.first_part(first), &mut contents, None).await?;
        out.iter_mut().zip(contents.chunks(parts)).for_each(|(out, page)| *out = page.into());
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[Self::Page]) -> Result<()> {
        let first = self.first_part(first);
        match pages {
            [page] => self.write_parts(first, page).await,
            pages => self.write_parts(first, &pages.concat()).await,
        }
    }

    /// All or nothing.
    async fn write_batch(&self, pages: Vec<(PageNo, Self::Page)>) -> Result<()> {
        let parts_of = |(page, content): &(PageNo, Self::Page)| {
            let numbers = (self.first_part(*page).0..).map(PageNo);
            numbers.zip(content.iter().cloned()).collect::<Vec<_>>()
        };
        self.device.write_scattered(pages.iter().flat_map(parts_of).collect(), || ()).await
    }

    async fn flush(&self) -> Result<()> {
        self.device.flush().await
    }
}
