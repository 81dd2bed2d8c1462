//! A home that has a cache cannot be mounted by mistake, and is unchanged when it is given back.
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{good, refused, tantalum, text};
use tantalum::Volume;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};
use tantalum_testing::{can_loop, installed};

const HOME_BYTES: usize = 32 << 20;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `attach` of the volume `name` over `home`, with `more` arguments.
    fn attach(&self, name: &str, home: &Path, more: &[&str]) -> Result<String, String> {
        let (volume, flash) = (self.at(&format!("{name}.toml")), self.at(&format!("{name}.flash")));
        let cache = ["--home", text(home), "--flash", text(&flash), "--flash-size", "64MiB"];
        let run = tantalum(&[&["attach", text(&volume)], &cache[..], more].concat());
        if run.code == 0 { Ok(run.out) } else { Err(run.err) }
    }

    fn volume(&self, name: &str) -> PathBuf {
        self.at(&format!("{name}.toml"))
    }

    /// A home with an ext4 file system.
    fn ext4(&self) -> (PathBuf, Vec<u8>) {
        let home = self.at("home");
        std::fs::File::create(&home).unwrap().set_len(HOME_BYTES as u64).unwrap();
        assert!(quiet("mkfs.ext4", &["-q", "-F", text(&home)]).0);
        let image = std::fs::read(&home).unwrap();
        (home, image)
    }
}

