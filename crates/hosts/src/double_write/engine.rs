//! Access to pages, and the cleaner that flushes batches.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, Stamp};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{JoinHandle, Runtime, spawn_all};

use super::image::{self, Image};
use super::layout::Layout;
use super::options::{DoubleWriteOptions, Form};
use super::pool::{Need, Pool};

/// Homes written at a time when a database is loaded.
const LOAD_PAGES: u64 = 64;

/// What an engine asked of its device, in device pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HostStatistics {
    /// Pages of the database that were asked for.
    pub accesses: u64,
    /// Device pages read.
    pub pages_read: u64,
    /// Device pages written to the double-write area.
    pub area_pages: u64,
    /// Device pages written to their homes.
    pub home_pages: u64,
    /// Device pages that homes took by share.
    pub shared_pages: u64,
    /// Device pages of the file system's metadata.
    pub metadata_pages: u64,
    /// Batches flushed.
    pub batches: u64,
}

impl HostStatistics {
    /// Device pages that were written, of whatever kind (SHARE, figure 6a).
    pub fn pages_written(&self) -> u64 {
        self.area_pages + self.home_pages + self.metadata_pages
    }

    /// What was counted since `start`.
    pub fn since(&self, start: &HostStatistics) -> HostStatistics {
        HostStatistics {
            accesses: self.accesses - start.accesses,
            pages_read: self.pages_read - start.pages_read,
            area_pages: self.area_pages - start.area_pages,
            home_pages: self.home_pages - start.home_pages,
            shared_pages: self.shared_pages - start.shared_pages,
            metadata_pages: self.metadata_pages - start.metadata_pages,
            batches: self.batches - start.batches,
        }
    }
}

/// A database on a device. See the [module](super).
pub struct DoubleWrite<R, D> {
    runtime: R,
    device: Rc<D>,
    options: DoubleWriteOptions,
    layout: Layout,
    pool: RefCell<Pool>,
    /// Room in the pool, a page that was read, a batch that is full or was flushed.
    changed: WaitQueue,
    metadata_due: Cell<f64>,
    statistics: Cell<HostStatistics>,
}

impl<R: Runtime, D: PageDevice<Page = Stamp>> DoubleWrite<R, D> {
    /// Makes a new database: every home is written with version 1, in order, and is durable.
    ///
    /// # Errors
    /// Those of [`DoubleWriteOptions::check`], and the device's.
    pub async fn create(
        runtime: &R,
        device: &Rc<D>,
        options: DoubleWriteOptions,
    ) -> Result<Rc<Self>> {
        options.check(device.limits())?;
        let layout = Layout::new(&options);
        let most = u64::from(device.limits().atomic_write_pages_max).max(1);
        let mut stamps = Vec::new();
        let mut page = 0;
        while page < options.database_pages {
            let end = (page + LOAD_PAGES).min(options.database_pages);
            let first = layout.home(page).first;
            stamps.clear();
            (page..end).for_each(|page| image::push(layout.home(page), 1, &mut stamps));
            write_parts(&**device, first, &stamps, most as usize).await?;
            page = end;
        }
        device.flush().await?;
        Ok(Rc::new(DoubleWrite {
            runtime: runtime.clone(),
            device: Rc::clone(device),
            options,
            layout,
            pool: RefCell::new(Pool::new(&options)?),
            changed: WaitQueue::new("a frame of the buffer pool"),
            metadata_due: Cell::new(0.0),
            statistics: Cell::default(),
        }))
    }

    /// Starts the page cleaner, which ends after [`close`](Self::close).
    pub fn start(self: &Rc<Self>) -> JoinHandle<Result<()>> {
        let engine = Rc::clone(self);
        self.runtime.spawn("page cleaner", async move {
            let cleaned = engine.clean().await;
            if let Err(error) = &cleaned {
                engine.pool.borrow_mut().fail(error.clone());
                engine.changed.wake_all();
            }
            cleaned
        })
    }

    /// Lets the cleaner flush what left the pool, and end. What is in a frame stays there.
    pub fn close(&self) {
        self.pool.borrow_mut().close();
        self.changed.wake_all();
    }

    /// Fixes `page`, reads it where it is not in memory, and changes it where `write`.
    ///
    /// # Errors
    /// `Corrupt` where the home holds anything but what was written last; the device's, also where
    /// a batch could not be flushed.
    pub async fn access(&self, page: PageNo, write: bool) -> Result<()> {
        self.changed.until(|| self.pool.borrow().may_fix(page.0)).await?;
        let (need, full) = self.pool.borrow_mut().fix(page.0, write);
        self.count(|counts| counts.accesses += 1);
        if full {
            self.changed.wake_all();
        }
        if need == Need::Nothing {
            return Ok(());
        }
        let read = self.read_home(page.0).await;
        self.pool.borrow_mut().loaded(page.0);
        self.changed.wake_all();
        read
    }

    /// What was asked of the device so far.
    pub fn statistics(&self) -> HostStatistics {
        self.statistics.get()
    }

    /// Version that the home of `page` has at the least, and the newest there is.
    pub fn bounds(&self, page: PageNo) -> (u64, u64) {
        self.pool.borrow().bounds(page.0)
    }

