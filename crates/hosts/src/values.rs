//! Keys and values of the engines.
use std::fmt;
use std::rc::Rc;
use tantalum_base::PageNo;

use crate::btree::SPACE_PAGE;
pub use crate::key::Key;

/// A tree of a database, by its number from 0 on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tree(pub u32);

impl Tree {
    /// The page of its root.
    pub(crate) fn root(self) -> PageNo {
        PageNo(SPACE_PAGE.0 + 1 + u64::from(self.0))
    }
}

/// The value of a document or a row. Cloning is cheap.
pub trait Value: Clone + PartialEq + fmt::Debug + 'static {
    /// Its length.
    fn bytes(&self) -> usize;
}

/// A value of bytes, which a live engine needs.
pub trait ByteValue: Value {
    /// The bytes.
    fn as_bytes(&self) -> &[u8];

    /// A copy of these bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

impl Value for Rc<[u8]> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl ByteValue for Rc<[u8]> {
    fn as_bytes(&self) -> &[u8] {
        self
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        Rc::from(bytes)
    }
}

/// Stands for a value, as a stamp does for a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueStamp {
    /// Length of the value, in bytes.
    pub bytes: u32,
    /// Distinguishes it from other values; the host chooses it.
    pub count: u64,
}

impl Value for ValueStamp {
    fn bytes(&self) -> usize {
        self.bytes as usize
    }
}
