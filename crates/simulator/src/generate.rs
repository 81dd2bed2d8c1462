//! Random lives from a seed.
use tantalum_base::{Error, ErrorKind, Limits, PageNo, PageRange, Result, Rng, Spec};
use tantalum_media::Fate;
use tantalum_media::block_store::{IoFaultKind, LostBlocks};
use tantalum_models::rig::IoFault;

use super::command::Command;
use super::life::{Cut, CutAt, End, How, Life, LostWrite, PowerOn, SLOT_BITS, Strike};
use super::passing::Passing;
use super::rig::Size;

/// Maximum number of decaying reads in a life that has any.
const DECAYS_MAX: u64 = 3;
/// They occur within this many reads of one slot each: in a recovery, in the check of all pages after it, or later.
const DECAY_WITHIN_READS: u64 = 150;

/// Maximum number of power-on periods of a device on a large medium, in addition to the one in which it is filled.
const LARGE_POWER_ONS: u32 = 4;
/// Maximum number of strikes, lost appends and failing operations in a life that has any.
const STRIKES_MAX: u64 = 3;
const LOST_MAX: u64 = 2;
const IO_FAULTS_MAX: u64 = 2;
const PASSING_MAX: u64 = 12;
/// Share of the lives with passing I/O errors that have a power-on period in which the errors occur during cleaning.
const BUSY_CHANCE: f64 = 0.3;
/// Places that are damaged: among this many of the newest, or among all that the lab's media have.
const NEW_PLACES: u64 = 24;
const ALL_PLACES: u64 = 640;

/// The distribution of random lives.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Maximum number of clients; each power-on period has from one to this many.
    pub clients: u32,
    /// Maximum number of commands of all clients in one power-on period.
    pub commands: u32,
    /// Maximum number of pages in a write or a transaction.
    pub pages: u32,
    /// Maximum number of pages in a read.
    pub reads: u32,
    /// Maximum number of power-on periods in one life.
    pub power_ons: u32,
    /// Share of lives in which programs of the medium fail.
    pub faults: f64,
    /// Maximum number of failing programs in such a life.
    pub failures: u32,
    /// Share of lives in which slots of the medium are damaged as they are read.
    pub decay: f64,
    /// Share of lives in which the medium is damaged while the power is off, at any place.
    pub damage: f64,
    /// Share of lives in which appends are reported as done but not written.
    pub lost: f64,
    /// Share of lives in which writes and syncs of a file fail.
    pub io_faults: f64,
    /// Share of lives in which I/O errors pass.
    pub passing: f64,
}

impl Workload {
    /// The syntax of `--workload`.
    pub const SYNTAX: &'static str = "mixed:clients=3,commands=24,pages=6,reads=6,power_ons=24,faults=0.1,failures=2,decay=0.1,\
         damage=0.05,lost=0.05,io-faults=0.1,passing=0.1";

    /// Reads [`SYNTAX`](Self::SYNTAX); `serial` is `mixed` with one client.
    ///
    /// # Errors
    /// `InvalidInput`, which lists what is accepted.
    pub fn parse(text: &str) -> Result<Workload> {
        let mut spec = Spec::parse(text)?;
        let clients = match spec.name() {
            "mixed" => spec.count("clients", 1..=4, 3)?,
            "serial" => 1,
            _ => return Err(spec.unknown_name("crash workload", &["mixed", "serial"])),
        };
        let workload = Workload {
            clients: clients as u32,
            commands: spec.count("commands", 1..=400, 24)? as u32,
            pages: spec.count("pages", 1..=64, 6)? as u32,
            reads: spec.count("reads", 1..=64, 6)? as u32,
            power_ons: spec.count("power_ons", 1..=1000, 24)? as u32,
            faults: spec.number("faults", 0.0..=1.0, 0.1)?,
            // More failures would use up the spare blocks of the lab's media.
            failures: spec.count("failures", 1..=2, 2)? as u32,
            decay: spec.number("decay", 0.0..=1.0, 0.1)?,
            damage: spec.number("damage", 0.0..=1.0, 0.05)?,
            lost: spec.number("lost", 0.0..=1.0, 0.05)?,
            io_faults: spec.number("io-faults", 0.0..=1.0, 0.1)?,
            passing: spec.number("passing", 0.0..=1.0, 0.1)?,
        };
        spec.finish()?;
        Ok(workload)
    }

