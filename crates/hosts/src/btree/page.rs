//! A page of a database.
//!
//! ```text
//! page    1 | number 8 | LSN 8 | content | zeros up to the page's end
//! space   1 | pages ever used 8 | first free page 8 (0: none)
//! free    2 | next free page 8 (0: none)
//! leaf    3 | entries 2 | entries: key length 1 | key | value length 2 | value
//! inner   4 | entries 2 | entries: key length 1 | key | 8 in 2 | page 8
//! ```
//!
//! The frame of the record has a checksum over all of it, which detects a torn page.
use std::cmp::Ordering;
use tantalum_base::PageNo;

use crate::records::{FRAME_BYTES, Input, PAGE_ROOM};
use crate::values::{ByteValue, Key, Value};

/// Bytes of a page besides its entries: record type, number, LSN, kind of content, number of entries.
const HEAD_BYTES: usize = 1 + 8 + 8 + 1 + 2;

/// Bytes of an entry besides its key and its value.
const ENTRY_BYTES: usize = 3;

/// A position in the redo log: the ordinal number of a group of changes. 0 is before all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Lsn(pub u64);

/// A page, decoded.
#[derive(Clone, PartialEq, Debug)]
pub struct TreePage<V> {
    /// Its number in the database.
    pub number: PageNo,
    /// The last group of changes that it contains.
    pub lsn: Lsn,
    /// Number of device pages that it occupies.
    pub device_pages: u32,
    /// Its content.
    pub content: Content<V>,
}

/// The content of a page, by its use.
#[derive(Clone, PartialEq, Debug)]
pub enum Content<V> {
    /// Which pages are free.
    Space(Space),
    /// No content: the page is in the list of free pages.
    Free {
        /// The next page in the list.
        next: Option<PageNo>,
    },
    /// Rows.
    Leaf(Entries<V>),
    /// Children, each with the lower bound of the keys in it. A node has at least one.
    Inner(Entries<PageNo>),
}

/// Which pages of the database are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// The number of pages ever used: all pages from this number on are free.
    pub used: u64,
    /// The first page in the list of the other free pages.
    pub free: Option<PageNo>,
}

/// Entries in the order of their keys.
#[derive(Debug)]
pub struct Entries<T> {
    list: Vec<(Key, T)>,
    /// A prefix that all keys share; their longest common prefix may be longer.
    common: Key,
    /// The [`head`] of each key after that prefix. They lie side by side, so that a search looks at few of the keys themselves.
    heads: Vec<u64>,
    bytes: usize,
}

/// The number of entries, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sizes {
    pub entries: usize,
    pub bytes: usize,
}

/// A copy is made in order to change it, so it has room for one more entry.
impl<T: Clone> Clone for Entries<T> {
    fn clone(&self) -> Self {
        let mut list = Vec::with_capacity(self.list.len() + 1);
        list.extend_from_slice(&self.list);
        let mut heads = Vec::with_capacity(self.heads.len() + 1);
        heads.extend_from_slice(&self.heads);
        Entries { list, common: self.common.clone(), heads, bytes: self.bytes }
    }
}

impl<T: PartialEq> PartialEq for Entries<T> {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

/// The first eight bytes of a key as a number, padded with zeros. A key with a lower number sorts before others.
#[inline]
fn head(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            key.iter().zip(0..).fold(0, |head, (byte, at)| head | u64::from(*byte) << (56 - 8 * at))
        }
    }
}

/// The number of `heads`, which ascend, that are below `head`. It looks at one in each cache line, then at one whole line. These
/// loads do not depend on each other; a binary search would wait for each load before the next, and memory is far away.
fn count_below(heads: &[u64], head: u64) -> usize {
    const LINE: usize = 8;
    let below = |other: &&u64| **other < head;
    let begin = LINE * heads.iter().skip(LINE - 1).step_by(LINE).filter(below).count();
    begin + heads[begin..].iter().take(LINE).filter(below).count()
}

/// The length of the common prefix of two keys, in bytes.
fn common_bytes(key: &[u8], other: &[u8]) -> usize {
    key.iter().zip(other).take_while(|(byte, other)| byte == other).count()
}

/// A child needs as much room as a value of its size.
impl Value for PageNo {
    fn bytes(&self) -> usize {
        8
    }
}

