//!
//! ```text
//! verdict       exit codes, errors as one line
//! interruption  what a long run does with Ctrl-C
//! output        options that several commands take, and all that is printed or written
//! progress      a bar on anything over two seconds, on a terminal only
//! programs      which program has which command, and how it is found
//! man_pages     a manual page a command
//! completions   what a shell needs to complete command lines
//! ```
// `println!` panics where whoever reads the output has gone, as `head` does: see `output::print_line`.
#![deny(clippy::print_stdout)]

pub mod completions;
pub mod interruption;
pub mod man_pages;
pub mod output;
pub mod programs;
pub mod progress;
mod verdict;

pub use verdict::{AFTER_HELP, Verdict, run};
