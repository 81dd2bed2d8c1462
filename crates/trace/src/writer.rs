//! Writes events to a file. The name determines the compression: `.zst` zstd, `.gz` gzip, else plain.
//!
//! The buffer is written to the file as whole lines, also when compressed: after a kill, everything but the last buffer
//! can be read.
use crate::event::{BlockEvent, PageEvent};
use crate::formats::{Encode, Format, only_read};
use crate::open::{AnyReader, OpenOptions, open};
use crate::reader::Reader;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::{File, metadata};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result, ResultExt, Spec};

/// Bytes buffered before they are written to the file.
const BUFFER_BYTES: usize = 1 << 16;

/// zstd's own default: the traces shrink to a sixth, faster than a disk can write them.
const ZSTD_LEVEL: i32 = 3;

/// Makes the file at `path`, or opens the pipe there.
///
/// # Errors
/// `InvalidInput` for a pipe from which no program reads: to open it would wait for one, perhaps for ever.
fn create_file(path: &Path) -> Result<File> {
    let name = path.display();
    let making = || format!("cannot create {name}");
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let opened = options.custom_flags(nonblocking).open(path);
    let is_pipe = || metadata(path).is_ok_and(|there| there.file_type().is_fifo());
    if let Err(error) = &opened
        && Errno::from_io_error(error) == Some(Errno::NXIO)
        && is_pipe()
    {
        let context = format!(
            "{name} is a pipe, and no program reads from it: start that program first, or name a file"
        );
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    let file = opened.context(making)?;
    let waits = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags & !OFlags::NONBLOCK));
    waits.map_err(std::io::Error::from).context(making)?;
    Ok(file)
}

/// The destination of the bytes.
pub type Sink = Box<dyn Write + Send>;

/// Writes events in one format. Call [`Writer::finish`]: a writer that is dropped before leaves a trace without its
/// end.
pub struct Writer<E: 'static> {
    name: String,
    encoder: Box<dyn Encode<E>>,
    names: Vec<String>,
    sink: Compressed,
    buffer: Vec<u8>,
    events: u64,
}

enum Compressed {
    Plain(Sink),
    Gzip(flate2::write::GzEncoder<Sink>),
    Zstd(zstd::Encoder<'static, Sink>),
}

impl Compressed {
    fn new(name: &str, sink: Sink) -> std::io::Result<Compressed> {
        Ok(if name.ends_with(".zst") {
            let mut sink = zstd::Encoder::new(sink, ZSTD_LEVEL)?;
            // Without it, some flipped bits would pass as other events.
            sink.include_checksum(true)?;
            Compressed::Zstd(sink)
        } else if name.ends_with(".gz") {
            Compressed::Gzip(flate2::write::GzEncoder::new(sink, flate2::Compression::default()))
        } else {
            Compressed::Plain(sink)
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Compressed::Plain(sink) => sink.write_all(bytes),
            Compressed::Gzip(sink) => sink.write_all(bytes),
            Compressed::Zstd(sink) => sink.write_all(bytes),
        }
    }

    /// Writes out all data compressed so far, so that it can be read without the following data.
    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Compressed::Plain(_) => Ok(()),
            Compressed::Gzip(sink) => sink.flush(),
            Compressed::Zstd(sink) => sink.flush(),
        }
    }

    fn finish(self) -> std::io::Result<()> {
        let mut sink = match self {
            Compressed::Plain(sink) => sink,
            Compressed::Gzip(sink) => sink.finish()?,
            Compressed::Zstd(sink) => sink.finish()?,
        };
        sink.flush()
    }
}

impl<E> Writer<E> {
    /// Creates the file at `path` (`-` is the standard output); an existing file is overwritten. The events can be read
    /// while more are written, as those of a recording; so can those of a run that failed.
    ///
    /// # Errors
    /// `Unsupported` if the format can only be read, `Io` if the file cannot be made.
    pub fn create(path: &Path, format: &'static dyn Format<E>) -> Result<Self> {
        Writer::create_with(path, format, format.name())
    }

    /// As [`create`](Self::create), with the parameters of `text`, which names the format.
    pub fn create_with(path: &Path, format: &'static dyn Format<E>, text: &str) -> Result<Self> {
        let encoder = encoder(format, text)?;
        let name = path.display().to_string();
        if name == "-" {
            return Writer::begin(&name, Box::new(std::io::stdout()), encoder);
        }
        Writer::begin(&name, Box::new(create_file(path)?), encoder)
    }

