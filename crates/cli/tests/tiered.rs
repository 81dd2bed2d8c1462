//! A tiered volume on the command line: made, attached, served, killed, detached, and rescued.
mod support;

use std::path::Path;
use support::{good, refused, stat_row, tantalum, text};
use tantalum::Volume;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};

fn page(number: u64, count: u64) -> PageBuf {
    let mut bytes = [count as u8; PAGE_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    PageBuf::copy_from(&bytes)
}

/// Writes `count` into every `step`th of 4,000 pages.
fn fill(client: &Volume, step: usize, count: u64) {
    for number in (0..4000).step_by(step) {
        client.write(PageNo(number), vec![page(number, count)]).unwrap();
    }
}

/// Whether an image contains the data that [`fill`] wrote.
fn holds(image: &[u8], step: usize, count: u64) -> bool {
    (0..4000u64).step_by(step).all(|number| {
        let at = number as usize * PAGE_BYTES;
        image[at..at + PAGE_BYTES] == page(number, count)[..]
    })
}

/// An image with content, and with space at its beginning.
fn sevens(bytes: usize) -> Vec<u8> {
    let mut image = vec![7; bytes];
    image[..PAGE_BYTES].fill(0);
    image
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn create(&self) -> String {
        let (home, flash) = (self.at("home"), self.at("flash"));
        let volume = self.at("VOLUME.toml");
        let cache = ["--home", text(&home), "--flash", text(&flash), "--flash-size", "128MiB"];
        let args = [&["create", text(&volume), "--capacity", "200MiB"], &cache[..]].concat();
        let told = good(&args);
        let config = std::fs::read_to_string(&volume).unwrap();
        let config = config.replace("# cache = \"8MiB\"", "cache = \"1MiB\"");
        std::fs::write(&volume, config).unwrap();
        told
    }

    /// How long a page stays dirty: an hour where a test needs that no epoch goes home however slow the machine is.
    fn destage_after(&self, ms: u64) {
        let config = std::fs::read_to_string(self.at("VOLUME.toml")).unwrap();
        let changed =
            config.replace("# destage_after_ms = 5000", &format!("destage_after_ms = {ms}"));
        assert_ne!(changed, config);
        std::fs::write(self.at("VOLUME.toml"), changed).unwrap();
    }
}

#[test]
fn a_home_is_a_plain_image_before_and_after() {
    let place = Place::new();
    let (volume, home) = (place.at("VOLUME.toml"), place.at("home"));
    let mut image = vec![0; 200 << 20];
    for number in 0..4000u64 {
        let at = number as usize * PAGE_BYTES;
        image[at..at + PAGE_BYTES].copy_from_slice(&page(number, 3)[..]);
    }
    std::fs::write(&home, &image).unwrap();
    let flash = place.at("flash");
    let cache = ["--home", text(&home), "--flash", text(&flash), "--flash-size", "128MiB"];
    let told = good(&[&["attach", text(&volume)], &cache[..]].concat());
    assert!(told.contains("200.0 MiB") && told.contains(text(&home)), "{told}");
    {
        let client = Volume::open(&volume).unwrap();
        assert!(
            client.read(PageNo(0), 4000).unwrap().iter().zip(0..).all(|(it, n)| *it == page(n, 3))
        );
        fill(&client, 7, 4);
        fill(&client, 1000, 5);
    }
    assert!(good(&["check", text(&volume)]).contains("sound"));
    let told = good(&["detach", text(&volume)]);
    assert!(told.contains("plain image"), "{told}");
    let left = told.lines().last().unwrap();
    assert!(left.starts_with("not needed any more: ") && left.contains(".journal"), "{told}");
    let detached = std::fs::read(&home).unwrap();
    assert_eq!(detached.len(), image.len());
    assert!(holds(&detached, 1000, 5));
    for number in 0..4000u64 {
        let count = if number % 1000 == 0 {
            5
        } else if number % 7 == 0 {
            4
        } else {
            3
        };
        let at = number as usize * PAGE_BYTES;
        assert!(detached[at..at + PAGE_BYTES] == page(number, count)[..], "page {number}");
    }
    for command in ["stat", "check"] {
        let told = refused(&[command, text(&volume)]);
        let remedy = told.contains("nothing is missing: the volume was detached");
        assert!(told.contains("no Tantalum volume") && remedy, "{command}: {told}");
    }
    good(&["attach", text(&volume), "--force"]);
    let share = ["1024", "0", "64"];
    let error = refused(&[&["share", text(&volume)], &share[..]].concat());
    assert!(error.contains("tiered volume"), "{error}");
    let client = Volume::open(&volume).unwrap();
    assert_eq!(client.read(PageNo(7), 1).unwrap()[0], page(7, 4));
}

/// A flash that exists has data that the home lacks: giving that up must be requested, and is reported.
#[test]
fn a_rescue_by_force_gives_up_what_is_newer_in_the_flash() {
    let place = Place::new();
    let (volume, home) = (place.at("VOLUME.toml"), place.at("home"));
    place.create();
    place.destage_after(3_600_000);
    fill(&Volume::open(&volume).unwrap(), 1, 6);
    let before = std::fs::read(&home).unwrap();
    let error = refused(&["rescue", text(&volume)]);
    assert!(error.contains("detach` loses nothing") && error.contains("--force"), "{error}");
    assert_eq!(std::fs::read(&home).unwrap(), before, "nothing is changed by what is refused");
    let told = good(&["rescue", text(&volume), "--force"]);
    assert!(told.contains("no epoch was ever destaged"), "{told}");
    let image = std::fs::read(&home).unwrap();
    assert!(image.iter().all(|byte| *byte == 0), "as before the cache, without its claim");
    assert!(good(&["rescue", text(&volume), "--force"]).contains("no epoch"), "again");
    assert_eq!(std::fs::read(&home).unwrap(), image);
    // The home's new user keeps its writes: the cache does not overwrite them.
    let file = std::fs::File::options().write(true).open(&home).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[7; PAGE_BYTES], 100 << 20).unwrap();
    for command in ["check", "detach"] {
        let run = tantalum(&[command, text(&volume)]);
        let told = format!("{}{}", run.out, run.err);
        assert!(
            told.contains("and its home was changed since: it was modified since"),
            "{command}: {told}"
        );
        assert_eq!(run.code, 1, "{command}: {told}");
    }
    assert!(std::fs::read(&home).unwrap()[100 << 20..].starts_with(&[7; PAGE_BYTES]));
}

