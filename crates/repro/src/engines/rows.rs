//! Either of the two engines of rows, for loads of transactions.
use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_hosts::database::{Database, DatabaseOptions, PageOptions, Transaction, Way};
use tantalum_hosts::double_write::Form;
use tantalum_hosts::values::{Key, Tree};
use tantalum_hosts::wal_engine::WalForm;
use tantalum_hosts::workload::{RowStore, RowTransaction};
use tantalum_runtime::Runtime;

use super::sizes::{PAGE_PAGES, Sizes};
use super::store::{Content, Start};

type DatabaseOf<R, D, K, W> = Rc<Database<R, D, <K as Content>::Value, <K as Content>::Rows, W>>;
type TransactionOf<R, D, K, W> = Transaction<R, D, <K as Content>::Value, <K as Content>::Rows, W>;

/// An open engine of rows. Clones share it.
pub(super) enum RowEngine<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> {
    DoubleWrite(DatabaseOf<R, D, K, Form>),
    Wal(DatabaseOf<R, D, K, WalForm>),
}

/// One of its transactions.
pub(super) enum RowChanges<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> {
    DoubleWrite(TransactionOf<R, D, K, Form>),
    Wal(TransactionOf<R, D, K, WalForm>),
}

/// Calls the method of either engine.
macro_rules! either {
    ($one:expr, $of:ident => $does:expr) => {
        match $one {
            Self::DoubleWrite($of) => $does,
            Self::Wal($of) => $does,
        }
    };
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> Clone for RowEngine<R, D, K> {
    fn clone(&self) -> Self {
        match self {
            RowEngine::DoubleWrite(database) => RowEngine::DoubleWrite(Rc::clone(database)),
            RowEngine::Wal(database) => RowEngine::Wal(Rc::clone(database)),
        }
    }
}

/// Makes a database with this way to its device, for loads with this many trees, or opens it.
///
/// # Errors
/// Those of the engine.
pub(super) async fn start<R: Runtime, D: PageDevice, K: Content<Page = D::Page>, W: Way>(
    (runtime, device, codec): (&R, &Rc<D>, &Rc<K::Rows>),
    (form, trees, sizes): (W, u32, &Sizes),
    start: Start,
) -> Result<DatabaseOf<R, D, K, W>> {
    let options = options(form, trees, sizes);
    Ok(match start {
        Start::New => Database::create(runtime, device, codec, options).await?,
        Start::Again => Database::open(runtime, device, codec, options).await?.0,
    })
}

fn options<W: Way>(form: W, trees: u32, sizes: &Sizes) -> DatabaseOptions<W> {
    let pages = PageOptions {
        form,
        database_pages: sizes.database_pages(),
        device_pages_per_page: PAGE_PAGES,
        pool_pages: sizes.pool_pages(),
        batch_pages: sizes.batch_pages(),
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    let log_pages = if form.has_log() { sizes.log_pages() } else { 0 };
    DatabaseOptions { pages, log_pages, trees }
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> RowEngine<R, D, K> {
    /// Closes it in good order.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) async fn close(&self) -> Result<()> {
        either!(self, database => database.close().await)
    }
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> RowStore for RowEngine<R, D, K> {
    type Value = K::Value;
    type Transaction = RowChanges<R, D, K>;

    fn begin(&self) -> Self::Transaction {
        match self {
            RowEngine::DoubleWrite(database) => RowChanges::DoubleWrite(database.begin()),
            RowEngine::Wal(database) => RowChanges::Wal(database.begin()),
        }
    }

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<K::Value>> {
        either!(self, database => database.get(tree, key).await)
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, K::Value)>> {
        either!(self, database => database.scan(tree, from, to, rows_max).await)
    }
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> RowTransaction for RowChanges<R, D, K> {
    type Value = K::Value;

    async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<K::Value>> {
        either!(self, changes => changes.get(tree, key).await)
    }

    async fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<K::Value>> {
        either!(self, changes => changes.get_for_update(tree, key).await)
    }

    async fn put(&mut self, tree: Tree, key: &[u8], value: K::Value) -> Result<()> {
        either!(self, changes => changes.put(tree, key, value).await)
    }

    async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        either!(self, changes => changes.delete(tree, key).await)
    }

    async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        rows_max: usize,
    ) -> Result<Vec<(Key, K::Value)>> {
        either!(self, changes => changes.scan(tree, from, to, rows_max).await)
    }

    async fn start_again(&mut self) {
        either!(self, changes => changes.start_again().await);
    }

    async fn commit(self) -> Result<()> {
        either!(self, changes => changes.commit().await)
    }
}
