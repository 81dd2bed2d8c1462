//! The trace that a command writes. A file gets its name when it is whole; pipes, devices and the standard output take
//! the events as they come.
use anyhow::{Context, bail};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind as Kind, Result};
use tantalum_console::interruption;
use tantalum_console::whole_file::{WholeFile, is_same_file};
use tantalum_trace::formats::{Format, written_names};
use tantalum_trace::{AnyFormat, Writer};

/// The place of a written trace.
pub struct Out {
    path: PathBuf,
    /// `None` if events are written in place.
    file: Option<WholeFile>,
}

impl Out {
    /// Begins the trace at `path` (`-` is the standard output). From then on a signal ends the run, and leaves a file as it was;
    /// one that is written in place ends at once, as its reader may wait for nothing else.
    ///
    /// # Errors
    /// If one of the files `inputs` is there, or nothing can be written there.
    pub fn begin(path: &Path, inputs: &[PathBuf]) -> anyhow::Result<Out> {
        if let Some(input) = inputs.iter().find(|input| is_same_file(input, path)) {
            bail!(
                "{} would be overwritten while it is read: name another output file",
                input.display()
            );
        }
        if path.is_dir() {
            bail!("{} is a folder: name a file in it", path.display());
        }
        if let Some(ending) = other_packing(path) {
            bail!(
                "{}: traces are written as .zst, as .gz or plain, and not as {ending}: name another output file",
                path.display()
            );
        }
        let file = match is_stream(path) {
            true => None,
            false => {
                interruption::watch()?;
                let context = || format!("cannot create {}", path.display());
                Some(WholeFile::begin(path).with_context(context)?)
            }
        };
        Ok(Out { path: path.to_owned(), file })
    }

    /// A writer of `format`; `text` names it, with parameters.
    pub fn writer<E>(&self, format: &'static dyn Format<E>, text: &str) -> Result<Writer<E>> {
        let Some(file) = &self.file else { return Writer::create_with(&self.path, format, text) };
        let name = self.path.display().to_string();
        let sink = file.sink().map_err(|error| Error::io(name.clone(), error))?;
        Writer::new_with(&name, Box::new(sink), format, text)
    }

    /// Ends the trace of which so many events were `written`; returns their number.
    ///
    /// # Errors
    /// That of `written`. If the reader of the standard output has gone, such as `head`, the error is a plain broken
    /// pipe, which is not reported.
    pub fn end(self, written: Result<u64>) -> anyhow::Result<u64> {
        let error = match (written, self.file) {
            (Ok(events), None) => return Ok(events),
            (Ok(events), Some(file)) => {
                file.complete().with_context(|| format!("cannot write {}", self.path.display()))?;
                return Ok(events);
            }
            (Err(error), _) if error.kind() == Kind::Interrupted => {
                let path = self.path.display();
                let told = match self.path.exists() {
                    true => format!("interrupted: nothing is written, and {path} is as before"),
                    false => format!("interrupted: {path} was not written"),
                };
                return Err(Error::new(Kind::Interrupted, told).into());
            }
            (Err(error), _) => error,
        };
        let io = error.cause().and_then(|cause| cause.downcast_ref::<std::io::Error>());
        let reader_left = io.is_some_and(|io| io.kind() == ErrorKind::BrokenPipe);
        if self.path == Path::new("-") && reader_left {
            return Err(std::io::Error::from(ErrorKind::BrokenPipe).into());
        }
        Err(error.into())
    }
}

/// The format to write to `path`, and its text: the one `asked` for, or else the one that the name indicates, or
/// `page_csv` for a name without an ending.
///
/// # Errors
/// If nothing can be written in it, or the ending says another format.
pub fn format_of<'a>(asked: Option<&'a str>, path: &Path) -> anyhow::Result<(AnyFormat, &'a str)> {
    let text = asked.map_or_else(|| by_ending(path), Ok)?;
    Ok((AnyFormat::by_written_name(text)?, text))
}

/// The format that the name of `path` indicates.
fn by_ending(path: &Path) -> anyhow::Result<&'static str> {
    if let Some(format) = AnyFormat::by_ending(path).filter(AnyFormat::is_written) {
        return Ok(format.name());
    }
    let of = |path: &Path| path.extension().map(|ending| ending.to_string_lossy().into_owned());
    let is_packed = of(path).is_some_and(|ending| ending == "zst" || ending == "gz");
    let ending = if is_packed { of(&path.with_extension("")) } else { of(path) };
    match ending {
        // The name of a stream says nothing, and another packing is refused as such.
        Some(ending)
            if !ending.eq_ignore_ascii_case("csv")
                && !is_stream(path)
                && other_packing(path).is_none() =>
        {
            bail!(
                "{}: .{ending} is the ending of no format that can be written: name the format ({}) with --to, or a \
                 file in .csv, .lis or .oracleGeneral, also with .zst or .gz behind it",
                path.display(),
                written_names()
            )
        }
        _ => Ok("page_csv"),
    }
}

/// The end of the name `path` if it promises a compression that is not written.
fn other_packing(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?;
    let others = [".bz2", ".xz", ".lz4", ".lzma", ".lz", ".zip", ".7z", ".br", ".Z"];
    others.into_iter().find(|other| other[1..].eq_ignore_ascii_case(ending))
}

/// Whether `path` leads to a pipe, a device, or an open file of this process, which are not replaced.
fn is_stream(path: &Path) -> bool {
    let is_other = path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir());
    is_other || path == Path::new("-") || path.starts_with("/dev") || path.starts_with("/proc")
}
