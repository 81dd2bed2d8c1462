//! Waits for the first of two futures.
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// The first of two futures to complete, with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First<A, B> {
    /// The first argument.
    One(A),
    /// The second argument.
    Other(B),
}

/// Completes with the first future to complete; `one` wins a tie. The other future is dropped.
pub async fn first<A, B>(
    one: impl Future<Output = A>,
    other: impl Future<Output = B>,
) -> First<A, B> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(one) => Poll::Ready(First::One(one)),
        Poll::Pending => other.as_mut().poll(context).map(First::Other),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_time::Schedule;
    use crate::{Runtime, Virtual};

    #[test]
    fn the_sooner_one_counts_and_of_two_at_once_the_one() {
        let runtime = Virtual::new(Schedule::Fifo);
        let clock = runtime.clone();
        let found = runtime.run(async move {
            let sooner = first(clock.sleep(7), clock.sleep(3)).await;
            let now_ns = clock.now_ns();
            let at_once = first(std::future::ready(1), std::future::ready(2)).await;
            (sooner, now_ns, at_once)
        });
        assert_eq!(found.unwrap(), (First::Other(()), 3, First::One(1)));
    }
}
