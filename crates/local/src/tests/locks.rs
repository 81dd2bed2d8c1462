//! SQLite's locks among clients of a server.
use super::world::{content, with_server};
use crate::{Level, Request, ServerOptions};
use tantalum_base::PageNo;

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

/// Nobody waits for the answer to an unlock: there is none. What was unlocked before is free all the same.
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
