//! SQLite's locks among clients of a server.
use super::world::{Client, World, content, with_server};
use crate::fault_points::Fault;
use crate::protocol::decode_reply;
use crate::{Call, Level, Raise, Request, ServerOptions};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{PageNo, PageRange};
use tantalum_runtime::Runtime;

#[test]
fn locks_of_two_clients_exclude_each_other_as_those_of_one() {
    for seed in 0..20 {
        with_server(seed, ServerOptions::default(), |world| async move {
            let (one, two) = (world.client().await, world.client().await);
            assert_eq!(one.raise(1, Level::Shared).await, Level::Shared);
            assert_eq!(two.raise(1, Level::Shared).await, Level::Shared);
            assert_eq!(one.raise(1, Level::Reserved).await, Level::Reserved);
            assert_eq!(two.raise(1, Level::Reserved).await, Level::Shared, "one writer at a time");
            assert_eq!(one.raise(2, Level::Reserved).await, Level::None, "of one's own too");
            assert_eq!(one.raise(1, Level::Exclusive).await, Level::Pending, "a reader is there");
            assert_eq!(two.raise(2, Level::Shared).await, Level::None, "no new reader comes in");
            two.lower(1, Level::None).await;
            assert_eq!(one.raise(1, Level::Exclusive).await, Level::Exclusive);
            one.lower(1, Level::None).await;
            assert_eq!(two.raise(2, Level::Exclusive).await, Level::Exclusive);
        });
    }
}

/// An unlock has no answer, so nobody waits for it. Locks released before are free all the same.
#[test]
fn a_lock_that_was_given_back_is_in_nobodys_way() {
    for seed in 0..60 {
        with_server(seed, ServerOptions::default(), |world| async move {
            let (one, two) = (world.client().await, world.client().await);
            for _ in 0..10 {
                assert_eq!(one.raise(1, Level::Exclusive).await, Level::Exclusive);
                let pages = vec![(PageNo(5), content(1))];
                one.ask(Request::WriteScattered(pages)).await.unwrap();
                one.lower(1, Level::Shared).await;
                one.lower(1, Level::None).await;
                assert_eq!(two.raise(1, Level::Exclusive).await, Level::Exclusive);
                two.lower(1, Level::None).await;
            }
        });
    }
}

/// The sleeps of SQLite's busy handler before it tries again.
const BUSY_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

/// A transaction with SQLite's sequence of locks, and an unlimited busy timeout.
async fn commits_as_sqlite(world: &World, client: &Client, number: u64) {
    let pause = async |tries: usize| {
        let ms = BUSY_MS[tries.min(BUSY_MS.len() - 1)];
        world.runtime.sleep(ms * 1_000_000).await;
    };
    let mut tries = 0;
    while client.raise(1, Level::Shared).await == Level::None
        || client.raise(1, Level::Reserved).await < Level::Reserved
    {
        client.lower(1, Level::None).await;
        pause(tries).await;
        tries += 1;
    }
    tries = 0;
    while client.raise(1, Level::Exclusive).await < Level::Exclusive {
        pause(tries).await;
        tries += 1;
    }
    let pages = vec![(PageNo(5), content(number))];
    client.ask(Request::WriteScattered(pages)).await.unwrap();
    client.lower(1, Level::None).await;
}

/// Three clients commit without a pause for a fifth of a second; checks that each gets its turns.
fn turns() -> Option<String> {
    const UNTIL_NS: u64 = 200_000_000;
    const WAIT_NS_MAX: u64 = 20_000_000;
    let longest_waits = Rc::new(RefCell::new(Vec::new()));
    for seed in 0..3 {
        let waits = Rc::clone(&longest_waits);
        with_server(seed, ServerOptions::default(), move |world| async move {
            let clients = [world.client().await, world.client().await, world.client().await];
            let tasks = clients.map(|client| {
                let (world, waits) = (Rc::clone(&world), Rc::clone(&waits));
                world.runtime.clone().spawn("commits", async move {
                    let mut longest_ns = 0;
                    loop {
                        let begin_ns = world.runtime.now_ns();
                        if begin_ns >= UNTIL_NS {
                            break;
                        }
                        commits_as_sqlite(&world, &client, 1).await;
                        longest_ns = longest_ns.max(world.runtime.now_ns() - begin_ns);
                    }
                    waits.borrow_mut().push(longest_ns);
                })
            });
            for task in tasks {
                task.await;
            }
        });
    }
    let longest_ns = longest_waits.take().into_iter().max().unwrap();
    (longest_ns > WAIT_NS_MAX).then(|| format!("one waited for {longest_ns} ns"))
}

#[test]
fn clients_that_commit_without_a_pause_have_their_turns() {
    assert_noticed(Fault::NobodyWaitsForLocks, turns);
}

/// Connections of one process do not take each other's request slots while they wait.
#[test]
fn many_waiting_connections_of_a_client_let_its_writer_through() {
    with_server(1, ServerOptions::default(), |world| async move {
        let client = world.client().await;
        assert_eq!(client.raise(1, Level::Exclusive).await, Level::Exclusive);
        let waiting = 500;
        for holder in 2..2 + waiting {
            let view = PageRange::new(PageNo(0), 16);
            let raise = Raise { holder, wanted: Level::Shared, seen: 0, view };
            client.tell(&Call::Raise(raise)).await;
        }
        let pages = vec![(PageNo(5), content(1))];
        let write = client.tell(&Call::Device(Request::WriteScattered(pages))).await;
        client.tell(&Call::Lower { holder: 1, wanted: Level::None }).await;
        let mut refused_before = 0;
        let mut had = 0;
        let mut written = false;
        for _ in 0..=waiting {
            let (head, body) = client.frame().await.unwrap();
            let answer = decode_reply(head.kind, &body).unwrap();
            if head.number == write {
                written = true;
            } else if answer.level == Level::Shared {
                had += 1;
            } else {
                refused_before += 1;
            }
        }
        assert!(written);
        assert!(had >= 32, "those who waited have it when it is given back: {had}");
        assert_eq!(had + refused_before, waiting);
    });
}
