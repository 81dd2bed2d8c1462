//! The command lines in README.md and docs/ are valid. Those of other programs' commands are also tested in these programs.
use crate::Cli;
use clap::{CommandFactory, Parser};
use tantalum_console::programs::having;
use tantalum_testing::documented::{check_examples, check_lines};

fn accept(words: Vec<String>) -> anyhow::Result<()> {
    Cli::try_parse_from(words)?;
    Ok(())
}

#[test]
fn the_arguments_are_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn every_documented_command_line_is_taken() {
    let accepted = check_lines(|_| true, accept);
    assert!(accepted > 25, "{accepted} lines: they are not found any more");
}

#[test]
fn every_help_has_examples_that_are_taken() {
    let whole = Cli::command();
    let own = whole.get_subcommands().filter(|command| having(command.get_name()).is_none());
    check_examples(&clap::Command::new("tantalum").subcommands(own.cloned()), accept);
}
