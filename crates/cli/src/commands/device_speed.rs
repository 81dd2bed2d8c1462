//! Measures the speed of a home and of a flash, for a second or two. A home is only read. The trial file beside a flash
//! has no name, and is gone when the process ends, even if it is killed.
use anyhow::{Context, bail};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use tantalum_base::PAGE_BYTES;
use tantalum_runtime::live::wall_clock;

const PAGE: u64 = PAGE_BYTES as u64;

/// Length of a long read, and of a write that fills the trial file beside the flash.
const LONG_BYTES: u64 = 256 << 10;

/// Length of the trial file beside the flash.
const TRIAL_BYTES: u64 = 16 << 20;

/// Duration of the measurement of each kind of request.
const PHASE: Duration = Duration::from_millis(750);

/// Time limit for filling the trial file; on a slow flash it becomes shorter than [`TRIAL_BYTES`].
const FILLING: Duration = Duration::from_millis(300);

/// Time limit for an answer of the device.
const PATIENCE: Duration = Duration::from_secs(5);

/// The speed of a home.
#[derive(Clone, Copy, Debug)]
pub struct HomeSpeed {
    /// Random reads of a page per second.
    pub reads_per_second: f64,
    /// Bytes per second of long sequential reads.
    pub stream_bytes_per_second: f64,
    /// Whether the reads bypassed the page cache.
    pub is_direct: bool,
    /// Share of the home that is holes: reads of those do not reach a device.
    pub holes_share: f64,
}

/// The speed of a flash.
#[derive(Clone, Copy, Debug)]
pub struct FlashSpeed {
    /// Random reads of a page per second.
    pub reads_per_second: f64,
    /// Durable writes of a page per second; `None` for a block device, which is only read.
    pub writes_per_second: Option<f64>,
    /// Whether the requests bypassed the page cache.
    pub is_direct: bool,
}

/// Measures the home at `path`.
pub fn of_home(path: &Path) -> anyhow::Result<HomeSpeed> {
    let path = path.to_owned();
    with_patience(move || {
        let (mut file, is_direct) = open_to_read(&path)?;
        let bytes = file.seek(SeekFrom::End(0))?;
        let reads_per_second = random_reads(&file, bytes)?;
        let mut stream = Buffer::of(LONG_BYTES.min(bytes / PAGE * PAGE));
        let (length, mut at) = (stream.length, Places::new(bytes).next());
        let reads = rate(PHASE, || {
            if at + length > bytes {
                at = 0;
            }
            file.read_exact_at(stream.aligned(), at)?;
            at += length;
            Ok(())
        })?;
        let there = file.metadata()?;
        let allocated = there.blocks().saturating_mul(512) as f64;
        let holes_share =
            if there.is_file() { 1.0 - (allocated / bytes as f64).min(1.0) } else { 0.0 };
        let stream_bytes_per_second = reads * length as f64;
        Ok(HomeSpeed { reads_per_second, stream_bytes_per_second, is_direct, holes_share })
    })
}

/// Measures the flash at `path`: a block device, which is only read, or the file system of a file there.
pub fn of_flash(path: &Path) -> anyhow::Result<FlashSpeed> {
    let path = path.to_owned();
    with_patience(move || {
        if !path.is_dir() && std::fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
            let (mut file, is_direct) = open_to_read(&path)?;
            let bytes = file.seek(SeekFrom::End(0))?;
            let reads_per_second = random_reads(&file, bytes)?;
            return Ok(FlashSpeed { reads_per_second, writes_per_second: None, is_direct });
        }
        let folder = folder_of(&path)?;
        let file = tempfile::tempfile_in(&folder)
            .with_context(|| format!("making a file in {}", folder.display()))?;
        let is_direct = pass_page_cache(&file);
        let writing = || format!("writing in {}", folder.display());
        let bytes = fill(&file).with_context(writing)?;
        let mut page = Buffer::noise(PAGE);
        let mut places = Places::new(bytes);
        let writes_per_second = rate(PHASE, || {
            file.write_all_at(page.aligned(), places.next())?;
            file.sync_data()
        });
        let writes_per_second = Some(writes_per_second.with_context(writing)?);
        let reads_per_second = random_reads(&file, bytes)?;
        Ok(FlashSpeed { reads_per_second, writes_per_second, is_direct })
    })
}

/// The folder of a file at `path`, or the nearest ancestor that exists.
fn folder_of(path: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let folder = absolute.ancestors().skip(1).find(|folder| folder.is_dir());
    Ok(folder.unwrap_or(Path::new("/")).to_owned())
}

