//! Makes a life that breaks a promise smaller, as long as it still breaks one.
use tantalum_media::Fate;

use super::command::Command;
use super::life::{Cut, End, How, Life, Strike};
use tantalum_base::{PageNo, PageRange};

/// The result of shrinking a life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The smaller life.
    pub life: Life,
    /// Number of lives that were tried.
    pub tried: u32,
}

/// Shrinks `life`, which breaks a promise according to `breaks`, by trying at most `tries_max`
/// smaller lives. It drops, in this order: power-on periods, clients, commands, pages of commands,
/// failures, damage, cuts. A cut moves to the front, and to the simplest fate.
pub fn shrink(life: &Life, tries_max: u32, breaks: impl Fn(&Life) -> bool) -> Shrunk {
    let mut shrinker = Shrinker { life: life.clone(), tried: 0, tries_max, breaks };
    loop {
        let before = shrinker.life.clone();
        shrinker.drop_power_ons();
        shrinker.drop_clients();
        shrinker.drop_commands();
        shrinker.simplify_commands();
        shrinker.simplify_ends();
        if shrinker.life == before || shrinker.tried >= tries_max {
            return Shrunk { life: shrinker.life, tried: shrinker.tried };
        }
    }
}

struct Shrinker<F> {
    life: Life,
    tried: u32,
    tries_max: u32,
    breaks: F,
}

impl<F: Fn(&Life) -> bool> Shrinker<F> {
    /// Keeps the result of `change` if it is a different life that breaks a promise, too.
    fn attempt(&mut self, change: impl FnOnce(&mut Life)) -> bool {
        let mut smaller = self.life.clone();
        change(&mut smaller);
        for power_on in &mut smaller.power_ons {
            power_on.clients.retain(|client| !client.is_empty());
        }
        if smaller == self.life || self.tried >= self.tries_max {
            return false;
        }
        self.tried += 1;
        let breaks = (self.breaks)(&smaller);
        if breaks {
            self.life = smaller;
        }
        breaks
    }

    /// Drops ranges of `len()` items, long ones first.
    fn drop_stretches(
        &mut self,
        len: impl Fn(&Life) -> usize,
        drop: impl Fn(&mut Life, std::ops::Range<usize>),
    ) {
        let mut stretch = len(&self.life);
        while stretch > 0 {
            // From the end: later items usually matter less.
            let mut end = len(&self.life);
            while end > 0 {
                let start = end.saturating_sub(stretch);
                self.attempt(|life| drop(life, start..end));
                end = start;
            }
            stretch /= 2;
        }
    }

    fn drop_power_ons(&mut self) {
        self.drop_stretches(
            |life| life.power_ons.len(),
            |life, range| drop(life.power_ons.drain(range)),
        );
    }

    fn drop_clients(&mut self) {
        for at in (0..self.life.power_ons.len()).rev() {
            for client in (0..self.life.power_ons[at].clients.len()).rev() {
                self.attempt(|life| drop(life.power_ons[at].clients.remove(client)));
            }
            // One client in place of several.
            self.attempt(|life| {
                let clients = &mut life.power_ons[at].clients;
                let all: Vec<Command> = clients.drain(..).flatten().collect();
                clients.extend((!all.is_empty()).then_some(all));
            });
        }
    }

    fn drop_commands(&mut self) {
        for at in (0..self.life.power_ons.len()).rev() {
            for client in (0..self.life.power_ons[at].clients.len()).rev() {
                // A client that lost its last command is gone, and another may have its number now.
                self.drop_stretches(
                    |life| life.power_ons[at].clients.get(client).map_or(0, Vec::len),
                    |life, range| {
                        let own = life.power_ons[at].clients.get_mut(client);
                        if let Some(own) = own.filter(|own| range.end <= own.len()) {
                            own.drain(range);
                        }
                    },
                );
            }
        }
    }

    fn simplify_commands(&mut self) {
        for at in 0..self.life.power_ons.len() {
            for client in 0..self.life.power_ons[at].clients.len() {
                for command in 0..self.life.power_ons[at].clients[client].len() {
                    self.simplify_command(at, client, command);
                }
            }
        }
    }

