//! Clients that stall, and the memory that they may hold meanwhile.
use super::world::*;
use crate::{ByteStream, ServerOptions};
use std::rc::Rc;
use tantalum_base::Durability::OnAck;
use tantalum_runtime::Runtime;

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn half_open_clients_lock_nobody_out() {
    let options = ServerOptions { connections_max: 2, handshakes_max: 4, ..Default::default() };
    with_server(1, options, OnAck, |world| async move {
        let mut slow = Vec::new();
        for sent in 0..4 {
            let client = world.connect();
            client.receive(18).await;
            client.send(&b"\0\0\0\x03IHAVEOPT"[..4 * sent]).await;
            slow.push(client);
        }
        // The one longest in negotiation is evicted, and no other.
        let good = world.client().await;
        good.write(0, &[1; 512]).await;
        assert!(slow.remove(0).is_closed().await);
        let statistics = world.server.statistics();
        assert_eq!((statistics.connections_evicted, statistics.connections_refused), (1, 0));
        let failure = statistics.last_failure.as_deref();
        assert_eq!(failure, Some("the client did not finish negotiation in time"));
        let other = world.client().await;
        other.write(0, &[2; 512]).await;
        // All places are taken, and those who come are turned away at once.
        assert!(world.connect().is_closed().await);
        // A client that is still negotiating then is turned away when it has finished.
        slow[0].go_in_vain().await;
        world.runtime.sleep(1_000_000).await;
        let statistics = world.server.statistics();
        assert_eq!((statistics.connections_evicted, statistics.connections_refused), (1, 2));
        drop(other);
        good.write(0, &[3; 512]).await;
    });
}

#[test]
fn who_has_finished_negotiation_gives_way_to_nobody() {
    let options = ServerOptions { connections_max: 3, ..Default::default() };
    with_server(2, options, OnAck, |world| async move {
        let good = [world.client().await, world.client().await, world.client().await];
        for _ in 0..5 {
            assert!(world.connect().is_closed().await);
        }
        let statistics = world.server.statistics();
        assert_eq!((statistics.connections_evicted, statistics.connections_refused), (0, 5));
        for client in &good {
            client.write(0, &[1; 512]).await;
        }
    });
}

/// A WRITE's header.
fn write_header(length: u32) -> Vec<u8> {
    let mut header = b"\x25\x60\x95\x13\0\0\0\x01abcdefgh\0\0\0\0\0\0\0\0".to_vec();
    header.extend(length.to_be_bytes());
    header
}

#[test]
fn half_a_request_is_waited_for_only_so_long() {
    for seed in 0..4 {
        with_server(seed, ServerOptions::default(), OnAck, move |world| async move {
            let (idle, good) = (world.client().await, world.client().await);
            // Stalls in the header, after it, and in the payload.
            for sent in [1, 27, 28, 28 + 5_000] {
                let client = world.client().await;
                let before_ns = world.runtime.now_ns();
                let mut bytes = write_header(64 * 4096);
                bytes.resize(28 + 64 * 4096, 7);
                client.send(&bytes[..sent]).await;
                assert!(client.is_closed().await, "seed {seed}");
                let waited_ns = world.runtime.now_ns() - before_ns;
                assert_eq!(waited_ns / SECOND_NS, 60, "seed {seed}, {sent} bytes sent");
                world.runtime.sleep(1_000_000).await;
                let failure = world.server.statistics().last_failure;
                let failure = failure.as_deref();
                assert_eq!(failure, Some("the client left a request unfinished in time"));
            }
            assert_eq!(good.read(0, 4096).await, [0; 4096], "half a write was done");
            // A client that is silent between two requests may stay.
            world.runtime.sleep(100_000 * SECOND_NS).await;
            idle.write(0, &[1; 512]).await;
            assert_eq!(world.server.statistics().connections_open, 2);
        });
    }
}

/// Sends a WRITE of 256 KiB, `step` bytes per second; returns whether the server accepted it.
async fn drip(world: &World, step: usize) -> bool {
    let client = Rc::new(world.client().await);
    let (sender, runtime) = (Rc::clone(&client), world.runtime.clone());
    let mut bytes = write_header(64 * 4096);
    bytes.resize(28 + 64 * 4096, 7);
    let sending = world.runtime.spawn("drip", async move {
        for piece in bytes.chunks(step) {
            sender.send(piece).await;
            runtime.sleep(SECOND_NS).await;
        }
    });
    let answered = client.receive(16).await.len() == 16;
    sending.await;
    answered
}

