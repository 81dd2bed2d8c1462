//! An NBD server that requires TLS, and clients that send arbitrary bytes: before the handshake, in it, and after it. The keys of a run are
//! random, so a run is not repeated byte for byte; what the client sends in the clear is.
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../tls/tests/support/client.rs"]
mod client;

use crate::network::{NBD_FLAGS, nbd_after, option, option_seeds as plain_seeds, send};
use client::{TlsClient, Version};
use std::io::Write;
use std::sync::OnceLock;
use tantalum_nbd::{Certificates, ServerOptions, Tls};
use tantalum_runtime::ByteStream;
use tantalum_runtime::pipe::{PipeEnd, pipe};
use tantalum_testing::certificates::{VALID_UNIX_SECONDS, folder};

const STARTTLS: u32 = 5;
/// Bytes that the server sends up to the end of its answer to STARTTLS.
const ANSWER_BYTES: usize = 18 + 20;
/// The first message of `nbdinfo`, with GnuTLS.
const GNUTLS_HELLO: &[u8] = include_bytes!("../seeds/gnutls_hello");

fn server() -> ServerOptions {
    static CERTIFICATES: OnceLock<Certificates> = OnceLock::new();
    let certificates = CERTIFICATES.get_or_init(|| {
        let read = Certificates::read(&folder("server"), || VALID_UNIX_SECONDS);
        read.expect("the certificates of tests")
    });
    let tls = Tls { certificates: certificates.clone(), is_required: true };
    ServerOptions { tls: Some(tls), ..ServerOptions::default() }
}

/// Sends the input after a client's flags.
pub(crate) fn options(input: &[u8]) {
    let sent = [NBD_FLAGS, input].concat();
    nbd_after(server(), sent.len() as u64, async |_| sent);
}

/// Sends the input in place of a handshake.
pub(crate) fn handshake(input: &[u8]) {
    let sent = input.to_vec();
    nbd_after(server(), sent.len() as u64, async |client| {
        start(client).await;
        sent
    });
}

/// Sends the input after the server's part of the handshake, over the client's answer from a byte on; or after the handshake, as it is or
/// encrypted. Its first byte decides.
pub(crate) fn records(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let (kind, rest) = (first % 6, rest.to_vec());
    let version = if kind < 3 { Version::Tls13 } else { Version::Tls12 };
    nbd_after(server(), rest.len() as u64, async move |plain| {
        start(plain).await;
        match kind % 3 {
            0 => changed(second_flight(plain, version).await, &rest),
            1 => {
                connected(plain, version).await;
                rest
            }
            _ => {
                let client = connected(plain, version).await;
                let mut sent = Vec::new();
                for piece in rest.chunks(1 << 14) {
                    client.session.borrow_mut().writer().write_all(piece).expect("room for it");
                    sent.extend(client.outgoing());
                }
                sent
            }
        }
    });
}

/// Negotiates up to the handshake.
async fn start(client: &PipeEnd) {
    send(client, &[NBD_FLAGS, &option(STARTTLS, &[])].concat()).await;
    let mut bytes = [0; ANSWER_BYTES];
    let mut have = 0;
    while have < ANSWER_BYTES {
        match client.recv(&mut bytes[have..]).await {
            Ok(received) if received > 0 => have += received,
            _ => panic!("the server answers STARTTLS"),
        }
    }
}

async fn connected(plain: &PipeEnd, version: Version) -> TlsClient {
    TlsClient::connect(plain.clone(), "client", version).await.expect("a good client")
}

/// The client's answer to the server's part of the handshake.
async fn second_flight(plain: &PipeEnd, version: Version) -> Vec<u8> {
    let client = TlsClient::new(plain.clone(), "client", version);
    client.flush().await;
    while !client.session.borrow().wants_write() {
        client.take_in().await.expect("a good server");
    }
    client.outgoing()
}

/// `flight` with the rest of `input` in place of its own bytes, from the byte on that the first two give.
fn changed(mut flight: Vec<u8>, input: &[u8]) -> Vec<u8> {
    let Some((at, new)) = input.split_first_chunk::<2>() else { return flight };
    let at = usize::from(u16::from_be_bytes(*at)) % (flight.len() + 1);
    let end = (at + new.len()).min(flight.len());
    flight.splice(at..end, new.iter().copied());
    flight
}

pub(crate) fn option_seeds() -> Vec<Vec<u8>> {
    let start = option(STARTTLS, &[]);
    let mut seeds = plain_seeds();
    seeds.extend([
        start.clone(),
        option(STARTTLS, &[1]),
        [&start[..], &option(7, &[0; 6])].concat(),
        [&start[..], GNUTLS_HELLO].concat(),
    ]);
    seeds
}

pub(crate) fn handshake_seeds() -> Vec<Vec<u8>> {
    let hello = |version| TlsClient::new(pipe(1).0, "client", version).outgoing();
    vec![
        GNUTLS_HELLO.to_vec(),
        hello(Version::Tls12),
        hello(Version::Tls13),
        // Alerts, and a change of ciphers before anything else.
        vec![0x15, 3, 3, 0, 2, 2, 40],
        vec![0x15, 3, 3, 0, 2, 1, 0],
        vec![0x14, 3, 3, 0, 1, 1],
        // The beginning of a long message in many records, and data of a program.
        [0x16, 3, 1, 0, 5, 1, 0, 0xff, 0xff, 3].repeat(20),
        vec![
            0x17, 3, 3, 0, 20, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
        ],
        option(7, &[0; 6]),
    ]
}

pub(crate) fn record_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for kind in [0, 3] {
        seeds.extend([vec![kind], vec![kind, 0, 9, 1], vec![kind, 2, 0, 0, 0, 0, 0]]);
    }
    for kind in [1, 4] {
        seeds.extend(handshake_seeds().into_iter().map(|seed| [&[kind], &seed[..]].concat()));
    }
    for kind in [2, 5] {
        seeds.extend(plain_seeds().into_iter().map(|seed| [&[kind], &seed[..]].concat()));
    }
    seeds
}
