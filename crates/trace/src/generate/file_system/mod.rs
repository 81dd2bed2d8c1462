//! Transactions of a journaling file system under filebench's file, mail and proxy servers.
//!
//! The TxCache paper collected its traces in ext3's journal (section IV-A). Here a small model of ext3 in
//! data-journaling mode replaces it: a transaction is every block, of data and of metadata, that changed between two
//! commits of the journal. It has only writes, since reads do not pass through the journal. The journal's own blocks
//! are left out: the device's transactions replace it. The servers' parameters are filebench's defaults
//! (`fileserver.f`, `varmail.f`, `webproxy.f`).
use super::gamma::gamma_1_5;
use super::transactions::{Source, Touched};
use tantalum_base::{Result, Rng, Spec};

mod blocks;

use blocks::{BLOCK_BYTES, Blocks, File};

/// The actions that the server repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// Creates and writes a whole file, appends to another, deletes one.
    File,
    /// Deletes a mail; creates one, appends, syncs; appends to another, syncs.
    Mail,
    /// Deletes an object, creates and appends one, appends to the log.
    Proxy,
}

/// The condition for a commit of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commit {
    /// When a transaction approaches this many blocks: when a sixteenth of them is left, which the largest operation
    /// needs.
    Blocks(usize),
    /// After this many syncs, which share the commit.
    Syncs(u64),
    /// After this many rounds.
    Rounds(u64),
}

/// A file system with its server.
#[derive(Clone, Debug)]
pub(super) struct FileSystem {
    server: Server,
    commit: Commit,
    blocks: Blocks,
    /// Files by their number in the set of files; deleted ones are `None`.
    files: Vec<Option<File>>,
    existing: Vec<u32>,
    missing: Vec<u32>,
    log: Option<File>,
    log_bytes_max: u64,
    file_bytes: f64,
    /// The next step of the round.
    step: u32,
    syncs: u64,
    rounds: u64,
    rng: Rng,
}

/// Most bytes of an append: filebench draws evenly up to `meanappendsize` (16k).
const APPEND_BYTES: u64 = 16 << 10;
/// Files that exist at the start: `prealloc=80`.
const PREALLOCATED: f64 = 0.8;
/// Size at which the proxy's log is restarted. This was chosen so that a trace may have any length.
const LOG_BYTES_MAX: u64 = 64 << 20;

impl FileSystem {
    /// The server that `spec` names. All accept `files` and `commit`.
    pub(super) fn of(spec: &mut Spec<'_>, seed: u64) -> Result<FileSystem> {
        let (server, files, file_bytes, files_per_directory) = match spec.name() {
            "fileserver" => (Server::File, 10_000, 128 << 10, 20),
            "varmail" => (Server::Mail, 1_000, 16 << 10, 1_000_000),
            _ => (Server::Proxy, 10_000, 16 << 10, 1_000_000),
        };
        let files = spec.count("files", 10..=1 << 22, files)?;
        let commit = match server {
            // A quarter of a journal of 128 MiB: jbd's limit for one transaction, and the journal
            // that mke2fs makes for a file system of 4 GiB or more.
            Server::File => Commit::Blocks(spec.count("commit", 16..=1 << 20, 8192)? as usize),
            // Chosen: a quarter of the 16 threads waits when the journal commits.
            Server::Mail => Commit::Syncs(spec.count("commit", 1..=1 << 20, 4)?),
            // Chosen: one round of each of the 100 threads.
            Server::Proxy => Commit::Rounds(spec.count("commit", 1..=1 << 20, 100)?),
        };
        let log_bytes_max = if server == Server::Proxy { LOG_BYTES_MAX } else { 0 };
        // Half as much again as files of the mean size need, and the same for appends.
        let data = files * (file_bytes + APPEND_BYTES) * 3 / 2 + log_bytes_max;
        let directories = files.div_ceil(files_per_directory);
        let mut file_system = FileSystem {
            server,
            commit,
            blocks: Blocks::new(data / BLOCK_BYTES, files, directories),
            files: (0..files).map(|_| None).collect(),
            existing: Vec::new(),
            missing: (0..files as u32).collect(),
            log: None,
            log_bytes_max,
            file_bytes: file_bytes as f64,
            step: 0,
            syncs: 0,
            rounds: 0,
            rng: Rng::split(seed, spec.name()),
        };
        let mut before = Touched::default();
        for _ in 0..(files as f64 * PREALLOCATED) as u64 {
            file_system.create(&mut before, true);
        }
        Ok(file_system)
    }