fn entry_bytes<T: Value>(key: &[u8], item: &T) -> usize {
    ENTRY_BYTES + key.len() + item.bytes()
}

impl<T: Value> Entries<T> {
    /// Makes entries from `list`, which is in ascending order of its keys.
    pub(crate) fn new(list: Vec<(Key, T)>) -> Self {
        let bytes = list.iter().map(|(key, item)| entry_bytes(key, item)).sum();
        let common = match (list.first(), list.last()) {
            (Some((first, _)), Some((last, _))) => first[..common_bytes(first, last)].into(),
            _ => Key::from([]),
        };
        let mut entries = Entries { list, common, heads: Vec::new(), bytes };
        entries.set_heads();
        entries
    }

    fn set_heads(&mut self) {
        let common = self.common.len();
        self.heads.clear();
        self.heads.extend(self.list.iter().map(|(key, _)| head(&key[common..])));
    }

    /// The entries in ascending order of their keys.
    pub fn list(&self) -> &[(Key, T)] {
        &self.list
    }

    /// The index of `key`, or the index at which it belongs.
    pub(crate) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let (begin, rest) = key.split_at(key.len().min(self.common.len()));
        match begin.cmp(&self.common) {
            Ordering::Less => return Err(0),
            Ordering::Greater => return Err(self.list.len()),
            Ordering::Equal => {}
        }
        let head = head(rest);
        let first = count_below(&self.heads, head);
        let alike = self.heads[first..].iter().take_while(|other| **other == head).count();
        let found =
            self.list[first..first + alike].binary_search_by(|(other, _)| (**other).cmp(key));
        found.map(|at| first + at).map_err(|at| first + at)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&T> {
        Some(&self.list[self.search(key).ok()?].1)
    }

    fn sizes(&self) -> Sizes {
        Sizes { entries: self.list.len(), bytes: self.bytes }
    }

    /// The sizes once this entry is [put](Self::put).
    pub(crate) fn sizes_with(&self, key: &[u8], item: &T) -> Sizes {
        let Sizes { entries, bytes } = self.sizes_without(key).unwrap_or_else(|| self.sizes());
        Sizes { entries: entries + 1, bytes: bytes + entry_bytes(key, item) }
    }

    /// The sizes once the entry with this key, if there is one, is [removed](Self::remove).
    pub(crate) fn sizes_without(&self, key: &[u8]) -> Option<Sizes> {
        let item = self.get(key)?;
        let Sizes { entries, bytes } = self.sizes();
        Some(Sizes { entries: entries - 1, bytes: bytes - entry_bytes(key, item) })
    }

