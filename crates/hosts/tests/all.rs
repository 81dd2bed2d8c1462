//! The tests of the engines, in one program: each compiles the engines for its devices and runtimes, and this way they share that
//! work.
#![recursion_limit = "256"]

mod commit_turns;
mod docstore;
mod docstore_live;
mod docstore_load;
mod double_write;
mod double_write_failures;
mod double_write_live;
mod double_write_load;
mod link_bench;
mod link_bench_cuts;
mod log_damage;
mod opening_given_up;
mod page_load;
mod page_load_crash;
mod page_load_reorder;
mod page_load_table;
mod pgbench;
mod records;
mod tpcc;
mod wal_engine;
mod ycsb;

mod clients;
mod histories;
mod live_cuts;
mod loads;
mod made;
mod page_cuts;
mod support;
mod worst_disk;
mod wrong_store;
