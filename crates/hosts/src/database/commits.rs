//! How commits become durable: by a redo log, or by transactions of the device.
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

/// Commits without a log. Commits that arrive while a device transaction is in progress share the next one.
pub(crate) struct DeviceCommits<V> {
    groups: GroupCommit<Vec<Page<V>>>,
    /// Maximum number of database pages in a transaction of the device, and the device pages of each.
    pages_max: usize,
    device_pages_max: u32,
    /// Number of completed device transactions.
    written: Cell<u64>,
}

impl<V: Value> DeviceCommits<V> {
    /// For a device whose transactions hold up to this many device pages.
    pub(crate) fn new(device_pages_max: u32, device_pages_per_page: u32) -> Self {
        let pages_max = (device_pages_max / device_pages_per_page) as usize;
        // LSNs count the commits since the database was opened: they are never compared with the device.
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

    /// Takes as many commits as fit into one device transaction, with the newest content of each page.
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

    /// The counters of the log's records.
    pub(crate) fn log_counts(&self) -> RecordCounts {
        self.log().map(|log| log.device().counts()).unwrap_or_default()
    }

    /// Number of device transactions that made commits durable.
    pub(crate) fn device_commits(&self) -> u64 {
        match self {
            Commits::Log(_) => 0,
            Commits::Device(device) => device.written.get(),
        }
    }

    /// Waits for room for a commit.
    ///
    /// # Errors
    /// `TooLarge`; the error that stopped the commits.
    pub(crate) async fn room(&self, group: &Group<V>) -> Result<()> {
        match self {
            Commits::Log(log) => log.room(group).await,
            Commits::Device(device) => {
                device.check_size(group.pages.len())?;
                device.groups.check()
            }
        }
    }

    /// Appends a commit that has room. `take_effect` receives its LSN, changes the pages and returns them.
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

    /// The LSN of the next commit.
    pub(crate) fn next(&self) -> Lsn {
        match self {
            Commits::Log(log) => log.groups().next(),
            Commits::Device(device) => device.groups.next(),
        }
    }

    /// Waits until the commits up to `lsn` are durable.
    ///
    /// # Errors
    /// The error because of which they may not be durable.
    pub(crate) async fn until_durable(&self, lsn: Lsn) -> Result<()> {
        match self {
            Commits::Log(log) => log.groups().until_durable(lsn).await,
            Commits::Device(device) => device.groups.until_durable(lsn).await,
        }
    }

    /// Checks that commits are still accepted.
    ///
    /// # Errors
    /// The error that stopped them.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Commits::Log(log) => log.groups().check(),
            Commits::Device(device) => device.groups.check(),
        }
    }

    /// Stops all commits and waits for writes in progress. Commits that are not written yet are lost.
    pub(crate) async fn close(&self) {
        match self {
            Commits::Log(log) => log.close().await,
            Commits::Device(device) => {
                device.groups.fail(closed());
                device.groups.until_quiet().await;
            }
        }
    }

    /// Writes appended commits until it is stopped.
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

/// No page is written home before the commit that made it. If commits themselves are written home, there is nothing
/// else to write.
impl<D, C, V> BatchRules for Commits<D, C, V>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    async fn before(&self, newest: Lsn) -> Result<()> {
        self.until_durable(newest).await
    }

    /// The log records a change before a page has it. Without a log, LSNs start again at each opening.
    fn knows(&self, lsn: Lsn) -> bool {
        self.log().is_none_or(|log| lsn < log.groups().next())
    }
}