    pub(crate) fn put(&mut self, key: &Key, item: T) {
        self.bytes += entry_bytes(key, &item);
        match self.search(key) {
            Ok(at) => {
                self.bytes -= entry_bytes(key, &self.list[at].1);
                self.list[at].1 = item;
            }
            Err(at) => {
                self.list.insert(at, (key.clone(), item));
                match key.strip_prefix(&*self.common) {
                    Some(rest) => self.heads.insert(at, head(rest)),
                    None => {
                        self.common = key[..common_bytes(key, &self.common)].into();
                        self.set_heads();
                    }
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<usize> {
        let at = self.search(key).ok()?;
        let (key, item) = self.list.remove(at);
        self.heads.remove(at);
        self.bytes -= entry_bytes(&key, &item);
        Some(at)
    }

    /// Removes the entries from `key` on, and returns them.
    pub(crate) fn split_off(&mut self, key: &[u8]) -> Self {
        let at = self.search(key).unwrap_or_else(|at| at);
        let taken = self.list.split_off(at);
        *self = Entries::new(std::mem::take(&mut self.list));
        Entries::new(taken)
    }

    /// The key at which to split: in the middle of the bytes, or before `last` if it is the last entry, so that rows that arrive in
    /// key order fill their pages. There must be at least two entries.
    fn middle(&self, last: &[u8]) -> &Key {
        if let Some((key, _)) = self.list.last().filter(|(key, _)| **key == *last) {
            return key;
        }
        let mut bytes = 0;
        let middle = self.list.iter().position(|(key, item)| {
            bytes += entry_bytes(key, item);
            2 * bytes >= self.bytes
        });
        &self.list[middle.unwrap_or(1).max(1)].0
    }
}

impl Entries<PageNo> {
    /// The child that covers `key`, and the first key that the next child covers.
    pub(crate) fn child(&self, key: &[u8]) -> Option<(PageNo, Option<&Key>)> {
        let at = self.search(key).unwrap_or_else(|at| at.saturating_sub(1));
        let next = self.list.get(at + 1).map(|(key, _)| key);
        self.list.get(at).map(|(_, child)| (*child, next))
    }

    /// The key of a child.
    pub(crate) fn key_of(&self, child: PageNo) -> Option<&Key> {
        self.list.iter().find(|(_, other)| *other == child).map(|(key, _)| key)
    }

    /// Removes a child. The child before it then covers its keys; if it was the first, the next one does.
    pub(crate) fn remove_child(&mut self, key: &Key) -> Option<usize> {
        let at = self.remove(key)?;
        if let Some((first, _)) = self.list.first_mut().filter(|_| at == 0) {
            self.bytes = self.bytes - first.len() + key.len();
            *first = key.clone();
            self.heads[0] = head(&key[self.common.len()..]);
        }
        Some(at)
    }
}

impl<V: Value> Content<V> {
    /// A leaf without rows.
    pub(crate) fn empty() -> Self {
        Content::Leaf(Entries::new(Vec::new()))
    }

    /// The sizes of its entries.
    pub(crate) fn sizes(&self) -> Sizes {
        match self {
            Content::Leaf(rows) => rows.sizes(),
            Content::Inner(children) => children.sizes(),
            Content::Space(_) | Content::Free { .. } => Sizes::default(),
        }
    }

    /// The key at which to split after `last` was put in.
    pub(crate) fn middle(&self, last: &[u8]) -> Option<Key> {
        match self {
            Content::Leaf(rows) if rows.list.len() > 1 => Some(rows.middle(last).clone()),
            Content::Inner(children) if children.list.len() > 1 => {
                Some(children.middle(last).clone())
            }
            _ => None,
        }
    }

    /// Removes the entries from `key` on, and returns them.
    pub(crate) fn split_off(&mut self, key: &[u8]) -> Option<Self> {
        match self {
            Content::Leaf(rows) => Some(Content::Leaf(rows.split_off(key))),
            Content::Inner(children) => Some(Content::Inner(children.split_off(key))),
            Content::Space(_) | Content::Free { .. } => None,
        }
    }

    /// Encoded size in bytes.
    pub(crate) fn encoded_bytes(&self) -> usize {
        match self {
            Content::Space(_) => 17,
            Content::Free { .. } => 9,
            Content::Leaf(_) | Content::Inner(_) => 3 + self.sizes().bytes,
        }
    }
}

impl<V: ByteValue> Content<V> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let page = |page: &Option<PageNo>| page.map_or(0, |page| page.0).to_le_bytes();
        match self {
            Content::Space(space) => {
                out.push(1);
                out.extend(space.used.to_le_bytes());
                out.extend(page(&space.free));
            }
            Content::Free { next } => {
                out.push(2);
                out.extend(page(next));
            }
            Content::Leaf(rows) => {
                out.push(3);
                out.extend((rows.list.len() as u16).to_le_bytes());
                for (key, value) in &rows.list {
                    encode_key(key, out);
                    out.extend((value.bytes() as u16).to_le_bytes());
                    out.extend(value.as_bytes());
                }
            }
            Content::Inner(children) => {
                out.push(4);
                out.extend((children.list.len() as u16).to_le_bytes());
                for (key, child) in &children.list {
                    encode_key(key, out);
                    out.extend(8_u16.to_le_bytes());
                    out.extend(child.0.to_le_bytes());
                }
            }
        }
    }

    pub(crate) fn decode(input: &mut Input<'_>) -> Option<Self> {
        let page = |number: u64| Some(PageNo(number)).filter(|page| page.0 != 0);
        let entries = |input: &mut Input<'_>| Some(u16::from_le_bytes(input.array()?));
        Some(match input.byte()? {
            1 => Content::Space(Space { used: input.word()?, free: page(input.word()?) }),
            2 => Content::Free { next: page(input.word()?) },
            3 => {
                let rows = (0..entries(input)?).map(|_| {
                    let key = decode_key(input)?;
                    let bytes = u16::from_le_bytes(input.array()?);
                    Some((key, V::from_bytes(input.take(bytes.into())?)))
                });
                Content::Leaf(Entries::new(rows.collect::<Option<_>>()?))
            }
            4 => {
                let children = (0..entries(input)?).map(|_| {
                    let key = decode_key(input)?;
                    let bytes = u16::from_le_bytes(input.array()?);
                    (bytes == 8).then_some((key, PageNo(input.word()?)))
                });
                Content::Inner(Entries::new(children.collect::<Option<_>>()?))
            }
            _ => return None,
        })
    }
}

impl<V: Value> TreePage<V> {
    /// Size of its record's content in bytes.
    pub(crate) fn content_bytes(&self) -> usize {
        self.device_pages as usize * PAGE_ROOM - FRAME_BYTES
    }

    /// Bytes available for entries in a page of `device_pages` device pages.
    pub fn room(device_pages: u32) -> usize {
        device_pages as usize * PAGE_ROOM - FRAME_BYTES - HEAD_BYTES
    }

    /// Maximum size of a key and its value together, in bytes: after a split each half has room for the new row.
    pub fn row_bytes_max(device_pages: u32) -> usize {
        Self::room(device_pages) / 4 - ENTRY_BYTES
    }
}

impl<V: ByteValue> TreePage<V> {
    /// Appends the content of the record, except its first byte, which marks it as a page.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let begin = out.len() - 1;
        out.extend(self.number.0.to_le_bytes());
        out.extend(self.lsn.0.to_le_bytes());
        self.content.encode(out);
        out.resize(begin + self.content_bytes(), 0);
    }

    /// Decodes a page; `bytes` is the size of the whole content.
    pub(crate) fn decode(input: &mut Input<'_>, bytes: usize) -> Option<Self> {
        let device_pages = ((bytes + FRAME_BYTES) / PAGE_ROOM) as u32;
        let (number, lsn) = (PageNo(input.word()?), Lsn(input.word()?));
        let content = Content::decode(input)?;
        let page = TreePage { number, lsn, device_pages, content };
        input.rest();
        (page.content_bytes() == bytes).then_some(page)
    }
}

pub(crate) fn encode_key(key: &[u8], out: &mut Vec<u8>) {
    out.push(key.len() as u8);
    out.extend(key);
}

pub(crate) fn decode_key(input: &mut Input<'_>) -> Option<Key> {
    let length = input.byte()?;
    Some(input.take(length.into())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ValueStamp;
    use std::collections::BTreeMap;
    use tantalum_base::Rng;

    /// Keys of up to eleven bytes, many of which share a prefix or end in zeros.
    fn random_key(rng: &mut Rng) -> Key {
        let bytes = rng.below(12);
        (0..bytes).map(|_| [0, 1, 255][rng.below(3) as usize]).collect()
    }

    fn assert_same(entries: &Entries<ValueStamp>, rows: &BTreeMap<Key, ValueStamp>) {
        let listed = entries.list().iter().map(|(key, value)| (key, value));
        assert!(listed.eq(rows), "{entries:?}");
        let again = Entries::new(entries.list().to_vec());
        assert_eq!(entries.bytes, again.bytes);
        let heads = entries.list().iter().map(|(key, _)| head(&key[entries.common.len()..]));
        assert!(heads.eq(entries.heads.iter().copied()), "{entries:?}");
        assert!(again.common.starts_with(&entries.common), "{entries:?}");
    }

    #[test]
    fn entries_are_found_where_they_were_put() {
        let mut rng = Rng::new(1);
        for _ in 0..50 {
            let (mut entries, mut rows) = (Entries::new(Vec::new()), BTreeMap::new());
            for count in 0..200 {
                let key = random_key(&mut rng);
                if rng.below(3) == 0 {
                    assert_eq!(entries.remove(&key).is_some(), rows.remove(&key).is_some());
                } else {
                    let value = ValueStamp { bytes: 10, count };
                    entries.put(&key, value);
                    rows.insert(key, value);
                }
                assert_same(&entries, &rows);
                let key = random_key(&mut rng);
                assert_eq!(entries.get(&key), rows.get(&key));
                let before = rows.keys().filter(|other| **other < key).count();
                assert_eq!(entries.search(&key).unwrap_or_else(|at| at), before);
            }
            let key = random_key(&mut rng);
            assert_same(&entries.split_off(&key), &rows.split_off(&key));
            assert_same(&entries, &rows);
        }
    }
}
