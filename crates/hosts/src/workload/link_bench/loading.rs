//! Loads the graph into an engine.
use tantalum_base::Result;

use super::checks::Change;
use super::graph::{LINK_TYPES, List, Slot};
use super::rows::{self, Table, index_key, link_key, list_key, node_key};
use super::run::LinkBench;
use crate::workload::{RowStore, RowTransaction};

/// Number of rows per transaction.
const ROWS: u64 = 256;

/// Loaded links were made at random times before this, in milliseconds; changes during a run are
/// later.
pub(super) const LOADED_MS: u32 = 1 << 31;

/// The rows of a graph in the order in which they are loaded.
enum Next {
    Node(u64),
    Link(List, Slot),
    Count(List),
}

impl LinkBench {
    /// Inserts all nodes, links and counts, in the order of the nodes.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn load<S: RowStore>(&self, store: &S) -> Result<()> {
        let mut rows = self.rows_to_load().peekable();
        while rows.peek().is_some() {
            let mut transaction = store.begin();
            let mut changes = Vec::new();
            for row in rows.by_ref().take(ROWS as usize) {
                self.put_loaded(&mut transaction, row, &mut changes).await?;
            }
            transaction.commit().await?;
            let mut checks = self.checks.borrow_mut();
            changes.into_iter().for_each(|change| checks.end(change));
        }
        self.loaded.set(true);
        Ok(())
    }

    fn rows_to_load(&self) -> impl Iterator<Item = Next> {
        (0..self.graph.nodes).flat_map(move |node| {
            let lists = (0..LINK_TYPES).map(move |kind| List::new(node, kind));
            let of_list = move |list: List| {
                let (first, links) = (self.graph.slots_of(list).start, self.graph.loaded(list));
                let slots = (first..first + links).map(move |slot| Next::Link(list, Slot(slot)));
                slots.chain((links > 0).then_some(Next::Count(list)))
            };
            std::iter::once(Next::Node(node)).chain(lists.flat_map(of_list))
        })
    }

    async fn put_loaded<T: RowTransaction>(
        &self,
        transaction: &mut T,
        row: Next,
        changes: &mut Vec<Change>,
    ) -> Result<()> {
        match row {
            Next::Node(node) => {
                changes.push(self.checks.borrow_mut().begin_node(node, false));
                let value = rows::node(node, 1);
                transaction.put(Table::Node.tree(), &node_key(node), value).await
            }
            Next::Link(list, slot) => {
                let time_ms = loaded_ms(slot);
                let (link, _, change) =
                    self.checks.borrow_mut().begin_link(list, slot, (true, time_ms));
                changes.push(change);
                let key = link_key(&self.graph, list, slot);
                transaction.put(Table::Link.tree(), &key, link.row.made(Table::Link)).await?;
                let key = index_key(&self.graph, list, link.row, time_ms);
                transaction.put(Table::Index.tree(), &key, link.row.made(Table::Index)).await
            }
            Next::Count(list) => {
                let count = self.checks.borrow().count_state(list);
                let Some(count) = count else { return Ok(()) };
                transaction.put(Table::Count.tree(), &list_key(list), count.made()).await
            }
        }
    }
}

/// The time at which a link was made is independent of its target.
fn loaded_ms(slot: Slot) -> u32 {
    (slot.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 % LOADED_MS
}
