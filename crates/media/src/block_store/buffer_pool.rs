//! A pool of I/O buffers, reused instead of allocated per operation.
use std::cell::{Cell, RefCell};
use tantalum_runtime::{IO_ALIGN, IoBuf};

/// Free buffers by size class: class `n` holds buffers of `2^n` blocks of [`IO_ALIGN`] bytes.
#[derive(Default)]
pub struct BufferPool {
    classes: RefCell<Vec<Vec<IoBuf>>>,
    kept_bytes: Cell<usize>,
}

impl BufferPool {
    /// Maximum total size of free buffers; buffers returned beyond it are freed.
    const KEPT_BYTES_MAX: usize = 32 << 20;

    /// A buffer of `bytes` bytes with unspecified content.
    pub fn take(&self, bytes: usize) -> IoBuf {
        let blocks = bytes.div_ceil(IO_ALIGN).next_power_of_two();
        let class = blocks.trailing_zeros() as usize;
        let kept = self.classes.borrow_mut().get_mut(class).and_then(Vec::pop);
        let mut buf = match kept {
            Some(buf) => {
                self.kept_bytes.set(self.kept_bytes.get() - buf.capacity());
                buf
            }
            None => IoBuf::zeroed(blocks * IO_ALIGN),
        };
        buf.set_len(bytes);
        buf
    }

    /// Returns a buffer to the pool, even one allocated elsewhere.
    pub fn give_back(&self, buf: IoBuf) {
        let capacity = buf.capacity();
        let kept_bytes = self.kept_bytes.get() + capacity;
        if capacity == 0 || kept_bytes > Self::KEPT_BYTES_MAX {
            return;
        }
        self.kept_bytes.set(kept_bytes);
        // Round down, so that the buffer is at least as large as its class promises.
        let class = (capacity / IO_ALIGN).ilog2() as usize;
        let mut classes = self.classes.borrow_mut();
        if classes.len() <= class {
            classes.resize_with(class + 1, Vec::new);
        }
        classes[class].push(buf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_with_the_length_asked_for() {
        let pool = BufferPool::default();
        let mut buf = pool.take(3 * IO_ALIGN);
        assert_eq!((buf.len(), buf.capacity()), (3 * IO_ALIGN, 4 * IO_ALIGN));
        buf[0] = 7;
        pool.give_back(buf);
        let again = pool.take(4 * IO_ALIGN);
        assert_eq!((again.len(), again[0]), (4 * IO_ALIGN, 7), "the same buffer went round");
        assert_eq!(pool.take(IO_ALIGN)[0], 0);
    }

    #[test]
    fn a_foreign_buffer_of_odd_size_serves_a_smaller_class() {
        let pool = BufferPool::default();
        pool.give_back(IoBuf::zeroed(3 * IO_ALIGN));
        assert_eq!(pool.take(2 * IO_ALIGN).capacity(), 3 * IO_ALIGN);
        assert_eq!(pool.take(3 * IO_ALIGN).capacity(), 4 * IO_ALIGN);
    }
}
