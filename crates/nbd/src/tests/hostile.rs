use super::world::*;
use crate::ServerOptions;
use std::rc::Rc;
use tantalum_base::{Durability::OnAck, Rng};
use tantalum_runtime::Runtime;

/// The bytes that a hostile client sends after the server's greeting; each must end its connection.
fn hostile_negotiations() -> Vec<(&'static str, Vec<u8>)> {
    let option = |number: u32, length: u32, data: &[u8]| {
        let mut bytes = b"\0\0\0\x03IHAVEOPT".to_vec();
        bytes.extend(number.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(data);
        bytes
    };
    let mut flood = b"\0\0\0\x03".to_vec();
    for _ in 0..10_000 {
        flood.extend(&option(3, 0, b"")[4..]);
    }
    vec![
        ("unknown flags", b"\xff\xff\xff\xff".to_vec()),
        ("an HTTP request", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("no option magic", b"\0\0\0\x03IHAVEOPSxxxxxxxx".to_vec()),
        ("a huge option", option(7, u32::MAX, b"")),
        ("a huge export name", option(1, 0x10_0000, b"")),
        ("an unknown export name", option(1, 3, b"abc")),
        ("options without end", flood),
    ]
}

#[test]
fn hostile_negotiation_closes_that_connection_only() {
    with_server(1, ServerOptions::default(), OnAck, |world| async move {
        let good = world.client().await;
        let cases = hostile_negotiations();
        let count = cases.len() as u64;
        for (what, bytes) in cases {
            let client = Rc::new(world.connect());
            let sender = Rc::clone(&client);
            let sending = world.runtime.spawn("hostile", async move { sender.send(&bytes).await });
            while !client.receive(4096).await.is_empty() {}
            sending.await;
            assert!(client.is_closed().await, "{what}");
            good.write(0, &[1; 512]).await;
        }
        let statistics = world.server.statistics();
        assert_eq!(statistics.connections_failed, count);
        assert_eq!(statistics.last_failure.as_deref(), Some("the client sent options without end"));
    });
}

#[test]
fn a_handshake_cut_off_anywhere_leaves_nothing_open() {
    with_server(2, ServerOptions::default(), OnAck, |world| async move {
        let mut bytes = b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0".to_vec();
        bytes.extend(b"\x25\x60\x95\x13\0\0\0\x01abcdefgh\0\0\0\0\0\0\x10\0\0\0\x02\0");
        bytes.extend([9; 512]);
        for cut in (0..bytes.len()).step_by(3) {
            let client = world.connect();
            client.receive(18).await;
            client.send(&bytes[..cut]).await;
            world.runtime.sleep(100_000).await;
            tantalum_runtime::ByteStream::shutdown(&client.stream);
            world.runtime.sleep(100_000).await;
            assert_eq!(world.server.statistics().connections_open, 0, "cut at {cut}");
        }
        let client = world.client().await;
        assert_eq!(client.read(4096, 512).await, [0; 512], "half a write was done");
    });
}

#[test]
fn a_silent_client_is_sent_away_and_a_slow_one_is_not() {
    with_server(3, ServerOptions::default(), OnAck, |world| async move {
        let (silent, slow) = (world.connect(), world.client().await);
        silent.receive(18).await;
        world.runtime.sleep(11_000_000_000).await;
        assert!(silent.is_closed().await);
        slow.write(0, &[1; 512]).await;
    });
}

#[test]
fn a_request_without_magic_ends_the_connection_after_its_replies() {
    with_server(4, ServerOptions::default(), OnAck, |world| async move {
        let client = world.client().await;
        client.request(WRITE, 0, 0, 4096, &[5; 4096]).await;
        client.send(&[0xaa; 28]).await;
        assert_eq!(client.reply().await.0, 0);
        assert!(client.is_closed().await);
        let other = world.client().await;
        assert_eq!(other.read(0, 4096).await, [5; 4096]);
    });
}

#[test]
fn noise_never_stops_the_server() {
    for seed in 0..30 {
        with_server(seed, ServerOptions::default(), OnAck, move |world| async move {
            let mut rng = Rng::split(seed, "noise");
            let client = world.client().await;
            let mut noise = vec![0; 4096];
            for _ in 0..rng.below(50) {
                rng.fill(&mut noise);
                let (command, flags) = (rng.below(8) as u16, rng.below(32) as u16);
                let length = rng.below(9) as u32 * 512;
                let payload = if command == WRITE { length as usize } else { 0 };
                client
                    .request(command, flags, rng.below(80) * 4096, length, &noise[..payload])
                    .await;
            }
            client.send(&noise).await;
            drop(client);
            let good = world.client().await;
            good.write(0, &[1; 4096]).await;
            assert_eq!(good.read(0, 4096).await, [1; 4096]);
        });
    }
}

#[test]
fn connections_past_the_limit_are_turned_away() {
    let options = ServerOptions { connections_max: 2, ..Default::default() };
    with_server(7, options, OnAck, |world| async move {
        let (one, _two) = (world.client().await, world.client().await);
        assert!(world.connect().is_closed().await);
        assert_eq!(world.server.statistics().connections_refused, 1);
        one.request(DISC, 0, 0, 0, &[]).await;
        assert!(one.is_closed().await);
        world.runtime.sleep(1_000_000).await;
        world.client().await.write(0, &[1; 512]).await;
    });
}

/// A server reads from a client that sends and never receives only up to its budget.
#[test]
fn bytes_in_flight_are_bounded() {
    let options = ServerOptions {
        request_bytes_max: 64 << 10,
        in_flight_bytes_max: 1 << 20,
        ..Default::default()
    };
    with_server(8, options, OnAck, |world| async move {
        let client = Rc::new(world.client().await);
        let sender = Rc::clone(&client);
        let sending = world.runtime.spawn("sender", async move {
            for _ in 0..1000 {
                sender.request(READ, 0, 0, 64 << 10, &[]).await;
            }
            for _ in 0..100_000 {
                sender.request(FLUSH, 0, 0, 0, &[]).await;
            }
        });
        world.runtime.sleep(1_000_000_000).await;
        // The reads that fit the budget, and those whose replies the pipe itself holds.
        let reads = world.server.statistics().reads;
        assert!((16..=24).contains(&reads), "{reads} reads taken");
        assert_eq!(world.server.statistics().flushes, 0);
        // Once the client takes its replies, everything is answered.
        // (Cookies count up: the first thousand are the reads.)
        for _ in 0..101_000 {
            let (error, cookie) = client.reply().await;
            assert_eq!(error, 0);
            if cookie <= 1000 {
                assert_eq!(client.receive(64 << 10).await.len(), 64 << 10);
            }
        }
        sending.await;
    });
}
