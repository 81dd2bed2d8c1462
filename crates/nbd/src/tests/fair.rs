//! Greedy clients and clients that have gone, beside a modest one.
use super::memory_device::MemoryDevice;
use super::world::*;
use crate::ServerOptions;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::Durability::OnAck;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{ByteStream, Runtime, Virtual, yield_now};

const CLIENTS: usize = 15;

/// Sends `request` without a pause, as it is on the wire, and takes the replies.
async fn flood(world: &Rc<World>, request: Vec<u8>) {
    let client = Rc::new(world.structured_client().await);
    let taker = Rc::clone(&client);
    drop(
        world
            .runtime
            .spawn("taker", async move { while !taker.receive(1 << 16).await.is_empty() {} }),
    );
    drop(world.runtime.spawn("flood", async move {
        let many = request.repeat(64);
        let mut left = &many[..];
        while let Ok(sent @ 1..) = client.stream.send(left).await {
            left = &left[sent..];
            if left.is_empty() {
                left = &many;
            }
        }
    }));
}

fn header(command: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(command.to_be_bytes());
    bytes.extend(*b"a cookie");
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// Requests answered for each request of a client that has one in flight at a time, beside many that send `request`
/// without a pause.
fn requests_for_one(request: Vec<u8>) -> u64 {
    let answered = Rc::new(Cell::new(0));
    let told = Rc::clone(&answered);
    let runtime = Virtual::new(Schedule::Fifo);
    // Time does not go on while there is work, so the device must not wait.
    let device = MemoryDevice::new(64, 4, OnAck);
    with_server_of(device, runtime, 1, ServerOptions::default(), |world| async move {
        let modest = world.client().await;
        for _ in 0..CLIENTS {
            flood(&world, request.clone()).await;
        }
        for _ in 0..200 {
            modest.read(0, 4096).await;
        }
        let all = |world: &World| {
            let now = world.server.statistics();
            now.reads + now.writes + now.flushes + now.block_statuses + now.errors
        };
        let before = all(&world);
        for _ in 0..400 {
            modest.read(0, 4096).await;
        }
        told.set((all(&world) - before) / 400);
    });
    answered.get()
}

#[test]
fn a_modest_client_has_its_share_beside_floods_of_small_requests() {
    let mut write = header(WRITE, 4096 + 512, 512);
    write.extend([7; 512]);
    let floods = [
        ("unknown commands", header(99, 0, 0)),
        ("flushes", header(FLUSH, 0, 0)),
        ("writes of a part of one page", write),
        ("block status", header(STATUS, 0, 64 * 4096)),
    ];
    for (what, request) in floods {
        let requests = requests_for_one(request);
        // A fair share is one of 16.
        assert!(requests <= 2 * (CLIENTS as u64 + 1), "{what}: one of {requests} requests");
    }
}

#[test]
fn long_commands_of_a_client_that_has_gone_end_at_their_next_step() {
    with_server(2, ServerOptions::default(), OnAck, |world| async move {
        let client = world.client().await;
        for _ in 0..64 {
            client.request(ZEROES, NO_HOLE, 0, 64 * 4096, &[]).await;
        }
        while world.server.statistics().write_zeroes < 64 {
            yield_now().await;
        }
        let before = world.device.writes.get();
        client.stream.shutdown();
        while world.server.statistics().connections_open > 0 {
            world.runtime.sleep(100).await;
        }
        // The device takes four pages at a time: each command has 16 steps.
        let after = world.device.writes.get() - before;
        assert!(after < 64 * 12, "{after} writes for nobody");
        assert_eq!(world.server.statistics().errors, 0, "nobody is told");
    });
}

#[test]
fn a_client_that_says_goodbye_has_its_commands_done() {
    with_server(3, ServerOptions::default(), OnAck, |world| async move {
        let client = world.client().await;
        client.write(0, &[1; 64 * 512]).await;
        client.request(ZEROES, NO_HOLE, 0, 64 * 4096, &[]).await;
        client.request(DISC, 0, 0, 0, &[]).await;
        assert_eq!(client.reply().await.0, 0);
        assert!(client.is_closed().await);
        assert_eq!(world.client().await.read(0, 64 * 512).await, [0; 64 * 512]);
    });
}

#[test]
fn a_hasty_stop_waits_for_no_client() {
    with_server(4, ServerOptions::default(), OnAck, |world| async move {
        let client = world.client().await;
        for _ in 0..8 {
            client.request(READ, 0, 0, 64 * 4096, &[]).await;
        }
        world.runtime.sleep(1_000_000).await;
        let before_ns = world.runtime.now_ns();
        world.server.hasten();
        world.stop().await;
        assert!(world.runtime.now_ns() - before_ns < 1_000_000_000);
    });
}