/// Whether a program succeeded, and its output.
fn quiet(program: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output().expect("it starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The output of `blkid` for `path`.
fn blkid(path: &Path) -> String {
    quiet("blkid", &["-p", text(path)]).1
}

fn page(fill: u8) -> PageBuf {
    PageBuf::copy_from(&[fill; PAGE_BYTES])
}

#[test]
fn nothing_is_found_on_a_home_that_has_a_cache_and_all_when_it_is_given_back() {
    if !installed(&["mkfs.ext4", "blkid"]) || !can_loop() {
        return;
    }
    let place = Place::new();
    let (home, image) = place.ext4();
    assert!(blkid(&home).contains("ext4"));
    place.attach("a", &home, &[]).unwrap();
    assert_eq!(blkid(&home), "");
    let (mounted, _) = quiet("mount", &["-o", "loop", text(&home), text(place.0.path())]);
    assert!(!mounted, "a home that has a cache was mounted");
    // The claim names its volume.
    let seen = std::fs::read(&home).unwrap();
    assert!(seen[..512].starts_with(b"Tantalum claim 1\nvolume "), "zeros show it in clear");
    let told = good(&["stat", text(&home)]);
    assert!(told.contains("home.journal") && told.contains("do not mount"), "{told}");
    // Through the cache, the content is as before.
    let client = Volume::open(place.volume("a")).unwrap();
    for (first, pages) in
        [(0, image.chunks(PAGE_BYTES)), (8000, image[8000 * PAGE_BYTES..].chunks(PAGE_BYTES))]
    {
        for (number, wanted) in (first..first + 192).zip(pages) {
            assert!(client.read(PageNo(number), 1).unwrap()[0][..] == *wanted, "page {number}");
        }
    }
    drop(client);
    good(&["detach", text(&place.volume("a"))]);
    assert!(std::fs::read(&home).unwrap() == image);
}

#[test]
fn a_home_has_one_cache_wherever_the_journals_are() {
    let place = Place::new();
    let home = place.at("home");
    std::fs::write(&home, vec![0; HOME_BYTES]).unwrap();
    let configure = |name: &str| {
        let volume = place.volume(name);
        let text = format!(
            "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"{name}.flash\"\nsize = \"64MiB\"\n[home]\npath = \"home\"\n\
             journal = \"{name}.journal\"\n[device]\ncapacity = \"32MiB\"\n"
        );
        std::fs::write(&volume, text).unwrap();
        volume
    };
    let (a, b) = (configure("a"), configure("b"));
    good(&["attach", text(&a)]);
    let error = refused(&["attach", text(&b)]);
    assert!(error.contains("belongs to volume") && error.contains("a.journal"), "{error}");
    Volume::open(&a).unwrap().write(PageNo(3), vec![page(1)]).unwrap();
    // With --force, the first volume loses the home, and notices that.
    good(&["attach", text(&b), "--force"]);
    let run = tantalum(&["check", text(&a)]);
    let told = run.out + &run.err;
    assert!(run.code != 0 && told.contains("belongs to volume"), "{told}");
    assert!(told.contains("b.journal"), "{told}");
    Volume::open(&b).unwrap().write(PageNo(4), vec![page(2)]).unwrap();
    good(&["detach", text(&b)]);
    let image = std::fs::read(&home).unwrap();
    assert!(image[4 * PAGE_BYTES..5 * PAGE_BYTES] == page(2)[..]);
    assert!(image[5 * PAGE_BYTES..].iter().all(|byte| *byte == 0), "no claim is left");
}

#[test]
fn a_home_is_unclaimed_from_itself_alone() {
    let place = Place::new();
    let home = place.at("home");
    let mut image = vec![0; HOME_BYTES];
    image[..8 * PAGE_BYTES].fill(9);
    std::fs::write(&home, &image).unwrap();
    place.attach("a", &home, &[]).unwrap();
    let copy = place.at("copy");
    std::fs::copy(&home, &copy).unwrap();
    // Flash and journal exist.
    let error = refused(&["unclaim", text(&home)]);
    assert!(error.contains("detach") && error.contains("--force"), "{error}");
    // They do not matter for a copy.
    let told = good(&["unclaim", text(&copy)]);
    assert!(told.contains("plain image") && std::fs::read(&copy).unwrap() == image, "{told}");
    assert!(refused(&["unclaim", text(&copy)]).contains("shows no claim"));
    std::fs::remove_file(place.at("a.flash")).unwrap();
    std::fs::remove_file(place.at("home.journal")).unwrap();
    good(&["unclaim", text(&home)]);
    assert!(std::fs::read(&home).unwrap() == image);
    assert!(!place.at("home.unclaim").exists() && !place.at("copy.unclaim").exists());
    place.attach("b", &home, &[]).unwrap();
}

#[test]
fn a_home_that_was_written_over_is_not_served() {
    if !installed(&["mkfs.ext4"]) {
        return;
    }
    let place = Place::new();
    let (home, _) = place.ext4();
    place.attach("a", &home, &[]).unwrap();
    Volume::open(place.volume("a")).unwrap().write(PageNo(3), vec![page(1)]).unwrap();
    assert!(quiet("mkfs.ext4", &["-q", "-F", text(&home)]).0);
    let made = std::fs::read(&home).unwrap();
    for command in [&["check"][..], &["detach"], &["rescue", "--force"]] {
        let volume = place.volume("a");
        let run = tantalum(&[command, &[text(&volume)]].concat());
        let told = run.out + &run.err;
        assert!(run.code != 0 && told.contains("does not show the claim"), "{command:?}: {told}");
        assert!(!told.contains("attach"), "it would claim another disk: {told}");
        assert!(std::fs::read(&home).unwrap() == made, "{command:?}: home is left alone");
    }
}

#[test]
fn what_cannot_be_claimed_or_is_a_member_is_refused() {
    let place = Place::new();
    let home = place.at("home");
    std::fs::write(&home, vec![7; HOME_BYTES]).unwrap();
    let error = place.attach("a", &home, &["--claim", "xor"]).unwrap_err();
    assert!(error.contains("home.claim = \"none\""), "{error}");
    assert!(std::fs::read(&home).unwrap() == vec![7; HOME_BYTES] && !place.volume("a").exists());
    place.attach("a", &home, &["--claim", "none"]).unwrap();
    assert!(std::fs::read(&home).unwrap() == vec![7; HOME_BYTES], "a plain image at all times");
    let error = place.attach("a", &home, &["--claim", "xor"]).unwrap_err();
    assert!(error.contains("a.toml says home.claim = \"none\""), "{error}");
    if installed(&["mkswap"]) {
        let swap = place.at("swap");
        std::fs::write(&swap, vec![0; HOME_BYTES]).unwrap();
        assert!(quiet("mkswap", &[text(&swap)]).0);
        let error = place.attach("b", &swap, &[]).unwrap_err();
        assert!(error.contains("swap space"), "{error}");
    }
}

/// A claim could not be recognized on it, and there is nothing that could be mounted.
#[test]
fn a_home_full_of_what_nobody_knows_needs_no_claim() {
    let place = Place::new();
    let (unknown, known) = (place.at("unknown"), place.at("known"));
    let mut bytes = vec![7; HOME_BYTES];
    std::fs::write(&unknown, &bytes).unwrap();
    place.attach("a", &unknown, &[]).unwrap();
    assert!(std::fs::read_to_string(place.volume("a")).unwrap().contains("\nclaim = \"none\""));
    Volume::open(place.volume("a")).unwrap().write(PageNo(0), vec![page(1)]).unwrap();
    good(&["detach", text(&place.volume("a"))]);
    bytes[..PAGE_BYTES].fill(1);
    assert!(std::fs::read(&unknown).unwrap() == bytes);
    // The magic number of ext4.
    bytes[1080..1082].copy_from_slice(&[0x53, 0xef]);
    std::fs::write(&known, &bytes).unwrap();
    let error = place.attach("b", &known, &[]).unwrap_err();
    assert!(error.contains("--claim none"), "{error}");
}

/// The home was used without a cache meanwhile. Nothing of the flash is needed, and the journal says so.
#[test]
fn what_was_detached_is_attached_again_over_whatever_the_home_holds() {
    for claim in ["xor", "none"] {
        let place = Place::new();
        let (home, flash) = (place.at("home"), place.at("a.flash"));
        let mut bytes = vec![0; HOME_BYTES];
        std::fs::write(&home, &bytes).unwrap();
        place.attach("a", &home, &["--claim", claim]).unwrap();
        for round in 1..3 {
            let volume = place.volume("a");
            Volume::open(&volume).unwrap().write(PageNo(3), vec![page(round)]).unwrap();
            good(&["detach", text(&volume)]);
            bytes[3 * PAGE_BYTES..4 * PAGE_BYTES].fill(round);
            assert!(std::fs::read(&home).unwrap() == bytes, "{claim}, round {round}");
            bytes[PAGE_BYTES + 7] = round;
            std::fs::write(&home, &bytes).unwrap();
            good(&["attach", text(&volume)]);
        }
        good(&["detach", text(&place.volume("a"))]);
        assert!(std::fs::read(&home).unwrap() == bytes, "{claim}");
        // Another file in its place is kept.
        let len = std::fs::metadata(&flash).unwrap().len() as usize;
        for other in [vec![0; len - PAGE_BYTES], vec![1; len]] {
            std::fs::write(&flash, &other).unwrap();
            let error = refused(&["attach", text(&place.volume("a"))]);
            assert!(error.contains("--force"), "{claim}: {error}");
            assert!(std::fs::read(&flash).unwrap() == other);
        }
    }
}

#[test]
fn a_new_volume_over_a_home_is_made_with_or_without_a_claim() {
    let place = Place::new();
    for (claim, shown) in [("xor", true), ("none", false)] {
        let (home, flash) = (place.at(&format!("{claim}.home")), place.at(claim));
        let (volume, tiers) = (place.volume(claim), ["--flash-size", "64MiB", "--claim", claim]);
        let sizes = ["--capacity", "32MiB", "--home", text(&home), "--flash", text(&flash)];
        good(&[&["create", text(&volume)], &sizes[..], &tiers].concat());
        let told = tantalum(&["stat", text(&home)]);
        assert_eq!(told.code == 0, shown, "{claim}: {}{}", told.out, told.err);
    }
}

/// A loop device with partitions, detached when this is dropped.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Loop {
        let (made, name) = quiet("losetup", &["-P", "-f", "--show", text(file)]);
        assert!(made, "no loop device over {}", file.display());
        Loop(name.trim().into())
    }

    /// Number of its partitions known to the kernel.
    fn partitions(&self) -> usize {
        let name = self.0.trim_start_matches("/dev/");
        let listed = std::fs::read_dir(format!("/sys/block/{name}")).unwrap();
        let names = listed.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|entry| entry.starts_with(&format!("{name}p"))).count()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        quiet("losetup", &["-d", &self.0]);
    }
}

