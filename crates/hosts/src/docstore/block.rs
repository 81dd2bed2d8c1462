//! The blocks that a store keeps on its device, and their layout in bytes.
//!
//! ```text
//! directory  1 | number 8 | file 8 | file pages 8 | half 1 | other in use 1 | mode 1
//! header     2 | end 8 | file 8 | number 8 | root 8 (0: none) | depth 1 | nodes 8 | documents 8 | document bytes 8
//! node       3 | at 8 | level 1 | entries 2 | entries: key length 1 | key | page 8 | offset 2 | bytes 4
//! document   4 | key length 1 | key | value
//! ```
//!
//! Numbers are little-endian.
use std::rc::Rc;
use tantalum_base::PageNo;

use super::options::Mode;
use crate::records::{ByteRecord, FRAME_BYTES, Input, PAGE_ROOM, Place, Record};
use crate::values::{ByteValue, Key, Value};

/// Bytes of a node besides its entries.
const NODE_BYTES: usize = 12;

/// Bytes for entries in a node, which has one page.
pub(super) const NODE_ROOM: usize = PAGE_ROOM - FRAME_BYTES - NODE_BYTES;

/// Marks of pages: one for headers and the directory, one for all others.
const MARK_HEADER: u8 = 2;
const MARK_DATA: u8 = 1;

/// The files of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Directory {
    /// Counts the changes of the directory.
    pub number: u64,
    /// The number of the current file.
    pub file: u64,
    /// Pages of a file.
    pub file_pages: u64,
    /// The half of the device that has it: 0 or 1.
    pub half: u8,
    /// Whether the other half may have content.
    pub other_in_use: bool,
    /// How the store commits.
    pub mode: Mode,
}

/// A committed state of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The first page after the file's content: the place of the next append.
    pub end: PageNo,
    /// The number of its file.
    pub file: u64,
    /// Counts the headers of the store.
    pub number: u64,
    /// The root of the tree, if there are documents.
    pub root: Option<PageNo>,
    /// Number of nodes on the path to a document.
    pub depth: u8,
    /// Number of nodes of the tree.
    pub nodes: u64,
    /// Number of documents.
    pub documents: u64,
    /// Bytes of all documents' places.
    pub document_bytes: u64,
}

/// An entry of a node: a document, or a child with the first key in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The document's key, or the lower bound of a child's keys (except for the first child of a level).
    pub key: Key,
    /// The place of the document or the child.
    pub place: Place,
}

impl Entry {
    /// Size of the entry in a node, in bytes.
    pub(super) fn bytes(&self) -> usize {
        15 + self.key.len()
    }
}

/// A node of the tree: one page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// The page at which it was written.
    pub at: PageNo,
    /// 0 for a leaf, whose entries are documents.
    pub level: u8,
    /// In ascending order of their keys; at least one.
    pub entries: Vec<Entry>,
}

/// A document.
#[derive(Clone, PartialEq, Debug)]
pub struct Document<V> {
    /// Its key, 1 to [`KEY_BYTES_MAX`](super::KEY_BYTES_MAX) bytes.
    pub key: Key,
    /// Its value.
    pub value: V,
}

/// Any block that a store writes.
#[derive(Clone, PartialEq, Debug)]
pub enum Block<V> {
    /// The files of the store.
    Directory(Directory),
    /// A committed state of a file.
    Header(Header),
    /// A node of the tree.
    Node(Rc<Node>),
    /// A document.
    Document(Document<V>),
}

impl<V: Value> Record for Block<V> {
    fn content_bytes(&self) -> usize {
        match self {
            Block::Directory(_) => 28,
            Block::Header(_) => 58,
            Block::Node(node) => {
                NODE_BYTES + node.entries.iter().map(|entry| entry.bytes()).sum::<usize>()
            }
            Block::Document(document) => 2 + document.key.len() + document.value.bytes(),
        }
    }

    fn mark(&self) -> u8 {
        match self {
            Block::Directory(_) | Block::Header(_) => MARK_HEADER,
            Block::Node(_) | Block::Document(_) => MARK_DATA,
        }
    }
}

impl<V: ByteValue> ByteRecord for Block<V> {
    fn encode(&self, out: &mut Vec<u8>) {
        let words = |out: &mut Vec<u8>, words: &[u64]| {
            words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        };
        match self {
            Block::Directory(directory) => {
                out.push(1);
                words(out, &[directory.number, directory.file, directory.file_pages]);
                let share = directory.mode == Mode::Share;
                out.extend([directory.half, directory.other_in_use.into(), share.into()]);
            }
            Block::Header(header) => {
                out.push(2);
                let root = header.root.map_or(0, |page| page.0);
                words(out, &[header.end.0, header.file, header.number, root]);
                out.push(header.depth);
                words(out, &[header.nodes, header.documents, header.document_bytes]);
            }
            Block::Node(node) => {
                out.push(3);
                words(out, &[node.at.0]);
                out.push(node.level);
                out.extend((node.entries.len() as u16).to_le_bytes());
                for Entry { key, place } in &node.entries {
                    out.push(key.len() as u8);
                    out.extend(&key[..]);
                    words(out, &[place.page.0]);
                    out.extend(place.offset.to_le_bytes());
                    out.extend(place.bytes.to_le_bytes());
                }
            }
            Block::Document(document) => {
                out.extend([4, document.key.len() as u8]);
                out.extend(&document.key[..]);
                out.extend(document.value.as_bytes());
            }
        }
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let mut input = Input(content);
        let block = match input.byte()? {
            1 => Block::Directory(Directory {
                number: input.word()?,
                file: input.word()?,
                file_pages: input.word()?,
                half: input.byte()?,
                other_in_use: input.byte()? != 0,
                mode: if input.byte()? == 0 { Mode::Original } else { Mode::Share },
            }),
            2 => Block::Header(Header {
                end: PageNo(input.word()?),
                file: input.word()?,
                number: input.word()?,
                root: Some(input.word()?).filter(|root| *root != 0).map(PageNo),
                depth: input.byte()?,
                nodes: input.word()?,
                documents: input.word()?,
                document_bytes: input.word()?,
            }),
            3 => {
                let (at, level) = (PageNo(input.word()?), input.byte()?);
                let count = u16::from_le_bytes(input.array()?);
                let entries = (0..count).map(|_| input.entry()).collect::<Option<_>>()?;
                Block::Node(Rc::new(Node { at, level, entries }))
            }
            4 => {
                let length = input.byte()?;
                let key = input.take(length.into())?.into();
                let value = V::from_bytes(input.rest());
                Block::Document(Document { key, value })
            }
            _ => return None,
        };
        input.rest().is_empty().then_some(block)
    }
}

impl Input<'_> {
    fn entry(&mut self) -> Option<Entry> {
        let length = self.byte()?;
        let key = self.take(length.into())?.into();
        let (page, offset) = (PageNo(self.word()?), u16::from_le_bytes(self.array()?));
        let bytes = u32::from_le_bytes(self.array()?);
        Some(Entry { key, place: Place { page, offset, bytes } })
    }
}
