//! A part of a simulated disk as a store of bytes: the home of a cache, or the journal beside it.
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result};
use tantalum_media::BlockStore;
use tantalum_media::block_store::BufferPool;
use tantalum_models::profile::SimulatedDisk;
use tantalum_runtime::{IoBuf, Virtual};

/// A disk with bytes on it.
pub(super) type Disk = SimulatedDisk<Virtual, PageBuf>;

/// Consecutive pages of a disk.
#[derive(Clone)]
pub(super) struct Partition {
    disk: Rc<Disk>,
    first: u64,
    pages: u64,
    buffers: Rc<BufferPool>,
}

impl Partition {
    /// `pages` pages from page `first` on.
    pub(super) fn new(disk: &Rc<Disk>, first: u64, pages: u64) -> Self {
        Partition { disk: Rc::clone(disk), first, pages, buffers: Rc::default() }
    }

    fn page(&self, offset: u64) -> PageNo {
        PageNo(self.first + offset / PAGE_BYTES as u64)
    }

    async fn write_pages(&self, offset: u64, pages: &[PageBuf]) -> Result<()> {
        let most = self.disk.limits().atomic_write_pages_max as usize;
        let mut at = self.page(offset);
        for part in pages.chunks(most) {
            self.disk.write(at, part, None).await?;
            at.0 += part.len() as u64;
        }
        Ok(())
    }
}

impl BlockStore for Partition {
    fn bytes(&self) -> u64 {
        self.pages * PAGE_BYTES as u64
    }

    fn buffer(&self, bytes: usize) -> IoBuf {
        self.buffers.take(bytes)
    }

    fn recycle(&self, buf: IoBuf) {
        self.buffers.give_back(buf);
    }

    async fn read(&self, offset: u64, mut buf: IoBuf) -> Result<IoBuf> {
        let mut pages = vec![PageBuf::zero(); buf.len() / PAGE_BYTES];
        self.disk.read(self.page(offset), &mut pages, None).await?;
        for (bytes, page) in buf.chunks_exact_mut(PAGE_BYTES).zip(&pages) {
            page.write_to(bytes);
        }
        Ok(buf)
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        let pages: Vec<_> = buf.chunks_exact(PAGE_BYTES).map(PageBuf::from_bytes).collect();
        self.write_pages(offset, &pages).await?;
        if durable {
            self.disk.flush().await?;
        }
        Ok(buf)
    }

    async fn sync(&self) -> Result<()> {
        self.disk.flush().await
    }

    /// A disk has no command for zeroing: zeros are written.
    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        let zeros = vec![PageBuf::zero(); bytes as usize / PAGE_BYTES];
        self.write_pages(offset, &zeros).await
    }

    /// A disk allocates nothing at a first write.
    async fn prepare(&self, _offset: u64, _bytes: u64) -> Result<()> {
        Ok(())
    }
}
