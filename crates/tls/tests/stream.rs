//! Connections in TLS over connections in memory, in virtual time: bytes arrive in pieces of random length.
#[path = "support/client.rs"]
mod client;

use client::{TlsClient, Version};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use tantalum_base::Rng;
use tantalum_runtime::pipe::{PipeEnd, pipe};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{ByteStream, Runtime, Virtual, yield_now};
use tantalum_testing::certificates::{VALID_UNIX_SECONDS, folder};
use tantalum_tls::{Certificates, Failure, TlsStream};

const BOTH: [Version; 2] = [Version::Tls12, Version::Tls13];

fn certificates(name: &str) -> Certificates {
    Certificates::read(&folder(name), || VALID_UNIX_SECONDS).unwrap()
}

async fn accept(plain: PipeEnd, name: &str) -> Result<TlsStream<PipeEnd>, Failure> {
    TlsStream::accept(plain, &certificates(name), async || yield_now().await).await
}

/// Runs `test` with both ends of a new connection.
fn with_pipe<F: Future<Output = ()> + 'static>(
    seed: u64,
    test: impl FnOnce(Virtual, PipeEnd, PipeEnd) -> F,
) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let (client, server) = pipe(seed);
    let finished = runtime.run(test(runtime.clone(), client, server));
    finished.unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
}

/// Both ends of a connection after its handshake.
async fn connected(
    runtime: &Virtual,
    client: PipeEnd,
    server: PipeEnd,
    version: Version,
) -> (TlsClient, TlsStream<PipeEnd>) {
    let accepting = runtime.spawn("server", accept(server, "server"));
    let client = TlsClient::connect(client, "client", version).await.unwrap();
    (client, accepting.await.unwrap())
}

async fn send_all(stream: &impl ByteStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let sent = stream.send(bytes).await.unwrap();
        assert!(sent > 0);
        bytes = &bytes[sent..];
    }
}

async fn receive(stream: &impl ByteStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let mut have = 0;
    while have < count {
        match stream.recv(&mut bytes[have..]).await.unwrap() {
            0 => break,
            more => have += more,
        }
    }
    bytes.truncate(have);
    bytes
}

fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut rng = Rng::split(seed, "noise");
    (0..count).map(|_| rng.below(256) as u8).collect()
}

#[test]
fn bytes_go_both_ways_at_once_in_more_than_all_buffers_hold() {
    for (seed, version) in (1..9).zip(BOTH.into_iter().cycle()) {
        with_pipe(seed, move |runtime, client, server| async move {
            let (client, server) = connected(&runtime, client, server, version).await;
            let (there, back) = (noise(seed, 3_000_000), noise(seed + 100, 3_000_000));
            let sender = {
                let (client, there) = (client.clone(), there.clone());
                runtime.spawn("client sends", async move { client.send(&there).await })
            };
            let replier = {
                let (server, back) = (server.clone(), back.clone());
                runtime.spawn("server sends", async move { send_all(&server, &back).await })
            };
            let reader = {
                let server = server.clone();
                runtime.spawn("server receives", async move { receive(&server, 3_000_000).await })
            };
            assert!(client.receive(3_000_000).await.unwrap() == back);
            assert!(reader.await == there);
            sender.await;
            replier.await;
        });
    }
}

#[test]
fn a_dropped_receive_loses_nothing() {
    for (seed, version) in (1..9).zip(BOTH.into_iter().cycle()) {
        with_pipe(seed, move |runtime, client, server| async move {
            let (client, server) = connected(&runtime, client, server, version).await;
            let there = noise(seed, 200_000);
            let sender = {
                let (client, there, clock) = (client.clone(), there.clone(), runtime.clone());
                runtime.spawn("client", async move {
                    for piece in there.chunks(7_001) {
                        client.send(piece).await;
                        clock.sleep(10).await;
                    }
                })
            };
            let mut received = Vec::<u8>::new();
            let mut buffer = vec![0; 5_000];
            while received.len() < there.len() {
                let got = {
                    let mut receiving = pin!(server.recv(&mut buffer));
                    let mut context = Context::from_waker(Waker::noop());
                    // Polled once, and dropped if there is nothing yet.
                    receiving.as_mut().poll(&mut context)
                };
                match got {
                    std::task::Poll::Ready(got) => received.extend(&buffer[..got.unwrap()]),
                    std::task::Poll::Pending => runtime.sleep(3).await,
                }
            }
            assert!(received == there);
            sender.await;
        });
    }
}

#[test]
fn keys_are_renewed_while_both_sides_send() {
    with_pipe(5, |runtime, client, server| async move {
        let (client, server) = connected(&runtime, client, server, Version::Tls13).await;
        let (there, back) = (noise(1, 600_000), noise(2, 600_000));
        let replier = {
            let (server, back) = (server.clone(), back.clone());
            runtime.spawn("server sends", async move { send_all(&server, &back).await })
        };
        let reader = {
            let server = server.clone();
            runtime.spawn("server receives", async move { receive(&server, 600_000).await })
        };
        let sender = {
            let (client, there) = (client.clone(), there.clone());
            runtime.spawn("client sends", async move {
                for piece in there.chunks(60_000) {
                    client.send(piece).await;
                    client.session.borrow_mut().refresh_traffic_keys().unwrap();
                }
            })
        };
        assert!(client.receive(600_000).await.unwrap() == back);
        assert!(reader.await == there);
        sender.await;
        replier.await;
    });
}

