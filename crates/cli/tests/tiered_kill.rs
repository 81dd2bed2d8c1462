//! SIGKILL of `tantalum serve` over a tiered volume in the middle of a load, repeatedly: nothing acknowledged is lost,
//! and a home without its flash has the volume's content at one moment.
mod support;

use std::collections::BTreeSet;
use support::good;
use support::kill_history::History;
use support::kill_load::{Change, GROUP_PAGES, Load, Pulse, numbers, write_and_kill};
use support::nbd::Client;
use support::server::{Server, run};
use support::tiered::{HOME_PAGES, TieredVolume};
use tantalum_base::Rng;
use tantalum_testing::installed;

const LOAD: Load = Load { pages: HOME_PAGES, connections: 3, in_flight: 12 };

/// Number of unwritten groups that are checked besides the written ones.
const OTHER_GROUPS: u64 = 300;

fn cycles(few: u64, nightly: u64) -> u64 {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { nightly } else { few }
}

/// Activity of the killed servers, which shows that something could have gone wrong.
#[derive(Debug, Default)]
struct Seen {
    rounds: f64,
    pages_home: f64,
    zones_cleaned: f64,
    /// Pages read from home: they were evicted, or never cached.
    missed: f64,
    rescued: u64,
    rescued_older: u64,
}

impl Seen {
    fn served(&mut self, volume: &TieredVolume) {
        let told = volume.told();
        self.rounds += told.get("tantalum_destage_rounds_total");
        self.pages_home += told.get("tantalum_home_written_pages_total");
        self.zones_cleaned += told.get("tantalum_ftl_cleaned_zones_total");
        self.missed += told.get("tantalum_cache_missed_pages_total");
    }
}

/// Compares the content of a server with the acknowledged changes: all groups that `done` changed, and some others.
fn compare(
    server: &Server,
    history: &mut History,
    done: Vec<Vec<Change>>,
    now: u64,
    rng: &mut Rng,
) {
    let mut client = Client::connect(&server.socket).unwrap();
    let written = done.iter().flatten().map(|change| change.first / GROUP_PAGES);
    let others = (0..OTHER_GROUPS).map(|_| rng.below(HOME_PAGES / GROUP_PAGES));
    let groups: BTreeSet<u64> = written.chain(others).collect();
    let mut found = vec![None; HOME_PAGES as usize];
    for group in groups {
        let first = group * GROUP_PAGES;
        let read = numbers(&mut client, first, GROUP_PAGES);
        (first..).zip(read).for_each(|(page, number)| found[page as usize] = Some(number));
    }
    for changes in done {
        let found = |page: u64| found[page as usize].expect("all that was written was read");
        history.settle(changes, now, found);
    }
    let wrong = (0..HOME_PAGES as usize)
        .filter_map(|page| Some((page, found[page]?)))
        .filter(|(page, found)| *found != history.expected()[*page]);
    let wrong: Vec<_> = wrong.collect();
    let first = wrong.first();
    assert!(first.is_none(), "{} pages, such as {first:x?}: not as acknowledged", wrong.len());
}

fn kill_again_and_again(destage: &str, cycles: u64) {
    let volume = TieredVolume::new(destage);
    let mut history = History::new(HOME_PAGES);
    let (mut seen, mut now) = (Seen::default(), 0);
    for seed in 1..=cycles {
        let mut rng = Rng::new(seed);
        // Some kills come right after the opening, which must write an epoch of the killed server to its place.
        let target = if rng.chance(0.25) { 1 + rng.below(50) } else { 1 + rng.below(6000) };
        println!("seed {seed}: killed after {target} acknowledgements");
        let pulse = Pulse::from(now);
        let server = volume.serve();
        let socket = server.socket.clone();
        let done = write_and_kill(LOAD, &socket, seed, &pulse, || {
            pulse.wait_for(target);
            seen.served(&volume);
            server.kill();
        });
        // The pages of an epoch are durable in the flash before they are destaged, so the server recovers them, too.
        let without_flash = (destage == "ordered" && seed % 3 == 1).then(|| volume.rescued());
        let server = volume.serve();
        compare(&server, &mut history, done, pulse.tick(), &mut rng);
        now = pulse.tick();
        seen.served(&volume);
        if seed % 4 == 0 {
            drop(server.terminate())
        } else {
            server.kill()
        }
        if let Some((found, said)) = without_flash {
            let moment = history.moment(&found).unwrap_or_else(|wrong| panic!("{said}{wrong}"));
            println!("  {}, {moment:?}", said.trim());
            seen.rescued += 1;
            seen.rescued_older += u64::from(moment.missing > 0 && moment.seen > 0);
        }
    }
    println!("{destage}, {cycles} cycles: {seen:?}");
    assert!(volume.detached() == history.expected(), "the home is what was acknowledged");
    let epochs = seen.rounds > cycles as f64 && seen.pages_home > 1000.0;
    assert!(epochs && seen.zones_cleaned > 0.0 && seen.missed > 0.0, "{seen:?}");
    assert!(destage != "ordered" || seen.rescued_older > 0, "{seen:?}");
}

