//! What makes commits durable: a redo log, or transactions of the device.
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Result};
use tantalum_runtime::Runtime;

use super::homes::{BatchRules, Homes};
use super::way::Way;
use crate::btree::{Lsn, TreePage};
use crate::fault_points::Fault;
use crate::records::{Codec, RecordCounts};
use crate::redo::{Block, Group, GroupCommit, Log, closed};
use crate::values::Value;

type Page<V> = Rc<TreePage<V>>;

/// The homes of a database with commits.
pub(crate) type TreeHomes<R, D, C, V, W> = Homes<R, D, C, Page<V>, Commits<D, C, V>, W>;

/// The commits of a database.
pub(crate) enum Commits<D, C, V> {
    /// They are appended to a log.
    Log(Log<D, C, V>),
    /// The pages that they change are written home, in one transaction of the device.
    Device(DeviceCommits<V>),
}

/// Commits without a log. Those that come while the device is at one of its transactions share the next one.
pub(crate) struct DeviceCommits<V> {
    groups: GroupCommit<Vec<Page<V>>>,
    /// Pages of the database, and device pages, that a transaction of the device takes.
    pages_max: usize,
    device_pages_max: u32,
    /// Transactions that the device has done.
    written: Cell<u64>,
}

impl<V: Value> DeviceCommits<V> {
    /// On a device whose transactions take so many pages of its own.
    pub(crate) fn new(device_pages_max: u32, device_pages_per_page: u32) -> Self {
        let pages_max = (device_pages_max / device_pages_per_page) as usize;
        // LSNs count what was committed since the database was opened: nothing on the device is compared with them.
        let (groups, written) = (GroupCommit::new(Lsn(1)), Cell::new(0));
        DeviceCommits { groups, pages_max, device_pages_max, written }
    }

    fn check_size(&self, pages: usize) -> Result<()> {
        if pages > self.pages_max {
            let context = format!(
                "a commit changes {pages} pages of the database, and a transaction of the device takes {} ({} of its own pages)",
                self.pages_max, self.device_pages_max
            );
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        Ok(())
    }

    /// As many commits as fit into a transaction of the device, with the newest content of each page.
    fn take(&self) -> Vec<(PageNo, Page<V>)> {
        let mut together = BTreeMap::<PageNo, Page<V>>::new();
        self.groups.take(|pages| {
            let more = pages.iter().filter(|page| !together.contains_key(&page.number)).count();
            let fits = together.len() + more <= self.pages_max;
            if fits {
                together.extend(pages.iter().map(|page| (page.number, Rc::clone(page))));
            }
            fits
        });
        together.into_iter().collect()
    }
}

impl<D, C, V> Commits<D, C, V>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    /// The log, if there is one.
    pub(crate) fn log(&self) -> Option<&Log<D, C, V>> {
        match self {
            Commits::Log(log) => Some(log),
            Commits::Device(_) => None,
        }
    }

    /// What was written to the log.
    pub(crate) fn log_counts(&self) -> RecordCounts {
        self.log().map(|log| log.device().counts()).unwrap_or_default()
    }

    /// Transactions of the device by which commits became durable.
    pub(crate) fn device_commits(&self) -> u64 {
        match self {
            Commits::Log(_) => 0,
            Commits::Device(device) => device.written.get(),
        }
    }

    /// Waits until there is room for a commit.
    ///
    /// # Errors
    /// `TooLarge`; why nothing goes on.
    pub(crate) async fn room(&self, group: &Group<V>) -> Result<()> {
        match self {
            Commits::Log(log) => log.room(group).await,
            Commits::Device(device) => {
                device.check_size(group.pages.len())?;
                device.groups.check()
            }
        }
    }

    /// Appends a commit for which there is room; `take_effect` makes it of pages, by its LSN, and gives these.
    pub(crate) fn append(
        &self,
        group: Group<V>,
        take_effect: impl FnOnce(Lsn) -> Vec<Page<V>>,
    ) -> Lsn {
        match self {
            Commits::Log(log) => {
                let lsn = log.append(group);
                take_effect(lsn);
                lsn
            }
            Commits::Device(device) => {
                let lsn = device.groups.next();
                device.groups.append(take_effect(lsn));
                lsn
            }
        }
    }

    /// LSN of what will be appended next.
    pub(crate) fn next(&self) -> Lsn {
        match self {
            Commits::Log(log) => log.groups().next(),
            Commits::Device(device) => device.groups.next(),
        }
    }

    /// Waits until the commits up to `lsn` are durable.
    ///
    /// # Errors
    /// Why they may not be.
    pub(crate) async fn until_durable(&self, lsn: Lsn) -> Result<()> {
        match self {
            Commits::Log(log) => log.groups().until_durable(lsn).await,
            Commits::Device(device) => device.groups.until_durable(lsn).await,
        }
    }

    /// Whether it goes on.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Commits::Log(log) => log.groups().check(),
            Commits::Device(device) => device.groups.check(),
        }
    }

    /// Lets nothing go on, and waits for what is being written. What was not is lost.
    pub(crate) async fn close(&self) {
        match self {
            Commits::Log(log) => log.close().await,
            Commits::Device(device) => {
                device.groups.fail(closed());
                device.groups.until_quiet().await;
            }
        }
    }

    /// Writes what is appended, until nothing goes on.
    pub(crate) async fn run<R: Runtime, W: Way>(&self, homes: &Rc<TreeHomes<R, D, C, V, W>>) {
        let device = match self {
            Commits::Log(log) => return log.run().await,
            Commits::Device(device) => device,
        };
        while device.groups.until_pending().await {
            let together = device.take();
            let parts = if Fault::GroupsCutShort.is_planted() { 1 } else { together.len() };
            let mut written = Ok(());
            for part in together.chunks(parts) {
                written = written.and(homes.commit(part).await);
                device.written.set(device.written.get() + 1);
            }
            let what = "a commit in a transaction of the device";
            device.groups.written(written.map_err(|error| error.wrap(what)));
        }
    }
}

/// Nothing gets home before the commit that made it, and where commits are written home there is nothing else to write.
impl<D, C, V> BatchRules for Commits<D, C, V>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    async fn before(&self, newest: Lsn) -> Result<()> {
        self.until_durable(newest).await
    }

    /// The log has a change before a page does. Without a log LSNs begin anew at each opening.
    fn knows(&self, lsn: Lsn) -> bool {
        self.log().is_none_or(|log| lsn < log.groups().next())
    }
}
