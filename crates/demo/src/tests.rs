//! Checks that the command lines in README.md and docs/ for commands of this program are accepted.
use crate::Cli;
use clap::{CommandFactory, Parser};
use tantalum_console::programs::having;
use tantalum_testing::documented::{each_line, examples, words};

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
    assert_eq!((program.name, program.commands), ("tantalum-demo", &names[..]));
}

/// There may be none with more than the command's name.
#[test]
fn every_documented_command_line_is_taken() {
    each_line(|page, line| {
        let words = words(line);
        if having(&words[1]).is_none_or(|program| program.name != "tantalum-demo") {
            return;
        }
        let parsed = Cli::try_parse_from(words);
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: {line}: {error}", page.display()));
        drop(parsed);
    });
}

/// Every help has examples, and these are accepted.
#[test]
fn every_help_has_examples_that_are_taken() {
    for (name, lines) in examples(&Cli::command()) {
        for line in lines {
            let parsed = Cli::try_parse_from(words(&line));
            let parsed = parsed.unwrap_or_else(|error| panic!("{name}: {line}: {error}"));
            drop(parsed);
        }
    }
}