#[test]
fn without_the_flash_home_is_brought_to_its_last_epoch() {
    let place = Place::new();
    let (volume, home, flash) = (place.at("VOLUME.toml"), place.at("home"), place.at("flash"));
    let told = place.create();
    assert!(told.contains(" over "), "{told}");
    assert!(refused(&["rescue", text(&volume)]).contains("looks like the volume's flash"));
    std::fs::rename(&flash, place.at("away")).unwrap();
    assert!(good(&["rescue", text(&volume)]).contains("no epoch was ever destaged"));
    std::fs::rename(place.at("away"), &flash).unwrap();
    let epoch_at_home = |volume: &Path| stat_row(volume)["epoch_at_home"].as_u64().unwrap();
    place.destage_after(10);
    let mut count = 0;
    while epoch_at_home(&volume) < 2 {
        count += 1;
        assert!(count < 100, "no epoch goes home");
        let client = Volume::open(&volume).unwrap();
        fill(&client, 3, count);
        // If a volume has no thread of its own, its tasks run only during its callers' calls.
        (0..2000).for_each(|_| client.write(PageNo(3999), vec![page(3999, count)]).unwrap());
    }
    std::fs::remove_file(&flash).unwrap();
    let told = good(&["rescue", text(&volume)]);
    assert!(told.contains("(epoch ") && told.contains("Z, ") && told.contains(" ago"), "{told}");
    let image = std::fs::read(&home).unwrap();
    let written = |step: u64| {
        let at = |number: u64| &image[number as usize * PAGE_BYTES..][..PAGE_BYTES];
        (0..4000).step_by(step as usize).map(|number| u64::from(at(number)[8])).collect::<Vec<_>>()
    };
    // A prefix of one client's writes, in order: later rounds first.
    let counts = written(3);
    assert!(counts.is_sorted_by(|one, next| one >= next), "{counts:?}");
    assert!(counts[0] - counts[counts.len() - 1] <= 1 && counts[0] > 0, "{counts:?}");
    assert!(tantalum(&["serve", text(&volume), "--nbd", "unix:/nowhere/x"]).code == 2);
}

