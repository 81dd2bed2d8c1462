//! Idle transactions, and clients that open many transactions.
use super::world::{content, with_server};
use crate::{Request, ServerOptions};
use tantalum_base::{ErrorKind, PageNo, TxId};
use tantalum_runtime::Runtime;

const SECOND_NS: u64 = 1_000_000_000;

fn ten_seconds() -> ServerOptions {
    ServerOptions { transaction_idle_ms_max: 10_000, ..ServerOptions::default() }
}

fn write(tx: Option<TxId>) -> Request {
    Request::Write { first: PageNo(3), pages: vec![content(1)], tx }
}

#[test]
fn an_idle_transaction_is_aborted_and_its_client_is_told_why() {
    for seed in 0..10 {
        with_server(seed, ten_seconds(), |world| async move {
            let (one, two) = (world.client().await, world.client().await);
            let tx = one.ask(Request::Begin).await.unwrap().tx;
            one.ask(write(Some(tx))).await.unwrap();
            assert_eq!(two.ask(write(None)).await.unwrap_err().kind(), ErrorKind::Conflict);
            world.runtime.sleep(11 * SECOND_NS).await;
            two.ask(write(None)).await.expect("its pages are free");
            let uses = [
                write(Some(tx)),
                Request::Read { first: PageNo(3), pages: 1, tx: Some(tx) },
                Request::Commit(tx),
                Request::Abort(tx),
            ];
            for used in uses {
                let refused = one.ask(used).await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::UnknownTransaction);
                let told = "it was idle for 10 s";
                assert!(refused.to_string().contains(told), "{refused}");
            }
            // The client itself stays connected.
            let next = one.ask(Request::Begin).await.unwrap().tx;
            one.ask(write(Some(next))).await.unwrap();
            one.ask(Request::Commit(next)).await.unwrap();
        });
    }
}

#[test]
fn a_transaction_that_is_used_stays() {
    with_server(1, ten_seconds(), |world| async move {
        let client = world.client().await;
        let [used, idle] = [
            client.ask(Request::Begin).await.unwrap().tx,
            client.ask(Request::Begin).await.unwrap().tx,
        ];
        for _ in 0..10 {
            world.runtime.sleep(9 * SECOND_NS).await;
            client.ask(write(Some(used))).await.unwrap();
        }
        client.ask(Request::Commit(used)).await.unwrap();
        let refused = client.ask(Request::Commit(idle)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnknownTransaction);
    });
}

#[test]
fn without_a_limit_a_transaction_may_be_idle_for_ever() {
    let options = ServerOptions { transaction_idle_ms_max: 0, ..ServerOptions::default() };
    with_server(1, options, |world| async move {
        let client = world.client().await;
        let tx = client.ask(Request::Begin).await.unwrap().tx;
        client.ask(write(Some(tx))).await.unwrap();
        world.runtime.sleep(1_000_000 * SECOND_NS).await;
        client.ask(Request::Commit(tx)).await.unwrap();
    });
}

/// The device allows three transactions. With up to a hundred clients, all three places are shared.
#[test]
fn what_idle_transactions_took_is_there_for_others() {
    with_server(1, ten_seconds(), |world| async move {
        let (one, two) = (world.client().await, world.client().await);
        for _ in 0..3 {
            one.ask(Request::Begin).await.unwrap();
        }
        let refused = two.ask(Request::Begin).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooManyTransactions);
        world.runtime.sleep(11 * SECOND_NS).await;
        let tx = two.ask(Request::Begin).await.unwrap().tx;
        two.ask(Request::Abort(tx)).await.unwrap();
    });
}

#[test]
fn a_client_that_has_gone_leaves_its_places_to_the_next() {
    let options = ServerOptions { clients_max: 1, ..ServerOptions::default() };
    with_server(1, options, |world| async move {
        for _ in 0..2 {
            let client = world.client().await;
            for _ in 0..3 {
                client.ask(Request::Begin).await.unwrap();
            }
            let refused = client.ask(Request::Begin).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::TooManyTransactions);
            client.die();
            world.until_clients(0).await;
        }
    });
}
