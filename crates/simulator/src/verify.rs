//! Whether the contents of a device after a cut, and the result of a read, are allowed by its promise.
use tantalum_base::{Durability, Error, ErrorKind, PageNo, PageRange, Payload, Result};

use super::command::{Contents, Effect};
use super::history::{History, Issued, LostTail, Survivors};
use super::life::Violation;
use super::order::{Answer, Orders};

/// Maximum number of states that one search for an order visits.
pub(super) const STATES_MAX: usize = 300_000;

/// The certainty of a check that found nothing wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sure {
    /// Everything that was seen is allowed.
    Right,
    /// No order was found that explains it, but not all were tried.
    Undecided,
}

/// Maximum number of guesses of lost contents in one check.
const GUESSES_MAX: u64 = 4096;

/// The deviations that a damaged medium excuses, as numbers of contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Excuses {
    /// Contents that are lost.
    pub(super) lost: Vec<u64>,
    /// The end of the log, if it may look like a cut.
    pub(super) tail: Option<LostTail>,
}

/// Compares the content found in every page (`None`: a read error because of damage) with the contents that `history` allows and
/// `excuses` excuse. Returns the contents. A search for an order visits at most `states_max` states.
pub(super) fn check<P: Payload>(
    pages: &[Option<P>],
    history: &History<P>,
    excuses: &Excuses,
    durability: Durability,
    states_max: usize,
) -> Result<(Contents, Sure), Violation> {
    let mut found = Contents::empty(pages.len() as u64);
    let out_of_order = out_of_order(history, excuses.tail.as_ref());
    // The pages with errors, with the contents that they may have lost, the newest first.
    let mut errors: Vec<(PageNo, Vec<u64>)> = Vec::new();
    for (page, seen) in (0..).map(PageNo).zip(pages) {
        let Some(seen) = seen else {
            let lost = excuses.lost.iter().rev().copied();
            let may: Vec<u64> = lost.filter(|number| history.may_hold(page, *number)).collect();
            // The page may have an older content again, and that may be lost as well.
            let any_lost = excuses.lost.last().filter(|_| out_of_order.contains(&page));
            match any_lost {
                Some(lost) => found.0[page.index()] = *may.first().unwrap_or(lost),
                None if may.is_empty() => {
                    let what = "cannot be read, and nothing that it may hold is lost";
                    return Err(Violation(format!("page {page} {what}")));
                }
                None => errors.push((page, may)),
            }
            continue;
        };
        found.0[page.index()] = history
            .identify(seen)
            .ok_or_else(|| Violation(format!("page {page} holds what nobody wrote: {seen:?}")))?;
    }
    let survivors = history.survivors(durability, excuses.tail.as_ref());
    if durability == Durability::Volatile {
        check_pages(&mut found, &errors, history, &survivors)?;
        return Ok((found, Sure::Right));
    }
    let search = |seen: Vec<Option<u64>>| {
        let must = |entry: &Issued| survivors.has(entry);
        let orders = Orders::new(&history.baseline, &history.entries, must, seen);
        sure(orders.search(states_max)).map_err(Violation)
    };
    let mut seen: Vec<Option<u64>> = found.0.iter().copied().map(Some).collect();
    errors.iter().for_each(|(page, _)| seen[page.index()] = None);
    for page in &out_of_order {
        seen[page.index()] = None;
    }
    // If the readable pages are wrong, no guess makes them right.
    let mut checked = search(seen.clone())?;
    if !errors.is_empty() && checked == Sure::Right {
        let (sure, guess) = guess(&errors, seen, search, GUESSES_MAX)?;
        errors.iter().for_each(|(page, _)| found.0[page.index()] = guess[page.index()]);
        checked = sure;
    }
    Ok((found, checked))
}

