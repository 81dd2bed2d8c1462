//! A store in RAM.
use super::{BLOCK_BYTES, BlockStore, BufferPool, IoBuf, assert_in_store};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};

/// Unit of RAM allocation. A chunk is allocated at the first write to it.
const CHUNK_BYTES: usize = 256 << 10;

/// A store in RAM. Parts that were never written read as zeros. Clones share the content, so it can be reopened after
/// its user has gone. Every write is durable at once.
#[derive(Clone)]
pub struct MemoryStore(Rc<Content>);

struct Content {
    bytes: u64,
    chunks: RefCell<Vec<Option<Box<[u8]>>>>,
    /// Start offsets of blocks that cannot be read until they are written.
    unreadable: RefCell<BTreeSet<u64>>,
    pool: BufferPool,
}

impl MemoryStore {
    /// A store of `bytes` bytes (a multiple of 512), all zero. RAM is allocated as it is written.
    pub fn new(bytes: u64) -> Self {
        assert_in_store(bytes, 0, bytes);
        let chunks = vec![None; bytes.div_ceil(CHUNK_BYTES as u64) as usize];
        MemoryStore(Rc::new(Content {
            bytes,
            chunks: RefCell::new(chunks),
            unreadable: RefCell::default(),
            pool: BufferPool::default(),
        }))
    }

    /// A store that holds `image`.
    pub fn with_image(image: &[u8]) -> Self {
        let store = Self::new(image.len() as u64);
        store.write_from(0, image);
        store
    }

    /// The whole content.
    pub fn image(&self) -> Vec<u8> {
        let mut image = vec![0; self.0.bytes as usize];
        self.read_into(0, &mut image);
        image
    }

    /// Flips one bit without a write, to simulate decay.
    pub fn flip_bit(&self, byte: u64, bit: u8) {
        let mut chunks = self.0.chunks.borrow_mut();
        let chunk = chunks[(byte / CHUNK_BYTES as u64) as usize].get_or_insert_with(zero_chunk);
        chunk[(byte % CHUNK_BYTES as u64) as usize] ^= 1 << bit;
    }

    /// Zeroes the block that starts at `byte`, without a write.
    pub fn wipe_block(&self, byte: u64) {
        self.write_from(byte, &[0; BLOCK_BYTES as usize]);
    }

    /// Makes the block that starts at `byte` unreadable until it is written, like a bad sector.
    pub fn spoil_block(&self, byte: u64) {
        self.0.unreadable.borrow_mut().insert(byte);
    }

    /// RAM used by the content, in bytes.
    pub fn allocated_bytes(&self) -> u64 {
        (self.0.chunks.borrow().iter().flatten().count() * CHUNK_BYTES) as u64
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) {
        let chunks = self.0.chunks.borrow();
        for_each_piece(offset, out.len(), |chunk, within, at| {
            let piece = &mut out[at];
            match &chunks[chunk] {
                Some(bytes) => piece.copy_from_slice(&bytes[within..within + piece.len()]),
                None => piece.fill(0),
            }
        });
    }

    fn write_from(&self, offset: u64, bytes: &[u8]) {
        let mut chunks = self.0.chunks.borrow_mut();
        for_each_piece(offset, bytes.len(), |chunk, within, at| {
            let piece = &bytes[at];
            chunks[chunk].get_or_insert_with(zero_chunk)[within..within + piece.len()]
                .copy_from_slice(piece);
        });
    }
}

/// Calls `piece(chunk, byte in the chunk, range in the buffer)` for each chunk in the range.
fn for_each_piece(
    offset: u64,
    bytes: usize,
    mut piece: impl FnMut(usize, usize, std::ops::Range<usize>),
) {
    let mut at = 0;
    while at < bytes {
        let byte = offset + at as u64;
        let within = (byte % CHUNK_BYTES as u64) as usize;
        let end = bytes.min(at + CHUNK_BYTES - within);
        piece((byte / CHUNK_BYTES as u64) as usize, within, at..end);
        at = end;
    }
}

fn zero_chunk() -> Box<[u8]> {
    vec![0; CHUNK_BYTES].into_boxed_slice()
}

impl BlockStore for MemoryStore {
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    fn buffer(&self, bytes: usize) -> IoBuf {
        self.0.pool.take(bytes)
    }