    async fn read_home(&self, page: u64) -> Result<()> {
        let home = self.layout.home(page);
        let least = self.pool.borrow().bounds(page).0;
        let mut stamps = vec![Stamp::zero(); home.pages as usize];
        self.device.read(home.first, &mut stamps, None).await?;
        self.count(|counts| counts.pages_read += home.pages);
        // It may have left the pool and been flushed while it was read.
        let most = self.pool.borrow().bounds(page).0;
        match image::read(&stamps) {
            Image::Whole { home: first, version }
                if first == home.first && (least..=most).contains(&version) =>
            {
                Ok(())
            }
            found => Err(Error::new(
                ErrorKind::Corrupt,
                format!("page {page} reads as {found:?}, not as version {least} to {most}"),
            )),
        }
    }

    async fn clean(self: &Rc<Self>) -> Result<()> {
        loop {
            let batch = self.changed.until(|| self.pool.borrow_mut().take_batch()).await;
            if batch.is_empty() {
                return Ok(());
            }
            self.flush_batch(&batch).await?;
            self.pool.borrow_mut().flushed(&batch);
            self.changed.wake_all();
        }
    }

    /// Brings a batch to its homes, durably. In the order of the steps lies what recovery relies on.
    async fn flush_batch(self: &Rc<Self>, batch: &[(u64, u32)]) -> Result<()> {
        match self.options.form {
            Form::On => {
                self.write_area(batch).await?;
                self.device.flush().await?;
                self.write_homes(batch).await?;
                self.write_metadata(batch.len()).await?;
                self.device.flush().await?;
            }
            Form::Off => {
                self.write_homes(batch).await?;
                self.write_metadata(batch.len()).await?;
                self.device.flush().await?;
            }
            Form::Share => {
                self.write_area(batch).await?;
                self.write_metadata(batch.len()).await?;
                self.share_homes(batch).await?;
            }
        }
        self.count(|counts| counts.batches += 1);
        Ok(())
    }

    async fn write_area(&self, batch: &[(u64, u32)]) -> Result<()> {
        let mut stamps = Vec::new();
        for (page, version) in batch {
            image::push(self.layout.home(*page), u64::from(*version), &mut stamps);
        }
        let most = self.device.limits().atomic_write_pages_max.max(1) as usize;
        write_parts(&*self.device, self.layout.area(0).first, &stamps, most).await?;
        self.count(|counts| counts.area_pages += stamps.len() as u64);
        Ok(())
    }

    /// All at once, as asynchronous I/O does; neighbours are not written together.
    async fn write_homes(self: &Rc<Self>, batch: &[(u64, u32)]) -> Result<()> {
        let write = |&(page, version): &(u64, u32)| {
            let engine = Rc::clone(self);
            async move {
                let home = engine.layout.home(page);
                let mut stamps = Vec::with_capacity(home.pages as usize);
                image::push(home, u64::from(version), &mut stamps);
                engine.count(|counts| counts.home_pages += home.pages);
                let most = engine.device.limits().atomic_write_pages_max.max(1) as usize;
                write_parts(&*engine.device, home.first, &stamps, most).await
            }
        };
        spawn_all(&self.runtime, "write of a home", batch.iter().map(write)).await
    }

    /// A share is durable with everything before it: the area needs no flush, and may be used again
    /// when this returns.
    async fn share_homes(&self, batch: &[(u64, u32)]) -> Result<()> {
        let mut pairs = Vec::new();
        for (slot, (page, _)) in batch.iter().enumerate() {
            let (home, area) = (self.layout.home(*page), self.layout.area(slot as u64));
            pairs.extend(home.iter().zip(area.iter()));
        }
        // A page of the database is never cut in two.
        let page_pages = self.options.device_pages_per_page;
        let most = self.device.limits().share_pairs_max / page_pages * page_pages;
        for part in pairs.chunks(most as usize) {
            self.device.share(part).await?;
        }
        self.count(|counts| counts.shared_pages += pairs.len() as u64);
        Ok(())
    }

    async fn write_metadata(&self, pages: usize) -> Result<()> {
        let page_pages = f64::from(self.options.device_pages_per_page);
        let due = pages as f64 * page_pages * self.options.metadata_per_page;
        let due = self.metadata_due.get() + due;
        self.metadata_due.set(due.fract());
        for _ in 0..due as u64 {
            let count = self.statistics.get().metadata_pages;
            let page = self.layout.metadata(count);
            self.device.write(page, &[Stamp::new(page, count + 1)], None).await?;
            self.count(|counts| counts.metadata_pages += 1);
        }
        Ok(())
    }

    fn count(&self, change: impl FnOnce(&mut HostStatistics)) {
        let mut counts = self.statistics.get();
        change(&mut counts);
        self.statistics.set(counts);
    }
}

/// Writes `stamps` from `first` on, in commands of at most `most` pages.
pub(super) async fn write_parts<D: PageDevice<Page = Stamp>>(
    device: &D,
    first: PageNo,
    stamps: &[Stamp],
    most: usize,
) -> Result<()> {
    let mut at = first;
    for part in stamps.chunks(most) {
        let range = PageRange::new(at, part.len() as u64);
        device.write(range.first, part, None).await?;
        at = range.end();
    }
    Ok(())
}
