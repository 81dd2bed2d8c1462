//! A network in memory, for servers in virtual time. Bytes arrive in pieces of random length.
use crate::sync::WaitQueue;
use crate::transport::{Accept, ByteStream};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tantalum_base::{Result, Rng};

/// Bytes that one direction buffers before the sender waits.
const CAPACITY: usize = 200_000;

struct Half {
    bytes: RefCell<VecDeque<u8>>,
    closed: Cell<bool>,
    changed: WaitQueue,
}

impl Half {
    fn new() -> Rc<Self> {
        Rc::new(Half {
            bytes: RefCell::default(),
            closed: Cell::new(false),
            changed: WaitQueue::new("the other end of a pipe"),
        })
    }

    fn close(&self) {
        self.closed.set(true);
        self.changed.wake_all();
    }
}

/// One end of a connection.
#[derive(Clone)]
pub struct PipeEnd {
    incoming: Rc<Half>,
    outgoing: Rc<Half>,
    rng: Rc<RefCell<Rng>>,
}

/// Both ends of a new connection.
pub fn pipe(seed: u64) -> (PipeEnd, PipeEnd) {
    let (one, two) = (Half::new(), Half::new());
    let rng = |label| Rc::new(RefCell::new(Rng::split(seed, label)));
    (
        PipeEnd { incoming: Rc::clone(&one), outgoing: Rc::clone(&two), rng: rng("one") },
        PipeEnd { incoming: two, outgoing: one, rng: rng("two") },
    )
}

impl PipeEnd {
    fn piece(&self, available: usize) -> usize {
        let mut rng = self.rng.borrow_mut();
        if rng.chance(0.5) { available } else { 1 + rng.below(available as u64) as usize }
    }

    /// Bytes sent but not yet received by the other end.
    pub fn unreceived(&self) -> usize {
        self.outgoing.bytes.borrow().len()
    }
}

impl ByteStream for PipeEnd {
    async fn recv(&self, into: &mut [u8]) -> Result<usize> {
        let half = &self.incoming;
        let received = half
            .changed
            .until(|| {
                let mut bytes = half.bytes.borrow_mut();
                if bytes.is_empty() {
                    return half.closed.get().then_some(0);
                }
                let piece = self.piece(bytes.len().min(into.len()));
                bytes.drain(..piece).zip(into.iter_mut()).for_each(|(byte, to)| *to = byte);
                Some(piece)
            })
            .await;
        half.changed.wake_all();
        Ok(received)
    }

    async fn send(&self, from: &[u8]) -> Result<usize> {
        let half = &self.outgoing;
        let sent = half
            .changed
            .until(|| {
                if half.closed.get() {
                    return Some(0);
                }
                let mut bytes = half.bytes.borrow_mut();
                let room = (CAPACITY - bytes.len()).min(from.len());
                (room > 0).then(|| {
                    let piece = self.piece(room);
                    bytes.extend(&from[..piece]);
                    piece
                })
            })
            .await;
        half.changed.wake_all();
        Ok(sent)
    }

    fn shutdown(&self) {
        self.incoming.close();
        self.outgoing.close();
    }
}

/// A listener for connections in memory. Clones are handles to the same listener.
#[derive(Clone)]
pub struct PipeListener(Rc<Waiting>);

struct Waiting {
    connections: RefCell<VecDeque<PipeEnd>>,
    came: WaitQueue,
}

impl Default for PipeListener {
    fn default() -> Self {
        Self::new()
    }
}

impl PipeListener {
    /// A listener without connections.
    pub fn new() -> Self {
        let came = WaitQueue::new("a connection");
        PipeListener(Rc::new(Waiting { connections: RefCell::default(), came }))
    }

    /// Connects to the listener, and queues the server's end to be accepted.
    pub fn connect(&self, seed: u64) -> PipeEnd {
        let (client, server) = pipe(seed);
        self.0.connections.borrow_mut().push_back(server);
        self.0.came.wake_all();
        client
    }
}

impl Accept for PipeListener {
    type Stream = PipeEnd;

    async fn accept(&self) -> Result<PipeEnd> {
        Ok(self.0.came.until(|| self.0.connections.borrow_mut().pop_front()).await)
    }
}
