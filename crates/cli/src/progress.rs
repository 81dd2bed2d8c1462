//! A bar on anything that takes over two seconds, on a terminal only.
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

const QUIET: Duration = Duration::from_secs(2);

/// Events between two looks at the clock.
const COUNT_EVERY: u64 = 1 << 16;

/// Progress on the standard error; hidden at first, and for ever where that is no terminal.
pub struct Progress {
    bar: ProgressBar,
    on_terminal: bool,
}

impl Progress {
    /// Counts something whose end is not known.
    pub fn counter(what: &'static str) -> Progress {
        Progress::new("{human_pos} {msg} ({elapsed})", what)
    }

    /// Counts steps of a known number.
    pub fn steps(what: &'static str) -> Progress {
        Progress::new("[{bar:40}] {pos} of {len} {msg} ({elapsed})", what)
    }

    /// Counts steps that have a name each and whose number is not known.
    pub fn named(what: &'static str) -> Progress {
        Progress::new("{human_pos} {prefix} ({elapsed}), now {msg}", "").prefixed(what)
    }

    fn prefixed(self, what: &'static str) -> Progress {
        self.bar.set_prefix(what);
        self
    }

    /// Tells what the steps from now on are.
    pub fn doing(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Tells that the step called `name` begins.
    pub fn begin(&self, name: &str) {
        let before = self.bar.message() != "";
        self.bar.set_message(name.to_owned());
        self.tell(self.bar.position() + u64::from(before));
    }

    fn new(template: &str, what: &'static str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Progress { bar, on_terminal: std::io::stderr().is_terminal() }
    }

    /// Tells that `done` steps of `of` are done.
    pub fn step(&self, done: usize, of: usize) {
        self.bar.set_length(of as u64);
        self.tell(done as u64);
    }

    fn tell(&self, position: u64) {
        if self.on_terminal && self.bar.is_hidden() && self.bar.elapsed() >= QUIET {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(position);
    }

    /// Takes the bar off the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Passes `items` on and counts them.
    pub fn count<I: Iterator>(self, items: I) -> impl Iterator<Item = I::Item> {
        let mut counted = 0;
        let mut items = items;
        std::iter::from_fn(move || {
            let item = items.next();
            match item {
                Some(_) => {
                    counted += 1;
                    if counted % COUNT_EVERY == 0 {
                        self.tell(counted);
                    }
                }
                None => self.finish(),
            }
            item
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
