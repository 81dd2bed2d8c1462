//! The fallback engine: pool threads do file I/O, and `poll(2)` waits for sockets. Without pool threads, the thread
//! that runs the executor does the file I/O: within the executor, or outside it ([`Threads::take_job`]).
use super::lock;
use super::operation::{Kind, Operations};
use super::signal_mask::spawn_without_signals;
use crate::IoBuf;
use crate::ready_queue::ReadyQueue;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ReadWriteFlags};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Duration;

/// An operation on a file. It owns its buffer while a thread works on it.
pub(crate) struct Job {
    index: u32,
    kind: Kind,
    fd: Arc<OwnedFd>,
    buf: Option<IoBuf>,
    start: usize,
    offset: u64,
}

struct Shared {
    jobs: Mutex<(VecDeque<Job>, bool)>,
    work: Condvar,
    done: Mutex<Vec<(Job, i32)>>,
    queue: Arc<ReadyQueue>,
}

pub(crate) struct Threads {
    shared: Arc<Shared>,
    pool: Vec<thread::JoinHandle<()>>,
    /// Without a pool: jobs that no thread works on yet, oldest first.
    waiting: VecDeque<Job>,
    polls: Vec<(u32, Arc<OwnedFd>, PollFlags)>,
    finished: Vec<(Job, i32)>,
}

impl Threads {
    /// Starts `count` pool threads. If 0, operations on files wait until a turn of the executor or a caller makes them.
    pub(crate) fn new(count: usize, queue: Arc<ReadyQueue>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            jobs: Mutex::default(),
            work: Condvar::new(),
            done: Mutex::default(),
            queue,
        });
        let mut threads = Threads {
            shared,
            pool: Vec::new(),
            waiting: VecDeque::new(),
            polls: Vec::new(),
            finished: Vec::new(),
        };
        for _ in 0..count {
            let shared = Arc::clone(&threads.shared);
            threads.pool.push(spawn_without_signals("tantalum-io", move || work(&shared))?);
        }
        Ok(threads)
    }

    pub(crate) fn start(&mut self, index: u32, operations: &mut Operations) {
        let Some(request) = operations.request(index) else { return };
        let fd = Arc::clone(&request.fd);
        match request.kind {
            Kind::PollIn => self.polls.push((index, fd, PollFlags::IN)),
            Kind::PollOut => self.polls.push((index, fd, PollFlags::OUT)),
            kind => {
                let (buf, start, offset) = (request.buf.take(), request.start, request.offset);
                let job = Job { index, kind, fd, buf, start, offset };
                if self.pool.is_empty() {
                    self.waiting.push_back(job);
                    return;
                }
                lock(&self.shared.jobs).0.push_back(job);
                self.shared.work.notify_one();
            }
        }
    }

    pub(crate) fn cancel(&mut self, index: u32, operations: &mut Operations) {
        self.polls.retain(|poll| poll.0 != index);
        operations.complete(index, -Errno::CANCELED.raw_os_error());
    }

    /// Takes a job that no thread works on: one that `own` waits for, else the oldest.
    pub(crate) fn take_job(&mut self, own: &Waker, operations: &Operations) -> Option<Job> {
        let is_own = |job: &Job| operations.is_awaited_by(job.index, own);
        let at = self.waiting.iter().position(is_own).unwrap_or(0);
        self.waiting.remove(at)
    }

    /// Takes up to `most` reads that no thread works on and that `own` waits for.
    pub(crate) fn take_reads(
        &mut self,
        own: &Waker,
        operations: &Operations,
        most: usize,
    ) -> Vec<Job> {
        let mut taken = Vec::new();
        if self.waiting.is_empty() {
            return taken;
        }
        for job in std::mem::take(&mut self.waiting) {
            let is_wanted = job.kind == Kind::Read && operations.is_awaited_by(job.index, own);
            match is_wanted && taken.len() < most {
                true => taken.push(job),
                false => self.waiting.push_back(job),
            }
        }
        taken
    }

    /// Whether there are jobs that no thread works on.
    pub(crate) fn has_jobs(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn has_completions(&self) -> bool {
        !lock(&self.shared.done).is_empty()
    }

    fn reap(&mut self, operations: &mut Operations) {
        std::mem::swap(&mut *lock(&self.shared.done), &mut self.finished);
        for (job, result) in self.finished.drain(..) {
            job.finish(result, operations);
        }
    }

    pub(crate) fn turn(&mut self, operations: &mut Operations) -> io::Result<()> {
        self.reap(operations);
        while let Some(mut job) = self.waiting.pop_front() {
            let result = job.perform();
            job.finish(result, operations);
        }
        if self.polls.is_empty() {
            Ok(())
        } else {
            self.poll(operations, None, Some(Duration::ZERO))
        }
    }

    pub(crate) fn park(
        &mut self,
        operations: &mut Operations,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let queue = Arc::clone(&self.shared.queue);
        let Some(wake_fd) = queue.wake_fd() else { return Ok(()) };
        self.poll(operations, Some(wake_fd), timeout)?;
        // Resets the count to 0; the descriptor does not block.
        let _ = rustix::io::read(wake_fd, &mut [0; 8]);
        self.reap(operations);
        Ok(())
    }

    fn poll(
        &mut self,
        operations: &mut Operations,
        wake_fd: Option<&OwnedFd>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let mut fds: Vec<_> =
            self.polls.iter().map(|(_, fd, flags)| PollFd::new(fd, *flags)).collect();
        fds.extend(wake_fd.map(|fd| PollFd::new(fd, PollFlags::IN)));
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        // Tasks that become ready below need not wake the polling thread, which is this one.
        self.shared.queue.set_parked(false);
        let mut ready = fds.iter().map(|fd| fd.revents()).collect::<Vec<_>>().into_iter();
        self.polls.retain(|(index, _, _)| {
            let events = ready.next().unwrap_or(PollFlags::empty());
            if events.is_empty() {
                return true;
            }
            operations.complete(*index, i32::from(events.bits()));
            false
        });
        Ok(())
    }
}

