//! An engine over any device, as the load sees it: in stamps or in bytes, in virtual time or live.
use std::rc::Rc;
use tantalum_base::{PageBuf, PageDevice, Payload, Result, Stamp};
use tantalum_buffer::Buffered;
use tantalum_hosts::database::{Database, DatabaseOptions, PageOptions, Way};
use tantalum_hosts::docstore::{self, DocStore, DocStoreOptions, Mode};
use tantalum_hosts::records::{ByteCodec, Codec, Remembered};
use tantalum_hosts::redo;
use tantalum_hosts::values::{Key, Tree, ValueStamp};
use tantalum_hosts::workload::{KeyValueStore, LoadValue, OneTree};
use tantalum_policy::{PolicySpec, Workload};
use tantalum_runtime::Runtime;

use super::cell::Host;
use super::sizes::{PAGE_PAGES, Sizes};

/// Stale part of the file from which the document store compacts: Couchbase's default of 30 %.
const COMPACT_AT: f64 = 0.3;

/// What pages and values are made of.
pub(super) trait Content: 'static {
    type Page: Payload;
    type Value: LoadValue;
    type Rows: Codec<Page = Self::Page, Record = redo::Block<Self::Value>> + Default;
    type Documents: Codec<Page = Self::Page, Record = docstore::Block<Self::Value>> + Default;
}

/// Stamps, for virtual time.
pub(super) struct Stamps;

impl Content for Stamps {
    type Page = Stamp;
    type Value = ValueStamp;
    type Rows = Remembered<redo::Block<ValueStamp>>;
    type Documents = Remembered<docstore::Block<ValueStamp>>;
}

/// Bytes, for what is live.
pub(super) struct Bytes;

impl Content for Bytes {
    type Page = PageBuf;
    type Value = Rc<[u8]>;
    type Rows = ByteCodec<redo::Block<Rc<[u8]>>>;
    type Documents = ByteCodec<docstore::Block<Rc<[u8]>>>;
}

/// What is remembered beside a device's content, over a power cut as well.
pub(super) struct Codecs<K: Content> {
    rows: Rc<K::Rows>,
    documents: Rc<K::Documents>,
}

impl<K: Content> Default for Codecs<K> {
    fn default() -> Self {
        Codecs { rows: Rc::default(), documents: Rc::default() }
    }
}

impl<K: Content> Clone for Codecs<K> {
    fn clone(&self) -> Self {
        Codecs { rows: Rc::clone(&self.rows), documents: Rc::clone(&self.documents) }
    }
}

/// Whether an engine is made or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    New,
    Again,
}

/// An engine of rows, of which the load has one tree.
type Rows<R, D, K, W> =
    OneTree<R, Rc<Database<R, D, <K as Content>::Value, <K as Content>::Rows, W>>>;

/// A document store, behind the memory that the other engines have in their pools.
type Documents<R, D, K> =
    Rc<DocStore<R, Buffered<D>, <K as Content>::Value, <K as Content>::Documents>>;

/// An open engine. Clones name the same one.
pub(super) enum Store<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> {
    DoubleWrite(Rows<R, D, K, tantalum_hosts::double_write::Form>),
    Wal(Rows<R, D, K, tantalum_hosts::wal_engine::WalForm>),
    Documents(Documents<R, D, K>),
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> Clone for Store<R, D, K> {
    fn clone(&self) -> Self {
        match self {
            Store::DoubleWrite(rows) => Store::DoubleWrite(rows.clone()),
            Store::Wal(rows) => Store::Wal(rows.clone()),
            Store::Documents(documents) => Store::Documents(Rc::clone(documents)),
        }
    }
}

/// The settings of an engine of rows.
fn options<W: Way>(form: W, sizes: &Sizes) -> DatabaseOptions<W> {
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
    DatabaseOptions { pages, log_pages, trees: 1 }
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> Store<R, D, K> {
    /// Makes `host` on a device, or opens it. `batch_updates` is how many updates of documents are committed at once.
    ///
    /// # Errors
    /// The engine's.
    pub(super) async fn start(
        (runtime, device): (&R, &Rc<D>),
        codecs: &Codecs<K>,
        (host, sizes): (Host, &Sizes),
        start: Start,
        batch_updates: u32,
    ) -> Result<Self> {
        let on = (runtime, device, &codecs.rows);
        Ok(match host {
            Host::DoubleWrite(form) => {
                Store::DoubleWrite(rows::<_, _, K, _>(on, options(form, sizes), start).await?)
            }
            Host::Wal(form) => {
                Store::Wal(rows::<_, _, K, _>(on, options(form, sizes), start).await?)
            }
            Host::Documents(mode) => {
                let workload = Workload { pages_end: device.limits().pages, future: &[] };
                let frames = sizes.pool_pages() * PAGE_PAGES;
                let lru = PolicySpec::parse("lru")?.build(frames, workload)?;
                let buffered = Rc::new(Buffered::new(Rc::clone(device), Some(lru)));
                let options = document_options(mode, batch_updates);
                let codec = &codecs.documents;
                Store::Documents(match start {
                    Start::New => DocStore::create(runtime, &buffered, codec, options).await?,
                    Start::Again => DocStore::open(runtime, &buffered, codec, options).await?,
                })
            }
        })
    }

    /// Ends it in good order.
    ///
    /// # Errors
    /// The engine's.
    pub(super) async fn close(&self) -> Result<()> {
        match self {
            Store::DoubleWrite(rows) => rows.rows().close().await,
            Store::Wal(rows) => rows.rows().close().await,
            Store::Documents(documents) => documents.close().await,
        }
    }
}

fn document_options(mode: Mode, batch_updates: u32) -> DocStoreOptions {
    DocStoreOptions { batch_updates, compact_at: Some(COMPACT_AT), ..DocStoreOptions::new(mode) }
}

async fn rows<R: Runtime, D: PageDevice, K: Content<Page = D::Page>, W: Way>(
    (runtime, device, codec): (&R, &Rc<D>, &Rc<K::Rows>),
    options: DatabaseOptions<W>,
    start: Start,
) -> Result<Rows<R, D, K, W>> {
    let database = match start {
        Start::New => Database::create(runtime, device, codec, options).await?,
        Start::Again => Database::open(runtime, device, codec, options).await?.0,
    };
    Ok(OneTree::new(runtime, database, Tree(0)))
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> KeyValueStore for Store<R, D, K> {
    type Value = K::Value;

    async fn get(&self, key: &[u8]) -> Result<Option<K::Value>> {
        match self {
            Store::DoubleWrite(rows) => rows.get(key).await,
            Store::Wal(rows) => rows.get(key).await,
            Store::Documents(documents) => KeyValueStore::get(documents, key).await,
        }
    }

    async fn put(&self, key: &[u8], value: K::Value) -> Result<()> {
        match self {
            Store::DoubleWrite(rows) => rows.put(key, value).await,
            Store::Wal(rows) => rows.put(key, value).await,
            Store::Documents(documents) => documents.put(key, value).await,
        }
    }

    async fn scan(&self, from: &[u8], records_max: usize) -> Result<Vec<(Key, K::Value)>> {
        match self {
            Store::DoubleWrite(rows) => rows.scan(from, records_max).await,
            Store::Wal(rows) => rows.scan(from, records_max).await,
            Store::Documents(documents) => KeyValueStore::scan(documents, from, records_max).await,
        }
    }
}
