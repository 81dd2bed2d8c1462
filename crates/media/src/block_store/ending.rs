//! The end of a file within a block: its last sectors, which direct I/O may not be able to write.
use super::file::FileStoreOptions;
use super::opening::io;
use super::{BLOCK_BYTES, IoBuf, SECTOR_BYTES};
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::Live;
use tantalum_runtime::live::{LiveFile, ParentOnly};

/// How the last sectors of a file are read and written.
pub(super) struct Ending {
    /// The file through the page cache, with what is dropped before it is closed; `None` where the way to all others will do.
    cached: Option<(ParentOnly, LiveFile)>,
}

/// Bytes of the store in a file of `held` bytes, which is to end as `end_bytes` says.
pub(super) fn store_bytes(held: u64, end_bytes: Option<u64>) -> u64 {
    let ends = end_bytes.filter(|end| *end <= held && end.is_multiple_of(SECTOR_BYTES));
    ends.unwrap_or(held / BLOCK_BYTES * BLOCK_BYTES)
}

impl Ending {
    /// That of the store of `bytes` bytes in `file`, which is open as `options` say.
    ///
    /// A file system may take direct I/O in blocks alone. A block device takes whole sectors of its own, and is as long as some
    /// of these.
    ///
    /// # Errors
    /// `Io` where it cannot be opened another time.
    pub(super) fn of(
        live: &Live,
        file: &File,
        path: &Path,
        bytes: u64,
        options: FileStoreOptions,
    ) -> Result<Self> {
        let metadata = file.metadata().map_err(|error| io(path, "looking at", error))?;
        if bytes.is_multiple_of(BLOCK_BYTES) || !metadata.is_file() || !options.direct {
            return Ok(Ending { cached: None });
        }
        let cached = OpenOptions::new().read(true).write(!options.read_only).open(path);
        let cached = cached.map_err(|error| io(path, "opening", error))?;
        let again = cached.metadata().map_err(|error| io(path, "looking at", error))?;
        if (again.dev(), again.ino()) != (metadata.dev(), metadata.ino()) {
            let context = format!("{} was replaced while it was opened", path.display());
            return Err(Error::new(ErrorKind::Io, context));
        }
        let parent_only = ParentOnly::new(cached.as_fd())?;
        Ok(Ending { cached: Some((parent_only, LiveFile::new(live, cached))) })
    }

    /// As [`LiveFile::read_at`] of `file`, also where the last block is not whole.
    pub(super) async fn read_at(
        &self,
        file: &LiveFile,
        offset: u64,
        mut buf: IoBuf,
    ) -> (Result<()>, IoBuf) {
        let Some((cached, blocks)) = self.split(&buf) else {
            return file.read_at(offset, buf).await;
        };
        let bytes = buf.len();
        buf.set_len(blocks);
        let (mut result, mut buf) = file.read_at(offset, buf).await;
        buf.set_len(bytes);
        if result.is_ok() {
            let rest = IoBuf::zeroed(bytes - blocks);
            let (read, rest) = cached.read_at(offset + blocks as u64, rest).await;
            buf[blocks..].copy_from_slice(&rest);
            result = read;
        }
        (result, buf)
    }

    /// As [`LiveFile::write_at`] of `file`, also where the last block is not whole. Its sectors are durable at once: that the page
    /// cache could not write them would be told to one sync alone, and not to the next that is tried.
    pub(super) async fn write_at(
        &self,
        file: &LiveFile,
        offset: u64,
        mut buf: IoBuf,
        durable: bool,
    ) -> (Result<()>, IoBuf) {
        let Some((cached, blocks)) = self.split(&buf) else {
            return file.write_at(offset, buf, durable).await;
        };
        let bytes = buf.len();
        let mut rest = IoBuf::zeroed(bytes - blocks);
        rest.copy_from_slice(&buf[blocks..]);
        buf.set_len(blocks);
        let (mut result, mut buf) = file.write_at(offset, buf, durable).await;
        buf.set_len(bytes);
        if result.is_ok() {
            result = cached.write_at(offset + blocks as u64, rest, true).await.0;
        }
        (result, buf)
    }

    /// Bytes of `buf` in whole blocks, and what takes the rest, if there is one.
    fn split(&self, buf: &IoBuf) -> Option<(&LiveFile, usize)> {
        let rest = buf.len() % BLOCK_BYTES as usize;
        let cached = self.cached.as_ref().filter(|_| rest > 0);
        cached.map(|(_, cached)| (cached, buf.len() - rest))
    }
}
