//! A file system of one file that passes requests on to a real file and records them. It receives the requests of
//! direct I/O one by one, several at a time.
//!
//! It syncs nothing itself: the journal decides which data would survive, and reads while it runs are served from the
//! kernel's memory either way. The file may have any name and be renamed; its last name is assumed to survive.
use crate::journal::Kind;
use crate::recorder::{Failing, Recorder, locked};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tantalum_base::Rng;
use tantalum_testing::{installed, skip};

/// The kernel asks each time: attributes change without its knowledge.
const NO_CACHE: Duration = Duration::ZERO;
/// Requests processed concurrently.
const THREADS: usize = 8;
const HANDLE: FileHandle = FileHandle(1);

/// The mounted file system; it is unmounted when this is dropped.
pub struct Mounted {
    pub recorder: Arc<Recorder>,
    _session: BackgroundSession,
}

impl Mounted {
    /// Mounts it at `at`, with the real file in the folder `backing`. Without FUSE for this machine or user, prints a
    /// message and returns `None`.
    pub fn new(at: &Path, backing: &Path) -> Option<Mounted> {
        let root = rustix::process::geteuid().is_root();
        if !Path::new("/dev/fuse").exists() {
            skip("FUSE");
            return None;
        }
        if !root && !installed(&["fusermount3"]) {
            return None;
        }
        let recorder = Arc::new(Recorder::default());
        let passthrough = Passthrough {
            backing: backing.to_path_buf(),
            entry: Mutex::new(None),
            recorder: Arc::clone(&recorder),
        };
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("power-cuts".into()), MountOption::NoSuid];
        config.n_threads = Some(THREADS);
        match fuser::spawn_mount(passthrough, at, &config) {
            Ok(session) => Some(Mounted { recorder, _session: session }),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                eprintln!("mounting a FUSE file system is not allowed here: {error}");
                skip("FUSE");
                None
            }
            Err(error) => panic!("mounting a FUSE file system: {error}"),
        }
    }
}

struct Passthrough {
    /// The folder of the real file.
    backing: PathBuf,
    entry: Mutex<Option<Entry>>,
    recorder: Arc<Recorder>,
}

/// The single file, after it was made.
#[derive(Clone)]
struct Entry {
    name: OsString,
    file: Arc<File>,
}

impl Passthrough {
    fn file(&self) -> Result<Arc<File>, Errno> {
        let entry = locked(&self.entry).clone();
        entry.map(|entry| entry.file).ok_or(Errno::ENOENT)
    }

    fn find(&self, name: &OsStr) -> Result<FileAttr, Errno> {
        let entry = locked(&self.entry).clone();
        let entry = entry.filter(|entry| entry.name == name).ok_or(Errno::ENOENT)?;
        attributes_of(&entry.file.metadata().map_err(Errno::from)?)
    }

    fn create(&self, name: &OsStr) -> Result<FileAttr, Errno> {
        let mut entry = locked(&self.entry);
        if entry.is_some() {
            return Err(Errno::EPERM);
        }
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).open(self.backing.join("file"));
        *entry = Some(Entry { name: name.into(), file: Arc::new(opened.map_err(Errno::from)?) });
        drop(entry);
        self.find(name)
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        let mut entry = locked(&self.entry);
        let entry = entry.as_mut().filter(|entry| entry.name == from).ok_or(Errno::ENOENT)?;
        entry.name = to.into();
        Ok(())
    }

    fn attributes(&self, ino: INodeNo) -> Result<FileAttr, Errno> {
        let metadata = match ino {
            INodeNo::ROOT => std::fs::metadata(&self.backing),
            _ => self.file()?.metadata(),
        };
        attributes_of(&metadata.map_err(Errno::from)?)
    }

    fn resize(
        &self,
        bytes: u64,
        act: impl FnOnce(&File) -> Result<(), Error>,
    ) -> Result<(), Errno> {
        let file = self.file()?;
        self.recorder.record(Kind::Resize { bytes }, || act(&file).map_err(Errno::from))
    }

    fn write_at(&self, offset: u64, bytes: &[u8], durable: bool) -> Result<(), Errno> {
        let file = self.file()?;
        let failing = self.recorder.failing(&[Failing::Write, Failing::EveryWrite]);
        // The part of a failing write that is done may end anywhere.
        let drawn =
            Rng::new(offset ^ self.recorder.position() as u64).below(bytes.len() as u64 / 512);
        let done = if failing.is_some() { drawn as usize * 512 } else { bytes.len() };
        let kind = Kind::Write { offset, bytes: bytes[..done].to_vec(), durable };
        self.recorder.record(kind, || {
            file.write_all_at(&bytes[..done], offset).map_err(Errno::from)?;
            failing.map_or(Ok(()), Err)
        })
    }
}

fn attributes_of(metadata: &Metadata) -> Result<FileAttr, Errno> {
    let at = metadata.modified().map_err(Errno::from)?;
    let is_folder = metadata.is_dir();
    Ok(FileAttr {
        // The real inode's number, so that no lock of another file system is mistaken for one on this file.
        ino: if is_folder { INodeNo::ROOT } else { INodeNo(metadata.ino()) },
        size: metadata.len(),
        blocks: metadata.blocks(),
        atime: at,
        mtime: at,
        ctime: at,
        crtime: at,
        kind: if is_folder { FileType::Directory } else { FileType::RegularFile },
        perm: (metadata.mode() & 0o7777) as u16,
        nlink: 1,
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    })
}