#[test]
fn a_pair_that_does_not_belong_together_is_refused() {
    let (one, other) = (Place::new(), Place::new());
    for (place, count) in [(&one, 1), (&other, 2)] {
        place.create();
        let client = Volume::open(place.at("VOLUME.toml")).unwrap();
        fill(&client, 1, count);
        drop(client);
        good(&["check", text(&place.at("VOLUME.toml"))]);
    }
    std::fs::copy(other.at("home.journal"), one.at("home.journal")).unwrap();
    let error = refused(&["stat", text(&one.at("VOLUME.toml"))]);
    assert!(error.contains("journal") && error.contains("is of"), "{error}");
    std::fs::remove_file(one.at("home.journal")).unwrap();
    let error = refused(&["stat", text(&one.at("VOLUME.toml"))]);
    assert!(error.contains("home.journal") && error.contains("\"dense\""), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let (volume, home, flash) = (place.at("VOLUME.toml"), place.at("home"), place.at("flash"));
    std::fs::write(&home, [1; 8192]).unwrap();
    let create = |capacity: &str, size: &str| {
        let cache = ["--home", text(&home), "--flash", text(&flash), "--flash-size", size];
        refused(&[&["create", text(&volume), "--capacity", capacity], &cache[..]].concat())
    };
    let error = create("200MiB", "128MiB");
    assert!(error.contains("attach"), "{error}");
    assert!(create("200MiB", "1MiB").contains("media.size"));
    assert!(!volume.exists() && !flash.exists());
    assert_eq!(std::fs::read(&home).unwrap(), [1; 8192], "what is there stays");
    assert!(refused(&["detach", text(&volume)]).contains("VOLUME.toml"));
    assert!(refused(&["attach", text(&volume)]).contains("--home"));
}

/// Pages are destaged one by one: the flash has everything, and only the flash shows what the home lacks.
#[test]
fn without_epochs_a_lost_journal_costs_nothing_and_a_lost_flash_everything() {
    let place = Place::new();
    let (volume, journal) = (place.at("VOLUME.toml"), place.at("home.journal"));
    place.create();
    let config = std::fs::read_to_string(&volume).unwrap();
    let dense = config.replace("# destage = \"ordered\"", "destage = \"dense\"");
    std::fs::write(&volume, dense).unwrap();
    fill(&Volume::open(&volume).unwrap(), 7, 1);
    std::fs::remove_file(&journal).unwrap();
    // Nothing is made by a command that may change nothing.
    good(&["check", text(&volume)]);
    assert!(!journal.exists());
    let client = Volume::open(&volume).unwrap();
    for number in (0..4000).step_by(7) {
        assert_eq!(client.read(PageNo(number), 1).unwrap(), [page(number, 1)]);
    }
    client.write(PageNo(1), vec![page(1, 2)]).unwrap();
    drop(client);
    assert!(journal.exists());
    let error = refused(&["rescue", text(&volume)]);
    assert!(error.contains("flash"), "{error}");
    // The same if epochs are configured now, but none was made since.
    std::fs::write(&volume, config).unwrap();
    std::fs::remove_file(place.at("flash")).unwrap();
    let error = refused(&["rescue", text(&volume)]);
    assert!(error.contains("one by one"), "{error}");
}

/// Writes over the home of `place`, like another program that uses it now; `rescue` must leave that alone.
fn assert_rescue_leaves_home_alone(place: &Place, volume: &Path) {
    let image = vec![0xab; 200 << 20];
    std::fs::write(place.at("home"), &image).unwrap();
    good(&["rescue", text(volume)]);
    assert!(std::fs::read(place.at("home")).unwrap() == image, "an old epoch went home again");
}

#[test]
fn a_home_that_is_used_by_others_gets_nothing_from_an_old_journal() {
    for detach_first in [true, false] {
        let place = Place::new();
        let (volume, flash) = (place.at("VOLUME.toml"), place.at("flash"));
        place.create();
        let config = std::fs::read_to_string(&volume).unwrap();
        let through = config.replace("# mode = \"write-back\"", "mode = \"write-through\"");
        std::fs::write(&volume, through).unwrap();
        fill(&Volume::open(&volume).unwrap(), 100, 1);
        if detach_first {
            good(&["detach", text(&volume)]);
        }
        std::fs::remove_file(&flash).unwrap();
        if !detach_first {
            assert!(good(&["rescue", text(&volume)]).contains("(epoch "));
        }
        assert_rescue_leaves_home_alone(&place, &volume);
    }
}

/// The result of attaching a new cache over the home of `place`.
fn attach_elsewhere(place: &Place) -> Result<String, String> {
    let (volume, home, flash) = (place.at("other.toml"), place.at("home"), place.at("other"));
    let cache = ["--home", text(&home), "--flash", text(&flash), "--flash-size", "128MiB"];
    let run = tantalum(&[&["attach", text(&volume)], &cache[..]].concat());
    assert!(run.code == 0 || !volume.exists() && !flash.with_file_name("other.creating").exists());
    if run.code == 0 { Ok(run.out) } else { Err(run.err) }
}

#[test]
fn a_home_gets_another_cache_only_when_its_own_is_detached_or_rescued() {
    for destage in ["ordered", "dense"] {
        let place = Place::new();
        let (volume, flash) = (place.at("VOLUME.toml"), place.at("flash"));
        place.create();
        let config = std::fs::read_to_string(&volume).unwrap();
        let destaged = format!("destage = \"{destage}\"");
        std::fs::write(&volume, config.replace("# destage = \"ordered\"", &destaged)).unwrap();
        let client = Volume::open(&volume).unwrap();
        fill(&client, 7, 1);
        assert!(attach_elsewhere(&place).unwrap_err().contains("open"), "it is in use");
        drop(client);
        let error = attach_elsewhere(&place).unwrap_err();
        assert!(error.contains("belongs to volume") && error.contains("detach"), "{error}");
        // As if the flash were lost: the error must not suggest giving up the journal's data.
        std::fs::rename(&flash, place.at("away")).unwrap();
        let error = refused(&["stat", text(&volume)]);
        assert!(error.contains("rescue") == (destage == "ordered"), "{error}");
        assert!(!error.contains("create"), "{error}");
        assert!(refused(&["create", text(&volume)]).contains("belongs to volume"));
        assert!(refused(&["attach", text(&volume)]).contains("belongs to volume"));
        std::fs::rename(place.at("away"), &flash).unwrap();
        good(&["detach", text(&volume)]);
        attach_elsewhere(&place).unwrap();
        let client = Volume::open(place.at("other.toml")).unwrap();
        assert_eq!(client.read(PageNo(7), 1).unwrap()[0], page(7, 1));
    }
    let place = Place::new();
    place.create();
    fill(&Volume::open(place.at("VOLUME.toml")).unwrap(), 7, 1);
    std::fs::remove_file(place.at("flash")).unwrap();
    good(&["rescue", text(&place.at("VOLUME.toml"))]);
    attach_elsewhere(&place).unwrap();
}

#[test]
fn an_attach_that_fails_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home.img");
    std::fs::write(&home, vec![0; 4 << 20]).unwrap();
    let volume = folder.path().join("new/v.toml");
    let flash = folder.path().join("nowhere/flash");
    let cache = ["--home", text(&home), "--flash", text(&flash), "--flash-size", "128MiB"];
    refused(&[&["attach", text(&volume)], &cache[..]].concat());
    assert!(!volume.parent().unwrap().exists());
    // Existing files stay.
    std::fs::create_dir(volume.parent().unwrap()).unwrap();
    refused(&[&["attach", text(&volume)], &cache[..]].concat());
    assert!(volume.parent().unwrap().exists() && !volume.exists());
}

