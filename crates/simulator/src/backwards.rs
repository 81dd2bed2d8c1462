//! The search for an order, backwards: starting from the contents that were seen, it removes the
//! command that came last, and computes the contents that the pages must have had before it. Contents
//! that a command overwrites do not matter any more, so states that differ only in their past are one
//! state. A command that cannot have been last, because some page has another content, is rejected at
//! once.
use std::hash::{Hash, Hasher};
use tantalum_base::fast::IntHasher;
use tantalum_base::{FastSet, PageNo};

use super::command::Effect;
use super::history::Issued;
use super::order::Orders;

/// The state of the search.
pub(super) struct Search<'a> {
    orders: &'a Orders<'a>,
    /// Number of each client's commands that remain, and how many of those must have taken effect.
    places: Vec<usize>,
    least: Vec<usize>,
    /// The content that each page must have had before the removed commands; `None` if any content will
    /// do.
    wanted: Vec<Option<u64>>,
    /// For each page, the number of remaining shares that read it, and that replace it.
    taken: Vec<u32>,
    replaced: Vec<u32>,
    visited: FastSet<u64>,
    states: usize,
    states_max: usize,
}

/// The changes of removing a command, in order to undo them.
struct Undo {
    client: usize,
    wanted: Vec<(usize, Option<u64>)>,
    least: Option<Vec<usize>>,
}

/// The two possibilities for a command that comes last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It took effect, last.
    Keep,
    /// It is missing.
    Drop,
}

impl<'a> Search<'a> {
    pub(super) fn new(orders: &'a Orders<'a>, states_max: usize) -> Self {
        let pages = orders.seen.len();
        let mut search = Search {
            orders,
            places: orders.clients.iter().map(Vec::len).collect(),
            least: orders.least.clone(),
            wanted: orders.seen.clone(),
            taken: vec![0; pages],
            replaced: vec![0; pages],
            visited: FastSet::default(),
            states: 0,
            states_max,
        };
        orders.clients.iter().flatten().for_each(|entry| search.count_share(&entry.effect, 1));
        search
    }

    /// Whether there is such an order; `None` if too many states were visited.
    pub(super) fn run(mut self) -> Option<bool> {
        if self.is_possible() && self.explains() {
            return Some(true);
        }
        (self.states <= self.states_max).then_some(false)
    }

    fn count_share(&mut self, effect: &Effect, by: i32) {
        let Effect::Share(pairs) = effect else { return };
        for (to, from) in pairs {
            let (to, from) = (&mut self.replaced[to.index()], &mut self.taken[from.index()]);
            *to = to.wrapping_add_signed(by);
            *from = from.wrapping_add_signed(by);
        }
    }

    /// Whether every required content was there at the start, or was written at all.
    fn is_possible(&self) -> bool {
        let wrote = |content: u64| {
            let sets = self.orders.clients.iter().flatten();
            sets.filter_map(|entry| match &entry.effect {
                Effect::Set(pages) => Some(pages),
                Effect::Clear(_) | Effect::Share(_) => None,
            })
            .any(|pages| pages.iter().any(|(_, written)| *written == content))
        };
        self.wanted
            .iter()
            .flatten()
            .all(|wanted| *wanted == 0 || self.orders.baseline.0.contains(wanted) || wrote(*wanted))
    }

    /// Whether some order of the remaining commands results in the required contents.
    fn explains(&mut self) -> bool {
        let mut undone = Vec::new();
        let explained = self.explains_behind(&mut undone);
        undone.into_iter().rev().for_each(|undo| self.take_back(undo));
        explained
    }

    fn explains_behind(&mut self, undone: &mut Vec<Undo>) -> bool {
        // First remove all commands that leave no choice.
        loop {
            if self.wanted.iter().all(Option::is_none) {
                return true;
            }
            let last = self.last();
            let Some((client, way)) =
                last.iter().find_map(|client| Some((*client, self.only_way(*client)?)))
            else {
                break;
            };
            let Some(undo) = self.take_away(client, way) else { return false };
            undone.push(undo);
        }
        if self.places.iter().all(|left| *left == 0) {
            let mut held = self.wanted.iter().zip(&self.orders.baseline.0);
            return held.all(|(wanted, held)| wanted.is_none_or(|wanted| wanted == *held));
        }
        self.states += 1;
        if self.states > self.states_max || !self.visited.insert(self.digest()) {
            return false;
        }
        let last = self.last();
        last.into_iter().any(|client| self.explains_with(client))
    }

