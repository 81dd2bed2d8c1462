//! Long requests, split into pieces.
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use tantalum_base::{Error, PageNo, PageRange, Result};

/// Splits `range` into pieces of at most `pages_max` pages, ascending.
pub(crate) fn split(range: PageRange, pages_max: u64) -> impl Iterator<Item = PageRange> {
    (0..range.pages.div_ceil(pages_max)).map(move |piece| {
        let skip = piece * pages_max;
        PageRange::new(PageNo(range.first.0 + skip), pages_max.min(range.pages - skip))
    })
}

/// Runs `pieces` concurrently, at most `at_once` counted from the first that has not ended. They
/// are first polled in order, so the device sees them in order. After a failure no further piece
/// starts; those that started run to their end, and the first failure in piece order is returned.
pub(crate) async fn side_by_side<F: Future<Output = Result<()>>>(
    at_once: usize,
    pieces: impl Iterator<Item = F>,
) -> Result<()> {
    let mut pieces = pieces.enumerate().peekable();
    let mut running: VecDeque<(usize, Pin<Box<F>>)> = VecDeque::new();
    let mut failure: Option<(usize, Error)> = None;
    poll_fn(|context| {
        loop {
            running.retain_mut(|(number, piece)| match piece.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(Ok(())) => false,
                Poll::Ready(Err(error)) => {
                    if failure.as_ref().is_none_or(|(first, _)| *number < *first) {
                        failure = Some((*number, error));
                    }
                    false
                }
            });
            let end = running.front().map_or(usize::MAX, |(first, _)| first + at_once);
            let next = pieces.next_if(|(number, _)| failure.is_none() && *number < end);
            match next {
                // It is polled in the next round, after the pieces that started before it.
                Some((number, piece)) => running.push_back((number, Box::pin(piece))),
                None if running.is_empty() => return Poll::Ready(()),
                None => return Poll::Pending,
            }
        }
    })
    .await;
    failure.map_or(Ok(()), |(_, error)| Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;
    use tantalum_base::ErrorKind;
    use tantalum_runtime::virtual_time::Schedule;
    use tantalum_runtime::{Runtime, Virtual};

    #[test]
    fn pieces_cover_the_range_once() {
        for pages in 0..20 {
            let range = PageRange::new(PageNo(7), pages);
            for pages_max in 1..6 {
                let pieces: Vec<_> = split(range, pages_max).collect();
                assert!(pieces.iter().all(|piece| (1..=pages_max).contains(&piece.pages)));
                let covered: Vec<_> = pieces.iter().flat_map(|piece| piece.iter()).collect();
                assert_eq!(covered, range.iter().collect::<Vec<_>>());
            }
        }
    }

    /// The events of the pieces, in order, and the result; piece `number` takes `steps[number]`.
    fn events(
        at_once: usize,
        steps: &'static [(u64, Option<ErrorKind>)],
    ) -> (Vec<(usize, &'static str)>, Result<()>) {
        let runtime = Virtual::new(Schedule::Fifo);
        let told = Rc::new(RefCell::new((Vec::new(), Ok(()))));
        let (clock, events) = (runtime.clone(), Rc::clone(&told));
        let main = async move {
            let pieces = steps.iter().enumerate().map(|(number, (sleep_ns, failure))| {
                let (clock, events) = (clock.clone(), Rc::clone(&events));
                async move {
                    events.borrow_mut().0.push((number, "starts"));
                    clock.sleep(*sleep_ns).await;
                    events.borrow_mut().0.push((number, "ends"));
                    failure.map_or(Ok(()), |kind| Err(Error::new(kind, number.to_string())))
                }
            });
            let result = side_by_side(at_once, pieces).await;
            events.borrow_mut().1 = result;
        };
        runtime.run(main).unwrap();
        told.replace((Vec::new(), Ok(())))
    }

    #[test]
    fn pieces_start_in_order_and_only_so_many_at_once() {
        let (events, result) = events(2, &[(10, None), (30, None), (5, None), (0, None)]);
        result.unwrap();
        let expected = [
            (0, "starts"),
            (1, "starts"),
            (0, "ends"),
            (2, "starts"),
            (2, "ends"),
            // The fourth must wait for the second: it would be too far ahead.
            (1, "ends"),
            (3, "starts"),
            (3, "ends"),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn the_first_failure_in_order_is_told_and_nothing_is_started_behind_it() {
        const STEPS: &[(u64, Option<ErrorKind>)] =
            &[(50, None), (40, Some(ErrorKind::OutOfSpace)), (10, Some(ErrorKind::Io)), (0, None)];
        let (events, result) = events(3, STEPS);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::OutOfSpace);
        let ends: Vec<_> = events.iter().filter(|(_, what)| *what == "ends").collect();
        assert_eq!(ends, [&(2, "ends"), &(1, "ends"), &(0, "ends")]);
        assert!(!events.contains(&(3, "starts")));
    }
}
