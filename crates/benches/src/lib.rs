//! Benchmarks alone: `benches/CRATE/NAME.rs` is the bench `CRATE_NAME`, which `scripts/bench CRATE/NAME` runs
//! ([docs/benchmarks.md](../../../docs/benchmarks.md)).
