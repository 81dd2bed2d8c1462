//! The end of a file that ends within a block: direct I/O may be unable to write its last sectors.
use super::cached::Cached;
use super::file::FileStoreOptions;
use super::opening::io;
use super::{BLOCK_BYTES, IoBuf, SECTOR_BYTES};
use std::fs::File;
use std::path::Path;
use tantalum_base::Result;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveFile;

/// The way in which the last sectors of a file are read and written.
pub(super) struct Ending {
    /// The file opened through the page cache. `None` if the normal path can do the last sectors too.
    cached: Option<Cached>,
}

/// Length of the store in a file of `held` bytes. `end_bytes` is the wanted end.
pub(super) fn store_bytes(held: u64, end_bytes: Option<u64>) -> u64 {
    let ends = end_bytes.filter(|end| *end <= held && end.is_multiple_of(SECTOR_BYTES));
    ends.unwrap_or(held / BLOCK_BYTES * BLOCK_BYTES)
}

impl Ending {
    /// The ending of a store of `bytes` bytes in `file`, which was opened with `options`.
    ///
    /// A file system may accept direct I/O only in whole blocks. A block device accepts whole sectors, and its length
    /// is a multiple of its sector size.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened a second time.
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
        Ok(Ending { cached: Some(Cached::open(live, file, path, options)?) })
    }

    /// Like [`LiveFile::read_at`] of `file`, but the last block may be partial.
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

    /// Like [`LiveFile::write_at`] of `file`, but the last block may be partial. The sectors of a partial block are
    /// made durable at once: if the page cache failed to write them back, only one sync would report it, and a
    /// retried sync would not.
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

    /// Bytes of `buf` in whole blocks, and the file that handles the rest; `None` if there is no rest.
    fn split(&self, buf: &IoBuf) -> Option<(&LiveFile, usize)> {
        let rest = buf.len() % BLOCK_BYTES as usize;
        let cached = self.cached.as_ref().filter(|_| rest > 0);
        cached.map(|cached| (&cached.file, buf.len() - rest))
    }
}
