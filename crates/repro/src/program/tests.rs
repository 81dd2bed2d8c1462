//! The program accepts the command lines in README.md and docs/ that use its commands.
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
fn it_has_the_commands_for_which_it_is_called() {
    let whole = Cli::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<&str> = shown.map(|command| command.get_name()).collect();
    let program = having(names[0]).expect("a program of the table");
    assert_eq!((program.name, program.commands), ("tantalum-repro", &names[..]));
}

#[test]
fn every_documented_command_line_is_taken() {
    let is_own =
        |command: &str| having(command).is_some_and(|program| program.name == "tantalum-repro");
    let accepted = check_lines(is_own, accept);
    assert!(accepted > 4, "{accepted} lines: they are not found any more");
}

#[test]
fn every_help_has_examples_that_are_taken() {
    check_examples(&Cli::command(), accept);
}
