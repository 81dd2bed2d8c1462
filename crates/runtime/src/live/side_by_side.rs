//! Several reads at the same time, made by the thread that waits for all of them. One after the other they would take
//! the sum of their times, although a disk can do many at once.
use super::threads::Job;
use io_uring::{IoUring, opcode, types};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Maximum number of reads at the same time.
pub(crate) const READS_MAX: usize = 64;

/// The ring for these reads, made at the first use.
#[derive(Default)]
pub(crate) struct SideBySide(Mutex<Ring>);

#[derive(Default)]
enum Ring {
    #[default]
    NotMade,
    Made(Box<IoUring>),
    /// The kernel refused it.
    Refused,
}

impl SideBySide {
    /// Makes all `reads`, at most [`READS_MAX`], and returns their results in the same order. If another thread is
    /// using the ring, or the kernel refuses to make one, the reads are made one after the other.
    pub(crate) fn perform(&self, reads: &mut [Job]) -> Vec<i32> {
        let mut ring = match self.0.try_lock() {
            Ok(ring) => ring,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return one_by_one(reads),
        };
        if let Ring::NotMade = *ring {
            *ring = IoUring::new(READS_MAX as u32)
                .map_or(Ring::Refused, |ring| Ring::Made(Box::new(ring)));
        }
        let Ring::Made(made) = &mut *ring else { return one_by_one(reads) };
        let Some(results) = through(made, reads) else {
            *ring = Ring::Refused;
            return one_by_one(reads);
        };
        results
    }
}

fn one_by_one(reads: &mut [Job]) -> Vec<i32> {
    reads.iter_mut().map(Job::perform).collect()
}

/// The results of `reads`; the kernel has finished with all of them when this returns. `None` if it did not accept
/// all.
fn through(ring: &mut IoUring, reads: &mut [Job]) -> Option<Vec<i32>> {
    for (index, read) in reads.iter_mut().enumerate() {
        let (fd, buf, offset) = read.target();
        let entry =
            opcode::Read::new(types::Fd(fd.as_raw_fd()), buf.as_mut_ptr(), buf.len() as u32)
                .offset(offset)
                .build()
                .user_data(index as u64);
        // SAFETY: `reads` owns buffers and descriptors, and is borrowed until the last completion is here.
        #[expect(unsafe_code, reason = "the kernel works on memory that we promise to keep")]
        unsafe { ring.submission().push(&entry) }.ok()?;
    }
    let mut results = vec![None; reads.len()];
    let mut left = reads.len();
    let mut refused = false;
    while left > 0 {
        let untaken = ring.submission().len();
        if refused && left == untaken {
            return None;
        }
        // An error concerns only entries that were not accepted yet; accepted entries still complete.
        match ring.submit_and_wait(left - if refused { untaken } else { 0 }) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => {
                refused = true;
                std::thread::yield_now();
            }
        }
        for entry in ring.completion() {
            let result = &mut results[entry.user_data() as usize];
            left -= usize::from(result.replace(entry.result()).is_none());
        }
    }
    results.into_iter().collect()
}
