//! Stores that are missing: the advice can be followed, and a refused opening leaves nothing behind.
mod support;

use std::path::PathBuf;
use support::volume::edit;
use support::{good, tantalum, text};
use tantalum::Volume;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};

const HOME_BYTES: u64 = 32 << 20;

struct Place(tempfile::TempDir);

impl Place {
    /// A tiered volume with a page.
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::File::create(place.at("home")).unwrap().set_len(HOME_BYTES).unwrap();
        place.attach();
        let content = PageBuf::copy_from(&[7; PAGE_BYTES]);
        let client = Volume::open(place.at("v.toml")).unwrap();
        client.write(PageNo(2000), vec![content]).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn attach(&self) {
        let [volume, home, flash] = ["v.toml", "home", "flash"].map(|name| self.at(name));
        let stores = ["--home", text(&home), "--flash", text(&flash), "--flash-size", "64MiB"];
        good(&[&["attach", text(&volume)], &stores[..]].concat());
    }

    fn refused(&self, command: &[&str]) -> String {
        let run = tantalum(&[command, &[text(&self.at("v.toml"))]].concat());
        assert_ne!(run.code, 0, "{}", run.out);
        run.out + &run.err
    }
}

#[test]
fn without_flash_and_journal_the_home_is_unclaimed_and_attached_again() {
    let place = Place::new();
    for name in ["flash", "home.journal"] {
        std::fs::remove_file(place.at(name)).unwrap();
    }
    let unclaim = format!("tantalum unclaim {}", text(&place.at("home")));
    for command in [&["rescue"][..], &["check"]] {
        let told = place.refused(command);
        assert!(told.contains(&unclaim), "{command:?}: {told}");
    }
    good(&["unclaim", text(&place.at("home"))]);
    let told = place.refused(&["check"]);
    assert!(told.contains("tantalum attach") && !told.contains("unclaim"), "{told}");
    place.attach();
}

#[test]
fn a_flash_that_was_cut_short_can_be_given_up() {
    let place = Place::new();
    let flash = std::fs::File::options().write(true).open(place.at("flash")).unwrap();
    flash.set_len(2 << 20).unwrap();
    let told = place.refused(&["check"]);
    assert!(told.contains("cut short") && told.contains("tantalum rescue --force"), "{told}");
    good(&["rescue", text(&place.at("v.toml")), "--force"]);
}

#[test]
fn a_refused_opening_makes_no_journal() {
    let place = Place::new();
    edit(&place.at("v.toml"), "# destage = \"ordered\"", "destage = \"dense\"");
    std::fs::remove_file(place.at("home.journal")).unwrap();
    std::fs::rename(place.at("home"), place.at("away")).unwrap();
    let told = place.refused(&["detach"]);
    assert!(told.contains("the home") && !told.contains("journal"), "{told}");
    assert!(!place.at("home.journal").exists());
    // Another volume's home has the name.
    let [volume, other, flash] = ["w.toml", "other", "w.flash"].map(|name| place.at(name));
    std::fs::File::create(&other).unwrap().set_len(HOME_BYTES).unwrap();
    let stores = ["--home", text(&other), "--flash", text(&flash), "--flash-size", "64MiB"];
    good(&[&["attach", text(&volume)], &stores[..]].concat());
    std::fs::copy(&other, place.at("home")).unwrap();
    assert!(place.refused(&["detach"]).contains("belongs to volume"));
    assert!(!place.at("home.journal").exists());
    // The volume's own home gets a new journal.
    std::fs::rename(place.at("away"), place.at("home")).unwrap();
    good(&["detach", text(&place.at("v.toml"))]);
    let image = std::fs::read(place.at("home")).unwrap();
    assert!(image[2000 * PAGE_BYTES..2001 * PAGE_BYTES] == [7; PAGE_BYTES]);
}
