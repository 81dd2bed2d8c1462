//! Accepts connections at a limited rate, so that other tasks of the executor continue, and decides which of them are
//! admitted.
use crate::{Accept, Runtime, yield_now};
use tantalum_base::{Error, ErrorKind, Result};

/// Number of connections that may be accepted without a pause after an idle time.
const BURST: u64 = 64;
/// Time between two connections after such a burst. A client that connects in a loop then takes only a few percent of
/// the thread, and a full queue of the kernel is empty after half a second.
const PACE_NS: u64 = 500_000;
/// Pause after a failure to accept that may be temporary, such as too many open files.
const FAILURE_PAUSE_NS: u64 = 100_000_000;

/// Gives each connection, and each failure to accept one, to `take`. Other tasks get a turn after each. Returns when
/// the listener has closed, with its error.
pub async fn accept_each<R: Runtime, A: Accept>(
    runtime: &R,
    listener: &A,
    mut take: impl FnMut(Result<A::Stream>),
) -> Error {
    // Each connection uses an interval of `PACE_NS`. This is the end of the last interval used.
    let mut used_ns = 0;
    loop {
        match listener.accept().await {
            Err(error) if error.kind() == ErrorKind::Closed => return error,
            Err(error) => {
                take(Err(error));
                runtime.sleep(FAILURE_PAUSE_NS).await;
            }
            Ok(stream) => {
                take(Ok(stream));
                yield_now().await;
                used_ns = runtime.now_ns().max(used_ns) + PACE_NS;
                let next_ns = used_ns.saturating_sub(BURST * PACE_NS);
                if next_ns > runtime.now_ns() {
                    runtime.sleep_until(next_ns).await;
                }
            }
        }
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has not completed its handshake or first request.
    Silent,
    /// It is served.
    Served,
    /// The server has cut it off, and it will end soon.
    Cut,
}

/// Limits on the connections of one listener. Silent connections are counted separately, so they cannot keep others
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Maximum number of served connections.
    pub served_max: usize,
    /// Maximum number of silent connections. Another one replaces the oldest.
    pub silent_max: usize,
}

/// The decision about a new connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission<T> {
    /// It is admitted.
    Free,
    /// It is admitted, and this one is cut off.
    Replaces(T),
    /// It is refused.
    Full,
}

impl<T> Admission<T> {
    /// Whether it is refused.
    pub fn is_full(&self) -> bool {
        matches!(self, Admission::Full)
    }
}

impl Places {
    /// Decides about a new connection, given the `open` ones in order of arrival.
    pub fn admission<T>(self, open: impl Iterator<Item = (T, Stage)>) -> Admission<T> {
        let (mut served, mut silent, mut oldest) = (0, 0, None);
        for (connection, stage) in open {
            match stage {
                Stage::Served => served += 1,
                Stage::Silent => {
                    silent += 1;
                    oldest.get_or_insert(connection);
                }
                Stage::Cut => {}
            }
        }
        match oldest {
            _ if served >= self.served_max => Admission::Full,
            Some(oldest) if silent >= self.silent_max => Admission::Replaces(oldest),
            _ => Admission::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Virtual;
    use crate::pipe::{PipeEnd, pipe};
    use crate::virtual_time::Schedule;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A listener at which clients connect without a pause, until it closes.
    struct Storm {
        left: Cell<u64>,
    }

    impl Accept for Storm {
        type Stream = PipeEnd;

        async fn accept(&self) -> Result<PipeEnd> {
            match self.left.get() {
                0 => Err(Error::new(ErrorKind::Closed, "the storm is over")),
                left => {
                    self.left.set(left - 1);
                    Ok(pipe(left).1)
                }
            }
        }
    }

    #[test]
    fn other_tasks_go_on_while_clients_connect_without_a_pause() {
        const CLIENTS: u64 = 10_000;
        let runtime = Virtual::new(Schedule::Fifo);
        let clock = runtime.clone();
        let (accepted, turns, over_ns) = runtime
            .run(async move {
                let turns = Rc::new(Cell::new(0u64));
                let counted = Rc::clone(&turns);
                drop(clock.spawn("another task", async move {
                    loop {
                        counted.set(counted.get() + 1);
                        if counted.get() > CLIENTS {
                            return;
                        }
                        yield_now().await;
                    }
                }));
                let storm = Storm { left: Cell::new(CLIENTS) };
                let mut accepted = 0;
                let end = accept_each(&clock, &storm, |_| accepted += 1).await;
                assert_eq!(end.kind(), ErrorKind::Closed);
                (accepted, turns.get(), clock.now_ns())
            })
            .unwrap();
        assert_eq!(accepted, CLIENTS);
        assert!(turns >= CLIENTS, "the other task had {turns} turns");
        assert_eq!(over_ns, (CLIENTS - BURST) * PACE_NS, "a storm is slowed down");
    }

    #[test]
    fn silent_connections_have_places_of_their_own() {
        use Stage::{Cut, Served, Silent};
        let places = Places { served_max: 2, silent_max: 2 };
        let admission = |open: &[Stage]| places.admission(open.iter().copied().enumerate());
        assert!(admission(&[]) == Admission::Free);
        assert_eq!(admission(&[Silent, Served]), Admission::Free);
        assert_eq!(admission(&[Served, Silent, Silent]), Admission::Replaces(1));
        assert_eq!(admission(&[Cut, Silent, Cut, Silent]), Admission::Replaces(1));
        assert_eq!(admission(&[Served, Silent, Served]), Admission::Full);
    }
}
