//! Recovery: reads the log for pages that are committed and not home. They stay in the log, and are
//! read from there, until the log fills or they are copied home otherwise, as in normal operation.
use crate::fault_points::Fault;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Payload, Result, SlotNo, ZoneNo};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::{SlotKind, ZoneMedia};
use tantalum_runtime::Runtime;

use super::home::decode_state;
use super::index::Logged;
use super::log::{Filled, LOG_STREAM, Log};
use super::options::WalOptions;
use super::{RedoLog, Wal, divide, with_state_page};

/// The results of a recovery, and its times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalRecovery {
    /// Slots of the log that were read.
    pub slots: u64,
    /// Committed transactions that are not home.
    pub committed: u64,
    /// Transactions that are incomplete and were dropped.
    pub dropped: u64,
    /// Time of the FTL's own recovery, which loads the mapping of the home locations.
    pub ftl_ns: u64,
    /// Time of reading the log.
    pub scan_ns: u64,
    /// Time for resetting the zones of the log that are no longer needed.
    pub reset_ns: u64,
}

/// A transaction found by the scan.
#[derive(Default)]
struct Found {
    /// Page, place and checksum of each of its pages.
    pages: Vec<(PageNo, SlotNo, u32)>,
    has_record: bool,
    /// Number of its pages at the commit, plus its record if it needs one.
    slots: u32,
}

impl Found {
    fn is_committed(&self) -> bool {
        let found = self.pages.len() + usize::from(self.has_record);
        found == self.slots as usize || Fault::LogRedoesUncommitted.is_planted()
    }
}

/// Each recovery that drops a transaction begins a new life, so that no number is used twice. The
/// numbers of a life count up from 1; the number of the life is in the bits above these.
const LIFE_SHIFT: u32 = 32;

/// The number before the first number in the life of `number`.
fn life_start(number: u64) -> u64 {
    number >> LIFE_SHIFT << LIFE_SHIFT
}

/// The content of the whole log.
#[derive(Default)]
struct Scan {
    transactions: BTreeMap<u64, Found>,
    /// For each life, by its start: the highest number up to which all transactions of that life are
    /// recorded as durable.
    durable: BTreeMap<u64, u64>,
    /// Zones with content of the log.
    zones: Vec<Filled>,
    epoch: u64,
    slots: u64,
}

impl Scan {
    fn is_committed(&self, number: u64) -> bool {
        self.transactions.get(&number).is_some_and(Found::is_committed)
    }

    /// The first number for new transactions, above all numbers used so far.
    fn next_number(&self, home: u64) -> u64 {
        let last = self.transactions.keys().next_back().map_or(home, |last| home.max(*last));
        let mut life = home.max(life_start(last)) + 1..=last;
        if life.all(|number| self.is_committed(number)) {
            return last + 1;
        }
        // Pages of the transactions dropped here are still in the log.
        if Fault::NumbersReused.is_planted() {
            let mut found = self.transactions.range(home + 1..).rev();
            return found.find(|(_, found)| found.is_committed()).map_or(home, |(last, _)| *last)
                + 1;
        }
        life_start(last) + (1 << LIFE_SHIFT) + 1
    }

    /// Checks that every transaction is complete that is known to have been committed, because of
    /// its record or a later append. If one is not, it was lost since, and must not be silently
    /// dropped.
    fn check(&self, home: u64) -> Result<()> {
        let durable = self.durable.iter().flat_map(|(start, last)| home.max(*start) + 1..=*last);
        let recorded = self.transactions.range(home + 1..).filter(|(_, found)| found.has_record);
        let mut certain = durable.chain(recorded.map(|(number, _)| *number));
        let Some(lost) = certain.find(|number| !self.is_committed(*number)) else { return Ok(()) };
        if Fault::LogDamageForgotten.is_planted() {
            return Ok(());
        }
        let context = match self.transactions.get(&lost) {
            Some(found) => format!("{} of its {} pages are", found.pages.len(), found.slots),
            None => "nothing of it is".to_owned(),
        };
        let context = format!("transaction {lost} of the redo log was durable: {context} readable");
        Err(Error::new(ErrorKind::Corrupt, context))
    }

    /// The zones with content of transactions above `home`, oldest first.
    fn filled(&self, home: u64) -> Vec<Filled> {
        let above = self.zones.iter().filter(|filled| filled.last > home);
        let mut filled: Vec<Filled> = above.copied().collect();
        filled.sort_unstable_by_key(|filled| filled.epoch);
        filled
    }
}

