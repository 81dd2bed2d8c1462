//! Fair shares of an executor for connections: deficit round robin.
//!
//! Each connection has a [`Seat`]. Its tasks wait for a turn before each step of their work, and pay for it with
//! credit, which the seats receive in turn. So a client that sends much waits until it has credit again, and a client
//! that sends little always has credit. The device serves requests in order of arrival. So large steps also wait until
//! few pages of other large steps are in flight, fewer still beside a seat that takes small steps, and are granted to one
//! seat after the other.
//!
//! Credit is paid in units of about a page that is copied and checked.
use crate::task::waiting_on;
use crate::{Body, Runtime, yield_now};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Credit that a request costs in addition to its pages: it is received, passed to a task and answered.
const REQUEST: u64 = 8;
/// Pages without content that are examined for one unit of credit.
const SCANNED_PAGES: u64 = 8;
/// Credit that a seat receives when its turn comes.
const QUANTUM: i64 = 16;
/// Credit for all seats together in one turn of the executor. It limits how long a request of another client waits
/// before each of its steps.
const ROUND: i64 = 32;
/// The same while at most one seat is active.
const ROUND_ALONE: i64 = 1024;
/// Most credit that a seat can save while other seats are active; otherwise `ROUND_ALONE`.
const SAVED_MAX: i64 = 128;
/// Most credit that a seat can owe.
const OWED_MAX: i64 = 1024;
/// A seat counts as active for this many turns of the executor after it last asked for a step.
const COMPANY_TURNS: u64 = 64;
/// Steps of more pages are large.
const SMALL_PAGES_MAX: u64 = 16;
/// Pages of large steps in flight at once; one step may have more.
const LARGE_PAGES_MAX: u64 = 2048;
/// The same beside another seat that takes small steps, each of which waits behind them at the device.
const LARGE_PAGES_BESIDE_SMALL: u64 = 256;
/// A seat takes small steps if it took one in the last turns of the executor.
const SMALL_TURNS: u64 = 1024;

/// The credit of a request for `pages` pages. Large steps pay for their pages themselves.
pub const fn request_cost(pages: u64) -> u64 {
    if pages > SMALL_PAGES_MAX { REQUEST } else { REQUEST + pages }
}

/// The credit of examining `pages` pages.
pub const fn scan_cost(pages: u64) -> u64 {
    pages.div_ceil(SCANNED_PAGES)
}

/// The seats of connections that share an executor. Clones are handles to the same seats.
#[derive(Clone, Debug, Default)]
pub struct Rounds(Rc<Table>);

#[derive(Debug, Default)]
struct Table {
    /// In the order in which they receive credit.
    seats: RefCell<VecDeque<Rc<Place>>>,
    /// Seats with large steps that wait, in the order in which they are granted one.
    large: RefCell<VecDeque<Rc<Place>>>,
    large_pages: Cell<u64>,
    /// Whether a large step was granted in this turn of the executor. One that needs no device is done at once: a client that
    /// took one after the other would leave no turn to others.
    is_large_granted: Cell<bool>,
    /// Number of small steps that wait.
    waiting: Cell<usize>,
    turns: Cell<u64>,
    /// Whether a task hands out credit.
    is_running: Cell<bool>,
    next_ticket: Cell<u64>,
}

#[derive(Debug)]
struct Place {
    credit: Cell<i64>,
    /// The turn of the executor in which it last asked for a step.
    asked: Cell<u64>,
    /// The turn of the executor in which it last took a small step at the device.
    small_step: Cell<Option<u64>>,
    small: RefCell<VecDeque<Waiter>>,
    large: RefCell<VecDeque<Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    cost: u64,
    waker: Waker,
}

/// The place of one connection.
pub struct Seat {
    table: Rc<Table>,
    place: Rc<Place>,
    /// Runs a task.
    detach: Box<dyn Fn(Body)>,
}

/// A large step in flight, until dropped.
pub struct Step<'a>(Option<(&'a Seat, u64)>);