impl Threads {
    /// Waits for the jobs in flight to end, and collects their results.
    pub(crate) fn finish(mut self, operations: &mut Operations) {
        self.join();
        self.reap(operations);
    }

    fn join(&mut self) {
        lock(&self.shared.jobs).1 = true;
        self.shared.work.notify_all();
        for thread in self.pool.drain(..) {
            // A pool thread cannot panic: it only makes system calls.
            let _ = thread.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.join();
        // As with a pool, requested operations are still carried out.
        for mut job in self.waiting.drain(..) {
            job.perform();
        }
    }
}

/// Runs jobs until it is told to stop and none is left.
fn work(shared: &Shared) {
    loop {
        let mut jobs = lock(&shared.jobs);
        let mut job = loop {
            if let Some(job) = jobs.0.pop_front() {
                break job;
            }
            if jobs.1 {
                return;
            }
            jobs = shared.work.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        };
        drop(jobs);
        let result = job.perform();
        lock(&shared.done).push((job, result));
        shared.queue.unpark();
    }
}

impl Job {
    /// Makes the system call. Returns the kernel's result: a count, or a negated error number.
    pub(crate) fn perform(&mut self) -> i32 {
        match self.call() {
            Ok(count) => i32::try_from(count).unwrap_or(i32::MAX),
            Err(error) => -error.raw_os_error(),
        }
    }

    /// Whether it reads.
    pub(crate) fn is_read(&self) -> bool {
        self.kind == Kind::Read && self.buf.is_some()
    }

    /// The file, the buffer and the offset of a read.
    pub(crate) fn target(&mut self) -> (&OwnedFd, &mut [u8], u64) {
        let buf = self.buf.as_mut().map_or(&mut [][..], |buf| &mut buf[self.start..]);
        (&self.fd, buf, self.offset)
    }

    fn call(&mut self) -> Result<usize, Errno> {
        let start = self.start;
        match (self.kind, &mut self.buf) {
            (Kind::Read, Some(buf)) => rustix::io::pread(&self.fd, &mut buf[start..], self.offset),
            (Kind::Write { durable }, Some(buf)) => {
                let flags = if durable { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
                rustix::io::pwritev2(&self.fd, &[IoSlice::new(&buf[start..])], self.offset, flags)
            }
            (Kind::SyncData, _) => rustix::fs::fdatasync(&self.fd).map(|()| 0),
            (Kind::Zero { bytes, mode }, _) => {
                rustix::fs::fallocate(&self.fd, mode, self.offset, bytes).map(|()| 0)
            }
            _ => Err(Errno::INVAL),
        }
    }

    /// Returns the buffer, and completes the operation, which wakes its waiter.
    pub(crate) fn finish(self, result: i32, operations: &mut Operations) {
        if let Some(request) = operations.request(self.index) {
            request.buf = self.buf;
        }
        operations.complete(self.index, result);
    }
}