    /// All blocks are below this.
    pub(super) fn pages(&self) -> u64 {
        self.blocks.pages()
    }

    /// Does one step of a round.
    fn act(&mut self, touched: &mut Touched) {
        let steps: &[fn(&mut Self, &mut Touched)] = match self.server {
            Server::File => {
                &[|files, touched| files.create(touched, true), Self::append, Self::delete]
            }
            Server::Mail => &[
                Self::delete,
                |files, touched| {
                    files.create(touched, false);
                    files.syncs += 1;
                },
                |files, touched| {
                    files.append(touched);
                    files.syncs += 1;
                },
            ],
            Server::Proxy => {
                &[Self::delete, |files, touched| files.create(touched, false), Self::append_log]
            }
        };
        let step = steps[self.step as usize];
        step(self, touched);
        self.step += 1;
        if self.step as usize == steps.len() {
            self.step = 0;
            self.rounds += 1;
        }
    }

    /// Creates a file, complete or with its first append.
    fn create(&mut self, touched: &mut Touched, whole: bool) {
        if self.missing.is_empty() {
            return;
        }
        let at = self.rng.below(self.missing.len() as u64) as usize;
        let entry = self.missing.swap_remove(at);
        let bytes = if whole {
            // This limits only one file in 40,000.
            gamma_1_5(&mut self.rng, self.file_bytes).clamp(1.0, 8.0 * self.file_bytes) as u64
        } else {
            self.append_bytes()
        };
        let mut file = self.blocks.create(entry, touched);
        self.blocks.append(&mut file, bytes, touched);
        self.files[entry as usize] = Some(file);
        self.existing.push(entry);
    }

    fn append_bytes(&mut self) -> u64 {
        1 + self.rng.below(APPEND_BYTES)
    }

    fn append(&mut self, touched: &mut Touched) {
        if self.existing.is_empty() {
            return;
        }
        let bytes = self.append_bytes();
        let entry = self.existing[self.rng.below(self.existing.len() as u64) as usize];
        if let Some(file) = &mut self.files[entry as usize] {
            self.blocks.append(file, bytes, touched);
        }
    }

    fn delete(&mut self, touched: &mut Touched) {
        if self.existing.is_empty() {
            return;
        }
        let at = self.rng.below(self.existing.len() as u64) as usize;
        let entry = self.existing.swap_remove(at);
        if let Some(file) = self.files[entry as usize].take() {
            self.blocks.delete(&file, touched);
        }
        self.missing.push(entry);
    }

    fn append_log(&mut self, touched: &mut Touched) {
        let bytes = self.append_bytes();
        let mut log = match self.log.take() {
            Some(log) if log.bytes + bytes <= self.log_bytes_max => log,
            full => {
                if let Some(full) = full {
                    self.blocks.delete(&full, touched);
                }
                self.blocks.create(self.files.len() as u32, touched)
            }
        };
        self.blocks.append(&mut log, bytes, touched);
        self.log = Some(log);
    }
}

impl Source for FileSystem {
    fn next(&mut self, touched: &mut Touched) {
        let (syncs, rounds) = (self.syncs, self.rounds);
        loop {
            self.act(touched);
            let due = match self.commit {
                Commit::Blocks(most) => touched.written.len() >= most - most / 16,
                Commit::Syncs(count) => self.syncs - syncs >= count,
                Commit::Rounds(count) => self.rounds - rounds >= count,
            };
            if due {
                return;
            }
        }
    }
}
