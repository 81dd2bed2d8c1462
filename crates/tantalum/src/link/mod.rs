//! The ways to reach an open device.
//!
//! ```text
//! caller's thread                        the volume's thread
//! Volume::read ── Request, ReplySender ──▶ worker: device.read
//!       waits ◀────────── Reply ──────────┘
//! ```
//!
//! A call is one round trip; a scattered write does a whole transaction in one. Requests of several threads are served
//! concurrently, at most [`WORKERS`] at a time. Further requests wait in the channel; once the channel is full, `send` blocks.
//!
//! Alternatively the callers' threads run the device's executor ([`Lent`]), which avoids thread switches. This is faster if
//! there is usually one caller, as with SQLite. If there are several, each runs the executor while it has work to do, and none
//! waits for another one's I/O.
//!
//! Or another process has the device open and serves it over a socket ([`Connection`]). The parts common to all three are in
//! `tantalum_local`: the requests, and SQLite's locks, which cover all users of the volume.
use crate::counters::Counters;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tantalum_base::{Error, ErrorKind, PageBuf, PageDevice, PageNo, Result, TxId};
use tantalum_local::{Answer, Connection, Request};
use tantalum_runtime::live::remote::{self, RemoteSender};
use tantalum_runtime::metrics::Readings;
use tantalum_volume::Stat;

mod lent;
mod serving;

use lent::Drive;
pub use lent::Lent;
pub(crate) use lent::confined;
use serving::Message;
pub(crate) use serving::serve_with_figures;
pub use serving::{Connector, Requests, WORKERS, channel, serve};

/// How requests reach the device.
pub(crate) enum Link {
    /// The device's thread receives requests from a channel.
    Channel(RemoteSender<Message>),
    /// The caller runs the device's executor.
    Confined(Box<dyn Drive>),
    /// Another process has the device open.
    Socket(Connection),
}

/// Determines the figures of a device, except for the kind of its content.
type StatOf<D> = Box<dyn Fn(&D) -> Result<Stat>>;

/// The functions by which a device reports about itself.
pub(crate) struct Figures<D> {
    /// Its figures.
    pub stat: StatOf<D>,
    /// Its counters.
    pub metrics: fn(&D, &mut Readings),
}

impl<D: PageDevice<Page = PageBuf>> Figures<D> {
    /// A device that reports nothing.
    fn none() -> Figures<D> {
        let stat = |_: &D| Err(Error::new(ErrorKind::Unsupported, "the device has no figures"));
        Figures { stat: Box::new(stat), metrics: |_, _| () }
    }

    /// All figures of `device`.
    async fn of(&self, device: &D) -> Result<Stat> {
        let mut stat = (self.stat)(device)?;
        stat.put_content(device).await;
        Ok(stat)
    }
}

impl Link {
    /// Makes one request. If it takes long, `counters` are written meanwhile.
    pub(crate) fn ask(&self, request: Request, counters: &Arc<Counters>) -> Result<Answer> {
        match self {
            Link::Channel(sender) => {
                let (reply, answer) = remote::reply();
                sender.send(Message::Ask(request, reply)).map_err(|_| gone())?;
                answer.wait().ok_or_else(gone)?
            }
            Link::Confined(device) => device.drive(request, counters),
            Link::Socket(server) => server.ask(request),
        }
    }

    /// Reads `pages`, in ascending order, concurrently.
    pub(crate) fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        match self {
            Link::Channel(sender) => {
                let send = |run: &[PageNo]| {
                    let (reply, answer) = remote::reply();
                    let request = Request::Read { first: run[0], pages: run.len(), tx };
                    sender.send(Message::Ask(request, reply)).map_err(|_| gone())?;
                    Ok(answer)
                };
                let runs = pages.chunk_by(|page, next| page.0 + 1 == next.0);
                let answers = runs.map(send).collect::<Result<Vec<_>>>()?;
                let mut read = Vec::with_capacity(pages.len());
                for answer in answers {
                    read.extend(answer.wait().ok_or_else(gone)??.pages);
                }
                Ok(read)
            }
            Link::Confined(device) => device.read_each(pages, tx),
            Link::Socket(server) => server.read_each(&pages, tx),
        }
    }

    /// The device's counters; none from a server, which has its own way to report them.
    pub(crate) fn metrics(&self) -> Result<Readings> {
        match self {
            Link::Channel(sender) => {
                let (reply, told) = remote::reply();
                sender.send(Message::Metrics(reply)).map_err(|_| gone())?;
                told.wait().ok_or_else(gone)
            }
            Link::Confined(device) => device.metrics(),
            Link::Socket(_) => Ok(Readings::default()),
        }
    }

    /// The device's figures; `None` if another process has it open.
    pub(crate) fn stat(&self) -> Result<Option<Stat>> {
        match self {
            Link::Channel(sender) => {
                let (reply, told) = remote::reply();
                sender.send(Message::Stat(reply)).map_err(|_| gone())?;
                told.wait().ok_or_else(gone)?.map(Some)
            }
            Link::Confined(device) => device.stat().map(Some),
            Link::Socket(_) => Ok(None),
        }
    }
}

/// Closes in a destructor, which cannot return an error. Acknowledged writes are durable even if closing fails. A panic must not
/// leave a destructor, which may already run because of a panic.
pub(crate) fn close_quietly(close: impl FnOnce() -> Result<()>) {
    match catch_unwind(AssertUnwindSafe(close)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!("closing the volume failed: {error}"),
        Err(panic) => {
            // The panic's message was printed. Dropping its payload could panic again.
            std::mem::forget(panic);
            tracing::error!("closing the volume failed: a bug made it panic");
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Closed, "the volume's thread has gone")
}
