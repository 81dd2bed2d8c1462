//! Requests to the server of a volume (`tantalum serve`), which answers at a Unix socket beside the configuration.
use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind as IoError, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tantalum_base::{Error, ErrorKind, Result};

use crate::refusals::NO_ANSWER;
use crate::stat::Stat;

/// The socket of the volume whose configuration is at `config`.
pub fn control_path(config: &Path) -> PathBuf {
    let mut name = OsString::from(config);
    name.push(".control");
    name.into()
}

/// Time limit for each line of a server's answer. For `stat` the server reads pages for at most two seconds; for `mode` it sends
/// two lines a second.
const LINE: Duration = Duration::from_secs(10);

/// The lines of the server's answer to `request`; `None` if the volume of the configuration at `config` is not served.
///
/// # Errors
/// `Io` if the volume is served, but the server cannot be reached.
pub fn ask(
    config: &Path,
    request: &str,
) -> Result<Option<impl Iterator<Item = Result<String>> + use<>>> {
    ask_within(config, request, None)
}

/// As [`ask`], for a request that reads or changes the mode: each line has a time limit.
///
/// # Errors
/// As [`ask`]; a line is `Closed` if it does not come in time.
pub fn ask_mode(
    config: &Path,
    mode: &str,
) -> Result<Option<impl Iterator<Item = Result<String>> + use<>>> {
    ask_within(config, &format!("mode {mode}"), Some(LINE))
}

/// As [`ask`], with a time limit for each line.
fn ask_within(
    config: &Path,
    request: &str,
    limit: Option<Duration>,
) -> Result<Option<impl Iterator<Item = Result<String>> + use<>>> {
    let socket = control_path(config);
    let mut stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), IoError::NotFound | IoError::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(Error::io(format!("connecting to {}", socket.display()), error)),
    };
    stream.set_read_timeout(limit).map_err(|error| Error::io("setting a time limit", error))?;
    let asked = stream.write_all(format!("{request}\n").as_bytes());
    asked.map_err(|error| Error::io("asking the server", error))?;
    let lines = BufReader::new(stream).lines();
    let failed = move |error: std::io::Error| match (error.kind(), limit) {
        (IoError::WouldBlock | IoError::TimedOut, Some(limit)) => {
            let context = format!(
                "the server that listens at {} does not answer in {} s: it is stopped (SIGSTOP) or its \
                 device hangs",
                socket.display(),
                limit.as_secs()
            );
            NO_ANSWER.error(ErrorKind::Closed, context)
        }
        _ => Error::io("the server's answer", error),
    };
    Ok(Some(lines.map(move |line| line.map_err(&failed))))
}

/// The figures that the server reports of its volume; `None` if it is not served.
///
/// # Errors
/// As [`ask`]; `Closed` or `Format` if the answer is not complete, or does not come in time.
pub fn ask_stat(config: &Path) -> Result<Option<Stat>> {
    let Some(lines) = ask_within(config, "stat", Some(LINE))? else { return Ok(None) };
    let mut figures = Vec::new();
    for line in lines {
        let line = line?;
        match line.splitn(3, ' ').collect::<Vec<_>>().as_slice() {
            ["field", name, figure] => figures.push(((*name).to_owned(), (*figure).to_owned())),
            ["end"] => return Ok(Some(figures.into_iter().collect())),
            _ => {
                let context = format!("{}: the server answers {line:?}", config.display());
                return Err(Error::new(ErrorKind::Format, context));
            }
        }
    }
    let context = format!("{}: the server ended before it answered", config.display());
    Err(Error::new(ErrorKind::Closed, context))
}
