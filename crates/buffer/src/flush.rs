//! Writes every dirty page, then flushes the device.
use tantalum_base::Result;
use tantalum_runtime::Runtime;

use crate::admission::Admission;
use crate::pool::Pool;
use crate::store::PageStore;

impl Admission {
    /// Requests a write of every page that is dirty or being written, in the order of page numbers,
    /// so that neighbours share a device write.
    fn begin_flush(&mut self) {
        (self.flush_left, self.flush_failed) = (0, false);
        let mut dirty = std::mem::take(&mut self.flush_order);
        for number in self.frames.numbers() {
            let frame = self.frames.get_mut(number);
            // Two writes if the one in flight may have older content than the frame.
            frame.flush_waits = u8::from(frame.writing) + u8::from(frame.dirty);
            if frame.dirty {
                dirty.push((frame.page.0, number));
            }
            self.flush_left += u32::from(self.frames.get(number).flush_waits > 0);
        }
        dirty.sort_unstable();
        for (_, number) in dirty.drain(..) {
            self.frames.get_mut(number).ahead = true;
            self.frames.request_write(number);
        }
        self.flush_order = dirty;
    }
}

impl<D: PageStore, R: Runtime> Pool<D, R> {
    /// Writes every page that was unfixed dirty before the call, then flushes the device: all of it
    /// then survives a power cut, as the device promises. Waits for pages that were dirty before
    /// and are fixed for an update. A task that holds such a guard must not wait for this.
    ///
    /// # Errors
    /// Those of the device. Pages that were not written stay dirty in the pool, until the next
    /// flush or until they make room. After a failed flush of the device, only the device knows
    /// which of the written pages are durable.
    pub async fn flush(&self) -> Result<()> {
        let turn = self.flush_turn.acquire(1).await;
        self.state.borrow_mut().begin_flush();
        self.progress.wake_all();
        loop {
            let next = || {
                let state = self.state.borrow();
                let done = state.flush_left == 0;
                (done || state.has_queued()).then_some(done)
            };
            if self.progress.until(next).await {
                break;
            }
            self.write_next(false).await;
        }
        let failed = {
            let state = self.state.borrow();
            state.write_error.clone().filter(|_| state.flush_failed)
        };
        drop(turn);
        match failed {
            Some(error) => Err(error),
            None => self.device.flush().await,
        }
    }
}
