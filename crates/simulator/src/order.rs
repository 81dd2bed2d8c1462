//! Whether some order of commands explains the contents that pages were seen to have.
use tantalum_base::PageNo;

use super::backwards::Search;
use super::command::{Contents, Effect};
use super::history::Issued;

/// The facts that an order must explain: each command is atomic, every client's commands are in its
/// own order, every command comes after those acknowledged before it was issued, and all required
/// commands are there. Other issued commands may be missing, together with all that come later in
/// that order.
pub(super) struct Orders<'a> {
    pub(super) baseline: &'a Contents,
    /// By page; `None` if the content is unknown.
    pub(super) seen: Vec<Option<u64>>,
    /// The commands that change something, for each client in its order.
    pub(super) clients: Vec<Vec<&'a Issued>>,
    /// Number of each client's commands that must be there.
    pub(super) least: Vec<usize>,
}

/// The result of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is such an order.
    Explained,
    /// There is none; the reason, in words.
    Impossible(String),
    /// The search was given up after too many states.
    Undecided,
}

impl<'a> Orders<'a> {
    /// The orders of `entries`, starting from `baseline`, that contain all commands that `must`
    /// selects.
    pub(super) fn new(
        baseline: &'a Contents,
        entries: &'a [Issued],
        must: impl Fn(&Issued) -> bool,
        seen: Vec<Option<u64>>,
    ) -> Self {
        let changes =
            |entry: &&Issued| !matches!(&entry.effect, Effect::Set(pages) if pages.is_empty());
        let mut numbers: Vec<u32> = entries.iter().map(|entry| entry.client).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut clients: Vec<Vec<&Issued>> = vec![Vec::new(); numbers.len()];
        for entry in entries.iter().filter(changes) {
            let at = numbers.partition_point(|number| *number < entry.client);
            clients[at].push(entry);
        }
        // If a command must be there, so must all commands that were acknowledged before it was
        // issued.
        let latest = clients.iter().flatten().filter(|entry| must(entry));
        let latest = latest.map(|entry| entry.issued).max().unwrap_or(0);
        let must = |entry: &Issued| must(entry) || entry.acked.is_some_and(|acked| acked < latest);
        let least = clients.iter().map(|own| {
            let last = own.iter().rposition(|entry| must(entry));
            last.map_or(0, |last| last + 1)
        });
        let least = least.collect();
        Orders { baseline, seen, clients, least }
    }

    /// Searches, visiting at most `states_max` states.
    pub(super) fn search(&self, states_max: usize) -> Answer {
        let mut nearest = None;
        if self.is_order_of_acknowledgement(&mut nearest) {
            return Answer::Explained;
        }
        match Search::new(self, states_max).run() {
            Some(true) => Answer::Explained,
            Some(false) => Answer::Impossible(self.why(nearest)),
            None => Answer::Undecided,
        }
    }

    /// Whether the commands in the order of their acknowledgements, up to one of them, explain
    /// everything; usually they do. `nearest` is the state in which the fewest pages differ.
    fn is_order_of_acknowledgement(&self, nearest: &mut Option<Nearest>) -> bool {
        let mut order: Vec<(u64, u64, usize, usize)> = Vec::new();
        for (client, own) in self.clients.iter().enumerate() {
            for (at, entry) in own.iter().enumerate() {
                let acked = entry.acked.unwrap_or(u64::MAX);
                order.push((acked, entry.issued, client, at));
            }
        }
        order.sort_unstable();
        let mut left: usize = self.least.iter().sum();
        let mut contents = self.baseline.clone();
        let mut places = vec![0; self.clients.len()];
        for next in 0..=order.len() {
            if left == 0 {
                let differing = Nearest::between(&self.seen, &contents);
                let Some(differing) = differing else { return true };
                if nearest.as_ref().is_none_or(|nearest| differing.count < nearest.count) {
                    *nearest = Some(differing);
                }
            }
            let Some(&(_, _, client, at)) = order.get(next) else { return false };
            // A client continued without an answer, so this is not the client's own order.
            if places[client] != at {
                return false;
            }
            places[client] += 1;
            left -= usize::from(at < self.least[client]);
            contents.apply(&self.clients[client][at].effect);
        }
        false
    }

    fn why(&self, nearest: Option<Nearest>) -> String {
        let issued: usize = self.clients.iter().map(Vec::len).sum();
        let must: usize = self.least.iter().sum();
        let which = format!("no order of the {issued} commands explains");
        let Some(Nearest { count, page, held, expected }) = nearest else {
            return format!("{which} the contents, of which {must} must be there");
        };
        let writes_it = |entry: &&&Issued| entry.effect.on(page) == Some(Some(held));
        let writer = self.clients.iter().flatten().find(writes_it);
        let writer = writer.map_or(String::new(), |entry| format!(" of {:?}", entry.label));
        format!(
            "{which} the contents, of which {must} must be there; nearest, as they were \
             acknowledged: {count} pages differ, page {page} holds content {held}{writer} and should \
             hold {expected}"
        )
    }
}