    fn simplify_command(&mut self, at: usize, client: usize, command: usize) {
        loop {
            let now = self.life.power_ons[at].clients[client][command].clone();
            let simplified = simpler(&now).into_iter().any(|simpler| {
                self.attempt(|life| life.power_ons[at].clients[client][command] = simpler)
            });
            if !simplified {
                return;
            }
        }
    }

    fn simplify_damage(&mut self, at: usize) {
        drop_each(self, |life| &mut life.power_ons[at].lost_writes);
        drop_each(self, |life| &mut life.power_ons[at].io_faults);
        drop_each(self, |life| &mut life.power_ons[at].strikes);
        drop_each(self, |life| &mut life.power_ons[at].passing);
        for nth in 0..self.life.power_ons[at].passing.len() {
            loop {
                let plainer = self.life.power_ons[at].passing[nth].plainer();
                let is_plainer = plainer
                    .into_iter()
                    .any(|plainer| self.attempt(|life| life.power_ons[at].passing[nth] = plainer));
                if !is_plainer {
                    break;
                }
            }
        }
        for nth in 0..self.life.power_ons[at].strikes.len() {
            let Strike { place, how } = self.life.power_ons[at].strikes[nth];
            // A whole slot is simpler than a bit.
            if matches!(how, How::Flip(_)) {
                let wiped = Strike { place, how: How::Wipe };
                self.attempt(|life| life.power_ons[at].strikes[nth] = wiped);
            }
        }
    }

    fn simplify_ends(&mut self) {
        for at in 0..self.life.power_ons.len() {
            self.attempt(|life| life.power_ons[at].failing_programs.clear());
            self.attempt(|life| life.power_ons[at].decaying_reads.clear());
            self.simplify_damage(at);
            self.attempt(|life| life.power_ons[at].end = End::Dark);
            while let End::Cut(cut) = self.life.power_ons[at].end {
                let Cut { after, .. } = cut;
                let earlier = [0, after / 2, after.saturating_sub(1)];
                let moved = earlier.into_iter().any(|after| {
                    self.attempt(|life| life.power_ons[at].end = End::Cut(Cut { after, ..cut }))
                });
                if !moved {
                    self.attempt(|life| {
                        life.power_ons[at].end = End::Cut(Cut { fate: Fate::Vanish, ..cut });
                    });
                    break;
                }
            }
        }
    }
}

/// Drops unnecessary items of `list`, one at a time.
fn drop_each<F: Fn(&Life) -> bool, T>(
    shrinker: &mut Shrinker<F>,
    list: impl Fn(&mut Life) -> &mut Vec<T>,
) {
    for at in (0..list(&mut shrinker.life.clone()).len()).rev() {
        shrinker.attempt(|life| drop(list(life).remove(at)));
    }
}

/// Simpler replacements for a command, smallest first.
fn simpler(command: &Command) -> Vec<Command> {
    match command {
        Command::Write(range) => shorter(*range).map(Command::Write).collect(),
        Command::Trim(range) => shorter(*range).map(Command::Trim).collect(),
        Command::Read(range) => shorter(*range).map(Command::Read).collect(),
        Command::Commit(pages) => without_one(pages).map(Command::Commit).collect(),
        Command::Abort(pages) => without_one(pages).map(Command::Abort).collect(),
        Command::Share(pairs) => without_one(pairs).map(Command::Share).collect(),
        Command::Flush => Vec::new(),
    }
}

/// Fewer pages from the front, or all but the first.
fn shorter(range: PageRange) -> impl Iterator<Item = PageRange> {
    let PageRange { first, pages } = range;
    let fronts = [1, pages / 2, pages - 1].map(|len| (first, len));
    let back = (PageNo(first.0 + 1), pages - 1);
    let stretches = fronts.into_iter().chain([back]);
    stretches
        .filter(move |(_, len)| (1..pages).contains(len))
        .map(|(first, len)| PageRange::new(first, len))
}

fn without_one<T: Clone>(items: &[T]) -> impl Iterator<Item = Vec<T>> {
    let count = if items.len() > 1 { items.len() } else { 0 };
    (0..count).map(move |at| {
        let mut fewer = items.to_vec();
        fewer.remove(at);
        fewer
    })
}
