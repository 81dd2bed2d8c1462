//! A load of page accesses over the engine's pages, without rows, log and trees: what the double write itself costs.
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

/// Knows what each home holds.
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

/// Pages on a device, read and changed at random. Every read is checked.
pub struct PageLoad<R: Runtime, D: PageDevice<Page = Stamp>> {
    homes: Rc<ImageHomes<R, D>>,
    pool: ImagePool<R, D>,
    options: PageOptions,
    /// Newest version of each page.
    versions: RefCell<Vec<u64>>,
    at_home: Rc<AtHome>,
    accesses: Cell<u64>,
}

/// The homes of a database that `options` describe, on a device.
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
    /// `InvalidInput` where the options make no sense on this device, `Unsupported` where it lacks what their form needs; the
    /// device's.
    pub async fn create(runtime: &R, device: &Rc<D>, options: PageOptions) -> Result<Rc<Self>> {
        options.check(device.limits(), LogPlace::Nowhere)?;
        let (homes, at_home) = homes_on(runtime, device, options);
        let image = |page| Image::new(PageNo(page), 1, options.device_pages_per_page);
        homes.load((0..options.database_pages).map(image)).await?;
        let pool = pool_of(runtime, &homes, &options)?;
        pool.start();
        let versions = RefCell::new(vec![1; options.database_pages as usize]);
        Ok(Rc::new(PageLoad { homes, pool, options, versions, at_home, accesses: Cell::new(0) }))
    }

    /// Fixes `page`, reads it where it is not in memory, and changes it where `write`.
    ///
    /// # Errors
    /// `Corrupt` where the home holds anything but what was written last; the device's, also where
    /// a batch could not be flushed.
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

    /// Writes every page that was changed, durably, and ends the tasks.
    ///
    /// # Errors
    /// The device's.
    pub async fn close(&self) -> Result<()> {
        self.pool.close().await
    }

    /// What was asked of the device so far.
    pub fn statistics(&self) -> HostStatistics {
        HostStatistics { accesses: self.accesses.get(), ..self.homes.statistics() }
    }

    /// Version that the home of `page` has at the least, and the newest there is.
    pub fn bounds(&self, page: PageNo) -> (u64, u64) {
        (self.at_home.0.borrow()[page.index()], self.versions.borrow()[page.index()])
    }
}

/// Restores torn homes after a crash, where `options` have a double-write area.
///
/// # Errors
/// The device's.
pub async fn restore<R: Runtime, D: PageDevice<Page = Stamp>>(
    runtime: &R,
    device: &Rc<D>,
    options: PageOptions,
) -> Result<RestoreReport> {
    homes_on(runtime, device, options).0.restore().await
}

/// The version of each page's home; `None` where it is torn, or holds another page's content.
///
/// # Errors
/// The device's.
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
