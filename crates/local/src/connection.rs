//! The client's side of a connection, for blocking threads.
//!
//! Any number of threads may call at once. One of the waiting threads receives the answers for all: a single thread
//! needs one send and one receive per request, and no thread switch in this process.
use crate::protocol::{
    self, HEAD_BYTES, Head, Hello, PAGES_MAX, Welcome, decode_reply, encode_call,
};
use crate::request::{Answer, Call, Request};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect as call,
    recv, send, socket_with,
};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tantalum_base::{Error, ErrorKind, PageBuf, PageNo, Result, ResultExt, TxId};
use tantalum_runtime::live::ParentOnly;

/// Limit on the bytes of one receive, except for long answers.
const BUFFER_BYTES: usize = 64 << 10;
/// Time between two attempts.
const RETRY: Duration = Duration::from_millis(5);

/// The time to wait for a server.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For its greeting.
    pub greeting: Duration,
    /// For a server that hangs up without a message. It may be a killed process, which the kernel needs time to end.
    pub hang_ups: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { greeting: Duration::from_secs(10), hang_ups: Duration::from_secs(4) }
    }
}

/// Calls of one thread in flight at once: half of those that the server accepts from a client.
const CALLS_AT_ONCE: usize = 32;

/// A connection to a server.
pub struct Connection {
    /// Makes the connection unusable in forked children, so that it ends with the process that made it.
    _parent_only: ParentOnly,
    socket: OwnedFd,
    path: PathBuf,
    welcome: Welcome,
    next_number: AtomicU64,
    /// Held while sending.
    sending: Mutex<()>,
    incoming: Mutex<Incoming>,
    /// Notified when an answer was received, and when no thread receives any more.
    came: Condvar,
    has_gone: AtomicBool,
}

struct Incoming {
    /// `None` while a thread receives.
    inbox: Option<Inbox>,
    /// Answers that were received for other threads.
    answers: BTreeMap<u64, Result<Answer>>,
    /// The reason for which there will be no more answers.
    failed: Option<Error>,
}

/// Connects to the server that listens at `path`; `None` if there is no server.
///
/// # Errors
/// `Io` if this is not permitted, or if the server does not answer; the server's error if it refuses the client.
#[expect(clippy::disallowed_methods, reason = "opening a volume blocks the caller's thread")]
pub fn connect(path: &Path, read_only: bool, patience: Patience) -> Result<Option<Connection>> {
    let begin = Instant::now();
    let connecting = || format!("connecting to {}, where the volume is served", path.display());
    loop {
        let Some(socket) = reach(path).context(connecting)? else { return Ok(None) };
        match greet(&socket, read_only, patience).context(connecting)? {
            Some((welcome, inbox)) => {
                let parent_only = ParentOnly::new(socket.as_fd())?;
                let inbox = Some(inbox);
                let incoming = Incoming { inbox, answers: BTreeMap::new(), failed: None };
                return Ok(Some(Connection {
                    _parent_only: parent_only,
                    socket,
                    path: path.into(),
                    welcome,
                    next_number: AtomicU64::new(1),
                    sending: Mutex::default(),
                    incoming: Mutex::new(incoming),
                    came: Condvar::new(),
                    has_gone: AtomicBool::new(false),
                }));
            }
            None if begin.elapsed() > patience.hang_ups => {
                let context = format!("{}: the server closed the connection", connecting());
                return Err(Error::new(ErrorKind::Io, context));
            }
            None => std::thread::sleep(RETRY),
        }
    }
}

