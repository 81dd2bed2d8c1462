//! A server, its device and its clients in virtual time.
use super::memory_device::MemoryDevice;
use super::tls_client::TlsClient;
use crate::client::Client as Asker;
use crate::export::Export;
use crate::{ByteStream, Server, ServerOptions};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{Durability, Result, Rng};
use tantalum_runtime::pipe::{PipeEnd, PipeListener};
use tantalum_runtime::rounds::Rounds;
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{JoinHandle, Runtime, Virtual};

pub(super) const READ: u16 = 0;
pub(super) const WRITE: u16 = 1;
pub(super) const DISC: u16 = 2;
pub(super) const FLUSH: u16 = 3;
pub(super) const TRIM: u16 = 4;
pub(super) const ZEROES: u16 = 6;
pub(super) const STATUS: u16 = 7;
pub(super) const FUA: u16 = 1;
pub(super) const NO_HOLE: u16 = 2;
pub(super) const DF: u16 = 4;
pub(super) const REQ_ONE: u16 = 8;
pub(super) const FAST_ZERO: u16 = 16;

pub(super) struct World {
    pub(super) runtime: Virtual,
    pub(super) device: Rc<MemoryDevice>,
    pub(super) server: Server<MemoryDevice>,
    listener: PipeListener,
    serving: RefCell<Option<JoinHandle<Result<()>>>>,
    stop: Rc<(Cell<bool>, WaitQueue)>,
    seeds: Cell<u64>,
}

/// A device of 64 pages whose accesses take random times.
pub(super) fn device(runtime: &Virtual, seed: u64, durability: Durability) -> MemoryDevice {
    let mut device = MemoryDevice::new(64, 4, durability);
    let rng = RefCell::new(Rng::split(seed, "device"));
    let runtime = runtime.clone();
    device.pause = Some(Box::new(move || {
        let delay_ns = rng.borrow_mut().below(1_000);
        Box::pin(runtime.sleep(delay_ns))
    }));
    device
}

/// An export without a server.
pub(super) fn export(device: &Rc<MemoryDevice>) -> Export<MemoryDevice> {
    Export::new(Rc::clone(device), ServerOptions::default(), Rounds::default()).unwrap()
}

/// The only client of an export.
pub(super) fn alone(runtime: &Virtual) -> Asker {
    Asker::new(Rounds::default().seat(runtime))
}

/// Runs `test` against a server with `options`; then stops the server and checks that nothing is
/// left open.
pub(super) fn with_server<F: Future<Output = ()> + 'static>(
    seed: u64,
    options: ServerOptions,
    durability: Durability,
    test: impl FnOnce(Rc<World>) -> F + 'static,
) {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let device = device(&runtime, seed, durability);
    with_server_of(device, runtime, seed, options, test);
}

/// The same for a `device`.
pub(super) fn with_server_of<F: Future<Output = ()> + 'static>(
    device: MemoryDevice,
    runtime: Virtual,
    seed: u64,
    options: ServerOptions,
    test: impl FnOnce(Rc<World>) -> F + 'static,
) {
    let device = Rc::new(device);
    let server = Server::new(Rc::clone(&device), options).unwrap();
    let listener = PipeListener::new();
    let stop = Rc::new((Cell::new(false), WaitQueue::new("the end of the test")));
    let serving = {
        let (server, runtime, listener) = (server.clone(), runtime.clone(), listener.clone());
        let (run_on, stop) = (runtime.clone(), Rc::clone(&stop));
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
        assert_eq!(world.server.statistics().connections_open, 0);
        assert_eq!(world.device.in_flight.get(), 0);
    });
    finished.unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
}

impl World {
    /// A connection on which nothing has been sent yet.
    pub(super) fn connect(&self) -> Client {
        self.seeds.set(self.seeds.get() + 1);
        let stream = self.listener.connect(self.seeds.get());
        Client { stream, cookies: Cell::new(0), tls: None }
    }

    /// A connection ready for requests, with block sizes negotiated.
    pub(super) async fn client(&self) -> Client {
        let client = self.connect();
        client.negotiate().await;
        client
    }

    /// The same with structured replies and `base:allocation`.
    pub(super) async fn structured_client(&self) -> Client {
        let client = self.connect();
        client.greet().await;
        client.structured_options().await;
        client.go().await;
        client
    }

    /// Stops the server and waits for its end; a second call does nothing.
    pub(super) async fn stop(&self) {
        self.stop.0.set(true);
        self.stop.1.wake_all();
        let serving = self.serving.borrow_mut().take();
        if let Some(serving) = serving {
            serving.await.unwrap();
        }
    }
}

/// A chunk of a structured reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Chunk {
    pub(super) is_last: bool,
    pub(super) kind: u16,
    pub(super) cookie: u64,
    pub(super) payload: Vec<u8>,
}

impl Chunk {
    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    pub(super) fn offset(&self) -> u64 {
        u64::from_be_bytes(self.payload[..8].try_into().unwrap())
    }

    /// The error in the chunk, and its message.
    pub(super) fn error(&self) -> (u32, String) {
        assert_eq!(self.kind, 0x8001, "{self:?}");
        let length = u16::from_be_bytes(self.payload[4..6].try_into().unwrap());
        assert_eq!(self.payload.len(), 6 + usize::from(length));
        (self.word(0), String::from_utf8(self.payload[6..].to_vec()).unwrap())
    }
}

/// A client that speaks the protocol byte by byte.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) stream: PipeEnd,
    cookies: Cell<u64>,
    // Once it has begun.
    pub(super) tls: Option<TlsClient>,
}