/// Guesses the lost contents of the pages in `errors`, with all other pages as `seen`, until `search` finds an order that explains
/// everything. Returns the contents guessed. It works page by page: if the pages so far are impossible with any content of the later
/// ones, those need no guesses.
fn guess(
    errors: &[(PageNo, Vec<u64>)],
    seen: Vec<Option<u64>>,
    search: impl Fn(Vec<Option<u64>>) -> Result<Sure, Violation>,
    guesses_max: u64,
) -> Result<(Sure, Vec<u64>), Violation> {
    let mut guesses = Guesses { errors, seen, search, left: guesses_max, first: None };
    let sure = match (guesses.fill(0, Sure::Right), guesses.first) {
        (Some(sure), _) => sure,
        (None, Some(violation)) if guesses.left > 0 => return Err(violation),
        // The right guess may be among those that were not tried.
        (None, _) => Sure::Undecided,
    };
    Ok((sure, guesses.seen.into_iter().map(Option::unwrap_or_default).collect()))
}

/// The guesses so far.
struct Guesses<'a, S> {
    errors: &'a [(PageNo, Vec<u64>)],
    /// By page; `None` if nothing is guessed yet.
    seen: Vec<Option<u64>>,
    search: S,
    /// Number of guesses that may still be made.
    left: u64,
    /// The violation of the first wrong guess.
    first: Option<Violation>,
}

impl<S: Fn(Vec<Option<u64>>) -> Result<Sure, Violation>> Guesses<'_, S> {
    /// Guesses the pages from index `at` in `errors` on; those before are filled in, and their check was `sure`. Returns the
    /// certainty for all of them, `None` if no guess was right.
    fn fill(&mut self, at: usize, sure: Sure) -> Option<Sure> {
        let Some((page, may)) = self.errors.get(at) else { return Some(sure) };
        for content in may {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            self.seen[page.index()] = Some(*content);
            match (self.search)(self.seen.clone()) {
                Ok(sure) => {
                    if let Some(sure) = self.fill(at + 1, sure) {
                        return Some(sure);
                    }
                }
                Err(violation) => _ = self.first.get_or_insert(violation),
            }
        }
        self.seen[page.index()] = None;
        None
    }
}

/// Pages that may have any older content if the end of the log is missing, on a device that acknowledges before it appends. There
/// the end of the log is not the end of the acknowledged commands, and contents that a trim or a share replaced in memory never
/// reached the log.
fn out_of_order<P: Payload>(history: &History<P>, tail: Option<&LostTail>) -> Vec<PageNo> {
    let Some(tail) = tail.filter(|tail| tail.acknowledges_early) else { return Vec::new() };
    let is_record = |entry: &&Issued| {
        matches!(entry.effect, Effect::Clear(_) | Effect::Share(_))
            && entry.acked.is_none_or(|acked| acked >= tail.from)
    };
    let is_missing = |page: PageNo| {
        tail.contents.iter().any(|number| history.may_hold(page, *number))
            || history.entries.iter().filter(is_record).any(|one| one.effect.on(page).is_some())
            // Recovery repeats commands in progress, even if their effect was seen before; commands acknowledged since survive in
            // memory.
            || tail.has_records
                && history.baseline.get(page) == 0
                && history
                    .entries
                    .iter()
                    .all(|entry| entry.acked.is_none() || entry.effect.on(page).is_none())
    };
    (0..history.baseline.0.len() as u64).map(PageNo).filter(|page| is_missing(*page)).collect()
}

/// Whether a read of `range`, issued at `issued`, may fail if the contents in `lost` are lost: one of its pages may have one of
/// them.
pub(super) fn may_fail<P: Payload>(
    history: &History<P>,
    range: PageRange,
    issued: u64,
    lost: &[u64],
    durability: Durability,
    states_max: usize,
) -> bool {
    let must = |entry: &Issued| entry.acked.is_some_and(|acked| acked < issued);
    range.iter().any(|page| {
        lost.iter().filter(|number| history.may_hold(page, **number)).any(|number| {
            if durability == Durability::Volatile {
                return history.readable(page, issued).is_none_or(|may| may.contains(number));
            }
            let mut seen = vec![None; history.baseline.0.len()];
            seen[page.index()] = Some(*number);
            let orders = Orders::new(&history.baseline, &history.entries, must, seen);
            !matches!(orders.search(states_max), Answer::Impossible(_))
        })
    })
}

