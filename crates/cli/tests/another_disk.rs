//! Names of devices change. A disk that has the home's name by chance is left alone, and the home is known under any name.
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::volume::edit;
use support::{good, refused, tantalum, text};
use tantalum::Volume;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};
use tantalum_testing::{can_loop, installed};

const HOME_BYTES: u64 = 32 << 20;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// An image of an empty file system.
    fn image(&self, name: &str) -> PathBuf {
        let image = self.at(name);
        std::fs::File::create(&image).unwrap().set_len(HOME_BYTES).unwrap();
        if installed(&["mkfs.ext4"]) {
            let made = Command::new("mkfs.ext4").args(["-q", "-F", text(&image)]).status();
            assert!(made.unwrap().success());
        }
        image
    }

    /// Attaches `home`, and writes a page.
    fn attach(&self, home: &str) -> PathBuf {
        let (volume, flash, journal) = (self.at("v.toml"), self.at("flash"), self.at("journal"));
        let stores = ["--home", home, "--flash", text(&flash), "--journal", text(&journal)];
        good(&[&["attach", text(&volume)], &stores[..], &["--flash-size", "64MiB"]].concat());
        Volume::open(&volume).unwrap().write(PageNo(2000), vec![page(7)]).unwrap();
        volume
    }
}

fn page(fill: u8) -> PageBuf {
    PageBuf::copy_from(&[fill; PAGE_BYTES])
}

/// A loop device, detached when this is dropped.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Loop {
        let made = Command::new("losetup").args(["-f", "--show", text(file)]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        Loop(String::from_utf8(made.stdout).unwrap().trim_end().to_owned())
    }

    /// Another file under the name of this device; this file under another name.
    fn swap(self, own: &Path, other: &Path) -> [Loop; 2] {
        let name = self.0.clone();
        drop(self);
        let made = Command::new("losetup").args([&name, text(other)]).status().unwrap();
        assert!(made.success(), "{name} is free");
        [Loop(name), Loop::over(own)]
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let gone = Command::new("losetup").args(["-d", &self.0]).status();
        assert!(gone.unwrap().success());
    }
}

#[test]
fn a_disk_with_the_name_of_the_home_is_left_alone() {
    if !can_loop() {
        return;
    }
    let place = Place::new();
    let (own, other) = (place.image("own"), place.image("other"));
    let device = Loop::over(&own);
    let volume = place.attach(&device.0);
    let before = std::fs::read(&other).unwrap();
    let [impostor, device] = device.swap(&own, &other);
    for command in
        [&["check"][..], &["detach"], &["rescue", "--force"], &["check", "--accept-loss"]]
    {
        let run = tantalum(&[command, &[text(&volume)]].concat());
        let told = run.out + &run.err;
        assert!(run.code != 0 && told.contains(&impostor.0), "{command:?}: {told}");
        assert!(!told.contains("attach --force") || command.len() == 2, "{command:?}: {told}");
        assert!(
            std::fs::read(&other).unwrap() == before,
            "{command:?}: the other disk was changed"
        );
    }
    let socket = format!("unix:{}", text(&place.at("s")));
    let told = tantalum(&["serve", text(&volume), "--nbd", &socket]).err;
    assert!(told.contains("does not show the claim") && told.contains("another disk"), "{told}");
    // The home is known under its new name, though the name in its claim leads to another disk.
    let told = refused(&["unclaim", &device.0]);
    assert!(told.contains("detach") && told.contains(&device.0), "{told}");
    assert!(good(&["stat", &device.0]).contains("journal"), "it is still claimed");
    edit(&volume, &impostor.0, &device.0);
    let client = Volume::open(&volume).unwrap();
    assert_eq!(client.read(PageNo(2000), 1).unwrap()[0], page(7));
}

