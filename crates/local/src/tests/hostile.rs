//! Clients that send invalid messages, stall, flood or vanish harm only themselves.
use super::world::{Client, World, content, with_server};
use crate::protocol::{BODY_BYTES_MAX, HEAD_BYTES, Head, Hello, Kind, encode_call, encode_reply};
use crate::session::SMALL_BYTES;
use crate::{Answer, Call, Level, Raise, Request, ServerOptions};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, PageRange, Rng};
use tantalum_runtime::{ByteStream, Runtime};

/// An honest client finds the expected content.
async fn an_honest_one_is_served(world: &Rc<World>) {
    let client = world.client().await;
    assert_eq!(client.raise(1, Level::Exclusive).await, Level::Exclusive);
    client.ask(Request::WriteScattered(vec![(PageNo(1), content(7))])).await.unwrap();
    assert_eq!(client.read(1).await, content(7));
    client.die();
}

#[test]
fn random_bytes_are_no_requests() {
    for seed in 0..60 {
        with_server(seed, ServerOptions::default(), move |world| async move {
            let mut rng = Rng::split(seed, "bytes");
            for greets in [false, true] {
                let client = match greets {
                    true => world.client().await,
                    false => Client::over(world.connect()),
                };
                let mut bytes = vec![0; 1 + rng.below(200) as usize];
                rng.fill(&mut bytes);
                if rng.chance(0.5) {
                    // A valid head with an invalid body.
                    let kinds =
                        [Kind::Write, Kind::WriteScattered, Kind::Share, Kind::Raise, Kind::Done];
                    let kind = kinds[rng.below(kinds.len() as u64) as usize];
                    let head = Head { kind, body_bytes: bytes.len(), number: 5 };
                    bytes.splice(..0, head.encode());
                }
                client.send(&bytes).await;
                if rng.chance(0.5) {
                    client.die();
                }
                an_honest_one_is_served(&world).await;
                client.die();
            }
            world.until_clients(0).await;
        });
    }
}

#[test]
fn whole_requests_for_nonsense_are_refused_and_the_client_stays() {
    with_server(3, ServerOptions::default(), |world| async move {
        let client = world.client().await;
        let far = PageNo(u64::MAX - 1);
        let nonsense = [
            Request::Read { first: far, pages: 9, tx: None },
            Request::Write { first: far, pages: vec![content(1); 5], tx: None },
            Request::WriteScattered(vec![(far, content(1)), (PageNo(1), content(1))]),
            Request::Trim(PageRange::new(far, u64::MAX)),
        ];
        for request in nonsense {
            let refused = client.ask(request).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::OutOfRange);
        }
        assert_eq!(client.raise(9, Level::Shared).await, Level::Shared);
        an_honest_one_is_served_beside_a_reader(&world).await;
    });
}

async fn an_honest_one_is_served_beside_a_reader(world: &Rc<World>) {
    let client = world.client().await;
    client.ask(Request::WriteScattered(vec![(PageNo(1), content(7))])).await.unwrap();
    assert_eq!(client.read(1).await, content(7));
}

#[test]
fn who_stalls_in_a_message_is_cut_off_and_loses_its_locks() {
    with_server(4, ServerOptions::default(), |world| async move {
        let client = world.client().await;
        assert_eq!(client.raise(1, Level::Exclusive).await, Level::Exclusive);
        let pages = vec![content(1); 60];
        let write = Call::Device(Request::Write { first: PageNo(1), pages, tx: None });
        let bytes = encode_call(9, &write);
        client.send(&bytes[..bytes.len() / 2]).await;
        let begin_ns = world.runtime.now_ns();
        world.until_clients(0).await;
        assert!(world.runtime.now_ns() - begin_ns <= 31_000_000_000);
        an_honest_one_is_served(&world).await;
        let (head, _) = client.frame().await.expect("it is told why");
        assert_eq!((head.kind, head.number), (Kind::Refused, 0));
    });
}

/// The second message would take all of the client's memory, and the first one waits for a lock.
#[test]
fn who_leaves_within_a_message_while_a_request_waits_has_gone() {
    with_server(5, ServerOptions::default(), |world| async move {
        let holder = world.client().await;
        assert_eq!(holder.raise(1, Level::Exclusive).await, Level::Exclusive);
        let client = world.client().await;
        let view = PageRange::new(PageNo(0), 16);
        let raise = Raise { holder: 2, wanted: Level::Shared, seen: 0, view };
        let head = Head { kind: Kind::Write, body_bytes: SMALL_BYTES as usize, number: 2 };
        client.send(&[encode_call(1, &Call::Raise(raise)), head.encode().to_vec()].concat()).await;
        world.runtime.sleep(10_000_000).await;
        client.die();
        world.runtime.sleep(1_000_000_000).await;
        assert_eq!(world.server.clients(), 1);
    });
}

