//! Requests to the server of a volume, which [`control`](super::control) answers.
use super::control::socket_path;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The lines of the server's answer to `request`; `None` if the volume of the configuration at `config` is not served.
///
/// # Errors
/// If the volume is served, but the server cannot be reached.
pub fn ask(
    config: &Path,
    request: &str,
) -> anyhow::Result<Option<impl Iterator<Item = anyhow::Result<String>> + use<>>> {
    let socket = socket_path(config);
    let mut stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error).context(format!("connecting to {}", socket.display())),
    };
    stream.write_all(format!("{request}\n").as_bytes()).context("asking the server")?;
    let lines = BufReader::new(stream).lines();
    Ok(Some(lines.map(|line| line.context("the server's answer"))))
}

/// The fields that the server reports of its volume, by name; `None` if it is not served.
///
/// # Errors
/// If the volume is served, but the server cannot be reached.
pub fn ask_stat(config: &Path) -> anyhow::Result<Option<BTreeMap<String, String>>> {
    let Some(lines) = ask(config, "stat")? else { return Ok(None) };
    let mut fields = BTreeMap::new();
    for line in lines {
        let line = line?;
        match line.splitn(3, ' ').collect::<Vec<_>>().as_slice() {
            ["field", name, value] => _ = fields.insert((*name).to_owned(), (*value).to_owned()),
            ["end"] => return Ok(Some(fields)),
            _ => bail!("{}: the server answers {line:?}", config.display()),
        }
    }
    bail!("{}: the server ended before it answered", config.display())
}
