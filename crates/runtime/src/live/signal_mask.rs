//! Threads of a library block signals, so that the threads of the program receive them.
use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

/// Signals that report a fault of the thread itself. If they were blocked, the fault would end the process without a
/// message.
const OF_FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Starts a thread of this name in which all signals are blocked, except those of its own faults.
///
/// # Errors
/// The error of the system if no more threads can be started.
pub(super) fn spawn_without_signals<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // A new thread inherits the signal mask of the thread that starts it.
    let _blocked = Blocked::all();
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Blocks the signals of this thread, except those of faults, until dropped. Holds the previous mask.
struct Blocked(libc::sigset_t);

impl Blocked {
    #[expect(unsafe_code, reason = "the mask of a thread is set by C functions")]
    fn all() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: `sigfillset` initialises `all`, the next calls use it, and `pthread_sigmask` initialises `before`.
        // These calls fail only if a signal number or an operation is invalid.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for signal in OF_FAULTS {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Blocked(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    #[expect(unsafe_code, reason = "the mask of a thread is set by C functions")]
    fn drop(&mut self) {
        // SAFETY: the set is the mask that the thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocked signals of this thread, as bits.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn a_thread_takes_no_signals_and_its_starter_those_of_before() {
        let before = blocked();
        let inside = spawn_without_signals("test", blocked).unwrap().join().unwrap();
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1] {
            assert!(inside & 1 << (signal - 1) != 0, "signal {signal} is not blocked");
        }
        assert!(inside & 1 << (libc::SIGSEGV - 1) == 0);
        assert_eq!(blocked(), before);
    }
}
