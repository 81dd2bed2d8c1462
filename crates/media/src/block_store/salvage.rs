//! A wrapper that returns the readable part of a store with unreadable blocks.
use super::{BLOCK_BYTES, BlockStore, IoBuf, StoreLayer};
use tantalum_base::{ErrorKind, Result};

/// Returns zeros for each block that the inner store fails to read. A reader then detects that block as damaged by
/// its checksum, and loses nothing else with it. Use it only if it is acceptable that a transient error is treated as
/// permanent damage.
#[derive(Clone)]
pub struct Salvage<S> {
    inner: S,
    enabled: bool,
}

impl<S: BlockStore> Salvage<S> {
    /// Salvages from `inner` if `enabled`; otherwise errors are returned.
    pub fn new(inner: S, enabled: bool) -> Self {
        Salvage { inner, enabled }
    }

    /// Reads the blocks of a failed read one by one.
    async fn read_each(&self, offset: u64, bytes: usize) -> Result<IoBuf> {
        let mut whole = self.inner.buffer(bytes);
        for (index, out) in whole.chunks_mut(BLOCK_BYTES as usize).enumerate() {
            let byte = offset + index as u64 * BLOCK_BYTES;
            match self.inner.read(byte, self.inner.buffer(out.len())).await {
                Ok(block) => {
                    out.copy_from_slice(&block);
                    self.inner.recycle(block);
                }
                Err(error) if error.kind() == ErrorKind::Io => out.fill(0),
                Err(error) => return Err(error),
            }
        }
        Ok(whole)
    }
}

impl<S: BlockStore> StoreLayer for Salvage<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        let bytes = buf.len();
        match self.inner.read(offset, buf).await {
            Err(error) if self.enabled && error.kind() == ErrorKind::Io => {
                self.read_each(offset, bytes).await
            }
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Salvage;
    use crate::block_store::{BLOCK_BYTES, BlockStore, MemoryStore};
    use tantalum_runtime::Virtual;
    use tantalum_runtime::virtual_time::Schedule;

    #[test]
    fn only_what_cannot_be_read_is_zeros() {
        let disk = MemoryStore::with_image(&[7; 4 * BLOCK_BYTES as usize]);
        disk.spoil_block(BLOCK_BYTES);
        let read = Virtual::new(Schedule::Fifo).run(async move {
            let bytes = 3 * BLOCK_BYTES as usize;
            let plain = Salvage::new(disk.clone(), false);
            assert!(plain.read(BLOCK_BYTES, plain.buffer(bytes)).await.is_err());
            let salvage = Salvage::new(disk, true);
            salvage.read(0, salvage.buffer(bytes)).await.unwrap()
        });
        let read = read.unwrap();
        for (block, expected) in read.chunks(BLOCK_BYTES as usize).zip([7, 0, 7]) {
            assert!(block.iter().all(|byte| *byte == expected));
        }
    }
}
