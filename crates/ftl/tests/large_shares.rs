//! Shares of more pairs, and trims of more ranges, than fit in a record page: whenever the power is cut, either all of
//! a batch is there or none of it.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Error, PageNo, PageRange, Payload, Result, Rng, Stamp};
use tantalum_ftl::fault_points::Fault;
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::{CutPlan, Fate, ZoneMedia};
use tantalum_models::rig::{FileRig, LARGE_PAGES, NandRig, Rig, Size};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// Pages that are remapped: as many as fill three record pages and a part of a fourth.
const LEFT: u64 = 560;
/// The first of the pages to whose contents they are remapped.
const RIGHT_AT: u64 = LEFT;
/// Pages behind them that are written meanwhile, so that there is something to clean.
const OTHERS_AT: u64 = RIGHT_AT + LEFT;
const BATCH: u64 = 40;
/// The most pages that share slots at once: the other pages of a share are written again.
const SHARED_MAX: u32 = 400;

/// The state that survives a cut: the round whose contents the left pages have, and the one whose contents they may
/// have.
#[derive(Default)]
struct World {
    known: Cell<u64>,
    next: Cell<u64>,
    /// The last round that was written.
    written: Cell<u64>,
    shared: Cell<u64>,
    copied: Cell<u64>,
    /// Shares under way when the power was cut: `[0]` those that were not there afterwards, `[1]` those that were.
    cuts: RefCell<[u64; 2]>,
}

fn content<P: Payload>(page: u64, round: u64) -> P {
    if round == 0 {
        return P::zero();
    }
    let mut bytes = [round as u8; 4096];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&round.to_le_bytes());
    P::from_bytes(&bytes)
}

/// Every other page behind the right ones: in more ranges than fit in a record page.
fn trims() -> Vec<PageRange> {
    (OTHERS_AT..LARGE_PAGES).step_by(2).map(|page| PageRange::new(PageNo(page), 1)).collect()
}

impl World {
    async fn holds<M: ZoneMedia>(&self, ftl: &Ftl<M>, round: u64) -> Result<bool> {
        let pages: Vec<PageNo> = (0..LEFT).map(PageNo).collect();
        let mut out = vec![M::Page::zero(); pages.len()];
        ftl.read(&pages, &mut out).await?;
        let is_shared =
            (0..LEFT).zip(out).all(|(page, seen)| seen == content(RIGHT_AT + page, round));
        // The pages that it trims read as they were last written before it.
        let trimmed: Vec<PageNo> = trims().iter().map(|range| range.first).collect();
        let mut out = vec![M::Page::zero(); trimmed.len()];
        ftl.read(&trimmed, &mut out).await?;
        let written = if self.written.get() == round { 0 } else { self.written.get() };
        let is_trimmed =
            trimmed.iter().zip(out).all(|(page, seen)| seen == content(page.0, written));
        Ok(is_shared && is_trimmed)
    }

    /// After a recovery the share under way is there as a whole or not at all.
    async fn check<M: ZoneMedia>(&self, ftl: &Ftl<M>) -> Result<()> {
        let (known, next) = (self.known.get(), self.next.get());
        let found = if self.holds(ftl, known).await? {
            known
        } else {
            assert!(self.holds(ftl, next).await?, "a share is there in part");
            next
        };
        if next != known {
            self.cuts.borrow_mut()[usize::from(found == next)] += 1;
        }
        self.known.set(found);
        self.next.set(found);
        Ok(())
    }

    async fn write<M: ZoneMedia>(
        &self,
        ftl: &Ftl<M>,
        from: u64,
        to: u64,
        round: u64,
    ) -> Result<()> {
        for first in (from..to).step_by(BATCH as usize) {
            let pages =
                (first..to.min(first + BATCH)).map(|page| (PageNo(page), content(page, round)));
            ftl.write(&pages.collect::<Vec<_>>(), false).await?;
        }
        Ok(())
    }

