//! Random tasks on a small pool, compared with a plain array: every fix shows a page's newest
//! content, and a flush leaves all of it on the device.
mod support;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use support::{Memory, policy, run};
use tantalum_base::{Error, ErrorKind, PageNo, Result, Rng, Stamp};
use tantalum_buffer::{FlusherOptions, Guard, Intent, Pool, PoolOptions, PrefetchOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 40;
const STEPS: u32 = 150;

struct World {
    runtime: Virtual,
    pool: Rc<Pool<Memory, Virtual>>,
    device: Rc<Memory>,
    /// The newest content of each page.
    newest: RefCell<Vec<Stamp>>,
    /// Fixes that failed or were dropped.
    failed: Cell<u32>,
}

/// A pool, with settings chosen by the seed.
fn world(runtime: &Virtual, rng: &mut Rng, seed: u64) -> World {
    let device = Memory::new(runtime, PAGES, [0, 1000, 1000][rng.below(3) as usize], seed);
    let text = ["lru", "fifo", "clock", "sieve"][rng.below(4) as usize];
    let frames = 1 + rng.below(16) as u32;
    let high = rng.below(10) as f64 / 10.0;
    let flusher = FlusherOptions { high, low: high / 2.0, batch_pages: 1 + rng.below(8) as u32 };
    let after_pages = 1 + rng.below(3) as u32;
    let prefetch = PrefetchOptions { after_pages, window_pages: rng.below(12) as u32 };
    let mut options = PoolOptions {
        transit_frames: Some(1 + rng.below(12) as u32),
        writers: rng.below(4) as u32,
        write_run_pages_max: 1 + rng.below(12) as u32,
        flusher: Some(flusher).filter(|_| rng.chance(0.5)),
        prefetch: Some(prefetch).filter(|_| rng.chance(0.5)),
        ..PoolOptions::default()
    };
    if options.writers > 0 && options.flusher.is_none() && rng.chance(0.5) {
        options.batch_pages =
            options.transit_frames.map(|frames| frames / 2).filter(|most| *most > 0);
    }
    let policy = policy(text, frames, PAGES);
    let pool = Pool::new(Rc::clone(&device), runtime.clone(), policy, options).unwrap();
    pool.start();
    let newest = RefCell::new(vec![Stamp::default(); PAGES as usize]);
    World { runtime: runtime.clone(), pool, device, newest, failed: Cell::new(0) }
}

/// The result of `future`, if it ends within `time_ns`.
async fn within<F: Future>(runtime: &Virtual, time_ns: u64, future: F) -> Option<F::Output> {
    let (mut future, mut sleep) = (pin!(future), pin!(runtime.sleep(time_ns)));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
    })
    .await
}

impl World {
    async fn fix(
        &self,
        rng: &mut Rng,
        page: u64,
        intent: Intent,
    ) -> Option<Guard<Memory, Virtual>> {
        let patience_ns = if rng.chance(0.1) { rng.below(2000) } else { u64::MAX };
        let fixed = within(&self.runtime, patience_ns, self.pool.fix(PageNo(page), intent)).await;
        match fixed {
            Some(Ok(guard)) => return Some(guard),
            Some(Err(error)) => self.count_failed(&error),
            None => self.failed.set(self.failed.get() + 1),
        }
        None
    }

    fn count_failed(&self, error: &Error) {
        let expected = [ErrorKind::Io, ErrorKind::OutOfSpace];
        assert!(expected.contains(&error.kind()), "{error:?}");
        self.failed.set(self.failed.get() + 1);
    }

    async fn client(self: Rc<Self>, mut rng: Rng) {
        for _ in 0..STEPS {
            match rng.below(100) {
                0..30 => self.look(&mut rng).await,
                30..40 => self.copy(&mut rng).await,
                40..90 => self.change(&mut rng).await,
                90..93 => drop(self.pool.flush().await),
                93..95 => {
                    let patience_ns = rng.below(3000);
                    within(&self.runtime, patience_ns, self.pool.flush()).await;
                }
                95..97 => self.look_at_two(&mut rng).await,
                _ => self.damage(&mut rng),
            }
            if rng.chance(0.3) {
                self.pool.validate();
            }
            if rng.chance(0.2) {
                let pause_ns = rng.below(2000);
                self.runtime.sleep(pause_ns).await;
            }
        }
    }

