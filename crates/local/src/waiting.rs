//! Waiting for a lock that another client holds.
//!
//! SQLite asks for a lock, and where it is refused sleeps and asks again. Whoever commits without a pause would have
//! the lock back long before a sleeper asks, time and again. So the server answers "refused" only after a while: who
//! asks meanwhile is there when the lock is given back, before its last holder can ask anew. All its waits together are
//! no longer than it stayed away in between (`allowances`), and the VFS takes them off its sleeps, so that a busy timeout
//! takes as long as was asked for.
use crate::fault_points::Fault;
use crate::locks::Level;
use crate::server::{Holder, Shared};
use std::future::Future;
use tantalum_base::{PageBuf, PageDevice};
use tantalum_runtime::{First, Runtime, first};

/// How long whoever is in the way of a lock is looked at.
const LOOK_NS_MAX: u64 = 50_000_000;
/// How long a lock is waited for at the most. Longer than a commit takes as a rule, and still no wait to somebody without a busy
/// timeout.
pub(crate) const WAIT_NS_MAX: u64 = 25_000_000;

impl<D: PageDevice<Page = PageBuf>> Shared<D> {
    /// Raises a lock as far as it can be had, at once or, if it `may_wait`, soon.
    pub(crate) async fn reach(
        &self,
        runtime: &impl Runtime,
        holder: Holder,
        wanted: Level,
        may_wait: bool,
    ) -> Level {
        let may_wait = may_wait && !Fault::NobodyWaitsForLocks.is_planted();
        if may_wait && self.claim_turn(holder, wanted) {
            let turn = || self.takes_turn(holder, runtime.now_ns()).then_some(());
            self.wait(runtime, holder, self.lock_freed.until(turn)).await;
            self.turns.borrow_mut().asks_no_more(holder);
        }
        let mut level = self.raise_lock(holder, wanted);
        if level < wanted {
            self.look_at_others(runtime, holder.0).await;
            level = self.raise_lock(holder, wanted);
        }
        if level < wanted && may_wait {
            level = self.wait_for_lock(runtime, holder, wanted).await;
        }
        // A SHARED that a writer has on its way is not yet its lock.
        if level >= wanted && (wanted > Level::Shared || !self.turns.borrow().has_claim(holder)) {
            self.allowances.borrow_mut().renew(holder);
        }
        level
    }

    /// Waits until the lock can be had, or `holder` is in the way itself, or for as long as it may.
    async fn wait_for_lock(&self, runtime: &impl Runtime, holder: Holder, wanted: Level) -> Level {
        let had = self.lock_freed.until(|| {
            let level = self.raise_lock(holder, wanted);
            let in_the_way = self.locks.borrow().is_in_the_way(holder);
            (level >= wanted || in_the_way).then_some(level)
        });
        let level = match self.wait(runtime, holder, had).await {
            Some(level) => level,
            None => {
                if wanted > Level::Shared && self.turns.borrow().is_of_another(holder) {
                    self.turns.borrow_mut().end(runtime.now_ns().saturating_sub(WAIT_NS_MAX));
                }
                // Those who gave up do not stay in the queue while nothing is given back.
                self.lock_freed.wake_all();
                self.locks.borrow().level(holder)
            }
        };
        if level < Level::Reserved && wanted > Level::Shared {
            self.turns.borrow_mut().refused(holder);
        }
        level
    }

    /// The outcome of `had`; `None` if `holder` has waited as long as it may.
    async fn wait<T>(
        &self,
        runtime: &impl Runtime,
        holder: Holder,
        had: impl Future<Output = T>,
    ) -> Option<T> {
        let begin_ns = runtime.now_ns();
        let left_ns = self.allowances.borrow().left_ns(holder, begin_ns);
        let had = first(had, runtime.sleep(left_ns)).await;
        self.allowances.borrow_mut().waited(holder, begin_ns, runtime.now_ns());
        match had {
            First::One(had) => Some(had),
            First::Other(()) => None,
        }
    }

    /// Has `holder` ask for its turn, if it was refused before and begins anew; whether it does.
    fn claim_turn(&self, holder: Holder, wanted: Level) -> bool {
        wanted == Level::Shared
            && self.locks.borrow().level(holder) == Level::None
            && self.turns.borrow_mut().asks(holder)
    }

    fn takes_turn(&self, holder: Holder, now_ns: u64) -> bool {
        !self.locks.borrow().is_reserved() && self.turns.borrow_mut().takes(holder, now_ns)
    }

    fn raise_lock(&self, holder: Holder, wanted: Level) -> Level {
        let mut locks = self.locks.borrow_mut();
        let before = locks.level(holder);
        if before < Level::Reserved
            && wanted > Level::Shared
            && self.turns.borrow().is_of_another(holder)
        {
            return before;
        }
        let level = locks.raise(holder, wanted);
        drop(locks);
        if level > Level::Shared && before <= Level::Shared {
            self.turns.borrow_mut().over(holder);
        }
        // Readers that wait to write are in its way now, and have to hear of it.
        if level == Level::Pending && before < level {
            self.lock_freed.wake_all();
        }
        level
    }

    /// Gives a lock back.
    pub(crate) fn lower(&self, holder: Holder, wanted: Level) {
        let had_turn = wanted == Level::None && self.turns.borrow().is_of(holder);
        if had_turn {
            self.turns.borrow_mut().over(holder);
        }
        self.locks.borrow_mut().lower(holder, wanted);
        self.lock_freed.wake_all();
    }

    /// Gives all locks of a client back.
    pub(crate) fn release(&self, client: u64) {
        self.locks.borrow_mut().release(|(of, _)| *of == client);
        self.turns.borrow_mut().release(|(of, _)| *of == client);
        self.allowances.borrow_mut().release(|(of, _)| *of == client);
        self.lock_freed.wake_all();
    }

    /// Takes what those who hold locks have sent already, and lets those go who have died: they may be in nobody's way
    /// any more. Whoever gives a lock back does not wait for an answer, and its next word, to somebody else, may
    /// have been quicker than that.
    async fn look_at_others(&self, runtime: &impl Runtime, client: u64) {
        let mut others: Vec<u64> = self
            .locks
            .borrow()
            .holders()
            .map(|(other, _)| other)
            .filter(|other| *other != client)
            .collect();
        others.dedup();
        let all = async {
            for other in others {
                if let Some(peer) = self.peer(other) {
                    peer.look().taken().await;
                }
            }
        };
        first(all, runtime.sleep(LOOK_NS_MAX)).await;
    }
}
