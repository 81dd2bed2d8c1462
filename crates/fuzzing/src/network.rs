//! Servers on a network in memory, and a client that sends arbitrary bytes.
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../nbd/tests/support/memory_device.rs"]
mod memory_device;

use memory_device::MemoryDevice;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{Durability, PAGE_BYTES, Result};
use tantalum_local::Tracked;
use tantalum_nbd::ServerOptions;
use tantalum_runtime::pipe::{PipeEnd, PipeListener};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{ByteStream, Runtime, Virtual};

const PAGES: u64 = 64;
const PIECE_BYTES: usize = 4096;
/// Time that a client stays connected after it has sent everything, in virtual time: by then the server has
/// read it.
const STAY_NS: u64 = 1_000_000_000;

/// The flags of an NBD client, with fixed newstyle negotiation.
pub(crate) const NBD_FLAGS: &[u8] = &[0, 0, 0, 3];

/// Sends the input after a client's flags.
pub(crate) fn nbd_options(input: &[u8]) {
    nbd(&[NBD_FLAGS, input].concat());
}

/// Sends the input after a negotiation: with structured replies and block status if the first byte is odd.
pub(crate) fn nbd_requests(input: &[u8]) {
    let Some((first, requests)) = input.split_first() else { return };
    let negotiation = match first & 1 {
        0 => option(1, &[]),
        _ => [structured(), option(7, &[0, 0, 0, 0, 0, 0])].concat(),
    };
    nbd(&[NBD_FLAGS, &negotiation, requests].concat());
}

/// Sends the input as a local client: after a greeting if the first byte is odd.
pub(crate) fn local(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let greeting = if first & 1 == 0 { Vec::new() } else { greeting() };
    let sent = [&greeting, rest].concat();
    serve(sent, |runtime, listener, stopped| {
        let device = Rc::new(Tracked::new(device()));
        let changes = Rc::clone(device.changes());
        let server = tantalum_local::Server::new(device, changes, Default::default());
        let serving = server.clone();
        runtime
            .clone()
            .spawn("server", async move { serving.serve(&runtime, listener, stopped).await });
        move || assert_eq!(server.clients(), 0, "the client has gone")
    });
}

fn nbd(sent: &[u8]) {
    let sent = sent.to_vec();
    nbd_after(ServerOptions::default(), sent.len() as u64, async |_| sent);
}

/// Runs an NBD server with a client that does `prepare`, sends what that returns, and leaves.
pub(crate) fn nbd_after(
    options: ServerOptions,
    seed: u64,
    prepare: impl AsyncFnOnce(&PipeEnd) -> Vec<u8> + 'static,
) {
    let start = |runtime: Virtual, listener, stopped| {
        let device = Rc::new(device());
        let server = tantalum_nbd::Server::new(Rc::clone(&device), options);
        let server = server.expect("sound options");
        let serving = server.clone();
        runtime
            .clone()
            .spawn("server", async move { serving.serve(&runtime, listener, stopped).await });
        move || {
            assert_eq!(server.statistics().connections_open, 0, "the client has gone");
            assert_eq!(device.in_flight.get(), 0, "nothing goes on for it");
        }
    };
    serve_after(seed, start, prepare);
}

fn device() -> MemoryDevice {
    MemoryDevice::new(PAGES, 4, Durability::OnFlush)
}

/// A signal that ends a server.
type Stopped = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// Runs the server that `start` starts, with a client that sends `sent` and leaves; then calls the function
/// that `start` returned.
fn serve<F: FnOnce() + 'static>(
    sent: Vec<u8>,
    start: impl FnOnce(Virtual, PipeListener, Stopped) -> F,
) {
    serve_after(sent.len() as u64, start, async |_| sent);
}

/// The same with a client that does `prepare` first, and sends what that returns.
fn serve_after<F: FnOnce() + 'static>(
    seed: u64,
    start: impl FnOnce(Virtual, PipeListener, Stopped) -> F,
    prepare: impl AsyncFnOnce(&PipeEnd) -> Vec<u8> + 'static,
) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let listener = PipeListener::new();
    let stop = Rc::new((Cell::new(false), WaitQueue::new("the end of the run")));
    let stopped = {
        let stop = Rc::clone(&stop);
        Box::pin(async move { stop.1.until(|| stop.0.get().then_some(())).await })
    };
    let check = start(runtime.clone(), listener.clone(), stopped);
    let client = listener.connect(seed);
    let clock = runtime.clone();
    let finished = runtime.run(async move {
        let sent = prepare(&client).await;
        let answers = client.clone();
        let reading = clock.spawn("reader", async move { while_answered(&answers).await });
        send(&client, &sent).await;
        clock.sleep(STAY_NS).await;
        client.shutdown();
        reading.await;
        clock.sleep(STAY_NS).await;
        check();
        stop.0.set(true);
        stop.1.wake_all();
    });
    // The server's tasks hold the executor, which holds them.
    runtime.drop_tasks();
    finished.unwrap_or_else(|deadlock| panic!("{deadlock}"));
}

