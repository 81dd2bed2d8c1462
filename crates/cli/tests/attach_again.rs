//! An interrupted `attach` is repeated as it was, without `--force`; anything that may contain acknowledged data is
//! kept.
mod support;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{good, refused, tantalum, text};
use tantalum::Volume;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};
use tantalum_cache::Journal;
use tantalum_media::block_store::{FileStore, FileStoreOptions};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_testing::built;

const HOME_BYTES: usize = 32 << 20;

struct Place(tempfile::TempDir);

impl Place {
    /// A home with content, and with space for a claim at its beginning.
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::write(place.at("home"), image()).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn volume(&self) -> PathBuf {
        self.at("v.toml")
    }

    fn attach(&self) -> Vec<String> {
        let (path, volume) = (|name: &str| text(&self.at(name)).to_owned(), self.volume());
        let [home, flash] = ["home", "flash"].map(path);
        let words = ["attach", text(&volume), "--home", &home, "--flash", &flash];
        let words = words.into_iter().chain(["--flash-size", "64MiB"]);
        words.map(str::to_owned).collect()
    }

    /// Runs `attach` again, which must finish; returns its output.
    fn attach_again(&self) -> String {
        let words = self.attach();
        let run = tantalum(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        assert!(run.out.contains("a volume of 32.0 MiB"), "{}", run.out);
        run.err
    }

    /// The volume is sound, and gives the home back as it was.
    fn assert_whole(&self) {
        assert!(good(&["check", text(&self.volume())]).contains("sound"));
        assert!(good(&["stat", text(&self.at("home"))]).contains("home.journal"), "it is claimed");
        good(&["detach", text(&self.volume())]);
        assert!(std::fs::read(self.at("home")).unwrap() == image(), "the home has changed");
    }

    /// Leaves flash, journal and home as an attach does that is interrupted before it claims the home.
    fn unclaim(&self) {
        let journal = self.at("home.journal");
        let live = Live::new(LiveOptions::default()).unwrap();
        let handle = live.clone();
        live.run(async move {
            let store = FileStore::open(&handle, &journal, FileStoreOptions::default()).unwrap();
            let pair = Journal::<_, PageBuf>::pair_of(&store).await.unwrap();
            Journal::<_, PageBuf>::format(store, pair, 0).await.unwrap();
        });
        std::fs::write(self.at("home"), image()).unwrap();
    }
}

fn image() -> Vec<u8> {
    let mut image = vec![7; HOME_BYTES];
    image[..PAGE_BYTES].fill(0);
    image
}

#[test]
fn an_attach_that_did_not_claim_its_home_is_finished() {
    for keeps_configuration in [true, false] {
        let place = Place::new();
        place.attach_again();
        place.unclaim();
        if !keeps_configuration {
            std::fs::remove_file(place.volume()).unwrap();
        }
        let told = place.attach_again();
        assert!(told.contains("it is finished now"), "{told}");
        let words = place.attach();
        let told = refused(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(told.contains("is attached already") && told.contains("tantalum serve"), "{told}");
        place.assert_whole();
    }
}

#[test]
fn an_attach_that_made_an_empty_journal_is_repeated() {
    let place = Place::new();
    place.attach_again();
    let bytes = std::fs::metadata(place.at("home.journal")).unwrap().len();
    place.assert_whole();
    let place = Place::new();
    std::fs::File::create(place.at("home.journal")).unwrap().set_len(bytes).unwrap();
    place.attach_again();
    place.assert_whole();
    // A flash with any content, or of another size, may belong to somebody.
    let mut other = vec![0; bytes as usize];
    other[12 << 20] = 1;
    for other in [&other[..], &vec![0; bytes as usize - PAGE_BYTES], &[0; 100], b"letters"] {
        let place = Place::new();
        std::fs::write(place.at("home.journal"), other).unwrap();
        let words = place.attach();
        let told = refused(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(told.contains("is a file already") && told.contains("--force"), "{told}");
        assert!(std::fs::read(place.at("home.journal")).unwrap() == other);
    }
}

/// A size that the configuration contradicts is refused, and not ignored.
#[test]
fn an_attach_after_a_detach_takes_the_size_of_the_configuration_or_refuses() {
    let place = Place::new();
    let volume = place.volume();
    let attach = |size: &str| {
        let mut words = place.attach();
        *words.last_mut().unwrap() = size.to_owned();
        tantalum(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let alone = ["attach", text(&volume), "--flash-size", "64MiB"];
    assert!(refused(&alone).contains("--home"), "a new configuration needs all three");
    assert_eq!(attach("64MiB").code, 0);
    good(&["detach", text(&volume)]);
    let told = attach("80MiB");
    assert!(told.code == 2 && told.err.contains("change media.size"), "{}", told.err);
    let told = attach("65536KiB");
    assert_eq!(told.code, 0, "{}", told.err);
    place.assert_whole();
    assert!(good(&alone).contains("a volume of 32.0 MiB"));
    place.assert_whole();
}

/// The flash was away, the home was rescued, and the flash came back: it has acknowledged data.
#[test]
fn a_flash_with_anything_in_it_is_no_attach_that_was_cut_short() {
    let place = Place::new();
    place.attach_again();
    let client = Volume::open(place.volume()).unwrap();
    client.write(PageNo(700), vec![PageBuf::copy_from(&[9; PAGE_BYTES])]).unwrap();
    client.flush().unwrap();
    drop(client);
    std::fs::rename(place.at("flash"), place.at("away")).unwrap();
    good(&["rescue", text(&place.volume())]);
    std::fs::rename(place.at("away"), place.at("flash")).unwrap();
    let bytes = |name: &str| std::fs::read(place.at(name)).unwrap();
    let before = ["home", "flash", "home.journal"].map(bytes);
    let told = refused(&["attach", text(&place.volume())]);
    assert!(told.contains("is a volume already") && told.contains("--force"), "{told}");
    assert!(["home", "flash", "home.journal"].map(bytes) == before, "a refusal changes nothing");
}

/// `--force`, the advice for the content, would give up the pages of the flash that is away.
#[test]
fn the_owner_of_a_home_is_told_before_the_content_in_the_place_of_its_flash() {
    let place = Place::new();
    place.attach_again();
    for content in [b"anything".to_vec(), vec![7; 64 << 20]] {
        std::fs::write(place.at("flash"), content).unwrap();
        let told = refused(&["attach", text(&place.volume())]);
        assert!(told.contains("the home belongs to") && told.contains("tantalum rescue"), "{told}");
    }
}

#[test]
fn an_attach_that_was_killed_is_repeated() {
    let mut cut_short = 0;
    for turn in 0..16u64 {
        let place = Place::new();
        let mut child = Command::new(built::tantalum())
            .args(place.attach())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        #[expect(clippy::disallowed_methods, reason = "a process is to be killed at some time")]
        std::thread::sleep(Duration::from_micros(1000 * turn * turn));
        child.kill().unwrap();
        child.wait().unwrap();
        if is_whole(&place.volume()) {
            place.assert_whole();
            continue;
        }
        cut_short += 1;
        place.attach_again();
        place.assert_whole();
    }
    assert!(cut_short > 0, "no attach was caught in the middle");
}

/// Whether the attach was finished before the kill.
fn is_whole(volume: &Path) -> bool {
    tantalum(&["attach", text(volume), "--plan"]).err.contains("is attached already")
}

/// Flash and journal have the content of a home, or say which pages of it are new: they may be read by those who may read the home.
#[test]
fn the_files_beside_a_home_have_its_permissions() {
    for mode in [0o600, 0o640] {
        let place = Place::new();
        std::fs::set_permissions(place.at("home"), Permissions::from_mode(mode)).unwrap();
        place.attach_again();
        for name in ["home", "flash", "home.journal"] {
            let about = std::fs::metadata(place.at(name)).unwrap();
            assert_eq!(about.permissions().mode() & 0o777, mode, "{name}");
        }
    }
}
