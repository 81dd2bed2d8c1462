//! Hash maps with a fixed hash: the same order in every run, and fast for small keys.
use std::hash::{BuildHasherDefault, Hasher};

/// A map for small integer keys; iteration order is the same in every run.
pub type FastMap<K, V> = hashbrown::HashMap<K, V, BuildHasherDefault<IntHasher>>;
/// A set for small integer keys; iteration order is the same in every run.
pub type FastSet<K> = hashbrown::HashSet<K, BuildHasherDefault<IntHasher>>;

/// Multiply-and-fold of 64-bit words (the mixing step of wyhash): two multiplications per key.
#[derive(Default)]
pub struct IntHasher(u64);

impl IntHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15)
            .wrapping_mul(0xa076_1d64_78bd_642f_e703_7ed1_a0b4_28db);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for IntHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
        }
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
}
