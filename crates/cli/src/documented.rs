//! Checks that the command lines in README.md and docs/ are accepted by these programs.
use crate::Cli;
use clap::{CommandFactory, Parser};
use tantalum_console::programs::having;
use tantalum_testing::documented::{each_line, examples, words};

#[test]
fn the_arguments_are_well_formed() {
    Cli::command().debug_assert();
}

/// Command lines of other programs are checked in those programs.
#[test]
fn every_documented_command_line_is_taken() {
    let mut taken = 0;
    each_line(|page, line| {
        let parsed = Cli::try_parse_from(words(line));
        parsed.unwrap_or_else(|error| panic!("{}: {line}: {error}", page.display()));
        taken += 1;
    });
    assert!(taken > 25, "{taken} lines: they are not found any more");
}

/// Every help has examples, and these are accepted.
#[test]
fn every_help_has_examples_that_are_taken() {
    let whole = Cli::command();
    let own = whole.get_subcommands().filter(|command| having(command.get_name()).is_none());
    let own = clap::Command::new("tantalum").subcommands(own.cloned());
    for (name, lines) in examples(&own) {
        for line in lines {
            let parsed = Cli::try_parse_from(words(&line));
            parsed.unwrap_or_else(|error| panic!("{name}: {line}: {error}"));
        }
    }
}
