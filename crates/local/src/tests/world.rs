//! A server, its device and its clients in virtual time.
use super::device::Device;
use crate::protocol::{HEAD_BYTES, Head, Hello, Welcome, decode_reply, encode_call};
use crate::{Answer, Call, Level, Raise, Request, Server, ServerOptions, Tracked};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result};
use tantalum_runtime::pipe::{PipeEnd, PipeListener};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{ByteStream, JoinHandle, Runtime, Virtual};

pub(super) struct World {
    pub(super) runtime: Virtual,
    pub(super) device: Rc<Tracked<Device>>,
    pub(super) server: Server<Tracked<Device>>,
    listener: PipeListener,
    serving: RefCell<Option<JoinHandle<Result<()>>>>,
    stop: Rc<(Cell<bool>, WaitQueue)>,
    seeds: Cell<u64>,
}

/// Runs `test` against a server with `options`, then stops the server and checks that nothing is
/// left open.
pub(super) fn with_server<F: Future<Output = ()> + 'static>(
    seed: u64,
    options: ServerOptions,
    test: impl FnOnce(Rc<World>) -> F + 'static,
) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let device = Rc::new(Tracked::new(Device::new(runtime.clone(), seed)));
    let server = Server::new(Rc::clone(&device), Rc::clone(device.changes()), options);
    let listener = PipeListener::new();
    let stop = Rc::new((Cell::new(false), WaitQueue::new("the end of the test")));
    let serving = {
        let (server, run_on, listener) = (server.clone(), runtime.clone(), listener.clone());
        let stop = Rc::clone(&stop);
        runtime.spawn("server", async move {
            let stopped = stop.1.until(|| stop.0.get().then_some(()));
            server.serve(&run_on, listener, stopped).await
        })
    };
    let world = Rc::new(World {
        runtime: runtime.clone(),
        device,
        server,
        listener,
        serving: RefCell::new(Some(serving)),
        stop,
        seeds: Cell::new(seed),
    });
    let finished = runtime.run(async move {
        test(Rc::clone(&world)).await;
        world.stop().await;
        assert_eq!(world.server.clients(), 0);
        assert_eq!(world.device.in_flight.get(), 0, "what was asked for is done");
        assert_eq!(world.device.open.borrow().len(), 0, "no transaction is left");
    });
    finished.unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
}

impl World {
    /// A connection before any greeting.
    pub(super) fn connect(&self) -> PipeEnd {
        self.seeds.set(self.seeds.get() + 1);
        self.listener.connect(self.seeds.get())
    }

    /// A connection that is ready for calls.
    pub(super) async fn client(&self) -> Client {
        let stream = self.connect();
        let client = Client { stream, numbers: Cell::new(0), seen: Cell::new(0) };
        client.send(&Hello { read_only: false, pid: 1 }.encode()).await;
        let welcome = client.welcome().await.unwrap();
        client.seen.set(welcome.last_change);
        client
    }

    /// Waits until `count` clients are connected.
    pub(super) async fn until_clients(&self, count: usize) {
        let mut pause_ns = 1_000;
        while self.server.clients() != count {
            self.runtime.sleep(pause_ns).await;
            pause_ns = (2 * pause_ns).min(100_000_000);
        }
    }

    pub(super) async fn stop(&self) {
        self.stop.0.set(true);
        self.stop.1.wake_all();
        let serving = self.serving.borrow_mut().take();
        if let Some(serving) = serving {
            serving.await.unwrap();
        }
    }
}

/// A client, one call at a time.
pub(super) struct Client {
    pub(super) stream: PipeEnd,
    numbers: Cell<u64>,
    seen: Cell<u64>,
}

impl Client {
    pub(super) fn over(stream: PipeEnd) -> Client {
        Client { stream, numbers: Cell::new(0), seen: Cell::new(0) }
    }

    pub(super) async fn send(&self, bytes: &[u8]) {
        let mut left = bytes;
        while !left.is_empty() {
            match self.stream.send(left).await.unwrap() {
                0 => return,
                sent => left = &left[sent..],
            }
        }
    }

    /// The next frame; `None` if the server has hung up.
    pub(super) async fn frame(&self) -> Option<(Head, Vec<u8>)> {
        let mut head = [0; HEAD_BYTES];
        self.receive(&mut head).await?;
        let head = Head::decode(&head).unwrap();
        let mut body = vec![0; head.body_bytes];
        self.receive(&mut body).await?;
        Some((head, body))
    }

    async fn receive(&self, into: &mut [u8]) -> Option<()> {
        let mut at = 0;
        while at < into.len() {
            match self.stream.recv(&mut into[at..]).await.unwrap() {
                0 => return None,
                received => at += received,
            }
        }
        Some(())
    }

    pub(super) async fn welcome(&self) -> Result<Welcome> {
        let (head, body) = self.frame().await.expect("an answer");
        Welcome::decode(head.kind, &body)
    }

    /// Sends a call and does not wait for an answer.
    pub(super) async fn tell(&self, call: &Call) -> u64 {
        let number = self.numbers.get() + 1;
        self.numbers.set(number);
        self.send(&encode_call(number, call)).await;
        number
    }

    pub(super) async fn call(&self, call: Call) -> Result<Answer> {
        let number = self.tell(&call).await;
        let (head, body) = self.frame().await.expect("an answer");
        assert_eq!(head.number, number);
        decode_reply(head.kind, &body)
    }

    pub(super) async fn ask(&self, request: Request) -> Result<Answer> {
        self.call(Call::Device(request)).await
    }

    /// Raises a lock without a view.
    pub(super) async fn raise(&self, holder: u64, wanted: Level) -> Level {
        self.refreshed(holder, wanted, 0).await.level
    }

    /// The same, with the first `pages` pages returned if they changed since the last time.
    pub(super) async fn refreshed(&self, holder: u64, wanted: Level, pages: u64) -> Answer {
        let view = PageRange::new(PageNo(0), pages);
        let raise = Raise { holder, wanted, seen: self.seen.get(), view };
        let answer = self.call(Call::Raise(raise)).await.unwrap();
        self.seen.set(answer.last_change);
        answer
    }

    pub(super) async fn lower(&self, holder: u64, wanted: Level) {
        self.tell(&Call::Lower { holder, wanted }).await;
    }

    pub(super) async fn read(&self, page: u64) -> PageBuf {
        let read = Request::Read { first: PageNo(page), pages: 1, tx: None };
        self.ask(read).await.unwrap().pages.remove(0)
    }

    /// The process dies: the kernel closes its connection.
    pub(super) fn die(&self) {
        self.stream.shutdown();
    }
}

/// A page that differs from others.
pub(super) fn content(number: u64) -> PageBuf {
    let mut page = PageBuf::copy_from(&[7; PAGE_BYTES]);
    page.make_mut()[..8].copy_from_slice(&number.to_le_bytes());
    page
}

/// Whether a page was never written.
pub(super) fn is_empty(page: &PageBuf) -> bool {
    *page == PageBuf::zero()
}
