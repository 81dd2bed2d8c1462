//! SQLite's rollback journal: in memory, or in an unnamed temporary file if it is too large for memory.
//!
//! A library without batch-atomic commits requires a journal. It is only read for rollbacks in the same process: the
//! volume always holds the last committed state, so there is nothing to play back after a crash. The journal therefore
//! need not survive the handle of the connection that writes it. While the handle is open, the journal has a name, like a
//! file: in a rollback of several databases SQLite finds out by name which of their journals are still to be played back.
use crate::codes::lock;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use tempfile::SpooledTempFile;

/// Bytes of a journal that are kept in memory.
const MEMORY_BYTES: usize = 4 << 20;

/// The journals of one process, by name. Names are bytes, which compare faster than paths.
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

    /// The journal called `path`, if it holds content to be played back.
    pub(crate) fn find(&self, path: &Path) -> Option<Arc<Mutex<Journal>>> {
        let journal = lock(&self.0).get(path.as_os_str())?.upgrade()?;
        let is_hot = lock(&journal).is_hot();
        is_hot.then_some(journal)
    }

    /// Removes the name of the journal called `path`.
    pub(crate) fn delete(&self, path: &Path) {
        lock(&self.0).remove(path.as_os_str());
    }
}

/// One open journal.
pub(crate) struct Journal {
    bytes: SpooledTempFile,
    size: u64,
    /// Its first byte.
    first: Option<u8>,
}

impl Default for Journal {
    fn default() -> Self {
        Journal { bytes: SpooledTempFile::new(MEMORY_BYTES), size: 0, first: None }
    }
}

impl Journal {
    /// Fills `out` from `offset`, with zeros behind the end; returns whether all of it was there.
    pub(crate) fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<bool> {
        let there = self.size.saturating_sub(offset).min(out.len() as u64) as usize;
        let (out, past_end) = out.split_at_mut(there);
        past_end.fill(0);
        if !out.is_empty() {
            self.bytes.seek(SeekFrom::Start(offset))?;
            self.bytes.read_exact(out)?;
        }
        Ok(past_end.is_empty())
    }

    /// Writes `data` at `offset`; a gap before it is filled with zeros.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset > self.size {
            self.bytes.set_len(offset)?;
        }
        self.bytes.seek(SeekFrom::Start(offset))?;
        self.bytes.write_all(data)?;
        self.size = self.size.max(offset + data.len() as u64);
        if offset == 0
            && let Some(byte) = data.first()
        {
            self.first = Some(*byte);
        }
        Ok(())
    }

    /// Truncates the journal to `size` bytes.
    pub(crate) fn truncate(&mut self, size: u64) -> io::Result<()> {
        if size == 0 {
            // The journal is in memory again.
            *self = Journal::default();
        } else if size < self.size {
            self.bytes.set_len(size)?;
            self.size = size;
        }
        Ok(())
    }

    /// Whether its transaction is still open: at the end of a transaction the journal is left empty, or with zeros at its
    /// beginning.
    fn is_hot(&self) -> bool {
        self.first.is_some_and(|byte| byte != 0)
    }

    /// Bytes in the journal.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same below and above the limit of memory.
    #[test]
    fn reads_back_what_was_written_and_tells_short_reads() {
        for base in [0, MEMORY_BYTES as u64 - 5, MEMORY_BYTES as u64 * 2] {
            let mut journal = Journal::default();
            journal.write(base + 3, b"abc").unwrap();
            let mut out = [9; 4];
            assert!(journal.read(base + 2, &mut out).unwrap());
            assert_eq!(&out, b"\0abc");
            assert!(!journal.read(base + 4, &mut out).unwrap());
            assert_eq!(&out, b"bc\0\0");
            assert!(!journal.read(base + 100, &mut out).unwrap());
            assert_eq!(out, [0; 4]);
            journal.truncate(base + 4).unwrap();
            assert_eq!(journal.size(), base + 4);
            journal.write(base + 5, b"x").unwrap();
            assert!(journal.read(base + 2, &mut out).unwrap());
            assert_eq!(&out, b"\0a\0x", "what was cut off is gone");
            journal.truncate(0).unwrap();
            assert_eq!((journal.size(), journal.is_hot()), (0, false));
        }
    }

    #[test]
    fn a_journal_is_found_while_it_is_open_and_to_be_played_back() {
        let (journals, path) = (Journals::default(), Path::new("/v.toml-journal"));
        assert!(journals.find(path).is_none());
        let journal = journals.create(path);
        assert!(journals.find(path).is_none(), "empty");
        lock(&journal).write(0, b"magic").unwrap();
        let found = journals.find(path).unwrap();
        assert_eq!(lock(&found).size(), 5);
        lock(&journal).write(0, &[0; 2]).unwrap();
        assert!(journals.find(path).is_none(), "concluded");
        lock(&journal).write(0, b"magic").unwrap();
        drop((journal, found));
        assert!(journals.find(path).is_none(), "closed");
        let journal = journals.create(path);
        lock(&journal).write(0, b"magic").unwrap();
        journals.delete(path);
        assert!(journals.find(path).is_none(), "deleted");
    }
}
