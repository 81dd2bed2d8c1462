//! Decides which damaged parts of a zone must have been whole once.
//!
//! A power cut leaves appends that are not whole, and nothing on the medium marks them. So only content that is known
//! to have been durable while the device ran can count as damaged. A *run* of the device lasts from an opening to a
//! close, a kill or a power cut. The numbers of zone openings separate the runs, because recovery leaves a gap between
//! those of two runs. In a run
//!
//! - everything is durable if the run ended with a close. Either the checkpoint in force records that, or a later run
//!   continued with the next version (after a power cut there is a gap);
//! - everything that the checkpoint in force covers is durable, and so are all checkpoints up to that one. The
//!   checkpoint that the anchors name was durable too, even if another one is in force because it is damaged;
//! - hosts' changes are durable up to the highest watermark that a header of the run states. They are placed in the
//!   order of their versions;
//! - copies are durable if cleaning wrote a list after them. Cleaning makes one append at a time.
use tantalum_base::Version;
use tantalum_runtime::Finding;

use crate::fault_points::Fault;
use crate::recovery::{SKIPPED_EPOCHS, SKIPPED_VERSIONS};

/// A part of a zone that is not whole.
pub(super) struct Suspect {
    /// Its offset in the zone.
    pub offset: u32,
    /// It was durable if every change up to this version was.
    pub durable_with: Option<Version>,
    /// It was durable if this checkpoint was ever in force.
    pub checkpoint: Option<u64>,
    /// Something else proves that it was durable.
    pub was_durable: bool,
    /// Cleaning wrote it; cleaning makes all copies of a zone durable before it lists the dead versions of that zone.
    pub by_cleaning: bool,
    pub finding: Finding,
}

/// The facts about a zone in use that are needed to judge it.
pub(super) struct ZoneTraces {
    pub epoch: u64,
    /// Leading slots that the checkpoint in force covers, if it is of the same run.
    pub covered_slots: u32,
    /// The first and the last version that hosts wrote here.
    pub versions: Option<(Version, Version)>,
    /// The highest durable watermark that is stated here.
    pub stated: Version,
    /// Whether cleaning wrote a list here; all copies before it were durable then.
    pub has_list: bool,
    pub suspects: Vec<Suspect>,
}

/// A run of the device.
struct Run {
    last_epoch: u64,
    versions: Option<(Version, Version)>,
    stated: Version,
    /// The latest zone with a list.
    list_epoch: u64,
    closed: bool,
}

/// The checkpoint in force.
pub(super) struct InForce {
    pub number: u64,
    /// The checkpoint that the anchors name.
    pub named: Option<u64>,
    /// Number of the opening of the zone that it ends in.
    pub epoch: u64,
    /// Every change up to this version was durable then.
    pub durable: Version,
    /// Nothing was appended after it.
    pub clean: bool,
}

/// Returns the findings about parts that must have been whole once.
pub(super) fn judge(mut zones: Vec<ZoneTraces>, in_force: &InForce) -> Vec<Finding> {
    if Fault::OldContentUnchecked.is_planted() {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..zones.len()).collect();
    order.sort_unstable_by_key(|at| zones[*at].epoch);
    let mut runs: Vec<Run> = Vec::new();
    for at in order {
        let zone = &zones[at];
        let is_next = |run: &&mut Run| {
            zone.epoch - run.last_epoch < SKIPPED_EPOCHS / 2 || Fault::RunsNotToldApart.is_planted()
        };
        match runs.last_mut().filter(is_next) {
            Some(run) => run.add(zone),
            None => runs.push(Run::new(zone)),
        }
    }
    let run_of = |runs: &[Run], epoch: u64| runs.partition_point(|run| run.last_epoch < epoch);
    let last = run_of(&runs, in_force.epoch);
    if let Some(run) = runs.get_mut(last) {
        run.stated = run.stated.max(in_force.durable);
        run.closed = in_force.clean;
    }
    for at in 0..runs.len() {
        runs[at].closed |= runs[at + 1..].iter().any(|later| runs[at].was_closed_before(later));
    }
    let mut found = Vec::new();
    for zone in &mut zones {
        let number = run_of(&runs, zone.epoch);
        let run = &runs[number];
        for suspect in std::mem::take(&mut zone.suspects) {
            let of_checkpoint = suspect.checkpoint.is_some_and(|number| in_force.implies(number));
            if of_checkpoint || suspect.must_be_whole(zone, run, number == last) {
                found.push(suspect.finding);
            }
        }
    }
    found
}

impl InForce {
    /// Whether all pages of checkpoint `number` were durable.
    fn implies(&self, number: u64) -> bool {
        number <= self.number || Some(number) == self.named
    }
}

impl Run {
    fn new(zone: &ZoneTraces) -> Self {
        let (last_epoch, stated) = (zone.epoch, Version::NEVER);
        let mut run = Run { last_epoch, versions: None, stated, list_epoch: 0, closed: false };
        run.add(zone);
        run
    }

    /// Adds a zone, in the order of epochs.
    fn add(&mut self, zone: &ZoneTraces) {
        self.last_epoch = zone.epoch;
        self.stated = self.stated.max(zone.stated);
        if zone.has_list {
            self.list_epoch = zone.epoch;
        }
        if let Some((first, last)) = zone.versions {
            let (known_first, known_last) = self.versions.unwrap_or((first, last));
            self.versions = Some((known_first.min(first), known_last.max(last)));
        }
    }

    /// Whether this run ended with a close. Then the versions of hosts continue in the `later` run; otherwise a
    /// recovery skipped many versions between the two.
    fn was_closed_before(&self, later: &Run) -> bool {
        let last = self.versions.map_or(self.stated, |(_, last)| last.max(self.stated));
        let goes_on = |(first, _): (Version, Version)| {
            last > Version::NEVER && first > last && first.0 - last.0 < SKIPPED_VERSIONS
        };
        later.versions.is_some_and(goes_on)
    }
}

impl Suspect {
    fn must_be_whole(&self, zone: &ZoneTraces, run: &Run, is_last_run: bool) -> bool {
        self.was_durable
            || Fault::LeftoversTakenForDamage.is_planted()
            || run.closed
            || is_last_run && self.offset < zone.covered_slots
            || self.durable_with.is_some_and(|version| version <= run.stated)
            || self.by_cleaning && zone.epoch < run.list_epoch
    }
}
