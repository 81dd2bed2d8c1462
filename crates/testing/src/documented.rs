//! Command lines in README.md, CHANGELOG.md and docs/, and in help texts: each program tests those of its own commands.
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The pages under the root of the repository, except the diary.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of pages") {
            let path = entry.expect("an entry").path();
            match path.extension() {
                // Nobody types commands from the history.
                _ if path.ends_with("history") => {}
                _ if path.is_dir() => folders.push(path),
                Some(end) if end == "md" => pages.push(path),
                _ => {}
            }
        }
    }
    pages.sort();
    pages
}

/// Checks that `accept` accepts each command line of the pages whose command `is_own`. Returns their number.
///
/// # Panics
/// If it refuses one.
pub fn check_lines<E: Display>(
    is_own: impl Fn(&str) -> bool,
    accept: impl Fn(Vec<String>) -> Result<(), E>,
) -> usize {
    let mut accepted = 0;
    for page in pages() {
        for line in commands_of(&std::fs::read_to_string(&page).expect("a page")) {
            let words = words(&line);
            if !is_a_name(&line) && is_own(&words[1]) {
                accept(words).unwrap_or_else(|error| panic!("{}: {line}: {error}", page.display()));
                accepted += 1;
            }
        }
    }
    accepted
}

/// Checks that the help of each visible command of `whole` ends with examples, which `accept` accepts.
///
/// # Panics
/// If a help has none, or one is refused.
pub fn check_examples<E: Display>(
    whole: &clap::Command,
    accept: impl Fn(Vec<String>) -> Result<(), E>,
) {
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
            accept(words(line)).unwrap_or_else(|error| panic!("{name}: {line}: {error}"));
        }
    }
}

/// Command lines of a page: lines of code blocks, and code spans in the text that have more than a command's name.
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

/// Splits simple text into words as a shell does. It drops comments, and the end of a command: the file after a `>`, the `&` of a
/// background command.
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

/// Whether a page uses the line as a name, for several commands at once or for a command without its arguments; or it is the
/// beginning of a trace format.
fn is_a_name(line: &str) -> bool {
    words(line).len() <= 2
        || line.contains('|')
        || line.contains("...")
        || line == "tantalum pages 1"
}
