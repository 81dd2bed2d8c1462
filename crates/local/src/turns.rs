//! The order of writing among refused clients.
//!
//! SQLite requests SHARED, then RESERVED. If RESERVED is refused, it releases both, sleeps and starts again. A client
//! that commits without a pause nearly always holds RESERVED when a sleeping client tries again. So a refused client
//! gets a claim: its next SHARED waits until no holder is RESERVED. Then it has its turn: until it has requested
//! RESERVED or released SHARED, no other holder gets RESERVED.
use std::collections::BTreeMap;

/// Maximum number of claims; above it, the oldest one is dropped.
const CLAIMS_MAX: usize = 1 << 10;

/// The claims of refused holders. An `H` identifies a lock holder.
pub(crate) struct Turns<H> {
    /// The refused holders, each with the number of its refusal.
    claims: BTreeMap<H, u64>,
    /// The claims of these that are waiting for their turn, by number.
    asking: BTreeMap<u64, H>,
    /// The holder whose turn it is, and the time at which the turn began.
    turn: Option<(H, u64)>,
    refusals: u64,
}

impl<H> Default for Turns<H> {
    fn default() -> Self {
        Turns { claims: BTreeMap::new(), asking: BTreeMap::new(), turn: None, refusals: 0 }
    }
}

impl<H: Copy + Ord> Turns<H> {
    /// Records that `holder` was refused, and gives it a claim.
    pub(crate) fn refused(&mut self, holder: H) {
        self.refusals += 1;
        self.claims.entry(holder).or_insert(self.refusals);
        if self.claims.len() > CLAIMS_MAX
            && let Some(oldest) =
                self.claims.iter().min_by_key(|claim| claim.1).map(|claim| *claim.0)
        {
            self.over(oldest);
        }
    }

    /// Records that `holder` requests SHARED. Returns whether it has a claim, so that it waits for its turn.
    pub(crate) fn asks(&mut self, holder: H) -> bool {
        let claim = self.claims.get(&holder).copied();
        if let Some(number) = claim {
            self.asking.insert(number, holder);
        }
        claim.is_some()
    }

    /// Whether `holder` was refused and has had no turn since.
    pub(crate) fn has_claim(&self, holder: H) -> bool {
        self.claims.contains_key(&holder)
    }

    /// Starts the turn of the first waiting holder, if that is `holder`. Returns whether it is the turn of `holder`.
    /// Only called if no holder is RESERVED.
    pub(crate) fn takes(&mut self, holder: H, now_ns: u64) -> bool {
        let first = self.asking.first_key_value().is_some_and(|(_, first)| *first == holder);
        if self.turn.is_none() && first {
            self.asking.pop_first();
            self.turn = Some((holder, now_ns));
        }
        self.is_of(holder)
    }

    /// Records that `holder` no longer waits for its turn; its claim stays.
    pub(crate) fn asks_no_more(&mut self, holder: H) {
        if let Some(number) = self.claims.get(&holder) {
            self.asking.remove(number);
        }
    }

    /// Whether it is the turn of `holder`.
    pub(crate) fn is_of(&self, holder: H) -> bool {
        self.turn.is_some_and(|(other, _)| other == holder)
    }

    /// Whether it is the turn of a holder other than `holder`.
    pub(crate) fn is_of_another(&self, holder: H) -> bool {
        self.turn.is_some_and(|(other, _)| other != holder)
    }

    /// Ends the turn and the claim of `holder`.
    pub(crate) fn over(&mut self, holder: H) {
        self.asks_no_more(holder);
        self.claims.remove(&holder);
        if self.is_of(holder) {
            self.turn = None;
        }
    }

    /// Ends the turn if it began at or before `begun_before_ns`: its holder does not use it.
    pub(crate) fn end(&mut self, begun_before_ns: u64) {
        if let Some((holder, since_ns)) = self.turn
            && since_ns <= begun_before_ns
        {
            self.over(holder);
        }
    }

    /// Removes the holders that `are_gone`.
    pub(crate) fn release(&mut self, are_gone: impl Fn(&H) -> bool) {
        self.claims.retain(|holder, _| !are_gone(holder));
        self.asking.retain(|_, holder| !are_gone(holder));
        self.turn = self.turn.filter(|(holder, _)| !are_gone(holder));
    }
}
