//! The command lines in README.md and docs/ are ones that this program takes.
use crate::Cli;
use crate::commands::Command;
use clap::{CommandFactory, Parser};
use std::path::{Path, PathBuf};

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for folder in ["docs", "docs/devices", "docs/manual"] {
        let listed = std::fs::read_dir(root.join(folder)).unwrap();
        let listed = listed.map(|entry| entry.unwrap().path());
        pages.extend(listed.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.sort();
    pages
}

/// Command lines of a page: lines of code blocks, and whole spans of code in the text that have more
/// than a command's name.
fn commands_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            // A dependency's line in a Cargo.toml begins with the same word.
            let is_command = |line: &&str| line.starts_with("tantalum ") && !line.contains(" = ");
            found.extend(Some(line.trim()).filter(is_command).map(str::to_owned));
        } else {
            prose.push_str(line);
            prose.push(' ');
        }
    }
    let spans = prose.split('`').skip(1).step_by(2);
    found.extend(spans.filter(|span| span.starts_with("tantalum ")).map(str::to_owned));
    found
}

/// Words as a shell makes them of this simple text; a comment is left out, and so is what ends a command: the file
/// behind a `>`, the `&` of one that runs in the background.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            '#' | '>' | '&' if !quoted && words.last().is_some_and(String::is_empty) => break,
            other => words.last_mut().expect("one").push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What a page says of several commands at once, or of a command without its arguments; and how one
/// trace format begins.
fn is_a_name(line: &str) -> bool {
    words(line).len() <= 2
        || line.contains('|')
        || line.contains("...")
        || line == "tantalum pages 1"
}

#[test]
fn every_documented_command_line_is_taken() {
    let mut taken = 0;
    for page in pages() {
        for line in commands_of(&std::fs::read_to_string(&page).unwrap()) {
            if is_a_name(&line) {
                continue;
            }
            let parsed = Cli::try_parse_from(words(&line));
            let parsed =
                parsed.unwrap_or_else(|error| panic!("{}: {line}: {error}", page.display()));
            if let Command::Replay(args) = &parsed.command {
                let said = args.check();
                said.unwrap_or_else(|error| panic!("{}: {line}: {error:#}", page.display()));
            }
            taken += 1;
        }
    }
    assert!(taken > 25, "{taken} lines: they are not found any more");
}

/// Every command says how it is used, and what it says works.
#[test]
fn every_help_has_examples_that_are_taken() {
    let whole = Cli::command();
    let mut left: Vec<&clap::Command> = whole.get_subcommands().collect();
    while let Some(command) = left.pop() {
        if command.has_subcommands() {
            left.extend(command.get_subcommands());
            continue;
        }
        if command.is_hide_set() {
            continue;
        }
        let name = command.get_name();
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, examples) =
            after.split_once("Examples:\n").unwrap_or_else(|| panic!("{name}: no examples"));
        for line in examples.lines() {
            let parsed = Cli::try_parse_from(words(line));
            let parsed = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            if let Command::Replay(args) = &parsed.command {
                args.check().unwrap_or_else(|error| panic!("{line}: {error:#}"));
            }
        }
    }
}
