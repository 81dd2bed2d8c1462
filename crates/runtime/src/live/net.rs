//! Stream sockets: the system call first, then a wait for readiness if it would block.
use super::Live;
use super::claim;
use super::operation::{Kind, Request};
use crate::transport::{Accept, ByteStream};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketFlags, acceptfrom_with, getsockname, recv, send, sockopt,
};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tantalum_base::{Error, ErrorKind, Result, ResultExt};

/// Connections that the kernel queues until they are accepted.
const QUEUE_MAX: i32 = 1024;

/// A listening address: `unix:/run/x.sock`, `127.0.0.1:10809`, `[::1]:10809`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// A TCP address; port 0 picks any free port.
    Tcp(SocketAddr),
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.strip_prefix("unix:") {
            Some("") => Err(Error::new(ErrorKind::InvalidInput, "\"unix:\" lacks a path")),
            Some(path) => Ok(Address::Unix(PathBuf::from(path))),
            None => text.parse().map(Address::Tcp).map_err(|error| {
                let context = format!(
                    "\"{text}\" is not an address (unix:/path, 127.0.0.1:10809 or [::1]:10809)"
                );
                Error::with_source(ErrorKind::InvalidInput, context, error)
            }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => write!(f, "{address}"),
        }
    }
}

impl Address {
    /// Whether only programs on this machine can reach it: a Unix socket, protected by its file mode, or a loopback
    /// address.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
        }
    }
}

/// A socket and its executor.
struct Socket {
    live: Live,
    fd: Arc<OwnedFd>,
}

impl Socket {
    /// Repeats `call` until it would no longer block.
    async fn retry<T>(
        &self,
        kind: Kind,
        label: &'static str,
        mut call: impl FnMut(&OwnedFd) -> rustix::io::Result<T>,
    ) -> Result<T> {
        loop {
            match call(&self.fd) {
                Ok(value) => return Ok(value),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(Error::io(label, error.into())),
            }
            let fd = Arc::clone(&self.fd);
            let request = Request { kind, fd, buf: None, start: 0, offset: 0 };
            self.live.operate(request, label).await.0.context(|| label)?;
        }
    }
}

/// Accepts connections. The file of a Unix socket is removed when this is dropped.
pub struct Listener {
    socket: Socket,
    address: Address,
}

impl Listener {
    /// Listens at `address`. The file of a Unix socket admits only this user, or also the group in
    /// [`LiveOptions::socket_group`](super::LiveOptions::socket_group), regardless of the umask. Replaces the file of a
    /// socket without a listener. May wait a few seconds, until the socket of a killed server closes or a live server
    /// shows activity.
    ///
    /// # Errors
    /// `Io` if the address is in use or cannot be bound.
    pub fn bind(live: &Live, address: &Address) -> Result<Self> {
        let listening = || format!("listening at {address}");
        let fd =
            claim::listen(address, live.0.socket_group).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => {
                    let remedy = "stop the program that listens there, or choose another address";
                    Error::io(format!("{}; {remedy}", listening()), error)
                }
                _ => Error::io(listening(), error),
            })?;
        // With a longer queue, a client could wait longer behind clients that have already left.
        rustix::net::listen(&fd, QUEUE_MAX).map_err(io::Error::from).context(listening)?;
        rustix::io::ioctl_fionbio(&fd, true).map_err(io::Error::from).context(listening)?;
        let address = match address {
            Address::Unix(_) => address.clone(),
            Address::Tcp(_) => {
                let local = getsockname(&fd).and_then(SocketAddr::try_from);
                Address::Tcp(local.map_err(io::Error::from).context(listening)?)
            }
        };
        Ok(Listener { socket: Socket { live: live.clone(), fd: Arc::new(fd) }, address })
    }

    /// The address, with the real port if 0 was requested.
    pub fn local_address(&self) -> &Address {
        &self.address
    }

    /// The next connection.
    ///
    /// # Errors
    /// `Io`, for instance if there are no descriptors left; the listener stays usable.
    pub async fn accept(&self) -> Result<Stream> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let accept = |fd: &OwnedFd| acceptfrom_with(fd, flags);
        let (fd, _) = self.socket.retry(Kind::PollIn, "a connection", accept).await?;
        if let Address::Tcp(_) = self.address {
            // It fails if the peer has already gone, which the first `recv` reports.
            let _ = set_tcp_options(&fd);
        }
        Ok(Stream::from_fd(&self.socket.live, fd))
    }
}