#[test]
fn ordered_a_killed_server_loses_nothing_and_home_is_a_moment_of_the_past() {
    kill_again_and_again("ordered", cycles(5, 120));
}

#[test]
fn dense_a_killed_server_loses_nothing() {
    kill_again_and_again("dense", cycles(4, 90));
}

/// MiB that one run of fio writes.
const SECTION_MIB: u64 = 16;

/// The arguments of fio to write a section of the volume, or to verify one.
fn fio(server: &Server, section: usize, seed: u64, what: &str) -> Vec<String> {
    let offset = section as u64 * SECTION_MIB;
    let uri = format!("--uri={}", server.uri());
    let place = [format!("--offset={offset}m"), format!("--size={SECTION_MIB}m")];
    let seed = format!("--randseed={seed}");
    let job = ["--name=load", "--ioengine=nbd", "--iodepth=16", "--rw=randwrite", "--bs=4k"];
    let verify = ["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", what];
    let fixed = job.iter().chain(&verify).map(|argument| argument.to_string());
    fixed.chain([uri, seed]).chain(place).collect()
}

fn verify(server: &Server, section: usize, seed: u64) {
    let arguments = fio(server, section, seed, "--verify_only");
    run("fio", &arguments.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Writes whole sections, one after another, until the server is gone. The section in progress becomes `None`, as the
/// acknowledged part of it is unknown.
fn write_sections(server: &Server, sections: &mut [Option<u64>], rng: &mut Rng) -> Vec<usize> {
    let mut written = Vec::new();
    loop {
        let section = rng.below(sections.len() as u64) as usize;
        let seed = 1 + rng.below(1 << 30);
        sections[section] = None;
        let arguments = fio(server, section, seed, "--do_verify=0");
        let fio = std::process::Command::new("fio").args(&arguments).output().unwrap();
        if !fio.status.success() {
            return written;
        }
        sections[section] = Some(seed);
        written.push(section);
    }
}

fn kill_under_fio(destage: &str, cycles: u64) {
    if !installed(&["fio"]) {
        return;
    }
    let volume = TieredVolume::new(destage);
    let mut sections = vec![None; (HOME_PAGES / 256 / SECTION_MIB) as usize];
    let mut verified = 0;
    for seed in 1..=cycles {
        let mut rng = Rng::split(seed, "fio");
        let target = 4096 + rng.below(16384);
        let server = volume.serve();
        let pid = rustix::process::Pid::from_raw(server.pid() as i32).unwrap();
        let mut pages = 0.0;
        let written = std::thread::scope(|scope| {
            let load = scope.spawn(|| write_sections(&server, &mut sections, &mut rng));
            // A server that makes no more progress is killed too, and detected below.
            for _ in 0..10_000 {
                #[expect(clippy::disallowed_methods, reason = "waits for another process")]
                std::thread::sleep(std::time::Duration::from_millis(2));
                pages = volume.told().get("tantalum_device_written_pages_total");
                if pages >= target as f64 {
                    break;
                }
            }
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            load.join().unwrap()
        });
        drop(server);
        assert!(pages >= target as f64, "seed {seed}: it stood still after {pages} pages");
        println!("seed {seed}: killed after {pages} pages, {} sections whole", written.len());
        let server = volume.serve();
        let whole: Vec<usize> = (0..sections.len()).filter(|at| sections[*at].is_some()).collect();
        let other = whole[rng.below(whole.len() as u64) as usize];
        for section in written.into_iter().chain([other]).collect::<BTreeSet<_>>() {
            if let Some(seed) = sections[section] {
                verify(&server, section, seed);
                verified += 1;
            }
        }
        server.kill();
    }
    let server = volume.serve();
    for (section, seed) in sections.iter().enumerate() {
        if let Some(seed) = seed {
            verify(&server, section, *seed);
            verified += 1;
        }
    }
    server.terminate();
    good(&["check", volume.config().to_str().unwrap()]);
    assert!(verified > cycles, "{verified} sections");
    println!("{destage}, {cycles} cycles: {verified} sections verified");
}

#[test]
fn ordered_fio_verifies_what_it_wrote_before_kills() {
    kill_under_fio("ordered", cycles(2, 30));
}

#[test]
fn dense_fio_verifies_what_it_wrote_before_kills() {
    kill_under_fio("dense", cycles(2, 30));
}
