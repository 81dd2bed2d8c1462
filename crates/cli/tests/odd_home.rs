//! A home of whole sectors, but not of whole pages: all of it is served, nothing after its end is written, and it is
//! given back complete.
mod support;

use std::path::{Path, PathBuf};
use std::process::Command as Program;
use support::nbd::{Client, Command};
use support::server::Server;
use support::{good, refused, stat_row, text};
use tantalum::Volume;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageNo, Rng};
use tantalum_testing::can_loop;

/// 2,560 pages and a sector.
const HOME_BYTES: usize = 10_486_272;
const ENOSPC: u32 = 28;
const SECTOR_BYTES: usize = 512;

/// A home of random bytes with some sectors of zeros, and its expected content.
struct Place {
    folder: tempfile::TempDir,
    home: PathBuf,
    /// The expected content: that of the last writes.
    wanted: Vec<u8>,
    rng: Rng,
}

impl Place {
    fn new(seed: u64, bytes: usize) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let (home, mut rng, mut wanted) =
            (folder.path().join("home"), Rng::new(seed), vec![0; bytes]);
        rng.fill(&mut wanted);
        wanted[4096..8192].fill(0);
        std::fs::write(&home, &wanted).unwrap();
        Place { folder, home, wanted, rng }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.at("VOLUME.toml")
    }

    /// Attaches a small cache that destages pages soon, with the text `home` added to its configuration.
    fn attach(&self, more: &[&str], home: &str) {
        let (config, flash) = (self.config(), self.at("flash"));
        let cache = ["--home", text(&self.home), "--flash", text(&flash), "--flash-size", "64MiB"];
        let told = good(&[&["attach", text(&config)], &cache[..], more].concat());
        assert!(told.contains("a volume of") && !told.contains("whole pages"), "{told}");
        let said = std::fs::read_to_string(&config).unwrap();
        let said = said.replace("# destage_after_ms = 5000", "destage_after_ms = 20");
        std::fs::write(&config, said.replace("[home]\n", &format!("[home]\n{home}\n"))).unwrap();
    }

    /// Makes some changes, each of whole sectors, and many of them in the last page.
    fn change(&mut self, client: &mut Client) {
        let end = self.wanted.len() / SECTOR_BYTES;
        for step in 0..120 {
            let reach = if step % 3 == 0 { end } else { 40 };
            let first = end - 1 - self.rng.below(reach as u64) as usize;
            let sectors = match self.rng.below(3) {
                0 => end - first,
                _ => 1 + self.rng.below((end - first) as u64) as usize,
            };
            let range = first * SECTOR_BYTES..(first + sectors.min(600)) * SECTOR_BYTES;
            let (offset, length) = (range.start as u64, range.len() as u32);
            match self.rng.below(8) {
                0 => {
                    let zeroed = client.change(Command::WriteZeroes, offset, length, &[]);
                    assert_eq!(zeroed, 0);
                    self.wanted[range].fill(0);
                }
                1 => {
                    assert_eq!(client.change(Command::Trim, offset, length, &[]), 0);
                    // A trim discards whole pages, and the last one up to its end.
                    let ends_with_home = range.end == self.wanted.len();
                    let start = range.start.next_multiple_of(PAGE_BYTES);
                    let end = range.end / PAGE_BYTES * PAGE_BYTES;
                    let end = if ends_with_home { range.end } else { end };
                    if start < end {
                        self.wanted[start..end].fill(0);
                    }
                }
                _ => {
                    self.rng.fill(&mut self.wanted[range.clone()]);
                    let content = &self.wanted[range];
                    assert_eq!(client.change(Command::Write, offset, length, content), 0);
                }
            }
        }
    }

    fn compare(&self, client: &mut Client) {
        assert_eq!(client.export_bytes, self.wanted.len() as u64);
        for at in (0..self.wanted.len()).step_by(1 << 20) {
            let wanted = &self.wanted[at..self.wanted.len().min(at + (1 << 20))];
            assert!(client.read_bytes(at as u64, wanted.len()) == wanted, "from byte {at} on");
        }
    }

    /// The home is a plain image again, with the last written content and its original length.
    fn is_plain(&self) {
        let found = std::fs::read(&self.home).unwrap();
        assert_eq!(found.len(), self.wanted.len());
        let differs = (0..found.len()).find(|at| found[*at] != self.wanted[*at]);
        assert_eq!(differs, None, "the first byte that differs");
    }
}

