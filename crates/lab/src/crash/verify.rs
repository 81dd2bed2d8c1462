//! Whether what a device holds after a cut is something that its promise allows.
use std::hash::{Hash, Hasher};
use tantalum_base::fast::IntHasher;
use tantalum_base::{Durability, FastSet, PageNo, Payload};

use super::command::{Contents, Effect};
use super::history::{Entry, History};
use super::life::Violation;

/// States looked at before the search gives up and says so.
const STATES_MAX: usize = 300_000;

/// Compares what every page was found to hold with what `history` allows; the contents.
pub(super) fn check<P: Payload>(
    pages: &[P],
    history: &History<P>,
    durability: Durability,
) -> Result<Contents, Violation> {
    let mut found = Contents::empty(pages.len() as u64);
    for (page, seen) in pages.iter().enumerate() {
        found.0[page] = history
            .identify(seen)
            .ok_or_else(|| Violation(format!("page {page} holds what nobody wrote: {seen:?}")))?;
    }
    match durability {
        Durability::Volatile => check_pages(&found, history)?,
        Durability::OnAck | Durability::OnFlush => {
            Search::new(&found, history, durability).run()?
        }
    }
    Ok(found)
}

/// A volatile device: page by page, what was flushed and not written since, or anything that was
/// written since.
fn check_pages<P: Payload>(found: &Contents, history: &History<P>) -> Result<(), Violation> {
    for (page, seen) in (0..).map(PageNo).zip(&found.0) {
        let here: Vec<&Entry> =
            history.entries.iter().filter(|entry| entry.effect.on(page).is_some()).collect();
        let replaced_after = |time: u64| {
            here.iter().any(|entry| {
                entry.issued > time && history.must_survive(entry, Durability::Volatile)
            })
        };
        let mut allowed = Vec::new();
        if !replaced_after(0) {
            allowed.push(history.baseline.get(page));
        }
        for entry in &here {
            if !entry.acked.is_some_and(replaced_after) {
                allowed.extend(entry.effect.on(page).flatten());
            }
        }
        if !allowed.contains(seen) {
            return Err(Violation(format!(
                "page {page} holds content {seen}, which is none of {allowed:?}"
            )));
        }
    }
    Ok(())
}

/// The search for an order of the commands, each whole, that explains what was found: one that
/// keeps every client's order, that has every command behind those acknowledged before it was
/// issued, and that ends behind all that must have survived. What else was issued may be missing,
/// with all that comes later in that order.
struct Search<'a> {
    found: &'a Contents,
    baseline: &'a Contents,
    /// The commands that change something, a client's in its order.
    clients: Vec<Vec<&'a Entry>>,
    /// How many of each client's commands must be there.
    least: Vec<usize>,
    visited: FastSet<u64>,
    states: usize,
    /// The fewest pages that differ where all that must be there is, and the first of them.
    nearest: Option<(usize, PageNo, u64)>,
}

impl<'a> Search<'a> {
    fn new<P: Payload>(
        found: &'a Contents,
        history: &'a History<P>,
        durability: Durability,
    ) -> Self {
        let changes =
            |entry: &&Entry| !matches!(&entry.effect, Effect::Set(pages) if pages.is_empty());
        let mut numbers: Vec<u32> = history.entries.iter().map(|entry| entry.client).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let clients: Vec<Vec<&Entry>> = numbers
            .iter()
            .map(|number| {
                let own = history.entries.iter().filter(|entry| entry.client == *number);
                own.filter(changes).collect()
            })
            .collect();
        let least = clients
            .iter()
            .map(|own: &Vec<&Entry>| {
                let must = own.iter().rposition(|entry| history.must_survive(entry, durability));
                must.map_or(0, |last| last + 1)
            })
            .collect();
        let baseline = &history.baseline;
        Search {
            found,
            baseline,
            clients,
            least,
            visited: FastSet::default(),
            states: 0,
            nearest: None,
        }
    }

    fn run(mut self) -> Result<(), Violation> {
        let mut places = vec![0; self.clients.len()];
        if self.explains(&mut places, self.baseline.clone()) {
            return Ok(());
        }
        if self.states > STATES_MAX {
            return Err(Violation(format!(
                "no order of the commands was found that explains the contents, in {STATES_MAX} \
                 states; the load is too wide to be checked"
            )));
        }
        Err(self.violation())
    }

    /// Whether `contents`, reached with so many commands of each client, is what was found or can
    /// become it.
    fn explains(&mut self, places: &mut Vec<usize>, contents: Contents) -> bool {
        self.states += 1;
        if self.states > STATES_MAX || !self.visited.insert(digest(places, &contents)) {
            return false;
        }
        if places.iter().zip(&self.least).all(|(place, least)| place >= least) {
            let differ = contents.0.iter().zip(&self.found.0).enumerate();
            let mut differ = differ.filter(|(_, (expected, seen))| expected != seen);
            let Some((page, (expected, _))) = differ.next() else { return true };
            let count = 1 + differ.count();
            if self.nearest.is_none_or(|(nearest, ..)| count < nearest) {
                self.nearest = Some((count, PageNo(page as u64), *expected));
            }
        }
        // The order of acknowledgement first: it mostly explains all.
        let mut next: Vec<usize> =
            (0..places.len()).filter(|at| self.may_be_next(places, *at)).collect();
        next.sort_by_key(|at| self.clients[*at][places[*at]].acked.unwrap_or(u64::MAX));
        for at in next {
            let mut then = contents.clone();
            then.apply(&self.clients[at][places[at]].effect);
            places[at] += 1;
            let explained = self.explains(places, then);
            places[at] -= 1;
            if explained {
                return true;
            }
        }
        false
    }

    /// Whether the next command of client `at` may come before all others that are left.
    fn may_be_next(&self, places: &[usize], at: usize) -> bool {
        let Some(entry) = self.clients[at].get(places[at]) else { return false };
        // A client's next command is acknowledged before its later ones.
        let others = self.clients.iter().zip(places);
        let mut firsts = others.filter_map(|(own, place)| own.get(*place));
        !firsts.any(|other| other.acked.is_some_and(|acked| acked < entry.issued))
    }

    fn violation(&self) -> Violation {
        let issued: usize = self.clients.iter().map(Vec::len).sum();
        let must: usize = self.least.iter().sum();
        let Some((count, page, expected)) = self.nearest else {
            return Violation(format!(
                "no order of the {issued} commands is possible in which {must} are there"
            ));
        };
        let seen = self.found.get(page);
        let mut writers = self.clients.iter().flatten().filter(
            |entry| matches!(entry.effect.on(page), Some(content) if content == Some(seen)),
        );
        let writer = writers.next().map_or(String::new(), |entry| format!(" of {:?}", entry.label));
        Violation(format!(
            "no order of the {issued} commands explains the contents, of which {must} must be \
             there; nearest: {count} pages differ, page {page} holds content {seen}{writer} and \
             should hold {expected}"
        ))
    }
}

fn digest(places: &[usize], contents: &Contents) -> u64 {
    let mut hasher = IntHasher::default();
    places.hash(&mut hasher);
    contents.0.hash(&mut hasher);
    hasher.finish()
}
