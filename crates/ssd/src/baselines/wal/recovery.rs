//! Recovery: scans the log, redoes committed transactions, drops the others.
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Payload, Result, SlotNo, ZoneNo};
use tantalum_ftl::planted::{Fault, is_planted};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::{SlotKind, ZoneMedia};
use tantalum_runtime::Runtime;

use super::home::{copy, decode_state};
use super::log::{LOG_STREAM, Log};
use super::options::WalOptions;
use super::{Wal, divide, start_ftl, with_state_page};

/// What a recovery found, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalRecovery {
    /// Slots of the log that were read.
    pub slots: u64,
    /// Transactions found committed and not home.
    pub committed: u64,
    /// Transactions found without a whole set of pages and record, and dropped.
    pub dropped: u64,
    /// Pages copied home.
    pub pages_redone: u64,
    /// Time of the FTL's own recovery, of the mapping of the home locations.
    pub ftl_ns: u64,
    /// Time of the scan of the log.
    pub scan_ns: u64,
    /// Time of reading the newest versions and writing them home.
    pub redo_ns: u64,
}

/// A transaction as the scan found it.
#[derive(Default)]
struct Found {
    /// Page, place and checksum of each of its pages.
    pages: Vec<(PageNo, SlotNo, u32)>,
    /// Its pages, as its commit record says; `None` without a record.
    committed: Option<u64>,
}

impl Found {
    fn is_committed(&self) -> bool {
        self.committed == Some(self.pages.len() as u64) || is_planted(Fault::RedoUncommitted)
    }
}

/// All that the log holds.
#[derive(Default)]
struct Scan {
    transactions: BTreeMap<u64, Found>,
    epoch: u64,
    slots: u64,
}

impl<M: ZoneMedia> Wal<M> {
    /// Opens the device that `media` holds. What brings the log home may need room for it, so the
    /// tasks that clean the homes run from here on.
    ///
    /// # Errors
    /// Those of [`Ftl::recover`]; `Checksum` where a committed page in the log has decayed.
    pub async fn recover(
        media: Rc<M>,
        ftl: FtlOptions,
        options: WalOptions,
        runtime: &impl Runtime,
    ) -> Result<(Self, WalRecovery)> {
        let start_ns = runtime.now_ns();
        let (home, log) = divide(&media, &options)?;
        let (ftl, _) = Ftl::recover(home, with_state_page(ftl)).await?;
        let state = PageNo(ftl.options().pages - 1);
        let mut content = [M::Page::zero()];
        ftl.read(&[state], &mut content).await?;
        let home = decode_state(state, &content[0])?;
        let opened_ns = runtime.now_ns();
        let scan = scan_log(&log).await?;
        let scanned_ns = runtime.now_ns();
        let mut report = WalRecovery {
            slots: scan.slots,
            ftl_ns: opened_ns - start_ns,
            scan_ns: scanned_ns - opened_ns,
            ..WalRecovery::default()
        };
        let mut newest: BTreeMap<PageNo, (SlotNo, u32)> = BTreeMap::new();
        for (_, found) in scan.transactions.range(home + 1..) {
            if !found.is_committed() {
                report.dropped += 1;
                continue;
            }
            report.committed += 1;
            for (page, slot, checksum) in &found.pages {
                newest.insert(*page, (*slot, *checksum));
            }
        }
        let last = scan.transactions.last_key_value().map_or(home, |(last, _)| home.max(*last));
        start_ftl(&ftl, runtime);
        if last > home {
            let pages = read_versions(&log, &newest).await?;
            copy(&ftl, &pages, last).await?;
            report.pages_redone = pages.len() as u64;
        }
        reset_zones(&log).await?;
        report.redo_ns = runtime.now_ns() - scanned_ns;
        let log = Log::new(log, options, scan.epoch);
        let wal = Wal::open(ftl, log, options, last);
        wal.ftl_runs.set(true);
        Ok((wal, report))
    }
}

/// Looks at the spare areas alone: they say whose each page is. What is to be copied home is read,
/// once, when that is known.
async fn scan_log<M: ZoneMedia>(log: &M) -> Result<Scan> {
    let geometry = log.geometry();
    let mut scan = Scan::default();
    for zone in (0..geometry.zones).map(ZoneNo) {
        for append in log.scan_spares(zone).await? {
            scan.slots += append.spares.len() as u64;
            scan.epoch = scan.epoch.max(append.header.epoch);
            if append.header.stream != LOG_STREAM {
                continue;
            }
            let found = scan.transactions.entry(append.header.batch_first.0).or_default();
            for (offset, spare) in (append.first_offset..).zip(&append.spares) {
                let Some(spare) = spare else { continue };
                match spare.kind {
                    SlotKind::Record => found.committed = Some(spare.page.0),
                    _ => {
                        let slot = geometry.slot(zone, offset);
                        found.pages.push((spare.page, slot, spare.checksum));
                    }
                }
            }
        }
    }
    Ok(scan)
}

/// Reads the newest versions, all at once.
async fn read_versions<M: ZoneMedia>(
    log: &M,
    newest: &BTreeMap<PageNo, (SlotNo, u32)>,
) -> Result<Vec<(PageNo, M::Page)>> {
    let slots: Vec<SlotNo> = newest.values().map(|(slot, _)| *slot).collect();
    let mut contents = vec![M::Page::zero(); slots.len()];
    if !slots.is_empty() {
        log.read(&slots, &mut contents).await?;
    }
    let mut pages = Vec::with_capacity(slots.len());
    for ((page, (slot, checksum)), content) in newest.iter().zip(contents) {
        if content.checksum() != *checksum {
            let context = format!("page {page} at {slot:?} of the redo log has decayed");
            return Err(Error::new(ErrorKind::Checksum, context));
        }
        pages.push((*page, content));
    }
    Ok(pages)
}

/// Resets every zone of the log.
pub(super) async fn reset_zones<M: ZoneMedia>(log: &M) -> Result<()> {
    let retired = log.retired();
    for zone in (0..log.geometry().zones).map(ZoneNo).filter(|zone| !retired.contains(zone)) {
        log.reset(zone).await?;
    }
    Ok(())
}
