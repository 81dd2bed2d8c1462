//! The keys of records.

/// FNV-1a of the eight bytes of a number, lowest first, without its sign: YCSB scatters numbers with it.
pub(super) fn scattered(number: u64) -> u64 {
    let hash = number.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211)
    });
    (hash as i64).unsigned_abs()
}

/// The key of record number `record`: `user` and its number, scattered, in decimal digits, padded with zeros to `bytes_min`
/// bytes.
pub fn key_of(record: u64, bytes_min: usize) -> Vec<u8> {
    let digits = bytes_min.saturating_sub(4);
    format!("user{:0digits$}", scattered(record)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first two records of every database that YCSB loads.
    #[test]
    fn records_are_called_what_ycsb_calls_them() {
        assert_eq!(key_of(0, 0), b"user6284781860667377211");
        assert_eq!(key_of(1, 0), b"user8517097267634966620");
        assert_eq!(key_of(0, 26), b"user0006284781860667377211");
    }
}