/// Sends small messages at once, and detects a silently vanished peer in about two minutes.
fn set_tcp_options(fd: &OwnedFd) -> rustix::io::Result<()> {
    sockopt::set_tcp_nodelay(fd, true)?;
    sockopt::set_tcp_keepidle(fd, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(fd, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(fd, 6)?;
    sockopt::set_socket_keepalive(fd, true)
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            // It may already be gone.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A connection. Clones refer to the same connection.
#[derive(Clone)]
pub struct Stream(Rc<Socket>);

impl Stream {
    /// Connects to the listener at `address`. Waits at most 2 seconds, during which the executor does nothing else,
    /// and does not wait for space in the listener's queue.
    ///
    /// # Errors
    /// `Io` if there is no listener.
    pub fn connect(live: &Live, address: &Address) -> Result<Self> {
        let fd = claim::call(address).context(|| format!("connecting to {address}"))?;
        Ok(Stream::from_fd(live, fd))
    }

    /// Takes ownership of a connected stream socket.
    pub fn from_fd(live: &Live, fd: OwnedFd) -> Self {
        // Every call sets DONTWAIT, so the mode of the descriptor does not matter.
        Stream(Rc::new(Socket { live: live.clone(), fd: Arc::new(fd) }))
    }

    /// Receives up to `buf.len()` bytes; 0 if the peer has closed.
    ///
    /// # Errors
    /// `Io`.
    pub async fn recv(&self, buf: &mut [u8]) -> Result<usize> {
        let call = |fd: &OwnedFd| recv(fd, &mut *buf, RecvFlags::DONTWAIT).map(|(_, count)| count);
        self.0.retry(Kind::PollIn, "receiving from a socket", call).await
    }

    /// Sends some of `bytes`; returns the number sent.
    ///
    /// # Errors
    /// `Io`, also if the peer has closed.
    pub async fn send(&self, bytes: &[u8]) -> Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let call = |fd: &OwnedFd| send(fd, bytes, flags);
        self.0.retry(Kind::PollOut, "sending to a socket", call).await
    }

    /// Shuts down both directions; pending calls complete. The descriptor closes with the last clone.
    pub fn shutdown(&self) {
        // It fails only if the connection has already ended.
        let _ = rustix::net::shutdown(&self.0.fd, Shutdown::Both);
    }
}

impl Accept for Listener {
    type Stream = Stream;

    async fn accept(&self) -> Result<Stream> {
        Listener::accept(self).await
    }

    fn give_back_memory() {
        super::memory::give_back();
    }
}

impl ByteStream for Stream {
    async fn recv(&self, into: &mut [u8]) -> Result<usize> {
        Stream::recv(self, into).await
    }

    async fn send(&self, bytes: &[u8]) -> Result<usize> {
        Stream::send(self, bytes).await
    }

    fn shutdown(&self) {
        Stream::shutdown(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{EngineChoice, LiveOptions};

    #[test]
    fn a_tcp_peer_that_is_gone_is_looked_for() {
        let live = Live::new(LiveOptions::default()).unwrap();
        let listener = Listener::bind(&live, &"127.0.0.1:0".parse().unwrap()).unwrap();
        let Address::Tcp(address) = *listener.local_address() else { unreachable!() };
        let _client = std::net::TcpStream::connect(address).unwrap();
        let stream = live.run(async move { listener.accept().await }).unwrap();
        assert!(sockopt::socket_keepalive(&stream.0.fd).unwrap());
        let idle = sockopt::tcp_keepidle(&stream.0.fd).unwrap();
        let probes = sockopt::tcp_keepcnt(&stream.0.fd).unwrap();
        let pause = sockopt::tcp_keepintvl(&stream.0.fd).unwrap();
        assert_eq!(idle + pause * probes, Duration::from_secs(120));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the peer is another thread, in real time")]
    fn what_ends_in_the_executors_own_wait_does_not_wake_it_once_more() {
        for engine in [EngineChoice::Auto, EngineChoice::Threads] {
            let live =
                Live::new(LiveOptions { engine, spin_ns: 0, ..LiveOptions::default() }).unwrap();
            let (ours, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
            let stream = Stream::from_fd(&live, ours.into());
            let handle = live.clone();
            let sender = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(30));
                std::io::Write::write_all(&mut peer, b"x").unwrap();
                peer
            });
            let wakes = live.run(async move {
                assert_eq!(stream.recv(&mut [0; 8]).await.unwrap(), 1);
                let wake_fd = handle.0.tasks.queue.wake_fd().expect("an executor with a thread");
                rustix::io::read(wake_fd, &mut [0; 8])
            });
            assert_eq!(wakes, Err(Errno::AGAIN), "{engine:?}");
            sender.join().unwrap();
        }
    }
}