#[test]
fn clients_without_a_good_certificate_are_refused_with_the_reason() {
    for version in BOTH {
        for (server_name, client_name, reason) in [
            ("server", "client-without-certificate", "sent no certificate"),
            ("server", "client-of-another-ca", "is of no CA in ca-cert.pem"),
            ("server", "client-expired", "has expired"),
            ("server-with-crl", "client-revoked", "was revoked"),
        ] {
            with_pipe(3, move |runtime, client, server| async move {
                let accepting = runtime.spawn("server", accept(server.clone(), server_name));
                let connected = TlsClient::connect(client, client_name, version).await;
                let refusal = accepting.await.err().unwrap();
                assert!(refusal.to_string().contains(reason), "{version:?}: {refusal}");
                server.shutdown();
                // A client of TLS 1.3 learns it from the first bytes.
                let told = match connected {
                    Ok(client) => client.receive(1).await.unwrap_err(),
                    Err(error) => error,
                };
                assert!(matches!(told, rustls::Error::AlertReceived(_)), "{told}");
            });
        }
    }
}

#[test]
fn a_client_refuses_a_server_of_another_ca_and_the_server_tells_so() {
    with_pipe(4, |runtime, client, server| async move {
        let accepting = runtime.spawn("server", accept(server, "server-of-another-ca"));
        let other = TlsClient::new(client, "client", Version::Tls13);
        other.flush().await;
        while other.take_in().await.is_ok() {}
        other.flush().await;
        let refusal = accepting.await.err().unwrap();
        assert!(refusal.to_string().contains("does not know the CA"), "{refusal}");
    });
}

#[test]
fn a_client_may_break_off_at_any_byte_of_the_handshake() {
    // The client's part of a handshake is two flights, of which the server answers the first.
    for version in BOTH {
        for at in (0..2_000).step_by(13) {
            with_pipe(at, move |runtime, client, server| async move {
                let accepting = runtime.spawn("server", accept(server, "server"));
                let session = TlsClient::new(client.clone(), "client", version);
                let mut left = at as usize;
                loop {
                    let bytes = session.outgoing();
                    let sent = bytes.len().min(left);
                    send_all(&client, &bytes[..sent]).await;
                    left -= sent;
                    let is_done = !session.session.borrow().is_handshaking();
                    if left == 0 || is_done {
                        break;
                    }
                    session.take_in().await.unwrap();
                }
                client.shutdown();
                match accepting.await {
                    Err(Failure::BrokeOff | Failure::Connection(_)) => {}
                    Err(other) => panic!("{version:?} at {at}: {other}"),
                    Ok(_) => assert!(left > 0, "{version:?} at {at}: the handshake was complete"),
                }
            });
        }
    }
}

#[test]
fn what_is_no_tls_is_refused_and_what_was_changed_on_its_way_too() {
    with_pipe(6, |runtime, client, server| async move {
        let accepting = runtime.spawn("server", accept(server, "server"));
        send_all(&client, b"IHAVEOPT\0\0\0\x07\0\0\0\0 and so on, as it would be without TLS")
            .await;
        let refusal = accepting.await.err().unwrap();
        assert!(refusal.to_string().contains("no valid TLS"), "{refusal}");
    });
    for version in BOTH {
        with_pipe(7, move |runtime, client, server| async move {
            let (client, server) = connected(&runtime, client, server, version).await;
            client.send(b"good").await;
            std::io::Write::write_all(&mut client.session.borrow_mut().writer(), b"bad").unwrap();
            let mut bytes = client.outgoing();
            *bytes.last_mut().unwrap() ^= 1;
            send_all(&client.plain, &bytes).await;
            assert_eq!(receive(&server, 4).await, b"good");
            let error = server.recv(&mut [0; 10]).await.unwrap_err();
            assert!(error.to_string().contains("changed on its way"), "{error}");
        });
    }
}

#[test]
fn a_client_that_has_closed_its_direction_gets_the_rest() {
    for version in BOTH {
        with_pipe(8, move |runtime, client, server| async move {
            let (client, server) = connected(&runtime, client, server, version).await;
            client.send(b"last").await;
            client.session.borrow_mut().send_close_notify();
            client.flush().await;
            assert_eq!(receive(&server, 10).await, b"last");
            send_all(&server, b"answer").await;
            server.say_goodbye().await;
            server.shutdown();
            assert_eq!(client.receive(10).await.unwrap(), b"answer");
        });
    }
}

#[test]
fn more_certificates_than_a_chain_needs_are_refused() {
    for (sent, is_refused) in [("client+4", false), ("client+5", true), ("client+40", true)] {
        with_pipe(3, move |runtime, client, server| async move {
            let accepting = runtime.spawn("server", accept(server, "server"));
            let connecting = TlsClient::connect(client, sent, Version::Tls13);
            drop(runtime.spawn("client", async move {
                // It may be refused after its own part of the handshake.
                let _client = connecting.await;
                std::future::pending::<()>().await;
            }));
            let failure = accepting.await.err().map(|failure| failure.to_string());
            let told =
                failure.is_some_and(|told| told.contains("comes with more than four others"));
            assert_eq!(told, is_refused, "{sent}");
        });
    }
}

#[test]
fn tiny_records_are_counted_and_full_ones_hardly() {
    for (piece, least, most) in [(1, 40_000, 80_000), (300_000, 0, 2_000)] {
        with_pipe(4, move |runtime, client, server| async move {
            let (client, server) = connected(&runtime, client, server, Version::Tls13).await;
            let count = if piece == 1 { 3000 } else { piece };
            drop(runtime.spawn("client", async move {
                for piece in noise(1, count).chunks(piece) {
                    client.send(piece).await;
                }
                std::future::pending::<()>().await;
            }));
            receive(&server, count).await;
            let overhead = server.take_overhead_bytes();
            assert!((least..most).contains(&overhead), "{overhead} bytes with {count}");
            assert_eq!(server.take_overhead_bytes(), 0);
        });
    }
}