#[test]
fn a_home_under_another_name_is_not_unclaimed_and_a_copy_is() {
    let place = Place::new();
    let home = place.image("home");
    place.attach(text(&home));
    let [link, symlink, copy] = ["link", "symlink", "copy"].map(|name| place.at(name));
    std::fs::hard_link(&home, &link).unwrap();
    std::os::unix::fs::symlink(&home, &symlink).unwrap();
    std::fs::copy(&home, &copy).unwrap();
    for name in [&link, &symlink] {
        let told = refused(&["unclaim", text(name)]);
        assert!(told.contains("detach") && told.contains("--force"), "{told}");
    }
    good(&["unclaim", text(&copy)]);
    // Without the home at its old place, nobody knows whether this is a copy.
    std::fs::copy(&home, &copy).unwrap();
    std::fs::remove_file(&home).unwrap();
    assert!(refused(&["unclaim", text(&copy)]).contains("--force if it is a copy"));
    good(&["unclaim", text(&copy), "--force"]);
}

#[test]
fn the_home_of_an_open_volume_is_in_use_under_each_name() {
    if !can_loop() {
        return;
    }
    let place = Place::new();
    let home = place.image("home");
    let (device, alias) = (Loop::over(&home), Loop::over(&home));
    let volume = place.attach(&device.0);
    let client = Volume::open(&volume).unwrap();
    client.write(PageNo(1), vec![page(8)]).unwrap();
    for force in [&[][..], &["--force"]] {
        for name in [&alias.0, text(&home)] {
            let told = refused(&[&["unclaim", name], force].concat());
            assert!(told.contains("use") || told.contains("another process"), "{told}");
        }
    }
    assert!(good(&["stat", &alias.0]).contains("journal"), "it is still claimed");
    drop(client);
    // Offline, the alias is the home too.
    assert!(refused(&["unclaim", &alias.0]).contains("detach"));
    good(&["detach", text(&volume)]);
    let image = std::fs::read(&home).unwrap();
    assert!(image[PAGE_BYTES..2 * PAGE_BYTES] == page(8)[..]);
}

/// An encrypted disk, for instance. Without its flash nothing tells the home from another such disk.
#[test]
fn a_home_that_cannot_show_its_claim_is_rescued_by_force_only() {
    let place = Place::new();
    let noise = |name: &str, fill: u8| {
        std::fs::write(place.at(name), vec![fill; HOME_BYTES as usize]).unwrap();
        place.at(name)
    };
    let home = noise("home", 3);
    let shows = std::fs::File::options().write(true).open(&home).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&shows, &[0; PAGE_BYTES], 0).unwrap();
    let volume = place.attach(text(&home));
    edit(&volume, "# mode = \"write-back\"", "mode = \"write-through\"");
    // From now on no sector of zeros shows the claim.
    Volume::open(&volume).unwrap().write(PageNo(0), vec![page(4)]).unwrap();
    std::fs::remove_file(place.at("flash")).unwrap();

    let own = place.at("own");
    std::fs::rename(&home, &own).unwrap();
    noise("home", 9);
    for disk in [&home, &own] {
        if disk == &own {
            std::fs::rename(&own, &home).unwrap();
        }
        let before = std::fs::read(&home).unwrap();
        let told = refused(&["rescue", text(&volume)]);
        assert!(
            told.contains("the home cannot show whose it is") && told.contains("--force"),
            "{told}"
        );
        assert!(told.contains(text(&home)), "{told}");
        assert!(std::fs::read(&home).unwrap() == before, "a refused home was changed");
    }
    good(&["rescue", text(&volume), "--force"]);
    let rescued = std::fs::read(&home).unwrap();
    assert!(
        rescued[..PAGE_BYTES] == [4; PAGE_BYTES]
            && rescued[PAGE_BYTES..2 * PAGE_BYTES] == [3; PAGE_BYTES]
    );
    assert!(rescued[2000 * PAGE_BYTES..2001 * PAGE_BYTES] == [7; PAGE_BYTES]);
}
