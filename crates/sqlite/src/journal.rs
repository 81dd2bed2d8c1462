//! SQLite's rollback journal, in memory.
//!
//! A library without batch-atomic commits insists on a journal. It is only ever read to roll back
//! in the same process: the volume holds the last committed state at all times, so that after a
//! crash there is nothing to play back. It therefore need not survive the handle of the connection
//! that writes it. While that is open, the journal has its name, as a file has: in a rollback of
//! several databases SQLite looks by name which of their journals are still to be played back.
use crate::codes::lock;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

/// The journals of one process, by name: as bytes, which compare sooner than paths do.
#[derive(Default)]
pub(crate) struct Journals(Mutex<BTreeMap<OsString, Weak<Mutex<Journal>>>>);

impl Journals {
    /// A new, empty journal called `path`.
    pub(crate) fn create(&self, path: &Path) -> Arc<Mutex<Journal>> {
        let journal = Arc::default();
        let mut journals = lock(&self.0);
        journals.retain(|_, journal| journal.strong_count() > 0);
        journals.insert(path.into(), Arc::downgrade(&journal));
        journal
    }

    /// The journal called `path`, where it holds something to be played back.
    pub(crate) fn find(&self, path: &Path) -> Option<Arc<Mutex<Journal>>> {
        let journal = lock(&self.0).get(path.as_os_str())?.upgrade()?;
        let is_hot = lock(&journal).is_hot();
        is_hot.then_some(journal)
    }

    /// Takes the name from the journal called `path`.
    pub(crate) fn delete(&self, path: &Path) {
        lock(&self.0).remove(path.as_os_str());
    }
}

/// One open journal.
#[derive(Default)]
pub(crate) struct Journal {
    bytes: Vec<u8>,
}

impl Journal {
    /// Fills `out` from `offset`, with zeros past the end; whether all of it was there.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        let from = self.bytes.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let there = out.len().min(self.bytes.len() - from);
        out[..there].copy_from_slice(&self.bytes[from..from + there]);
        out[there..].fill(0);
        there == out.len()
    }

    /// Writes `data` at `offset`; a gap before it becomes zeros.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let offset = offset as usize;
        let end = offset + data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(data);
    }

    /// Cuts the journal to `size` bytes.
    pub(crate) fn truncate(&mut self, size: u64) {
        self.bytes.truncate(size as usize);
    }

    /// Whether it is of a transaction that is not over: one that is leaves its journal empty, or
    /// with zeros in front.
    fn is_hot(&self) -> bool {
        self.bytes.first().is_some_and(|byte| *byte != 0)
    }

    /// Bytes in the journal.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_was_written_and_tells_short_reads() {
        let mut journal = Journal::default();
        journal.write(3, b"abc");
        let mut out = [9; 4];
        assert!(journal.read(2, &mut out));
        assert_eq!(&out, b"\0abc");
        assert!(!journal.read(4, &mut out));
        assert_eq!(&out, b"bc\0\0");
        assert!(!journal.read(100, &mut out));
        assert_eq!(out, [0; 4]);
        journal.truncate(4);
        assert_eq!(journal.size(), 4);
    }

    #[test]
    fn a_journal_is_found_while_it_is_open_and_to_be_played_back() {
        let (journals, path) = (Journals::default(), Path::new("/v.toml-journal"));
        assert!(journals.find(path).is_none());
        let journal = journals.create(path);
        assert!(journals.find(path).is_none(), "empty");
        lock(&journal).write(0, b"magic");
        let found = journals.find(path).unwrap();
        assert_eq!(lock(&found).size(), 5);
        lock(&journal).write(0, &[0; 2]);
        assert!(journals.find(path).is_none(), "concluded");
        lock(&journal).write(0, b"magic");
        drop((journal, found));
        assert!(journals.find(path).is_none(), "closed");
        let journal = journals.create(path);
        lock(&journal).write(0, b"magic");
        journals.delete(path);
        assert!(journals.find(path).is_none(), "deleted");
    }
}
