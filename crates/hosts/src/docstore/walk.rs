//! Documents in ascending order of their keys.
use std::rc::Rc;
use tantalum_base::{PageDevice, Result};

use super::block::{Block, Entry, Header, Node};
use super::tree::read_node;
use crate::records::{Codec, RecordDevice};
use crate::values::Value;

/// A position in a tree, before a document or at the end.
pub(super) struct Walk {
    /// Nodes on the path to it, each with the index of its next entry.
    way: Vec<(Rc<Node>, usize)>,
}

impl Walk {
    /// Positions before the first document whose key is `from` or higher.
    pub(super) async fn seek<D, V, C>(
        device: &RecordDevice<D, C>,
        header: &Header,
        from: &[u8],
    ) -> Result<Walk>
    where
        D: PageDevice,
        V: Value,
        C: Codec<Page = D::Page, Record = Block<V>>,
    {
        let mut way = Vec::new();
        let mut page = header.root;
        for level in (0..header.depth).rev() {
            let Some(at) = page else { break };
            let node = read_node(device, at, level).await?;
            let next = match level {
                0 => node.entries.partition_point(|entry| &*entry.key < from),
                _ => {
                    let child = node.child_for(from);
                    page = Some(node.entries[child].place.page);
                    child + 1
                }
            };
            way.push((node, next));
        }
        Ok(Walk { way })
    }

    /// The next document's entry; `None` at the end.
    pub(super) async fn next<D, V, C>(
        &mut self,
        device: &RecordDevice<D, C>,
    ) -> Result<Option<Entry>>
    where
        D: PageDevice,
        V: Value,
        C: Codec<Page = D::Page, Record = Block<V>>,
    {
        while let Some((node, next)) = self.way.last_mut() {
            let Some(entry) = node.entries.get(*next).cloned() else {
                self.way.pop();
                continue;
            };
            *next += 1;
            let Some(below) = node.level.checked_sub(1) else { return Ok(Some(entry)) };
            let child = read_node(device, entry.place.page, below).await?;
            self.way.push((child, 0));
        }
        Ok(None)
    }
}
