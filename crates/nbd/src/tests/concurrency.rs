use super::world::*;
use crate::ServerOptions;
use std::rc::Rc;
use tantalum_base::{Durability::OnAck, Rng};
use tantalum_runtime::Runtime;

/// Eight connections write one sector each of the same page, over and over.
#[test]
fn sub_page_writes_of_one_page_do_not_lose_each_other() {
    for seed in 0..10 {
        with_server(seed, ServerOptions::default(), OnAck, move |world| async move {
            let mut clients = Vec::new();
            for _ in 0..8 {
                clients.push(Rc::new(world.client().await));
            }
            for round in 0..20_u8 {
                let mut writers = Vec::new();
                for sector in 0..8_u8 {
                    let client = Rc::clone(&clients[usize::from(sector)]);
                    writers.push(world.runtime.spawn("writer", async move {
                        client.write(4096 + u64::from(sector) * 512, &[round ^ sector; 512]).await;
                    }));
                }
                for writer in writers {
                    writer.await;
                }
                let page = clients[0].read(4096, 4096).await;
                for sector in 0..8_u8 {
                    let bytes = &page[usize::from(sector) * 512..][..512];
                    assert_eq!(bytes, [round ^ sector; 512], "seed {seed}, round {round}");
                }
            }
        });
    }
}

/// A sector of a page and the whole page are written concurrently, again and again: the page must
/// never hold the sector of the round together with the rest of an older page.
#[test]
fn whole_page_writes_are_ordered_with_read_modify_writes() {
    for seed in 0..10 {
        with_server(seed, ServerOptions::default(), OnAck, move |world| async move {
            let (one, two) = (Rc::new(world.client().await), Rc::new(world.client().await));
            for round in 1..60_u8 {
                let part = {
                    let one = Rc::clone(&one);
                    world.runtime.spawn("part", async move { one.write(512, &[255; 512]).await })
                };
                let whole = {
                    let two = Rc::clone(&two);
                    let zeroes = round % 3 == 0;
                    world.runtime.spawn("whole", async move {
                        if zeroes {
                            assert_eq!(two.call(ZEROES, 0, 0, 4096, &[]).await, 0);
                        } else {
                            two.write(0, &[round; 4096]).await;
                        }
                    })
                };
                part.await;
                whole.await;
                let content = if round % 3 == 0 { 0 } else { round };
                let page = one.read(0, 4096).await;
                assert!(
                    page[..512].iter().chain(&page[1024..]).all(|&byte| byte == content),
                    "seed {seed}, round {round}: an older page came back"
                );
                assert!(page[512..1024].iter().all(|&byte| byte == content || byte == 255));
            }
        });
    }
}

#[test]
fn many_requests_in_flight_are_answered_each_with_its_own() {
    for seed in 0..4 {
        let options = ServerOptions { requests_max: 7, ..Default::default() };
        with_server(seed, options, OnAck, move |world| async move {
            let client = world.client().await;
            for page in 0..64_u8 {
                client.write(u64::from(page) * 4096, &[page; 4096]).await;
            }
            let mut rng = Rng::split(seed, "reads");
            let mut asked = std::collections::BTreeMap::new();
            for _ in 0..200 {
                let sector = rng.below(64 * 8);
                let cookie = client.request(READ, 0, sector * 512, 512, &[]).await;
                asked.insert(cookie, (sector / 8) as u8);
            }
            while !asked.is_empty() {
                let (error, cookie) = client.reply().await;
                assert_eq!(error, 0);
                let page = asked.remove(&cookie).expect("a reply to what was asked");
                assert_eq!(client.receive(512).await, [page; 512]);
            }
            let at_once = world.device.in_flight_max.get();
            assert!(at_once > 1 && at_once <= 7, "{at_once} requests at once");
        });
    }
}

#[test]
fn a_stopping_server_answers_what_is_in_flight() {
    with_server(5, ServerOptions::default(), OnAck, |world| async move {
        let (client, idle) = (world.client().await, world.client().await);
        client.write(0, &[0; 4096]).await;
        for page in 0..20_u64 {
            client.request(WRITE, 0, page * 4096, 4096, &[7; 4096]).await;
        }
        while client.stream.unreceived() > 0 || world.device.in_flight.get() == 0 {
            world.runtime.sleep(10).await;
        }
        let taken = world.server.statistics().writes;
        assert!(world.device.in_flight.get() > 0);
        world.stop().await;
        let mut answered = 1;
        loop {
            let reply = client.receive(16).await;
            if reply.is_empty() {
                break;
            }
            assert_eq!(reply[4..8], [0; 4]);
            answered += 1;
        }
        assert!(answered >= taken, "{answered} of {taken} writes answered");
        assert_eq!(answered, world.server.statistics().writes);
        assert!(idle.is_closed().await);
        assert_eq!(world.server.statistics().connections_failed, 0);
    });
}

#[test]
fn a_client_that_takes_no_replies_does_not_hold_up_the_stop() {
    with_server(6, ServerOptions::default(), OnAck, |world| async move {
        let client = world.client().await;
        for _ in 0..8 {
            client.request(READ, 0, 0, 64 * 4096, &[]).await;
        }
        world.runtime.sleep(1_000_000).await;
        let before_ns = world.runtime.now_ns();
        world.stop().await;
        assert_eq!(world.runtime.now_ns() - before_ns, 5_000_000_000);
    });
}
