//! FIFO: the zone that was opened first, regardless of its live content.
//!
//! Source: Menon, "A performance comparison of RAID-5 and log-structured arrays", HPDC 1995, and
//! Robinson, "Analysis of steady-state segment storage utilizations in a log-structured file system
//! with least-utilized segment cleaning", ACM SIGOPS 30(4), 1996; called LRU cleaning by Desnoyers,
//! "Analytic modeling of SSD write performance", SYSTOR 2012. It levels wear by itself and has a
//! closed form. It moves the cold content of the device once in every round.
use super::{Candidate, Cleaning};

/// Cleans the zone that was opened first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl Cleaning for Fifo {
    fn choose(&mut self, candidates: &[Candidate], _openings: u64) -> Option<usize> {
        (0..candidates.len()).min_by_key(|at| candidates[*at].opening)
    }
}
