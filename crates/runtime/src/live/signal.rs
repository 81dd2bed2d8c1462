//! Signals: those that ask a program to end, and those that must not end it. docs/nbd.md has a table of them.
use super::net::Stream;
use super::{Live, monotonic};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::future::Future;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tantalum_base::{Result, ResultExt};

/// Time that a process has to end by itself after a second signal.
const HASTE: Duration = Duration::from_millis(700);

/// Signals that follow the first one this soon belong to the same event: a terminal that closes sends two.
const SAME_EVENT: Duration = Duration::from_millis(500);

/// The signals that ask a program to end. SIGHUP is excluded if it was ignored when the program started, as with
/// `nohup`: the user then wants the program to outlive its terminal.
pub fn ending() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM, SIGQUIT];
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !ignores(&status, SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Whether the process with this `/proc/PID/status` ignores `signal`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Makes the program survive SIGUSR1 and SIGUSR2, which have no meaning to it, and SIGXFSZ: a write beyond the file
/// size limit then fails instead. (Rust itself ignores SIGPIPE.)
///
/// # Errors
/// `Io` if the handlers cannot be set.
pub fn go_on_after_others() -> Result<()> {
    for signal in [SIGUSR1, SIGUSR2, SIGXFSZ] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .context(|| format!("setting the handler of signal {signal}"))?;
    }
    Ok(())
}

/// Completes at the first of the [`ending`] signals after this call. From then on these signals no longer end the
/// process.
///
/// # Errors
/// `Io` if the handlers cannot be set.
pub fn terminated(live: &Live) -> Result<impl Future<Output = ()> + 'static> {
    let (read, write) = UnixStream::pair().context(|| "making the signal pipe")?;
    for signal in ending() {
        let write = write.try_clone().context(|| "making the signal pipe")?;
        signal_hook::low_level::pipe::register(signal, write)
            .context(|| format!("setting the handler of signal {signal}"))?;
    }
    let endings = Endings { pipe: Stream::from_fd(live, read.into()) };
    Ok(async move { endings.next().await })
}

/// Receives the [`ending`] signals. The first one no longer ends the process. The second one ends it soon, with status
/// 128 plus its number, even if the executor is blocked, for example by a device that does not respond. Then as much is
/// lost as by `SIGKILL`. Several signals of one event count as one.
pub struct Endings {
    pipe: Stream,
}

impl Endings {
    /// Starts a thread that waits for these signals.
    ///
    /// # Errors
    /// `Io` if the handlers cannot be set, or there are no threads left.
    pub fn watch(live: &Live) -> Result<Self> {
        let mut signals = Signals::new(ending()).context(|| "setting the handlers of signals")?;
        let (read, mut write) = UnixStream::pair().context(|| "making the signal pipe")?;
        let wait = move || {
            let mut first: Option<Instant> = None;
            for signal in signals.forever() {
                if first.is_some_and(|first| first.elapsed() < SAME_EVENT) {
                    continue;
                }
                // If this cannot be written, the executor has ended.
                let _ = write.write_all(&[0]);
                if first.replace(monotonic()).is_some() {
                    wait_at_least(HASTE);
                    signal_hook::low_level::exit(128 + signal);
                }
            }
        };
        let thread = std::thread::Builder::new().name("signals".into()).spawn(wait);
        thread.context(|| "starting the thread for signals")?;
        Ok(Endings { pipe: Stream::from_fd(live, read.into()) })
    }

    /// Completes at the next signal.
    pub async fn next(&self) {
        // An error is treated as a signal too, because no signal can arrive on this pipe any more.
        let _ = self.pipe.recv(&mut [0; 1]).await;
    }
}

fn wait_at_least(time: Duration) {
    let begin = monotonic();
    while let Some(left) = time.checked_sub(begin.elapsed()) {
        // This may return early.
        std::thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_of_the_kernel() {
        let status = "Name:\ttop\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGTERM));
        assert!(!ignores("", SIGHUP));
    }
}
