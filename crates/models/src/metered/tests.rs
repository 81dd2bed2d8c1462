use super::*;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Payload, Stamp};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{DeviceKind, LifeCycle, Runtime, Virtual, spawn_all};

const OPTIONS: MeteredOptions = MeteredOptions {
    pages: 1_000,
    read_ns: 100,
    write_ns: 300,
    flush_ns: 50,
    allowance: Allowance::Shared(Rate {
        commands_per_second: 1_000_000,
        // A page takes 2,000 ns.
        bytes_per_second: 2_048_000_000,
    }),
    command_pages: 4,
};

/// Runs `commands` (whether each writes, and its pages), all issued at once. Returns the time at
/// which each was done.
fn ends(options: MeteredOptions, commands: &'static [(bool, usize)]) -> Vec<u64> {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let run = async move {
        let device: Rc<Metered<_, Stamp>> = options.make(&rt, Blocks::default()).await.unwrap();
        let ends = Rc::new(std::cell::RefCell::new(vec![0; commands.len()]));
        let command = |at: usize| {
            let (device, rt, ends) = (Rc::clone(&device), rt.clone(), Rc::clone(&ends));
            async move {
                let (write, pages) = commands[at];
                let mut contents = vec![Stamp::zero(); pages];
                match write {
                    true => device.write(PageNo(0), &contents, None).await?,
                    false => device.read(PageNo(0), &mut contents, None).await?,
                }
                ends.borrow_mut()[at] = rt.now_ns();
                Ok(())
            }
        };
        spawn_all(&rt, "client", (0..commands.len()).map(command)).await.unwrap();
        Rc::try_unwrap(ends).unwrap().into_inner()
    };
    runtime.run(run).unwrap()
}

#[test]
fn commands_overlap_in_their_round_trips_and_share_the_allowance() {
    let commands: &[(bool, usize)] = &[(false, 1), (true, 1), (false, 3), (false, 1)];
    // They begin at 0, 2,000, 4,000 and 10,000.
    assert_eq!(ends(OPTIONS, commands), [100, 2_300, 4_100, 10_100]);
    let Allowance::Shared(rate) = OPTIONS.allowance else { unreachable!() };
    let apart =
        MeteredOptions { allowance: Allowance::Apart { reads: rate, writes: rate }, ..OPTIONS };
    assert_eq!(ends(apart, commands), [100, 300, 2_100, 8_100]);
}

#[test]
fn a_long_command_counts_as_several() {
    let slow = Rate { commands_per_second: 1_000, bytes_per_second: u64::MAX };
    let options = MeteredOptions { allowance: Allowance::Shared(slow), ..OPTIONS };
    // 4 pages are one command of 1 ms; 5 are two.
    assert_eq!(ends(options, &[(false, 4), (false, 5), (false, 1)]), [100, 1_000_100, 3_000_100]);
}

#[test]
fn contents_stay_where_they_were_written_and_trims_forget_them() {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let run = async move {
        let blocks = Blocks::default();
        let device = OPTIONS.make(&rt, blocks.clone()).await.unwrap();
        let contents: Vec<Stamp> = (0..3).map(|at| Stamp::new(PageNo(at), 1)).collect();
        device.write(PageNo(10), &contents, None).await.unwrap();
        device.trim(PageRange::new(PageNo(11), 1)).await.unwrap();
        device.flush().await.unwrap();
        let counted = device.counters();
        assert_eq!((counted.pages_written, counted.flushes), (3, 1));
        let mut found = [Stamp::zero(); 4];
        device.read(PageNo(10), &mut found, None).await.unwrap();
        assert_eq!(found, [contents[0], Stamp::zero(), contents[2], Stamp::zero()]);
        let refused = device.read(PageNo(998), &mut found, None).await;
        assert!(refused.is_err());
        assert_eq!(device.begin().await.unwrap_err().kind(), ErrorKind::Unsupported);
        // A device that is opened next finds them; a newly made one does not.
        let again = Metered::new(rt.clone(), OPTIONS, blocks.clone()).unwrap();
        again.read(PageNo(10), &mut found[..1], None).await.unwrap();
        assert_eq!(found[0], contents[0]);
        let made = OPTIONS.make(&rt, blocks).await.unwrap();
        made.read(PageNo(10), &mut found[..1], None).await.unwrap();
        assert_eq!(found[0], Stamp::zero());
    };
    runtime.run(run).unwrap();
}

#[test]
fn what_may_do_nothing_is_refused() {
    let never = Rate { commands_per_second: 0, bytes_per_second: 1 };
    let once = Rate { commands_per_second: 1, bytes_per_second: 1 };
    for options in [
        MeteredOptions { pages: 0, ..OPTIONS },
        MeteredOptions { command_pages: 0, ..OPTIONS },
        MeteredOptions { allowance: Allowance::Shared(never), ..OPTIONS },
        MeteredOptions { allowance: Allowance::Apart { reads: once, writes: never }, ..OPTIONS },
    ] {
        let runtime = Virtual::new(Schedule::Fifo);
        let refused = Metered::<_, Stamp>::new(runtime, options, Blocks::default());
        assert_eq!(refused.err().unwrap().kind(), ErrorKind::InvalidInput, "{options:?}");
    }
}
