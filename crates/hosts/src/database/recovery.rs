//! Recovery after a crash, and at every other opening: torn homes are restored, and the log is repeated.
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Result};
use tantalum_buffer::Intent;
use tantalum_runtime::Runtime;

use super::drives::Drives;
use super::engine::Database;
use super::homes::RestoreReport;
use super::layout::Layout;
use super::options::DatabaseOptions;
use super::way::Way;
use crate::btree::{Content, Lsn, PageChanges, TreePage};
use crate::fault_points::Fault;
use crate::records::{Codec, RecordDevice};
use crate::redo::{Block, Group, Headers, LogEnd, LogReader, Shape};
use crate::values::Value;

/// The result of an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// The result for the area, if there is one.
    pub restore: RestoreReport,
    /// Number of transactions in the log after the last checkpoint.
    pub transactions: u64,
    /// Number of their page changes that the homes lacked.
    pub pages_changed: u64,
}

/// Calls the function if it is dropped before it was done.
struct UnlessDone<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> UnlessDone<F> {
    fn done(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for UnlessDone<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

impl<R, D, V, C, W> Database<R, D, V, C, W>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
    W: Way,
{
    /// Opens a database, with every committed transaction, and starts its tasks. If it is dropped midway it ends the tasks again, and
    /// opening can be tried once more.
    ///
    /// # Errors
    /// `Format` if the device holds no database; `InvalidInput` if it was made with another form or other sizes; `Corrupt` with the page
    /// if a page that the log changes is torn or has lost a write (without protection, on a device that tears pages); `Corrupt` if the
    /// log is damaged and continues after the damage; those of the device. After an error the content is still there for another try.
    pub async fn open(
        runtime: &R,
        device: &Rc<D>,
        codec: &Rc<C>,
        options: DatabaseOptions<W>,
    ) -> Result<(Rc<Self>, RecoveryReport)> {
        Self::open_on(runtime, &Drives::new(device, codec), options).await
    }

    /// Like [`open`](Self::open), on one device or two.
    ///
    /// # Errors
    /// As for `open`, and `Format` if the log's own device holds no log of this database.
    pub async fn open_on(
        runtime: &R,
        drives: &Drives<D, C>,
        options: DatabaseOptions<W>,
    ) -> Result<(Rc<Self>, RecoveryReport)> {
        let (limits, log_apart) = drives.limits();
        options.check_on(limits, log_apart)?;
        drives.each().for_each(RecordDevice::reopened);
        // If there was no power cut, content that is read now may still be lost later. Recovery must not rely on it before a flush.
        if !Fault::NoFlushBeforeRecovery.is_planted() {
            drives.flush().await?;
        }
        let Some(headers) = Headers::read(&drives.data()).await? else {
            return Err(Error::new(ErrorKind::Format, "the device holds no database"));
        };
        let checkpoint = headers.newest();
        check_shape(checkpoint.shape, options, drives.database())?;
        if let Some(log) = drives.log_apart() {
            let first = Headers::read(log).await?.map(|headers| headers.newest());
            if first.is_none_or(|first| first.shape != checkpoint.shape) {
                let context = "the log's device holds no log of this database";
                return Err(Error::new(ErrorKind::Format, context));
            }
        }
        let layout = Layout::new(&options.pages, drives.log_place(options.log_pages));
        let mut end = LogEnd { position: checkpoint.position, next: checkpoint.next };
        let mut groups = Vec::new();
        if options.pages.form.has_log() {
            let log = drives.log();
            let mut reader = LogReader::new(&log, layout.log(), end);
            while let Some((first, block)) = reader.next().await? {
                groups.extend((first.0..).map(Lsn).zip(block));
            }
            reader.check_end().await?;
            end = reader.end();
        }
        let engine = Self::with(runtime, drives, options, headers, end)?;
        let restore = engine.homes().restore().await?;
        engine.start();
        let opening = Rc::clone(&engine);
        let unless_opened = UnlessDone(Some(|| opening.give_up()));
        let mut report = RecoveryReport { restore, ..RecoveryReport::default() };
        let repeated = engine.repeat(groups, &mut report).await;
        unless_opened.done();
        if let Err(error) = repeated {
            engine.stop().await;
            return Err(error);
        }
        Ok((engine, report))
    }

    /// Called if opening was dropped midway: no more pages are written home, and the tasks end. The next opening must be the only user
    /// of the device.
    fn give_up(self: Rc<Self>) {
        if Fault::OpeningGoesOn.is_planted() {
            return;
        }
        self.homes().refuse();
        let runtime = self.runtime.clone();
        runtime.detach("end of an opening", Box::pin(async move { self.stop().await }));
    }

    async fn repeat(
        &self,
        groups: Vec<(Lsn, Rc<Group<V>>)>,
        report: &mut RecoveryReport,
    ) -> Result<()> {
        let replaced = replaced(&groups);
        for (lsn, group) in groups {
            report.transactions += 1;
            for page in &group.pages {
                // A page that is replaced later is not read: it may be torn.
                let later = replaced.get(&page.page).is_some_and(|later| *later > lsn);
                if later && !Fault::ReplacedPagesRead.is_planted() {
                    continue;
                }
                report.pages_changed += u64::from(self.repeat_in_page(lsn, page).await?);
            }
        }
        self.checkpoint().await
    }

    /// Applies the changes that a page lacks; returns whether there were any.
    async fn repeat_in_page(&self, lsn: Lsn, changes: &PageChanges<V>) -> Result<bool> {
        // The old content is replaced, even if it is torn.
        let intent = if changes.replaces() { Intent::Overwrite } else { Intent::Update };
        let mut fixed = self.pool.fix(changes.page, intent).await?;
        let mut page = match intent {
            Intent::Overwrite => TreePage {
                number: changes.page,
                lsn: changes.after,
                device_pages: self.options.pages.device_pages_per_page,
                content: Content::empty(),
            },
            _ => TreePage::clone(&fixed.page()),
        };
        if page.lsn >= lsn {
            return Ok(false);
        }
        let refuse = |what: String| {
            let context = format!("page {} of the database {what}", changes.page);
            Err(Error::new(ErrorKind::Corrupt, context))
        };
        if page.lsn != changes.after && !Fault::LostWritesIgnored.is_planted() {
            return refuse(format!(
                "has changes up to {}, and the log goes on after {}: a write of it was lost",
                page.lsn.0, changes.after.0
            ));
        }
        for change in &changes.changes {
            if !change.apply(&mut page.content) {
                return refuse(format!("does not take a change that the log has: {change:?}"));
            }
        }
        page.lsn = lsn;
        *fixed.page_mut() = Rc::new(page);
        Ok(true)
    }
}

/// The last group that replaces each page as a whole.
fn replaced<V: Value>(groups: &[(Lsn, Rc<Group<V>>)]) -> BTreeMap<PageNo, Lsn> {
    let pages = groups.iter().flat_map(|(lsn, group)| {
        let replaced = group.pages.iter().filter(|page| page.replaces());
        replaced.map(|page| (page.page, *lsn))
    });
    pages.collect()
}

fn check_shape<W: Way>(
    found: Shape,
    options: DatabaseOptions<W>,
    log_apart: Option<u64>,
) -> Result<()> {
    if found == options.shape(log_apart) {
        return Ok(());
    }
    if found.log_apart.is_some() != log_apart.is_some() {
        let apart = if found.log_apart.is_some() { "another device" } else { "the same device" };
        let context = format!("the database was made with its log on {apart}");
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    let form = W::WAYS.get(usize::from(found.mode)).map_or("another form", |form| form.name());
    let context = format!("the database was made with {form} and {found:?}, not for {options:?}");
    Err(Error::new(ErrorKind::InvalidInput, context))
}