/// A disk with two partitions of 8 MiB in a DOS partition table.
fn partitioned() -> Vec<u8> {
    let mut disk = vec![0; HOME_BYTES];
    for (entry, first_sector) in [(446, 2048_u32), (462, 2048 + 16384)] {
        disk[entry + 4] = 0x83;
        disk[entry + 8..entry + 12].copy_from_slice(&first_sector.to_le_bytes());
        disk[entry + 12..entry + 16].copy_from_slice(&16384_u32.to_le_bytes());
    }
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk
}

#[test]
fn partitions_go_and_come_back() {
    if !installed(&["blkid", "addpart"]) || !can_loop() {
        return;
    }
    let place = Place::new();
    let image = place.at("disk");
    std::fs::write(&image, partitioned()).unwrap();
    let device = Loop::over(&image);
    // Not every kernel can read partition tables; then the partitions are added by hand.
    let found = device.partitions();
    if found == 0 {
        assert!(quiet("addpart", &[&device.0, "1", "2048", "16384"]).0);
    }
    let volume = place.volume("a");
    let config = format!(
        "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"a.flash\"\nsize = \"64MiB\"\n[home]\npath = \"{}\"\n\
         journal = \"a.journal\"\n[device]\ncapacity = \"32MiB\"\n",
        device.0
    );
    std::fs::write(&volume, config).unwrap();
    let used = std::fs::File::open(format!("{}p1", device.0)).unwrap();
    assert!(refused(&["attach", text(&volume)]).contains("in use"));
    drop(used);
    good(&["attach", text(&volume)]);
    assert_eq!(device.partitions(), 0);
    assert_eq!(blkid(Path::new(&device.0)), "");
    good(&["check", text(&volume)]);
    good(&["detach", text(&volume)]);
    assert_eq!(device.partitions(), found);
    assert!(std::fs::read(&image).unwrap() == partitioned());
}