/// A socket connected to `path`, or to the target of a link there; `None` if no server listens.
fn reach(path: &Path) -> io::Result<Option<OwnedFd>> {
    // The path of a link may be longer than the path of a socket.
    let to = std::fs::read_link(path).unwrap_or_else(|_| path.into());
    match std::fs::metadata(&to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let address = SocketAddrUnix::new(&to)?;
    match again(|| call(&socket, &address)) {
        Ok(()) => Ok(Some(socket)),
        Err(Errno::NOENT | Errno::CONNREFUSED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Exchanges greetings; `None` if the server hangs up without a message.
fn greet(
    socket: &OwnedFd,
    read_only: bool,
    patience: Patience,
) -> Result<Option<(Welcome, Inbox)>> {
    let timeout = |wait| set_socket_timeout(socket, Timeout::Recv, wait).map_err(io::Error::from);
    timeout(Some(patience.greeting)).context(|| "setting a timeout")?;
    let hello = Hello { read_only, pid: std::process::id() };
    // Even if the server has hung up, it may have sent the reason before.
    let _ = send_all(socket, &hello.encode());
    let mut inbox = Inbox::new();
    let (head, body) = match inbox.frame(socket) {
        Ok(frame) => frame,
        Err(Errno::AGAIN) => {
            return Err(Error::new(ErrorKind::Io, "the server does not answer"));
        }
        Err(Errno::CONNRESET | Errno::PIPE) => return Ok(None),
        Err(Errno::BADMSG) => return Err(protocol::malformed("no greeting")),
        Err(error) => return Err(Error::io("its greeting", error.into())),
    };
    let welcome = Welcome::decode(head.kind, &body)?;
    timeout(None).context(|| "setting a timeout")?;
    Ok(Some((welcome, inbox)))
}

impl Connection {
    /// The server's greeting.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Whether the server has gone. Every call fails from then on.
    pub fn has_gone(&self) -> bool {
        self.has_gone.load(Ordering::Acquire)
    }

    /// Performs `request`, in several calls if it does not fit into one.
    ///
    /// # Errors
    /// The device's; `Closed` if the server has gone.
    pub fn ask(&self, request: Request) -> Result<Answer> {
        match request {
            Request::Read { first, pages, tx } if pages > PAGES_MAX => {
                let mut answer = Answer::default();
                for at in (0..pages).step_by(PAGES_MAX) {
                    let (first, pages) = (PageNo(first.0 + at as u64), PAGES_MAX.min(pages - at));
                    let read = Call::Device(Request::Read { first, pages, tx });
                    answer.pages.extend(self.call(&read)?.pages);
                }
                Ok(answer)
            }
            Request::Write { first, pages, tx: Some(tx) } if pages.len() > PAGES_MAX => {
                self.write_parts(first, &pages, tx)
            }
            Request::WriteScattered(pages) if pages.len() > PAGES_MAX => {
                self.write_scattered_parts(&pages)
            }
            request => self.call(&Call::Device(request)),
        }
    }

    fn write_parts(&self, first: PageNo, pages: &[PageBuf], tx: TxId) -> Result<Answer> {
        let mut at = first.0;
        for part in pages.chunks(PAGES_MAX) {
            let write = Request::Write { first: PageNo(at), pages: part.to_vec(), tx: Some(tx) };
            self.call(&Call::Device(write))?;
            at += part.len() as u64;
        }
        Ok(Answer::default())
    }

    /// Uses a transaction of the device, which is all or nothing as well.
    fn write_scattered_parts(&self, pages: &[(PageNo, PageBuf)]) -> Result<Answer> {
        self.welcome.limits.check_scattered(pages)?;
        let tx = self.call(&Call::Device(Request::Begin))?.tx;
        let runs = pages.chunk_by(|(page, _), (next, _)| page.0 + 1 == next.0);
        let written = runs.into_iter().try_for_each(|run| {
            let content: Vec<_> = run.iter().map(|(_, content)| content.clone()).collect();
            self.ask(Request::Write { first: run[0].0, pages: content, tx: Some(tx) }).map(drop)
        });
        let written = written.inspect_err(|_| {
            // If this does not reach the server, the server aborts the transaction itself.
            let _ = self.call(&Call::Device(Request::Abort(tx)));
        });
        written.and_then(|()| self.call(&Call::Device(Request::Commit(tx))))
    }

    /// Makes a call, and waits for the answer.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn call(&self, call: &Call) -> Result<Answer> {
        let number = self.begin(call)?;
        self.answer_to(number)
    }

    /// Reads `pages`, which are in ascending order and need not be contiguous, as `tx` sees them. Makes one call for
    /// each contiguous run, with the calls in flight at the same time.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn read_each(&self, pages: &[PageNo], tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        let mut read = Vec::with_capacity(pages.len());
        let runs: Vec<&[PageNo]> = pages
            .chunk_by(|page, next| page.0 + 1 == next.0)
            .flat_map(|run| run.chunks(PAGES_MAX))
            .collect();
        for runs in runs.chunks(CALLS_AT_ONCE) {
            let begin = |run: &&[PageNo]| {
                self.begin(&Call::Device(Request::Read { first: run[0], pages: run.len(), tx }))
            };
            let numbers: Vec<Result<u64>> = runs.iter().map(begin).collect();
            // All answers are received, even if one is an error.
            let answers: Vec<Result<Answer>> =
                numbers.into_iter().map(|number| self.answer_to(number?)).collect();
            for answer in answers {
                read.extend(answer?.pages);
            }
        }
        Ok(read)
    }

    /// Sends a call and returns its number, which its answer will have too.
    fn begin(&self, call: &Call) -> Result<u64> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        self.send(&encode_call(number, call))?;
        Ok(number)
    }

    /// Waits for the answer to the call of this `number`.
    fn answer_to(&self, number: u64) -> Result<Answer> {
        let mut incoming = lock(&self.incoming);
        loop {
            if let Some(answer) = incoming.answers.remove(&number) {
                return answer;
            }
            if let Some(failed) = &incoming.failed {
                return Err(failed.clone());
            }
            incoming = match incoming.inbox.take() {
                Some(inbox) => {
                    drop(incoming);
                    self.receive(inbox, number)
                }
                None => self.came.wait(incoming).unwrap_or_else(|poisoned| poisoned.into_inner()),
            };
        }
    }

    /// Makes a call that has no answer.
    pub fn tell(&self, call: &Call) {
        // If the server has gone, the message is not needed.
        let _ = self.send(&encode_call(0, call));
    }

    /// Receives answers until the one to `number` has arrived.
    fn receive(&self, mut inbox: Inbox, number: u64) -> MutexGuard<'_, Incoming> {
        loop {
            let received = inbox.frame(&self.socket);
            let mut incoming = lock(&self.incoming);
            let came = match received {
                Ok((head, body)) if head.number != 0 => {
                    incoming.answers.insert(head.number, decode_reply(head.kind, &body));
                    head.number
                }
                // The server sends the reason for which it hangs up.
                Ok((head, body)) => {
                    let why = decode_reply(head.kind, &body).err();
                    incoming.failed = Some(self.gone(why));
                    number
                }
                Err(error) => {
                    let why = Error::io("its connection", error.into());
                    incoming.failed.get_or_insert_with(|| self.gone(Some(why)));
                    number
                }
            };
            self.came.notify_all();
            if came == number {
                incoming.inbox = Some(inbox);
                return incoming;
            }
        }
    }

    fn send(&self, frame: &[u8]) -> Result<()> {
        let _turn = lock(&self.sending);
        send_all(&self.socket, frame).map_err(|error| {
            let why = Error::io("its connection", error.into());
            let mut incoming = lock(&self.incoming);
            incoming.failed.get_or_insert_with(|| self.gone(Some(why))).clone()
        })
    }

    fn gone(&self, why: Option<Error>) -> Error {
        self.has_gone.store(true, Ordering::Release);
        let context = format!("the server at {} has gone", self.path.display());
        match why {
            Some(why) => Error::with_source(ErrorKind::Closed, context, why),
            None => Error::new(ErrorKind::Closed, context),
        }
    }
}

