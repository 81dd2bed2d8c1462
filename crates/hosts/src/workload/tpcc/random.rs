//! Random numbers (clause 2.1.6), values derived from a seed, and names.
use tantalum_base::Rng;

/// 64 bits that look random, derived from these words (the finaliser of splitmix64; Steele, Lea and Flood, 2014).
pub(super) fn derived(words: [u64; 3]) -> u64 {
    words.into_iter().fold(0x9e37_79b9_7f4a_7c15, |state: u64, word| {
        let mut bits = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    })
}

/// A uniform number from `first` to `last`.
pub(super) fn any(rng: &mut Rng, first: u64, last: u64) -> u64 {
    first + rng.below(last - first + 1)
}

/// NURand: numbers from 1 to `last`, some far more often than others. `a` is one less than a power of two, `c` a constant of the run.
pub(super) fn nu_rand(rng: &mut Rng, a: u64, c: u64, last: u64) -> u64 {
    ((any(rng, 0, a) | any(rng, 1, last)) + c) % last + 1
}

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The last name with this number, from 0 to 999 (clause 4.3.2.3).
pub(super) fn last_name(number: u64) -> String {
    [number / 100, number / 10, number].map(|digit| SYLLABLES[(digit % 10) as usize]).concat()
}

/// A first name: 8 to 16 letters.
pub(super) fn first_name(rng: &mut Rng) -> String {
    let letters = any(rng, 8, 16);
    (0..letters).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(0), "BARBARBAR");
    }

    #[test]
    fn some_numbers_come_far_more_often_than_others_and_all_are_in_their_range() {
        let mut counts = vec![0; 3_001];
        let rng = &mut Rng::new(1);
        for _ in 0..300_000 {
            counts[nu_rand(rng, 1_023, 259, 3_000) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        let most = counts.iter().max().unwrap();
        // The ten low bits are all set with probability three quarters to the tenth, and the others take about three values.
        assert!((5_000..6_500).contains(most), "the hottest of 3,000 came {most} times of 300,000");
        assert!(counts[1..].iter().filter(|count| **count > 0).count() > 2_500);
    }
}
