//! Provokes each refusal.
use crate::support::volume::edit;
use crate::support::{good, tantalum, text};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use tantalum::Volume;
use tantalum_base::Refusal;
use tantalum_cache::refusals as cache;
use tantalum_media::block_store::refusals as media;
use tantalum_volume::refusals as volume;

/// The way in which a refusal is provoked.
pub enum Provoked {
    /// Runs the program and returns its message.
    Here(fn(&Place) -> String),
    /// The same, with a home of 32 MiB.
    OverHome(fn(&Place) -> String),
    /// The same, with the tiered volume `v` over that home.
    Attached(fn(&Place) -> String),
    /// By another test; with the reason why not here.
    By(&'static str, &'static str),
    /// Never; with the reason.
    Never(&'static str),
}

use Provoked::{Attached, By, Here, Never, OverHome};

const DEVICE: &str = "it takes a block device";

/// A folder for one refusal.
pub struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the program with paths in place of words that begin with `@`; returns its refusal.
    fn refused(&self, line: &str) -> String {
        let run = tantalum(&self.arguments(line).iter().map(String::as_str).collect::<Vec<_>>());
        assert_ne!(run.code, 0, "{line}: {}", run.out);
        run.err
    }

    fn good(&self, line: &str) {
        good(&self.arguments(line).iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn arguments(&self, line: &str) -> Vec<String> {
        let path = |word: &str| match word.strip_prefix('@') {
            Some(name) => text(&self.at(name)).to_owned(),
            None => word.to_owned(),
        };
        line.split_whitespace().map(path).collect()
    }

    /// A home of 32 MiB.
    fn home(&self, name: &str) {
        fs::File::create(self.at(name)).unwrap().set_len(32 << 20).unwrap();
    }

    /// Makes the tiered volume `v` over the home `home`, with additional words.
    fn attached(&self, more: &str) {
        self.home("home");
        self.good(&format!("attach @v.toml --home @home --flash @flash --flash-size 64MiB {more}"));
    }

    /// Makes a second one, `w`.
    fn other(&self) {
        self.home("w.home");
        self.good("attach @w.toml --home @w.home --flash @w.flash --flash-size 64MiB");
    }

    /// Makes the volume `f`, without a home.
    fn pipe(&self, name: &str) {
        assert!(Command::new("mkfifo").arg(self.at(name)).status().unwrap().success());
    }

    fn flash(&self) {
        self.good("create @f.toml --capacity 4MiB");
    }

    fn write(&self, name: &str, at: u64, bytes: &[u8]) {
        let file = fs::File::options().write(true).create(true).truncate(false).open(self.at(name));
        file.unwrap().write_all_at(bytes, at).unwrap();
    }

    fn cut(&self, name: &str, bytes: u64) {
        fs::File::options().write(true).open(self.at(name)).unwrap().set_len(bytes).unwrap();
    }

    fn put(&self, from: &str, to: &str) {
        fs::copy(self.at(from), self.at(to)).unwrap();
    }

    /// Attaches `home` with these words, which must be refused.
    fn refused_attach(&self, words: &str) -> String {
        self.refused(&format!("attach @v.toml --home @home --flash @flash {words}"))
    }

    fn refused_serve(&self, name: &str) -> String {
        self.refused(&format!("serve @{name}.toml --nbd unix:@socket"))
    }
}

impl Provoked {
    /// The message; `None` if the refusal is not provoked here.
    pub fn message(&self) -> Option<String> {
        let place = Place::new();
        match self {
            Here(provoke) => Some(provoke(&place)),
            OverHome(provoke) => {
                place.home("home");
                Some(provoke(&place))
            }
            Attached(provoke) => {
                place.attached("");
                Some(provoke(&place))
            }
            By(..) | Never(_) => None,
        }
    }
}

pub const PROVOKED: &[(Refusal, Provoked)] = &[
    (volume::NO_CONFIGURATION, Here(|place| place.refused_serve("v"))),
    (
        volume::CONFIGURATION_FOLDER,
        Here(|place| {
            fs::create_dir(place.at("v.toml")).unwrap();
            place.refused("detach @v.toml")
        }),
    ),
    (
        volume::CONFIGURATION_EMPTY,
        Here(|place| {
            fs::write(place.at("v.toml"), "").unwrap();
            place.refused("attach @v.toml")
        }),
    ),
    (
        volume::NOT_A_CONFIGURATION,
        Here(|place| {
            place.flash();
            place.refused("rescue @data.tantalum")
        }),
    ),
    (
        volume::JUST_MADE,
        By(
            "crates/tantalum/tests/creating.rs::of_several_callers_one_creates_it_and_none_takes_it_away",
            "it takes two programs at one moment",
        ),
    ),
    (
        volume::CREATION_UNFINISHED,
        Here(|place| {
            place.flash();
            fs::rename(place.at("data.tantalum"), place.at("data.tantalum.creating")).unwrap();
            place.refused_serve("f")
        }),
    ),
    (
        volume::CONFIGURATION_LINE,
        Here(|place| {
            place.flash();
            edit(&place.at("f.toml"), "[device]\n", "[device]\ncapaciti = \"1GiB\"\n");
            place.refused_serve("f")
        }),
    ),
    (
        volume::TOO_MUCH_MEMORY,
        Here(|place| {
            place.flash();
            let mut text = fs::read_to_string(place.at("f.toml")).unwrap();
            text.push_str("\n[buffer]\nsize = \"2TiB\"\n");
            fs::write(place.at("f.toml"), text).unwrap();
            // These do without a buffer.
            place.good("stat @f.toml");
            place.good("check @f.toml");
            place.refused_serve("f")
        }),
    ),
    (
        volume::NOT_TIERED,
        Here(|place| {
            place.flash();
            for command in ["attach", "rescue", "mode"] {
                let told = place.refused(&format!("{command} @f.toml"));
                assert!(told.contains(volume::NOT_TIERED.words()), "{told}");
            }
            place.refused("detach @f.toml")
        }),
    ),
    (volume::OPTIONS_MISSING, Here(|place| place.refused("attach @v.toml"))),
    (volume::OTHER_PLACE, Attached(|place| place.refused("attach @v.toml --home @elsewhere"))),
    (
        volume::OTHER_CLAIM,
        Attached(|place| place.refused("attach @v.toml --home @home --claim none")),
    ),
    (
        volume::IN_MEMORY,
        Attached(|place| {
            edit(&place.at("v.toml"), "type = \"file\"", "type = \"memory\"");
            place.refused("attach @v.toml")
        }),
    ),
    (volume::NO_HOME, Here(|place| place.refused_attach("--flash-size 64MiB"))),
    (
        volume::HOME_EMPTY,
        Here(|place| {
            fs::write(place.at("home"), "").unwrap();
            place.refused_attach("--flash-size 64MiB")
        }),
    ),
    (
        volume::HOME_SECTORS,
        Here(|place| {
            fs::write(place.at("home"), [0; 1000]).unwrap();
            place.refused_attach("--plan")
        }),
    ),
    (volume::FLASH_TOO_SMALL, OverHome(|place| place.refused_attach("--flash-size 1MiB"))),
    (volume::FLASH_ZONES, OverHome(|place| place.refused_attach("--flash-size 99999GiB"))),
    (
        volume::SAME_FILE,
        OverHome(|place| place.refused_attach("--flash-size 64MiB --journal @home")),
    ),
    (
        volume::NO_FOLDER,
        OverHome(|place| place.refused_attach("--flash-size 64MiB --journal @missing/journal")),
    ),
    (
        volume::AMONG_DEVICES,
        OverHome(|place| {
            let flash = "--flash /dev/no-such-device --flash-size 64MiB";
            place.refused(&format!("attach @v.toml --home @home {flash}"))
        }),
    ),
    (volume::NO_ROOM, OverHome(|place| place.refused_attach("--flash-size 7TiB"))),
    (
        volume::DEVICE_TOO_SMALL,
        By("crates/volume/src/space.rs::what_two_stores_take_of_one_file_system_is_added", DEVICE),
    ),
    (
        volume::HOME_OWNED,
        Attached(|place| {
            place.refused("attach @w.toml --home @home --flash @w.flash --flash-size 64MiB")
        }),
    ),
    (volume::OWNER_UNREAD, Never("it takes a device of which a read fails")),
    (
        volume::HOME_CLAIMED,
        Attached(|place| {
            fs::remove_file(place.at("home.journal")).unwrap();
            place.refused("attach @w.toml --home @home --flash @w.flash --flash-size 64MiB")
        }),
    ),
    (
        volume::MEMBER,
        OverHome(|place| {
            place.write("home", 512, b"LABELONE");
            place.refused_attach("--flash-size 64MiB")
        }),
    ),
    (
        volume::NO_ZERO_SECTOR,
        Here(|place| {
            fs::write(place.at("home"), vec![7; 4 << 20]).unwrap();
            place.refused_attach("--flash-size 64MiB --claim xor")
        }),
    ),
    (volume::ATTACHED, Attached(|place| place.refused("attach @v.toml"))),
    (
        volume::VOLUME_THERE,
        Here(|place| {
            place.other();
            place.home("home");
            place.refused("attach @v.toml --home @home --flash @w.flash --flash-size 64MiB")
        }),
    ),
    (
        volume::FILE_THERE,
        OverHome(|place| {
            fs::write(place.at("flash"), "letters of a lifetime").unwrap();
            place.refused_attach("--flash-size 64MiB")
        }),
    ),
    (volume::DEVICE_THERE, Never(DEVICE)),
    (volume::NOT_CLAIMED, Never("it takes a home that fails after it was looked at")),
    (
        media::FOLDER,
        Here(|place| {
            fs::create_dir(place.at("home")).unwrap();
            place.refused_attach("--flash-size 64MiB")
        }),
    ),
    (
        media::NO_STORE,
        Here(|place| {
            place.pipe("home");
            place.refused_attach("--flash-size 64MiB")
        }),
    ),
    (
        media::NOT_ALLOWED,
        By(
            "crates/media/src/block_store/opening/tests.rs::who_has_no_permission_is_told_what_to_do",
            "root has every permission",
        ),
    ),
    (
        media::OPEN_HERE,
        By(
            "crates/tantalum/tests/creating.rs::a_second_opening_in_one_process_is_told",
            "it takes a program that opens a volume twice",
        ),
    ),
    (
        media::READ_ONLY_DEVICE,
        By(
            "crates/media/src/block_store/opening/tests.rs::a_device_that_is_read_only_is_refused_before_anything_is_written",
            DEVICE,
        ),
    ),
    (
        media::MOUNTED,
        By("crates/cli/tests/devices.rs::a_device_that_is_mounted_is_no_store_of_a_volume", DEVICE),
    ),
    (
        media::SWAP,
        By(
            "crates/media/src/block_store/in_use/tests.rs::a_swap_file_and_a_mounted_image_are_told",
            DEVICE,
        ),
    ),
    (
        media::PART,
        By(
            "crates/media/src/block_store/in_use/tests.rs::a_device_that_another_one_is_made_of_names_that",
            DEVICE,
        ),
    ),
    (media::LOOP, Never(DEVICE)),
    (
        media::OPEN,
        Attached(|place| {
            let _open = Volume::open(place.at("v.toml")).unwrap();
            place.refused("rescue @v.toml --force")
        }),
    ),
    (media::IN_USE, Never("it takes a file system of another container")),
    (
        volume::FLASH_GONE,
        Attached(|place| {
            fs::remove_file(place.at("flash")).unwrap();
            place.refused_serve("v")
        }),
    ),
    (
        volume::FLASH_BLANK,
        Attached(|place| {
            place.write("flash", 0, &[0; 8192]);
            place.refused("detach @v.toml")
        }),
    ),
    (
        volume::TAKEN_OFF,
        Attached(|place| {
            place.good("detach @v.toml");
            place.refused_serve("v")
        }),
    ),
    (
        volume::JOURNAL_GONE,
        Attached(|place| {
            fs::remove_file(place.at("home.journal")).unwrap();
            place.refused("detach @v.toml")
        }),
    ),
    (
        volume::HOME_GONE,
        Attached(|place| {
            fs::remove_file(place.at("home")).unwrap();
            place.refused_serve("v")
        }),
    ),
    (
        volume::HOME_SHORTER,
        Attached(|place| {
            place.cut("home", 16 << 20);
            place.refused_serve("v")
        }),
    ),
    (
        volume::TOO_SHORT,
        Here(|place| {
            place.flash();
            place.cut("data.tantalum", 100);
            let told = place.refused_serve("f");
            assert!(told.contains("data.tantalum"), "{told}");
            told
        }),
    ),
    (
        volume::NO_VOLUME,
        Here(|place| {
            place.flash();
            let data = place.at("data.tantalum");
            fs::write(&data, vec![0; fs::metadata(&data).unwrap().len() as usize]).unwrap();
            let told = place.refused_serve("f");
            assert!(told.contains("data.tantalum") && told.contains("media.path"), "{told}");
            told
        }),
    ),
    (
        volume::OTHER_KIND,
        Attached(|place| {
            place.flash();
            place.put("data.tantalum", "flash");
            place.refused_serve("v")
        }),
    ),
    (
        volume::OTHER_CAPACITY,
        Here(|place| {
            place.flash();
            edit(&place.at("f.toml"), "capacity = \"4MiB\"", "capacity = \"9MiB\"");
            place.refused_serve("f")
        }),
    ),
    (
        volume::OTHER_ZONES,
        Here(|place| {
            place.flash();
            edit(&place.at("f.toml"), "# zone = \"8MiB\"", "zone = \"64KiB\"");
            place.refused_serve("f")
        }),
    ),
    (
        volume::CUT_SHORT,
        Attached(|place| {
            place.cut("flash", 2 << 20);
            place.refused_serve("v")
        }),
    ),
    (
        volume::OTHER_VERSION,
        Here(|place| {
            place.flash();
            [8, 4104].into_iter().for_each(|at| place.write("data.tantalum", at, &[9]));
            place.refused_serve("f")
        }),
    ),
    (
        volume::CONTRADICTION,
        Attached(|place| {
            place.other();
            let other = fs::read(place.at("w.flash")).unwrap();
            place.write("flash", 0, &other[..4096]);
            place.refused_serve("v")
        }),
    ),
    (
        volume::COMPARED,
        By(
            "crates/volume/tests/tiered/pairs.rs::a_home_that_another_program_wrote_to_is_refused",
            "a home that shows it by its claim or its journal is refused before",
        ),
    ),
    (
        cache::OTHERS_JOURNAL,
        Attached(|place| {
            place.other();
            place.put("w.home.journal", "home.journal");
            place.refused("detach @v.toml")
        }),
    ),
    (
        cache::NO_JOURNAL,
        Attached(|place| {
            place.write("home.journal", 0, &vec![7; 1 << 20]);
            place.refused("detach @v.toml")
        }),
    ),
    (
        volume::NO_ANSWER,
        By(
            "crates/cli/tests/hostile.rs::silent_connections_keep_nobody_out_and_a_stopped_server_is_told",
            "a server has to be stopped",
        ),
    ),
    (
        cache::JOURNAL_VERSION,
        By(
            "crates/cache/src/journal/head.rs::what_is_wrong_with_both_is_told",
            "its checksum has to be right",
        ),
    ),
    (
        cache::OTHERS_HOME,
        Attached(|place| {
            place.other();
            place.put("w.home", "home");
            place.refused_serve("v")
        }),
    ),
    (
        cache::WRITTEN_OVER,
        Attached(|place| {
            place.write("home", 0, &[0; 8192]);
            place.refused("detach @v.toml")
        }),
    ),
    (
        cache::CLAIM_MISSING,
        Attached(|place| {
            place.write("home", 0, &vec![0; 32 << 20]);
            place.refused_serve("v")
        }),
    ),
    (
        volume::UNPROVEN,
        Attached(|place| {
            place.write("home", 0, &vec![0; 32 << 20]);
            place.refused("check @v.toml --accept-loss")
        }),
    ),
    (
        volume::CLAIM_GONE,
        Attached(|place| {
            edit(&place.at("v.toml"), "# destage = \"ordered\"", "destage = \"dense\"");
            edit(&place.at("v.toml"), "# claim = \"xor\"", "claim = \"none\"");
            fs::remove_file(place.at("home.journal")).unwrap();
            place.write("home", 0, &vec![0; 32 << 20]);
            place.refused("detach @v.toml")
        }),
    ),
    (
        volume::NOT_SHOWN,
        By(
            "crates/cli/tests/another_disk.rs::a_home_that_cannot_show_its_claim_is_rescued_by_force_only",
            "it takes a home without a sector of zeros",
        ),
    ),
    (
        volume::CLAIM_UNKNOWN,
        By(
            "crates/volume/tests/tiered/unseen_claim.rs::ends_that_may_be_stored_either_way_are_not_read",
            "it takes a flash that is too small for the home",
        ),
    ),
    (
        volume::GIVEN_BACK,
        Attached(|place| {
            place.good("rescue @v.toml --force");
            place.write("home", 4096, &[7; 4096]);
            place.refused("check @v.toml --accept-loss")
        }),
    ),
    (
        cache::CHANGED,
        Here(|place| {
            place.attached("--claim none");
            drop(Volume::open(place.at("v.toml")).unwrap());
            place.write("home", 4096, &[7; 4096]);
            place.refused_serve("v")
        }),
    ),
    (volume::FLASH_THERE, Attached(|place| place.refused("rescue @v.toml"))),
    (volume::FLASH_UNREAD, Never("it takes a device of which a read fails")),
    (
        volume::DENSE,
        Attached(|place| {
            edit(&place.at("v.toml"), "# destage = \"ordered\"", "destage = \"dense\"");
            fs::remove_file(place.at("flash")).unwrap();
            place.refused("rescue @v.toml")
        }),
    ),
    (volume::PAGES_LOST, Never("it takes damage to a page that the home lacks")),
    (volume::JOURNAL_THERE, Attached(|place| place.refused("unclaim @home"))),
    (cache::NO_MODE, Attached(|place| place.refused("mode @v.toml sideways"))),
    (volume::NOT_SERVED, Attached(|place| place.refused("mode @v.toml off"))),
];