#[test]
fn what_was_acknowledged_survives_kills_and_goes_home_to_the_last_sector() {
    let homes = [HOME_BYTES, HOME_BYTES + 3072, (1 << 20) + 512];
    for (seed, (bytes, claim, destage)) in (1..).zip([
        (homes[0], "xor", "ordered"),
        (homes[1], "none", "ordered"),
        (homes[0], "none", "dense"),
        (homes[1], "xor", "dense"),
        // All of it is claimed.
        (homes[2], "xor", "ordered"),
    ]) {
        println!("{bytes} bytes, claim {claim}, {destage}");
        let mut place = Place::new(seed, bytes);
        place.attach(&["--claim", claim], &format!("destage = \"{destage}\""));
        let config = place.config();
        for round in 0..3 {
            let server = Server::start(&config);
            let mut client = Client::connect(&server.socket).unwrap();
            place.compare(&mut client);
            place.change(&mut client);
            let end = bytes as u64;
            let sector = [1; SECTOR_BYTES];
            assert_eq!(client.change(Command::Write, end, 512, &sector), ENOSPC, "past the end");
            client.flush();
            place.compare(&mut client);
            // Some rounds destage before the kill, some do not.
            #[expect(
                clippy::disallowed_methods,
                reason = "a process is to be killed at some time"
            )]
            std::thread::sleep(std::time::Duration::from_millis(round * 150));
            server.kill();
        }
        assert_eq!(std::fs::metadata(&place.home).unwrap().len(), bytes as u64);
        assert!(good(&["check", text(&config)]).contains("sound"));
        assert_eq!(stat_row(&config)["capacity_bytes"].as_u64(), Some(bytes as u64));
        good(&["detach", text(&config)]);
        place.is_plain();
    }
}

#[test]
fn without_the_flash_the_last_sectors_come_from_the_journal_too() {
    for claim in ["xor", "none"] {
        let mut place = Place::new(9, HOME_BYTES);
        place.attach(&["--claim", claim], "mode = \"write-through\"");
        let config = place.config();
        for _ in 0..2 {
            let server = Server::start(&config);
            let mut client = Client::connect(&server.socket).unwrap();
            place.change(&mut client);
            // In this mode, the home or its journal has all acknowledged data.
            server.kill();
        }
        std::fs::remove_file(place.at("flash")).unwrap();
        good(&["rescue", text(&config)]);
        place.is_plain();
    }
}

#[test]
fn the_claim_reaches_the_true_end_and_is_taken_off_from_the_home_alone() {
    let place = Place::new(5, HOME_BYTES);
    place.attach(&[], "");
    let claimed = std::fs::read(&place.home).unwrap();
    let mut text_of_claim = [0; SECTOR_BYTES];
    text_of_claim.copy_from_slice(&claimed[4096..4096 + SECTOR_BYTES]);
    assert!(text_of_claim.starts_with(b"Tantalum claim 1\n"));
    let clear = |at: usize| {
        let sector = &claimed[at..at + SECTOR_BYTES];
        sector.iter().zip(text_of_claim).map(|(byte, claim)| byte ^ claim).collect::<Vec<_>>()
    };
    let last = HOME_BYTES - SECTOR_BYTES;
    for at in [0, 8192, (1 << 20) - SECTOR_BYTES, last - (1 << 19), last] {
        assert!(clear(at) == place.wanted[at..at + SECTOR_BYTES], "the sector at byte {at}");
    }
    assert!(good(&["stat", text(&place.home)]).contains("home.journal"));
    // A copy that has grown at its end is unclaimed in the claimed places.
    let copy = place.at("copy");
    std::fs::write(&copy, [&claimed[..], &[3; 7 * SECTOR_BYTES]].concat()).unwrap();
    good(&["unclaim", text(&copy)]);
    let copy = std::fs::read(copy).unwrap();
    assert!(copy[..HOME_BYTES] == place.wanted && copy[HOME_BYTES..] == [3; 7 * SECTOR_BYTES]);
    for gone in ["flash", "home.journal", "VOLUME.toml"] {
        std::fs::remove_file(place.at(gone)).unwrap();
    }
    good(&["unclaim", text(&place.home)]);
    place.is_plain();
}

