//! SQLite's rollback journal, in memory.
//!
//! A library without batch-atomic commits insists on a journal. It is only ever read to roll back
//! in the same process: the volume holds the last committed state at all times, so that after a
//! crash there is nothing to play back. It therefore need not survive its handle, and no journal
//! ever "exists" for another connection to find.

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
}
