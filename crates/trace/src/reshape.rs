//! Splits requests of several pages, and renumbers pages.
use crate::event::PageEvent;
use tantalum_base::{Error, ErrorKind, FastMap, PageNo, Result};

/// The treatment of a request of several pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Expand {
    /// It stays one request. A device gets it as one command; caches and statistics see its pages one by one.
    #[default]
    No,
    /// One request per page.
    Yes,
    /// Only its first page is requested.
    First,
}

impl Expand {
    /// `yes`, `no` or `first`.
    ///
    /// # Errors
    /// `InvalidInput` for any other word.
    pub fn parse(text: &str) -> Result<Expand> {
        match text {
            "no" => Ok(Expand::No),
            "yes" => Ok(Expand::Yes),
            "first" => Ok(Expand::First),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{text:?} is not a way to expand requests; accepted: yes, no, first"),
            )),
        }
    }
}

/// Reshapes events.
#[derive(Debug)]
pub(crate) struct Reshape {
    expand: Expand,
    /// The new number of each page seen, if pages are renumbered.
    numbers: Option<FastMap<u64, u64>>,
    /// The rest of a request that is delivered page by page.
    rest: Option<PageEvent>,
}

impl Reshape {
    pub(crate) fn new(expand: Expand, renumber: bool) -> Reshape {
        Reshape { expand, numbers: renumber.then(FastMap::default), rest: None }
    }

    /// The next event, made from the events of `events`.
    #[inline]
    pub(crate) fn next(
        &mut self,
        events: &mut impl Iterator<Item = Result<PageEvent>>,
    ) -> Option<Result<PageEvent>> {
        if self.expand == Expand::No && self.numbers.is_none() {
            return events.next();
        }
        let event = match self.rest.take() {
            Some(event) => event,
            None => match events.next()? {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            },
        };
        Some(Ok(self.change(event)))
    }

    fn change(&mut self, event: PageEvent) -> PageEvent {
        let Some((page, pages)) = event.range() else { return event };
        let is_trim = matches!(event, PageEvent::Trim { .. });
        // Renumbered pages are no longer neighbours.
        if is_trim && self.numbers.is_none() {
            return event;
        }
        let one_by_one = self.expand == Expand::Yes || self.numbers.is_some();
        if pages > 1 && one_by_one && (self.expand != Expand::First || is_trim) {
            self.rest = Some(event.at(PageNo(page.0 + 1), pages - 1));
        }
        let page = match &mut self.numbers {
            Some(numbers) => {
                let next = numbers.len() as u64;
                PageNo(*numbers.entry(page.0).or_insert(next))
            }
            None => page,
        };
        event.at(page, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reshaped(expand: Expand, renumber: bool) -> Vec<PageEvent> {
        let events = [
            PageEvent::Write { page: PageNo(90), pages: 3 },
            PageEvent::Commit,
            PageEvent::Trim { page: PageNo(91), pages: 2 },
            PageEvent::Read { page: PageNo(7), pages: 1 },
        ];
        let mut events = events.into_iter().map(Ok);
        let mut reshape = Reshape::new(expand, renumber);
        std::iter::from_fn(|| reshape.next(&mut events)).map(Result::unwrap).collect()
    }

    #[test]
    fn long_requests_stay_or_are_taken_apart() {
        let w = |page| PageEvent::Write { page: PageNo(page), pages: 1 };
        let r = |page| PageEvent::Read { page: PageNo(page), pages: 1 };
        let t = |page, pages| PageEvent::Trim { page: PageNo(page), pages };
        let long = PageEvent::Write { page: PageNo(90), pages: 3 };
        let commit = PageEvent::Commit;
        assert_eq!(reshaped(Expand::No, false), [long, commit, t(91, 2), r(7)]);
        assert_eq!(reshaped(Expand::Yes, false), [w(90), w(91), w(92), commit, t(91, 2), r(7)]);
        assert_eq!(reshaped(Expand::First, false), [w(90), commit, t(91, 2), r(7)]);
        let anew = [w(0), w(1), w(2), commit, t(1, 1), t(2, 1), r(3)];
        assert_eq!(reshaped(Expand::No, true), anew);
        let first = [w(0), commit, t(1, 1), t(2, 1), r(3)];
        assert_eq!(reshaped(Expand::First, true), first);
        assert!(Expand::parse("maybe").unwrap_err().to_string().contains("yes, no, first"));
    }
}
