//! The name that a user probably meant.

/// Returns the name in `names` whose spelling is closest to `given`; `None` if no name is close
/// enough.
pub fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    let lower = given.to_lowercase();
    // The distance counts letters that are inserted, removed, replaced, or swapped with their
    // neighbour.
    let near = |name: &&'a str| (strsim::osa_distance(&lower, name), *name);
    let (changes, name) = names.iter().map(near).min_by_key(|(changes, _)| *changes)?;
    // One change for every three letters, at most two.
    let most = (given.chars().count() / 3).min(2);
    (changes <= most).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_a_letter_or_two_is_understood_and_another_word_is_not() {
        let names = ["lru", "fifo", "clock", "sieve", "oracle_general", "durassd"];
        let nearest = |given| nearest(given, &names);
        assert_eq!(nearest("lur"), Some("lru"));
        assert_eq!(nearest("clok"), Some("clock"));
        assert_eq!(nearest("Seive"), Some("sieve"));
        assert_eq!(nearest("oracle_genral"), Some("oracle_general"));
        for other in ["", "xy", "random", "lfu3", "help"] {
            assert_eq!(nearest(other), None, "{other}");
        }
    }
}