#[test]
fn a_flash_that_is_too_small_is_refused_with_the_least_that_works() {
    let place = Place::new();
    let (volume, home, flash) = (place.at("VOLUME.toml"), place.at("home"), place.at("flash"));
    std::fs::write(&home, vec![0; 64 << 20]).unwrap();
    let attach = |size: &str| {
        let cache = ["--home", text(&home), "--flash", text(&flash), "--flash-size", size];
        tantalum(&[&["attach", text(&volume)], &cache[..]].concat())
    };
    let least = |size: &str| {
        let run = attach(size);
        assert_eq!(run.code, 2, "{size}: {}", run.err);
        let told = run.err.split_once("at least ").expect(&run.err).1;
        let (mib, _) = told.split_once("MiB").expect(&run.err);
        assert!(run.err.contains("--flash-size") && run.err.lines().count() == 1, "{}", run.err);
        mib.parse::<u64>().expect(&run.err)
    };
    let mib = least("56MiB");
    assert_eq!(least("1MiB"), mib);
    assert_eq!(least(&format!("{}MiB", mib - 1)), mib);
    let run = attach(&format!("{mib}MiB"));
    assert_eq!(run.code, 0, "{}", run.err);
    good(&["check", text(&volume)]);
    for command in ["attach", "create"] {
        let help = good(&[command, "--help"]);
        assert!(help.contains(&format!("{mib}MiB")), "{help}");
    }
}

