//! Clients that write over NBD until their server is killed, and their knowledge afterwards.
use super::nbd::{Client, Command, PAGE_BYTES};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tantalum_base::Rng;

/// Pages of a group, which contains each change: few enough for an atomic write.
pub const GROUP_PAGES: u64 = 8;

/// The parameters of the clients.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of the volume's pages that they change.
    pub pages: u64,
    /// Number of connections; each has separate groups of pages.
    pub connections: u64,
    /// Requests of a connection in flight at once, all of them in different groups.
    pub in_flight: usize,
}

/// A write, or a trim (`number` 0), of a few pages of one group. No two writes have the same number.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub first: u64,
    pub pages: u64,
    pub number: u64,
    /// The moment before it was sent, by the clock of all connections.
    pub issued: u64,
    /// The moment after its reply arrived.
    pub acknowledged: Option<u64>,
}

impl Change {
    pub fn pages(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.pages
    }
}

/// State that all connections share.
#[derive(Default)]
pub struct Pulse {
    clock: AtomicU64,
    acks: AtomicU64,
}

impl Pulse {
    /// The next moment.
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// A pulse that continues from `clock`, with nothing acknowledged.
    pub fn from(clock: u64) -> Pulse {
        Pulse { clock: AtomicU64::new(clock), ..Pulse::default() }
    }

    pub fn acknowledged(&self) {
        self.acks.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until `acks` requests are acknowledged.
    pub fn wait_for(&self, acks: u64) {
        #[expect(clippy::disallowed_methods, reason = "waits for threads")]
        while self.acks.load(Ordering::Relaxed) < acks {
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
    }
}

/// The content of a page after write `number`; 0 means zeros, as after a trim.
pub fn content(page: u64, number: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES];
    if number > 0 {
        Rng::new(number ^ (page << 40)).fill(&mut bytes);
        bytes[..8].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// The number of the write that a page's content is from; the page must be whole.
pub fn number_of(page: u64, bytes: &[u8]) -> u64 {
    let number = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    assert!(bytes == content(page, number), "page {page} holds what was never written");
    number
}

/// The content of `pages` pages of a served volume from `first` on, as write numbers.
pub fn numbers(client: &mut Client, first: u64, pages: u64) -> Vec<u64> {
    let bytes = client.read(first, pages as usize).unwrap_or_else(|error| panic!("error {error}"));
    let pages = (first..).zip(bytes.chunks(PAGE_BYTES));
    pages.map(|(page, bytes)| number_of(page, bytes)).collect()
}

/// Writes and trims groups whose number is `connection` modulo the number of connections, several requests at a time,
/// until the server is gone. Returns all changes that were sent; those of a page are in their order.
fn client(load: Load, socket: &Path, connection: u64, seed: u64, pulse: &Pulse) -> Vec<Change> {
    let mut rng = Rng::split(seed, &format!("connection {connection}"));
    let mut changes: Vec<Change> = Vec::new();
    // The acknowledgements of the others may have led to the kill before this client connects.
    let Ok(mut client) = Client::connect(socket) else { return changes };
    let mut number = (seed << 32) | (connection << 24);
    // Index in `changes` of each request in flight, by its number.
    let mut in_flight: BTreeMap<u64, usize> = BTreeMap::new();
    loop {
        while in_flight.len() < load.in_flight {
            let groups = load.pages / GROUP_PAGES / load.connections;
            let group = rng.below(groups) * load.connections + connection;
            let first = group * GROUP_PAGES + rng.below(GROUP_PAGES);
            let pages = 1 + rng.below((group + 1) * GROUP_PAGES - first);
            if in_flight.values().any(|at| changes[*at].first / GROUP_PAGES == group) {
                continue;
            }
            number += 1;
            let trims = rng.chance(0.1);
            let issued = pulse.tick();
            let change_number = if trims { 0 } else { number };
            let change = Change { first, pages, number: change_number, issued, acknowledged: None };
            in_flight.insert(number, changes.len());
            changes.push(change);
            let bytes: Vec<u8> = match trims {
                true => Vec::new(),
                false => change.pages().flat_map(|page| content(page, number)).collect(),
            };
            let command = if trims { Command::Trim } else { Command::Write };
            if client.send(command, number, first, pages as usize, &bytes).is_err() {
                return changes;
            }
        }
        let Ok((cookie, error)) = client.reply() else { return changes };
        assert_eq!(error, 0);
        let at = in_flight.remove(&cookie).expect("a request of mine");
        changes[at].acknowledged = Some(pulse.tick());
        pulse.acknowledged();
    }
}

/// Lets all connections of `load` write to the server at `socket` until `kill`, called meanwhile, has killed it.
/// Returns the changes of each connection.
pub fn write_and_kill(
    load: Load,
    socket: &Path,
    seed: u64,
    pulse: &Pulse,
    kill: impl FnOnce(),
) -> Vec<Vec<Change>> {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..load.connections)
            .map(|connection| scope.spawn(move || client(load, socket, connection, seed, pulse)))
            .collect();
        kill();
        clients.into_iter().map(|client| client.join().expect("it ends")).collect()
    })
}
