//! The time for which a server may let each client wait for a lock.
//!
//! A refused client sleeps and requests the lock again, and its busy timeout counts only these sleeps. If the server
//! let it wait the full time with each request, the timeout would take several times as long as configured. So a client
//! waits here no longer than it stayed away before.
use std::collections::BTreeMap;

/// Above this number, entries with a full allowance are dropped.
const REMEMBERED_MAX: usize = 1 << 10;

/// The remaining waiting time of each lock holder that waited recently. An `H` identifies a holder.
pub(crate) struct Allowances<H> {
    whole_ns: u64,
    /// The remaining time, and the time at which it was recorded.
    used: BTreeMap<H, (u64, u64)>,
}

impl<H: Copy + Ord> Allowances<H> {
    /// Allowances of at most `whole_ns` each.
    pub(crate) fn new(whole_ns: u64) -> Self {
        Allowances { whole_ns, used: BTreeMap::new() }
    }

    /// The time for which `holder` may wait now.
    pub(crate) fn left_ns(&self, holder: H, now_ns: u64) -> u64 {
        self.used.get(&holder).map_or(self.whole_ns, |used| self.grown(*used, now_ns))
    }

    /// Records that `holder` waited from `begin_ns` until now.
    pub(crate) fn waited(&mut self, holder: H, begin_ns: u64, now_ns: u64) {
        let left_ns = self.left_ns(holder, begin_ns).saturating_sub(now_ns - begin_ns);
        self.used.insert(holder, (left_ns, now_ns));
        if self.used.len() > REMEMBERED_MAX {
            let mut used = std::mem::take(&mut self.used);
            used.retain(|_, used| self.grown(*used, now_ns) < self.whole_ns);
            self.used = used;
        }
    }

    /// Makes the allowance of `holder` full again: it has got its lock.
    pub(crate) fn renew(&mut self, holder: H) {
        self.used.remove(&holder);
    }

    /// Removes the holders that `are_gone`.
    pub(crate) fn release(&mut self, are_gone: impl Fn(&H) -> bool) {
        self.used.retain(|holder, _| !are_gone(holder));
    }

    fn grown(&self, (left_ns, at_ns): (u64, u64), now_ns: u64) -> u64 {
        left_ns.saturating_add(now_ns.saturating_sub(at_ns)).min(self.whole_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_used_up_by_waiting_and_grows_as_long_as_the_client_stays_away() {
        let mut allowances = Allowances::new(25);
        assert_eq!(allowances.left_ns('a', 100), 25);
        allowances.waited('a', 100, 120);
        assert_eq!((allowances.left_ns('a', 120), allowances.left_ns('b', 120)), (5, 25));
        assert_eq!((allowances.left_ns('a', 123), allowances.left_ns('a', 900)), (8, 25));
        allowances.waited('a', 123, 140);
        assert_eq!(allowances.left_ns('a', 140), 0);
        allowances.renew('a');
        assert_eq!(allowances.left_ns('a', 140), 25);
    }

    #[test]
    fn those_who_waited_long_ago_take_no_memory() {
        let mut allowances = Allowances::new(25);
        for holder in 0..10_000u64 {
            allowances.waited(holder, holder, holder + 1);
        }
        assert!(allowances.used.len() <= REMEMBERED_MAX + 1);
    }
}
