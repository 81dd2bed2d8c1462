//! Positioned I/O on a file or block device.
use super::operation::{Kind, Request};
use super::{Live, Operation};
use crate::IoBuf;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use tantalum_base::{Error, Result};

/// The treatment of the space of a zeroed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroedSpace {
    /// Returned to the file system or device, so a later write may find it full.
    GivenBack,
    /// Kept allocated.
    Kept,
}

/// An open file on an executor. Cheap to clone; clones refer to the same open file.
#[derive(Clone)]
pub struct LiveFile {
    live: Live,
    fd: Arc<OwnedFd>,
}

impl LiveFile {
    /// Takes ownership of the file. Open it with `O_DIRECT` for direct I/O.
    pub fn new(live: &Live, file: File) -> Self {
        LiveFile { live: live.clone(), fd: Arc::new(file.into()) }
    }

    /// Fills `buf` from `offset` (bytes), and returns the buffer. If the future is dropped, the buffer is freed when
    /// the kernel has finished with it.
    ///
    /// # Errors
    /// `Io`, also if the file ends before the buffer is full.
    pub async fn read_at(&self, offset: u64, buf: IoBuf) -> (Result<()>, IoBuf) {
        self.transfer(Kind::Read, offset, buf).await
    }

    /// Writes all of `buf` at `offset` (bytes). With `durable`, the data is on stable storage when this completes
    /// (`RWF_DSYNC`).
    ///
    /// # Errors
    /// `Io`; part of the buffer may have been written.
    pub async fn write_at(&self, offset: u64, buf: IoBuf, durable: bool) -> (Result<()>, IoBuf) {
        self.transfer(Kind::Write { durable }, offset, buf).await
    }

    /// Makes every write that completed before this call durable (`fdatasync`).
    ///
    /// # Errors
    /// `Io`; writes since the last successful sync may be lost.
    pub async fn sync_data(&self) -> Result<()> {
        loop {
            match self.operate(Kind::SyncData, 0, None, 0).await.0 {
                Ok(_) => return Ok(()),
                Err(error) if again(&error) => {}
                Err(error) => return Err(Error::io(format!("syncing {}", self.name()), error)),
            }
        }
    }

    /// Makes `bytes` from `offset` read as zeros without writing them; the length of the file is unchanged. Durable
    /// after the next [`sync_data`](Self::sync_data). Returns `false`, with nothing changed, if the file system or
    /// device has no such operation; the caller must then write zeros.
    ///
    /// # Errors
    /// `Io`; part of the range may read as zeros.
    pub async fn zero(&self, offset: u64, bytes: u64, space: ZeroedSpace) -> Result<bool> {
        let how = match space {
            ZeroedSpace::GivenBack => FallocateFlags::PUNCH_HOLE,
            ZeroedSpace::Kept => FallocateFlags::ZERO_RANGE,
        };
        let kind = Kind::Zero { bytes, mode: how | FallocateFlags::KEEP_SIZE };
        loop {
            match self.operate(kind, offset, None, 0).await.0 {
                Ok(_) => return Ok(true),
                Err(error) if again(&error) => {}
                Err(error) if is_unsupported(&error) => return Ok(false),
                Err(error) => {
                    let context = format!("zeroing {bytes} bytes at offset {offset}");
                    return Err(Error::io(format!("{context} of {}", self.name()), error));
                }
            }
        }
    }

    async fn transfer(&self, kind: Kind, offset: u64, mut buf: IoBuf) -> (Result<()>, IoBuf) {
        let len = buf.len();
        let mut done = 0;
        while done < len {
            let (result, back) = self.operate(kind, offset + done as u64, Some(buf), done).await;
            // Every operation with a buffer returns it.
            buf = back.unwrap_or_else(|| IoBuf::zeroed(len));
            let failure = match result {
                Ok(0) => end_of(kind),
                Ok(count) => {
                    done += count;
                    continue;
                }
                Err(error) if again(&error) => continue,
                // Direct I/O after a short read: the rest of the file is not a whole block.
                Err(error) if done > 0 && errno(&error) == Some(Errno::INVAL) => end_of(kind),
                Err(error) => error,
            };
            let what = if kind == Kind::Read { "reading" } else { "writing" };
            let context = format!("{what} {len} bytes at offset {offset} of {}", self.name());
            return (Err(Error::io(context, failure)), buf);
        }
        (Ok(()), buf)
    }

    fn operate(&self, kind: Kind, offset: u64, buf: Option<IoBuf>, start: usize) -> Operation {
        let label = match kind {
            Kind::Read => "a file read",
            Kind::SyncData => "a file sync",
            Kind::Zero { .. } => "zeroing a file",
            _ => "a file write",
        };
        let request = Request { kind, fd: Arc::clone(&self.fd), buf, start, offset };
        self.live.operate(request, label)
    }

    /// The path, looked up only for error messages.
    fn name(&self) -> String {
        let number = self.fd.as_raw_fd();
        std::fs::read_link(format!("/proc/self/fd/{number}"))
            .map_or_else(|_| format!("descriptor {number}"), |path| path.display().to_string())
    }
}

fn end_of(kind: Kind) -> io::Error {
    if kind == Kind::Read {
        io::Error::new(io::ErrorKind::UnexpectedEof, "end of file")
    } else {
        io::Error::new(io::ErrorKind::WriteZero, "the file takes no more bytes")
    }
}

fn errno(error: &io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}

/// Whether the file or device does not support the operation at all. A device may report that as `INVAL`.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL))
}

fn again(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::INTR | Errno::AGAIN))
}
