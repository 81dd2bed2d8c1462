//! Changes wait for pages that a transaction of another client of the device holds.
use super::world::*;
use crate::ServerOptions;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::Durability::OnAck;
use tantalum_base::{PageBuf, PageDevice, PageNo};
use tantalum_runtime::Runtime;

const HELD: PageNo = PageNo(5);

/// Runs `command` with `data` while the page is held; returns its error, and the content of the page then. The
/// transaction that holds the page writes all of it before it ends.
async fn done_beside_a_transaction(
    world: &Rc<World>,
    command: (u16, u16),
    at: (u64, u32),
    data: &[u8],
) -> (u32, Vec<u8>) {
    let client = world.client().await;
    world.device.held.set(None);
    client.write(HELD.0 * 4096, &[1; 4096]).await;
    world.device.held.set(Some(HELD));
    world.device.refused.set(0);
    let answered = Rc::new(Cell::new(false));
    let request = {
        let (client, answered, data) = (client.clone(), Rc::clone(&answered), data.to_vec());
        world.runtime.spawn("a request", async move {
            let error = client.call(command.0, command.1, at.0, at.1, &data).await;
            answered.set(true);
            error
        })
    };
    // Requests of other clients go on.
    let other = world.client().await;
    for _ in 0..20 {
        other.write((HELD.0 + 20) * 4096, &[3; 4096]).await;
    }
    world.runtime.sleep(3_600_000_000_000).await;
    assert!(!answered.get(), "it waits, however long");
    assert_eq!(world.device.refused.get(), 1, "and asks nobody meanwhile");
    world.device.held.set(None);
    let committed = PageBuf::copy_from(&[2; 4096]);
    PageDevice::write(&*world.device, HELD, &[committed], None).await.unwrap();
    world.device.release();
    let error = request.await;
    (error, other.read(HELD.0 * 4096, 4096).await)
}

#[test]
fn changes_of_held_pages_wait_and_come_behind_what_held_them() {
    for seed in 0..10 {
        with_server(seed, ServerOptions::default(), OnAck, move |world| async move {
            let begin = HELD.0 * 4096;
            let sector = |byte| {
                let mut page = vec![2; 4096];
                page[512..1024].fill(byte);
                page
            };
            let cases = [
                ((WRITE, 0), (begin, 4096), vec![9; 4096], vec![9; 4096]),
                // More than the device accepts at once.
                ((WRITE, 0), (begin - 3 * 4096, 8 * 4096), vec![9; 8 * 4096], vec![9; 4096]),
                ((WRITE, 0), (begin + 512, 512), vec![9; 512], sector(9)),
                ((TRIM, 0), (begin - 4096, 3 * 4096), vec![], vec![0; 4096]),
                ((ZEROES, 0), (begin, 4096), vec![], vec![0; 4096]),
                ((ZEROES, NO_HOLE), (begin - 4096, 3 * 4096), vec![], vec![0; 4096]),
                ((ZEROES, 0), (begin + 512, 512), vec![], sector(0)),
            ];
            for (number, (command, at, data, expected)) in cases.into_iter().enumerate() {
                let (error, page) = done_beside_a_transaction(&world, command, at, &data).await;
                assert_eq!((error, page), (0, expected), "seed {seed}, case {number}");
            }
        });
    }
}

#[test]
fn a_server_that_stops_does_not_wait_for_transactions() {
    with_server(1, ServerOptions::default(), OnAck, |world| async move {
        let client = world.client().await;
        world.device.held.set(Some(HELD));
        client.request(WRITE, 0, HELD.0 * 4096, 4096, &[9; 4096]).await;
        while world.device.refused.get() == 0 {
            world.runtime.sleep(1_000).await;
        }
        world.stop().await;
        let reply = client.receive(16).await;
        assert!(reply.is_empty() || reply[4..8] == 108_u32.to_be_bytes(), "{reply:?}");
        assert_eq!(world.device.refused.get(), 1);
    });
}
