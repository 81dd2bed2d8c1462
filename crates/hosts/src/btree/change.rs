//! Changes of pages, as they are recorded in a redo log.
//!
//! ```text
//! of a page    page 8 | after LSN 8 | changes 2 | changes
//! put          1 | key length 1 | key | value length 2 | value
//! put child    2 | key length 1 | key | page 8
//! remove       3 | key length 1 | key
//! cut          4 | key length 1 | key
//! content      5 | content as in a page
//! ```
use tantalum_base::PageNo;

use super::page::{Content, Lsn, Sizes, decode_key, encode_key};
use crate::records::Input;
use crate::values::{ByteValue, Key, Value};

/// A change of one page.
#[derive(Clone, PartialEq, Debug)]
pub enum Change<V> {
    /// A leaf gets a row, in place of the one with this key if there is one.
    Put(Key, V),
    /// A node gets a child, which covers the keys from this one upwards.
    PutChild(Key, PageNo),
    /// The row or the child with this key is removed.
    Remove(Key),
    /// All rows or children from this key upwards are removed: they are in another page now.
    Cut(Key),
    /// The page gets entirely new content.
    Content(Content<V>),
}

/// The changes that one group makes to one page.
#[derive(Clone, PartialEq, Debug)]
pub struct PageChanges<V> {
    /// The number of the page.
    pub page: PageNo,
    /// The last earlier group that changed the page. If the page has another LSN that is older than this group's, a write was
    /// lost.
    pub after: Lsn,
    /// In the order in which they were made.
    pub changes: Vec<Change<V>>,
}

impl<V: Value> Change<V> {
    /// Applies the changes to `content`. Returns `false` if a change does not fit this kind of content.
    pub(crate) fn apply(&self, content: &mut Content<V>) -> bool {
        match (self, content) {
            (Change::Content(new), content) => {
                *content = new.clone();
                true
            }
            (Change::Put(key, value), Content::Leaf(rows)) => {
                rows.put(key, value.clone());
                true
            }
            (Change::PutChild(key, child), Content::Inner(children)) => {
                children.put(key, *child);
                true
            }
            (Change::Remove(key), Content::Leaf(rows)) => rows.remove(key).is_some(),
            (Change::Remove(key), Content::Inner(children)) => children.remove_child(key).is_some(),
            (Change::Cut(key), content) => content.split_off(key).is_some(),
            _ => false,
        }
    }

    /// The sizes of a leaf after this change of a row; `None` if it is another kind of change, or cannot be applied.
    pub(super) fn sizes_of_leaf(&self, content: &Content<V>) -> Option<Sizes> {
        match (self, content) {
            (Change::Put(key, value), Content::Leaf(rows)) => Some(rows.sizes_with(key, value)),
            (Change::Remove(key), Content::Leaf(rows)) => rows.sizes_without(key),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Change::Put(key, value) => 4 + key.len() + value.bytes(),
            Change::PutChild(key, _) => 10 + key.len(),
            Change::Remove(key) | Change::Cut(key) => 2 + key.len(),
            Change::Content(content) => 1 + content.encoded_bytes(),
        }
    }
}

impl<V: Value> PageChanges<V> {
    /// Whether the change replaces the page, so that its old content does not matter.
    pub(crate) fn replaces(&self) -> bool {
        matches!(self.changes.first(), Some(Change::Content(_)))
    }

    /// Size of the change in a log, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        18 + self.changes.iter().map(Change::bytes).sum::<usize>()
    }
}

impl<V: ByteValue> PageChanges<V> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.page.0.to_le_bytes());
        out.extend(self.after.0.to_le_bytes());
        out.extend((self.changes.len() as u16).to_le_bytes());
        for change in &self.changes {
            match change {
                Change::Put(key, value) => {
                    out.push(1);
                    encode_key(key, out);
                    out.extend((value.bytes() as u16).to_le_bytes());
                    out.extend(value.as_bytes());
                }
                Change::PutChild(key, child) => {
                    out.push(2);
                    encode_key(key, out);
                    out.extend(child.0.to_le_bytes());
                }
                Change::Remove(key) => {
                    out.push(3);
                    encode_key(key, out);
                }
                Change::Cut(key) => {
                    out.push(4);
                    encode_key(key, out);
                }
                Change::Content(content) => {
                    out.push(5);
                    content.encode(out);
                }
            }
        }
    }

    pub(crate) fn decode(input: &mut Input<'_>) -> Option<Self> {
        let (page, after) = (PageNo(input.word()?), Lsn(input.word()?));
        let count = u16::from_le_bytes(input.array()?);
        let changes = (0..count).map(|_| {
            Some(match input.byte()? {
                1 => {
                    let key = decode_key(input)?;
                    let bytes = u16::from_le_bytes(input.array()?);
                    Change::Put(key, V::from_bytes(input.take(bytes.into())?))
                }
                2 => Change::PutChild(decode_key(input)?, PageNo(input.word()?)),
                3 => Change::Remove(decode_key(input)?),
                4 => Change::Cut(decode_key(input)?),
                5 => Change::Content(Content::decode(input)?),
                _ => return None,
            })
        });
        let changes = changes.collect::<Option<_>>()?;
        Some(PageChanges { page, after, changes })
    }
}