/// The result of `measure`. If the device does not answer in time, the thread is abandoned: it ends only with the
/// process.
fn with_patience<T: Send + 'static>(
    measure: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (sender, receiver) = mpsc::channel();
    #[expect(clippy::disallowed_methods, reason = "it waits for a device that may never answer")]
    std::thread::spawn(move || {
        // This fails if the receiver has stopped waiting.
        let _ = sender.send(measure());
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(measured) => measured,
        Err(_) => bail!("no answer within {} s", PATIENCE.as_secs()),
    }
}

/// Opens the file at `path`, with direct I/O if that works; returns whether it does.
fn open_to_read(path: &Path) -> anyhow::Result<(File, bool)> {
    let direct = File::options()
        .read(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(path)
        .and_then(|file| file.read_exact_at(Buffer::of(PAGE).aligned(), 0).map(|()| file));
    match direct {
        Ok(file) => Ok((file, true)),
        Err(_) => Ok((File::open(path)?, false)),
    }
}

/// Switches `file` to direct I/O; returns whether that works.
fn pass_page_cache(file: &File) -> bool {
    let flags = rustix::fs::fcntl_getfl(file);
    let set = flags.and_then(|flags| rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT));
    let works = set.is_ok() && file.write_all_at(Buffer::noise(PAGE).aligned(), 0).is_ok();
    if !works && let Ok(flags) = flags {
        // The file is as before; a failure shows at the next write.
        let _ = rustix::fs::fcntl_setfl(file, flags);
    }
    works
}

/// Fills a new file and returns its length: a log overwrites an allocated file, too.
fn fill(file: &File) -> std::io::Result<u64> {
    let mut buffer = Buffer::noise(LONG_BYTES);
    let clock = Clock::start();
    let mut bytes = 0;
    while bytes < TRIAL_BYTES && (bytes == 0 || clock.elapsed() < FILLING) {
        file.write_all_at(buffer.aligned(), bytes)?;
        bytes += LONG_BYTES;
    }
    file.sync_all()?;
    Ok(bytes)
}

/// Random reads of a page per second, in a file of `bytes`.
fn random_reads(file: &File, bytes: u64) -> anyhow::Result<f64> {
    let (mut page, mut places) = (Buffer::of(PAGE), Places::new(bytes));
    Ok(rate(PHASE, || file.read_exact_at(page.aligned(), places.next()))?)
}

/// Calls per second of `once`, one after the other, measured for `time`.
fn rate(time: Duration, mut once: impl FnMut() -> std::io::Result<()>) -> std::io::Result<f64> {
    let clock = Clock::start();
    let mut count = 0u64;
    loop {
        once()?;
        count += 1;
        let elapsed = clock.elapsed();
        if elapsed >= time {
            return Ok(count as f64 / elapsed.as_secs_f64());
        }
    }
}

/// Time elapsed since a moment.
struct Clock(std::time::Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "devices are measured in real time")]
    fn start() -> Clock {
        Clock(std::time::Instant::now())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A buffer with the alignment that direct I/O requires.
struct Buffer {
    bytes: Vec<u8>,
    first: usize,
    length: u64,
}

impl Buffer {
    fn of(length: u64) -> Buffer {
        let bytes = vec![0; length as usize + PAGE_BYTES];
        let first = bytes.as_ptr().align_offset(PAGE_BYTES);
        Buffer { bytes, first, length }
    }

    /// Filled with bytes that no device can compress.
    fn noise(length: u64) -> Buffer {
        let (mut buffer, mut places) = (Buffer::of(length), Places::new(u64::MAX));
        for word in buffer.aligned().chunks_mut(8) {
            word.copy_from_slice(&places.random().to_le_bytes()[..word.len()]);
        }
        buffer
    }

    fn aligned(&mut self) -> &mut [u8] {
        &mut self.bytes[self.first..self.first + self.length as usize]
    }
}

/// Random page offsets. They differ in each run: a device, or a host below it, may have cached earlier reads.
struct Places {
    state: u64,
    pages: u64,
}

impl Places {
    fn new(bytes: u64) -> Places {
        Places { state: wall_clock::unix_ms() | 1, pages: (bytes / PAGE).max(1) }
    }

    /// Splitmix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The byte offset of a random page.
    fn next(&mut self) -> u64 {
        self.random() % self.pages * PAGE
    }
}
