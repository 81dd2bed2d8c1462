//! TLS: who gets in, the step from a plain connection, and the handshake's limits.
use super::tls_client::{TlsClient, Version};
use super::watched::count;
use super::world::*;
use crate::{ByteStream, Certificates, ServerOptions, Tls};
use tantalum_base::Durability::OnAck;
use tantalum_runtime::Runtime;
use tantalum_testing::certificates::{VALID_UNIX_SECONDS, folder};

const ACK: u32 = 1;
const INVALID: u32 = 0x8000_0003;
const TLS_REQD: u32 = 0x8000_0005;
const TOO_BIG: u32 = 0x8000_0009;
const STARTTLS: u32 = 5;
/// The length of the export, in an answer to EXPORT_NAME.
const SIZE: [u8; 8] = (64 * 4096_u64).to_be_bytes();

fn options(is_required: bool) -> ServerOptions {
    let certificates = Certificates::read(&folder("server"), || VALID_UNIX_SECONDS).unwrap();
    ServerOptions { tls: Some(Tls { certificates, is_required }), ..Default::default() }
}

impl Client {
    async fn start_tls(&mut self, certificates: &str) -> Result<(), rustls::Error> {
        self.option(STARTTLS, b"").await;
        assert_eq!(self.option_reply().await, (STARTTLS, ACK, vec![]));
        let stream = self.stream.clone();
        self.tls = Some(TlsClient::connect(stream, certificates, Version::Tls13).await?);
        Ok(())
    }
}

/// A client in TLS that is ready for requests.
async fn client(world: &World) -> Client {
    let mut client = world.connect();
    client.greet().await;
    client.start_tls("client").await.unwrap();
    client.go().await;
    client
}

#[test]
fn a_client_in_tls_writes_and_reads() {
    for is_required in [false, true] {
        with_server(1, options(is_required), OnAck, |world| async move {
            let client = client(&world).await;
            client.write(4096, &[7; 20_480]).await;
            assert_eq!(client.read(4096, 20_480).await, [7; 20_480]);
            let statistics = world.server.statistics();
            assert_eq!((statistics.connections_open, statistics.tls_connections_open), (1, 1));
            client.request(DISC, 0, 0, 0, &[]).await;
            assert!(client.is_closed().await);
            let statistics = world.server.statistics();
            assert_eq!((statistics.tls_connections, statistics.tls_handshakes_failed), (1, 0));
            assert_eq!((statistics.connections_failed, statistics.tls_connections_open), (0, 0));
        });
    }
}

#[test]
fn a_plain_client_is_refused_with_the_protocols_error_if_tls_is_required() {
    with_server(2, options(true), OnAck, |world| async move {
        let mut client = world.connect();
        client.greet().await;
        for (option, data) in [
            (3, vec![]),
            (6, b"\0\0\0\0\0\0".to_vec()),
            (7, b"\0\0\0\0\0\0".to_vec()),
            (8, vec![]),
            (10, vec![0; 8]),
            (7, vec![0; 300_000]),
            (0xdead_beef, vec![1]),
        ] {
            client.option(option, &data).await;
            let (answered, reply, words) = client.option_reply().await;
            assert_eq!((answered, reply), (option, TLS_REQD));
            assert!(words.starts_with(b"this server requires TLS"));
        }
        // It may still start it, or leave.
        client.start_tls("client").await.unwrap();
        client.go().await;
        let other = world.connect();
        other.greet().await;
        other.option(2, b"").await;
        assert_eq!(other.option_reply().await, (2, ACK, vec![]));
        assert_eq!(world.server.statistics().connections_failed, 0);
        let other = world.connect();
        other.greet().await;
        other.option(1, b"").await;
        assert!(other.is_closed().await);
        let failure = world.server.statistics().last_failure.unwrap();
        assert!(failure.contains("EXPORT_NAME without TLS"), "{failure}");
    });
}

#[test]
fn a_plain_client_is_let_in_if_tls_is_offered() {
    with_server(3, options(false), OnAck, |world| async move {
        let (plain, secure) = (world.client().await, client(&world).await);
        plain.write(0, &[3; 4096]).await;
        assert_eq!(secure.read(0, 4096).await, [3; 4096]);
        let statistics = world.server.statistics();
        assert_eq!((statistics.connections_open, statistics.tls_connections_open), (2, 1));
        assert_eq!(count(&world, "tantalum_nbd_tls_info", &["offered"]), 1);
        assert_eq!(count(&world, "tantalum_nbd_tls_connections", &[]), 1);
    });
}

