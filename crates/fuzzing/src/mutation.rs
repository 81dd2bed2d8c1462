//! Random inputs made from others.
use tantalum_base::Rng;

/// Maximum length of an input.
const BYTES_MAX: usize = 1 << 16;

/// Numbers at which parsers make mistakes.
const EDGES: [u64; 10] =
    [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];

/// An input made from one of `seeds`, of which there must be at least one, by up to eight changes: of bytes, numbers and bits,
/// and parts that are removed, duplicated, or copied from another seed.
pub fn mutated(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = seeds[below(rng, seeds.len())].clone();
    for _ in 0..rng.below(9) {
        let at = below(rng, input.len() + 1);
        match rng.below(8) {
            0 => change(&mut input, at, |byte| byte ^ 1 << rng.below(8)),
            1 => change(&mut input, at, |_| rng.below(256) as u8),
            2 => edge(&mut input, at, rng),
            3 => input.truncate(at),
            4 => {
                let end = at + below(rng, input.len() + 1 - at);
                input.drain(at..end);
            }
            5 => {
                let end = at + below(rng, input.len() + 1 - at);
                let twice = input[at..end].to_vec();
                insert(&mut input, at, &twice);
            }
            6 => {
                let other = &seeds[below(rng, seeds.len())];
                let from = below(rng, other.len() + 1);
                let part = other[from..from + below(rng, other.len() + 1 - from)].to_vec();
                insert(&mut input, at, &part);
            }
            _ => {
                let mut noise = vec![0; below(rng, 17)];
                rng.fill(&mut noise);
                insert(&mut input, at, &noise);
            }
        }
    }
    input.truncate(BYTES_MAX);
    input
}

/// A random number below `bound`, which must be above 0.
fn below(rng: &mut Rng, bound: usize) -> usize {
    rng.below(bound as u64) as usize
}

fn change(input: &mut [u8], at: usize, new: impl FnOnce(u8) -> u8) {
    if let Some(byte) = input.get_mut(at) {
        *byte = new(*byte);
    }
}

/// Overwrites the bytes at `at` with one of [`EDGES`], in a random width and byte order, as far as there is room.
fn edge(input: &mut [u8], at: usize, rng: &mut Rng) {
    let value = EDGES[below(rng, EDGES.len())];
    let width = 1 << rng.below(4);
    let mut bytes = value.to_le_bytes();
    if rng.chance(0.5) {
        bytes[..width].reverse();
    }
    for (to, from) in input[at..].iter_mut().zip(&bytes[..width]) {
        *to = *from;
    }
}

fn insert(input: &mut Vec<u8>, at: usize, part: &[u8]) {
    input.splice(at..at, part.iter().copied());
}
