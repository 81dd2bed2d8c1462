//! Clients that stall a real server on real sockets.
mod support;

use std::io::{Read, Write};
use support::raw::{greeted, negotiated, request, rest, write_page};
use support::serve;
use tantalum_base::Durability;
use tantalum_nbd::ServerOptions;

const MIB: u64 = 1 << 20;

#[test]
fn half_open_connections_make_room_for_clients() {
    let options = ServerOptions { handshakes_max: 16, ..Default::default() };
    let serving = serve(MIB, Durability::OnAck, options);
    let socket = serving.file("nbd.sock");
    // Open as many connections as the limit of handshakes allows: silent ones, and ones with half an option.
    let mut slow: Vec<_> = (0..16).map(|_| greeted(&socket)).collect();
    for stream in &mut slow[8..] {
        stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\xff\xff").unwrap();
    }
    let mut clients: Vec<_> = (0..16).map(|_| negotiated(&socket)).collect();
    for (page, client) in (0..).zip(&mut clients) {
        write_page(client, page);
    }
    // The oldest made room for the first, which then needed no place among them.
    assert_eq!(rest(&mut slow[0]), b"");
    drop(slow);
    let statistics = serving.finish();
    assert_eq!((statistics.connections_evicted, statistics.connections_refused), (1, 0));
    assert_eq!(statistics.writes, 16);
}

#[test]
fn a_client_that_stalls_is_cut_off_and_the_others_are_served() {
    let options = ServerOptions { stall_ms_max: 200, ..Default::default() };
    let serving = serve(64 * MIB, Durability::OnAck, options);
    let socket = serving.file("nbd.sock");
    let mut idle = negotiated(&socket);
    for half in [&request(1, 0, 4096)[..20], &request(1, 0, 32 << 20), &[0x25]] {
        let mut stalled = negotiated(&socket);
        stalled.write_all(half).unwrap();
        assert_eq!(rest(&mut stalled), b"");
        write_page(&mut idle, 1);
    }
    // It sends requests and receives no replies; the server reads up to its budget, then cuts it off.
    let mut greedy = negotiated(&socket);
    while greedy.write_all(&request(0, 0, 1 << 20)).is_ok() {}
    write_page(&mut idle, 2);
    let statistics = serving.finish();
    assert_eq!((statistics.connections_failed, statistics.writes), (4, 4));
    assert_eq!(
        statistics.last_failure.as_deref(),
        Some("the client did not take its replies in time")
    );
}

#[test]
fn what_greedy_clients_held_goes_back_to_the_operating_system() {
    let serving = serve(64 * MIB, Durability::OnAck, ServerOptions::default());
    let socket = serving.file("nbd.sock");
    let mut good = negotiated(&socket);
    let mut greedy: Vec<_> = (0..8).map(|_| negotiated(&socket)).collect();
    for stream in &mut greedy {
        for _ in 0..4 {
            stream.write_all(&request(0, 0, 32 << 20)).unwrap();
        }
    }
    // The request is answered; the client receives only the header of the reply.
    greedy[0].read_exact(&mut [0; 16]).unwrap();
    // Small requests have separate memory.
    for page in 0..100 {
        write_page(&mut good, page);
    }
    drop(greedy);
    drop(good);
    let statistics = serving.finish();
    assert!(statistics.bytes_held_max > 32 * MIB, "{statistics:?}");
    assert!(statistics.bytes_held_max <= (256 + 9 + 3) * MIB, "{statistics:?}");
    assert_eq!(statistics.bytes_held, 0);
    assert!(statistics.memory_given_back > 0, "{statistics:?}");
}