#[test]
fn a_request_that_drips_is_cut_and_a_slow_one_is_taken() {
    with_server(5, ServerOptions::default(), OnAck, |world| async move {
        // The limit: 60 s, and 4 s for 256 KiB at 64 KiB a second.
        assert!(drip(&world, 4_300).await);
        let before_ns = world.runtime.now_ns();
        assert!(!drip(&world, 1_000).await);
        assert!(world.runtime.now_ns() - before_ns >= 64 * SECOND_NS);
        // A header may take no longer than a stall.
        assert!(!drip(&world, 1).await);
    });
}

#[test]
fn replies_that_are_not_taken_are_waited_for_only_so_long() {
    with_server(6, ServerOptions::default(), OnAck, |world| async move {
        let (client, slow) = (world.client().await, world.client().await);
        let before_ns = world.runtime.now_ns();
        for _ in 0..8 {
            client.request(READ, 0, 0, 64 * 4096, &[]).await;
            slow.request(READ, 0, 0, 64 * 4096, &[]).await;
        }
        // The client receives 2 MiB in 20 s, more than 64 KiB per second.
        for _ in 0..8 {
            world.runtime.sleep(5 * SECOND_NS / 2).await;
            assert_eq!(slow.reply().await.0, 0);
            assert_eq!(slow.receive(64 * 4096).await.len(), 64 * 4096);
        }
        while world.server.statistics().connections_open == 2 {
            world.runtime.sleep(SECOND_NS).await;
        }
        let waited_ns = world.runtime.now_ns() - before_ns;
        assert!((60..63).contains(&(waited_ns / SECOND_NS)), "{waited_ns}");
        let failure = world.server.statistics().last_failure;
        assert_eq!(failure.as_deref(), Some("the client did not take its replies in time"));
        slow.write(0, &[1; 512]).await;
    });
}

/// Clients request as much as they may, receive no replies, and leave.
#[test]
fn what_greedy_clients_hold_is_bounded_and_given_back() {
    const MIB: u64 = 1 << 20;
    for seed in 0..2 {
        let options = ServerOptions {
            request_bytes_max: 256 << 10,
            in_flight_bytes_max: 8 * MIB,
            ..Default::default()
        };
        with_server(seed, options, OnAck, move |world| async move {
            let good = world.client().await;
            let mut greedy = Vec::new();
            for number in 0..12 {
                let client = Rc::new(world.client().await);
                let sender = Rc::clone(&client);
                let sending = world.runtime.spawn("greedy", async move {
                    for _ in 0..100 {
                        let (command, payload) = if number % 2 == 0 {
                            (READ, &[][..])
                        } else {
                            (WRITE, &[1; 64 * 4096][..])
                        };
                        sender.request(command, 0, 0, 64 * 4096, payload).await;
                    }
                });
                greedy.push((client, sending));
            }
            world.runtime.sleep(SECOND_NS).await;
            // Nobody's memory is taken, also for the longest requests.
            let before_ns = world.runtime.now_ns();
            good.write(0, &[2; 64 * 4096]).await;
            good.read(0, 64 * 4096).await;
            assert!(world.runtime.now_ns() - before_ns < SECOND_NS / 10, "seed {seed}");
            let held = world.server.statistics();
            let bound = 12 * 8 * MIB + MIB + 13 * MIB / 4;
            assert!(held.bytes_held_max <= bound, "seed {seed}: {held:?}");
            assert!(held.bytes_held >= 40 * MIB, "seed {seed}: the load is no load: {held:?}");
            assert_eq!(held.memory_given_back, 0);
            for (client, _) in &greedy {
                client.stream.shutdown();
            }
            for (_, sending) in greedy {
                sending.await;
            }
            while world.server.statistics().connections_open > 1 {
                world.runtime.sleep(1_000).await;
            }
            let held = world.server.statistics();
            assert_eq!(held.bytes_held, MIB / 4, "seed {seed}: one idle connection");
            assert!(held.memory_given_back > 0, "seed {seed}");
            good.write(0, &[3; 64 * 4096]).await;
        });
    }
}
