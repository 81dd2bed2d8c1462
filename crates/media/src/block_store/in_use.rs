//! Finds other users of a file or a block device, as reported by the kernel: file systems, swap, devices built on it,
//! loop devices backed by it.
use super::Place;
use super::refusals::{IN_USE, LOOP, MOUNTED, PART, SWAP};
use rustix::fs::{OFlags, major, makedev, minor};
use std::ffi::{OsStr, OsString};
use std::fs::{OpenOptions, TryLockError};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The directories in which the kernel reports its devices.
pub(super) struct Kernel {
    proc: PathBuf,
    sys: PathBuf,
    dev: PathBuf,
}

impl Kernel {
    /// The running kernel.
    pub(super) fn running() -> Self {
        Kernel { proc: "/proc".into(), sys: "/sys".into(), dev: "/dev".into() }
    }

    /// Describes the user of the file or device at `path` and the remedy, as the end of a sentence that begins with
    /// its name. `None` if no user is known.
    pub(super) fn use_of(&self, path: &Path) -> Option<String> {
        match Place::of(path) {
            Place::New(_) => None,
            place => self.use_of_place(&place),
        }
    }

    fn use_of_place(&self, place: &Place) -> Option<String> {
        self.use_above(place).or_else(|| match place {
            Place::Device(number) => self.use_beneath_loop(*number),
            _ => None,
        })
    }

    /// The user of the file or device, or of a device made of it.
    fn use_above(&self, place: &Place) -> Option<String> {
        let own = self.own_use(place).or_else(|| match place {
            Place::Device(number) => self.use_of_neighbours(*number),
            _ => None,
        });
        own.or_else(|| self.use_behind_loop(place))
    }

    /// The user of the file or device itself.
    fn own_use(&self, place: &Place) -> Option<String> {
        if let Some(at) = self.mount_point(place) {
            let at = at.display();
            return Some(format!("{MOUNTED} {at}: `umount {at}` first"));
        }
        if let Some(name) = self.swap_name(place) {
            return Some(format!("{SWAP}: `swapoff {}` first", name.display()));
        }
        let Place::Device(number) = place else { return None };
        let holders = names_in(&self.folder_of(*number).join("holders"));
        let holder = self.dev.join(holders.first()?);
        let called = match self.mapped_name(&holders[0]) {
            Some(name) => format!(" ({name})"),
            None => String::new(),
        };
        let holder = holder.display();
        Some(format!("{PART} {holder}{called}: use that device instead, or remove it first"))
    }

    /// The user of a partition of the device, or of the disk that contains this partition.
    fn use_of_neighbours(&self, number: u64) -> Option<String> {
        let folder = self.folder_of(number).canonicalize().ok()?;
        let used = |folder: &Path| {
            let used = self.own_use(&Place::Device(device_number(folder)?))?;
            let name = self.dev.join(folder.file_name()?);
            Some((name, used))
        };
        if folder.join("partition").exists() {
            let (disk, used) = used(folder.parent()?)?;
            return Some(format!("is a partition of {}, which {used}", disk.display()));
        }
        let inside = names_in(&folder).into_iter().map(|name| folder.join(name));
        let mut partitions = inside.filter(|inside| inside.join("partition").exists());
        let (partition, used) = partitions.find_map(|partition| used(&partition))?;
        Some(format!("has the partition {}, which {used}", partition.display()))
    }

    /// The user of the same bytes as this loop device: a process that has locked the backing file, or the user of
    /// another loop device over that file.
    fn use_beneath_loop(&self, number: u64) -> Option<String> {
        let own = Loop::of(&self.folder_of(number).canonicalize().ok()?)?;
        let place = Place::of(&own.behind);
        let behind = own.behind.display();
        if is_locked(&own.behind) {
            return Some(format!(
                "lies over {behind}, which {IN_USE}: another process has locked it"
            ));
        }
        let block = self.sys.join("block");
        names_in(&block).into_iter().find_map(|name| {
            let other = Loop::of(&block.join(&name))?;
            let its_number = device_number(&block.join(&name))?;
            let is_same = its_number != number && other.overlaps(&own);
            if !is_same || Place::of(&other.behind) != place {
                return None;
            }
            let device = self.dev.join(&name);
            let told = self.own_use(&Place::Device(its_number));
            let told = told.or_else(|| is_held(&device).then(|| LOOP.to_string()))?;
            Some(format!("lies over {behind}, as {} does, which {told}", device.display()))
        })
    }

    /// The user of a loop device that is backed by the file or device. A loop device that nobody uses does not count.
    fn use_behind_loop(&self, place: &Place) -> Option<String> {
        let block = self.sys.join("block");
        let loops =
            names_in(&block).into_iter().filter(|name| name.as_bytes().starts_with(b"loop"));
        for name in loops {
            let Ok(text) = std::fs::read(block.join(&name).join("loop/backing_file")) else {
                continue;
            };
            let behind = Path::new(OsStr::from_bytes(text.trim_ascii_end()));
            if Place::of(behind) != *place {
                continue;
            }
            let device = self.dev.join(&name);
            let number = device_number(&block.join(&name));
            let told = number.and_then(|number| self.use_above(&Place::Device(number)));
            let told = told.or_else(|| is_held(&device).then(|| LOOP.to_string()));
            if let Some(told) = told {
                return Some(format!("lies behind {}, which {told}", device.display()));
            }
        }
        None
    }