    /// The text with every parameter.
    pub fn text(&self) -> String {
        let Workload {
            clients, commands, pages, reads, power_ons, faults, failures, decay, ..
        } = self;
        let Workload { damage, lost, io_faults, passing, .. } = self;
        format!(
            "mixed:clients={clients},commands={commands},pages={pages},reads={reads},\
             power_ons={power_ons},faults={faults},failures={failures},decay={decay},\
             damage={damage},lost={lost},io-faults={io_faults},passing={passing}"
        )
    }

    /// The life of `seed` on a device with these `limits`; it uses at most their number of pages.
    ///
    /// # Errors
    /// `InvalidInput` if the device has no page.
    pub fn life(&self, limits: &Limits, seed: u64) -> Result<Life> {
        if limits.pages == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "a device without pages"));
        }
        let mut rng = Rng::split(seed, "life");
        let shape = Shape::new(self, limits, &mut rng);
        let is_large = Size::of_pages(limits.pages) == Size::Large;
        let most = if is_large { LARGE_POWER_ONS } else { self.power_ons };
        let count = 1 + rng.below(u64::from(self.power_ons.min(most)));
        let fails = rng.chance(self.faults);
        let mut failures_left = if fails { 1 + rng.below(u64::from(self.failures)) } else { 0 };
        let mut power_ons: Vec<PowerOn> = (0..count)
            .map(|_| {
                let mut power_on = self.power_on(&shape, &mut rng);
                while failures_left > 0 && rng.chance(0.2) {
                    failures_left -= 1;
                    power_on.failing_programs.push(rng.below(40));
                }
                power_on
            })
            .collect();
        if is_large {
            power_ons.insert(0, filling(limits, &mut rng));
        }
        self.harm(seed, &mut power_ons);
        self.pass_errors(seed, limits.pages, &mut power_ons);
        Ok(Life { seed, pages: limits.pages, power_ons })
    }

    /// Adds damage, losses and failures. Each has a random sequence of its own, so that the rest of a life is the same
    /// without them.
    fn harm(&self, seed: u64, power_ons: &mut [PowerOn]) {
        let count = power_ons.len() as u64;
        let places = |label: &str, chance: f64, most: u64| {
            let mut rng = Rng::split(seed, label);
            let times = if rng.chance(chance) { 1 + rng.below(most) } else { 0 };
            let places: Vec<usize> = (0..times).map(|_| rng.below(count) as usize).collect();
            (rng, places)
        };
        let (mut rng, at) = places("decay", self.decay, DECAYS_MAX);
        at.into_iter()
            .for_each(|at| power_ons[at].decaying_reads.push(rng.below(DECAY_WITHIN_READS)));
        let (mut rng, at) = places("damage", self.damage, STRIKES_MAX);
        at.into_iter().for_each(|at| power_ons[at].strikes.push(strike(&mut rng)));
        let (mut rng, at) = places("lost", self.lost, LOST_MAX);
        for at in at {
            let part = if rng.chance(0.5) { LostBlocks::First } else { LostBlocks::All };
            let append = rng.below(u64::from(self.commands));
            power_ons[at].lost_writes.push(LostWrite { append, part });
        }
        let (mut rng, at) = places("io faults", self.io_faults, IO_FAULTS_MAX);
        for at in at {
            let kind = if rng.chance(0.7) { IoFaultKind::Io } else { IoFaultKind::NoSpace };
            let operation = rng.below(u64::from(self.commands) * 2);
            power_ons[at].io_faults.push(IoFault { operation, kind });
        }
    }

    /// Adds passing errors, also from a sequence of its own. In some of these lives they occur on a device that is
    /// cleaned all the time, because every page is written and many are overwritten.
    fn pass_errors(&self, seed: u64, pages: u64, power_ons: &mut Vec<PowerOn>) {
        let mut rng = Rng::split(seed, "passing errors");
        if !rng.chance(self.passing) {
            return;
        }
        for _ in 0..1 + rng.below(PASSING_MAX) {
            let at = rng.below(power_ons.len() as u64) as usize;
            let passing = Passing::random(&mut rng);
            let next = power_ons.get_mut(at + 1);
            next.into_iter().for_each(|next| next.passing.extend(passing.continued(&mut rng)));
            power_ons[at].passing.push(passing);
        }
        if Size::of_pages(pages) == Size::Small && rng.chance(BUSY_CHANCE) {
            let all = (0..pages).chain((0..2 * pages).map(|_| rng.below(pages)));
            let write = |page| Command::Write(PageRange::new(PageNo(page), 1));
            let clients = vec![all.map(write).collect()];
            let passing = (0..3).map(|_| Passing::random(&mut rng)).collect();
            let at = rng.below(power_ons.len() as u64 + 1) as usize;
            power_ons.insert(at, PowerOn { clients, passing, ..PowerOn::default() });
        }
    }

    /// Moves planned cuts and passing errors of a life from the medium to the parts beside it, from sequences of their
    /// own. Nothing moves if there is only NVRAM, which already has its share.
    pub(super) fn go_beside(life: &mut Life, beside: &[CutAt]) {
        let beside: Vec<CutAt> = beside.iter().copied().filter(|at| *at != CutAt::Nvram).collect();
        if beside.is_empty() {
            return;
        }
        let mut rng = Rng::split(life.seed, "errors beside the medium");
        let passing = life.power_ons.iter_mut().flat_map(|power_on| &mut power_on.passing);
        for passing in passing {
            if rng.chance(0.4) {
                passing.at = beside[rng.below(beside.len() as u64) as usize];
            }
        }
        let mut rng = Rng::split(life.seed, "cuts beside the medium");
        for power_on in &mut life.power_ons {
            let End::Cut(cut) = &mut power_on.end else { continue };
            cut.at = match rng.below(3) {
                0 => beside[rng.below(beside.len() as u64) as usize],
                _ => CutAt::Media,
            };
        }
    }

    /// The clients of one load with the maximum numbers of clients and commands.
    pub(super) fn load(&self, limits: &Limits, rng: &mut Rng) -> Vec<Vec<Command>> {
        let shape = Shape { len_max: u64::from(self.pages), ..Shape::new(self, limits, rng) };
        let each = self.commands.div_ceil(self.clients);
        let client = |_| (0..each).map(|_| shape.command(rng)).collect();
        (0..self.clients).map(client).collect()
    }

    fn power_on(&self, shape: &Shape, rng: &mut Rng) -> PowerOn {
        let clients = 1 + rng.below(u64::from(self.clients));
        let commands = 1 + rng.below(u64::from(self.commands));
        let clients: Vec<Vec<Command>> = (0..clients)
            .map(|_| (0..commands.div_ceil(clients)).map(|_| shape.command(rng)).collect())
            .collect();
        let end = match rng.below(20) {
            0 => End::Close,
            1 | 2 => End::Dark,
            kind => {
                // A third of them falls into the recovery, or right after it.
                let most = if kind < 9 { 10 } else { 4 + u64::from(self.commands) * 2 };
                let at =
                    if shape.nvram_cuts && rng.chance(0.5) { CutAt::Nvram } else { CutAt::Media };
                let after = rng.below(if at == CutAt::Nvram { most * 4 } else { most });
                End::Cut(Cut { at, after, fate: Fate::ALL[rng.below(3) as usize] })
            }
        };
        PowerOn { clients, end, ..PowerOn::default() }
    }
}

