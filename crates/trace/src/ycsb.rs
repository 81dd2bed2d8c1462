//! The core workloads of the Yahoo! Cloud Serving Benchmark as published, for `generate` and for storage engines.
//!
//! Source: Cooper, Silberstein, Tam, Ramakrishnan, Sears, "Benchmarking cloud serving systems with YCSB", SoCC 2010,
//! and the workload files of its distribution.
use tantalum_base::Rng;

/// Exponent of YCSB's Zipf distributions.
pub const THETA: f64 = 0.99;

/// Most records that a scan reads; all smaller numbers are equally likely.
pub const SCAN_RECORDS_MAX: u64 = 100;

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads a record.
    Read,
    /// Replaces a record.
    Update,
    /// Adds a record.
    Insert,
    /// Reads records in the order of their keys.
    Scan,
    /// Reads a record and then replaces it.
    ReadModifyWrite,
}

impl Kind {
    /// All kinds, in YCSB's order.
    pub const ALL: [Kind; 5] =
        [Kind::Read, Kind::Update, Kind::Insert, Kind::Scan, Kind::ReadModifyWrite];
}

/// The distribution of the requested records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requests {
    /// A few records very often; they are scattered among the others.
    Zipfian,
    /// The more recently a record was inserted, the more often.
    Latest,
    /// Each as often as any other.
    Uniform,
}

/// Number of operations of each kind per hundred; together a hundred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mix {
    /// Reads.
    pub read: u64,
    /// Updates.
    pub update: u64,
    /// Inserts.
    pub insert: u64,
    /// Scans.
    pub scan: u64,
    /// Reads of a record, each followed by an update of it.
    pub read_modify_write: u64,
}

impl Mix {
    /// The share of a kind, in percent.
    pub fn percent(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Read => self.read,
            Kind::Update => self.update,
            Kind::Insert => self.insert,
            Kind::Scan => self.scan,
            Kind::ReadModifyWrite => self.read_modify_write,
        }
    }

    /// Draws the kind of the next operation.
    pub fn draw(&self, rng: &mut Rng) -> Kind {
        let mut left = rng.below(100);
        for kind in Kind::ALL {
            match left.checked_sub(self.percent(kind)) {
                Some(beyond) => left = beyond,
                None => return kind,
            }
        }
        Kind::ReadModifyWrite
    }
}

/// A core workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// Session store: half reads, half updates.
    A,
    /// Photo tagging: few updates.
    B,
    /// Profile cache: only reads.
    C,
    /// User status: the latest records are read.
    D,
    /// Threads of a conversation: short scans.
    E,
    /// User records: half reads; the other half reads, changes and writes back.
    F,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Workload; 6] =
        [Workload::A, Workload::B, Workload::C, Workload::D, Workload::E, Workload::F];

    /// Their letters, as used in text parameters.
    pub const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    /// The workload of a letter; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Workload> {
        let at = Workload::NAMES.iter().position(|letter| *letter == name)?;
        Some(Workload::ALL[at])
    }

    /// The shares of its operations.
    pub fn mix(self) -> Mix {
        let none = Mix::default();
        match self {
            Workload::A => Mix { read: 50, update: 50, ..none },
            Workload::B => Mix { read: 95, update: 5, ..none },
            Workload::C => Mix { read: 100, ..none },
            Workload::D => Mix { read: 95, insert: 5, ..none },
            Workload::E => Mix { scan: 95, insert: 5, ..none },
            Workload::F => Mix { read: 50, read_modify_write: 50, ..none },
        }
    }

    /// The distribution of the records that it requests.
    pub fn requests(self) -> Requests {
        match self {
            Workload::D => Requests::Latest,
            _ => Requests::Zipfian,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_drawn_as_often_as_the_mix_says() {
        for workload in Workload::ALL {
            let (mix, rng) = (workload.mix(), &mut Rng::new(3));
            assert_eq!(Kind::ALL.iter().map(|kind| mix.percent(*kind)).sum::<u64>(), 100);
            let drawn: Vec<Kind> = (0..20_000).map(|_| mix.draw(rng)).collect();
            for kind in Kind::ALL {
                let share = drawn.iter().filter(|of| **of == kind).count() as f64 / 200.0;
                let expected = mix.percent(kind) as f64;
                assert!((share - expected).abs() < 1.5, "{workload:?}, {kind:?}: {share} %");
                assert!(expected > 0.0 || share == 0.0, "{workload:?} has no {kind:?}");
            }
        }
    }
}