impl Rounds {
    /// The seat of one more connection.
    pub fn seat<R: Runtime>(&self, runtime: &R) -> Seat {
        let table = Rc::clone(&self.0);
        let place = Rc::new(Place {
            credit: Cell::new(SAVED_MAX),
            asked: Cell::new(table.turns.get()),
            small_step: Cell::new(None),
            small: RefCell::default(),
            large: RefCell::default(),
        });
        table.seats.borrow_mut().push_back(Rc::clone(&place));
        let runtime = runtime.clone();
        Seat { table, place, detach: Box::new(move |body| runtime.detach("turns", body)) }
    }
}

impl Seat {
    /// Whether there is no other seat.
    pub fn is_alone(&self) -> bool {
        self.table.seats.borrow().len() == 1
    }

    /// Waits for a turn to do work that costs `cost`.
    pub async fn turn(&self, cost: u64) {
        let Place { credit, asked, small, .. } = &*self.place;
        asked.set(self.table.turns.get());
        if small.borrow().is_empty() && credit.get() > 0 {
            self.place.pay(cost);
            return;
        }
        self.wait(small, cost, || self.table.waiting.set(self.table.waiting.get() + 1)).await;
    }

    /// Waits for a turn to read or write `pages` pages of the device. The caller keeps the result until the device has
    /// finished. A small step does not wait, because its pages were paid with the request.
    pub async fn step(&self, pages: u64) -> Step<'_> {
        if pages <= SMALL_PAGES_MAX {
            self.place.small_step.set(Some(self.table.turns.get()));
            return Step(None);
        }
        self.place.asked.set(self.table.turns.get());
        let large = &self.place.large;
        let is_next = self.is_alone() || !self.table.is_large_granted.get();
        let nobody_waits = self.table.large.borrow().is_empty();
        if is_next && nobody_waits && self.table.has_room(&self.place, pages) {
            self.table.grant_step(&self.place, pages);
            self.run();
        } else {
            let is_first = large.borrow().is_empty();
            let join = || {
                if is_first {
                    self.table.large.borrow_mut().push_back(Rc::clone(&self.place));
                }
            };
            self.wait(large, pages, join).await;
        }
        Step(Some((self, pages)))
    }

    /// Waits in `queue` until the step is granted.
    async fn wait(&self, queue: &RefCell<VecDeque<Waiter>>, cost: u64, join: impl FnOnce()) {
        let ticket = self.table.next_ticket.get();
        self.table.next_ticket.set(ticket + 1);
        let mut place = Waiting { seat: self, queue, ticket, cost, is_granted: false };
        let mut join = Some(join);
        poll_fn(|context| {
            if let Some(join) = join.take() {
                let waker = context.waker().clone();
                queue.borrow_mut().push_back(Waiter { ticket, cost, waker });
                join();
                self.run();
                waiting_on("its turn among connections");
                return Poll::Pending;
            }
            place.poll(context)
        })
        .await;
    }

    /// Hands out credit from now on, until no task waits.
    fn run(&self) {
        if self.table.is_running.replace(true) {
            return;
        }
        let table = Rc::clone(&self.table);
        (self.detach)(Box::pin(async move {
            loop {
                yield_now().await;
                if !table.round() {
                    table.is_running.set(false);
                    return;
                }
            }
        }));
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.seats.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.place));
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if let Some((seat, pages)) = self.0.take() {
            seat.table.give_back(pages);
            if !seat.table.large.borrow().is_empty() {
                seat.run();
            }
        }
    }
}

/// A wait for a turn, which may be dropped.
struct Waiting<'a> {
    seat: &'a Seat,
    queue: &'a RefCell<VecDeque<Waiter>>,
    ticket: u64,
    cost: u64,
    is_granted: bool,
}

