//! Crash recovery (TxCache, section III-D), from NVRAM and medium only, in its two steps: determine
//! the status of each transaction by its flags; then roll back uncommitted transactions, and
//! complete the mapping of committed ones. Both steps can be interrupted and repeated.
//!
//! After that the indexes that do not survive are rebuilt from the Page Headers.
use crate::fault_points::Fault;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Result};
use tantalum_ftl::Ftl;
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;

use super::device::{TxCache, check};
use super::metadata::{PagePlace, TxHeader, TxNvram, TxState};
use super::options::{HeaderRelease, TxCacheOptions};
use super::state::CacheState;

/// The results of a recovery of the cache. The FTL's own recovery precedes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxRecoveryReport {
    /// Number of Tx Headers examined.
    pub headers: u32,
    /// Transactions rolled forward: committed, but with an incomplete mapping.
    pub redone: u32,
    /// Pages of those transactions.
    pub pages_redone: u64,
    /// Transactions rolled back.
    pub undone: u32,
    /// Whether a trim was completed.
    pub trim_redone: bool,
    /// NVRAM accesses of these steps.
    pub accesses: u64,
    /// Time of these steps (section IV-E, table III).
    pub time_ns: u64,
    /// Number of Page Headers examined to rebuild the indexes: free slots, and the order of
    /// replacement.
    pub page_headers: u32,
    /// Time to rebuild the indexes, after the two steps.
    pub index_ns: u64,
}

impl<R: Runtime, M: ZoneMedia> TxCache<R, M> {
    /// Opens the device stored in `nvram` and `ftl`, which must be recovered itself.
    ///
    /// # Errors
    /// `InvalidInput` if `options` differ from those that it was made with; errors of the medium.
    pub async fn recover(
        runtime: R,
        ftl: Rc<Ftl<M>>,
        options: TxCacheOptions,
        nvram: TxNvram<M::Page>,
    ) -> Result<(Self, TxRecoveryReport)> {
        let pages = check(&ftl, &options)?;
        if !nvram.fits(&options, pages) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("the NVRAM that survived is not that of a device with {options:?}"),
            ));
        }
        let begun_ns = runtime.now_ns();
        let device = TxCache::with_nvram(runtime, ftl, options, nvram.clone());
        let mut report = TxRecoveryReport::default();
        let before = nvram.region().stores();
        roll(&nvram, &mut report);
        if let Some(range) = nvram.trim.get() {
            // Recording the trim needs room, which cleaning may have to make.
            device.start_ftl();
            device.ftl.trim(range, true).await?;
            unmap(&nvram, range, &mut report);
            nvram.trim.with_mut(|trim| *trim = None);
            report.trim_redone = true;
        }
        report.accesses += nvram.region().stores() - before;
        device.pay(report.accesses).await;
        report.time_ns = device.runtime.now_ns() - begun_ns;
        let stores = device.change(|state| state.build(options.header_release, &mut report));
        let index_accesses = u64::from(report.page_headers) + stores;
        device.pay(index_accesses).await;
        report.index_ns = device.runtime.now_ns() - begun_ns - report.time_ns;
        Ok((device, report))
    }
}

/// Both steps of section III-D.
fn roll<P: tantalum_base::Payload>(nvram: &TxNvram<P>, report: &mut TxRecoveryReport) {
    for number in 0..nvram.tx_headers() {
        let header = nvram.tx_header(number);
        report.headers += 1;
        report.accesses += 1;
        let redo_anyway = header.state() == TxState::Running && Fault::RedoUncommitted.is_planted();
        match header.state() {
            TxState::Running if !redo_anyway => {
                report.undone += 1;
                // Nothing else leads to its pages, so they become free with it.
                nvram.transactions.put(number, TxHeader::FREE);
            }
            TxState::Running | TxState::Commit if !header.flags.mapped => {
                report.redone += 1;
                if !Fault::NoRedo.is_planted() {
                    for page_header in nvram.chain(header.first) {
                        let page = nvram.header(page_header).page;
                        nvram.mapping.put(page.0 as u32, page_header);
                        report.pages_redone += 1;
                        report.accesses += 1;
                    }
                }
                nvram.flag(number, |flags| {
                    flags.committed = true;
                    flags.mapped = true;
                });
            }
            _ => {}
        }
    }
}

/// Removes `range` from the mapping. Walks over the pages or over the Page Headers, whichever are
/// fewer.
fn unmap<P: tantalum_base::Payload>(
    nvram: &TxNvram<P>,
    range: PageRange,
    report: &mut TxRecoveryReport,
) {
    let headers = u64::from(nvram.headers.slots());
    report.accesses += range.pages.min(headers);
    let unmap = |page: PageNo| {
        if nvram.mapped(page).is_some() {
            nvram.mapping.take(page.0 as u32);
        }
    };
    if range.pages <= headers {
        return range.iter().for_each(unmap);
    }
    for number in 0..nvram.headers.slots() {
        if let Some(header) = nvram.headers.get(number)
            && range.contains(header.page)
        {
            unmap(header.page);
        }
    }
}

impl<P: tantalum_base::Payload> CacheState<P> {
    /// Rebuilds the indexes: a page header is in use if the mapping leads to it.
    fn build(&mut self, release: HeaderRelease, report: &mut TxRecoveryReport) {
        let tx_headers = self.transactions.len() as u32;
        let mut members: Vec<Vec<u32>> = (0..tx_headers).map(|_| Vec::new()).collect();
        let mut headers_used = vec![false; self.headers.len()];
        let mut frames_used = vec![false; self.free_frames.len()];
        let mut extended_used = vec![false; self.free_extended.len()];
        for number in 0..self.headers.len() as u32 {
            report.page_headers += 1;
            let Some(header) = self.nvram.headers.get(number) else { continue };
            if self.nvram.mapped(header.page) != Some(number) {
                continue;
            }
            headers_used[number as usize] = true;
            match header.place {
                PagePlace::Frame(frame) => frames_used[frame as usize] = true,
                PagePlace::Extended(extended) => extended_used[extended as usize] = true,
            }
            self.enlist(number, header.place);
            if header.transaction < tx_headers {
                members[header.transaction as usize].push(number);
            }
        }
        self.free_headers.retain(|number| !headers_used[*number as usize]);
        self.free_frames.retain(|number| !frames_used[*number as usize]);
        self.free_extended.retain(|number| !extended_used[*number as usize]);
        self.build_transactions(release, members);
    }

    fn build_transactions(&mut self, release: HeaderRelease, members: Vec<Vec<u32>>) {
        let command = self.transactions.len() as u32;
        for (number, members) in (0..command).zip(members) {
            let header = self.nvram.tx_header(number);
            self.next_id = self.next_id.max(header.id.0.wrapping_add(1));
            if header.state() == TxState::Free {
                continue;
            }
            self.free_transactions.retain(|free| *free != number);
            self.by_id.insert(header.id, number);
            self.transactions[number as usize].id = header.id;
            let held = release == HeaderRelease::WrittenBack && header.state() == TxState::Commit;
            self.hold_header(number, if held { members } else { Vec::new() });
        }
        if self.nvram.tx_header(command).state() != TxState::Free {
            self.nvram.transactions.put(command, TxHeader::FREE);
        }
    }
}