    fn explains_with(&mut self, client: usize) -> bool {
        let is_wanted = self.is_wanted(&self.entry(client).effect);
        let ways = if is_wanted { [Way::Keep, Way::Drop] } else { [Way::Drop, Way::Keep] };
        ways.into_iter().any(|way| {
            let Some(undo) = self.take_away(client, way) else { return false };
            let explained = self.explains();
            self.take_back(undo);
            explained
        })
    }

    /// The last remaining command of `client`, which must have one.
    fn entry(&self, client: usize) -> &'a Issued {
        self.orders.clients[client][self.places[client] - 1]
    }

    /// The clients whose last command may have been the last of all: first those not acknowledged, then
    /// the latest acknowledged, as it was usually one of them.
    fn last(&self) -> Vec<usize> {
        let left = |client: &usize| self.places[*client] > 0;
        let clients = (0..self.places.len()).filter(left);
        let issued = clients.clone().map(|client| self.entry(client).issued).max().unwrap_or(0);
        let mut last: Vec<usize> =
            clients.filter(|at| self.entry(*at).acked.is_none_or(|acked| acked > issued)).collect();
        last.sort_by_key(|at| std::cmp::Reverse(self.entry(*at).acked.unwrap_or(u64::MAX)));
        last
    }

    /// Whether a page has the required content because of `effect`.
    fn is_wanted(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Set(pages) => {
                pages.iter().any(|(page, content)| self.wanted[page.index()] == Some(*content))
            }
            Effect::Clear(range) => range.iter().any(|page| self.wanted[page.index()] == Some(0)),
            Effect::Share(pairs) => pairs.iter().any(|(to, _)| self.wanted[to.index()].is_some()),
        }
    }

    /// The way to remove the last command of `client` without a choice, if there is one: if any
    /// order explains everything, so does one that ends this way.
    fn only_way(&self, client: usize) -> Option<Way> {
        let effect = &self.entry(client).effect;
        let is_free = self.places[client] > self.least[client];
        let unwanted = |page: PageNo| self.wanted[page.index()].is_none();
        let (taken, replaced) = (&self.taken, &self.replaced);
        let alone = |page: PageNo| taken[page.index()] == 0 && replaced[page.index()] == 0;
        match effect {
            Effect::Set(pages) => {
                // No other command writes these contents. If they are not required anywhere, commands
                // that read them add nothing that matters.
                let counts = self.counts(pages);
                if !counts && is_free {
                    return Some(Way::Drop);
                }
                let dead = !counts && pages.iter().all(|(page, _)| unwanted(*page));
                let direct = || {
                    let fits = |page: PageNo| {
                        self.wanted[page.index()]
                            .is_none_or(|wanted| effect.on(page) == Some(Some(wanted)))
                    };
                    pages.iter().all(|(page, _)| alone(*page) && fits(*page))
                };
                (dead || direct()).then_some(Way::Keep)
            }
            Effect::Clear(range) => {
                let counts = self.wanted.contains(&Some(0))
                    && range.iter().any(|page| taken[page.index()] > 0);
                let here = range.iter().any(|page| self.wanted[page.index()] == Some(0));
                if is_free {
                    return (!counts && !here).then_some(Way::Drop);
                }
                let dead = !counts && range.iter().all(unwanted);
                let fits =
                    |page: PageNo| self.wanted[page.index()].is_none_or(|wanted| wanted == 0);
                let direct = range.iter().all(|page| alone(page) && fits(page));
                (dead || direct).then_some(Way::Keep)
            }
            Effect::Share(pairs) => {
                let own = |page: PageNo| pairs.iter().filter(|(_, from)| *from == page).count();
                let dead = pairs
                    .iter()
                    .all(|(to, _)| unwanted(*to) && taken[to.index()] as usize == own(*to));
                dead.then_some(if is_free { Way::Drop } else { Way::Keep })
            }
        }
    }

    /// Whether any of these contents is required anywhere.
    fn counts(&self, pages: &[(PageNo, u64)]) -> bool {
        let least = pages.iter().map(|(_, content)| *content).min().unwrap_or(0);
        let most = pages.iter().map(|(_, content)| *content).max().unwrap_or(0);
        let wanted = self.wanted.iter().flatten().filter(|wanted| (least..=most).contains(*wanted));
        wanted.into_iter().any(|wanted| pages.iter().any(|(_, content)| content == wanted))
    }

    /// Removes the last command of `client`; `None`, with nothing changed, if that is not possible.
    fn take_away(&mut self, client: usize, way: Way) -> Option<Undo> {
        let entry = self.entry(client);
        let mut undo = Undo { client, wanted: Vec::new(), least: None };
        match way {
            Way::Drop if self.places[client] <= self.least[client] => return None,
            Way::Drop => {}
            Way::Keep if !self.want_before(&entry.effect, &mut undo.wanted) => {
                self.want_again(undo.wanted);
                return None;
            }
            Way::Keep => {}
        }
        // Its contents cannot come from another command.
        if let Effect::Set(pages) = &entry.effect
            && self.counts(pages)
        {
            self.want_again(undo.wanted);
            return None;
        }
        if way == Way::Keep && self.places[client] > self.least[client] {
            undo.least = Some(self.least.clone());
            self.need_before(client, entry);
        }
        self.places[client] -= 1;
        self.count_share(&entry.effect, -1);
        Some(undo)
    }

    /// `entry` took effect, so the commands that precede it must have, too.
    fn need_before(&mut self, client: usize, entry: &Issued) {
        for (at, own) in self.orders.clients.iter().enumerate() {
            let is_before =
                |earlier: &&Issued| earlier.acked.is_some_and(|acked| acked < entry.issued);
            let before = own[..self.places[at]].iter().rposition(is_before);
            self.least[at] = self.least[at].max(before.map_or(0, |last| last + 1));
        }
        self.least[client] = self.least[client].max(self.places[client] - 1);
    }

    /// Turns the contents required after `effect` into those required before it, and records the
    /// changes. Returns false if `effect` results in other contents.
    fn want_before(&mut self, effect: &Effect, changed: &mut Vec<(usize, Option<u64>)>) -> bool {
        let mut want = |wanted: &mut Vec<Option<u64>>, page: PageNo, content: Option<u64>| {
            let old = std::mem::replace(&mut wanted[page.index()], content);
            changed.push((page.index(), old));
            old
        };
        let wanted = &mut self.wanted;
        match effect {
            // If a page appears twice its last content counts; the first is not required.
            Effect::Set(pages) => pages.iter().rev().all(|(page, content)| {
                want(wanted, *page, None).is_none_or(|behind| behind == *content)
            }),
            Effect::Clear(range) => {
                range.iter().all(|page| want(wanted, page, None).is_none_or(|behind| behind == 0))
            }
            Effect::Share(pairs) => {
                // All pairs at once.
                let behind: Vec<Option<u64>> =
                    pairs.iter().map(|(to, _)| want(wanted, *to, None)).collect();
                pairs.iter().zip(behind).all(|((_, from), behind)| {
                    let here = wanted[from.index()];
                    want(wanted, *from, behind.or(here));
                    behind.is_none() || here.is_none() || here == behind
                })
            }
        }
    }

    fn want_again(&mut self, changed: Vec<(usize, Option<u64>)>) {
        for (page, old) in changed.into_iter().rev() {
            self.wanted[page] = old;
        }
    }

    fn take_back(&mut self, undo: Undo) {
        self.places[undo.client] += 1;
        let entry = self.entry(undo.client);
        self.count_share(&entry.effect, 1);
        self.want_again(undo.wanted);
        if let Some(least) = undo.least {
            self.least = least;
        }
    }

    fn digest(&self) -> u64 {
        let mut hasher = IntHasher::default();
        self.places.hash(&mut hasher);
        for (place, least) in self.places.iter().zip(&self.least) {
            place.min(least).hash(&mut hasher);
        }
        self.wanted.hash(&mut hasher);
        hasher.finish()
    }
}