#[test]
fn starttls_with_data_or_a_second_time_is_invalid() {
    with_server(4, options(false), OnAck, |world| async move {
        let mut client = world.connect();
        client.greet().await;
        client.option(STARTTLS, b"x").await;
        assert_eq!(client.option_reply().await.1, INVALID);
        client.option(STARTTLS, &[0; 10_000]).await;
        assert_eq!(client.option_reply().await.1, TOO_BIG);
        client.start_tls("client").await.unwrap();
        client.option(STARTTLS, b"").await;
        assert_eq!(client.option_reply().await.1, INVALID);
        client.go().await;
        client.write(0, &[1; 512]).await;
    });
}

#[test]
fn what_was_negotiated_before_tls_is_forgotten() {
    with_server(5, options(false), OnAck, |world| async move {
        let mut client = world.connect();
        client.greet().await;
        client.structured_options().await;
        client.start_tls("client").await.unwrap();
        // Metadata contexts need structured replies, which nobody asked for in TLS.
        client.option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation").await;
        assert_eq!(client.option_reply().await.1, INVALID);
        client.go().await;
        assert_eq!(client.read(0, 512).await, [0; 512], "a simple reply");
    });
}

#[test]
fn flags_of_the_client_hold_in_tls() {
    with_server(6, options(true), OnAck, |world| async move {
        let mut client = world.connect();
        client.greet().await;
        client.start_tls("client").await.unwrap();
        client.option(1, b"").await;
        assert_eq!(client.receive(10).await[..8], SIZE);
        client.write(0, &[1; 512]).await;
    });
}

