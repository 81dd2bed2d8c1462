//! The commands of clients, and their effect on the content of a device.
use tantalum_base::{PAGE_BYTES, PageNo, PageRange, Payload};

/// One command. Contents are not part of it: every page that is written gets a content of its own,
/// numbered in the order of the scenario's text, so that a read identifies the write that it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Writes the range, as one atomic command.
    Write(PageRange),
    /// Writes these pages in one transaction and commits. A page may come twice.
    Commit(Vec<PageNo>),
    /// Writes these pages in one transaction and aborts.
    Abort(Vec<PageNo>),
    /// Trims.
    Trim(PageRange),
    /// Each left page takes the right page's content.
    Share(Vec<(PageNo, PageNo)>),
    /// Flushes.
    Flush,
    /// Reads the range as one command, and checks it as one.
    Read(PageRange),
}

impl Command {
    /// Number of pages that it writes, each with a content of its own.
    pub fn pages_written(&self) -> u64 {
        match self {
            Command::Write(range) => range.pages,
            Command::Commit(pages) | Command::Abort(pages) => pages.len() as u64,
            Command::Trim(_) | Command::Share(_) | Command::Flush | Command::Read(_) => 0,
        }
    }

    /// The pages and numbers of its contents, which start at `first_content`.
    pub(super) fn contents(&self, first_content: u64) -> Vec<(PageNo, u64)> {
        let pages: Vec<PageNo> = match self {
            Command::Write(range) => range.iter().collect(),
            Command::Commit(pages) | Command::Abort(pages) => pages.clone(),
            Command::Trim(_) | Command::Share(_) | Command::Flush | Command::Read(_) => Vec::new(),
        };
        pages.into_iter().zip(first_content..).collect()
    }
}

/// The effect of a command on the content of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// These pages get these contents; for a page that appears twice the last one counts.
    Set(Vec<(PageNo, u64)>),
    /// These pages hold nothing.
    Clear(PageRange),
    /// Each left page gets the previous content of the right page.
    Share(Vec<(PageNo, PageNo)>),
}

impl Effect {
    /// Its effect on `page` alone, independent of the state before; `None` if it does not change
    /// the page. The content after a share is not known in advance: `Some(None)`.
    pub(super) fn on(&self, page: PageNo) -> Option<Option<u64>> {
        match self {
            Effect::Set(pages) => {
                let set = pages.iter().rev().find(|(set, _)| *set == page);
                set.map(|(_, content)| Some(*content))
            }
            Effect::Clear(range) => range.contains(page).then_some(Some(0)),
            Effect::Share(pairs) => pairs.iter().any(|(to, _)| *to == page).then_some(None),
        }
    }
}

/// The content of each page, by number; 0 is "nothing".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Contents(pub(super) Vec<u64>);

impl Contents {
    /// All pages are empty.
    pub(super) fn empty(pages: u64) -> Self {
        Contents(vec![0; pages as usize])
    }

    /// The content of `page`.
    pub(super) fn get(&self, page: PageNo) -> u64 {
        self.0[page.index()]
    }

    /// Applies `effect`.
    pub(super) fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Set(pages) => {
                pages.iter().for_each(|(page, content)| self.0[page.index()] = *content);
            }
            Effect::Clear(range) => range.iter().for_each(|page| self.0[page.index()] = 0),
            Effect::Share(pairs) => {
                // All pairs at once: a page that is both shared and replaced gives its old content.
                let taken: Vec<u64> = pairs.iter().map(|(_, from)| self.get(*from)).collect();
                for ((to, _), content) in pairs.iter().zip(taken) {
                    self.0[to.index()] = content;
                }
            }
        }
    }
}

/// Content number `number`, written to `page`; 0 is an unwritten page.
pub(super) fn content<P: Payload>(page: PageNo, number: u64) -> P {
    if number == 0 {
        return P::zero();
    }
    let mut bytes = [0; PAGE_BYTES];
    bytes[..8].copy_from_slice(&(page.0 + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    // A pattern up to the last byte, so that a mixed page is detected; a stamp has none.
    if P::zero().bytes().is_some() {
        for (at, byte) in bytes.iter_mut().enumerate().skip(16) {
            *byte = (at as u64).wrapping_mul(number | 1).wrapping_add(page.0) as u8;
        }
    }
    P::from_bytes(&bytes)
}
