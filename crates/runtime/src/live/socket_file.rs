//! Listens at a Unix socket. The mode of its file determines who may connect: the owner, or the owner and one group.
//!
//! The umask belongs to the whole process, so this code neither relies on it nor changes it. The file is never open to
//! others, not even between its creation and its final mode.
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, chmod, chownat, fchmod, fstat, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Only the owner may connect.
const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);
/// The owner and the group may connect.
const GROUP: Mode = OWNER.union(Mode::RGRP).union(Mode::WGRP);
/// The number of clients that wait to be accepted has only the kernel's own limit.
const WAITING_MAX: i32 = -1;

/// Listens at `path`, for clients of this user, and of `group` if there is one.
pub(super) fn listen_at(path: &Path, group: Option<u32>) -> io::Result<OwnedFd> {
    // The system's error message is in terms of C, so use a better one.
    let name = SocketAddrUnix::new(path).map_err(|_| {
        let words = "the path of a socket has at most 107 bytes";
        io::Error::new(io::ErrorKind::InvalidInput, words)
    })?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Linux creates the file with the mode of the socket, less the umask.
    fchmod(&socket, OWNER)?;
    bind(&socket, &name)?;
    let listening = listen(&socket, WAITING_MAX).map_err(io::Error::from);
    match listening.and_then(|()| admit(path, group)) {
        Ok(()) => Ok(socket),
        Err(error) => {
            // The first failure is the one to report.
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}

/// Gives the new socket at `path` its group and its mode.
fn admit(path: &Path, group: Option<u32>) -> io::Result<()> {
    // Opens the file itself and follows no link, because the name may lead elsewhere by now.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty())?;
    let found = fstat(&file)?.st_mode;
    if FileType::from_raw_mode(found) != FileType::Socket {
        return Err(Errno::NOTSOCK.into());
    }
    if let Some(group) = group {
        let given = chownat(&file, "", None, Some(Gid::from_raw(group)), AtFlags::EMPTY_PATH);
        given.map_err(|error| {
            let why = format!(
                "the socket cannot be given to group {group} ({}): run the server as a member of that group, or as root",
                io::Error::from(error)
            );
            io::Error::new(io::Error::from(error).kind(), why)
        })?;
    }
    let wanted = if group.is_some() { GROUP } else { OWNER };
    if Mode::from_raw_mode(found) != wanted {
        chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), wanted)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_admits_its_owner_and_a_group_that_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let own = folder.path().metadata().unwrap().gid();
        for (group, mode) in [(None, 0o600), (Some(own), 0o660)] {
            let _listening = listen_at(&path, group).unwrap();
            let about = path.metadata().unwrap();
            assert_eq!((about.permissions().mode() & 0o777, about.gid()), (mode, own));
            UnixStream::connect(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
        }
    }
}
