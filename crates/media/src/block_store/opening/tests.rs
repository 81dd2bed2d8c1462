//! Tests with block devices of this machine: loop devices, which only root can create.
use super::*;
use crate::block_store::FileStore;
use std::path::PathBuf;
use std::process::{Command, Output};
use tantalum_base::fault_points::assert_noticed;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_testing::{can_loop, installed};

/// A loop device with an empty ext4 on it, and a folder to mount it on.
struct Loop {
    folder: tempfile::TempDir,
    device: PathBuf,
}

fn run(program: &str, args: &[&Path]) -> std::io::Result<Output> {
    Command::new(program).args(args).output()
}

impl Loop {
    /// `None` if no loop device can be created.
    fn new() -> Option<Self> {
        Self::with(&[])
    }

    /// With these options of `losetup`, and no file system if there are any.
    fn with(more: &[&str]) -> Option<Self> {
        if !can_loop() || !installed(&["mkfs.ext4"]) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        File::create(&file).unwrap().set_len(16 << 20).unwrap();
        std::fs::create_dir(folder.path().join("mounted")).unwrap();
        let mut args: Vec<_> = ["-f", "--show"].iter().chain(more).map(Path::new).collect();
        args.push(&file);
        let made = run("losetup", &args).unwrap();
        assert!(made.status.success(), "{made:?}");
        let device = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim_end());
        let made = Loop { folder, device };
        if more.is_empty() {
            assert!(run("mkfs.ext4", &[Path::new("-q"), &made.device]).unwrap().status.success());
        }
        Some(made)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    fn mount(&self) -> bool {
        let at = self.folder.path().join("mounted");
        run("mount", &[&self.device, &at]).unwrap().status.success()
    }

    fn unmount(&self) {
        run("umount", &[&self.folder.path().join("mounted")]).unwrap();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.unmount();
        run("losetup", &[Path::new("-d"), &self.device]).unwrap();
    }
}

fn open(path: &Path, read_only: bool) -> Result<FileStore> {
    let live = Live::new(LiveOptions::default()).unwrap();
    FileStore::open(&live, path, FileStoreOptions { read_only, ..FileStoreOptions::default() })
}

#[test]
fn what_is_mounted_is_opened_to_be_read_alone() {
    let Some(made) = Loop::new() else { return };
    assert_noticed(Fault::OthersNotAsked, || {
        assert!(made.mount());
        let at = format!("{}: `umount ", made.folder.path().join("mounted").display());
        let told = [&made.device, &made.file()].map(|path| {
            let error = open(path, false).err().filter(|it| it.kind() == ErrorKind::InvalidInput);
            open(path, true).unwrap();
            let told = error.map(|error| error.to_string()).unwrap_or_default();
            told.contains(&at) && told.starts_with(path.to_str().unwrap())
        });
        made.unmount();
        // By either name, while it is free.
        open(&made.device, false).unwrap();
        open(&made.file(), false).unwrap();
        (told != [true; 2]).then(|| format!("device and file: {told:?}"))
    });
}

#[test]
fn an_open_device_cannot_be_mounted_and_is_nobody_elses() {
    let Some(made) = Loop::new() else { return };
    let store = open(&made.device, false).unwrap();
    assert!(!made.mount(), "it is in use");
    let error = open(&made.file(), false).err().unwrap().to_string();
    let behind = format!("lies behind {}, which is in use", made.device.display());
    assert!(error.contains(&behind), "{error}");
    let error = open(&made.device, false).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("is open in this process already"), "{error}");
    drop(store);
    assert!(made.mount());
    made.unmount();
    // The kernel does not report a program that has opened it exclusively.
    let flags = OFlags::EXCL.bits() as i32;
    let other = OpenOptions::new().read(true).custom_flags(flags).open(&made.device).unwrap();
    let error = open(&made.device, false).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("is in use"), "{error}");
    open(&made.device, true).unwrap();
    drop(other);
    let made_anew = FileStore::create(
        &Live::new(LiveOptions::default()).unwrap(),
        &made.device,
        16 << 20,
        FileStoreOptions::default(),
    );
    made_anew.unwrap();
}

#[test]
fn a_device_that_is_read_only_is_refused_before_anything_is_written() {
    let Some(made) = Loop::with(&["-r"]) else { return };
    let error = open(&made.device, false).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    let told = format!("{} {READ_ONLY_DEVICE}: `blockdev", made.device.display());
    assert!(error.to_string().starts_with(&told), "{error}");
    open(&made.device, true).unwrap();
}

#[test]
fn who_has_no_permission_is_told_what_to_do() {
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let told = not_opened(Path::new("/dev/sdx"), denied).to_string();
    assert!(
        told.starts_with(&format!("/dev/sdx {NOT_ALLOWED}: run the command as root")),
        "{told}"
    );
    let folder = tempfile::tempdir().unwrap();
    for read_only in [true, false] {
        let error = open(folder.path(), read_only).err().unwrap().to_string();
        assert_eq!(error, format!("{} {FOLDER}", folder.path().display()));
    }
}