impl<P: Payload> RedoLog<P> {
    /// Opens the device stored on `media`. It must be started before it is written to, like a new
    /// one.
    ///
    /// # Errors
    /// The errors of [`Ftl::recover`]; `Corrupt` if a transaction is incomplete although the log records
    /// elsewhere that it was durable.
    pub async fn recover(
        media: Rc<impl ZoneMedia<Page = P>>,
        ftl: FtlOptions,
        options: WalOptions,
        runtime: &impl Runtime,
    ) -> Result<(Wal<P>, WalRecovery)> {
        let start_ns = runtime.now_ns();
        let [home, log] = divide(&media, &options)?;
        let (ftl, _) = Ftl::recover(home, with_state_page(ftl)).await?;
        let state = PageNo(ftl.options().pages - 1);
        let mut content = [P::zero()];
        ftl.read(&[state], &mut content).await?;
        let home = decode_state(state, &content[0])?;
        let opened_ns = runtime.now_ns();
        let scan = scan_log(&log).await?;
        let scanned_ns = runtime.now_ns();
        scan.check(home)?;
        let filled = scan.filled(home);
        reset_zones(&log, |zone| filled.iter().all(|filled| filled.zone != zone)).await?;
        let log = Log::with(log, options, filled, scan.epoch);
        let wal = RedoLog::open(ftl, log, options, home);
        wal.next_number.set(scan.next_number(home));
        let mut report = WalRecovery {
            slots: scan.slots,
            ftl_ns: opened_ns - start_ns,
            scan_ns: scanned_ns - opened_ns,
            reset_ns: runtime.now_ns() - scanned_ns,
            ..WalRecovery::default()
        };
        for (number, found) in scan.transactions.range(home + 1..) {
            if !found.is_committed() {
                report.dropped += 1;
                continue;
            }
            report.committed += 1;
            let logged = found.pages.iter().map(|(page, slot, checksum)| {
                let (slot, checksum) = (*slot, *checksum);
                (*page, Logged { number: *number, slot, checksum, content: None })
            });
            wal.index.borrow_mut().committed(*number, logged);
        }
        Ok((wal, report))
    }
}

/// Reads every page of the log with its spare area, which identifies it and its transaction: its content must match its checksum, or
/// its transaction is not whole. That the paper's log is read whole follows from its times (TxCache, table III): 64 ms for 32 MB are
/// 7.8 us a page, 9.4 times those of TxFlash, which needs only the spare areas of its drive of 32 GB.
async fn scan_log<M: ZoneMedia>(log: &M) -> Result<Scan> {
    let geometry = log.geometry();
    let mut scan = Scan::default();
    for zone in (0..geometry.zones).map(ZoneNo) {
        let mut filled = None;
        for append in log.scan(zone, 0, None).await? {
            scan.slots += append.spares.len() as u64;
            let epoch = append.header.epoch;
            scan.epoch = scan.epoch.max(epoch);
            if append.header.stream != LOG_STREAM {
                continue;
            }
            let (number, durable) = (append.header.batch_first.0, append.header.durable.0);
            let highest = scan.durable.entry(life_start(durable)).or_default();
            *highest = durable.max(*highest);
            filled = Some(Filled {
                zone,
                epoch,
                // After a power cut nothing more is appended to a zone.
                used_slots: geometry.slots_per_zone,
                last: filled.map_or(number, |filled: Filled| filled.last.max(number)),
            });
            let found = scan.transactions.entry(number).or_default();
            found.slots = append.header.batch_len;
            for (offset, spare) in (append.first_offset..).zip(&append.spares) {
                let Some(spare) = spare else { continue };
                match spare.kind {
                    SlotKind::Record => found.has_record = true,
                    _ => {
                        let slot = geometry.slot(zone, offset);
                        found.pages.push((spare.page, slot, spare.checksum));
                    }
                }
            }
        }
        scan.zones.extend(filled);
    }
    Ok(scan)
}

/// Resets the zones of the log for which `is_due` returns true.
pub(super) async fn reset_zones<M: ZoneMedia>(
    log: &M,
    is_due: impl Fn(ZoneNo) -> bool,
) -> Result<()> {
    let retired = log.retired();
    let zones = (0..log.geometry().zones).map(ZoneNo);
    for zone in zones.filter(|zone| !retired.contains(zone) && is_due(*zone)) {
        match log.reset(zone).await {
            // From now on the log is one zone shorter.
            Err(error) if error.kind() == ErrorKind::ZoneRetired => {}
            result => result?,
        }
    }
    Ok(())
}
