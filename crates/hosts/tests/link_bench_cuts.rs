//! LinkBench with power cuts: acknowledged changes are there afterwards, no change is there in part, and the load
//! continues.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Durability, ErrorKind, Rng, Stamp};
use tantalum_hosts::double_write::{DoubleWrite, Form};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::workload::LoopOptions;
use tantalum_hosts::workload::link_bench::LinkBench;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

use crate::link_bench::{LOOP, Stamps, options};
use crate::worst_disk::WorstDisk;

/// Runs the load with repeated power cuts; returns the error that it found afterwards.
fn cut_again_and_again(form: Form, durability: Durability, seed: u64) -> Option<String> {
    let disk = WorstDisk::<Stamp>::new(durability, 4_000);
    let codec = Rc::new(Stamps::default());
    let bench = LinkBench::new(300).unwrap();
    let rng = Rc::new(RefCell::new(Rng::new(seed)));
    let mut links = 0;
    for life in 0..6 {
        let runtime = Virtual::new(Schedule::Shuffled(seed * 10 + life));
        let (rt, rng) = (runtime.clone(), Rc::clone(&rng));
        let (disk, codec, bench) = (Rc::clone(&disk), Rc::clone(&codec), Rc::clone(&bench));
        let lived = {
            let disk = Rc::clone(&disk);
            let rng = Rc::clone(&rng);
            runtime.run(async move {
                if life == 0 {
                    let options = options(form);
                    let store = DoubleWrite::create(&rt, &disk, &codec, options).await?;
                    bench.load(&store).await?;
                    return store.close().await.map(|()| 0);
                }
                let (store, _) = DoubleWrite::open(&rt, &disk, &codec, options(form)).await?;
                let found = bench.after_cut(&store).await?;
                // A hundred clients share each write of the log.
                disk.cut_after(50 + rng.borrow_mut().below(800));
                // More than come before the cut.
                let load = LoopOptions { operations: 100 * LOOP.operations, ..LOOP };
                match bench.run(&rt, &store, load, seed * 10 + life).await {
                    Err(error) if error.kind() == ErrorKind::PowerCut => Ok(found.links),
                    Err(error) => Err(error),
                    Ok(_) => panic!("the power was to go"),
                }
            })
        };
        runtime.drop_tasks();
        match lived.unwrap_or_else(|deadlock| panic!("{deadlock:?}")) {
            Ok(found) => links = found.max(links),
            Err(error) => return Some(format!("{form:?}, seed {seed}, life {life}: {error}")),
        }
        disk.power_on(&mut rng.borrow_mut());
    }
    assert!(links > 300, "{links} links");
    None
}

#[test]
fn what_was_acknowledged_outlives_cuts_and_the_load_goes_on() {
    for seed in 0..8 {
        for (form, durability) in [
            (Form::On, Durability::Volatile),
            (Form::Off, Durability::OnFlush),
            (Form::Share, Durability::Volatile),
            (Form::Transactions, Durability::Volatile),
        ] {
            assert_eq!(cut_again_and_again(form, durability, seed), None);
        }
    }
}

#[test]
fn a_commit_that_is_lost_or_half_there_after_a_cut_is_noticed() {
    for fault in [Fault::NoFlushAfterLog, Fault::GroupsCutShort] {
        let cuts = |seed| cut_again_and_again(Form::On, Durability::Volatile, seed);
        assert_noticed(fault, || (0..20).find_map(cuts));
    }
}
