//! One connection: a request, its answer, the end.
use crate::request::{Asked, HEAD_BYTES_MAX, parse, response_head};
use std::cell::Cell;
use std::future::Future;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::metrics::exposition;
use tantalum_runtime::{ByteStream, First, Runtime, Stage, first};

/// Maximum number of pieces in which a request may arrive, as each wakes the thread that serves the device.
const PIECES_MAX: u32 = 64;
/// Number of bytes that a client may still send after its answer before it is disconnected. If they were left unread,
/// the network could drop the answer.
const REST_BYTES_MAX: usize = 64 << 10;
/// Time limit for sending them.
const REST_NS_MAX: u64 = 1_000_000_000;
/// After collecting the metrics, the thread does other work for this multiple of the time that it took.
const REST_PER_TURN: u64 = 50;

/// A connection, as the endpoint sees it.
pub(crate) struct Link<S> {
    pub(crate) stream: S,
    // The client has sent its request.
    asked: Cell<bool>,
    // The endpoint has cut it off.
    cut: Cell<bool>,
}

impl<S: ByteStream> Link<S> {
    pub(crate) fn new(stream: S) -> Self {
        Link { stream, asked: Cell::new(false), cut: Cell::new(false) }
    }

    /// Ends the connection.
    pub(crate) fn cut(&self) {
        self.cut.set(true);
        self.stream.shutdown();
    }

    /// The stage of the connection.
    pub(crate) fn stage(&self) -> Stage {
        match (self.cut.get(), self.asked.get()) {
            (true, _) => Stage::Cut,
            (false, true) => Stage::Served,
            (false, false) => Stage::Silent,
        }
    }
}

/// Limits the share of the thread's time that collecting metrics takes.
#[derive(Default)]
pub(crate) struct Pace {
    next_ns: Cell<u64>,
}

impl Pace {
    /// Waits for the next permitted time, then does `work`.
    async fn turn<R: Runtime, T>(&self, runtime: &R, work: impl FnOnce() -> T) -> T {
        while runtime.now_ns() < self.next_ns.get() {
            runtime.sleep_until(self.next_ns.get()).await;
        }
        let from_ns = runtime.now_ns();
        let done = work();
        let until_ns = runtime.now_ns();
        self.next_ns.set(until_ns + (until_ns - from_ns).saturating_mul(REST_PER_TURN));
        done
    }
}

/// Answers one request and ends the connection, at the latest `limit_ns` after it began.
pub(crate) async fn serve<R: Runtime, S: ByteStream>(
    runtime: &R,
    link: &Link<S>,
    limit_ns: u64,
    pace: &Pace,
    tell: impl Fn(&mut Readings),
) {
    // A failure here means that the client has gone.
    let _ = within(runtime, limit_ns, answer(runtime, link, pace, tell)).await;
    link.stream.shutdown();
}

async fn answer<R: Runtime, S: ByteStream>(
    runtime: &R,
    link: &Link<S>,
    pace: &Pace,
    tell: impl Fn(&mut Readings),
) -> Result<()> {
    let mut bytes = vec![0; HEAD_BYTES_MAX];
    let (asked, with_body, is_read) = receive(link, &mut bytes).await?;
    link.asked.set(true);
    let (status, body) = match asked {
        Asked::Refused(status, line) => (status, format!("{line}\n")),
        Asked::Metrics { .. } => {
            let told = || {
                let mut readings = Readings::default();
                tell(&mut readings);
                exposition(&readings)
            };
            // A client that leaves before its turn comes gives up its place.
            let leaving = discard(link, &mut bytes);
            match first(pace.turn(runtime, told), leaving).await {
                First::One(body) => (200, body),
                First::Other(_) => return Ok(()),
            }
        }
    };
    let mut text = response_head(status, body.len());
    if with_body {
        text.push_str(&body);
    }
    let mut left = text.as_bytes();
    while !left.is_empty() {
        left = &left[unless_closed(link.stream.send(left).await?)?..];
    }
    if !is_read {
        // This client has its answer. It counts as silent from now on, so that a new client can replace it.
        link.asked.set(false);
        let _ = within(runtime, REST_NS_MAX, discard(link, &mut bytes)).await;
    }
    Ok(())
}

/// Receives a request. Returns the request, whether the answer has a body, and whether all of the request was read.
async fn receive<S: ByteStream>(link: &Link<S>, bytes: &mut [u8]) -> Result<(Asked, bool, bool)> {
    let mut count = 0;
    for _ in 0..PIECES_MAX {
        count += unless_closed(link.stream.recv(&mut bytes[count..]).await?)?;
        if let Some((asked, head_bytes)) = parse(&bytes[..count]) {
            let with_body = !bytes.starts_with(b"HEAD ");
            return Ok((asked, with_body, head_bytes == count));
        }
    }
    Ok((Asked::Refused(400, "the request arrived in too many pieces"), true, false))
}

/// Receives and drops the bytes that the client still sends.
async fn discard<S: ByteStream>(link: &Link<S>, bytes: &mut [u8]) -> Result<()> {
    let mut left = REST_BYTES_MAX;
    while left > 0 {
        left = left.saturating_sub(unless_closed(link.stream.recv(bytes).await?)?);
    }
    Ok(())
}

/// Checks that `count` is not 0, which means that the other side has closed.
pub(crate) fn unless_closed(count: usize) -> Result<usize> {
    if count == 0 {
        return Err(Error::new(ErrorKind::Closed, "the other side has closed the connection"));
    }
    Ok(count)
}

/// The outcome of `work`; `Closed` if it takes longer than `limit_ns`.
pub(crate) async fn within<R: Runtime, T>(
    runtime: &R,
    limit_ns: u64,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    match first(work, runtime.sleep(limit_ns)).await {
        First::One(done) => done,
        First::Other(()) => {
            let context = format!("no answer in {} s", limit_ns / 1_000_000_000);
            Err(Error::new(ErrorKind::Closed, context))
        }
    }
}
