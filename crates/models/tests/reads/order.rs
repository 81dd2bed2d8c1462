//! Two concurrent commands that change the same pages: one order of them explains all reads during
//! and after them.
use crate::reads::check::AREA;
use crate::reads::devices::run;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Payload, Result, Rng, Stamp};
use tantalum_runtime::{Runtime, Virtual};

type Pages = [Stamp; AREA as usize];

#[derive(Clone, Copy, Debug)]
struct Command {
    range: PageRange,
    /// The content that is written; `None` for a trim.
    count: Option<u64>,
}

impl Command {
    fn draw(rng: &mut Rng, count: u64, pages: u64) -> Command {
        let range = PageRange::new(PageNo(rng.below(AREA - pages + 1)), pages);
        Command { range, count: rng.chance(0.8).then_some(count) }
    }

    fn contents(&self) -> Vec<Stamp> {
        let stamp = |page| self.count.map_or(Stamp::zero(), |count| Stamp::new(page, count));
        self.range.iter().map(stamp).collect()
    }

    fn apply(&self, mut pages: Pages) -> Pages {
        let range = self.range.first.index()..self.range.end().index();
        pages[range].copy_from_slice(&self.contents());
        pages
    }

    async fn issue<D: PageDevice<Page = Stamp>>(&self, device: &D) {
        match self.count {
            Some(_) => device.write(self.range.first, &self.contents(), None).await.unwrap(),
            None => device.trim(self.range).await.unwrap(),
        }
    }
}

async fn read_all<D: PageDevice<Page = Stamp>>(device: &D) -> Pages {
    let mut out = [Stamp::zero(); AREA as usize];
    device.read(PageNo(0), &mut out, None).await.unwrap();
    out
}

/// Whether `reads`, in their order, show the pages before, between and after `commands`.
fn explains(before: Pages, commands: [&Command; 2], reads: &[Pages]) -> bool {
    let between = commands[0].apply(before);
    let states = [before, between, commands[1].apply(between)];
    let mut at = 0;
    let mut shows = |read: &Pages| {
        at += states[at..].iter().take_while(|state| *state != read).count();
        at < states.len()
    };
    reads.iter().all(&mut shows) && reads.last() == Some(&states[2])
}

async fn rounds<D: PageDevice<Page = Stamp>>(runtime: Virtual, device: Rc<D>, seed: u64) {
    let mut rng = Rng::split(seed, "orders");
    for round in 0..30 {
        let before = read_all(&*device).await;
        // The larger one comes first and takes longer.
        let most = u64::from(device.limits().atomic_write_pages_max).min(10);
        let commands = [
            Command::draw(&mut rng, 2 * round + 1, most),
            Command::draw(&mut rng, 2 * round + 2, 2),
        ];
        let ended = Rc::new(Cell::new(0));
        let mut tasks = Vec::new();
        for command in commands {
            let (device, ended) = (Rc::clone(&device), Rc::clone(&ended));
            tasks.push(runtime.spawn("command", async move {
                command.issue(&*device).await;
                ended.set(ended.get() + 1);
            }));
            runtime.sleep(rng.below(30_000)).await;
        }
        let mut reads = Vec::new();
        while ended.get() < 2 {
            reads.push(read_all(&*device).await);
            runtime.sleep(rng.below(20_000)).await;
        }
        for task in tasks {
            task.await;
        }
        reads.push(read_all(&*device).await);
        let [one, two] = &commands;
        assert!(
            explains(before, [one, two], &reads) || explains(before, [two, one], &reads),
            "seed {seed}: no order of {commands:?} explains {reads:?} from {before:?} on"
        );
    }
}

/// Runs the rounds on the devices that `make` returns, once per seed.
pub fn orders<D, F, T>(make: F)
where
    D: PageDevice<Page = Stamp>,
    F: Fn(Virtual) -> T + Copy + 'static,
    T: Future<Output = Result<Rc<D>>> + 'static,
{
    for seed in 0..12 {
        run(seed, move |runtime| async move {
            let device = make(runtime.clone()).await.unwrap();
            rounds(runtime, device, seed).await;
        });
    }
}
