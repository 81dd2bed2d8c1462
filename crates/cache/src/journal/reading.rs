//! Reading a committed epoch back, in the order of its pages.
use super::index::{Entry, Index, Next};
use super::{CONTENTS_PER_WRITE, Journal, Phase, Run, byte_of};
use crate::fault_points::Fault;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageNo, PageRange, Payload, Result, ResultExt};
use tantalum_media::BlockStore;

/// A committed epoch.
pub(super) struct Committed<P> {
    pub(super) epoch: u64,
    pub(super) index: Index,
    /// The contents of the first slots, kept in memory.
    pub(super) kept: Vec<P>,
}

/// Contents that were read ahead, not checked yet.
pub(super) struct Window<P> {
    first_slot: u32,
    pages: Vec<P>,
}

impl<P> Window<P> {
    pub(super) fn empty() -> Self {
        Window { first_slot: 0, pages: Vec::new() }
    }
}

impl<P: Payload> Window<P> {
    fn get(&self, slot: u32) -> Option<P> {
        self.pages.get(slot.checked_sub(self.first_slot)? as usize).cloned()
    }
}

impl<S: BlockStore, P: Payload> Journal<S, P> {
    /// The next change of the committed epoch at or after `from`: up to `pages_max` consecutive
    /// pages with their contents, or a range of zeros. `None` after the last one, or if no epoch is
    /// committed.
    ///
    /// # Errors
    /// `Checksum`, with the page, if a content is damaged; those of the store.
    ///
    /// # Panics
    /// If `pages_max` is 0.
    pub async fn next_run(&self, from: PageNo, pages_max: usize) -> Result<Option<Run<P>>> {
        assert!(pages_max > 0, "a run has a page");
        let entries = match self.with_committed(|committed| committed.index.next(from, pages_max)) {
            None | Some(None) => return Ok(None),
            Some(Some(Next::Zeros(range))) => return Ok(Some(Run::Zeros(range))),
            Some(Some(Next::Contents(entries))) => entries,
        };
        let mut first = None;
        let mut pages = Vec::with_capacity(entries.len());
        for at in entries {
            let (page, content) = self.content(at).await?;
            first.get_or_insert(page);
            pages.push(content);
        }
        Ok(first.map(|first| Run::Contents { first, pages }))
    }

    /// Whether the committed epoch changes `page`; false if none is committed.
    pub(crate) fn has(&self, page: PageNo) -> bool {
        self.with_committed(|committed| committed.index.has(page)).unwrap_or(false)
    }

    pub(super) fn with_committed<T>(&self, ask: impl FnOnce(&Committed<P>) -> T) -> Option<T> {
        match &*self.phase.borrow() {
            Phase::Committed(committed) => Some(ask(committed)),
            _ => None,
        }
    }

    /// The page and content of an entry.
    pub(super) async fn content(&self, at: usize) -> Result<(PageNo, P)> {
        let found = self.with_committed(|committed| {
            let entry = committed.index.entries[at];
            (entry, committed.kept.get(entry.slot as usize).cloned(), committed.epoch)
        });
        let Some((entry, kept, epoch)) = found else { return Err(given_up()) };
        if let Some(kept) = kept {
            return Ok((entry.page, kept));
        }
        let held = self.window.borrow().get(entry.slot);
        let content = match held {
            Some(content) => content,
            None => self.read_ahead(at, entry).await?,
        };
        if content.checksum() != entry.checksum && !Fault::ContentsUnchecked.is_planted() {
            let context = format!("page {} of epoch {epoch} is damaged in the journal", entry.page);
            return Err(Error::new(ErrorKind::Checksum, context));
        }
        Ok((entry.page, content))
    }

    /// Reads this entry's content. Contents of following entries that are stored directly behind it
    /// are read too.
    async fn read_ahead(&self, at: usize, entry: Entry) -> Result<P> {
        let pages = self.with_committed(|it| it.index.neighbours(at, CONTENTS_PER_WRITE));
        let pages = pages.ok_or_else(given_up)?;
        let buf = self.store.buffer(pages * PAGE_BYTES);
        let buf = self.store.read(byte_of(u64::from(entry.slot)), buf).await.context(|| {
            let slots = PageRange::new(PageNo(u64::from(entry.slot)), pages as u64);
            format!("reading contents {slots} of the journal, of page {} and others", entry.page)
        })?;
        let pages: Vec<P> = buf.chunks_exact(PAGE_BYTES).map(P::from_bytes).collect();
        self.store.recycle(buf);
        let first = pages[0].clone();
        *self.window.borrow_mut() = Window { first_slot: entry.slot, pages };
        Ok(first)
    }
}

fn given_up() -> Error {
    let context = "an epoch of the journal was given up while it was being read";
    Error::new(ErrorKind::InvalidInput, context)
}
