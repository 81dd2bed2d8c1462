//! Versions of rows: those begun, and those committed.

/// Versions of the rows of a table, from 1 on; 0 if there is none.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// The newest version begun.
    pub(super) begun: Vec<u32>,
    /// The newest version committed.
    pub(super) ended: Vec<u32>,
}

impl Versions {
    pub(super) fn of(rows: u64) -> Self {
        Versions { begun: vec![0; rows as usize], ended: vec![0; rows as usize] }
    }

    pub(super) fn begin(&mut self, row: u64) -> u32 {
        let at = row as usize;
        if at >= self.begun.len() {
            self.begun.resize(at + 1, 0);
            self.ended.resize(at + 1, 0);
        }
        self.begun[at] += 1;
        self.begun[at]
    }

    pub(super) fn end(&mut self, row: u64, version: u32) {
        let ended = &mut self.ended[row as usize];
        *ended = version.max(*ended);
    }

    pub(super) fn begun(&self, row: u64) -> u32 {
        self.begun[row as usize]
    }

    pub(super) fn ended(&self, row: u64) -> u32 {
        self.ended[row as usize]
    }

    /// Whether a read may find this version, if `floor` was committed when the read began.
    pub(super) fn may_find(&self, row: u64, floor: u32, found: u32) -> bool {
        (floor.max(1)..=self.begun(row)).contains(&found)
    }

    /// Rows with changes that were begun but not committed.
    pub(super) fn open(&self) -> impl Iterator<Item = u64> {
        let both = self.begun.iter().zip(&self.ended).zip(0..);
        both.filter(|((begun, ended), _)| begun != ended).map(|(_, row)| row)
    }

    /// Records this version as the newest, and as permanent.
    pub(super) fn settle(&mut self, row: u64, version: u32) {
        self.begun[row as usize] = version;
        self.ended[row as usize] = version;
    }
}
