//! The blocks that an engine keeps on its device, and their layout in bytes.
//!
//! ```text
//! header   1 | number 8 | log position 8 | next LSN 8 | shape: mode 1 | device pages of a page 4 | database pages 8 |
//!              log pages 8 | pages of a batch 4 | journal pages 4 | trees 4 | log apart 1 | its database 8
//! page     2 | as in `btree::page`
//! log      3 | LSN of the first group 8 | groups 4 | groups: pages 4 | changes of each, as in `btree::change`
//! ```
//!
//! Numbers are little-endian.
use std::rc::Rc;

use crate::btree::{Lsn, PageChanges, TreePage};
use crate::records::{ByteRecord, Input, Record};
use crate::values::{ByteValue, Value};

/// Marks of device pages, by kind of content: a user's value cannot pass for another kind than its page is marked for.
const MARK_HEADER: u8 = 1;
const MARK_PAGE: u8 = 2;
const MARK_LOG: u8 = 3;

/// The settings with which a database was made. They determine the layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// How the engine writes pages, as an index of its modes.
    pub mode: u8,
    /// Device pages in a page of the database.
    pub device_pages: u32,
    /// Pages of the database.
    pub database_pages: u64,
    /// Device pages of the log.
    pub log_pages: u64,
    /// Maximum number of pages that are written together.
    pub batch_pages: u32,
    /// Device pages of the file system's journal.
    pub journal_pages: u32,
    /// Number of trees: their roots are pages 1 to this number.
    pub trees: u32,
    /// If the log has a device of its own: the number of the database, which both devices store.
    pub log_apart: Option<u64>,
}

/// A checkpoint: all changes before its LSN are in the pages, durably.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Counts the headers of the database.
    pub number: u64,
    /// The begin of the log: number of log pages ever used up to there.
    pub position: u64,
    /// LSN of the first group there.
    pub next: Lsn,
    /// The settings with which the database was made.
    pub shape: Shape,
}

/// Changes that are all or nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Group<V> {
    /// The changes, with each page once.
    pub pages: Vec<PageChanges<V>>,
}

/// Groups that are written together.
#[derive(Clone, PartialEq, Debug)]
pub struct LogBlock<V> {
    /// LSN of the first of its groups.
    pub first: Lsn,
    /// The groups; at least one.
    pub groups: Vec<Rc<Group<V>>>,
}

/// Any block that an engine writes.
#[derive(Clone, PartialEq, Debug)]
pub enum Block<V> {
    /// A checkpoint.
    Header(Header),
    /// A page of the database.
    Page(Rc<TreePage<V>>),
    /// A block of the log.
    Log(LogBlock<V>),
}

impl<V: Value> Group<V> {
    /// Size of the group in a block, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        4 + self.pages.iter().map(PageChanges::bytes).sum::<usize>()
    }
}

/// Size of a block without its groups, in bytes.
pub(crate) const BLOCK_BYTES: usize = 13;

impl<V: Value> Record for Block<V> {
    fn content_bytes(&self) -> usize {
        match self {
            Block::Header(_) => 67,
            Block::Page(page) => page.content_bytes(),
            Block::Log(block) => {
                BLOCK_BYTES + block.groups.iter().map(|group| group.bytes()).sum::<usize>()
            }
        }
    }

    fn mark(&self) -> u8 {
        match self {
            Block::Header(_) => MARK_HEADER,
            Block::Page(_) => MARK_PAGE,
            Block::Log(_) => MARK_LOG,
        }
    }
}

impl<V: ByteValue> ByteRecord for Block<V> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Block::Header(header) => {
                out.push(1);
                let Header { number, position, next, shape } = header;
                [*number, *position, next.0].iter().for_each(|word| out.extend(word.to_le_bytes()));
                out.push(shape.mode);
                out.extend(shape.device_pages.to_le_bytes());
                out.extend(shape.database_pages.to_le_bytes());
                out.extend(shape.log_pages.to_le_bytes());
                out.extend(shape.batch_pages.to_le_bytes());
                out.extend(shape.journal_pages.to_le_bytes());
                out.extend(shape.trees.to_le_bytes());
                out.push(u8::from(shape.log_apart.is_some()));
                out.extend(shape.log_apart.unwrap_or(0).to_le_bytes());
            }
            Block::Page(page) => {
                out.push(2);
                page.encode(out);
            }
            Block::Log(block) => {
                out.push(3);
                out.extend(block.first.0.to_le_bytes());
                out.extend((block.groups.len() as u32).to_le_bytes());
                for group in &block.groups {
                    out.extend((group.pages.len() as u32).to_le_bytes());
                    group.pages.iter().for_each(|page| page.encode(out));
                }
            }
        }
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let mut input = Input(content);
        let count = |input: &mut Input<'_>| Some(u32::from_le_bytes(input.array()?));
        let block = match input.byte()? {
            1 => {
                let (number, position) = (input.word()?, input.word()?);
                let next = Lsn(input.word()?);
                let mut shape = Shape {
                    mode: input.byte()?,
                    device_pages: count(&mut input)?,
                    database_pages: input.word()?,
                    log_pages: input.word()?,
                    batch_pages: count(&mut input)?,
                    journal_pages: count(&mut input)?,
                    trees: count(&mut input)?,
                    log_apart: None,
                };
                let is_apart = input.byte()? != 0;
                let database = input.word()?;
                shape.log_apart = is_apart.then_some(database);
                Block::Header(Header { number, position, next, shape })
            }
            2 => Block::Page(Rc::new(TreePage::decode(&mut input, content.len())?)),
            3 => {
                let first = Lsn(input.word()?);
                let groups = (0..count(&mut input)?).map(|_| {
                    let pages = (0..count(&mut input)?).map(|_| PageChanges::decode(&mut input));
                    Some(Rc::new(Group { pages: pages.collect::<Option<_>>()? }))
                });
                Block::Log(LogBlock { first, groups: groups.collect::<Option<_>>()? })
            }
            _ => return None,
        };
        input.rest().is_empty().then_some(block)
    }
}