/// A power-on period in which every page is written, in an order that makes the map long.
fn filling(limits: &Limits, rng: &mut Rng) -> PowerOn {
    let mut pages: Vec<PageNo> = (0..limits.pages).map(PageNo).collect();
    rng.shuffle(&mut pages);
    let write = |page| Command::Write(PageRange::new(page, 1));
    PowerOn { clients: vec![pages.into_iter().map(write).collect()], ..PowerOn::default() }
}

/// A random place and kind of damage: mostly new slots, which no checkpoint covers yet.
fn strike(rng: &mut Rng) -> Strike {
    let places = if rng.chance(0.6) { NEW_PLACES } else { ALL_PLACES };
    let place = rng.below(places);
    let how = match rng.below(10) {
        // This includes the first bytes of a header.
        0 | 1 => How::Flip(rng.below(1024) as u32),
        2..=4 => How::Flip(rng.below(u64::from(SLOT_BITS)) as u32),
        5 | 6 => How::Spare,
        _ => How::Wipe,
    };
    Strike { place, how }
}

/// The distribution of commands.
struct Shape {
    pages: u64,
    hot_pages: u64,
    len_max: u64,
    read_max: u64,
    write_max: u64,
    transaction_max: u64,
    share_max: u64,
    nvram_cuts: bool,
}

