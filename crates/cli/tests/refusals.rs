//! Every refusal that the crates list has a row in `docs/refusals.md`, and each row is provoked: the message has the
//! row's words, and the commands and options that the row names as the remedy.
mod support;

#[path = "refusals/provoked.rs"]
mod provoked;

use provoked::{PROVOKED, Provoked};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tantalum_base::Refusal;

/// Files in which every error created is a refusal, so that none can be added without being listed.
const REFUSING: [&str; 9] = [
    "crates/volume/src/claim.rs",
    "crates/volume/src/create.rs",
    "crates/volume/src/lost_flash.rs",
    "crates/volume/src/members.rs",
    "crates/volume/src/places.rs",
    "crates/volume/src/space.rs",
    "crates/cli/src/commands/attach_plan.rs",
    "crates/cli/src/commands/rescue.rs",
    "crates/cli/src/commands/tiered.rs",
];

fn of_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    let path = of_repository(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn listed() -> Vec<Refusal> {
    let media = tantalum_media::block_store::refusals::ALL;
    [media, tantalum_cache::refusals::ALL, tantalum_volume::refusals::ALL].concat()
}

/// A row of the page: the words, and the commands and options of the remedy.
struct Row {
    words: String,
    remedies: Vec<String>,
}

fn rows() -> Vec<Row> {
    let page = read("docs/refusals.md");
    let tables = page.split("## Tests").next().unwrap();
    let rows = tables.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [words, when, remedy] = cells[..] else { panic!("not three cells: {line}") };
        assert!(!when.is_empty() && !remedy.is_empty(), "{line}");
        let code = |text: &str| {
            text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<String>>()
        };
        let is_remedy = |code: &String| code.starts_with("tantalum ") || code.starts_with("--");
        let remedies = code(remedy).into_iter().filter(is_remedy).collect();
        Row { words: code(words).remove(0), remedies }
    })
    .collect()
}

#[test]
fn every_refusal_has_a_row_and_every_row_is_a_refusal() {
    let listed = listed();
    let words: BTreeSet<&str> = listed.iter().map(|refusal| refusal.words()).collect();
    assert_eq!(words.len(), listed.len(), "two refusals have the same words");
    let rows = rows();
    let told: BTreeSet<&str> = rows.iter().map(|row| &*row.words).collect();
    assert_eq!(told.len(), rows.len(), "two rows have the same words");
    let missing: Vec<_> = words.difference(&told).collect();
    let unknown: Vec<_> = told.difference(&words).collect();
    assert!(missing.is_empty(), "docs/refusals.md has no row for {missing:?}");
    assert!(unknown.is_empty(), "no refusal has the words {unknown:?} of docs/refusals.md");
    let provoked: BTreeSet<&str> = PROVOKED.iter().map(|(refusal, _)| refusal.words()).collect();
    assert_eq!(provoked.len(), PROVOKED.len(), "one is provoked twice");
    let missing: Vec<_> = words.difference(&provoked).collect();
    assert!(missing.is_empty(), "nothing provokes {missing:?}");
}

#[test]
fn no_refusal_is_made_without_being_listed() {
    for path in REFUSING {
        let source = read(path);
        let source = source.split("#[cfg(test)]").next().unwrap();
        for (at, line) in (1..).zip(source.lines()) {
            let makes = ["Error::new(", "bail!(", "anyhow!("].iter().any(|it| line.contains(it));
            assert!(!makes, "{path}, line {at}: make it by a `Refusal`, and list that");
        }
    }
}

#[test]
fn each_row_is_provoked_and_says_what_to_do() {
    let rows = rows();
    let mut failed = Vec::new();
    for (refusal, provoked) in PROVOKED {
        let words = refusal.words();
        let row = rows.iter().find(|row| row.words == words).expect("it has a row");
        if let Some(told) = provoked.message() {
            let lacks = |text: &&str| !told.contains(*text);
            let remedies = row.remedies.iter().map(String::as_str);
            let lacking: Vec<_> = std::iter::once(words).chain(remedies).filter(lacks).collect();
            if !lacking.is_empty() {
                failed.push(format!("{lacking:?} is not in: {told}"));
            }
        }
        if let Provoked::By(test, _) = provoked {
            let (path, name) = test.split_once("::").expect("file::test");
            assert!(read(path).contains(&format!("fn {name}(")), "{test} is not there");
        }
        if let Provoked::By(_, why) | Provoked::Never(why) = provoked {
            assert!(!why.is_empty());
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
