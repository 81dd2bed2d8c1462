//! `attach --plan` reports the space that `attach` would take, and leaves nothing behind; `attach` takes nothing unless
//! all of it fits.
mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{good, on_small_disk, refused, tantalum, text};

const HOME_BYTES: usize = 64 << 20;

/// A folder for volume, home and flash.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::write(place.at("home"), image()).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        names(self.0.path())
    }

    /// The arguments of an `attach` of a new volume.
    fn attach(&self, more: &[&str]) -> Vec<String> {
        let tiers = ["volume/VOLUME.toml", "home", "flash"].map(|name| self.at(name));
        let [volume, home, flash] = tiers.each_ref().map(|path| text(path));
        let args = [&["attach", volume, "--home", home, "--flash", flash], more].concat();
        args.into_iter().map(str::to_owned).collect()
    }
}

fn image() -> Vec<u8> {
    let mut image = vec![7; HOME_BYTES];
    image[..4096].fill(0);
    image
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn run(args: &[String]) -> support::Run {
    tantalum(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The value of a row of the plan.
fn value(plan: &str, what: &str) -> String {
    let row = plan.lines().find(|line| line.starts_with(what)).expect(plan);
    row.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" ")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a plan is measured in real time, which is bounded")]
fn a_plan_leaves_nothing_and_tells_what_attach_takes() {
    let place = Place::new();
    let begun = Instant::now();
    let plan = run(&place.attach(&["--flash-size", "100MiB", "--plan"]));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(plan.code, 0, "{}", plan.err);
    assert_eq!(place.names(), ["home"]);
    assert!(std::fs::read(place.at("home")).unwrap() == image());
    for said in ["destage", "ordered", "dirty_max", "75%", "stream_max", "nothing was made", "fits"]
    {
        assert!(plan.out.contains(said), "{said}: {}", plan.out);
    }
    for measured in ["home speed", "flash speed", "flash/home"] {
        assert!(plan.out.contains(measured), "{measured}: {}", plan.out);
    }
    let attached = run(&place.attach(&["--flash-size", "100MiB"]));
    assert_eq!(attached.code, 0, "{}", attached.err);
    for (what, name) in [("flash", "flash"), ("journal", "home.journal")] {
        let (bytes, path) = (value(&plan.out, what), place.at(name));
        let taken = format!("{}: takes {bytes} of ", path.display());
        let allocated = format!("{}: {bytes} allocated", path.display());
        let at = |said: &str| attached.out.find(said).expect(&attached.out);
        assert!(at(&taken) < at(": a volume of ") && at(&taken) < at(&allocated));
        assert!(plan.out.contains(text(&path)), "{}", plan.out);
    }
}

#[test]
fn a_size_is_proposed_where_none_is_given() {
    let place = Place::new();
    // A tenth of this home is more than the smallest flash.
    std::fs::File::options()
        .write(true)
        .open(place.at("home"))
        .unwrap()
        .set_len(2000 << 20)
        .unwrap();
    let plan = run(&place.attach(&["--plan"]));
    assert_eq!(plan.code, 0, "{}{}", plan.out, plan.err);
    assert!(
        plan.out.contains("a tenth of the home; accept it with --flash-size 200MiB"),
        "{}",
        plan.out
    );
    assert!(plan.out.contains("% of it are holes"), "{}", plan.out);
    assert_eq!(place.names(), ["home"]);
    // Without --plan, the size is required.
    assert!(run(&place.attach(&[])).err.contains("--flash-size"));
    assert_eq!(place.names(), ["home"]);
}

#[test]
fn what_attach_refuses_a_plan_refuses_with_the_same_words() {
    let place = Place::new();
    let (volume, home) = (place.at("VOLUME.toml"), place.at("home"));
    let (flash, nowhere) = (place.at("flash"), place.at("nowhere/journal"));
    let journal = "/dev/tantalum-no-such-device.journal";
    let memory = ["--flash-size", "100MiB", "--journal", journal];
    let same = ["--flash-size", "100MiB", "--journal", text(&home)];
    let no_folder = ["--flash-size", "100MiB", "--journal", text(&nowhere)];
    for more in [memory, same, no_folder] {
        let cache = ["attach", text(&volume), "--home", text(&home), "--flash", text(&flash)];
        let args = [&cache[..], &more].concat();
        let error = refused(&args);
        assert_eq!(refused(&[&args[..], &["--plan"]].concat()), error);
    }
    assert!(!Path::new(journal).exists());
    assert_eq!(place.names(), ["home"]);
    let missing = refused(&["attach", text(&volume), "--plan"]);
    assert!(missing.contains("--home"), "{missing}");
}

#[test]
fn of_a_configuration_that_is_there_a_plan_tells_what_it_says() {
    let place = Place::new();
    good(&place.attach(&["--flash-size", "100MiB"]).iter().map(String::as_str).collect::<Vec<_>>());
    let volume = place.at("volume/VOLUME.toml");
    good(&["detach", text(&volume)]);
    let config = std::fs::read_to_string(&volume).unwrap();
    let dense = config.replace("# destage = \"ordered\"", "destage = \"dense\"");
    let dense = dense.replace("# stream_max = \"4MiB\"", "stream_max = \"2MiB\"");
    std::fs::write(&volume, dense).unwrap();
    let names = place.names();
    let plan = good(&["attach", text(&volume), "--plan"]);
    for said in ["dense", "2MiB", "as it is written"] {
        assert!(plan.contains(said), "{plan}");
    }
    assert_eq!(place.names(), names);
}

#[test]
fn without_room_nothing_is_allocated() {
    let place = Place::new();
    on_small_disk("90m", |small| {
        let journal = small.join("journal");
        let more = ["--flash-size", "200MiB", "--journal", text(&journal)];
        let attached = run(&place.attach(&more));
        assert_eq!(attached.code, 2, "{}{}", attached.out, attached.err);
        assert_eq!(attached.out, "");
        for said in [text(small), "90.0 MiB free", "the journal", text(&journal)] {
            assert!(attached.err.contains(said), "{said}: {}", attached.err);
        }
        let plan = run(&place.attach(&[&more[..], &["--plan"]].concat()));
        assert_eq!(plan.code, 1, "{}{}", plan.out, plan.err);
        for said in ["DOES NOT FIT", "90.0 MiB free", "in memory"] {
            assert!(plan.out.contains(said), "{said}: {}", plan.out);
        }
        assert!(plan.err.contains("in memory"), "{}", plan.err);
        assert_eq!((place.names(), names(small)), (vec!["home".to_owned()], vec![]));
        assert!(std::fs::read(place.at("home")).unwrap() == image());
        // A size that fits is proposed.
        let plan = run(&place.attach(&["--journal", text(&journal), "--plan"]));
        assert_eq!(plan.code, 0, "{}{}", plan.out, plan.err);
    });
}
