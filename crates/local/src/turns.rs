//! Whose turn it is to write, among those who were refused.
//!
//! SQLite asks for SHARED, then for RESERVED; where that is refused it gives both back, sleeps and begins again.
//! Whoever commits without a pause is RESERVED nearly always when a sleeper asks. So one who was refused has a claim:
//! its next SHARED comes when nobody is RESERVED, and until it has asked for RESERVED, or given SHARED back, nobody
//! else becomes that.
use std::collections::BTreeMap;

/// Claims that are remembered; the oldest is forgotten first.
const CLAIMS_MAX: usize = 1 << 10;

/// The claims of those who were refused. An `H` names one who holds locks.
pub(crate) struct Turns<H> {
    /// Who was refused, with the number of that refusal.
    claims: BTreeMap<H, u64>,
    /// Of these, by number, those who are asking.
    asking: BTreeMap<u64, H>,
    /// Whose turn it is, and since when.
    turn: Option<(H, u64)>,
    refusals: u64,
}

impl<H> Default for Turns<H> {
    fn default() -> Self {
        Turns { claims: BTreeMap::new(), asking: BTreeMap::new(), turn: None, refusals: 0 }
    }
}

impl<H: Copy + Ord> Turns<H> {
    /// `holder` was refused, and comes again.
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

    /// `holder` asks for SHARED: whether it has a claim, and so waits for its turn.
    pub(crate) fn asks(&mut self, holder: H) -> bool {
        let claim = self.claims.get(&holder).copied();
        if let Some(number) = claim {
            self.asking.insert(number, holder);
        }
        claim.is_some()
    }

    /// Whether `holder` was refused, and has had no turn since.
    pub(crate) fn has_claim(&self, holder: H) -> bool {
        self.claims.contains_key(&holder)
    }

    /// Where nobody is RESERVED: whether it is the turn of `holder`, which asks.
    pub(crate) fn takes(&mut self, holder: H, now_ns: u64) -> bool {
        let first = self.asking.first_key_value().is_some_and(|(_, first)| *first == holder);
        if self.turn.is_none() && first {
            self.asking.pop_first();
            self.turn = Some((holder, now_ns));
        }
        self.is_of(holder)
    }

    /// `holder` does not wait for its turn any longer; its claim stays.
    pub(crate) fn asks_no_more(&mut self, holder: H) {
        if let Some(number) = self.claims.get(&holder) {
            self.asking.remove(number);
        }
    }

    /// Whether it is the turn of `holder`.
    pub(crate) fn is_of(&self, holder: H) -> bool {
        self.turn.is_some_and(|(other, _)| other == holder)
    }

    /// Whether it is the turn of another one than `holder`.
    pub(crate) fn is_of_another(&self, holder: H) -> bool {
        self.turn.is_some_and(|(other, _)| other != holder)
    }

    /// `holder` has had its turn, or wants none.
    pub(crate) fn over(&mut self, holder: H) {
        self.asks_no_more(holder);
        self.claims.remove(&holder);
        if self.is_of(holder) {
            self.turn = None;
        }
    }

    /// Ends a turn that began before `begun_before_ns`: its holder does not use it.
    pub(crate) fn end(&mut self, begun_before_ns: u64) {
        if let Some((holder, since_ns)) = self.turn
            && since_ns <= begun_before_ns
        {
            self.over(holder);
        }
    }

    /// Forgets those that `are_gone`.
    pub(crate) fn release(&mut self, are_gone: impl Fn(&H) -> bool) {
        self.claims.retain(|holder, _| !are_gone(holder));
        self.asking.retain(|_, holder| !are_gone(holder));
        self.turn = self.turn.filter(|(holder, _)| !are_gone(holder));
    }
}