impl Filesystem for Passthrough {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.find(name) {
            Ok(attributes) => reply.entry(&NO_CACHE, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Ok(attributes) => reply.attr(&NO_CACHE, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let resized = match size {
            Some(bytes) => self.resize(bytes, |file| file.set_len(bytes)),
            None => Ok(()),
        };
        match resized.and_then(|()| self.attributes(ino)) {
            Ok(attributes) => reply.attr(&NO_CACHE, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        match Passthrough::create(self, name) {
            Ok(attributes) => {
                reply.created(&NO_CACHE, &attributes, Generation(0), HANDLE, OPENED);
            }
            Err(error) => reply.error(error),
        }
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _: INodeNo,
        newname: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        answer(Passthrough::rename(self, name, newname), reply);
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(HANDLE, OPENED);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if let Some(error) = self.recorder.failing(&[Failing::Read, Failing::EveryRead]) {
            return reply.error(error);
        }
        let mut bytes = vec![0; size as usize];
        let read =
            self.file().and_then(|file| file.read_at(&mut bytes, offset).map_err(Errno::from));
        match read {
            Ok(count) => reply.data(&bytes[..count]),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // The kernel sets this flag both for RWF_DSYNC and for a file opened with O_DSYNC.
        let durable = flags.0 as u32 & OFlags::DSYNC.bits() != 0;
        match self.write_at(offset, data, durable) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let failing = self.recorder.failing(&[Failing::Sync]);
        answer(self.recorder.record(Kind::Sync, || failing.map_or(Ok(()), Err)), reply);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode != 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let old_bytes = self.file().and_then(|file| file.metadata().map_err(Errno::from));
        let allocated = old_bytes.and_then(|metadata| {
            self.resize(metadata.len().max(offset + length), |file| {
                Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), offset, length)?)
            })
        });
        answer(allocated, reply);
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        const SEEK_DATA: i32 = 3;
        let from = match whence {
            SEEK_DATA => SeekFrom::Data(offset as u64),
            _ => SeekFrom::Hole(offset as u64),
        };
        let found = self.file().and_then(|file| {
            rustix::fs::seek(&*file, from).map_err(|error| Errno::from(Error::from(error)))
        });
        match found {
            Ok(at) => reply.offset(at as i64),
            Err(error) => reply.error(error),
        }
    }
}

/// The file is not in the page cache, and its writes do not wait for each other.
const OPENED: FopenFlags =
    FopenFlags::FOPEN_DIRECT_IO.union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);

fn answer(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Failure;
    use rustix::io::{IoSlice, ReadWriteFlags, pwritev2};
    use std::os::unix::fs::OpenOptionsExt;

    fn journalled(mounted: &Mounted) -> Vec<String> {
        let journal = mounted.recorder.journal();
        let told = |request: &crate::journal::Request| {
            let what = match &request.kind {
                Kind::Write { offset, bytes, durable: false } => {
                    format!("write {offset}+{}", bytes.len())
                }
                Kind::Write { offset, bytes, .. } => {
                    format!("durable write {offset}+{}", bytes.len())
                }
                Kind::Resize { bytes } => format!("resize {bytes}"),
                Kind::Sync => "sync".into(),
            };
            if request.failed { format!("{what} failed") } else { what }
        };
        journal.requests.iter().map(told).collect()
    }

    #[test]
    fn what_is_asked_of_it_is_told_apart_and_can_fail() {
        let folder = tempfile::tempdir().unwrap();
        let (mount, backing) = (folder.path().join("mnt"), folder.path().join("backing"));
        std::fs::create_dir(&mount).unwrap();
        std::fs::create_dir(&backing).unwrap();
        let Some(mounted) = Mounted::new(&mount, &backing) else { return };
        let open = |flags: OFlags| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).custom_flags(flags.bits() as i32);
            options.open(mount.join("file")).unwrap()
        };
        let file = open(OFlags::DIRECT);
        let page = [7; 4096];
        let write =
            |file: &File, offset, flags| pwritev2(file, &[IoSlice::new(&page)], offset, flags);
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 16).unwrap();
        assert_eq!(write(&file, 0, ReadWriteFlags::empty()), Ok(4096));
        assert_eq!(write(&file, 4096, ReadWriteFlags::DSYNC), Ok(4096));
        rustix::fs::fdatasync(&file).unwrap();
        assert_eq!(write(&open(OFlags::DSYNC), 8192, ReadWriteFlags::empty()), Ok(4096));
        assert_eq!(rustix::fs::seek(&file, SeekFrom::Hole(0)), Ok(12288));
        let fail = |of| mounted.recorder.fail(Some(Failure { of, after: 1, error: Errno::EIO }));
        fail(Failing::Sync);
        file.sync_all().unwrap();
        assert!(file.sync_all().is_err());
        file.sync_all().unwrap();
        fail(Failing::Write);
        write(&file, 0, ReadWriteFlags::empty()).unwrap();
        assert!(write(&file, 0, ReadWriteFlags::DSYNC).is_err());
        assert_eq!(mounted.recorder.failures(), 2);
        let mut journalled = journalled(&mounted);
        let failed = journalled.pop().unwrap();
        assert!(failed.starts_with("durable write 0+") && failed.ends_with("failed"), "{failed}");
        let told = [
            "resize 65536",
            "write 0+4096",
            "durable write 4096+4096",
            "sync",
            "durable write 8192+4096",
            "sync",
            "sync failed",
            "sync",
            "write 0+4096",
        ];
        assert_eq!(journalled, told);
        let mut back = [0; 8192];
        assert_eq!(file.read_at(&mut back, 4096).unwrap(), 8192);
        assert_eq!(back, [7; 8192]);
    }
}