/// A client sends more and more requests, and receives no answers. Others are served meanwhile, with small and large
/// requests.
#[test]
fn who_takes_no_answers_is_cut_off_and_is_in_nobodys_way() {
    for seed in 0..3 {
        with_server(seed, ServerOptions::default(), |world| async move {
            let mut greedy = Vec::new();
            for _ in 0..12 {
                let client = world.client().await;
                let read = Call::Device(Request::Read { first: PageNo(0), pages: 400, tx: None });
                for number in 0..20 {
                    client.send(&encode_call(number, &read)).await;
                }
                greedy.push(client);
            }
            let honest = world.client().await;
            honest.ask(Request::WriteScattered(vec![(PageNo(1), content(7))])).await.unwrap();
            assert_eq!(honest.read(1).await, content(7), "a small one at once");
            let read = Request::Read { first: PageNo(0), pages: 1000, tx: None };
            assert_eq!(honest.ask(read).await.unwrap().pages.len(), 1000, "and a large one");
            assert!(world.runtime.now_ns() < 1_000_000_000);
            world.until_clients(1).await;
        });
    }
}

#[test]
fn who_says_nothing_is_sent_away_and_who_is_too_many_is_told() {
    let options = ServerOptions { clients_max: 2, ..ServerOptions::default() };
    with_server(5, options, |world| async move {
        let silent = world.connect();
        let (other, _another) = (world.client().await, world.client().await);
        world.until_clients(3).await;
        let third = Client::over(world.connect());
        third.send(&Hello { read_only: false, pid: 1 }.encode()).await;
        let refused = third.welcome().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Locked);
        assert!(refused.to_string().contains("2 local clients"), "{refused}");
        // The silent one is sent away in time.
        world.until_clients(2).await;
        assert_eq!(silent.recv(&mut [0; 1]).await.unwrap_or(0), 1, "it is told why");
        other.die();
        world.until_clients(1).await;
        world.client().await;
    });
}

#[test]
fn a_reader_changes_nothing() {
    with_server(6, ServerOptions::default(), |world| async move {
        let client = Client::over(world.connect());
        client.send(&Hello { read_only: true, pid: 1 }.encode()).await;
        client.welcome().await.unwrap();
        let changes = [
            Request::WriteScattered(vec![(PageNo(1), content(7))]),
            Request::Trim(PageRange::new(PageNo(0), 1)),
            Request::Begin,
        ];
        for request in changes {
            assert_eq!(client.ask(request).await.unwrap_err().kind(), ErrorKind::ReadOnly);
        }
        client.ask(Request::Flush).await.unwrap();
    });
}

#[test]
fn a_client_of_another_version_is_told() {
    with_server(7, ServerOptions::default(), |world| async move {
        let client = Client::over(world.connect());
        let mut hello = Hello { read_only: false, pid: 1 }.encode();
        hello[HEAD_BYTES + 8] = 99;
        client.send(&hello).await;
        let refused = client.welcome().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(refused.to_string().contains("version 99"), "{refused}");
        let client = Client::over(world.connect());
        let head = Head { kind: Kind::Write, body_bytes: BODY_BYTES_MAX, number: 1 };
        client.send(&head.encode()).await;
        assert_eq!(client.welcome().await.unwrap_err().kind(), ErrorKind::Format);
    });
}

#[test]
fn those_who_say_nothing_keep_nobody_out() {
    let options = ServerOptions { clients_max: 2, handshakes_max: 3, ..ServerOptions::default() };
    with_server(8, options, |world| async move {
        let silent: Vec<_> = (0..3).map(|_| world.connect()).collect();
        world.until_clients(3).await;
        let begin_ns = world.runtime.now_ns();
        an_honest_one_is_served(&world).await;
        assert!(world.runtime.now_ns() - begin_ns < 1_000_000_000);
        // The oldest made room.
        world.until_clients(2).await;
        silent.iter().for_each(ByteStream::shutdown);
    });
}

/// Clients that send without a pause, and take their answers, have their share and no more.
#[test]
fn a_flood_leaves_other_clients_their_share() {
    const FLOODS: u64 = 15;
    with_server(9, ServerOptions::default(), |world| async move {
        let answer_bytes = encode_reply(0, &Ok(Answer::default())).len();
        let taken = Rc::new(Cell::new(0));
        for _ in 0..FLOODS {
            let client = Rc::new(world.client().await);
            let (taker, taken) = (Rc::clone(&client), Rc::clone(&taken));
            drop(world.runtime.spawn("taker", async move {
                let mut bytes = [0; 1 << 12];
                while let Ok(count @ 1..) = taker.stream.recv(&mut bytes).await {
                    taken.set(taken.get() + count);
                }
            }));
            drop(world.runtime.spawn("flood", async move {
                let many = encode_call(5, &Call::IsReserved).repeat(50);
                let mut left = &many[..];
                while let Ok(sent @ 1..) = client.stream.send(left).await {
                    left = &left[sent..];
                    if left.is_empty() {
                        left = &many;
                    }
                }
            }));
        }
        let honest = world.client().await;
        let ask = async |times: u32| {
            for _ in 0..times {
                honest.call(Call::IsReserved).await.unwrap();
            }
        };
        ask(100).await;
        let before = taken.get();
        ask(200).await;
        let answers = (taken.get() - before) / answer_bytes / 200;
        // A fair share is one of 16.
        assert!(answers as u64 <= 2 * FLOODS, "one of {answers} answers");
    });
}