impl Shape {
    fn new(workload: &Workload, limits: &Limits, rng: &mut Rng) -> Self {
        Shape {
            pages: limits.pages,
            len_max: 1 + rng.below(u64::from(workload.pages)),
            read_max: u64::from(workload.reads),
            write_max: u64::from(limits.atomic_write_pages_max).max(1),
            transaction_max: if limits.transactions_max == 0 {
                0
            } else {
                u64::from(limits.transaction_pages_max)
            },
            share_max: u64::from(limits.share_pairs_max),
            // With few pages commands often meet; many pages fill the device.
            hot_pages: if rng.chance(0.5) { limits.pages } else { (limits.pages / 4).max(1) },
            nvram_cuts: rng.chance(0.5),
        }
    }

    fn page(&self, rng: &mut Rng) -> PageNo {
        let within = if rng.chance(0.9) { self.hot_pages } else { self.pages };
        PageNo(rng.below(within))
    }

    /// A range of up to `most` pages.
    fn range(&self, rng: &mut Rng, most: u64) -> PageRange {
        let len = 1 + rng.below(most.min(self.pages));
        let first = self.page(rng).0.min(self.pages - len);
        PageRange::new(PageNo(first), len)
    }

    fn command(&self, rng: &mut Rng) -> Command {
        match rng.below(20) {
            0 => Command::Flush,
            1 => Command::Trim(self.range(rng, self.len_max)),
            2 | 3 => {
                let most = if rng.chance(0.3) { 1 } else { self.read_max };
                Command::Read(self.range(rng, most))
            }
            kind @ 4..=8 if self.transaction_max > 0 => {
                let most = self.len_max.min(self.transaction_max);
                let pages: Vec<PageNo> = (0..1 + rng.below(most)).map(|_| self.page(rng)).collect();
                if kind == 8 { Command::Abort(pages) } else { Command::Commit(pages) }
            }
            9..=11 if self.share_max > 0 && self.pages > 1 => self.share(rng),
            _ => {
                // Mostly single pages, as databases write them.
                let most = if rng.chance(0.6) { 1 } else { self.write_max.min(self.len_max) };
                Command::Write(self.range(rng, most))
            }
        }
    }

    /// Pairs in which no page is twice on the left, or on both sides.
    fn share(&self, rng: &mut Rng) -> Command {
        let mut pairs: Vec<(PageNo, PageNo)> = Vec::new();
        let count = 1 + rng.below(self.len_max.min(self.share_max));
        for _ in 0..4 * count {
            let (to, from) = (self.page(rng), self.page(rng));
            let is_free = |page| pairs.iter().all(|(left, right)| *left != page && *right != page);
            let is_left = pairs.iter().any(|(left, _)| *left == from);
            if to != from && is_free(to) && !is_left {
                pairs.push((to, from));
            }
            if pairs.len() as u64 == count {
                break;
            }
        }
        if pairs.is_empty() {
            return Command::Read(PageRange::new(PageNo(0), 1));
        }
        Command::Share(pairs)
    }
}
