//! The file to which a program writes its counters, `VOLUME.toml.counters`.
//!
//! ```text
//! # tantalum counters 1 pid=… started=… opened_ms=… at_ms=… bytes=… crc=…
//! metrics in Prometheus's text format, of that many bytes
//! ```
//!
//! The file is overwritten in place: creating a new file each time would cost the file system too much. The checksum
//! reveals a file that was read while it was written. Anything behind these bytes is left from an earlier, longer text and
//! is ignored. The file is never synced.
//!
//! A killed program leaves its file behind. So readers trust the file only while the process named in it holds the volume's
//! lock, and only if that process started at the recorded time, because process numbers are reused.
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tantalum_base::checksum::{crc32c, crc32c_append};
use tantalum_media::block_store::holder;
use tantalum_runtime::live::wall_clock::machine_ms;

use tantalum_volume::VolumeConfig;
use tantalum_volume::config::MediaType;

/// The start of each counters file.
const MAGIC: &str = "# tantalum counters 1 ";
/// Precedes the checksum, which covers the part of the first line before it and the metrics.
const CHECKSUM: &str = " crc=";
/// Bytes read at most.
const BYTES_MAX: u64 = 1 << 20;
/// Attempts to read a file that is being written.
const TRIES: u32 = 100;
/// A program that has written nothing for this long has been idle.
const IDLE_MS: u64 = 1000;

/// The counters of a program, as another process reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldCounters {
    /// The program.
    pub pid: u32,
    /// Time since the program wrote them.
    pub age_ms: u64,
    /// Metrics in Prometheus's text format.
    pub text: String,
}

/// The counters file of the configuration at `config`. Links to the configuration are resolved, so every name of it leads to
/// the same file.
fn path_beside(config: &Path) -> Option<PathBuf> {
    let mut path = OsString::from(std::fs::canonicalize(config).ok()?);
    path.push(".counters");
    Some(path.into())
}

/// The start time of the process, in the kernel's clock ticks.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields follow the process name in parentheses, which may contain any character; this is the 22nd of all.
    stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()
}

/// A counters file, which is created by the first write.
pub(super) struct CountersFile {
    path: PathBuf,
    file: Option<File>,
    started: u64,
    opened_ms: u64,
}

