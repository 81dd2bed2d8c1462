use super::*;
use crate::Virtual;
use crate::virtual_time::Schedule;

/// Work done by each client, of `greedy` that ask for steps without a pause from many tasks, and of one that
/// works on one request at a time, of which each takes several turns of the executor.
fn shares(greedy: usize, cost: u64) -> Vec<u64> {
    let runtime = Virtual::new(Schedule::Fifo);
    let clock = runtime.clone();
    let done: Rc<Vec<Cell<u64>>> = Rc::new((0..=greedy).map(|_| Cell::new(0)).collect());
    let (counts, rounds) = (Rc::clone(&done), Rounds::default());
    let run = runtime.run(async move {
        let over = Rc::new(Cell::new(false));
        for number in 1..=greedy {
            let seat = Rc::new(rounds.seat(&clock));
            for _ in 0..64 {
                let (seat, counts) = (Rc::clone(&seat), Rc::clone(&counts));
                let over = Rc::clone(&over);
                drop(clock.spawn("greedy", async move {
                    while !over.get() {
                        seat.turn(cost).await;
                        counts[number].set(counts[number].get() + 1);
                    }
                }));
            }
        }
        let seat = rounds.seat(&clock);
        for _ in 0..1_000 {
            seat.turn(request_cost(1)).await;
            for _ in 0..5 {
                yield_now().await;
            }
            counts[0].set(counts[0].get() + 1);
        }
        over.set(true);
    });
    run.unwrap();
    done.iter().map(Cell::get).collect()
}

#[test]
fn a_modest_client_has_its_share_beside_greedy_ones() {
    for greedy in [1, 3, 15] {
        let shares = shares(greedy, request_cost(1));
        let fair = shares.iter().sum::<u64>() / (greedy as u64 + 1);
        assert!(shares[0] >= fair / 2 || greedy < 15, "{shares:?}");
        let [least, most] = [shares[1..].iter().min(), shares[1..].iter().max()];
        let (least, most) = (least.unwrap(), most.unwrap());
        assert!(most - least <= most / 4 + 64, "greedy ones share alike: {shares:?}");
    }
}

#[test]
fn large_steps_take_turns_and_few_are_in_flight() {
    let runtime = Virtual::new(Schedule::Fifo);
    let clock = runtime.clone();
    let rounds = Rounds::default();
    let order = runtime.run(async move {
        let (order, flight) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(0u64)));
        let mut tasks = Vec::new();
        for number in 0..3 {
            let seat = Rc::new(rounds.seat(&clock));
            for _ in 0..[40, 10, 10][number] {
                let (seat, clock_of_task) = (Rc::clone(&seat), clock.clone());
                let (order, flight) = (Rc::clone(&order), Rc::clone(&flight));
                tasks.push(clock.spawn("writer", async move {
                    let _step = seat.step(256).await;
                    order.borrow_mut().push(number);
                    flight.set(flight.get() + 256);
                    assert!(flight.get() <= LARGE_PAGES_MAX, "too much is in flight");
                    clock_of_task.sleep(1_000).await;
                    flight.set(flight.get() - 256);
                }));
            }
        }
        for task in tasks {
            task.await;
        }
        order.take()
    });
    let order = order.unwrap();
    assert_eq!(order.len(), 60);
    let early = &order[2..32];
    for number in 0..3 {
        let steps = early.iter().filter(|other| **other == number).count();
        assert!((9..=12).contains(&steps), "they take turns: {order:?}");
    }
}

/// The most pages of large steps of one client in flight, beside another that takes one small step if `is_beside`.
fn pages_in_flight(is_beside: bool) -> u64 {
    let runtime = Virtual::new(Schedule::Fifo);
    let clock = runtime.clone();
    let rounds = Rounds::default();
    let most = runtime.run(async move {
        let (flight, most) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0)));
        let (small, large) = (rounds.seat(&clock), Rc::new(rounds.seat(&clock)));
        if is_beside {
            drop(small.step(1).await);
        }
        let mut tasks = Vec::new();
        for _ in 0..40 {
            let (large, clock_of_task) = (Rc::clone(&large), clock.clone());
            let (flight, most) = (Rc::clone(&flight), Rc::clone(&most));
            tasks.push(clock.spawn("reader", async move {
                // Its own small steps are no reason to wait.
                drop(large.step(1).await);
                let _step = large.step(256).await;
                flight.set(flight.get() + 256);
                most.set(most.get().max(flight.get()));
                clock_of_task.sleep(1_000).await;
                flight.set(flight.get() - 256);
            }));
        }
        for task in tasks {
            task.await;
        }
        most.get()
    });
    most.unwrap()
}

#[test]
fn few_large_steps_are_in_flight_beside_small_ones() {
    assert_eq!(pages_in_flight(false), LARGE_PAGES_MAX);
    assert_eq!(pages_in_flight(true), LARGE_PAGES_BESIDE_SMALL);
}

#[test]
fn large_steps_that_need_no_device_leave_turns_to_others() {
    let runtime = Virtual::new(Schedule::Fifo);
    let clock = runtime.clone();
    let rounds = Rounds::default();
    let turns = runtime.run(async move {
        let (one, _other) = (rounds.seat(&clock), rounds.seat(&clock));
        let is_over = Rc::new(Cell::new(false));
        let ends = Rc::clone(&is_over);
        let large = clock.spawn("reader", async move {
            for _ in 0..40 {
                drop(one.step(256).await);
            }
            ends.set(true);
        });
        let mut turns = 0;
        while !is_over.get() {
            yield_now().await;
            turns += 1;
        }
        large.await;
        turns
    });
    assert!(turns.unwrap() >= 39);
}

#[test]
fn a_wait_given_up_leaves_nothing() {
    let runtime = Virtual::new(Schedule::Fifo);
    let clock = runtime.clone();
    let rounds = Rounds::default();
    let table = Rc::clone(&rounds.0);
    let run = runtime.run(async move {
        let (one, two) = (rounds.seat(&clock), rounds.seat(&clock));
        let held = one.step(LARGE_PAGES_MAX + 1).await;
        let limit = clock.sleep(1_000);
        crate::first(two.step(100), limit).await;
        drop(held);
        one.turn(SAVED_MAX.unsigned_abs() * 2).await;
        crate::first(one.turn(1), std::future::ready(())).await;
        two.step(100).await;
        yield_now().await;
        yield_now().await;
    });
    run.unwrap();
    assert_eq!((table.waiting.get(), table.large_pages.get()), (0, 0));
    assert!(table.large.borrow().is_empty() && table.seats.borrow().is_empty());
    assert!(!table.is_running.get());
}