#[test]
fn the_least_flash_depends_on_what_the_configuration_says() {
    let place = Place::new();
    let volume = place.at("VOLUME.toml");
    place.create();
    std::fs::remove_file(place.at("flash")).unwrap();
    let config = std::fs::read_to_string(&volume).unwrap();
    let with = |cache: &str| {
        let config = config
            .replace("size = \"128MiB\"", "size = \"16MiB\"")
            .replace("cache = \"1MiB\"", &format!("cache = \"{cache}\""));
        std::fs::write(&volume, config).unwrap();
        let error = refused(&["attach", text(&volume), "--force"]);
        let (_, told) = error.split_once("at least ").expect(&error);
        told.split_once("MiB").unwrap().0.parse::<u64>().unwrap()
    };
    let (small, large) = (with("4MiB"), with("64MiB"));
    assert!(16 < small && 4 * small < large, "{small} and {large} MiB");
}

/// Nothing would be lost, but a user who opens the first volume later would find its journal gone.
#[test]
fn a_home_gets_no_second_cache_where_the_first_was_never_used() {
    let place = Place::new();
    let (volume, home, flash) = (place.at("VOLUME.toml"), place.at("home"), place.at("flash"));
    std::fs::write(&home, sevens(64 << 20)).unwrap();
    let cache = ["--home", text(&home), "--flash", text(&flash), "--flash-size", "128MiB"];
    good(&[&["attach", text(&volume)], &cache[..]].concat());
    let error = attach_elsewhere(&place).unwrap_err();
    assert!(error.contains("belongs to volume") && error.contains("detach"), "{error}");
    // The first volume is unchanged, and after its detach the home is free.
    good(&["check", text(&volume)]);
    good(&["detach", text(&volume)]);
    attach_elsewhere(&place).unwrap();
    good(&["check", text(&place.at("other.toml"))]);
    good(&["detach", text(&place.at("other.toml"))]);
    assert!(std::fs::read(&home).unwrap() == sevens(64 << 20), "home is as it was");
    // The home of a newly created volume is refused in the same way.
    let place = Place::new();
    place.create();
    assert!(attach_elsewhere(&place).unwrap_err().contains("belongs to volume"));
}

/// `--force` gives up flash and journal, but never the home: a flash or journal over it would overwrite the content to
/// be kept.
#[test]
fn a_home_that_is_its_own_flash_is_refused_before_anything_is_written() {
    let place = Place::new();
    let (volume, home) = (place.at("VOLUME.toml"), place.at("home"));
    let (link, hard) = (place.at("link"), place.at("hard"));
    let image = vec![7; 100 << 20];
    std::fs::write(&home, &image).unwrap();
    std::os::unix::fs::symlink(&home, &link).unwrap();
    std::fs::hard_link(&home, &hard).unwrap();
    for flash in [&home, &link, &hard] {
        for force in [&["--force"][..], &[]] {
            let cache = ["--home", text(&home), "--flash", text(flash), "--flash-size", "60MiB"];
            let error = refused(&[&["attach", text(&volume)], &cache[..], force].concat());
            assert!(error.contains("the same file"), "{error}");
            assert!(std::fs::read(&home).unwrap() == image, "home is as it was");
        }
    }
}

#[test]
fn a_home_that_has_a_cache_gets_no_other_one_through_a_link() {
    let place = Place::new();
    let (volume, home, link) = (place.at("VOLUME.toml"), place.at("home"), place.at("link"));
    std::fs::write(&home, sevens(64 << 20)).unwrap();
    std::os::unix::fs::symlink(&home, &link).unwrap();
    let attach = |volume: &Path, home: &Path, flash: &Path| {
        let cache = ["--home", text(home), "--flash", text(flash), "--flash-size", "128MiB"];
        tantalum(&[&["attach", text(volume)], &cache[..]].concat())
    };
    // A file beside the home that is not a journal does not mean that the home has a cache.
    let beside = place.at("home.journal");
    std::fs::write(&beside, "of another program").unwrap();
    let linked = attach(&place.at("linked.toml"), &link, &place.at("flash"));
    assert_eq!(linked.code, 0, "{}", linked.err);
    good(&["detach", text(&place.at("linked.toml"))]);
    for name in ["flash", "home.journal"] {
        std::fs::remove_file(place.at(name)).unwrap();
    }
    assert_eq!(attach(&volume, &home, &place.at("flash")).code, 0);
    let second = attach(&place.at("other.toml"), &link, &place.at("other"));
    assert!(second.code == 2 && second.err.contains("belongs to volume"), "{}", second.err);
    good(&["detach", text(&volume)]);
    assert_eq!(attach(&place.at("other.toml"), &link, &place.at("other")).code, 0);
}