async fn while_answered(client: &PipeEnd) {
    let mut piece = [0; PIECE_BYTES];
    while client.recv(&mut piece).await.is_ok_and(|bytes| bytes > 0) {}
}

/// Sends `bytes`, or as many as possible until the server closes.
pub(crate) async fn send(client: &PipeEnd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let sent: Result<usize> = client.send(bytes).await;
        match sent {
            Ok(0) | Err(_) => return,
            Ok(sent) => bytes = &bytes[sent..],
        }
    }
}

pub(crate) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    [b"IHAVEOPT", &number.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

/// The options for structured replies, and for block status of `base:allocation`.
fn structured() -> Vec<u8> {
    let name = b"base:allocation";
    let query =
        [&[0; 4][..], &1_u32.to_be_bytes(), &(name.len() as u32).to_be_bytes(), name].concat();
    [option(8, &[]), option(10, &query)].concat()
}

pub(crate) fn option_seeds() -> Vec<Vec<u8>> {
    vec![
        option(1, b""),
        option(1, b"tantalum"),
        option(2, b""),
        option(3, b""),
        option(6, &[0, 0, 0, 0, 0, 1, 0, 3]),
        option(7, &[0, 0, 0, 0, 0, 0]),
        structured(),
        [option(9, &[0; 8]), option(7, &[0, 0, 0, 0, 0, 0])].concat(),
    ]
}

fn request(command: u16, flags: u16, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
    let head =
        [&0x2560_9513_u32.to_be_bytes()[..], &flags.to_be_bytes(), &command.to_be_bytes()].concat();
    let place = [&7_u64.to_be_bytes()[..], &offset.to_be_bytes(), &length.to_be_bytes()].concat();
    [&head, &place, data].concat()
}

pub(crate) fn request_seeds() -> Vec<Vec<u8>> {
    let page = PAGE_BYTES as u64;
    let all = [
        request(0, 0, 0, 4096, &[]),
        request(0, 4, 3 * page + 17, 9000, &[]),
        request(1, 1, page, 4096, &[7; 4096]),
        request(1, 0, page + 100, 300, &[9; 300]),
        request(3, 0, 0, 0, &[]),
        request(4, 0, 2 * page, 5 * 4096, &[]),
        request(6, 2, 2 * page, 5000, &[]),
        request(7, 8, 0, 64 * 4096, &[]),
        request(2, 0, 0, 0, &[]),
    ];
    let each = all.iter().flat_map(|one| [[&[0], &one[..]].concat(), [&[1], &one[..]].concat()]);
    each.chain([[&[0], &all.concat()[..]].concat(), [&[1], &all.concat()[..]].concat()]).collect()
}

fn frame(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32;
    [&length.to_le_bytes()[..], &kind.to_le_bytes(), &1_u64.to_le_bytes(), body].concat()
}

fn greeting() -> Vec<u8> {
    frame(1, &[&b"TANTLOCL"[..], &1_u32.to_le_bytes(), &[0; 12]].concat())
}

pub(crate) fn local_seeds() -> Vec<Vec<u8>> {
    let long = |value: u64| value.to_le_bytes();
    let word = |value: u32| value.to_le_bytes();
    let page = [5; PAGE_BYTES];
    let all = [
        frame(2, &[&long(3)[..], &long(0), &word(2), &word(0)].concat()),
        frame(3, &[&long(3)[..], &long(0), &word(1), &word(0), &page].concat()),
        frame(4, &[&word(1)[..], &long(9), &page].concat()),
        frame(5, &[]),
        frame(6, &[long(1), long(5)].concat()),
        frame(7, &[long(1), long(2)].concat()),
        frame(8, &[]),
        frame(9, &long(1)),
        frame(10, &long(1)),
        frame(11, &[&long(1)[..], &long(0), &long(0), &long(4), &word(1)].concat()),
        frame(12, &[&long(1)[..], &word(0)].concat()),
        frame(13, &long(1)),
    ];
    let each = all.iter().map(|one| [&[1], &one[..]].concat());
    each.chain([[&[0], &greeting()[..]].concat(), [&[1], &all.concat()[..]].concat()]).collect()
}
