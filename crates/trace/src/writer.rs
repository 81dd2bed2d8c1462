//! Events to a file. Compressed by the name: `.zst` zstd, `.gz` gzip, else plain.
use crate::event::PageEvent;
use crate::formats::{AnyFormat, Format};
use crate::open::{AnyReader, OpenOptions, open, open_pages};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result, ResultExt};

/// Bytes gathered before they go to the file.
const BUFFER_BYTES: usize = 1 << 16;

/// zstd's own default: the traces shrink to a sixth, faster than a disk takes them.
const ZSTD_LEVEL: i32 = 3;

/// Where the bytes go.
pub type Sink = Box<dyn Write + Send>;

/// Writes events in one format. Call [`Writer::finish`]: what is dropped unfinished lacks its end,
/// and in a compressed file the last block.
pub struct Writer<E: 'static> {
    name: String,
    format: &'static dyn Format<E>,
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
            Compressed::Zstd(zstd::Encoder::new(sink, ZSTD_LEVEL)?)
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
    /// Creates the file at `path` (`-` is the standard output), over what may be there.
    pub fn create(path: &Path, format: &'static dyn Format<E>) -> Result<Self> {
        let name = path.display().to_string();
        if name == "-" {
            return Writer::new(&name, Box::new(std::io::stdout()), format);
        }
        let file = File::create(path).context(|| format!("cannot create {name}"))?;
        Writer::new(&name, Box::new(file), format)
    }

    /// Writes to `sink`; `name` is for messages and tells the compression.
    pub fn new(name: &str, sink: Sink, format: &'static dyn Format<E>) -> Result<Self> {
        let sink = Compressed::new(name, sink).context(|| format!("cannot write {name}"))?;
        let mut buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        format.begin(&mut buffer);
        Ok(Writer { name: name.to_owned(), format, names: Vec::new(), sink, buffer, events: 0 })
    }

    /// Sets the names of the kinds of file, by number, for the events to come.
    pub fn set_names(&mut self, names: &[String]) {
        if self.names.len() != names.len() {
            self.names = names.to_vec();
        }
    }

    /// Writes one event.
    #[inline]
    pub fn write(&mut self, event: &E) -> Result<()> {
        self.format.encode(event, &self.names, &mut self.buffer);
        self.events += 1;
        if self.buffer.len() >= BUFFER_BYTES { self.spill() } else { Ok(()) }
    }

    /// Hands over everything, ends the file, and returns the number of events written.
    pub fn finish(mut self) -> Result<u64> {
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

/// Writes page events to `path` as `page_csv`; returns how many.
pub fn write_pages(path: &Path, events: impl Iterator<Item = Result<PageEvent>>) -> Result<u64> {
    write_all(path, &crate::formats::page_csv::PageCsv, events)
}

/// Rewrites the trace at `from` as `format` at `to`, and returns the number of events. A block
/// trace becomes pages where `format` has pages; pages never become a block trace.
pub fn convert(from: &Path, options: &OpenOptions, to: &Path, format: AnyFormat) -> Result<u64> {
    match format {
        AnyFormat::Page(format) => write_all(to, format, open_pages(from, options)?),
        AnyFormat::Block(format) => {
            let AnyReader::Block(mut reader) = open(from, options)? else {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("{} has pages; {} needs bytes in files", from.display(), format.name()),
                ));
            };
            let mut writer = Writer::create(to, format)?;
            while let Some(event) = reader.next().transpose()? {
                writer.set_names(reader.names());
                writer.write(&event)?;
            }
            writer.finish()
        }
    }
}

/// Writes page events to `path` as `format`; returns how many.
pub fn write_all(
    path: &Path,
    format: &'static dyn Format<PageEvent>,
    events: impl Iterator<Item = Result<PageEvent>>,
) -> Result<u64> {
    let mut writer = Writer::create(path, format)?;
    for event in events {
        writer.write(&event?)?;
    }
    writer.finish()
}
