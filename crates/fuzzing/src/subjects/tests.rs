//! Whether every structure occurs, and whether its changes are read.
use super::*;
use crate::structures::Means;

/// The names of the structures of `S` that occur in its images must be `expected`. After a change, each must still be found as one
/// whose checksums are right.
fn all_occur<S: Subject>(expected: &[&str]) {
    let scene = S::scene();
    assert_eq!(scene.names(), expected);
    for input in seeds(scene, 0) {
        let Changed { stores, names, .. } = Changed::new(scene, &input[1..]);
        if stores == scene.stores || !is_plain(scene, &input) {
            continue;
        }
        let changed = Scene::new(stores, scene.limits);
        let count = |scene: &Scene, name| {
            let named = scene.named.iter().find(|(named, _)| *named == name);
            named.map_or(0, |(_, same)| same.len())
        };
        assert!(count(&changed, names[0]) >= count(scene, names[0]), "{}: {input:?}", names[0]);
    }
    let (whole, _) = outcome::<S>(&[0]);
    assert!(matches!(whole, Outcome::Opened(_)), "{whole:?}");
}

/// Whether an input sets a number to the one after it, which leaves the structure what and where it is.
fn is_plain(scene: &Scene, input: &[u8]) -> bool {
    const NEXT: u8 = 6;
    let newest = &scene.named[usize::from(input[2])].1[0];
    let field = newest.fields.get(usize::from(u16::from_le_bytes([input[4], input[5]])));
    let plain =
        [Means::Version, Means::Slot, Means::Emptied, Means::Page, Means::Epoch, Means::Size];
    input[1] == 0 && input[6] == NEXT && field.is_some_and(|field| plain.contains(&field.means))
}

/// Of each structure of these `names` in `S` some change must be noticed: the device is refused, or answers otherwise than before.
fn all_are_read<S: Subject>(names: &[&str]) {
    let scene = S::scene();
    let (whole, _) = outcome::<S>(&[0]);
    let mut unread = Vec::new();
    for (kind, (name, same)) in scene.named.iter().enumerate() {
        let of_kind = |input: &Vec<u8>| usize::from(input[2]) == kind;
        let inputs: Vec<Vec<u8>> = seeds(scene, 0).into_iter().filter(of_kind).collect();
        // The newest of its kind, and those before it.
        let mut each = (0..same.len().min(24)).flat_map(|instance| {
            let of_it = move |mut input: Vec<u8>| {
                input[3] = instance as u8;
                input
            };
            inputs.iter().cloned().map(of_it)
        });
        let is_read = |input: Vec<u8>| outcome::<S>(&input).0 != whole;
        if names.contains(name) && !each.any(is_read) {
            unread.push(name);
        }
    }
    assert!(unread.is_empty(), "no change of these is noticed: {unread:?}");
}

const OF_LOGS: [&str; 11] = [
    "anchor",
    "chunk of the map",
    "dead versions",
    "footer of a checkpoint",
    "header of checkpoints",
    "header of cleaning",
    "header of hosts",
    "shares",
    "superblock",
    "trims",
    "zone table",
];
const OF_SHARES: [&str; 1] = ["references"];
const OF_CACHES: [&str; 1] = ["pages let go"];
const OF_JOURNALS: [&str; 2] = ["head of the journal", "mark of the home"];
const OF_EPOCHS: [&str; 1] = ["index page"];
const OF_CLAIMS: [&str; 4] = [
    "claim in the journal",
    "claim on one end of the home",
    "claim on the home",
    "record of a claim",
];
const OF_DUMPS: [&str; 5] =
    ["delta page", "entries in a dump", "footer of a dump", "header of a dump", "header of dumps"];

fn all(lists: &[&[&'static str]]) -> Vec<&'static str> {
    let mut all = lists.concat();
    all.sort_unstable();
    all
}

#[test]
fn those_of_flash() {
    all_occur::<Flash>(&all(&[&OF_LOGS, &OF_SHARES]));
}

#[test]
fn those_with_large_transactions() {
    all_occur::<Staged>(&all(&[&OF_LOGS, &OF_SHARES]));
}

#[test]
fn those_of_a_home_with_epochs() {
    all_occur::<Ordered>(&all(&[&OF_LOGS, &OF_CACHES, &OF_JOURNALS, &OF_EPOCHS, &OF_CLAIMS]));
}

#[test]
fn those_of_a_home_without_epochs() {
    all_occur::<Dense>(&all(&[&OF_LOGS, &OF_CACHES, &OF_JOURNALS, &OF_CLAIMS]));
}

#[test]
fn those_of_a_home_without_a_claim() {
    all_occur::<Unclaimed>(&all(&[&OF_LOGS, &OF_CACHES, &OF_JOURNALS, &OF_EPOCHS]));
}

#[test]
fn those_of_a_home_that_is_being_claimed() {
    all_occur::<Claiming>(&all(&[&OF_LOGS, &OF_CACHES, &OF_JOURNALS, &OF_CLAIMS]));
}

#[test]
fn those_of_a_dump() {
    // Its shares are in dumps and delta pages alone, and it has no anchors.
    let missing = ["anchor", "shares", "superblock"];
    let rest: Vec<&str> = OF_LOGS.into_iter().filter(|name| !missing.contains(name)).collect();
    all_occur::<Dumped>(&all(&[&rest, &OF_SHARES, &OF_DUMPS]));
}

#[test]
fn changes_of_each_are_noticed() {
    // Without the header of a checkpoint, the one before it suffices.
    let names: Vec<&str> =
        OF_LOGS.into_iter().filter(|name| *name != "header of checkpoints").collect();
    all_are_read::<Flash>(&all(&[&names, &OF_SHARES]));
    all_are_read::<Dumped>(&OF_DUMPS);
}
