//! The name that a user probably meant.

/// The one of `names` that is spelled most like `given`; `None` if none is spelled much like it.
pub fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    let given: Vec<char> = given.to_lowercase().chars().collect();
    let near = |name: &&'a str| (changes(&given, &name.chars().collect::<Vec<char>>()), *name);
    let (changes, name) = names.iter().map(near).min_by_key(|(changes, _)| *changes)?;
    // One of three letters may differ, and two of six.
    let most = (given.len() / 3).min(2);
    (changes <= most).then_some(name)
}

/// The number of letters to insert, remove, replace or swap with their neighbour to make `one` into `other`.
fn changes(one: &[char], other: &[char]) -> usize {
    let mut before = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, wanted) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(letter != wanted);
            let mut fewest = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            let is_swap = i > 0 && j > 0 && one[i - 1] == *wanted && other[j - 1] == *letter;
            if is_swap {
                fewest = fewest.min(before[j - 1] + 1);
            }
            row.push(fewest);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[other.len()]
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
