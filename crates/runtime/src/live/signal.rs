//! SIGINT and SIGTERM.
use super::Live;
use super::net::Stream;
use std::future::Future;
use std::os::unix::net::UnixStream;
use tantalum_base::{Result, ResultExt};

/// Completes on the first SIGINT or SIGTERM after this call. From then on these signals no
/// longer end the process.
///
/// # Errors
/// `Io` where the handlers cannot be set.
pub fn terminated(live: &Live) -> Result<impl Future<Output = ()> + 'static> {
    let (read, write) = UnixStream::pair().context(|| "making the signal pipe")?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let write = write.try_clone().context(|| "making the signal pipe")?;
        signal_hook::low_level::pipe::register(signal, write)
            .context(|| format!("setting the handler of signal {signal}"))?;
    }
    let pipe = Stream::from_fd(live, read.into());
    Ok(async move {
        // An error is an end as well: nothing can be heard on this pipe any more.
        let _ = pipe.recv(&mut [0; 1]).await;
    })
}
