//! The expected content of each page: in memory the newest content, below it the content written last.
use tantalum_base::{Error, ErrorKind, PageNo, Payload, Result, Stamp};

/// Contents of the pages of a trace, by the number of the write that made them. The content of a page before the
/// first request has number 1.
pub(super) struct Contents {
    /// Number of device pages for a page of the trace.
    device_pages: u64,
    /// The content that a request must find.
    newest: Vec<u64>,
    /// The content that the media must return.
    below: Vec<u64>,
    /// The content in memory; 0 if the page is not in memory.
    memory: Vec<u64>,
    writes: u64,
}

impl Contents {
    pub(super) fn new(pages: u64, device_pages: u32) -> Self {
        let first = vec![1; pages as usize];
        let memory = vec![0; pages as usize];
        let device_pages = device_pages.into();
        Contents { device_pages, below: first.clone(), newest: first, memory, writes: 1 }
    }

    /// The content of `page` made by write number `count`.
    fn stamps(&self, page: PageNo, count: u64) -> impl Iterator<Item = Stamp> {
        let first = page.0 * self.device_pages;
        (first..first + self.device_pages).map(move |at| Stamp::new(PageNo(at), count))
    }

    /// A buffer for a page.
    pub(super) fn blank(&self) -> Vec<Stamp> {
        vec![Stamp::zero(); self.device_pages as usize]
    }

    /// The content of `pages` before the first request.
    pub(super) fn first(&self, pages: std::ops::Range<u64>) -> Vec<Stamp> {
        pages.flat_map(|page| self.stamps(PageNo(page), 1)).collect()
    }

    /// Checks that a medium returned the last written content of `page`.
    pub(super) fn check(&self, page: PageNo, found: &[Stamp]) -> Result<()> {
        let right = self.stamps(page, self.below[page.index()]);
        if right.eq(found.iter().copied()) {
            return Ok(());
        }
        let right: Vec<Stamp> = self.stamps(page, self.below[page.index()]).collect();
        Err(corrupt(format!("page {page} reads as {found:?}, but {right:?} was written down")))
    }

    /// `page` was read from a medium into memory.
    pub(super) fn came_up(&mut self, page: PageNo) {
        self.memory[page.index()] = self.below[page.index()];
    }

    /// Puts memory's content of `page` into `out`, which will be written to a medium.
    pub(super) fn goes_down(&mut self, page: PageNo, out: &mut [Stamp]) -> Result<()> {
        let count = self.memory[page.index()];
        if count == 0 {
            return Err(corrupt(format!("page {page} is to be written, but not in memory")));
        }
        self.below[page.index()] = count;
        out.iter_mut().zip(self.stamps(page, count)).for_each(|(out, stamp)| *out = stamp);
        Ok(())
    }

    /// A request uses `page`, and changes it if `write`.
    pub(super) fn serve(&mut self, page: PageNo, write: bool) -> Result<()> {
        let (memory, newest) = (self.memory[page.index()], self.newest[page.index()]);
        if memory != newest {
            let context = format!("page {page} is served as of write {memory}, not {newest}");
            return Err(corrupt(context));
        }
        if write {
            self.writes += 1;
            self.memory[page.index()] = self.writes;
            self.newest[page.index()] = self.writes;
        }
        Ok(())
    }

    /// `page` left memory.
    pub(super) fn left(&mut self, page: PageNo) {
        self.memory[page.index()] = 0;
    }

    /// Checks that `found`, from the first page on, is the newest content of all pages.
    pub(super) fn check_newest(&self, first: u64, found: &[Stamp]) -> Result<()> {
        let pages = found.chunks(self.device_pages as usize);
        for (page, found) in (first..).map(PageNo).zip(pages) {
            let newest = self.newest[page.index()];
            if !self.stamps(page, newest).eq(found.iter().copied()) {
                let context = format!("page {page} is {found:?} at home, not of write {newest}");
                return Err(corrupt(context));
            }
        }
        Ok(())
    }
}

fn corrupt(context: String) -> Error {
    Error::new(ErrorKind::Corrupt, context)
}