impl Client {
    pub(super) async fn send(&self, mut bytes: &[u8]) {
        if let Some(tls) = &self.tls {
            return tls.send(bytes).await;
        }
        while !bytes.is_empty() {
            let sent = self.stream.send(bytes).await.unwrap();
            if sent == 0 {
                return;
            }
            bytes = &bytes[sent..];
        }
    }

    /// The next `count` bytes; fewer if the server closes first.
    pub(super) async fn receive(&self, count: usize) -> Vec<u8> {
        if let Some(tls) = &self.tls {
            return tls.receive(count).await.unwrap();
        }
        let mut bytes = vec![0; count];
        let mut have = 0;
        while have < count {
            match self.stream.recv(&mut bytes[have..]).await.unwrap() {
                0 => break,
                received => have += received,
            }
        }
        bytes.truncate(have);
        bytes
    }

    /// Whether the server closes without sending more.
    pub(super) async fn is_closed(&self) -> bool {
        self.receive(1).await.is_empty()
    }

    pub(super) async fn greet(&self) {
        assert_eq!(self.receive(18).await, b"NBDMAGICIHAVEOPT\0\x03");
        self.send(&[0, 0, 0, 3]).await;
    }

    pub(super) async fn option(&self, option: u32, data: &[u8]) {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        self.send(&bytes).await;
    }

    /// The next option reply: option, type, data.
    pub(super) async fn option_reply(&self) -> (u32, u32, Vec<u8>) {
        let head = self.receive(20).await;
        assert_eq!(head[..8], 0x0003_e889_0455_65a9_u64.to_be_bytes());
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        (word(8), word(12), self.receive(word(16) as usize).await)
    }

    pub(super) async fn negotiate(&self) {
        self.greet().await;
        self.go().await;
    }

    pub(super) async fn go(&self) {
        self.option(7, b"\0\0\0\0\0\x01\0\x03").await;
        while self.option_reply().await.1 != 1 {}
    }

    /// Finishes negotiation, and is disconnected.
    pub(super) async fn go_in_vain(&self) {
        self.option(7, b"\0\0\0\0\0\x01\0\x03").await;
        while !self.receive(4096).await.is_empty() {}
    }

    pub(super) async fn structured_options(&self) {
        self.option(8, b"").await;
        assert_eq!(self.option_reply().await, (8, 1, vec![]));
        self.option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation").await;
        assert_eq!(self.option_reply().await, (10, 4, b"\0\0\0\x01base:allocation".to_vec()));
        assert_eq!(self.option_reply().await, (10, 1, vec![]));
    }

    /// The next chunk of a structured reply.
    pub(super) async fn chunk(&self) -> Chunk {
        let head = self.receive(20).await;
        assert_eq!(head[..4], 0x668e_33ef_u32.to_be_bytes(), "a chunk");
        let half = |at: usize| u16::from_be_bytes(head[at..at + 2].try_into().unwrap());
        let length = u32::from_be_bytes(head[16..].try_into().unwrap());
        assert!(half(4) <= 1, "an unknown flag");
        Chunk {
            is_last: half(4) == 1,
            kind: half(6),
            cookie: u64::from_be_bytes(head[8..16].try_into().unwrap()),
            payload: self.receive(length as usize).await,
        }
    }

    /// Sends one request; returns the chunks of its reply.
    pub(super) async fn ask(
        &self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u32,
        payload: &[u8],
    ) -> Vec<Chunk> {
        let cookie = self.request(command, flags, offset, length, payload).await;
        let mut chunks: Vec<Chunk> = Vec::new();
        while chunks.last().is_none_or(|last| !last.is_last) {
            chunks.push(self.chunk().await);
        }
        assert!(chunks.iter().all(|chunk| chunk.cookie == cookie));
        chunks
    }

    /// Sends one request, which must fail; returns the error and its words.
    pub(super) async fn refused(
        &self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u32,
        payload: &[u8],
    ) -> (u32, String) {
        let chunks = self.ask(command, flags, offset, length, payload).await;
        assert_eq!(chunks.len(), 1);
        chunks[0].error()
    }

    /// Sends a request and returns its cookie.
    pub(super) async fn request(
        &self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u32,
        payload: &[u8],
    ) -> u64 {
        let cookie = self.cookies.get() + 1;
        self.cookies.set(cookie);
        let mut bytes = Vec::with_capacity(28 + payload.len());
        bytes.extend(0x2560_9513_u32.to_be_bytes());
        bytes.extend(flags.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(payload);
        self.send(&bytes).await;
        cookie
    }

    /// The next reply's error and cookie.
    pub(super) async fn reply(&self) -> (u32, u64) {
        let bytes = self.receive(16).await;
        assert_eq!(bytes.len(), 16, "the server closed");
        assert_eq!(bytes[..4], 0x6744_6698_u32.to_be_bytes());
        (
            u32::from_be_bytes(bytes[4..8].try_into().unwrap()),
            u64::from_be_bytes(bytes[8..].try_into().unwrap()),
        )
    }

    /// Sends one request; returns the error of its reply.
    pub(super) async fn call(
        &self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u32,
        payload: &[u8],
    ) -> u32 {
        let cookie = self.request(command, flags, offset, length, payload).await;
        let (error, answered) = self.reply().await;
        assert_eq!(answered, cookie);
        error
    }

    pub(super) async fn write(&self, offset: u64, bytes: &[u8]) {
        assert_eq!(self.call(WRITE, 0, offset, bytes.len() as u32, bytes).await, 0);
    }

    pub(super) async fn read(&self, offset: u64, length: u32) -> Vec<u8> {
        assert_eq!(self.call(READ, 0, offset, length, &[]).await, 0);
        self.receive(length as usize).await
    }
}
