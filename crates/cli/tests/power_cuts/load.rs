//! Clients of the server that write and trim numbered contents, several requests at a time, and record the times of
//! requests and replies.
use crate::history::{ChangeNo, Durability, GROUP_PAGES, GROUPS, History, content};
use crate::recorder::Recorder;
use crate::support::nbd::{Client, Command};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tantalum_base::Rng;

pub const CONNECTIONS: usize = 4;
const IN_FLIGHT: usize = 4;
/// The cookie of a flush; the cookies of changes count from 1.
const FLUSH: u64 = 0;
/// Number of changes that a connection still requests after one was refused.
const REFUSED_MAX: u64 = 20;

/// State that the clients share.
pub struct Load<'a> {
    pub recorder: &'a Recorder,
    pub history: Mutex<History>,
    pub durability: Durability,
    pub seed: u64,
    pub answered: AtomicU64,
    pub refused: AtomicU64,
    /// Changes that were done although one that was issued before them was refused.
    pub done_behind_a_refusal: AtomicU64,
    numbers: AtomicU64,
}

impl<'a> Load<'a> {
    pub fn new(recorder: &'a Recorder, durability: Durability, seed: u64) -> Self {
        Load {
            recorder,
            history: Mutex::new(History::new(durability)),
            durability,
            seed,
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            done_behind_a_refusal: AtomicU64::new(0),
            numbers: AtomicU64::new(0),
        }
    }

    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests changes until the server is gone or refuses them, or `enough` were answered.
    pub fn run(&self, socket: &Path, connection: usize, life: u64, enough: u64) {
        // The server may be killed before this client connects.
        let Ok(client) = Client::connect(socket) else { return };
        let rng = Rng::split(self.seed, &format!("life {life}, connection {connection}"));
        let session = Session {
            load: self,
            client,
            rng,
            connection,
            changing: BTreeMap::new(),
            flushing: None,
            after_refusal: None,
            unsure: BTreeSet::new(),
        };
        session.run(enough);
    }
}

struct Session<'a, 'b> {
    load: &'a Load<'b>,
    client: Client,
    rng: Rng,
    connection: usize,
    /// Changes in flight by their cookie, and whether one had been refused when they were issued.
    changing: BTreeMap<u64, (ChangeNo, bool)>,
    /// The tick at which a flush in flight was sent.
    flushing: Option<u64>,
    /// Number of changes still to be requested after a refusal.
    after_refusal: Option<u64>,
    /// Groups in which a change was refused: it may have been done.
    unsure: BTreeSet<usize>,
}

impl Session<'_, '_> {
    fn run(mut self, enough: u64) {
        loop {
            while self.goes_on(enough) && self.changing.len() < IN_FLIGHT {
                if self.change().is_err() {
                    return;
                }
            }
            let flushes = self.goes_on(enough) && self.flushing.is_none() && self.flushes();
            if flushes && self.flush().is_err() {
                return;
            }
            if self.changing.is_empty() && self.flushing.is_none() {
                return;
            }
            let Ok((cookie, error)) = self.client.reply() else { return };
            self.answer(cookie, error);
        }
    }

    fn goes_on(&self, enough: u64) -> bool {
        self.load.answered.load(Ordering::Relaxed) < enough
            && self.after_refusal.is_none_or(|left| left > 0)
    }

    fn flushes(&mut self) -> bool {
        self.load.durability == Durability::OnFlush && self.rng.chance(0.05)
    }

    /// Sends a change of a group that has none in flight and none refused; if there is no such group, ends the load.
    fn change(&mut self) -> std::io::Result<()> {
        let free = |group: &usize| {
            self.changing.values().all(|((busy, _), _)| busy != group)
                && !self.unsure.contains(group)
        };
        let free: Vec<_> = (self.connection..GROUPS).step_by(CONNECTIONS).filter(free).collect();
        if free.is_empty() {
            self.after_refusal = Some(0);
            return Ok(());
        }
        let group = free[self.rng.below(free.len() as u64) as usize];
        let begin = self.rng.below(GROUP_PAGES);
        let longest =
            if self.rng.chance(0.7) { 3.min(GROUP_PAGES - begin) } else { GROUP_PAGES - begin };
        let (first, pages) = (group as u64 * GROUP_PAGES + begin, 1 + self.rng.below(longest));
        let cookie = 1 + self.load.numbers.fetch_add(1, Ordering::Relaxed);
        let trims = self.rng.chance(0.1);
        let number = if trims { 0 } else { cookie };
        let position = self.load.recorder.position();
        let change = self.load.history().issue(first, pages, number, position);
        let behind = self.after_refusal.is_some();
        self.after_refusal = self.after_refusal.map(|left| left.saturating_sub(1));
        self.changing.insert(cookie, (change, behind));
        if trims {
            return self.client.send(Command::Trim, cookie, first, pages as usize, &[]);
        }
        let bytes: Vec<u8> =
            (first..first + pages).flat_map(|page| content(page, number)).collect();
        self.client.send(Command::Write, cookie, first, pages as usize, &bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.flushing = Some(self.load.history().tick());
        self.client.send(Command::Flush, FLUSH, 0, 0, &[])
    }

    fn answer(&mut self, cookie: u64, error: u32) {
        let position = self.load.recorder.position();
        if error != 0 {
            self.load.refused.fetch_add(1, Ordering::Relaxed);
            self.after_refusal.get_or_insert(REFUSED_MAX);
        }
        if cookie == FLUSH {
            let tick = self.flushing.take().expect("a flush of mine");
            if error == 0 {
                self.load.history().flushed(tick, position);
            }
            return;
        }
        let (change, behind) = self.changing.remove(&cookie).expect("a change of mine");
        if error != 0 {
            self.unsure.insert(change.0);
        } else {
            self.load.history().acknowledge(change, position);
            self.load.answered.fetch_add(1, Ordering::Relaxed);
            self.load.done_behind_a_refusal.fetch_add(u64::from(behind), Ordering::Relaxed);
        }
    }
}
