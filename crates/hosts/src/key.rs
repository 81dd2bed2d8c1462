//! Keys: bytes in their order.
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// Keys up to this length are stored inline, so that a page's keys lie side by side in memory, as they do on the device.
const SHORT_MAX: usize = 38;

/// The key of a document or a row. Cloning is cheap.
#[derive(Clone)]
pub struct Key(Bytes);

#[derive(Clone)]
enum Bytes {
    Short { length: u8, bytes: [u8; SHORT_MAX] },
    Long(Rc<[u8]>),
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Short { length, bytes } => &bytes[..usize::from(*length)],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Key {
    #[inline]
    fn from(key: &[u8]) -> Self {
        if key.len() > SHORT_MAX {
            return Key(Bytes::Long(key.into()));
        }
        let mut bytes = [0; SHORT_MAX];
        bytes[..key.len()].copy_from_slice(key);
        Key(Bytes::Short { length: key.len() as u8, bytes })
    }
}

impl<const N: usize> From<[u8; N]> for Key {
    #[inline]
    fn from(key: [u8; N]) -> Self {
        Key::from(key.as_slice())
    }
}

impl From<Vec<u8>> for Key {
    fn from(key: Vec<u8>) -> Self {
        Key::from(key.as_slice())
    }
}

impl FromIterator<u8> for Key {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        Key::from(bytes.into_iter().collect::<Vec<_>>())
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_bytes_however_many_there_are() {
        let bytes: Vec<u8> = (1..=250).collect();
        let keys: Vec<_> = (0..=bytes.len()).map(|end| Key::from(&bytes[..end])).collect();
        for (end, key) in keys.iter().enumerate() {
            assert_eq!(**key, bytes[..end]);
            assert_eq!(*key, key.clone());
        }
        assert!(keys.is_sorted_by(|key, next| key < next), "a key comes before its continuations");
        assert!(Key::from([2]) > keys[SHORT_MAX + 1] && keys[1] < Key::from([1; SHORT_MAX + 1]));
        assert_eq!(size_of::<Key>(), 40);
    }
}
