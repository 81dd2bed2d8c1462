//! A load of page accesses over the engine's pages, without rows, log and trees: it shows the cost of the double write
//! itself.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Result, Stamp};
use tantalum_buffer::Intent;
use tantalum_runtime::Runtime;

use super::form::Form;
use super::image::{Image, Images};
use super::{HostStatistics, PageOptions, RestoreReport};
use crate::btree::Lsn;
use crate::database::{BatchRules, HomePool, Homed, Homes, Layout, LogPlace, pool_of};
use crate::records::RecordDevice;

/// The version of each page that is at its home.
#[derive(Debug, Default)]
struct AtHome(RefCell<Vec<u64>>);

impl BatchRules for AtHome {
    /// There is no log.
    async fn before(&self, _newest: Lsn) -> Result<()> {
        Ok(())
    }

    fn at_home(&self, page: PageNo, lsn: Lsn) {
        self.0.borrow_mut()[page.index()] = lsn.0;
    }
}

type ImageHomes<R, D> = Homes<R, D, Images, Image, AtHome, Form>;
type ImagePool<R, D> = HomePool<R, D, Images, Image, AtHome, Form>;

/// Pages on a device that are read and changed at random. Every read is checked.
pub struct PageLoad<R: Runtime, D: PageDevice<Page = Stamp>> {
    homes: Rc<ImageHomes<R, D>>,
    pool: ImagePool<R, D>,
    options: PageOptions,
    /// Newest version of each page.
    versions: RefCell<Vec<u64>>,
    at_home: Rc<AtHome>,
    accesses: Cell<u64>,
}

/// The homes, on a device, of a database that `options` describe.
fn homes_on<R: Runtime, D: PageDevice<Page = Stamp>>(
    runtime: &R,
    device: &Rc<D>,
    options: PageOptions,
) -> (Rc<ImageHomes<R, D>>, Rc<AtHome>) {
    let layout = Layout::new(&options, LogPlace::Nowhere);
    let codec = Rc::new(Images::new(layout, options.device_pages_per_page));
    let records = RecordDevice::new(device, &codec);
    let at_home = Rc::new(AtHome(RefCell::new(vec![1; options.database_pages as usize])));
    (Homes::new(runtime, records, (options, layout), &at_home), at_home)
}

impl<R: Runtime, D: PageDevice<Page = Stamp>> PageLoad<R, D> {
    /// Makes new pages: every home is written with version 1, in order, and is durable.
    ///
    /// # Errors
    /// `InvalidInput` if the options are not valid for this device, `Unsupported` if it lacks a feature that their form
    /// needs; those of the device.
    pub async fn create(runtime: &R, device: &Rc<D>, options: PageOptions) -> Result<Rc<Self>> {
        options.check(device.limits(), LogPlace::Nowhere)?;
        let (homes, at_home) = homes_on(runtime, device, options);
        let image = |page| Image::new(PageNo(page), 1, options.device_pages_per_page);
        homes.load((0..options.database_pages).map(image)).await?;
        let pool = pool_of(runtime, &homes, &options, 0)?;
        pool.start();
        let versions = RefCell::new(vec![1; options.database_pages as usize]);
        Ok(Rc::new(PageLoad { homes, pool, options, versions, at_home, accesses: Cell::new(0) }))
    }

    /// Fixes `page`, reads it if it is not in memory, and changes it if `write`.
    ///
    /// # Errors
    /// `Corrupt` if the home holds anything except the version written last; those of the device, also if a batch could not
    /// be flushed.
    pub async fn access(&self, page: PageNo, write: bool) -> Result<()> {
        self.accesses.set(self.accesses.get() + 1);
        let intent = if write { Intent::Update } else { Intent::Read };
        let mut fixed = self.pool.fix(page, intent).await?;
        let found = *fixed.page();
        let version = &mut self.versions.borrow_mut()[page.index()];
        if found.number() != page || found.version != *version {
            let context = format!("page {page} reads as {found:?}, not as version {version}");
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        if write {
            *version += 1;
            *fixed.page_mut() = Image::new(page, *version, self.options.device_pages_per_page);
        }
        Ok(())
    }

    /// Writes every dirty page, durably, and ends the tasks.
    ///
    /// # Errors
    /// Those of the device.
    pub async fn close(&self) -> Result<()> {
        self.pool.close().await
    }

    /// The counters of device accesses so far.
    pub fn statistics(&self) -> HostStatistics {
        HostStatistics { accesses: self.accesses.get(), ..self.homes.statistics() }
    }

    /// The lowest version that the home of `page` can have, and the newest version.
    pub fn bounds(&self, page: PageNo) -> (u64, u64) {
        (self.at_home.0.borrow()[page.index()], self.versions.borrow()[page.index()])
    }
}

/// Restores torn homes after a crash, if `options` have a double-write area.
///
/// # Errors
/// Those of the device.
pub async fn restore<R: Runtime, D: PageDevice<Page = Stamp>>(
    runtime: &R,
    device: &Rc<D>,
    options: PageOptions,
) -> Result<RestoreReport> {
    homes_on(runtime, device, options).0.restore().await
}

/// The version of each page's home; `None` if it is torn, or holds another page's content.
///
/// # Errors
/// Those of the device.
pub async fn versions<R: Runtime, D: PageDevice<Page = Stamp>>(
    runtime: &R,
    device: &Rc<D>,
    options: PageOptions,
) -> Result<Vec<Option<u64>>> {
    let (homes, _) = homes_on(runtime, device, options);
    let mut versions = Vec::new();
    for page in 0..options.database_pages {
        versions.push(homes.try_read(PageNo(page)).await?.map(|image| image.version));
    }
    Ok(versions)
}
