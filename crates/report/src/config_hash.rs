//! A short name for a configuration, which shows whether two outputs have the same one.

/// The hash of a configuration's canonical text, as 16 hexadecimal digits (FNV-1a, 64 bits).
///
/// `parts` are the settings in an order that never changes, such as `["trace=tpcc", "policy=lru"]`; settings that do
/// not change the result (output format, number of threads) are left out. The same parts give the same hash in every
/// version.
pub fn config_hash<S: AsRef<str>>(parts: impl IntoIterator<Item = S>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    for part in parts {
        part.as_ref().bytes().for_each(&mut add);
        // A byte that UTF-8 never has ends each part, so that parts cannot run into each other.
        add(0xff);
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_stable_and_tells_parts_apart() {
        // FNV-1a of the empty text, and of "a" followed by the end byte, by hand.
        assert_eq!(config_hash([] as [&str; 0]), "cbf29ce484222325");
        assert_eq!(config_hash(["a"]), {
            let a = (0xcbf2_9ce4_8422_2325u64 ^ 0x61).wrapping_mul(0x100_0000_01b3);
            format!("{:016x}", (a ^ 0xff).wrapping_mul(0x100_0000_01b3))
        });
        assert_ne!(config_hash(["ab", "c"]), config_hash(["a", "bc"]));
        assert_ne!(config_hash(["a", "b"]), config_hash(["b", "a"]));
    }
}
