//! Reads: from the flash if it has the page, otherwise from the home.
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Payload, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;
use tantalum_runtime::life_cycle::is_damage;

use crate::fault_points::Fault;
use crate::mode::Mode;
use crate::page_set::PageSet;
use crate::tiered::Tiered;

/// Pages admitted with one append.
const ADMITTED_AT_ONCE: usize = 64;

/// If the flash cannot read clean pages, they are read from the home for this long. Then the flash
/// is tried again, as the error may have passed.
const FROM_HOME_NS: u64 = 10_000_000_000;

/// Whether an error of this kind means that the flash cannot read a page: it is damaged, or the
/// device cannot read it now.
fn is_unreadable(kind: ErrorKind) -> bool {
    is_damage(kind) || kind == ErrorKind::Io
}

/// The tier that failed.
enum Failed {
    Flash(Error),
    Home(Error),
}

/// Clean pages that the flash could not read; they are read from the home.
#[derive(Default)]
pub(crate) struct FromHome {
    pages: PageSet,
    /// The time at which the flash is tried again.
    until_ns: u64,
}

impl FromHome {
    /// Adds a page that could not be read at `now_ns`.
    fn insert(&mut self, page: PageNo, now_ns: u64) {
        self.pages.insert(page);
        self.until_ns = now_ns + FROM_HOME_NS;
    }

    fn contains(&self, page: PageNo, now_ns: impl Fn() -> u64) -> bool {
        !self.pages.is_empty() && self.pages.contains(page) && now_ns() < self.until_ns
    }

