//! A store as a target of workloads.
use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_runtime::Runtime;

use super::block::Block;
use super::store::DocStore;
use crate::records::Codec;
use crate::values::Key;
use crate::workload::{KeyValueStore, LoadValue};

impl<R, D, V, C> KeyValueStore for Rc<DocStore<R, D, V, C>>
where
    R: Runtime,
    D: PageDevice,
    V: LoadValue,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    type Value = V;

    async fn get(&self, key: &[u8]) -> Result<Option<V>> {
        DocStore::get(self, key).await
    }

    async fn put(&self, key: &[u8], value: V) -> Result<()> {
        self.set(key, value).await
    }

    async fn scan(&self, from: &[u8], records_max: usize) -> Result<Vec<(Key, V)>> {
        DocStore::scan(self, from, None, records_max).await
    }
}