    fn recycle(&self, buf: IoBuf) {
        self.0.pool.give_back(buf);
    }

    async fn read(&self, offset: u64, mut buf: IoBuf) -> Result<IoBuf> {
        assert_in_store(self.0.bytes, offset, buf.len() as u64);
        let end = offset + buf.len() as u64;
        if let Some(byte) = self.0.unreadable.borrow().range(offset..end).next() {
            let context = format!("the block at byte {byte} cannot be read");
            return Err(Error::new(ErrorKind::Io, context));
        }
        self.read_into(offset, &mut buf);
        Ok(buf)
    }

    async fn write(&self, offset: u64, buf: IoBuf, _durable: bool) -> Result<IoBuf> {
        assert_in_store(self.0.bytes, offset, buf.len() as u64);
        self.write_from(offset, &buf);
        let end = offset + buf.len() as u64;
        self.0.unreadable.borrow_mut().retain(|byte| !(offset..end).contains(byte));
        Ok(buf)
    }

    async fn sync(&self) -> Result<()> {
        Ok(())
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        assert_in_store(self.0.bytes, offset, bytes);
        let mut chunks = self.0.chunks.borrow_mut();
        for_each_piece(offset, bytes as usize, |chunk, within, at| {
            if at.len() == CHUNK_BYTES {
                chunks[chunk] = None;
            } else if let Some(content) = &mut chunks[chunk] {
                content[within..within + at.len()].fill(0);
            }
        });
        self.0.unreadable.borrow_mut().retain(|byte| !(offset..offset + bytes).contains(byte));
        Ok(())
    }

    async fn prepare(&self, _offset: u64, _bytes: u64) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_runtime::Virtual;
    use tantalum_runtime::virtual_time::Schedule;

    #[test]
    fn content_crosses_chunks_and_outlives_a_handle() {
        let store = MemoryStore::new(1 << 36);
        let offset = CHUNK_BYTES as u64 * 5 - 4096;
        let opened = store.clone();
        let runtime = Virtual::new(Schedule::Fifo);
        runtime
            .run(async move {
                let mut buf = opened.buffer(3 * 4096);
                buf.fill(9);
                buf[4096] = 1;
                let buf = opened.write(offset, buf, false).await.unwrap();
                opened.recycle(buf);
            })
            .unwrap();
        assert_eq!(store.allocated_bytes(), 2 * CHUNK_BYTES as u64);
        store.flip_bit(offset + 4097, 0);
        let read = runtime
            .run(async move { store.read(offset - 4096, IoBuf::zeroed(5 * 4096)).await.unwrap() })
            .unwrap();
        assert!(read[..4096].iter().all(|&byte| byte == 0));
        assert_eq!(&read[8192..8195], &[1, 8, 9]);
        assert!(read[4096..8192].iter().all(|&byte| byte == 9));
        assert!(read[4 * 4096..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn zeroing_gives_memory_back_and_makes_blocks_readable() {
        let store = MemoryStore::with_image(&[7; 4 * CHUNK_BYTES]);
        let (first, end) = (CHUNK_BYTES as u64 - 4096, 3 * CHUNK_BYTES as u64 + 8192);
        store.spoil_block(first);
        let handle = store.clone();
        let zero = async move { handle.zero(first, end - first).await.unwrap() };
        Virtual::new(Schedule::Fifo).run(zero).unwrap();
        let image = store.image();
        for (block, content) in image.chunks(4096).enumerate() {
            let zeroed = (first..end).contains(&(block as u64 * 4096));
            assert_eq!(content[0], if zeroed { 0 } else { 7 }, "block {block}");
            assert!(content.iter().all(|byte| *byte == content[0]));
        }
        assert_eq!(store.allocated_bytes(), 2 * CHUNK_BYTES as u64);
    }

    #[test]
    #[should_panic(expected = "reach past the end")]
    fn an_operation_past_the_end_is_refused() {
        let store = MemoryStore::new(8192);
        let read = async move { store.read(4096, IoBuf::zeroed(8192)).await.map(|_| ()) };
        Virtual::new(Schedule::Fifo).run(read).unwrap().unwrap();
    }
}