    /// The mount point of the place, in this process's mount namespace or in that of process 1.
    fn mount_point(&self, place: &Place) -> Option<PathBuf> {
        ["self", "1"].into_iter().find_map(|process| {
            let text = std::fs::read(self.proc.join(process).join("mountinfo")).ok()?;
            let mut mounts = text.split(|byte| *byte == b'\n').filter_map(Mount::parse);
            mounts.find(|mount| mount.is_of(place)).map(|mount| mount.at)
        })
    }

    /// The name of the place in the list of swap areas.
    fn swap_name(&self, place: &Place) -> Option<PathBuf> {
        let text = std::fs::read(self.proc.join("swaps")).ok()?;
        let mut names = swap_names(&text).into_iter();
        names.find(|name| Place::of(name) == *place)
    }

    /// The name that the device mapper gives this device.
    fn mapped_name(&self, device: &OsString) -> Option<String> {
        let name = self.sys.join("block").join(device).join("dm/name");
        Some(std::fs::read_to_string(name).ok()?.trim_end().to_owned())
    }

    /// Whether `path` leads to a block device that is set to read-only.
    pub(super) fn is_read_only(&self, path: &Path) -> bool {
        let Place::Device(number) = Place::of(path) else { return false };
        let told = std::fs::read_to_string(self.folder_of(number).join("ro"));
        told.is_ok_and(|told| told.trim_end() == "1")
    }

    /// The kernel's directory for the device with this number.
    fn folder_of(&self, number: u64) -> PathBuf {
        self.sys.join(format!("dev/block/{}:{}", major(number), minor(number)))
    }
}

/// A loop device: the file or device behind it, and the range of its bytes.
struct Loop {
    behind: PathBuf,
    first_byte: u64,
    end_byte: u64,
}

impl Loop {
    /// The loop device that `folder` describes.
    fn of(folder: &Path) -> Option<Loop> {
        let text = std::fs::read(folder.join("loop/backing_file")).ok()?;
        let bytes = |name: &str| {
            let text = std::fs::read_to_string(folder.join("loop").join(name)).ok();
            text.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let (first_byte, limit) = (bytes("offset"), bytes("sizelimit"));
        let end_byte = if limit == 0 { u64::MAX } else { first_byte.saturating_add(limit) };
        let behind = OsStr::from_bytes(text.trim_ascii_end()).into();
        Some(Loop { behind, first_byte, end_byte })
    }

    fn overlaps(&self, other: &Loop) -> bool {
        self.first_byte < other.end_byte && other.first_byte < self.end_byte
    }
}

/// The place of the bytes at `path`. If `path` is a loop device over its backing file or device from byte 0 on, that is
/// the place of the latter, also through several loop devices.
pub fn place_beneath_loops(path: &Path) -> Place {
    let kernel = Kernel::running();
    let mut place = Place::of(path);
    while let Place::Device(number) = place {
        let own = kernel.folder_of(number).canonicalize().ok().and_then(|folder| Loop::of(&folder));
        match own.filter(|own| own.first_byte == 0) {
            Some(own) => place = Place::of(&own.behind),
            None => break,
        }
    }
    place
}

/// Whether a process has locked the file exclusively, as this program does to write it.
fn is_locked(path: &Path) -> bool {
    let locked = std::fs::File::open(path).map(|file| file.try_lock_shared());
    matches!(locked, Ok(Err(TryLockError::WouldBlock)))
}

/// A line of `mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// Device number of the file system.
    device: u64,
    /// The mount point.
    at: PathBuf,
    /// The mounted source: a path, or any other text.
    source: PathBuf,
}

impl Mount {
    /// Fields are separated by spaces. Any number of optional fields precede a dash; type and source follow it.
    fn parse(line: &[u8]) -> Option<Mount> {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = number(fields.nth(2)?)?;
        let at = unescaped(fields.nth(1)?);
        let source = unescaped(fields.skip_while(|field| field != b"-").nth(2)?);
        Some(Mount { device, at, source })
    }

    /// A file system over several devices has a device number of its own, so the source is compared as well.
    fn is_of(&self, place: &Place) -> bool {
        *place == Place::Device(self.device)
            || self.source.is_absolute() && Place::of(&self.source) == *place
    }
}

/// The first column of `swaps`, without the header line.
fn swap_names(text: &[u8]) -> Vec<PathBuf> {
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    let names = lines.filter_map(|line| line.split(u8::is_ascii_whitespace).next());
    names.filter(|name| !name.is_empty()).map(unescaped).collect()
}

/// A device number, written as `7:0`.
fn number(text: &[u8]) -> Option<u64> {
    let (major, minor) = std::str::from_utf8(text).ok()?.trim_end().split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The number of the device that `folder` describes.
fn device_number(folder: &Path) -> Option<u64> {
    number(&std::fs::read(folder.join("dev")).ok()?)
}

/// Decodes a path in which the kernel escaped some bytes, such as `\040`.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match escaped.filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// The names in a folder, sorted; empty if it cannot be read.
fn names_in(folder: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

/// Whether a process has opened the block device exclusively.
fn is_held(device: &Path) -> bool {
    let flags = OFlags::EXCL.bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(device);
    opened.is_err_and(|error| is_busy(&error))
}

/// Whether opening a block device failed because it is opened exclusively elsewhere.
pub(super) fn is_busy(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error())
}

#[cfg(test)]
mod tests;
