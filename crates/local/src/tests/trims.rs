//! Long trims, which go in steps.
use super::world::{World, content, is_empty, with_server};
use crate::session::TRIM_PAGES_MAX;
use crate::{Call, Request, ServerOptions};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, PageRange};
use tantalum_runtime::Runtime;

const SECOND_NS: u64 = 1_000_000_000;
/// Pages of the device.
const PAGES: u64 = 10_000;
const REST: PageRange = PageRange::new(PageNo(TRIM_PAGES_MAX), PAGES - TRIM_PAGES_MAX);

async fn write(world: &World, pages: &[u64]) {
    let client = world.client().await;
    for page in pages {
        let write = Request::Write { first: PageNo(*page), pages: vec![content(7)], tx: None };
        client.ask(write).await.unwrap();
    }
    client.die();
}

/// A client that has begun to trim the whole device, whose first step takes a second.
async fn amid_a_long_trim(world: &Rc<World>) -> super::world::Client {
    write(world, &[0, TRIM_PAGES_MAX]).await;
    world.device.trim_ns.set(SECOND_NS);
    let client = world.client().await;
    client.tell(&Call::Device(Request::Trim(PageRange::new(PageNo(0), PAGES)))).await;
    world.runtime.sleep(SECOND_NS / 2).await;
    client
}

#[test]
fn a_long_trim_goes_in_steps() {
    with_server(1, ServerOptions::default(), |world| async move {
        let client = world.client().await;
        write(&world, &[0, TRIM_PAGES_MAX - 1, TRIM_PAGES_MAX, PAGES - 1]).await;
        client.ask(Request::Trim(PageRange::new(PageNo(0), PAGES))).await.unwrap();
        let first = PageRange::new(PageNo(0), TRIM_PAGES_MAX);
        assert_eq!(*world.device.trims.borrow(), [first, REST]);
        for page in [0, TRIM_PAGES_MAX - 1, TRIM_PAGES_MAX, PAGES - 1] {
            assert!(is_empty(&client.read(page).await), "page {page}");
        }
        client.ask(Request::Trim(first)).await.unwrap();
        assert_eq!(world.device.trims.borrow().len(), 3, "a short one is one step");
    });
}

#[test]
fn one_past_the_end_does_nothing() {
    with_server(2, ServerOptions::default(), |world| async move {
        let client = world.client().await;
        let trim = Request::Trim(PageRange::new(PageNo(1), PAGES));
        assert_eq!(client.ask(trim).await.unwrap_err().kind(), ErrorKind::OutOfRange);
        assert_eq!(world.device.trims.borrow().len(), 0);
    });
}

#[test]
fn a_client_that_has_gone_gets_no_further_step() {
    with_server(3, ServerOptions::default(), |world| async move {
        let other = world.client().await;
        amid_a_long_trim(&world).await.die();
        world.until_clients(1).await;
        assert_eq!(world.device.trims.borrow().len(), 1);
        assert!(is_empty(&other.read(0).await), "the step that was begun is done");
        assert_eq!(other.read(TRIM_PAGES_MAX).await, content(7));
    });
}

/// It has the time of `stop_ms_max` for its answer.
#[test]
fn a_server_that_stops_waits_for_the_step_alone() {
    let options = ServerOptions { stop_ms_max: 100, ..ServerOptions::default() };
    with_server(4, options, |world| async move {
        let _client = amid_a_long_trim(&world).await;
        world.stop().await;
        assert_eq!(world.device.trims.borrow().len(), 1);
    });
}
