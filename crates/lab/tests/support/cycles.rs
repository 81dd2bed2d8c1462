//! A device that loses power again and again: it must neither run out of zones nor lose what was
//! durable, also where every recovery is cut.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, Payload, Rng};
use tantalum_ftl::{Ftl, FtlOptions, pages_max};
use tantalum_lab::crash::Rig;
use tantalum_media::{CutPlan, Fate, ZoneMedia};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

fn content<P: Payload>(page: u64, count: u64) -> P {
    let mut bytes = [count as u8; 4096];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    P::from_bytes(&bytes)
}

/// Opens, checks every page, writes durably until the cut; `cycles` times.
pub fn cycles<R: Rig>(seed: u64, cycles: u32, after_max: u64, batch_max: u64) {
    let mut rng = Rng::split(seed, "cycles");
    let mut rig = R::new(seed);
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.open(&runtime);
    let pages = pages_max(&media.geometry(), media.retired().len() as u32);
    let options = FtlOptions { checkpoint_interval_slots: 200, ..FtlOptions::new(pages) };
    runtime.run(async move { Ftl::format(media, options).await }).unwrap().unwrap();
    runtime.drop_tasks();
    rig.settle(&runtime).unwrap();
    // The count that was acknowledged last, and that of a batch in flight.
    let known = Rc::new(RefCell::new(vec![0u64; pages as usize]));
    let pending: Rc<RefCell<Vec<u64>>> = Rc::default();
    let count = Rc::new(Cell::new(0));
    for cycle in 0..cycles {
        let runtime = Virtual::new(Schedule::Shuffled(seed + u64::from(cycle)));
        let media = rig.open(&runtime);
        let after = rng.below(after_max);
        rig.plan(CutPlan { after_operations: after, fate: Fate::ALL[rng.below(3) as usize] });
        let (known, pending, count) = (Rc::clone(&known), Rc::clone(&pending), Rc::clone(&count));
        let (rt, mut load) = (runtime.clone(), Rng::new(rng.next_u64()));
        let session = async move {
            let (ftl, _) = Ftl::recover(media, options).await?;
            ftl.validate();
            let seen_pending = {
                let mut newer = 0;
                for page in 0..pages {
                    let mut out = [<R::Media as ZoneMedia>::Page::zero()];
                    ftl.read(&[PageNo(page)], &mut out).await?;
                    let old = known.borrow()[page as usize];
                    let is = |count| {
                        if count == 0 {
                            out[0] == Payload::zero()
                        } else {
                            out[0] == content(page, count)
                        }
                    };
                    if pending.borrow().contains(&page) && is(count.get()) {
                        newer += 1;
                    } else {
                        assert!(
                            is(old),
                            "seed {seed} cycle {cycle}: page {page} is {:?}, not {old}",
                            out[0]
                        );
                    }
                }
                newer
            };
            let batch = pending.take();
            assert!(
                seen_pending == 0 || seen_pending == batch.len(),
                "seed {seed} cycle {cycle}: torn batch"
            );
            if seen_pending > 0 {
                batch.iter().for_each(|page| known.borrow_mut()[*page as usize] = count.get());
            }
            let cleaner = Rc::clone(&ftl);
            rt.spawn("cleaner", async move { cleaner.run_cleaner().await });
            let checkpointer = Rc::clone(&ftl);
            rt.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
            loop {
                count.set(count.get() + 1);
                let mut batch: Vec<u64> = Vec::new();
                for _ in 0..1 + load.below(batch_max) {
                    let page = load.below(pages);
                    if !batch.contains(&page) {
                        batch.push(page);
                    }
                }
                let writes: Vec<_> =
                    batch.iter().map(|page| (PageNo(*page), content(*page, count.get()))).collect();
                *pending.borrow_mut() = batch;
                ftl.write(&writes, true).await?;
                pending
                    .take()
                    .iter()
                    .for_each(|page| known.borrow_mut()[*page as usize] = count.get());
            }
            #[allow(unreachable_code)]
            Ok::<(), tantalum_base::Error>(())
        };
        match runtime.run(session) {
            Ok(Err(error)) => assert!(
                rig.is_cut() && matches!(error.kind(), ErrorKind::PowerCut | ErrorKind::Latched),
                "seed {seed} cycle {cycle}, cut after {after}: {error:?}"
            ),
            Ok(Ok(())) => unreachable!(),
            Err(deadlock) => {
                assert!(rig.is_cut(), "seed {seed} cycle {cycle}, cut after {after}: {deadlock}")
            }
        }
        runtime.drop_tasks();
        rig.settle(&runtime).unwrap();
    }
    println!("seed {seed}: {} batches", count.get());
}