/// Received and unread bytes: `buffer[start..end]`.
struct Inbox {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Inbox {
    fn new() -> Inbox {
        Inbox { buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// Receives a frame. `CONNRESET` if the other side has closed, `BADMSG` if it sends something else.
    fn frame(&mut self, socket: &OwnedFd) -> std::result::Result<(Head, Vec<u8>), Errno> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < HEAD_BYTES {
            self.end += receive(socket, &mut self.buffer[self.end..])?;
        }
        let head = self.buffer.first_chunk::<HEAD_BYTES>().ok_or(Errno::BADMSG)?;
        let head = Head::decode(head).map_err(|_| Errno::BADMSG)?;
        let here = head.body_bytes.min(self.end - HEAD_BYTES);
        let mut body = Vec::with_capacity(head.body_bytes);
        body.extend_from_slice(&self.buffer[HEAD_BYTES..HEAD_BYTES + here]);
        self.start = HEAD_BYTES + here;
        body.resize(head.body_bytes, 0);
        let mut end = here;
        while end < body.len() {
            end += receive(socket, &mut body[end..])?;
        }
        Ok((head, body))
    }
}

/// Receives at least one byte.
fn receive(socket: &OwnedFd, into: &mut [u8]) -> std::result::Result<usize, Errno> {
    match again(|| recv(socket, &mut *into, RecvFlags::empty()).map(|(_, count)| count))? {
        0 => Err(Errno::CONNRESET),
        received => Ok(received),
    }
}

/// Sends all of `bytes`. If the server has gone, this returns an error and raises no signal that would end the program.
fn send_all(socket: &OwnedFd, mut bytes: &[u8]) -> std::result::Result<(), Errno> {
    while !bytes.is_empty() {
        let sent = again(|| send(socket, bytes, SendFlags::NOSIGNAL))?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// Repeats a call that a signal interrupted.
fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// State behind a mutex is changed in one step, so it is consistent even after a panic elsewhere.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
