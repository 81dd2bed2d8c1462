//! After a crash, and at every other opening: torn homes are restored, and what the log has is repeated.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, Result};
use tantalum_buffer::Intent;
use tantalum_runtime::Runtime;

use super::engine::DoubleWrite;
use super::homes::RestoreReport;
use super::layout::Layout;
use super::options::{DoubleWriteOptions, Form};
use crate::btree::{Content, Lsn, PageChanges, TreePage};
use crate::fault_points::Fault;
use crate::records::{Codec, RecordDevice};
use crate::redo::{Block, Headers, LogEnd, LogReader, Shape};
use crate::values::Value;

/// What an opening found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Of the double-write area.
    pub restore: RestoreReport,
    /// Transactions in the log behind the last checkpoint.
    pub transactions: u64,
    /// Changes of pages among them that their homes did not have.
    pub pages_changed: u64,
}

impl<R, D, V, C> DoubleWrite<R, D, V, C>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    /// Opens a database, with every transaction that was committed, and starts its tasks.
    ///
    /// # Errors
    /// `Format` where the device holds none; `InvalidInput` where it was made with another form or other sizes; `Corrupt` with
    /// the page where one is torn that the log has changes of, or has lost a write: with double write off, on a device that tears
    /// pages. The device's. What was there is there for the next try.
    pub async fn open(
        runtime: &R,
        device: &Rc<D>,
        codec: &Rc<C>,
        options: DoubleWriteOptions,
    ) -> Result<(Rc<Self>, RecoveryReport)> {
        options.check(device.limits())?;
        let records = RecordDevice::new(device, codec);
        records.reopened();
        // Where the power did not go what is read may still be lost later. Nothing may be concluded from that.
        if !Fault::NoFlushBeforeRecovery.is_planted() {
            records.flush().await?;
        }
        let Some(headers) = Headers::read(&records).await? else {
            return Err(Error::new(ErrorKind::Format, "the device holds no database"));
        };
        let checkpoint = headers.newest();
        check_shape(checkpoint.shape, options)?;
        let layout = Layout::new(&options.pages, options.log_pages);
        let begin = LogEnd { position: checkpoint.position, next: checkpoint.next };
        let mut groups = Vec::new();
        let mut reader = LogReader::new(&records, layout.log(), begin);
        while let Some((first, block)) = reader.next().await? {
            groups.extend((first.0..).map(Lsn).zip(block));
        }
        let engine = Self::with(runtime, device, codec, options, headers, reader.end())?;
        let restore = engine.homes().restore().await?;
        engine.start();
        let mut report = RecoveryReport { restore, ..RecoveryReport::default() };
        let repeated = engine.repeat(groups, &mut report).await;
        if let Err(error) = repeated {
            engine.stop().await;
            return Err(error);
        }
        Ok((engine, report))
    }

    async fn repeat(
        &self,
        groups: Vec<(Lsn, Rc<crate::redo::Group<V>>)>,
        report: &mut RecoveryReport,
    ) -> Result<()> {
        for (lsn, group) in groups {
            report.transactions += 1;
            for page in &group.pages {
                report.pages_changed += u64::from(self.repeat_in_page(lsn, page).await?);
            }
        }
        self.checkpoint().await
    }

    /// Makes changes in a page that it does not have yet; whether there were any.
    async fn repeat_in_page(&self, lsn: Lsn, changes: &PageChanges<V>) -> Result<bool> {
        // Whatever is there, torn or not, is replaced.
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

fn check_shape(found: Shape, options: DoubleWriteOptions) -> Result<()> {
    if found == options.shape() {
        return Ok(());
    }
    let form = Form::ALL.get(usize::from(found.mode)).map_or("another form", |form| form.name());
    let context = format!("the database was made with {form} and {found:?}, not for {options:?}");
    Err(Error::new(ErrorKind::InvalidInput, context))
}