    fn remove(&mut self, page: PageNo) {
        if !self.pages.is_empty() {
            self.pages.remove(page);
        }
    }
}

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Reads pages from `first` on into `out`, all as of one moment.
    pub(crate) async fn read_pages(&self, first: PageNo, out: &mut [M::Page]) -> Result<()> {
        self.count(|counts| counts.pages_read += out.len() as u64);
        let stays = !self.passes(PageRange::new(first, out.len() as u64));
        loop {
            match self.try_read(first, out, stays).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // The page was evicted while it was read.
                Err(Failed::Flash(error)) if error.kind() == ErrorKind::Unmapped => {}
                Err(Failed::Flash(error)) if is_unreadable(error.kind()) => {
                    self.note_unreadable(first, out, error).await?
                }
                Err(Failed::Flash(error) | Failed::Home(error)) => return Err(error),
            }
        }
    }

    /// Reads the pages; false if one of them changed while it was read from the home. `stays`:
    /// pages read from the home may be admitted to the flash.
    async fn try_read(
        &self,
        first: PageNo,
        out: &mut [M::Page],
        stays: bool,
    ) -> std::result::Result<bool, Failed> {
        let range = PageRange::new(first, out.len() as u64);
        let at_home = self.runs_at_home(range);
        // No await until the reads below begin: all pages are as of this moment, unless one of
        // those on the home changes.
        let reading = (!at_home.is_empty()).then(|| self.reads.begin(range));
        let is_at_home = |page: PageNo| at_home.iter().any(|run| run.contains(page));
        let here = at_home.iter().map(|run| run.pages).sum::<u64>() < range.pages;
        let timed = here.then(|| self.load.flash.begin(self.runtime.now_ns()));
        match at_home.as_slice() {
            [] => self.drive.read(first, out, None).await.map_err(Failed::Flash)?,
            _ if !here => {}
            _ => {
                let here = range.iter().zip(0..).filter(|(page, _)| !is_at_home(*page));
                self.drive.read_scattered(here, out).await.map_err(Failed::Flash)?;
            }
        }
        if let Some(timed) = timed {
            timed.ended(self.runtime.now_ns());
        }
        self.drive.ftl().used(range.iter().filter(|page| !is_at_home(*page)));
        for run in &at_home {
            let from = (run.first.0 - first.0) as usize;
            let timed = self.load.home.begin(self.runtime.now_ns());
            let read = self.home.read(run.first, &mut out[from..from + run.pages as usize], None);
            self.at_home(read).await.map_err(|error| {
                self.count(|counts| counts.home_errors += 1);
                self.reads.failed(&error);
                Failed::Home(error)
            })?;
            timed.ended(self.runtime.now_ns());
        }
        let Some(reading) = reading else { return Ok(true) };
        self.reads.worked();
        if reading.has_changed() {
            return Ok(false);
        }
        self.count(|counts| {
            counts.home_reads += at_home.len() as u64;
            counts.home_pages_read += at_home.iter().map(|run| run.pages).sum::<u64>();
        });
        if stays && self.options.admit_reads && self.mode().admits_reads() && !self.is_worn() {
            self.let_in(&at_home, first, out);
        }
        Ok(true)
    }

    /// Whether `page` is read from the home: it is not in the flash, or the home has it too and the
    /// flash cannot or should not be read.
    fn reads_home(&self, page: PageNo, prefers_home: bool) -> bool {
        let now_ns = || self.runtime.now_ns();
        let unwanted = || prefers_home || self.from_home.borrow().contains(page, now_ns);
        !self.drive.holds(page) || unwanted() && self.drive.is_clean(page)
    }

    /// Whether pages that both tiers have are read from the home.
    fn prefers_home(&self) -> bool {
        self.mode() == Mode::Off || self.options.balance_reads && self.load.prefers_home()
    }

    /// The runs of pages of `range` that are read from the home.
    fn runs_at_home(&self, range: PageRange) -> Vec<PageRange> {
        let mut runs: Vec<PageRange> = Vec::new();
        let prefers_home = self.prefers_home();
        for page in range.iter().filter(|page| self.reads_home(*page, prefers_home)) {
            match runs.last_mut() {
                Some(run) if run.end() == page => run.pages += 1,
                _ => runs.push(PageRange::new(page, 1)),
            }
        }
        runs
    }

    /// Records the pages that the flash cannot read but the home has; fails with `error` if the
    /// home has only an older content. The pages stay in the flash: an I/O error does not mean that
    /// they are lost. Pages written or evicted since the failed read are readable again.
    async fn note_unreadable(&self, first: PageNo, out: &[M::Page], error: Error) -> Result<()> {
        let (mut found, mut is_lost) = (0, false);
        for page in PageRange::new(first, out.len() as u64).iter() {
            if self.reads_home(page, false) {
                continue;
            }
            let was_clean = self.drive.is_clean(page);
            let mut content = [M::Page::zero()];
            match self.drive.read(page, &mut content, None).await {
                Err(error) if !is_unreadable(error.kind()) => {}
                Err(error) if self.drive.is_clean(page) => {
                    if is_damage(error.kind()) {
                        self.drive.ftl().unused([page]);
                    }
                    self.from_home.borrow_mut().insert(page, self.runtime.now_ns());
                    found += 1;
                }
                Err(_) => is_lost |= !was_clean,
                Ok(()) => {}
            }
        }
        self.count(|counts| counts.pages_read_again_from_home += found);
        if found == 0 && is_lost { Err(error) } else { Ok(()) }
    }

    /// Queues pages that were read from the home for admission, while there is room for them.
    fn let_in(&self, runs: &[PageRange], first: PageNo, out: &[M::Page]) {
        if self.drive.ftl().dirty_pages() > self.options.dirty_soft_pages {
            return;
        }
        let pages = runs.iter().flat_map(|run| run.iter()).filter(|page| !self.drive.holds(*page));
        let mut any = false;
        for page in pages {
            any |= self.reads.wait(page, out[(page.0 - first.0) as usize].clone());
        }
        if any {
            self.admissions.wake_all();
        }
    }

    /// Admits queued pages until the flash fails.
    pub(crate) async fn run_admission(&self) -> Result<()> {
        loop {
            let due = || {
                let failed = self.drive.check_failed().is_err();
                (failed || self.reads.any_waits()).then_some(())
            };
            self.admissions.until(due).await;
            self.drive.check_failed()?;
            let entries = self.reads.take(ADMITTED_AT_ONCE);
            let numbers: Vec<(PageNo, u64)> =
                entries.iter().map(|(page, number, _)| (*page, *number)).collect();
            let mut pages: Vec<_> =
                entries.into_iter().map(|(page, _, content)| (page, content)).collect();
            let is_wanted = |page: PageNo| {
                let number = numbers.iter().find(|(at, _)| *at == page).map(|(_, number)| *number);
                if Fault::StalePagesTakenIn.is_planted() {
                    return true;
                }
                self.mode().admits_reads()
                    && number.is_some_and(|number| self.reads.is_wanted(page, number))
                    && !self.trimming.borrow().contains(page)
                    && !self.dirty.borrow().contains(page)
                    && !self.drive.holds(page)
            };
            let taken = self.drive.ftl().take_in(&mut pages, is_wanted).await;
            for (page, number) in &numbers {
                self.reads.done(*page, *number);
                // If it was admitted, it is now at another place in the flash.
                self.from_home.borrow_mut().remove(*page);
            }
            match taken {
                // There is no room for them; they can be read from the home.
                Err(error) if error.kind() == ErrorKind::OutOfSpace => {}
                taken => _ = taken?,
            }
        }
    }
}
