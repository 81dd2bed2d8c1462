//! Common to all programs.
//!
//! ```text
//! verdict       exit codes, errors as one line
//! interruption  the end of a long run on Ctrl-C
//! output        options that several commands accept, printing, writing
//! whole_file    files that appear when they are complete
//! progress      a bar for everything that takes over two seconds, on a terminal only
//! programs      the programs, their commands, and their paths
//! man_pages     manual pages, one per command
//! completions   completion scripts for shells
//! ```
// `println!` panics if the reader of the output has gone, such as `head`: see `output::print_line`.
#![deny(clippy::print_stdout)]

pub mod completions;
pub mod interruption;
pub mod man_pages;
pub mod output;
pub mod programs;
pub mod progress;
mod verdict;
pub mod whole_file;

pub use verdict::{AFTER_HELP, Verdict, run};
