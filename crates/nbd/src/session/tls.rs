//! The step from a plain connection to TLS.
use super::End;
use super::link::Link;
use crate::export::Export;
use crate::options::ServerOptions;
use crate::protocol::handshake::{
    OPT_ABORT, OPT_STARTTLS, REP_ACK, REP_ERR_INVALID, REP_ERR_TLS_REQD, option_reply,
};
use crate::statistics::{Count, Hold};
use std::rc::Rc;
use tantalum_base::{PageBuf, PageDevice};
use tantalum_runtime::{ByteStream, First, Runtime, first};
use tantalum_tls::{HELD_BYTES, TlsStream};

/// Credit that a step of a handshake costs: about a signature, or the check of one.
const HANDSHAKE_COST: u64 = 128;
/// Time for a client to receive the reason for the failure of its handshake, before the connection ends.
const LINGER_NS: u64 = 1_000_000_000;

/// A connection in TLS.
pub(crate) struct Secure<S> {
    pub(super) stream: TlsStream<S>,
    _held: Hold,
    _open: Hold,
}

/// Whether a client must start TLS before it sends this option.
pub(super) fn is_required(options: &ServerOptions, is_secure: bool, option: u32) -> bool {
    options.is_tls_required() && !is_secure && !matches!(option, OPT_STARTTLS | OPT_ABORT)
}

/// Answers an option of a client that must start TLS first.
pub(super) fn require(out: &mut Vec<u8>, option: u32) {
    let words: &[u8] = b"this server requires TLS, with a certificate of the client";
    option_reply(out, option, REP_ERR_TLS_REQD, &[words]);
}

/// Answers STARTTLS; true if TLS begins.
pub(super) fn answer(out: &mut Vec<u8>, data: &[u8], is_secure: bool) -> bool {
    let why: &[u8] = match data {
        [] if is_secure => b"TLS has begun already",
        [] => {
            option_reply(out, OPT_STARTTLS, REP_ACK, &[]);
            return true;
        }
        _ => b"STARTTLS takes no data",
    };
    option_reply(out, OPT_STARTTLS, REP_ERR_INVALID, &[why]);
    false
}

/// Does the handshake. From then on everything on the connection is in TLS.
pub(super) async fn start<R, S, D>(
    runtime: &R,
    link: &Link<S>,
    export: &Export<D>,
) -> Result<(), End>
where
    R: Runtime,
    S: ByteStream,
    D: PageDevice<Page = PageBuf>,
{
    let counters = &export.counters;
    let Some(tls) = &export.options.tls else {
        return Err(End::Violation("STARTTLS to a server without certificates"));
    };
    let held = Hold::new(Rc::clone(&counters.bytes_held), HELD_BYTES as u64);
    let failed = CountedUnlessDone(Some(&counters.tls_handshakes_failed));
    let seat = export.handshake_seat(runtime);
    let turn = async || seat.turn(HANDSHAKE_COST).await;
    let accepting = TlsStream::accept(link.stream.clone(), &tls.certificates, turn);
    let stopping = link.reader.until(|| link.is_stopping().then_some(()));
    let stream = match first(accepting, stopping).await {
        First::One(accepted) => accepted.map_err(End::Handshake)?,
        First::Other(()) => {
            failed.done();
            return Err(End::Stopped);
        }
    };
    failed.done();
    counters.tls_connections.add(1);
    if let Some(expired) = tls.certificates.expired_list() {
        tracing::warn!("a client is let in by an old list of revoked certificates: {expired}");
    }
    let open = Hold::new(Rc::clone(&counters.tls_connections_open), 1);
    // This is the only place that sets it.
    let _ = link.secure.set(Secure { stream, _held: held, _open: open });
    Ok(())
}

/// Counts a handshake that failed or was not complete in time.
struct CountedUnlessDone<'a>(Option<&'a Count>);

impl CountedUnlessDone<'_> {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for CountedUnlessDone<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|count| count.add(1));
    }
}

/// Waits a little for the client to close, after a handshake that failed. If the server closed the connection with unread bytes, the client
/// might not receive the reason.
pub(super) async fn linger<R: Runtime, S: ByteStream>(runtime: &R, link: &Link<S>) {
    let mut bytes = vec![0; 4096];
    let until_closed = async {
        while link.stream.recv(&mut bytes).await.is_ok_and(|received| received > 0) {
            link.client.seat.turn(1).await;
        }
    };
    first(until_closed, runtime.sleep(LINGER_NS)).await;
}
