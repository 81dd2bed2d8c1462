//! The loads for an engine.
use tantalum_base::Result;
use tantalum_base::spec::unknown_name;
use tantalum_hosts::workload::ycsb::Workload;
use tantalum_hosts::workload::{link_bench, pgbench, tpcc};

use super::cell::Engine;

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A core workload of YCSB: records by their keys.
    Ycsb(Workload),
    /// TPC-C, without pauses: transactions over nine tables and two indexes.
    Tpcc,
    /// pgbench's built-in script: transactions over four tables.
    Pgbench,
    /// LinkBench: a social graph in three tables and an index.
    LinkBench,
}

/// The names of the figures under a load, and live.
struct Names {
    load: &'static str,
    title: &'static str,
    figure: &'static str,
    live_figure: &'static str,
}

/// The names of a load, given its word.
macro_rules! names {
    ($load:literal, $title:literal) => {
        Names {
            load: $load,
            title: concat!(
                "Three storage engines on a plain SSD, DuraSSD, SHARE, transactions and flash before a disk: ",
                $title
            ),
            figure: concat!("Engines, ", $title),
            live_figure: concat!("Engines, ", $title, ", live"),
        }
    };
}

impl Load {
    /// The default: shapes exist only for it.
    pub const DEFAULT: Load = Load::Ycsb(Workload::A);

    /// All of them.
    pub const ALL: [Load; 9] = [
        Load::Ycsb(Workload::A),
        Load::Ycsb(Workload::B),
        Load::Ycsb(Workload::C),
        Load::Ycsb(Workload::D),
        Load::Ycsb(Workload::E),
        Load::Ycsb(Workload::F),
        Load::Tpcc,
        Load::Pgbench,
        Load::LinkBench,
    ];

    /// Parses a name.
    ///
    /// # Errors
    /// `InvalidInput`, which lists the names.
    pub fn parse(text: &str) -> Result<Load> {
        Load::ALL
            .into_iter()
            .find(|load| load.name() == text)
            .ok_or_else(|| unknown_name(text, "a load", &Load::ALL.map(Load::name)))
    }

    /// The word that names it.
    pub fn name(self) -> &'static str {
        self.names().load
    }

    /// The title of the experiment.
    pub(super) const fn title(self) -> &'static str {
        self.names().title
    }

    /// The figure of its rows.
    pub(super) fn figure(self) -> &'static str {
        self.names().figure
    }

    /// The figure of its rows that were measured live.
    pub(super) fn live_figure(self) -> &'static str {
        self.names().live_figure
    }

    const fn names(self) -> Names {
        match self {
            Load::Ycsb(Workload::A) => names!("ycsb-a", "YCSB A"),
            Load::Ycsb(Workload::B) => names!("ycsb-b", "YCSB B"),
            Load::Ycsb(Workload::C) => names!("ycsb-c", "YCSB C"),
            Load::Ycsb(Workload::D) => names!("ycsb-d", "YCSB D"),
            Load::Ycsb(Workload::E) => names!("ycsb-e", "YCSB E"),
            Load::Ycsb(Workload::F) => names!("ycsb-f", "YCSB F"),
            Load::Tpcc => names!("tpcc", "TPC-C"),
            Load::Pgbench => names!("pgbench", "pgbench"),
            Load::LinkBench => names!("linkbench", "LinkBench"),
        }
    }

    /// Whether this engine supports it: documents have no transactions.
    pub(super) fn runs_on(self, engine: Engine) -> bool {
        match self {
            Load::Ycsb(_) => true,
            Load::Tpcc | Load::Pgbench | Load::LinkBench => engine != Engine::Documents,
        }
    }

    /// The approximate number of YCSB A operations that do the same amount of work as one of it:
    /// rows read and changed.
    pub(super) fn weight(self) -> u64 {
        match self {
            Load::Ycsb(Workload::E) => 8,
            Load::Ycsb(_) | Load::LinkBench => 1,
            Load::Tpcc => 16,
            Load::Pgbench => 2,
        }
    }

    /// Number of trees that an engine of rows needs for it.
    pub(super) fn trees(self) -> u32 {
        match self {
            Load::Ycsb(_) => 1,
            Load::Tpcc => tpcc::TREES,
            Load::Pgbench => pgbench::TREES,
            Load::LinkBench => link_bench::TREES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::ErrorKind;

    #[test]
    fn every_load_is_found_by_its_name_and_others_are_refused_with_those_there_are() {
        for load in Load::ALL {
            assert_eq!(Load::parse(load.name()).unwrap(), load);
        }
        let refused = Load::parse("ycsb").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let text = refused.to_string();
        assert!(text.contains("ycsb-a, ycsb-b") && text.contains("tpcc, pgbench"), "{text}");
    }
}
