//! The interface between a load and a storage engine.
use std::rc::Rc;
use tantalum_base::{Result, Rng};

use crate::values::{Key, Value, ValueStamp};

/// A handle of a storage engine for loads: values under keys, in the order of the keys.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub trait KeyValueStore: Clone + 'static {
    /// The value under a key.
    type Value: LoadValue;

    /// The value of `key`, if there is one.
    async fn get(&self, key: &[u8]) -> Result<Option<Self::Value>>;

    /// Inserts or replaces a value. The engine decides whether it is durable when this returns.
    async fn put(&self, key: &[u8], value: Self::Value) -> Result<()>;

    /// Called at the end of each operation of a load, which may have several of these calls.
    async fn operation_ended(&self) -> Result<()> {
        Ok(())
    }

    /// The first `records_max` values from `from` on, in ascending order of their keys.
    async fn scan(&self, from: &[u8], records_max: usize) -> Result<Vec<(Key, Self::Value)>>;
}

/// A value that contains the number and version of its record, so that every read can be checked.
pub trait LoadValue: Value {
    /// Minimum bytes of a value that contains these.
    const BYTES_MIN: u32;

    /// The value of this version of a record, `bytes` long.
    fn made(record: u64, version: u32, bytes: u32) -> Self;

    /// The record and the version; `None` if the value was not made with this length.
    fn told(&self, bytes: u32) -> Option<(u64, u32)>;
}

/// Bits of a stamp's count that hold the version.
const VERSION_BITS: u32 = 24;

impl LoadValue for ValueStamp {
    const BYTES_MIN: u32 = 1;

    fn made(record: u64, version: u32, bytes: u32) -> Self {
        assert!(version < 1 << VERSION_BITS && record < 1 << (64 - VERSION_BITS));
        ValueStamp { bytes, count: record << VERSION_BITS | u64::from(version) }
    }

    fn told(&self, bytes: u32) -> Option<(u64, u32)> {
        let version = (self.count & ((1 << VERSION_BITS) - 1)) as u32;
        (self.bytes == bytes).then_some((self.count >> VERSION_BITS, version))
    }
}

impl LoadValue for Rc<[u8]> {
    const BYTES_MIN: u32 = 12;

    fn made(record: u64, version: u32, bytes: u32) -> Self {
        let mut value = vec![0; bytes.max(Self::BYTES_MIN) as usize];
        let (name, rest) = value.split_at_mut(12);
        name[..8].copy_from_slice(&record.to_le_bytes());
        name[8..].copy_from_slice(&version.to_le_bytes());
        Rng::new(record ^ u64::from(version) << 40).fill(rest);
        value.into()
    }

    fn told(&self, bytes: u32) -> Option<(u64, u32)> {
        let record = u64::from_le_bytes(self.get(..8)?.try_into().ok()?);
        let version = u32::from_le_bytes(self.get(8..12)?.try_into().ok()?);
        (*self == Self::made(record, version, bytes)).then_some((record, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_its_record_and_version_and_nothing_else_does() {
        let (record, version) = (77, 5);
        let stamp = ValueStamp::made(record, version, 1_000);
        assert_eq!(stamp.told(1_000), Some((record, version)));
        assert_eq!(stamp.told(999), None);
        let bytes = Rc::<[u8]>::made(record, version, 1_000);
        assert_eq!(bytes.told(1_000), Some((record, version)));
        assert_eq!(bytes.told(999), None);
        let mut damaged = bytes.to_vec();
        damaged[500] ^= 1;
        assert_eq!(Rc::<[u8]>::from(damaged).told(1_000), None);
        assert_eq!(Rc::<[u8]>::from([1; 5]).told(5), None);
    }
}
