//! Non-blocking Unix sockets for tests: tasks run on the virtual executor, whose main task
//! waits for sockets whenever everybody else does. Timers do not fire.
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use tantalum_base::{Error, Result};
use tantalum_nbd::{Accept, ByteStream};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

/// Turns without a socket making progress after which all tasks are taken to wait for one.
const QUIET_TURNS: u32 = 8;

enum Socket {
    Listener(UnixListener),
    Stream(UnixStream),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Listener(listener) => listener.as_fd(),
            Socket::Stream(stream) => stream.as_fd(),
        }
    }
}

#[derive(Default)]
struct Waiting {
    sockets: RefCell<Vec<(Rc<Socket>, PollFlags, Waker)>>,
    progress: Cell<bool>,
}

/// The sockets of one executor.
#[derive(Clone, Default)]
pub struct Reactor(Rc<Waiting>);

impl Reactor {
    /// Runs `main` with a reactor of its own.
    pub fn run<F: Future + 'static>(main: impl FnOnce(Virtual, Reactor) -> F) -> F::Output
    where
        F::Output: 'static,
    {
        let runtime = Virtual::new(Schedule::Fifo);
        let reactor = Reactor::default();
        let main = main(runtime.clone(), reactor.clone());
        let result = runtime.run(async move {
            let mut main = pin!(main);
            let mut quiet_turns = 0;
            poll_fn(move |context| {
                if let Poll::Ready(output) = main.as_mut().poll(context) {
                    return Poll::Ready(output);
                }
                quiet_turns = if reactor.0.progress.take() { 0 } else { quiet_turns + 1 };
                if quiet_turns >= QUIET_TURNS {
                    reactor.wait();
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await
        });
        result.expect("the main task is always ready")
    }

    pub fn listen(&self, path: &Path) -> Listener {
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        Listener { reactor: self.clone(), socket: Rc::new(Socket::Listener(listener)) }
    }

    fn wait(&self) {
        let mut sockets = self.0.sockets.borrow_mut();
        let mut polled: Vec<_> =
            sockets.iter().map(|(socket, flags, _)| PollFd::new(socket, *flags)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        poll(&mut polled, Some(&timeout)).unwrap();
        drop(polled);
        sockets.drain(..).for_each(|(_, _, waker)| waker.wake());
    }

    async fn until_done<T>(
        &self,
        socket: &Rc<Socket>,
        flags: PollFlags,
        mut io: impl FnMut(&Socket) -> std::io::Result<T>,
    ) -> Result<T> {
        poll_fn(|context| match io(socket) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let waiter = (Rc::clone(socket), flags, context.waker().clone());
                self.0.sockets.borrow_mut().push(waiter);
                Poll::Pending
            }
            result => {
                self.0.progress.set(true);
                Poll::Ready(result.map_err(|error| Error::io("a test's socket", error)))
            }
        })
        .await
    }
}

pub struct Listener {
    reactor: Reactor,
    socket: Rc<Socket>,
}

#[derive(Clone)]
pub struct Stream {
    reactor: Reactor,
    socket: Rc<Socket>,
}

impl Accept for Listener {
    type Stream = Stream;

    async fn accept(&self) -> Result<Stream> {
        let accept = |socket: &Socket| match socket {
            Socket::Listener(listener) => listener.accept(),
            Socket::Stream(_) => Err(ErrorKind::InvalidInput.into()),
        };
        let (stream, _) = self.reactor.until_done(&self.socket, PollFlags::IN, accept).await?;
        stream.set_nonblocking(true).unwrap();
        let socket = Rc::new(Socket::Stream(stream));
        Ok(Stream { reactor: self.reactor.clone(), socket })
    }
}

impl Stream {
    async fn io<T>(
        &self,
        flags: PollFlags,
        mut io: impl FnMut(&UnixStream) -> std::io::Result<T>,
    ) -> Result<T> {
        let io = |socket: &Socket| match socket {
            Socket::Stream(stream) => io(stream),
            Socket::Listener(_) => Err(ErrorKind::InvalidInput.into()),
        };
        self.reactor.until_done(&self.socket, flags, io).await
    }
}

impl ByteStream for Stream {
    async fn recv(&self, into: &mut [u8]) -> Result<usize> {
        self.io(PollFlags::IN, |mut stream| stream.read(into)).await
    }

    async fn send(&self, bytes: &[u8]) -> Result<usize> {
        self.io(PollFlags::OUT, |mut stream| stream.write(bytes)).await
    }

    fn shutdown(&self) {
        if let Socket::Stream(stream) = &*self.socket {
            // Fails where the client has closed already, which is as good.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