    /// Writes the right pages, and some more.
    async fn prepare<M: ZoneMedia>(&self, ftl: &Ftl<M>) -> Result<()> {
        let round = self.known.get() + 1;
        self.write(ftl, RIGHT_AT, RIGHT_AT + LEFT, round).await?;
        self.write(ftl, OTHERS_AT, LARGE_PAGES, round).await?;
        ftl.sync().await?;
        self.written.set(round);
        Ok(())
    }

    /// Remaps all left pages to the right ones, and trims others.
    async fn share<M: ZoneMedia>(&self, ftl: &Ftl<M>) -> Result<()> {
        let pairs: Vec<_> = (0..LEFT).map(|page| (PageNo(page), PageNo(RIGHT_AT + page))).collect();
        self.next.set(self.known.get() + 1);
        let before = ftl.statistics();
        ftl.share_and_trim(&pairs, &trims(), true, || ()).await?;
        self.known.set(self.next.get());
        let after = ftl.statistics();
        self.shared.set(self.shared.get() + after.pages_shared - before.pages_shared);
        self.copied.set(self.copied.get() + after.pages_share_copied - before.pages_share_copied);
        assert!(self.holds(ftl, self.known.get()).await?);
        Ok(())
    }
}

/// Opens, checks, and remaps until the power is cut; each time at another of the first operations of a share.
fn cut_again_and_again<R: Rig>(seed: u64, cuts: u64, offsets: u64) -> Rc<World> {
    let mut rng = Rng::split(seed, "large shares");
    let mut rig = R::of_size(seed, Size::Large, 0);
    let options = FtlOptions {
        checkpoint_interval_slots: 1500,
        share_entries_max: Some(SHARED_MAX),
        ..FtlOptions::new(LARGE_PAGES)
    };
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.open(&runtime);
    runtime.run(async move { Ftl::format(media, options).await }).unwrap().unwrap();
    runtime.drop_tasks();
    rig.power_off(&runtime).unwrap();
    let world = Rc::new(World::default());
    for cut in 0..cuts {
        let runtime = Virtual::new(Schedule::Shuffled(seed + cut));
        let media = rig.open(&runtime);
        let (rt, opened) = (runtime.clone(), Rc::clone(&world));
        let open = async move {
            let (ftl, _) = Ftl::recover(media, options).await?;
            ftl.validate();
            opened.check(&ftl).await?;
            let (cleaner, checkpointer) = (Rc::clone(&ftl), Rc::clone(&ftl));
            rt.spawn("cleaner", async move { cleaner.run_cleaner().await });
            rt.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
            opened.prepare(&ftl).await?;
            Ok::<_, Error>(ftl)
        };
        let ftl = runtime.run(open).unwrap().unwrap();
        let fate = Fate::ALL[rng.below(3) as usize];
        rig.plan(CutPlan { after_operations: cut % offsets, fate });
        let sharing = Rc::clone(&world);
        // The power may be cut before that ends, or after.
        _ = runtime.run(async move { sharing.share(&ftl).await });
        runtime.drop_tasks();
        rig.power_off(&runtime).unwrap();
    }
    world
}

fn is_seen_whole(world: &World) {
    println!(
        "{} shared, {} written again; cuts in a share, without and with it: {:?}",
        world.shared.get(),
        world.copied.get(),
        world.cuts.borrow()
    );
    assert!(world.cuts.borrow()[0] > 50);
    assert!(world.shared.get() > 10_000 && world.copied.get() > 0);
}

#[test]
fn many_pages_are_remapped_as_one_on_a_file() {
    is_seen_whole(&cut_again_and_again::<FileRig>(1, 200, 16));
}

#[test]
fn many_pages_are_remapped_as_one_on_flash() {
    let world = cut_again_and_again::<NandRig<Stamp>>(2, 400, 30);
    is_seen_whole(&world);
    assert!(world.cuts.borrow()[1] > 0, "some are there though nobody was told");
}

#[test]
fn half_of_a_large_share_is_noticed() {
    assert_noticed(Fault::HalfBatches, || {
        cut_again_and_again::<FileRig>(1, 200, 16);
        None
    });
}
