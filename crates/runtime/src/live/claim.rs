//! Claims an address to listen at.
//!
//! A killed server leaves the file of its Unix socket behind. For some milliseconds it even leaves its listening
//! socket: the kernel tears down the io_uring of the process after its parent was notified of its exit. Until then
//! clients can connect, but nobody accepts. When such a socket closes, its clients are disconnected. A live listener
//! sends something, or keeps its clients waiting.
use super::net::Address;
use super::socket_file;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A listener is alive if it keeps a client connected for this long without sending a byte.
const SILENCE: Duration = Duration::from_secs(2);
/// Time to retry while listeners disconnect the client. A killed listener does so once; a live one that refuses every
/// client does so repeatedly.
const HANG_UPS: Duration = Duration::from_secs(4);
const RETRY: Duration = Duration::from_millis(5);

/// Listens at `address`, replacing a dead server. `AddrInUse` if a live server listens there, `AlreadyExists` if the
/// name belongs to something else. Members of `group` may also connect to a Unix socket.
#[expect(clippy::disallowed_methods, reason = "a server starts once, before its executor runs")]
pub(super) fn listen(address: &Address, group: Option<u32>) -> io::Result<OwnedFd> {
    let bind = || -> io::Result<OwnedFd> {
        match address {
            Address::Unix(path) => socket_file::listen_at(path, group),
            Address::Tcp(address) => TcpListener::bind(address).map(OwnedFd::from),
        }
    };
    let begin = Instant::now();
    loop {
        let in_use = match bind() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => error,
            done => return done,
        };
        if begin.elapsed() > HANG_UPS {
            return Err(in_use);
        }
        match call(address) {
            Ok(client) if hangs_up(&client)? => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => match address {
                Address::Unix(path) => remove(path)?,
                // A socket is bound to the address but does not listen. The address may be free by now.
                Address::Tcp(_) => {}
            },
            // The server has removed the file since the attempt to bind.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.raw_os_error() == Some(Errno::NOTSOCK.raw_os_error()) => {
                let words = "a file or folder of that name exists and is not a socket";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, words));
            }
            // A live server listens there.
            Ok(_) | Err(_) => return Err(in_use),
        }
        std::thread::sleep(RETRY);
    }
}

/// Removes the file of a socket. A file that is already gone is no error.
fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Connects to the listener at `address`, without waiting for space in its queue.
pub(super) fn call(address: &Address) -> io::Result<OwnedFd> {
    match address {
        Address::Unix(path) => call_unix(path),
        Address::Tcp(address) => call_tcp(address),
    }
}

fn call_unix(path: &Path) -> io::Result<OwnedFd> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(Errno::NOTSOCK.into());
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let client = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&client, &SocketAddrUnix::new(path)?)?;
    Ok(client)
}

fn call_tcp(address: &SocketAddr) -> io::Result<OwnedFd> {
    TcpStream::connect_timeout(address, SILENCE).map(OwnedFd::from)
}

/// Waits for the other side to hang up; returns whether it did within [`SILENCE`].
fn hangs_up(client: &OwnedFd) -> io::Result<bool> {
    let timeout = Timespec { tv_sec: SILENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut polled = [PollFd::new(client, PollFlags::IN)];
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
}