/// Compares the result of a read of `range`, issued at `issued`, with the contents that `history` allows. If the device promises
/// order, its pages are as of one moment between issue and return; on a volatile device each page is as of some moment.
///
/// # Errors
/// `Checksum` if the read cannot have seen that.
pub(super) fn check_read<P: Payload>(
    history: &History<P>,
    range: PageRange,
    issued: u64,
    pages: &[P],
    durability: Durability,
    states_max: usize,
) -> Result<Sure> {
    let mut seen = vec![None; history.baseline.0.len()];
    let mut is_checked = range.pages == 1;
    for (page, held) in range.iter().zip(pages) {
        let (content, is_all) = history.check_page_read(page, issued, held)?;
        seen[page.index()] = Some(content);
        is_checked &= is_all;
    }
    if is_checked || durability == Durability::Volatile {
        return Ok(Sure::Right);
    }
    let must = |entry: &Issued| entry.acked.is_some_and(|acked| acked < issued);
    let orders = Orders::new(&history.baseline, &history.entries, must, seen);
    sure(orders.search(states_max)).map_err(|why| {
        let context = format!(
            "a read of pages {} to {} gave what they never held together: {why}",
            range.first,
            range.end().0 - 1
        );
        Error::new(ErrorKind::Checksum, context)
    })
}

fn sure(answer: Answer) -> Result<Sure, String> {
    match answer {
        Answer::Explained => Ok(Sure::Right),
        Answer::Undecided => Ok(Sure::Undecided),
        Answer::Impossible(why) => Err(why),
    }
}

