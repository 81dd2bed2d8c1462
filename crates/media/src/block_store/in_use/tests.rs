//! Tests against a fake of the kernel's files, in a folder.
use super::*;
use std::os::unix::fs::symlink;

/// A kernel whose files are all written by the test.
struct MadeUp {
    folder: tempfile::TempDir,
    kernel: Kernel,
}

impl MadeUp {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let kernel = Kernel { proc: at("proc"), sys: at("sys"), dev: "/devices".into() };
        for made in ["proc/self", "proc/1", "sys/block", "sys/dev/block"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        MadeUp { folder, kernel }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A device called `name`, in the folder of its disk if it is a partition.
    fn device(&self, name: &str, number: &str) {
        self.write(&format!("sys/block/{name}/dev"), &format!("{number}\n"));
        let link = self.folder.path().join("sys/dev/block").join(number);
        symlink(self.folder.path().join("sys/block").join(name), link).unwrap();
    }

    fn partition(&self, name: &str, number: &str) {
        self.device(name, number);
        self.write(&format!("sys/block/{name}/partition"), "1\n");
    }

    fn use_of(&self, number: &str) -> Option<String> {
        let number = super::number(number.as_bytes()).unwrap();
        self.kernel.use_of_place(&Place::Device(number))
    }
}

const MOUNTS: &str = "\
22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/root rw
35 22 8:17 / /mnt/a\\040b rw - with-a-dash /dev/sdb1 rw
36 22 0:41 /sub /mnt/pool rw,relatime shared:1 master:2 - btrfs /dev/null rw,space_cache
nothing to be read
";

#[test]
fn a_mount_names_its_device_and_its_place() {
    let mounts: Vec<_> = MOUNTS.as_bytes().split(|byte| *byte == b'\n').collect();
    let mounts: Vec<_> = mounts.into_iter().map(Mount::parse).collect();
    let mount = |major, minor, at: &str, source: &str| {
        Some(Mount { device: makedev(major, minor), at: at.into(), source: source.into() })
    };
    let expected = [
        mount(8, 2, "/", "/dev/root"),
        mount(8, 17, "/mnt/a b", "/dev/sdb1"),
        mount(0, 41, "/mnt/pool", "/dev/null"),
        None,
        None,
    ];
    assert_eq!(mounts, expected);
}

#[test]
fn swap_is_named_below_the_head_of_its_table() {
    let table = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2                               partition\t8384508\t\t0\t\t-2\n\
        /a\\040b\\134c                         file\t\t16380\t\t0\t\t-3\n";
    assert_eq!(swap_names(table), [Path::new("/dev/sda2"), Path::new("/a b\\c")]);
    assert!(swap_names(b"").is_empty() && swap_names(b"Filename\n").is_empty());
}

#[test]
fn what_is_escaped_is_read_and_what_is_not_stays() {
    for (text, path) in [("a\\040b", "a b"), ("a\\04", "a\\04"), ("\\", "\\"), ("\\999", "\\999")] {
        assert_eq!(unescaped(text.as_bytes()), Path::new(path));
    }
}

#[test]
fn a_device_its_partitions_and_its_disk_are_asked_for() {
    let made_up = MadeUp::new();
    made_up.write("proc/self/mountinfo", MOUNTS);
    made_up.write("proc/1/mountinfo", "40 1 8:33 / /of/the/machine rw - xfs /dev/sdc1 rw\n");
    made_up.device("sda", "8:0");
    made_up.partition("sda/sda2", "8:2");
    made_up.device("sdb", "8:16");
    made_up.partition("sdb/sdb1", "8:17");
    made_up.partition("sdb/sdb2", "8:18");
    made_up.device("sdc", "8:32");
    made_up.partition("sdc/sdc1", "8:33");
    made_up.device("sdd", "8:48");
    let mounted = "is mounted at /mnt/a b: `umount /mnt/a b` first";
    assert_eq!(made_up.use_of("8:17").as_deref(), Some(mounted));
    let disk = format!("has the partition /devices/sdb1, which {mounted}");
    assert_eq!(made_up.use_of("8:16"), Some(disk));
    let elsewhere = "has the partition /devices/sdc1, which is mounted at /of/the/machine: \
         `umount /of/the/machine` first";
    assert_eq!(made_up.use_of("8:32").as_deref(), Some(elsewhere));
    // A free partition next to a used one, and a free disk.
    assert_eq!(made_up.use_of("8:18"), None);
    assert_eq!(made_up.use_of("8:48"), None);
    // If a whole disk is used, none of its partitions is free.
    made_up.write("proc/self/mountinfo", "35 22 8:16 / /whole rw - ext4 /dev/sdb rw\n");
    let whole = "is a partition of /devices/sdb, which is mounted at /whole: `umount /whole` first";
    assert_eq!(made_up.use_of("8:18").as_deref(), Some(whole));
}

#[test]
fn a_device_that_another_one_is_made_of_names_that() {
    let made_up = MadeUp::new();
    made_up.device("sdb", "8:16");
    made_up.partition("sdb/sdb1", "8:17");
    made_up.device("sdc", "8:32");
    made_up.write("sys/block/sdb/sdb1/holders/dm-3", "");
    made_up.write("sys/block/dm-3/dm/name", "group-home\n");
    made_up.write("sys/block/sdc/holders/md0", "");
    let held =
        "is a part of /devices/dm-3 (group-home): use that device instead, or remove it first";
    assert_eq!(made_up.use_of("8:17").as_deref(), Some(held));
    let disk = format!("has the partition /devices/sdb1, which {held}");
    assert_eq!(made_up.use_of("8:16"), Some(disk));
    let raid = "is a part of /devices/md0: use that device instead, or remove it first";
    assert_eq!(made_up.use_of("8:32").as_deref(), Some(raid));
}

/// The file may be given by any of its names.
#[test]
fn a_file_behind_a_loop_device_that_is_mounted_is_told() {
    let made_up = MadeUp::new();
    let home = made_up.folder.path().join("the home");
    let link = made_up.folder.path().join("link");
    std::fs::write(&home, "").unwrap();
    std::fs::hard_link(&home, &link).unwrap();
    // Device numbers that do not exist on this machine.
    made_up.device("loop0", "7:99990");
    made_up.device("loop7", "7:99997");
    made_up.partition("loop7/loop7p1", "259:99990");
    let behind = format!("{}\n", home.display());
    made_up.write("sys/block/loop7/loop/backing_file", &behind);
    made_up.write("proc/self/mountinfo", MOUNTS);
    assert_eq!(made_up.kernel.use_of(&home), None, "nobody uses the loop device");
    made_up.write("proc/self/mountinfo", "35 22 259:99990 / /mnt rw - ext4 /dev/loop7p1 rw\n");
    let told = "lies behind /devices/loop7, which has the partition /devices/loop7p1, which is mounted at /mnt: `umount /mnt` first";
    for path in [&home, &link] {
        assert_eq!(made_up.kernel.use_of(path).as_deref(), Some(told));
    }
    let other = made_up.folder.path().join("other");
    assert_eq!(made_up.kernel.use_of(&other), None, "nothing is there");
    std::fs::write(&other, "").unwrap();
    assert_eq!(made_up.kernel.use_of(&other), None, "another file");
}

#[test]
fn a_swap_file_and_a_mounted_image_are_told() {
    let made_up = MadeUp::new();
    let home = made_up.folder.path().join("home");
    std::fs::write(&home, "").unwrap();
    let name = home.display();
    made_up.write("proc/swaps", &format!("Filename\tType\n{name}   file\t16380\n"));
    assert_eq!(
        made_up.kernel.use_of(&home),
        Some(format!("is swap space: `swapoff {name}` first"))
    );
    made_up.write("proc/swaps", "Filename\tType\n");
    assert_eq!(made_up.kernel.use_of(&home), None);
    // A file system that needs no loop device.
    let mount = format!("35 22 0:50 / /mnt ro - erofs {name} ro\n");
    made_up.write("proc/self/mountinfo", &mount);
    let told = "is mounted at /mnt: `umount /mnt` first";
    assert_eq!(made_up.kernel.use_of(&home).as_deref(), Some(told));
}

/// A loop device is the file behind it: its bytes have the users of that file, and of other loop devices over it.
#[test]
fn a_loop_device_has_the_users_of_the_file_behind_it() {
    let made_up = MadeUp::new();
    let image = made_up.folder.path().join("image");
    std::fs::write(&image, "").unwrap();
    for (name, number, offset) in
        [("loop1", "7:1", "0"), ("loop2", "7:2", "0"), ("loop3", "7:3", "4096")]
    {
        made_up.device(name, number);
        made_up.write(&format!("sys/block/{name}/loop/backing_file"), image.to_str().unwrap());
        made_up.write(&format!("sys/block/{name}/loop/offset"), offset);
    }
    made_up.write("sys/block/loop1/loop/sizelimit", "4096");
    assert_eq!(made_up.use_of("7:2"), None);
    let file = std::fs::File::open(&image).unwrap();
    file.lock().unwrap();
    let told = made_up.use_of("7:2").unwrap();
    assert!(
        told.contains("image, which") && told.contains("another process has locked it"),
        "{told}"
    );
    file.unlock().unwrap();
    // Another loop device over the same bytes is mounted.
    made_up.write("proc/self/mountinfo", "35 22 7:1 / /mnt/a rw - ext4 /dev/loop1 rw\n");
    let told = made_up.use_of("7:2").unwrap();
    assert!(told.contains("as /devices/loop1 does, which is mounted at /mnt/a"), "{told}");
    assert_eq!(made_up.use_of("7:3"), None, "over other bytes of the file");
}
