//! A progress bar for everything that takes over two seconds, on a terminal only.
//!
//! A thread draws it, so that it moves during a long step, too: it shows the progress within the step, if known, and
//! the number of simulated events so far.
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tantalum_report::number::thousands;
use tantalum_runtime::supervision;

const QUIET: Duration = Duration::from_secs(2);

/// Time between two drawings.
const TICK: Duration = Duration::from_millis(200);

/// Items counted between two updates of the bar.
const COUNT_EVERY: u64 = 1 << 16;

/// Progress on the standard error; hidden at first, and permanently if that is not a terminal.
pub struct Progress {
    bar: ProgressBar,
    /// The current step of each of several concurrent runs.
    now: Mutex<BTreeMap<&'static str, String>>,
    drawing: Option<Drawing>,
}

/// The progress of runs.
pub struct Seen {
    /// Steps done.
    pub done: u64,
    /// Steps in all.
    pub of: u64,
    /// The progress in words.
    pub words: String,
}

/// The thread that draws. It ends when `stop` is dropped.
struct Drawing {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Counts items whose total is unknown.
    pub fn counter(what: &'static str) -> Progress {
        Progress::new("{human_pos} {msg} ({elapsed})", what, |_| ())
    }

    /// Counts steps whose total is known.
    pub fn steps(what: &'static str) -> Progress {
        Progress::new("[{bar:40}] {pos} of {len} {msg} ({elapsed})", what, |_| ())
    }

    /// Counts named steps of several runs, whose total is unknown.
    pub fn named(what: &'static str) -> Progress {
        let template = "{human_pos} {prefix} ({elapsed}{simulated}), now {wide_msg}";
        let progress = Progress::new(template, "", |_| ());
        progress.bar.set_prefix(what);
        progress
    }

    /// Follows runs whose progress `look` returns.
    pub fn of(look: impl Fn() -> Seen + Send + 'static) -> Progress {
        Progress::new("[{bar:16}] {msg}{simulated} ({elapsed})", "", move |bar| {
            let seen = look();
            bar.set_length(seen.of.max(1));
            bar.set_position(seen.done);
            bar.set_message(seen.words);
        })
    }

    /// Reports that the step `name` of `run` begins, and thus that its previous step is done.
    pub fn begin(&self, run: &'static str, name: &str) {
        self.now_at(run, Some(name));
    }

    /// Reports that the last step of `run` is done.
    pub fn end(&self, run: &'static str) {
        self.now_at(run, None);
    }

    fn now_at(&self, run: &'static str, step: Option<&str>) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match step {
            Some(name) => now.insert(run, name.to_owned()),
            None => now.remove(run),
        };
        self.bar.inc(u64::from(before.is_some()));
        let steps: Vec<String> = now.iter().map(|(run, step)| format!("{run}: {step}")).collect();
        self.bar.set_message(steps.join("; "));
    }

    fn new(
        template: &str,
        what: &'static str,
        look: impl Fn(&ProgressBar) + Send + 'static,
    ) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("simulated", simulated));
        }
        bar.set_message(what);
        let drawing = std::io::stderr().is_terminal().then(|| Drawing::begin(bar.clone(), look));
        Progress { bar, now: Mutex::default(), drawing }
    }

    /// Reports that `done` steps of `of` are done.
    pub fn step(&self, done: usize, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
    }

    /// Removes the bar from the terminal.
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
                        self.bar.set_position(counted);
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
        // Stop drawing before the bar is removed, so that it is not drawn again.
        self.drawing = None;
        self.finish();
    }
}

impl Drawing {
    #[expect(clippy::disallowed_methods, reason = "simulations do not depend on this thread")]
    fn begin(bar: ProgressBar, look: impl Fn(&ProgressBar) + Send + 'static) -> Drawing {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || draw(&bar, &look, &stopped));
        Drawing { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A failure of the drawing thread matters less than the result.
            let _ = thread.join();
        }
    }
}

fn draw(bar: &ProgressBar, look: &dyn Fn(&ProgressBar), stopped: &Receiver<()>) {
    while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) && !bar.is_finished() {
        look(bar);
        if bar.is_hidden() && bar.elapsed() >= QUIET {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.tick();
    }
}

/// The number of simulated events so far, if there are any.
fn simulated(_: &ProgressState, to: &mut dyn Write) {
    let events = supervision::events();
    if events > 0 {
        // Writing to a string cannot fail.
        let _ = write!(to, ", {} events", thousands(events));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_several_runs_are_told_beside_each_other() {
        let progress = Progress::named("cases measured");
        let seen = || (progress.bar.message(), progress.bar.position());
        progress.begin("share", "figure 5");
        progress.begin("durassd", "table 1");
        progress.begin("share", "figure 6");
        assert_eq!(seen(), ("durassd: table 1; share: figure 6".to_owned(), 1));
        progress.end("durassd");
        progress.end("durassd");
        assert_eq!(seen(), ("share: figure 6".to_owned(), 2));
    }
}
