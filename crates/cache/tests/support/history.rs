//! The writes, their times, and the contents that may therefore be read.
use std::collections::BTreeMap;
use tantalum_base::{PAGE_BYTES, PageBuf};

/// One change of a client: the content of its pages after it, as the number of the write that the
/// content is from (0: zeros).
#[derive(Clone, Debug)]
pub struct Change {
    pub pages: BTreeMap<u64, u64>,
    /// The times at which it was issued and acknowledged.
    pub issued: u64,
    pub acknowledged: Option<u64>,
    /// Whether the acknowledgement promised that it is safe without the flash.
    pub safe: bool,
}

/// The changes of each client, which has pages of its own and one change in flight at a time.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub clients: Vec<Vec<Change>>,
    pub clock: u64,
    pub writes: u64,
    pub mode_changes: u64,
}

/// A page's content after write `count`.
pub fn content(page: u64, count: u64) -> PageBuf {
    let mut bytes = [0; PAGE_BYTES];
    if count > 0 {
        bytes.fill(count as u8);
        bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
        bytes[8..16].copy_from_slice(&count.to_le_bytes());
    }
    PageBuf::copy_from(&bytes)
}

/// The write that a page has its content from; `None` if no write of this page has this content.
pub fn count_of(page: u64, bytes: &[u8]) -> Option<u64> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Some(0);
    }
    let count = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
    (*bytes == content(page, count)[..]).then_some(count)
}

impl History {
    pub fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The last change of `client` is acknowledged. If it `waits`, this promises that it is safe
    /// without the flash. It was issued after `mode_changes` changes of the mode.
    pub fn acknowledge(&mut self, client: usize, waits: bool, mode_changes: u64) {
        let now = self.tick();
        let is_same_mode = self.mode_changes == mode_changes;
        if let Some(change) = self.clients[client].last_mut() {
            change.acknowledged = Some(now);
            // During a change of the mode, neither the promise of the old mode nor that of the new
            // one holds.
            change.safe = waits && is_same_mode;
        }
    }

    /// The content of each page of `client` after its first `changes` changes.
    fn state(&self, client: usize, changes: usize) -> BTreeMap<u64, u64> {
        let mut state = BTreeMap::new();
        for change in &self.clients[client][..changes] {
            state.extend(change.pages.iter().map(|(page, count)| (*page, *count)));
        }
        state
    }

    /// The maximum number of changes of each client that are visible in `image`, which returns for
    /// each page the write that it is from. Must be a prefix of each client's changes, and of all
    /// changes.
    pub fn prefix(&self, image: impl Fn(u64) -> Option<u64>) -> Result<Vec<usize>, String> {
        let (mut most, mut least) = (Vec::new(), Vec::new());
        for (client, changes) in self.clients.iter().enumerate() {
            let pages = self.state(client, changes.len());
            let fits = |changes: &usize| {
                let state = self.state(client, *changes);
                pages.keys().all(|page| image(*page) == Some(state.get(page).copied().unwrap_or(0)))
            };
            let fitting: Vec<usize> = (0..=changes.len()).filter(fits).collect();
            let (Some(first), Some(last)) = (fitting.first(), fitting.last()) else {
                let found: Vec<_> = pages
                    .iter()
                    .filter(|(page, count)| image(**page) != Some(**count))
                    .map(|(page, count)| format!("{page}: {:?}, last {count}", image(*page)))
                    .collect();
                return Err(format!("client {client} sees no prefix of its changes: {found:?}"));
            };
            least.push(*first);
            most.push(*last);
        }
        self.is_closed(&least, &most)?;
        Ok(most)
    }

    /// No visible change was issued after the acknowledgement of an invisible one. A change without
    /// effect, such as a trim of zeros, may count as visible or not.
    fn is_closed(&self, least: &[usize], most: &[usize]) -> Result<(), String> {
        for (client, count) in most.iter().enumerate() {
            let Some(missing) = self.clients[client].get(*count) else { continue };
            let Some(acknowledged) = missing.acknowledged else { continue };
            for (other, count) in least.iter().enumerate() {
                let last = count.checked_sub(1).map(|last| &self.clients[other][last]);
                if last.is_some_and(|last| last.issued > acknowledged) {
                    return Err(format!(
                        "client {other} sees a change that was issued after client {client}'s was \
                         acknowledged, which is missing"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Drops the changes that are not visible: they never happened.
    pub fn settle(&mut self, seen: &[usize]) {
        for (changes, count) in self.clients.iter_mut().zip(seen) {
            changes.truncate(*count);
            let now = self.clock;
            changes.iter_mut().for_each(|change| _ = change.acknowledged.get_or_insert(now));
        }
    }

    /// Number of acknowledged changes of each client.
    pub fn acknowledged(&self) -> Vec<usize> {
        let acknowledged =
            |changes: &Vec<Change>| changes.iter().filter(|it| it.acknowledged.is_some()).count();
        self.clients.iter().map(acknowledged).collect()
    }

    /// Everything acknowledged is safe without the flash from now on.
    pub fn all_are_safe(&mut self) {
        let changes = self.clients.iter_mut().flatten();
        changes
            .filter(|change| change.acknowledged.is_some())
            .for_each(|change| change.safe = true);
    }

    /// Number of changes of each client that must be present without the flash.
    pub fn safe(&self) -> Vec<usize> {
        let safe =
            |changes: &Vec<Change>| changes.iter().rposition(|it| it.safe).map_or(0, |at| at + 1);
        self.clients.iter().map(safe).collect()
    }

    /// Whether `page` of `client` may be from write `found` on the home. The home has the changes
    /// up to the last safe one, and possibly later ones, some of which the flash has lost: no other
    /// write of the page has a larger number.
    pub fn may_be_at_home(&self, client: usize, page: u64, found: u64) -> bool {
        let safe = self.safe()[client];
        let at_least = self.state(client, safe).get(&page).copied().unwrap_or(0);
        let later =
            self.clients[client][safe..].iter().filter_map(|change| change.pages.get(&page));
        let newest = self.clients[client][..safe].iter().filter_map(|it| it.pages.values().max());
        found == at_least
            || found > newest.copied().max().unwrap_or(0)
            || later.copied().any(|count| count == found)
    }

    /// The write that `page` of `client` has its content from.
    pub fn last(&self, client: usize, page: u64) -> u64 {
        let changes = self.clients[client].iter().rev();
        changes.filter_map(|change| change.pages.get(&page)).next().copied().unwrap_or(0)
    }
}