impl CountersFile {
    /// The file beside the configuration at `config`. This process must have the volume open for writing. A file that
    /// another process left is removed. `None` if a file of another kind is there, or if the old file cannot be removed.
    pub(super) fn beside(config: &Path) -> Option<CountersFile> {
        let path = path_beside(config)?;
        if path.symlink_metadata().is_ok() {
            let mut begins = [0; MAGIC.len()];
            let is_ours = open_to_read(&path)?.read_exact_at(&mut begins, 0).is_ok();
            if !is_ours || begins != *MAGIC.as_bytes() {
                return None;
            }
            std::fs::remove_file(&path).ok()?;
        }
        let started = started(std::process::id())?;
        Some(CountersFile { path, file: None, started, opened_ms: machine_ms() })
    }

    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            // Never follows another user's link and never writes to another user's file.
            options.write(true).create_new(true).mode(0o600);
            self.file = Some(options.open(&self.path)?);
        }
        let Some(file) = &self.file else { return Ok(()) };
        let line = format!(
            "{MAGIC}pid={} started={} opened_ms={} at_ms={} bytes={}",
            std::process::id(),
            self.started,
            self.opened_ms,
            machine_ms(),
            text.len(),
        );
        let crc = crc32c_append(crc32c(line.as_bytes()), text.as_bytes());
        file.write_all_at(format!("{line}{CHECKSUM}{crc:08x}\n{text}").as_bytes(), 0)
    }

    /// Removes the file, if it is still there. The next write creates it again.
    pub(super) fn remove(&mut self) {
        let Some(file) = self.file.take() else { return };
        let is_same = || {
            let (ours, there) = (file.metadata().ok()?, self.path.symlink_metadata().ok()?);
            Some((ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        };
        if is_same() == Some(true) {
            // If the file stays, readers do not trust it after this process has closed the volume.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens a file that anybody may have created: no links, and nothing that would wait for another process.
fn open_to_read(path: &Path) -> Option<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// The counters of the program that has the volume of `config` open for writing. `None` if there is no such program, or it
/// writes no counters.
pub fn counters_of(config: &VolumeConfig) -> Option<ToldCounters> {
    if config.media.media_type != MediaType::File {
        return None;
    }
    let path = path_beside(&config.path)?;
    let data = config.data_path().ok()?;
    let told = (0..TRIES).find_map(|_| read(&path).transpose())?.ok()?;
    let is_holder = holder(&data) == Some(told.pid) && started(told.pid) == Some(told.started);
    // Only that process's own user may report its counters.
    let process = std::fs::metadata(format!("/proc/{}", told.pid)).ok()?;
    if !is_holder || process.uid() != told.uid {
        return None;
    }
    let now_ms = machine_ms();
    let age_ms = now_ms.saturating_sub(told.at_ms);
    // While the program works, the uptime ends at its last report. While it is idle, the uptime goes on, so that its rates
    // are 0.
    let seen_ms = told.at_ms.max(now_ms.saturating_sub(IDLE_MS));
    let uptime = seen_ms.saturating_sub(told.opened_ms) as f64 / 1e3;
    let text = format!(
        "# HELP tantalum_uptime_seconds Time since the program opened the volume\n\
         # TYPE tantalum_uptime_seconds gauge\n\
         tantalum_uptime_seconds {uptime}\n{}",
        told.text
    );
    Some(ToldCounters { pid: told.pid, age_ms, text })
}

/// The content of a complete file.
struct Content {
    pid: u32,
    started: u64,
    opened_ms: u64,
    at_ms: u64,
    uid: u32,
    text: String,
}

/// Reads the file once; `Ok(None)` if it was being written.
fn read(path: &Path) -> Result<Option<Content>, ()> {
    let file = open_to_read(path).ok_or(())?;
    let uid = file.metadata().map_err(drop)?.uid();
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(drop)?;
    match bytes.starts_with(MAGIC.as_bytes()) {
        true => Ok(parse(&bytes, uid)),
        false if bytes.is_empty() => Ok(None),
        false => Err(()),
    }
}

fn parse(bytes: &[u8], uid: u32) -> Option<Content> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&bytes[..end]).ok()?;
    let (line, crc) = line.split_once(CHECKSUM)?;
    let field = |name: &str| -> Option<u64> {
        let fields = line.strip_prefix(MAGIC)?.split(' ');
        fields
            .filter_map(|field| field.split_once('='))
            .find(|(key, _)| *key == name)?
            .1
            .parse()
            .ok()
    };
    let text = bytes[end + 1..].get(..usize::try_from(field("bytes")?).ok()?)?;
    if crc32c_append(crc32c(line.as_bytes()), text) != u32::from_str_radix(crc, 16).ok()? {
        return None;
    }
    Some(Content {
        pid: u32::try_from(field("pid")?).ok()?,
        started: field("started")?,
        opened_ms: field("opened_ms")?,
        at_ms: field("at_ms")?,
        uid,
        text: String::from_utf8(text.to_vec()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path) -> CountersFile {
        let config = folder.join("v.toml");
        std::fs::write(&config, "").unwrap();
        CountersFile::beside(&config).unwrap()
    }

    fn told(path: &Path) -> Option<Content> {
        read(path).unwrap()
    }

    #[test]
    fn what_was_written_is_read_again_also_where_it_was_longer_before() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path());
        for text in ["a 1\nb 2\n", "a 3\n", ""] {
            file.write(text).unwrap();
            let content = told(&file.path).unwrap();
            assert_eq!((content.pid, content.started), (std::process::id(), file.started));
            assert_eq!(content.text, text);
        }
        file.remove();
        assert!(!file.path.exists());
        file.write("a 4\n").unwrap();
        assert_eq!(told(&file.path).unwrap().text, "a 4\n");
    }

    #[test]
    fn a_half_written_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path());
        file.write("a 1\n").unwrap();
        let whole = std::fs::read(&file.path).unwrap();
        for at in MAGIC.len()..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(parse(&damaged, 0).is_none(), "{at}");
            assert!(parse(&whole[..at], 0).is_none(), "{at}");
        }
        std::fs::write(&file.path, "no counters").unwrap();
        assert!(read(&file.path).is_err());
    }

    #[test]
    fn what_another_one_put_in_its_place_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path());
        file.write("a 1\n").unwrap();
        std::fs::remove_file(&file.path).unwrap();
        std::fs::write(&file.path, "mine").unwrap();
        file.remove();
        assert_eq!(std::fs::read(&file.path).unwrap(), b"mine");
        assert!(CountersFile::beside(&folder.path().join("v.toml")).is_none());
    }

    /// A process number was reused: the file of a killed process does not belong to the process that has its number now.
    #[test]
    fn a_process_is_known_by_its_beginning_too() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("v.toml");
        tantalum_volume::config::write_new(&config, "4MiB", &Default::default()).unwrap();
        let config = VolumeConfig::read(&config).unwrap();
        let data = File::create(config.data_path().unwrap()).unwrap();
        data.lock().unwrap();
        let mut file = CountersFile::beside(&config.path).unwrap();
        file.write("a 1\n").unwrap();
        assert!(counters_of(&config).unwrap().text.ends_with("\na 1\n"));
        file.started += 1;
        file.write("a 1\n").unwrap();
        assert_eq!(counters_of(&config), None);
        file.started -= 1;
        file.write("a 1\n").unwrap();
        assert!(counters_of(&config).is_some());
        // Nobody has the volume open any more.
        data.unlock().unwrap();
        assert_eq!(counters_of(&config), None);
    }
}