    /// Writes to `sink`; `name` is for messages and determines the compression.
    pub fn new(name: &str, sink: Sink, format: &'static dyn Format<E>) -> Result<Self> {
        Writer::new_with(name, sink, format, format.name())
    }

    /// As [`new`](Self::new), with the parameters of `text`, which names the format.
    pub fn new_with(
        name: &str,
        sink: Sink,
        format: &'static dyn Format<E>,
        text: &str,
    ) -> Result<Self> {
        Writer::begin(name, sink, encoder(format, text)?)
    }

    fn begin(name: &str, sink: Sink, mut encoder: Box<dyn Encode<E>>) -> Result<Self> {
        let sink = Compressed::new(name, sink).context(|| format!("cannot write {name}"))?;
        let mut buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        encoder.begin(&mut buffer);
        Ok(Writer { name: name.to_owned(), encoder, names: Vec::new(), sink, buffer, events: 0 })
    }

    /// Sets the names of the volumes, by number, for the following events.
    pub fn set_names(&mut self, names: &[String]) {
        if self.names.len() != names.len() {
            self.names = names.to_vec();
        }
    }

    /// Writes one event.
    #[inline]
    pub fn write(&mut self, event: &E) -> Result<()> {
        self.encoder.encode(event, &self.names, &mut self.buffer);
        self.events += 1;
        if self.buffer.len() < BUFFER_BYTES {
            return Ok(());
        }
        self.spill()?;
        self.sink.flush().context(|| format!("cannot write {}", self.name))
    }

    /// Writes everything out, ends the file, and returns the number of events written.
    pub fn finish(mut self) -> Result<u64> {
        while self.encoder.finish(&mut self.buffer) {
            self.spill()?;
        }
        self.spill()?;
        let name = self.name;
        self.sink.finish().context(|| format!("cannot write {name}"))?;
        Ok(self.events)
    }

    fn spill(&mut self) -> Result<()> {
        self.sink.write_all(&self.buffer).context(|| format!("cannot write {}", self.name))?;
        self.buffer.clear();
        Ok(())
    }
}

impl<E> std::fmt::Debug for Writer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("name", &self.name).field("events", &self.events).finish()
    }
}

/// The encoder of `format` with the parameters of `text`.
fn encoder<E>(format: &'static dyn Format<E>, text: &str) -> Result<Box<dyn Encode<E>>> {
    let mut spec = Spec::parse(text)?;
    let encoder = format.encoder(&mut spec)?;
    let encoder = encoder.ok_or_else(|| only_read(format.name()))?;
    spec.finish()?;
    Ok(encoder)
}

/// Writes page events to `path` as `page_csv`; returns their number.
pub fn write_pages(path: &Path, events: impl Iterator<Item = Result<PageEvent>>) -> Result<u64> {
    let format = &crate::formats::page_csv::PageCsv;
    write_all(Writer::create(path, format)?, events)
}

/// Opens the trace at `from`, which must be a block trace.
///
/// # Errors
/// `Unsupported` for a page trace.
pub fn open_blocks(from: &Path, options: &OpenOptions) -> Result<Reader<BlockEvent>> {
    match open(from, options)? {
        AnyReader::Block(reader) => Ok(reader),
        AnyReader::Page(_) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("{} has pages, not bytes in volumes", from.display()),
        )),
    }
}

/// Writes the events of the volumes that `options` select to `writer` and finishes it; returns their number. An error
/// of `go_on`, which is asked before each event, ends it.
pub fn write_blocks(
    mut writer: Writer<BlockEvent>,
    mut reader: Reader<BlockEvent>,
    options: &OpenOptions,
    go_on: impl Fn() -> Result<()>,
) -> Result<u64> {
    while let Some(event) = reader.next().transpose()? {
        go_on()?;
        if options.has_volume(&reader.names()[usize::from(event.file_kind.0)]) {
            writer.set_names(reader.names());
            writer.write(&event)?;
        }
    }
    options.account.add_dropped(&reader.dropped());
    writer.finish()
}

/// Writes page events to `writer` and finishes it; returns their number.
pub fn write_all(
    mut writer: Writer<PageEvent>,
    events: impl Iterator<Item = Result<PageEvent>>,
) -> Result<u64> {
    for event in events {
        writer.write(&event?)?;
    }
    writer.finish()
}
