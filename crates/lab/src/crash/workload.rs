//! Random commands from a seed, and what a device must hold after any number of them.
use std::fmt;
use tantalum_base::{PAGE_BYTES, PageNo, PageRange, Payload, Rng};

/// What a workload looks like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Pages written to, from page 0.
    pub pages: u64,
    /// Commands.
    pub commands: u32,
    /// Pages in a write or a transaction at the most.
    pub pages_max: u32,
    /// Whether the device has transactions.
    pub transactions: bool,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Writes these contents from `first` on.
    Write { first: PageNo, counts: Vec<u64> },
    /// Writes these pages in one transaction and commits.
    Commit(Vec<(PageNo, u64)>),
    /// Writes these pages in one transaction and aborts.
    Abort(Vec<(PageNo, u64)>),
    /// Trims.
    Trim(PageRange),
    /// Flushes.
    Flush,
    /// Reads one page and compares.
    Read(PageNo),
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The commands of `seed`. Every content is written once only, so that a read tells which write
/// it saw.
pub fn commands(shape: &Shape, seed: u64) -> Vec<Command> {
    let mut rng = Rng::split(seed, "workload");
    let mut count = 0;
    let mut next = || {
        count += 1;
        count
    };
    (0..shape.commands)
        .map(|_| {
            let len = 1 + rng.below(u64::from(shape.pages_max));
            let first = PageNo(rng.below(shape.pages - len + 1));
            match rng.below(20) {
                0 => Command::Flush,
                1 => Command::Trim(PageRange::new(first, len)),
                2..=4 => Command::Read(first),
                kind @ 5..=9 if shape.transactions => {
                    let mut pages: Vec<(PageNo, u64)> = Vec::new();
                    for _ in 0..len {
                        pages.push((PageNo(rng.below(shape.pages)), next()));
                    }
                    if kind == 9 { Command::Abort(pages) } else { Command::Commit(pages) }
                }
                _ => {
                    // Mostly single pages, as databases write.
                    let len = if rng.chance(0.6) { 1 } else { len };
                    Command::Write { first, counts: (0..len).map(|_| next()).collect() }
                }
            }
        })
        .collect()
}

/// What each page holds, by the count of its last write; 0 is "nothing".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents(Vec<u64>);

impl Contents {
    /// Nothing anywhere.
    pub fn empty(pages: u64) -> Self {
        Contents(vec![0; pages as usize])
    }

    /// The count of `page`.
    pub fn get(&self, page: PageNo) -> u64 {
        self.0[page.index()]
    }

    /// Sets the count of `page`.
    pub fn set(&mut self, page: PageNo, count: u64) {
        self.0[page.index()] = count;
    }

    /// What `command` leaves.
    pub fn apply(&mut self, command: &Command) {
        match command {
            Command::Write { first, counts } => {
                let pages = &mut self.0[first.index()..];
                pages.iter_mut().zip(counts).for_each(|(page, count)| *page = *count);
            }
            Command::Commit(pages) => {
                pages.iter().for_each(|(page, count)| self.0[page.index()] = *count);
            }
            Command::Trim(range) => range.iter().for_each(|page| self.0[page.index()] = 0),
            Command::Abort(_) | Command::Flush | Command::Read(_) => {}
        }
    }
}

/// The content that write number `count` gives `page`; 0 is what was never written.
pub fn content<P: Payload>(page: PageNo, count: u64) -> P {
    if count == 0 {
        return P::zero();
    }
    let mut bytes = [0; PAGE_BYTES];
    bytes[..8].copy_from_slice(&(page.0 + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    // A pattern to the last byte, so that a mixed page is seen.
    for (at, byte) in bytes.iter_mut().enumerate().skip(16) {
        *byte = (at as u64).wrapping_mul(count | 1).wrapping_add(page.0) as u8;
    }
    P::from_bytes(&bytes)
}
