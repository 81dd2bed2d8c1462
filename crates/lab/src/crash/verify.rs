//! Whether what a device holds after a cut, and what a read returns, is something that its promise
//! allows.
use tantalum_base::{Durability, Error, ErrorKind, PageNo, PageRange, Payload, Result};

use super::command::Contents;
use super::history::{Entry, History};
use super::life::Violation;
use super::order::{Answer, Orders};

/// States of one search for an order that are looked at before it is given up.
pub(super) const STATES_MAX: usize = 300_000;

/// How sure a check is that found nothing wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sure {
    /// All that was seen is allowed.
    Right,
    /// No order was found that explains it, and not all were tried.
    Undecided,
}

/// Ways to fill in what decayed that are tried.
const GUESSES_MAX: usize = 4096;

/// Compares what every page was found to hold (`None`: it is an error, for decay) with what `history`
/// allows, where the contents in `lost` have decayed; the contents. A search for an order looks at
/// `states_max` states at the most.
pub(super) fn check<P: Payload>(
    pages: &[Option<P>],
    history: &History<P>,
    lost: &[u64],
    durability: Durability,
    states_max: usize,
) -> Result<(Contents, Sure), Violation> {
    let mut found = Contents::empty(pages.len() as u64);
    // What an error stands for: pages, with the contents that they may have lost.
    let mut errors: Vec<(PageNo, Vec<u64>)> = Vec::new();
    for (page, seen) in (0..).map(PageNo).zip(pages) {
        let Some(seen) = seen else {
            let may_hold = |number: &u64| history.may_hold(page, *number);
            let may: Vec<u64> = lost.iter().copied().filter(may_hold).collect();
            if may.is_empty() {
                let what = "cannot be read, and nothing that it may hold has decayed";
                return Err(Violation(format!("page {page} {what}")));
            }
            errors.push((page, may));
            continue;
        };
        found.0[page.index()] = history
            .identify(seen)
            .ok_or_else(|| Violation(format!("page {page} holds what nobody wrote: {seen:?}")))?;
    }
    let must = |entry: &Entry| history.must_survive(entry, durability);
    let guesses = errors.iter().map(|(_, may)| may.len()).product::<usize>();
    let mut first = None;
    for guess in 0..guesses.min(GUESSES_MAX) {
        let mut digits = guess;
        for (page, may) in &errors {
            found.0[page.index()] = may[digits % may.len()];
            digits /= may.len();
        }
        let checked = if durability == Durability::Volatile {
            check_pages(&found, history).map(|()| Sure::Right)
        } else {
            let seen = found.0.iter().copied().map(Some).collect();
            let orders = Orders::new(&history.baseline, &history.entries, must, seen);
            sure(orders.search(states_max)).map_err(Violation)
        };
        match checked {
            Ok(sure) => return Ok((found, sure)),
            Err(violation) => first = first.or(Some(violation)),
        }
    }
    Err(first.unwrap_or_else(|| Violation("nothing was looked at".to_owned())))
}

/// Whether a read of `range`, issued at `issued`, may be an error, where the contents in `lost` have
/// decayed: one of its pages may hold one of them.
pub(super) fn may_fail<P: Payload>(
    history: &History<P>,
    range: PageRange,
    issued: u64,
    lost: &[u64],
    durability: Durability,
    states_max: usize,
) -> bool {
    let must = |entry: &Entry| entry.acked.is_some_and(|acked| acked < issued);
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

/// Compares what a read of `range`, issued at `issued`, returned with what `history` allows. Where
/// the device promises order, its pages are what they were at one time between the two; on a volatile
/// device each is what it was at some time.
///
/// # Errors
/// `Checksum` where it could not see that.
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
    let must = |entry: &Entry| entry.acked.is_some_and(|acked| acked < issued);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::command::Effect;
    use tantalum_base::Stamp;

    #[test]
    fn a_read_shows_its_pages_as_they_were_at_one_time() {
        let mut history = History::<Stamp>::new(4);
        let effect = |first| Effect::Set(vec![(PageNo(1), first), (PageNo(2), first + 1)]);
        let old = [history.write(PageNo(1), 1), history.write(PageNo(2), 2)];
        let entry = history.issue(0, effect(1), false, "w1+2".to_owned());
        history.acknowledge(entry);
        let issued = history.now();
        // In flight together with the read.
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
        // Nothing promises that on a volatile device; but never what was never there.
        assert_eq!(check([old[0], new[1]], Durability::Volatile).ok(), Some(Sure::Right));
        assert!(check([old[0], old[0]], Durability::Volatile).is_err());
        assert!(check([Stamp::default(), old[1]], Durability::Volatile).is_err());
    }
}
