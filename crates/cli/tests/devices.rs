//! Block devices as home, flash and journal: a device in use is refused, and so is a journal in memory.
mod support;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{good, on_small_disk, refused, tantalum, text};
use tantalum::Volume;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};
use tantalum_testing::{can_loop, installed, skip};

const HOME_BYTES: u64 = 64 << 20;

/// Runs a program; returns whether it succeeded.
fn runs(program: &str, args: &[&str]) -> bool {
    let run = Command::new(program).args(args).output();
    run.unwrap_or_else(|error| panic!("{program}: {error}")).status.success()
}

/// A folder, and loop devices over files in it.
struct Machine {
    folder: tempfile::TempDir,
    devices: Vec<String>,
}

impl Machine {
    /// A machine with devices of these names and sizes; `None` if there are no loop devices.
    fn new(devices: &[(&str, u64)]) -> Option<Machine> {
        if !can_loop() || !installed(&["mkfs.ext4", "mkswap", "addpart"]) {
            return None;
        }
        let mut machine = Machine { folder: tempfile::tempdir().unwrap(), devices: Vec::new() };
        for (name, bytes) in devices {
            let file = machine.at(name);
            std::fs::File::create(&file).unwrap().set_len(*bytes).unwrap();
            let made = Command::new("losetup").args(["-P", "-f", "--show", text(&file)]).output();
            let made = made.unwrap();
            assert!(made.status.success(), "{made:?}");
            machine.devices.push(String::from_utf8(made.stdout).unwrap().trim_end().to_owned());
        }
        std::fs::create_dir(machine.at("mounted")).unwrap();
        Some(machine)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a file system on `path`, and mounts it.
    fn mount(&self, path: &str) {
        assert!(runs("mkfs.ext4", &["-q", "-F", path]));
        assert!(runs("mount", &[path, text(&self.at("mounted"))]));
    }

    fn unmount(&self) -> bool {
        runs("umount", &[text(&self.at("mounted"))])
    }

    /// The arguments of an `attach`.
    fn attach<'a>(&self, volume: &'a str, tiers: [&'a str; 3]) -> Vec<&'a str> {
        let [home, flash, journal] = tiers;
        let cache = ["--home", home, "--flash", flash, "--journal", journal];
        [&["attach", volume], &cache[..], &["--flash-size", "100MiB"]].concat()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.unmount();
        for device in &self.devices {
            assert!(runs("losetup", &["-d", device]));
        }
    }
}

#[test]
fn a_device_that_is_mounted_is_no_store_of_a_volume() {
    let Some(machine) = Machine::new(&[("slow", HOME_BYTES), ("fast", 128 << 20)]) else { return };
    let (slow, fast) = (&*machine.devices[0], &*machine.devices[1]);
    let files = ["slow", "home", "flash", "journal", "v.toml"].map(|name| machine.at(name));
    let [behind, home, flash, journal, volume] = files.each_ref().map(|path| text(path));
    std::fs::write(home, vec![7; HOME_BYTES as usize]).unwrap();
    let flash_before = vec![9; 1 << 20];
    std::fs::write(flash, &flash_before).unwrap();
    let at = format!("is mounted at {}: `umount ", text(&machine.at("mounted")));
    let mounted_as = |mounted: &str, tiers: [&str; 3]| {
        machine.mount(mounted);
        for force in [&[][..], &["--force"]] {
            let error = refused(&[&machine.attach(volume, tiers)[..], force].concat());
            assert!(error.contains(&at), "{error}");
            assert!(!Path::new(volume).exists() && !Path::new(journal).exists());
            assert!(std::fs::read(flash).unwrap() == flash_before, "the flash stays");
        }
        assert!(machine.unmount() && runs("fsck.ext4", &["-fn", mounted]));
    };
    mounted_as(slow, [slow, flash, journal]);
    mounted_as(slow, [behind, flash, journal]);
    mounted_as(fast, [home, fast, journal]);
    mounted_as(fast, [home, flash, fast]);

    // As the medium of a volume without a home.
    let config = "kind = \"flash\"\n[device]\ncapacity = \"32MiB\"\n";
    let config = format!("{config}[media]\ntype = \"file\"\npath = \"{fast}\"\n");
    std::fs::write(volume, config).unwrap();
    machine.mount(fast);
    for force in [&[][..], &["--force"]] {
        let error = refused(&[&["create", volume], force].concat());
        assert!(error.contains(&at), "{error}");
    }
    assert!(machine.unmount() && runs("fsck.ext4", &["-fn", fast]));
    good(&["create", volume, "--force"]);
}

#[test]
fn a_device_with_a_partition_in_use_is_no_store_of_a_volume() {
    let Some(machine) = Machine::new(&[("slow", HOME_BYTES)]) else { return };
    let slow = &*machine.devices[0];
    let files = ["slow", "flash", "journal", "v.toml"].map(|name| machine.at(name));
    let [behind, flash, journal, volume] = files.each_ref().map(|path| text(path));
    // Not every kernel supports partition tables.
    if !runs("addpart", &[slow, "1", "2048", "65536"]) {
        skip("partitions");
        return;
    }
    let partition = format!("{slow}p1");
    let asked = |expected: &str| {
        for home in [slow, behind] {
            let error = refused(&machine.attach(volume, [home, flash, journal]));
            assert!(error.contains(expected), "{error}");
        }
    };
    machine.mount(&partition);
    asked(&format!("has the partition {partition}, which is mounted at "));
    assert!(machine.unmount());
    assert!(runs("mkswap", &[&partition]) && runs("swapon", &[&partition]));
    asked(&format!("has the partition {partition}, which is swap space: `swapoff {partition}`"));
    assert!(runs("swapoff", &[&partition]));
    good(&machine.attach(volume, [slow, flash, journal]));
}

#[test]
fn a_swap_file_is_no_store_of_a_volume() {
    let Some(machine) = Machine::new(&[]) else { return };
    let files = ["home", "flash", "journal", "v.toml"].map(|name| machine.at(name));
    let [home, flash, journal, volume] = files.each_ref().map(|path| text(path));
    std::fs::write(home, vec![7; HOME_BYTES as usize]).unwrap();
    assert!(runs("chmod", &["600", home]));
    if !runs("mkswap", &[home]) || !runs("swapon", &[home]) {
        skip("swap files");
        return;
    }
    let run = tantalum(&machine.attach(volume, [home, flash, journal]));
    assert!(runs("swapoff", &[home]));
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(
        run.err.contains(&format!("{home} is swap space: `swapoff {home}` first")),
        "{}",
        run.err
    );
    assert!(!Path::new(flash).exists() && !Path::new(volume).exists());
}

#[test]
fn a_device_wants_its_journal_on_storage_that_stays() {
    let Some(machine) = Machine::new(&[("slow", HOME_BYTES)]) else { return };
    let slow = &*machine.devices[0];
    let files = ["flash", "the journal", "v.toml"].map(|name| machine.at(name));
    let [flash, journal, volume] = files.each_ref().map(|path| text(path));
    let cache = ["--home", slow, "--flash", flash, "--flash-size", "100MiB"];
    let beside = format!("{slow}.journal");
    for command in [&["attach", volume][..], &["create", volume, "--capacity", "64MiB"]] {
        let error = refused(&[command, &cache[..]].concat());
        assert!(error.contains(&beside) && error.contains("--journal"), "{error}");
    }
    // A name without a device.
    let error = refused(&machine.attach(volume, [slow, "/dev/no-such-device", journal]));
    assert!(error.contains("no device of that name"), "{error}");
    assert!(
        ![&beside, flash, volume, journal, "/dev/no-such-device"]
            .iter()
            .any(|path| Path::new(path).exists())
    );

    let told = good(&machine.attach(volume, [slow, flash, journal]));
    assert!(told.contains(journal), "{told}");
    let client = Volume::open(Path::new(volume)).unwrap();
    let page = PageBuf::copy_from(&[5; PAGE_BYTES]);
    client.write(PageNo(9), vec![page.clone()]).unwrap();
    drop(client);
    good(&["check", volume]);
    good(&["detach", volume]);
    let mut detached = [0; PAGE_BYTES];
    let home = std::fs::File::open(slow).unwrap();
    home.read_exact_at(&mut detached, 9 * PAGE_BYTES as u64).unwrap();
    assert!(detached == page[..]);
    drop(home);
    // The existing configuration names other places.
    let elsewhere = text(&machine.at("elsewhere")).to_owned();
    let error = refused(&machine.attach(volume, [slow, flash, &elsewhere]));
    assert!(error.contains("--journal") && error.contains("home.journal"), "{error}");
    good(&[&machine.attach(volume, [slow, flash, journal])[..], &["--force"]].concat());
    good(&["detach", volume]);
}

#[test]
fn a_plan_reads_devices_and_writes_none() {
    let devices = [("slow", HOME_BYTES), ("fast", 128 << 20)];
    let Some(machine) = Machine::new(&devices) else { return };
    let [slow, fast] = [0, 1].map(|at| &*machine.devices[at]);
    let files = ["the journal", "v.toml"].map(|name| machine.at(name));
    let [journal, volume] = files.each_ref().map(|path| text(path));
    let plan = good(&[&machine.attach(volume, [slow, fast, journal])[..], &["--plan"]].concat());
    for said in [slow, fast, journal, "it was not written", "of the device's 128.0 MiB"] {
        assert!(plan.contains(said), "{said}: {plan}");
    }
    assert!(![journal, volume].iter().any(|path| Path::new(path).exists()));
    for (device, bytes) in [(slow, HOME_BYTES), (fast, 128 << 20)] {
        let mut held = vec![1; bytes as usize];
        std::fs::File::open(device).unwrap().read_exact_at(&mut held, 0).unwrap();
        assert!(held.iter().all(|byte| *byte == 0), "{device}");
    }
    // If one device is too small, nothing is taken from any of them.
    let cache = ["--home", slow, "--flash", fast, "--journal", journal, "--flash-size", "200MiB"];
    let error = refused(&[&["attach", volume], &cache[..]].concat());
    assert!(error.contains(fast) && error.contains("128.0 MiB"), "{error}");
    assert!(![journal, volume].iter().any(|path| Path::new(path).exists()));
}

/// In memory, but chosen by the user.
#[test]
fn a_journal_on_a_file_system_in_memory_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    on_small_disk("160m", |small| {
        let files = [at("v.toml"), at("home"), at("flash"), small.join("journal")];
        let [volume, home, flash, journal] = files.each_ref().map(|path| text(path));
        std::fs::write(home, vec![0; HOME_BYTES as usize]).unwrap();
        let cache = ["--home", home, "--flash", flash, "--flash-size", "100MiB"];
        let run = tantalum(&[&["attach", volume], &cache[..], &["--journal", journal]].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(run.err.contains(journal) && run.err.contains("in memory"), "{}", run.err);
        good(&["check", volume]);
    });
}
