//! Clients that die: their locks are released, their transactions are aborted, and nobody sees a half-done
//! change.
use super::world::{World, content, is_empty, with_server};
use crate::fault_points::Fault;
use crate::{Call, Level, Request, ServerOptions};
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{ErrorKind, PageNo};
use tantalum_runtime::Runtime;

/// One client dies with a lock and a transaction that has written a page; another client continues at once.
async fn one_dies_and_another_goes_on(world: Rc<World>, pause_ns: u64) {
    let (one, two) = (world.client().await, world.client().await);
    assert_eq!(one.raise(1, Level::Exclusive).await, Level::Exclusive);
    let tx = one.ask(Request::Begin).await.unwrap().tx;
    let write = Request::Write { first: PageNo(3), pages: vec![content(1); 2], tx: Some(tx) };
    one.tell(&Call::Device(write)).await;
    world.runtime.sleep(pause_ns).await;
    assert_eq!(two.raise(1, Level::Shared).await, Level::None);
    one.die();
    world.until_clients(1).await;
    assert_eq!(two.raise(1, Level::Exclusive).await, Level::Exclusive, "its lock is free");
    assert!(is_empty(&two.read(3).await), "nothing of it is seen");
    let write = Request::Write { first: PageNo(4), pages: vec![content(2)], tx: None };
    two.ask(write).await.expect("its pages are free");
    assert_eq!(two.read(4).await, content(2));
}

fn deaths() -> Option<String> {
    for seed in 0..20 {
        with_server(seed, ServerOptions::default(), move |world| {
            one_dies_and_another_goes_on(world, seed * 1_000)
        });
    }
    None
}

#[test]
fn locks_end_with_who_holds_them() {
    assert_noticed(Fault::LocksOutliveClients, deaths);
}

#[test]
fn transactions_end_with_who_began_them() {
    assert_noticed(Fault::TransactionsOutliveClients, deaths);
}

/// A client commits and dies before it receives the answer. The next client with the lock sees either the
/// whole commit from the beginning, or never any part of it.
async fn one_dies_in_a_commit(world: Rc<World>, pause_ns: u64) {
    let (one, two) = (world.client().await, world.client().await);
    assert_eq!(one.raise(1, Level::Exclusive).await, Level::Exclusive);
    let pages = vec![(PageNo(3), content(1)), (PageNo(8), content(1))];
    one.tell(&Call::Device(Request::WriteScattered(pages))).await;
    world.runtime.sleep(pause_ns).await;
    one.die();
    while two.raise(1, Level::Shared).await == Level::None {
        world.runtime.sleep(100).await;
    }
    let before = [two.read(3).await, two.read(8).await];
    world.runtime.sleep(1_000_000).await;
    let after = [two.read(3).await, two.read(8).await];
    assert!(before == after, "what is read under a lock stays");
    assert!(before[0] == before[1], "half of a commit");
}

#[test]
fn what_was_asked_for_is_over_before_the_locks_are_free() {
    assert_noticed(Fault::LocksFreeBeforeRequestsEnd, || {
        for seed in 0..60 {
            with_server(seed, ServerOptions::default(), move |world| {
                one_dies_in_a_commit(world, seed * 200)
            });
        }
        None
    });
}

#[test]
fn a_transaction_is_its_clients_own() {
    with_server(1, ServerOptions::default(), |world| async move {
        let (one, two) = (world.client().await, world.client().await);
        let tx = one.ask(Request::Begin).await.unwrap().tx;
        let others = [
            Request::Commit(tx),
            Request::Abort(tx),
            Request::Read { first: PageNo(0), pages: 1, tx: Some(tx) },
            Request::Write { first: PageNo(0), pages: vec![content(1)], tx: Some(tx) },
        ];
        for request in others {
            let refused = two.ask(request).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::UnknownTransaction);
        }
        one.ask(Request::Commit(tx)).await.unwrap();
    });
}

#[test]
fn a_server_that_stops_answers_what_was_asked() {
    for seed in 0..20 {
        with_server(seed, ServerOptions::default(), |world| async move {
            let client = world.client().await;
            assert_eq!(client.raise(1, Level::Exclusive).await, Level::Exclusive);
            let write = Request::Write { first: PageNo(1), pages: vec![content(1)], tx: None };
            client.tell(&Call::Device(write)).await;
            // The commit has been received.
            while world.device.in_flight.get() == 0 && world.device.pages.borrow().is_empty() {
                world.runtime.sleep(10).await;
            }
            world.stop().await;
            assert!(client.frame().await.is_some(), "an answer");
            assert!(client.frame().await.is_none(), "the end");
        });
    }
}
