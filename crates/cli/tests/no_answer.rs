//! A store that does not even answer a lookup is not considered lost, and a command whose answer was lost can be
//! repeated.
mod support;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use support::{good, refused, text};
use tantalum::Volume;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};

const HOME_BYTES: usize = 32 << 20;
const PAGES: u64 = 200;

struct Place(tempfile::TempDir);

impl Place {
    /// A tiered volume whose flash has pages that the home lacks.
    fn new(destage: &str) -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::write(place.at("home"), vec![0; HOME_BYTES]).unwrap();
        let config = format!(
            "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"flash\"\nsize = \"64MiB\"\n[home]\npath = \"home\"\n\
             destage = \"{destage}\"\n[device]\ncapacity = \"32MiB\"\n"
        );
        std::fs::write(place.volume(), config).unwrap();
        good(&["attach", text(&place.volume())]);
        let client = Volume::open(place.volume()).unwrap();
        for number in 0..PAGES {
            client.write(PageNo(number), vec![content(number)]).unwrap();
        }
        client.flush().unwrap();
        drop(client);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn volume(&self) -> PathBuf {
        self.at("VOLUME.toml")
    }

    /// Runs `test` while no lookup of `name` is answered: it is a link to itself.
    fn unanswered(&self, name: &str, test: impl FnOnce()) {
        let (path, away) = (self.at(name), self.at("away"));
        std::fs::rename(&path, &away).unwrap();
        symlink(name, &path).unwrap();
        assert!(path.try_exists().is_err());
        test();
        std::fs::remove_file(&path).expect("nothing took its place");
        std::fs::rename(&away, &path).unwrap();
    }

    /// Detaches the home, which must then have all written data.
    fn assert_nothing_is_lost(&self) {
        let told = good(&["detach", text(&self.volume())]);
        assert!(told.contains("plain image"), "{told}");
        let image = std::fs::read(self.at("home")).unwrap();
        for (number, page) in (0..PAGES).zip(image.chunks(PAGE_BYTES)) {
            assert!(*page == content(number)[..], "page {number}");
        }
    }
}

fn content(number: u64) -> PageBuf {
    PageBuf::copy_from(&[number as u8 + 1; PAGE_BYTES])
}

/// The message of every command except those whose names mean that something is given up.
fn assert_may_pass(arguments: &[&str], path: &Path) {
    let error = refused(arguments);
    assert!(error.contains(text(path)) && error.contains("may pass"), "{arguments:?}: {error}");
    assert!(!error.contains("does not exist") && !error.contains("lost"), "{arguments:?}: {error}");
}

#[test]
fn a_flash_that_does_not_answer_is_not_lost() {
    for destage in ["ordered", "dense"] {
        let place = Place::new(destage);
        let (volume, home) = (place.volume(), std::fs::read(place.at("home")).unwrap());
        place.unanswered("flash", || {
            for command in ["stat", "check", "detach", "rescue", "attach"] {
                assert_may_pass(&[command, text(&volume)], &place.at("flash"));
            }
            let socket = format!("unix:{}", text(&place.at("socket")));
            assert_may_pass(&["serve", text(&volume), "--nbd", &socket], &place.at("flash"));
        });
        assert!(std::fs::read(place.at("home")).unwrap() == home, "{destage}");
        place.assert_nothing_is_lost();
    }
}

#[test]
fn a_journal_that_does_not_answer_is_not_lost() {
    for destage in ["ordered", "dense"] {
        let place = Place::new(destage);
        let (volume, home) = (place.volume(), std::fs::read(place.at("home")).unwrap());
        let journal = place.at("home.journal");
        place.unanswered("home.journal", || {
            assert_may_pass(&["unclaim", text(&place.at("home"))], &journal);
            for command in ["stat", "detach", "attach"] {
                assert_may_pass(&[command, text(&volume)], &journal);
            }
        });
        assert!(std::fs::read(place.at("home")).unwrap() == home, "{destage}");
        place.assert_nothing_is_lost();
    }
}

#[test]
fn a_detach_whose_answer_was_lost_is_repeated() {
    for destage in ["ordered", "dense"] {
        let place = Place::new(destage);
        place.assert_nothing_is_lost();
        let home = std::fs::read(place.at("home")).unwrap();
        for command in ["detach", "rescue"] {
            let told = good(&[command, text(&place.volume())]);
            assert!(told.contains("plain image already"), "{told}");
        }
        let error = refused(&["stat", text(&place.volume())]);
        assert!(error.contains("tantalum attach") && error.contains("plain image"), "{error}");
        assert!(std::fs::read(place.at("home")).unwrap() == home);
    }
}

#[test]
fn a_blank_flash_is_told_apart_from_one_that_is_not_needed() {
    let place = Place::new("ordered");
    let volume = place.volume();
    let flash = std::fs::File::create(place.at("flash")).unwrap();
    flash.set_len(64 << 20).unwrap();
    for command in ["stat", "detach"] {
        let error = refused(&[command, text(&volume)]);
        let names = error.contains(text(&place.at("flash"))) && error.contains("tantalum rescue");
        assert!(names, "{command}: {error}");
    }
    good(&["rescue", text(&volume)]);
    let told = good(&["rescue", text(&volume)]);
    assert!(told.contains("plain image already"), "{told}");
}
