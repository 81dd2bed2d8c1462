//! Waiting for a lock that another client holds.
//!
//! If a lock is refused, SQLite sleeps and requests it again. A client that commits without a pause would always have the lock
//! back long before a sleeping client tries again. So the server answers "refused" only after a while: a waiting client gets the
//! lock when it is released, before its last holder can request it again. All waits of a client together are no longer than the
//! time for which it stayed away in between (`allowances`), and the VFS subtracts them from its sleeps, so that a busy timeout
//! takes as long as configured.
use crate::fault_points::Fault;
use crate::locks::Level;
use crate::server::{Holder, Shared};
use std::future::Future;
use tantalum_base::{PageBuf, PageDevice};
use tantalum_runtime::{First, Runtime, first};

/// Limit on the time for checking whether holders of the lock have released it or died.
const LOOK_NS_MAX: u64 = 50_000_000;
/// Maximum wait for a lock. Usually longer than a commit takes, and still short enough for a client without a busy timeout.
pub(crate) const WAIT_NS_MAX: u64 = 25_000_000;

impl<D: PageDevice<Page = PageBuf>> Shared<D> {
    /// Raises a lock as far as possible, at once or, if it `may_wait`, after a short wait.
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
        // If a refused writer gets SHARED on its way to RESERVED, this does not renew its allowance.
        if level >= wanted && (wanted > Level::Shared || !self.turns.borrow().has_claim(holder)) {
            self.allowances.borrow_mut().renew(holder);
        }
        level
    }

    /// Waits until the lock is available, `holder` itself blocks a pending writer, or its allowance is used up.
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
                // Wakes holders that have given up, so that they do not stay in the queue until the next release.
                self.lock_freed.wake_all();
                self.locks.borrow().level(holder)
            }
        };
        if level < Level::Reserved && wanted > Level::Shared {
            self.turns.borrow_mut().refused(holder);
        }
        level
    }

    /// Waits for `had`; `None` if the allowance of `holder` is used up first.
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

    /// Queues `holder` for its turn if it was refused before and starts again. Returns whether it was queued.
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
        // Readers that wait to write now block this writer. They are woken, so that their wait ends.
        if level == Level::Pending && before < level {
            self.lock_freed.wake_all();
        }
        level
    }

    /// Lowers a lock, or releases it.
    pub(crate) fn lower(&self, holder: Holder, wanted: Level) {
        let had_turn = wanted == Level::None && self.turns.borrow().is_of(holder);
        if had_turn {
            self.turns.borrow_mut().over(holder);
        }
        self.locks.borrow_mut().lower(holder, wanted);
        self.lock_freed.wake_all();
    }

    /// Releases all locks of a client.
    pub(crate) fn release(&self, client: u64) {
        self.locks.borrow_mut().release(|(of, _)| *of == client);
        self.turns.borrow_mut().release(|(of, _)| *of == client);
        self.allowances.borrow_mut().release(|(of, _)| *of == client);
        self.lock_freed.wake_all();
    }

    /// Receives all messages that other lock holders have already sent, and lets dead ones end. They may hold no conflicting lock
    /// any more: a client does not wait for an answer when it releases a lock, so another process may learn of the release before
    /// this server has received it.
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