#[test]
fn plain_bytes_behind_starttls_are_neither_options_nor_tls() {
    // In one piece with the option, and later in place of the handshake.
    for (at_once, sent) in [
        (true, &b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0"[..]),
        (true, b"\x16"),
        (false, b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0"),
    ] {
        for seed in 0..20 {
            with_server(seed, options(true), OnAck, move |world| async move {
                let client = world.connect();
                client.greet().await;
                let option = b"IHAVEOPT\0\0\0\x05\0\0\0\0";
                match at_once {
                    true => client.send(&[option, sent].concat()).await,
                    false => {
                        client.send(option).await;
                        assert_eq!(client.option_reply().await, (STARTTLS, ACK, vec![]));
                        client.send(sent).await;
                    }
                }
                let mut all = Vec::new();
                loop {
                    let more = client.receive(1).await;
                    if more.is_empty() {
                        break;
                    }
                    all.extend(more);
                    if all.len() == 20 {
                        // The bytes came in pieces: the rest is taken for TLS, which it is not.
                        client.stream.shutdown();
                    }
                }
                world.runtime.sleep(2_000_000_000).await;
                // An answer to STARTTLS, and an alert, but no answer to GO.
                assert!(all.len() <= 20 + 7, "{all:?}");
                let statistics = world.server.statistics();
                assert_eq!((statistics.tls_connections, statistics.reads), (0, 0));
                assert_eq!(statistics.connections_failed, 1);
            });
        }
    }
}

#[test]
fn an_option_put_behind_starttls_on_the_way_is_not_done_in_tls() {
    for seed in 0..20 {
        with_server(seed, options(true), OnAck, move |world| async move {
            let client = world.connect();
            client.greet().await;
            let go = b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0";
            client.send(&[b"IHAVEOPT\0\0\0\x05\0\0\0\0", &go[..]].concat()).await;
            // The client itself knows nothing of it.
            if client.receive(20).await.len() == 20 {
                let stream = client.stream.clone();
                let connected = TlsClient::connect(stream, "client", Version::Tls13).await;
                assert!(connected.is_err(), "seed {seed}");
            }
            assert_eq!(world.server.statistics().tls_connections, 0);
        });
    }
}

#[test]
fn a_client_that_is_refused_reads_why_and_the_server_tells_so() {
    for (name, reason) in [
        (
            "client-without-certificate",
            "the client sent no certificate; it may have none from a CA in ca-cert.pem",
        ),
        ("client-of-another-ca", "the client's certificate is of no CA in ca-cert.pem"),
        ("client-expired", "the client's certificate has expired"),
    ] {
        with_server(7, options(true), OnAck, move |world| async move {
            let mut client = world.connect();
            client.greet().await;
            client.start_tls(name).await.unwrap();
            let refused = client.tls.as_ref().unwrap().receive(1).await.unwrap_err();
            assert!(matches!(refused, rustls::Error::AlertReceived(_)), "{refused}");
            client.stream.shutdown();
            world.runtime.sleep(1_000).await;
            let statistics = world.server.statistics();
            assert_eq!(statistics.last_failure.as_deref(), Some(reason));
            assert_eq!((statistics.tls_connections, statistics.tls_handshakes_failed), (0, 1));
            assert_eq!(statistics.connections_open, 0);
        });
    }
}

#[test]
fn a_refused_client_that_does_not_leave_is_cut_off_soon() {
    with_server(8, options(true), OnAck, |world| async move {
        let mut client = world.connect();
        client.greet().await;
        client.start_tls("client-expired").await.unwrap();
        world.runtime.sleep(1_500_000_000).await;
        assert_eq!(world.server.statistics().connections_open, 0);
    });
}

#[test]
fn silence_in_the_handshake_ends_in_time_and_harms_nobody() {
    with_server(9, options(true), OnAck, |world| async move {
        let mut squatters = Vec::new();
        for at in 0..15 {
            let squatter = world.connect();
            squatter.greet().await;
            squatter.option(STARTTLS, b"").await;
            squatter.option_reply().await;
            let hello = TlsClient::new(squatter.stream.clone(), "client", Version::Tls13);
            let bytes = hello.outgoing();
            squatter.send(&bytes[..bytes.len() * at / 14]).await;
            squatters.push(squatter);
        }
        let working = client(&world).await;
        for _ in 0..100 {
            working.write(0, &[5; 9216]).await;
            world.runtime.sleep(100_000_000).await;
        }
        world.runtime.sleep(1_000_000_000).await;
        let statistics = world.server.statistics();
        assert_eq!(statistics.connections_open, 1);
        assert_eq!(statistics.tls_handshakes_failed, 15);
        assert!(statistics.last_failure.unwrap().contains("did not finish negotiation"));
        assert_eq!(working.read(0, 9216).await, [5; 9216]);
    });
}

#[test]
fn a_stopping_server_does_not_wait_for_handshakes() {
    with_server(10, options(true), OnAck, |world| async move {
        let squatter = world.connect();
        squatter.greet().await;
        squatter.option(STARTTLS, b"").await;
        squatter.option_reply().await;
        let before_ns = world.runtime.now_ns();
        world.stop().await;
        assert!(world.runtime.now_ns() - before_ns < 1_000_000_000);
        assert_eq!(world.server.statistics().tls_handshakes_failed, 0);
        assert!(squatter.is_closed().await);
    });
}

#[test]
fn replies_in_flight_at_a_stop_are_sent_in_tls() {
    for seed in 11..15 {
        with_server(seed, options(true), OnAck, |world| async move {
            let client = client(&world).await;
            client.write(0, &[9; 204_800]).await;
            let cookie = client.request(READ, 0, 0, 204_800, &[]).await;
            world.runtime.sleep(1_000_000).await;
            let stopping = {
                let world = std::rc::Rc::clone(&world);
                world.runtime.clone().spawn("stop", async move { world.stop().await })
            };
            assert_eq!(client.reply().await, (0, cookie));
            assert_eq!(client.receive(204_800).await, [9; 204_800]);
            assert!(client.is_closed().await);
            stopping.await;
        });
    }
}

#[test]
fn many_requests_both_ways_at_once_are_all_answered() {
    for seed in 20..24 {
        with_server(seed, options(true), OnAck, |world| async move {
            let client = client(&world).await;
            const REQUESTS: u64 = 60;
            let asking = client.clone();
            let sender = world.runtime.spawn("sender", async move {
                // Writes and reads in turn, more than all buffers hold, before the first answer is read.
                for number in 0..REQUESTS {
                    match number % 2 {
                        0 => asking.request(WRITE, 0, 0, 204_800, &[8; 204_800]).await,
                        _ => asking.request(READ, 0, 0, 204_800, &[]).await,
                    };
                }
            });
            world.runtime.sleep(1_000_000).await;
            let mut answered = 0;
            while answered < REQUESTS {
                let (error, cookie) = client.reply().await;
                assert_eq!(error, 0);
                if cookie % 2 == 0 {
                    assert_eq!(client.receive(204_800).await.len(), 204_800);
                }
                answered += 1;
            }
            sender.await;
        });
    }
}

#[test]
fn the_memory_of_tls_is_counted_and_comes_back() {
    with_server(25, options(true), OnAck, |world| async move {
        let plain = world.connect();
        plain.greet().await;
        let before = world.server.statistics().bytes_held;
        let client = client(&world).await;
        let with = world.server.statistics().bytes_held - before;
        assert!(with >= before + tantalum_tls::HELD_BYTES as u64, "{with}");
        client.request(DISC, 0, 0, 0, &[]).await;
        assert!(client.is_closed().await);
        world.runtime.sleep(1_000).await;
        assert_eq!(world.server.statistics().bytes_held, before);
    });
}

#[test]
fn half_a_request_is_cut_off_in_tls_too() {
    with_server(26, options(true), OnAck, |world| async move {
        let client = client(&world).await;
        client.send(&0x2560_9513_u32.to_be_bytes()).await;
        client.tls.as_ref().unwrap().session.borrow_mut().send_close_notify();
        client.tls.as_ref().unwrap().flush().await;
        assert!(client.is_closed().await);
        let failure = world.server.statistics().last_failure.unwrap();
        assert!(failure.contains("in the middle of a message"), "{failure}");
    });
}