    async fn look(&self, rng: &mut Rng) {
        let page = rng.below(PAGES);
        let Some(guard) = self.fix(rng, page, Intent::Read).await else { return };
        self.compare(&guard);
        let pause_ns = rng.below(500);
        self.runtime.sleep(pause_ns).await;
        self.compare(&guard);
    }

    async fn copy(&self, rng: &mut Rng) {
        let page = rng.below(PAGES);
        match self.pool.read(PageNo(page)).await {
            Ok(content) => assert_eq!(content, self.newest.borrow()[page as usize]),
            Err(error) => self.count_failed(&error),
        }
    }

    async fn look_at_two(&self, rng: &mut Rng) {
        let one = rng.below(PAGES - 1);
        let two = one + 1 + rng.below(PAGES - one - 1);
        let Some(one) = self.fix(rng, one, Intent::Read).await else { return };
        let Some(two) = self.fix(rng, two, Intent::Read).await else { return };
        self.compare(&one);
        self.compare(&two);
    }

    async fn change(&self, rng: &mut Rng) {
        let page = rng.below(PAGES);
        let intent = if rng.chance(0.3) { Intent::Overwrite } else { Intent::Update };
        let Some(mut guard) = self.fix(rng, page, intent).await else { return };
        if intent == Intent::Update {
            self.compare(&guard);
        }
        if rng.chance(0.1) {
            return;
        }
        for _ in 0..1 + rng.below(2) {
            // In the middle of a change: no other task may see this.
            *guard.page_mut() = Stamp::new(PageNo(page), support::HALF_DONE);
            let pause_ns = rng.below(500);
            self.runtime.sleep(pause_ns).await;
            let count = self.newest.borrow()[page as usize].count + 1;
            *guard.page_mut() = Stamp::new(PageNo(page), count);
            self.newest.borrow_mut()[page as usize] = Stamp::new(PageNo(page), count);
            let pause_ns = rng.below(500);
            self.runtime.sleep(pause_ns).await;
        }
        self.compare(&guard);
    }

    fn compare(&self, guard: &Guard<Memory, Virtual>) {
        let page = guard.number().index();
        assert_eq!(*guard.page(), self.newest.borrow()[page], "page {page}");
    }

    /// Makes pages fail, or repairs them.
    fn damage(&self, rng: &mut Rng) {
        let page = rng.below(PAGES);
        match rng.below(4) {
            0 => drop(self.device.bad_reads.borrow_mut().insert(page)),
            1 => drop(self.device.bad_writes.borrow_mut().insert(page)),
            _ => self.mend(),
        }
    }

    fn mend(&self) {
        self.device.bad_reads.borrow_mut().clear();
        self.device.bad_writes.borrow_mut().clear();
    }

    async fn end(&self) -> Result<()> {
        self.mend();
        self.pool.validate();
        assert_eq!(self.pool.frames().pinned, 0);
        self.pool.flush().await?;
        self.pool.validate();
        assert_eq!(self.pool.frames().dirty, 0);
        for (page, newest) in (0..PAGES).zip(&*self.newest.borrow()) {
            assert_eq!(self.device.held(page), *newest, "page {page}");
        }
        self.pool.close().await
    }
}

fn live_one(seed: u64) {
    run(Schedule::Shuffled(seed), move |runtime| async move {
        let mut rng = Rng::split(seed, "model");
        let world = Rc::new(world(&runtime, &mut rng, seed));
        let clients: Vec<_> = (0..1 + rng.below(8))
            .map(|_| {
                let rng = Rng::new(rng.next_u64());
                runtime.spawn("client", Rc::clone(&world).client(rng))
            })
            .collect();
        for client in clients {
            client.await;
        }
        let failed = world.failed.get();
        let ended = world.end().await;
        ended.unwrap_or_else(|error| panic!("seed {seed}, {failed} failed: {error}"));
    });
}

#[test]
fn every_look_shows_the_newest_content() {
    let nightly = std::env::var("TANTALUM_NIGHTLY").is_ok_and(|value| value == "1");
    // Seed 7293: a flush waited for two writes of a page, of which one was done and the other
    // dropped.
    for seed in (0..if nightly { 20_000 } else { 1000 }).chain([7293]) {
        let lived = std::panic::catch_unwind(|| live_one(seed));
        assert!(lived.is_ok(), "seed {seed}");
    }
}