/// The difference between some order and the contents seen.
struct Nearest {
    /// Number of pages that differ, and the first of them.
    count: usize,
    page: PageNo,
    held: u64,
    expected: u64,
}

impl Nearest {
    /// `None` if nothing differs.
    fn between(seen: &[Option<u64>], contents: &Contents) -> Option<Nearest> {
        let mut differ = seen.iter().zip(&contents.0).zip(0..).filter_map(|((seen, is), page)| {
            seen.filter(|seen| seen != is).map(|seen| (PageNo(page), seen, *is))
        });
        let (page, held, expected) = differ.next()?;
        Some(Nearest { count: 1 + differ.count(), page, held, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::{PageRange, Rng};

    const PAGES: u64 = 4;

    fn entry(client: u32, effect: Effect, issued: u64, acked: Option<u64>) -> Issued {
        Issued { client, effect, issued, acked, is_durable: false, label: String::new() }
    }

    fn set(pages: &[(u64, u64)]) -> Effect {
        Effect::Set(pages.iter().map(|(page, content)| (PageNo(*page), *content)).collect())
    }

    fn share(pairs: &[(u64, u64)]) -> Effect {
        Effect::Share(pairs.iter().map(|(to, from)| (PageNo(*to), PageNo(*from))).collect())
    }

    fn all_acked(entry: &Issued) -> bool {
        entry.acked.is_some()
    }

    /// All contents that some order results in, found by trying all orders.
    fn every(
        entries: &[Issued],
        must: &dyn Fn(&Issued) -> bool,
        baseline: &Contents,
    ) -> Vec<Contents> {
        fn go_on(
            entries: &[Issued],
            must: &dyn Fn(&Issued) -> bool,
            there: &mut Vec<bool>,
            contents: &Contents,
            found: &mut Vec<Contents>,
        ) {
            let mut left = entries.iter().zip(there.iter()).filter(|(_, there)| !**there);
            if !left.any(|(entry, _)| must(entry)) && !found.contains(contents) {
                found.push(contents.clone());
            }
            for next in 0..entries.len() {
                let is_before = |(at, earlier): (usize, &Issued)| {
                    let own = earlier.client == entries[next].client && at < next;
                    own || earlier.acked.is_some_and(|acked| acked < entries[next].issued)
                };
                let missing = entries.iter().enumerate().filter(|(at, _)| !there[*at]);
                if !there[next] && !missing.into_iter().any(is_before) {
                    let mut then = contents.clone();
                    then.apply(&entries[next].effect);
                    there[next] = true;
                    go_on(entries, must, there, &then, found);
                    there[next] = false;
                }
            }
        }
        let mut found = Vec::new();
        go_on(entries, must, &mut vec![false; entries.len()], baseline, &mut found);
        found
    }

    /// A few commands of up to three clients, some of them never acknowledged.
    fn entries(rng: &mut Rng) -> Vec<Issued> {
        let mut entries: Vec<Issued> = Vec::new();
        let (mut clock, mut content) = (0, 10);
        let mut busy: [Option<usize>; 3] = [None; 3];
        while entries.len() < 6 || rng.chance(0.5) {
            clock += 1;
            let client = rng.below(3) as usize;
            match busy[client].take() {
                // One in eight continues without an answer, as after an error.
                Some(at) if rng.chance(0.88) => entries[at].acked = Some(clock),
                Some(_) => {}
                None if entries.len() < 6 => {
                    busy[client] = Some(entries.len());
                    let effect = effect(rng, &mut content);
                    entries.push(entry(client as u32, effect, clock, None));
                }
                None => {}
            }
        }
        entries
    }

    fn effect(rng: &mut Rng, content: &mut u64) -> Effect {
        match rng.below(10) {
            0 | 1 => {
                let first = rng.below(PAGES);
                Effect::Clear(PageRange::new(PageNo(first), 1 + rng.below(PAGES - first)))
            }
            2..=5 => {
                let to = rng.below(PAGES);
                let from = (to + 1 + rng.below(PAGES - 1)) % PAGES;
                let other = (0..PAGES).find(|page| *page != to && *page != from).unwrap_or(0);
                // The second reads the content that the first replaces, from before that.
                if rng.chance(0.3) {
                    share(&[(to, from), (other, to)])
                } else {
                    share(&[(to, from)])
                }
            }
            _ => {
                let pages: Vec<(u64, u64)> = (0..1 + rng.below(3))
                    .map(|_| {
                        *content += 1;
                        (rng.below(PAGES), *content)
                    })
                    .collect();
                set(&pages)
            }
        }
    }

    #[test]
    fn the_search_finds_what_trying_all_orders_finds() {
        let mut rng = Rng::new(1);
        let (mut explained, mut impossible) = (0, 0);
        for _ in 0..3000 {
            let entries = entries(&mut rng);
            let baseline = Contents((0..PAGES).map(|page| rng.below(2) * (page + 1)).collect());
            // As with promises: everything that was acknowledged, or everything up to some time.
            let until = rng.below(16);
            let all = rng.chance(0.5);
            let must = move |entry: &Issued| entry.acked.is_some_and(|acked| all || acked < until);
            let allowed = every(&entries, &must, &baseline);
            for _ in 0..4 {
                let mut seen: Vec<Option<u64>> = allowed[rng.below(allowed.len() as u64) as usize]
                    .0
                    .iter()
                    .copied()
                    .map(Some)
                    .collect();
                // Contents that were seen only in part, or belong to several orders.
                for (page, seen) in seen.iter_mut().enumerate() {
                    match rng.below(6) {
                        0 => *seen = None,
                        1 => {
                            let other = rng.below(allowed.len() as u64) as usize;
                            *seen = Some(allowed[other].0[page]);
                        }
                        2 if rng.chance(0.3) => *seen = Some(rng.below(18)),
                        _ => {}
                    }
                }
                let fits = |contents: &Contents| {
                    seen.iter()
                        .zip(&contents.0)
                        .all(|(seen, is)| seen.is_none_or(|seen| seen == *is))
                };
                let is_allowed = allowed.iter().any(fits);
                let orders = Orders::new(&baseline, &entries, must, seen.clone());
                match orders.search(100_000) {
                    Answer::Explained => explained += 1,
                    Answer::Impossible(_) => impossible += 1,
                    Answer::Undecided => panic!("so few commands are decided"),
                }
                let found = orders.search(100_000) == Answer::Explained;
                let texts: Vec<_> = entries
                    .iter()
                    .map(|entry| (entry.client, &entry.effect, entry.issued, entry.acked))
                    .collect();
                assert_eq!(found, is_allowed, "{baseline:?} {seen:?} {texts:?}");
            }
        }
        assert!(explained > 2000 && impossible > 2000, "{explained} and {impossible}");
    }

    #[test]
    fn a_search_that_is_given_up_is_undecided() {
        // It is unknown which share came last, and the order of acknowledgements does not explain
        // it.
        let entries = [
            entry(0, set(&[(0, 11)]), 1, Some(5)),
            entry(1, share(&[(1, 0)]), 2, Some(6)),
            entry(2, share(&[(2, 1)]), 3, Some(7)),
        ];
        let baseline = Contents(vec![1, 2, 3, 4]);
        let search = |seen: [u64; 4], states_max| {
            let seen = seen.into_iter().map(Some).collect();
            Orders::new(&baseline, &entries, all_acked, seen).search(states_max)
        };
        assert_eq!(search([11, 11, 11, 4], 0), Answer::Explained, "as they were acknowledged");
        assert_eq!(search([11, 1, 2, 4], 0), Answer::Undecided);
        assert_eq!(search([11, 1, 2, 4], 100), Answer::Explained);
        assert!(matches!(search([11, 2, 2, 4], 100), Answer::Impossible(_)));
    }

    /// Four clients whose commands all overlap, on few pages that get contents from each other: too
    /// many orders to try all.
    #[test]
    fn many_commands_at_once_are_decided() {
        let mut rng = Rng::new(7);
        let mut content = 10;
        for round in 0..20 {
            let entries: Vec<Issued> = (0..60)
                .map(|at| {
                    // Each command of a client overlaps two or three of every other's.
                    let (client, turn) = (at % 4, at / 4);
                    let issued = u64::from(turn * 20 + client + 1);
                    let effect = effect(&mut rng, &mut content);
                    entry(client, effect, issued, Some(issued + 15 + rng.below(3)))
                })
                .collect();
            let baseline = Contents(vec![1, 2, 3, 4]);
            // Some order of the commands that overlap at each turn.
            let mut contents = baseline.clone();
            for turn in entries.chunks(4) {
                let mut order = [0, 1, 2, 3];
                order.swap(rng.below(4) as usize, rng.below(4) as usize);
                order.into_iter().for_each(|at| contents.apply(&turn[at].effect));
            }
            let seen = contents.0.iter().copied().map(Some).collect();
            let orders = Orders::new(&baseline, &entries, all_acked, seen);
            assert_eq!(orders.search(10_000), Answer::Explained, "round {round}");
        }
    }
}
