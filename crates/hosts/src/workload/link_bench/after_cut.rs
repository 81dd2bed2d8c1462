//! After a power cut, or a kill: acknowledged changes are there, and each change in progress is there as a whole or not at all.
use tantalum_base::Result;

use super::inspection::Inspection;
use super::operations::told_all;
use super::rows::{CountRow, LinkRow, Table, link_key, list_key, node_key, told_node};
use super::run::LinkBench;
use crate::workload::RowStore;

impl LinkBench {
    /// Finds out which of the changes in progress at the power cut were made, and reads all tables. Runs may follow.
    ///
    /// # Errors
    /// `Corrupt` if an acknowledged change is missing, or a change is there in part; those of the engine.
    pub async fn after_cut<S: RowStore>(&self, store: &S) -> Result<Inspection> {
        let nodes = self.checks.borrow().open_nodes();
        for node in nodes {
            let found = store.get(Table::Node.tree(), &node_key(node)).await?;
            let told = told_all("node", node, found.map(|value| told_node(&value)))?;
            self.checks.borrow_mut().settle_node(node, told)?;
        }
        let links = self.checks.borrow().open_links();
        for slot in links {
            let key = link_key(&self.graph, self.graph.list_of(slot), slot);
            let found = store.get(Table::Link.tree(), &key).await?;
            let told = found.map(|value| LinkRow::told(Table::Link, &value));
            let told = told_all("link in slot", slot.0, told)?;
            self.checks.borrow_mut().settle_link(slot, told)?;
        }
        let lists = self.checks.borrow().open_lists();
        for list in lists {
            let found = store.get(Table::Count.tree(), &list_key(list)).await?;
            let told = found.map(|value| CountRow::told(&value));
            let told = told_all("count of list", list.0, told)?;
            self.checks.borrow_mut().settle_list(&self.graph, list, told)?;
        }
        self.inspect(store).await
    }
}
