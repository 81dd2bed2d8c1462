//! Operations in flight. The executor owns their buffers and descriptors until the completion arrives, so a future
//! may be dropped at any time.
use crate::IoBuf;
use rustix::fs::FallocateFlags;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Waker;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write {
        durable: bool,
    },
    SyncData,
    /// Makes the range read as zeros, by the means of the file system.
    Zero {
        bytes: u64,
        mode: FallocateFlags,
    },
    PollIn,
    PollOut,
}

/// A request to the kernel: transfers `buf[start..]` from or to `offset`.
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) buf: Option<IoBuf>,
    pub(crate) start: usize,
    pub(crate) offset: u64,
}

enum Stage {
    Waiting(Waker),
    /// No task waits any more; the completion frees the slot.
    Abandoned,
    Done(i32),
}

struct Slot {
    request: Request,
    state: Stage,
}

/// All operations that the kernel or a pool thread may still access.
#[derive(Default)]
pub(crate) struct Operations {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    in_flight: usize,
}

impl Operations {
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(crate) fn add(&mut self, request: Request, waker: Waker) -> u32 {
        let slot = Some(Slot { request, state: Stage::Waiting(waker) });
        self.in_flight += 1;
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            index
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        }
    }

    fn slot(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn request(&mut self, index: u32) -> Option<&mut Request> {
        self.slot(index).map(|slot| &mut slot.request)
    }

    /// The result and the request if it is done; otherwise stores the waker.
    pub(crate) fn take(&mut self, index: u32, waker: &Waker) -> Option<(i32, Request)> {
        let slot = self.slot(index)?;
        let result = match &mut slot.state {
            Stage::Done(result) => *result,
            Stage::Waiting(old) => {
                old.clone_from(waker);
                return None;
            }
            Stage::Abandoned => return None,
        };
        self.free.push(index);
        self.slots[index as usize].take().map(|slot| (result, slot.request))
    }

    /// Marks the operation as no longer awaited; true if it is still in flight.
    pub(crate) fn abandon(&mut self, index: u32) -> bool {
        let Some(slot) = self.slot(index) else { return false };
        if let Stage::Done(_) = slot.state {
            self.slots[index as usize] = None;
            self.free.push(index);
            return false;
        }
        slot.state = Stage::Abandoned;
        true
    }

    /// Whether the task of `waker` waits for it.
    pub(crate) fn is_awaited_by(&self, index: u32, waker: &Waker) -> bool {
        let slot = self.slots.get(index as usize).and_then(Option::as_ref);
        slot.is_some_and(|slot| matches!(&slot.state, Stage::Waiting(own) if own.will_wake(waker)))
    }

    pub(crate) fn complete(&mut self, index: u32, result: i32) {
        let Some(slot) = self.slot(index) else { return };
        match std::mem::replace(&mut slot.state, Stage::Done(result)) {
            Stage::Waiting(waker) => waker.wake(),
            Stage::Abandoned => {
                self.slots[index as usize] = None;
                self.free.push(index);
            }
            Stage::Done(_) => return,
        }
        self.in_flight -= 1;
    }
}
