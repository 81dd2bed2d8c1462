//! The io_uring engine. All submissions of a turn go to the kernel with one `io_uring_enter`.
use super::operation::{Kind, Operations};
use crate::ready_queue::ReadyQueue;
use io_uring::{IoUring, opcode, squeue, types};
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

const WAKE: u64 = u64::MAX;
const CANCEL: u64 = u64::MAX - 1;
/// `RWF_DSYNC`: the write is durable when it completes.
const RWF_DSYNC: i32 = 2;
/// Maximum bytes that the kernel transfers in one operation.
const OPERATION_BYTES_MAX: usize = 1 << 30;

pub(crate) struct Uring {
    ring: IoUring,
    wake_armed: bool,
    // Wake and cancel requests in flight.
    own_in_flight: usize,
}

impl Uring {
    /// A ring with `entries` submission entries for this thread.
    pub(crate) fn new(entries: u32) -> io::Result<Self> {
        let one_thread = || {
            let mut builder = IoUring::builder();
            builder.setup_single_issuer().setup_coop_taskrun().setup_taskrun_flag().build(entries)
        };
        let ring = one_thread().or_else(|_| IoUring::new(entries))?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        Ok(Uring { ring, wake_armed: false, own_in_flight: 0 })
    }

    pub(crate) fn start(&mut self, index: u32, operations: &mut Operations) -> io::Result<()> {
        let Some(request) = operations.request(index) else { return Ok(()) };
        let fd = types::Fd(request.fd.as_raw_fd());
        let start = request.start;
        let (pointer, len) = match &mut request.buf {
            Some(buf) => {
                let rest = &mut buf[start..];
                (rest.as_mut_ptr(), rest.len().min(OPERATION_BYTES_MAX) as u32)
            }
            None => (std::ptr::null_mut(), 0),
        };
        let entry = match request.kind {
            Kind::Read => opcode::Read::new(fd, pointer, len).offset(request.offset).build(),
            Kind::Write { durable } => opcode::Write::new(fd, pointer, len)
                .offset(request.offset)
                .rw_flags(if durable { RWF_DSYNC } else { 0 })
                .build(),
            Kind::SyncData => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
            Kind::Zero { bytes, mode } => opcode::Fallocate::new(fd, bytes)
                .offset(request.offset)
                .mode(mode.bits() as i32)
                .build(),
            Kind::PollIn => opcode::PollAdd::new(fd, 0x1).build(),
            Kind::PollOut => opcode::PollAdd::new(fd, 0x4).build(),
        };
        self.push(entry.user_data(u64::from(index)), operations)
    }

    /// Requests that the kernel cancel a wait for readiness.
    pub(crate) fn cancel(&mut self, index: u32, operations: &mut Operations) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(u64::from(index)).build().user_data(CANCEL);
        self.push(entry, operations)?;
        self.own_in_flight += 1;
        Ok(())
    }

    fn push(&mut self, entry: squeue::Entry, operations: &mut Operations) -> io::Result<()> {
        loop {
            // SAFETY: buffers and descriptors named by `entry` are owned by `Operations` until
            // its completion is reaped, and `Operations` is freed only after `drain`.
            #[expect(unsafe_code, reason = "the kernel works on memory that we promise to keep")]
            let pushed = unsafe { self.ring.submission().push(&entry) };
            if pushed.is_ok() {
                return Ok(());
            }
            self.enter(0, None)?;
            self.reap(operations);
        }
    }

    /// Whether completions are available without waiting and without a system call.
    pub(crate) fn sees_completions(&mut self) -> bool {
        !self.ring.completion().is_empty() || self.ring.submission().taskrun()
    }

    /// Submits queued entries and collects completions; makes no system call if neither is due.
    pub(crate) fn turn(&mut self, operations: &mut Operations) -> io::Result<()> {
        let due = {
            let submission = self.ring.submission();
            !submission.is_empty() || submission.taskrun() || submission.cq_overflow()
        };
        if due {
            self.enter(0, None)?;
        }
        self.reap(operations);
        Ok(())
    }

    /// Waits for a completion, for a wake of `queue` by another thread, or for the end of `timeout`.
    pub(crate) fn park(
        &mut self,
        operations: &mut Operations,
        queue: &ReadyQueue,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let Some(wake_fd) = queue.wake_fd() else { return Ok(()) };
        if !self.wake_armed {
            let entry = opcode::PollAdd::new(types::Fd(wake_fd.as_raw_fd()), 0x1).build();
            self.push(entry.user_data(WAKE), operations)?;
            self.wake_armed = true;
            self.own_in_flight += 1;
        }
        self.enter(1, timeout)?;
        // Tasks that become ready by the reap below need not wake this thread.
        queue.set_parked(false);
        self.reap(operations);
        if !self.wake_armed {
            // Resets the count to 0; the descriptor does not block.
            let _ = rustix::io::read(wake_fd, &mut [0; 8]);
        }
        Ok(())
    }

    fn enter(&mut self, want: usize, timeout: Option<Duration>) -> io::Result<()> {
        let result = match timeout {
            Some(timeout) => {
                let timespec = types::Timespec::from(timeout);
                let arguments = types::SubmitArgs::new().timespec(&timespec);
                self.ring.submitter().submit_with_args(want, &arguments)
            }
            None => self.ring.submit_and_wait(want),
        };
        match result.as_ref().map_err(rustix::io::Errno::from_io_error) {
            // BUSY: completions must be reaped first; every caller does that next.
            Ok(_)
            | Err(Some(
                rustix::io::Errno::TIME
                | rustix::io::Errno::INTR
                | rustix::io::Errno::BUSY
                | rustix::io::Errno::AGAIN,
            )) => Ok(()),
            Err(_) => result.map(|_| ()),
        }
    }

    fn reap(&mut self, operations: &mut Operations) {
        for entry in self.ring.completion() {
            match entry.user_data() {
                WAKE => {
                    self.wake_armed = false;
                    self.own_in_flight -= 1;
                }
                CANCEL => self.own_in_flight -= 1,
                index => operations.complete(index as u32, entry.result()),
            }
        }
    }

    /// Ends every operation: cancels it if possible, else waits for it.
    pub(crate) fn drain(&mut self, operations: &mut Operations) -> io::Result<()> {
        if operations.in_flight() + self.own_in_flight == 0 {
            return Ok(());
        }
        self.enter(0, None)?;
        let all = types::CancelBuilder::any();
        let entry = opcode::AsyncCancel2::new(all).build().user_data(CANCEL);
        self.push(entry, operations)?;
        self.own_in_flight += 1;
        while operations.in_flight() + self.own_in_flight > 0 {
            self.enter(1, None)?;
            self.reap(operations);
        }
        Ok(())
    }
}