/// For a volatile device, page by page: the flushed content if it was not written since, or any content written since. A page in
/// `errors` may have any of the contents that it may have lost; the first allowed one is put into `found`.
fn check_pages<P: Payload>(
    found: &mut Contents,
    errors: &[(PageNo, Vec<u64>)],
    history: &History<P>,
    survivors: &Survivors,
) -> Result<(), Violation> {
    for page in (0..found.0.len() as u64).map(PageNo) {
        let here: Vec<&Issued> =
            history.entries.iter().filter(|entry| entry.effect.on(page).is_some()).collect();
        let replaced_after =
            |time: u64| here.iter().any(|entry| entry.issued > time && survivors.has(entry));
        let mut allowed = Vec::new();
        if !replaced_after(0) {
            allowed.push(history.baseline.get(page));
        }
        for entry in &here {
            if !entry.acked.is_some_and(replaced_after) {
                allowed.extend(entry.effect.on(page).flatten());
            }
        }
        if let Some((_, may)) = errors.iter().find(|(error, _)| *error == page) {
            let lost = may.iter().find(|number| allowed.contains(number));
            found.0[page.index()] = *lost.ok_or_else(|| {
                let what = "cannot be read, and what was lost is none of";
                Violation(format!("page {page} {what} {allowed:?}"))
            })?;
        }
        let seen = found.get(page);
        if !allowed.contains(&seen) {
            return Err(Violation(format!(
                "page {page} holds content {seen}, which is none of {allowed:?}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Effect;
    use tantalum_base::Stamp;

    #[test]
    fn a_read_shows_its_pages_as_they_were_at_one_time() {
        let mut history = History::<Stamp>::new(4);
        let effect = |first| Effect::Set(vec![(PageNo(1), first), (PageNo(2), first + 1)]);
        let old = [history.write(PageNo(1), 1), history.write(PageNo(2), 2)];
        let entry = history.issue(0, effect(1), false, "w1+2".to_owned());
        history.acknowledge(entry);
        let issued = history.now();
        // In flight at the same time as the read.
        let new = [history.write(PageNo(1), 3), history.write(PageNo(2), 4)];
        history.issue(1, effect(3), false, "w1+2".to_owned());
        let check = |seen: [Stamp; 2], durability| {
            check_read(&history, PageRange::new(PageNo(1), 2), issued, &seen, durability, 1000)
        };
        for durability in [Durability::OnAck, Durability::OnFlush] {
            assert_eq!(check(old, durability).ok(), Some(Sure::Right));
            assert_eq!(check(new, durability).ok(), Some(Sure::Right));
            for torn in [[old[0], new[1]], [new[0], old[1]]] {
                let error = check(torn, durability).unwrap_err();
                assert!(error.to_string().contains("never held together"), "{error}");
            }
        }
        // A volatile device does not promise that; but it never returns content that never existed.
        assert_eq!(check([old[0], new[1]], Durability::Volatile).ok(), Some(Sure::Right));
        assert!(check([old[0], old[0]], Durability::Volatile).is_err());
        assert!(check([Stamp::default(), old[1]], Durability::Volatile).is_err());
    }

    /// A history of one client that writes `commands`, each a page and a content, one after the other.
    fn written(pages: u64, commands: &[(u64, u64)]) -> History<Stamp> {
        let mut history = History::<Stamp>::new(pages);
        for (page, content) in commands {
            let page = PageNo(*page);
            history.write(page, *content);
            let entry = history.issue(0, Effect::Set(vec![(page, *content)]), false, String::new());
            history.acknowledge(entry);
        }
        history
    }

    /// The result of checking pages with these contents (`None`: an error), with some excused.
    fn checked(
        history: &History<Stamp>,
        seen: &[Option<u64>],
        lost: &[u64],
        tail: Option<LostTail>,
        durability: Durability,
    ) -> Result<Sure, Violation> {
        let pages: Vec<Option<Stamp>> = seen
            .iter()
            .zip(0..)
            .map(|(content, page)| {
                content.map(|content| crate::command::content(PageNo(page), content))
            })
            .collect();
        let excuses = Excuses { lost: lost.to_vec(), tail };
        check(&pages, history, &excuses, durability, 1000).map(|(_, sure)| sure)
    }

    #[test]
    fn a_page_may_be_an_error_where_its_newest_content_is_lost() {
        let history = written(3, &[(1, 11), (2, 12), (1, 13)]);
        for durability in [Durability::OnAck, Durability::Volatile] {
            let mut history = written(3, &[(1, 11), (2, 12), (1, 13)]);
            let now = history.now();
            history.flushed(now);
            let check = |seen: [Option<u64>; 3], lost: &[u64]| {
                checked(&history, &seen, lost, None, durability)
            };
            assert_eq!(check([Some(0), Some(13), Some(12)], &[13]), Ok(Sure::Right));
            assert_eq!(check([Some(0), None, Some(12)], &[13]), Ok(Sure::Right));
            // An older damaged content of it is no excuse; nor is a content of another page.
            assert!(check([Some(0), None, Some(12)], &[11]).is_err());
            assert!(check([Some(0), None, Some(12)], &[12]).is_err());
            assert!(check([Some(0), None, Some(12)], &[]).is_err());
            // Damage does not bring old content back, of this page or of others.
            assert!(check([Some(0), Some(11), Some(12)], &[13]).is_err());
            assert!(check([Some(0), None, Some(0)], &[13]).is_err());
        }
        // Nor without a flush, on a device that keeps order.
        let gone = checked(&history, &[Some(0), None, Some(0)], &[13], None, Durability::OnFlush);
        assert!(gone.is_err());
    }

    #[test]
    fn the_end_of_the_log_may_be_missing_as_a_whole_and_nothing_before_it() {
        let history = written(3, &[(0, 10), (1, 11), (2, 12), (1, 13)]);
        // The append with 12, which was issued at 5, and everything after it.
        let tail = || {
            Some(LostTail {
                from: 5,
                contents: vec![12, 13],
                has_records: false,
                acknowledges_early: false,
            })
        };
        let check =
            |seen: [u64; 3]| checked(&history, &seen.map(Some), &[], tail(), Durability::OnAck);
        for allowed in [[10, 11, 0], [10, 11, 12], [10, 13, 12]] {
            assert_eq!(check(allowed), Ok(Sure::Right), "{allowed:?}");
        }
        // A part before the end is missing; a part of its middle is there.
        for forbidden in [[0, 11, 0], [10, 0, 0], [0, 0, 0], [10, 13, 0]] {
            assert!(check(forbidden).is_err(), "{forbidden:?}");
        }
        let without = checked(&history, &[10, 11, 0].map(Some), &[], None, Durability::OnAck);
        assert!(without.is_err());
    }

    /// A cache that survives the power cut acknowledged 10 and 11, then appended 10, and that append is lost.
    #[test]
    fn memory_that_outlives_the_dark_keeps_what_came_behind_a_lost_append() {
        let mut history = written(3, &[(0, 10), (1, 11)]);
        let from = history.now();
        let check =
            |seen: [u64; 3], tail| checked(&history, &seen.map(Some), &[], tail, Durability::OnAck);
        let tail = |contents| {
            Some(LostTail { from, contents, has_records: false, acknowledges_early: true })
        };
        assert_eq!(check([0, 11, 0], tail(vec![10])), Ok(Sure::Right));
        assert!(check([10, 0, 0], tail(vec![10])).is_err());
        assert!(check([0, 11, 0], None).is_err());
        assert!(check([0, 11, 0], tail(vec![])).is_err());
        let in_order =
            LostTail { from, contents: vec![10], has_records: false, acknowledges_early: false };
        assert!(check([0, 11, 0], Some(in_order)).is_err());
    }

    /// Such a cache held 11 when a trim of pages 1 and 2 removed it, and the append of the trim is lost.
    #[test]
    fn what_a_lost_trim_took_from_memory_is_gone() {
        let mut history = written(3, &[(0, 10), (1, 11), (2, 12)]);
        let from = history.now();
        let effect = Effect::Clear(PageRange::new(PageNo(1), 2));
        history.issue(0, effect, false, String::new());
        let check = |seen: [u64; 3], acknowledges_early| {
            let tail =
                Some(LostTail { from, contents: vec![], has_records: true, acknowledges_early });
            checked(&history, &seen.map(Some), &[], tail, Durability::OnAck)
        };
        assert_eq!(check([10, 0, 12], true), Ok(Sure::Right));
        assert!(check([0, 0, 12], true).is_err());
        assert!(check([10, 0, 12], false).is_err());
    }

    #[test]
    fn pages_that_are_lost_are_guessed_one_by_one() {
        // The newer content of each page has the smaller number, so it is guessed last.
        let pages = 40;
        let commands: Vec<(u64, u64)> = (0..pages)
            .map(|page| (page, 100 + page))
            .chain((0..pages).map(|page| (page, 1 + page)))
            .collect();
        let history = written(pages, &commands);
        let lost: Vec<u64> = (1..=pages).chain(100..100 + pages).collect();
        let check = |errors: usize, lost: &[u64]| {
            let mut seen: Vec<Option<u64>> = (1..=pages).map(Some).collect();
            seen[..errors].fill(None);
            checked(&history, &seen, lost, None, Durability::OnAck)
        };
        assert_eq!(check(40, &lost), Ok(Sure::Right));
        assert!(check(40, &lost[pages as usize..]).is_err());
        // If a readable page is wrong no guess is needed.
        let mut seen = vec![None; pages as usize];
        seen[0] = Some(100);
        assert!(checked(&history, &seen, &lost, None, Durability::OnAck).is_err());
    }

    /// Three pages that may hold 1 or 2 each; two of them alone show nothing.
    #[test]
    fn guesses_that_are_given_up_are_undecided() {
        let errors: Vec<(PageNo, Vec<u64>)> =
            (0..3).map(|page| (PageNo(page), vec![1, 2])).collect();
        let guess = |right: Option<[u64; 3]>, guesses_max| {
            let search = |seen: Vec<Option<u64>>| {
                let all: Option<Vec<u64>> = seen.into_iter().collect();
                let is_wrong = all.is_some_and(|all| right.is_none_or(|right| all != right));
                if is_wrong { Err(Violation("wrong".to_owned())) } else { Ok(Sure::Right) }
            };
            guess(&errors, vec![None; 3], search, guesses_max)
        };
        // Two for the first page, four for the first two, eight for all.
        let last = Some([2, 2, 2]);
        assert_eq!(guess(last, 14), Ok((Sure::Right, vec![2, 2, 2])));
        assert_eq!(guess(last, 13).map(|(sure, _)| sure), Ok(Sure::Undecided));
        assert_eq!(guess(None, 13).map(|(sure, _)| sure), Ok(Sure::Undecided));
        assert!(guess(None, 15).is_err(), "all were tried");
    }
}