impl Waiting<'_> {
    fn place(&self) -> Option<usize> {
        self.queue.borrow().binary_search_by_key(&self.ticket, |waiter| waiter.ticket).ok()
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        match self.place() {
            Some(place) => {
                self.queue.borrow_mut()[place].waker.clone_from(context.waker());
                waiting_on("its turn among connections");
                Poll::Pending
            }
            None => {
                self.is_granted = true;
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_granted {
            return;
        }
        let table = &self.seat.table;
        let is_large = std::ptr::eq(self.queue, &raw const self.seat.place.large);
        match self.place() {
            Some(place) => {
                self.queue.borrow_mut().remove(place);
                if !is_large {
                    table.waiting.set(table.waiting.get() - 1);
                } else if self.queue.borrow().is_empty() {
                    let mine = &self.seat.place;
                    table.large.borrow_mut().retain(|other| !Rc::ptr_eq(other, mine));
                }
            }
            // The step was granted, but its task no longer waits for it.
            None if is_large => drop(Step(Some((self.seat, self.cost)))),
            None => {}
        }
    }
}

impl Place {
    fn pay(&self, cost: u64) {
        let cost = i64::try_from(cost).unwrap_or(i64::MAX);
        self.credit.set(self.credit.get().saturating_sub(cost).max(-OWED_MAX));
    }

    /// Grants small steps as long as there is credit; returns their number.
    fn grant(&self) -> usize {
        let mut granted = 0;
        while self.credit.get() > 0 {
            let Some(waiter) = self.small.borrow_mut().pop_front() else { break };
            self.pay(waiter.cost);
            // A wake only queues a task; it cannot re-enter this code.
            waiter.waker.wake();
            granted += 1;
        }
        granted
    }
}

impl Table {
    /// Whether `place` may have one more large step in flight.
    fn has_room(&self, place: &Rc<Place>, pages: u64) -> bool {
        let taken = self.large_pages.get();
        taken == 0 || taken + pages <= self.large_pages_max(place)
    }

    fn large_pages_max(&self, place: &Rc<Place>) -> u64 {
        let turn = self.turns.get();
        let takes_small = |other: &Rc<Place>| {
            let is_recent = other.small_step.get().is_some_and(|at| at + SMALL_TURNS >= turn);
            is_recent && !Rc::ptr_eq(other, place)
        };
        match self.seats.borrow().iter().any(takes_small) {
            true => LARGE_PAGES_BESIDE_SMALL,
            false => LARGE_PAGES_MAX,
        }
    }

    fn grant_step(&self, place: &Place, pages: u64) {
        place.pay(pages);
        self.large_pages.set(self.large_pages.get() + pages);
        self.is_large_granted.set(true);
    }

    fn give_back(&self, pages: u64) {
        self.large_pages.set(self.large_pages.get() - pages);
    }

    /// Hands out the credit of one turn of the executor; returns whether another is needed.
    fn round(&self) -> bool {
        let turn = self.turns.get() + 1;
        self.turns.set(turn);
        let is_company = |place: &&Rc<Place>| {
            !place.small.borrow().is_empty() || place.asked.get() + COMPANY_TURNS >= turn
        };
        let company = self.seats.borrow().iter().filter(is_company).count();
        let (mut left, saved_max) = match company > 1 {
            true => (ROUND, SAVED_MAX),
            false => (ROUND_ALONE, ROUND_ALONE),
        };
        let mut seats = self.seats.borrow_mut();
        let mut content = 0;
        while left > 0 && content < seats.len() {
            let Some(place) = seats.pop_front() else { break };
            if place.credit.get() >= saved_max && place.small.borrow().is_empty() {
                place.credit.set(saved_max);
                content += 1;
            } else {
                place.credit.set(place.credit.get() + QUANTUM);
                self.waiting.set(self.waiting.get() - place.grant());
                left -= QUANTUM;
                content = 0;
            }
            seats.push_back(place);
        }
        drop(seats);
        self.is_large_granted.set(false);
        let granted = self.grant_large(if company > 1 { 1 } else { usize::MAX });
        self.waiting.get() > 0
            || self.is_large_granted.get()
            || (granted && !self.large.borrow().is_empty())
    }

    /// Grants at most `most` large steps, to one seat after the other; returns whether it granted that many.
    fn grant_large(&self, most: usize) -> bool {
        for _ in 0..most {
            let Some(place) = self.large.borrow().front().map(Rc::clone) else { return false };
            let cost = place.large.borrow().front().map_or(0, |waiter| waiter.cost);
            if !self.has_room(&place, cost) {
                return false;
            }
            self.large.borrow_mut().pop_front();
            let Some(waiter) = place.large.borrow_mut().pop_front() else { continue };
            self.grant_step(&place, cost);
            waiter.waker.wake();
            if !place.large.borrow().is_empty() {
                self.large.borrow_mut().push_back(place);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