#[test]
fn a_home_may_grow_between_two_caches_and_not_shrink_under_one() {
    let mut place = Place::new(6, HOME_BYTES);
    place.attach(&[], "");
    let config = place.config();
    // The home grows under its cache: the volume keeps its size, and the bytes after its end stay as they are.
    let file = std::fs::OpenOptions::new().write(true).open(&place.home).unwrap();
    file.set_len(HOME_BYTES as u64 + 5120).unwrap();
    let server = Server::start(&config);
    place.change(&mut Client::connect(&server.socket).unwrap());
    server.kill();
    good(&["detach", text(&config)]);
    place.wanted.extend([0; 5120]);
    place.is_plain();
    good(&["attach", text(&config), "--force"]);
    file.set_len(HOME_BYTES as u64 - 512).unwrap();
    let error = refused(&["detach", text(&config)]);
    assert!(error.contains("home.size") && error.contains("put its own home back"), "{error}");
    file.set_len(HOME_BYTES as u64 + 5120).unwrap();
    // A new cache over the home as it is now replaces the previous one.
    std::fs::write(&place.home, &place.wanted).unwrap();
    std::fs::remove_file(&config).unwrap();
    place.attach(&["--force"], "");
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    place.change(&mut client);
    place.compare(&mut client);
    server.kill();
    good(&["detach", text(&config)]);
    place.is_plain();
}

#[test]
fn who_sees_whole_pages_may_write_zeros_alone_behind_the_end() {
    let mut place = Place::new(7, HOME_BYTES);
    place.attach(&[], "");
    let last = PageNo(2560);
    {
        let client = Volume::open(place.config()).unwrap();
        let mut content = client.read(last, 1).unwrap()[0].to_vec();
        assert!(content[SECTOR_BYTES..].iter().all(|byte| *byte == 0));
        content[SECTOR_BYTES] = 1;
        let error = client.write(last, vec![PageBuf::copy_from(&content)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
        assert!(error.to_string().contains("512 bytes into it"), "{error}");
        content[SECTOR_BYTES] = 0;
        content[0] ^= 1;
        client.write(last, vec![PageBuf::copy_from(&content)]).unwrap();
    }
    place.wanted[HOME_BYTES - SECTOR_BYTES] ^= 1;
    good(&["detach", text(&place.config())]);
    place.is_plain();
}

#[test]
fn a_home_of_no_whole_sectors_is_refused_with_what_to_do() {
    let place = Place::new(8, HOME_BYTES + 100);
    let (config, flash) = (place.config(), place.at("flash"));
    let cache = ["--home", text(&place.home), "--flash", text(&flash), "--flash-size", "64MiB"];
    let error = refused(&[&["attach", text(&config)], &cache[..]].concat());
    for part in [text(&place.home), "10486372 bytes", "truncate -s 10486784", "or 10486272"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!config.exists());
    place.is_plain();
}

/// A partition: direct I/O can access its last sector.
#[test]
fn a_block_device_may_end_within_a_page() {
    if !can_loop() {
        return;
    }
    let mut place = Place::new(10, HOME_BYTES);
    let image = place.home.clone();
    let made = Program::new("losetup").args(["-f", "--show", text(&image)]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let device = String::from_utf8(made.stdout).unwrap().trim_end().to_owned();
    place.home = PathBuf::from(&device);
    let journal = place.at("journal");
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        place.attach(&["--journal", text(&journal)], "");
        for _ in 0..2 {
            let server = Server::start(&place.config());
            let mut client = Client::connect(&server.socket).unwrap();
            place.change(&mut client);
            place.compare(&mut client);
            server.kill();
        }
        good(&["detach", text(&place.config())]);
        compare_device(&place, Path::new(&device));
    }));
    assert!(Program::new("losetup").args(["-d", &device]).status().unwrap().success());
    ran.unwrap();
    place.home = image;
    place.is_plain();
}

fn compare_device(place: &Place, device: &Path) {
    assert!(std::fs::read(device).unwrap() == place.wanted);
}
