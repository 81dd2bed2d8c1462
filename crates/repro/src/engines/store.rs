//! An engine over any device, for loads: in stamps or in bytes, in virtual time or live.
use std::rc::Rc;
use tantalum_base::{PageBuf, PageDevice, Payload, Result, Stamp};
use tantalum_buffer::Buffered;
use tantalum_hosts::docstore::{self, DocStore, DocStoreOptions, Mode};
use tantalum_hosts::records::{ByteCodec, Codec, Remembered};
use tantalum_hosts::redo;
use tantalum_hosts::values::{Key, Tree, ValueStamp};
use tantalum_hosts::workload::{KeyValueStore, LoadValue, OneTree};
use tantalum_policy::{PolicySpec, Workload};
use tantalum_runtime::Runtime;

use super::cell::Host;
use super::load::Load;
use super::rows::{self, RowEngine};
use super::sizes::{PAGE_PAGES, Sizes};

/// Stale part of the file at which the document store compacts: Couchbase's default of 30 %.
const COMPACT_AT: f64 = 0.3;

/// The representation of pages and values.
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

/// Bytes, for live devices.
pub(super) struct Bytes;

impl Content for Bytes {
    type Page = PageBuf;
    type Value = Rc<[u8]>;
    type Rows = ByteCodec<redo::Block<Rc<[u8]>>>;
    type Documents = ByteCodec<docstore::Block<Rc<[u8]>>>;
}

/// The state remembered outside a device's content, also over a power cut.
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

/// A document store, with a page cache as large as the other engines' pools.
type Documents<R, D, K> =
    Rc<DocStore<R, Buffered<D>, <K as Content>::Value, <K as Content>::Documents>>;

/// An open engine. Clones share it.
pub(super) enum Store<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> {
    /// One tree of rows as single values.
    Rows(OneTree<RowEngine<R, D, K>>),
    Documents(Documents<R, D, K>),
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> Clone for Store<R, D, K> {
    fn clone(&self) -> Self {
        match self {
            Store::Rows(rows) => Store::Rows(rows.clone()),
            Store::Documents(documents) => Store::Documents(Rc::clone(documents)),
        }
    }
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> Store<R, D, K> {
    /// Makes `host` on a device for a load, or opens it. `batch_updates` is the number of updates of documents in a commit.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) async fn start(
        (runtime, device): (&R, &Rc<D>),
        codecs: &Codecs<K>,
        (host, load, sizes): (Host, Load, &Sizes),
        start: Start,
        batch_updates: u32,
    ) -> Result<Self> {
        let (on, trees) = ((runtime, device, &codecs.rows), load.trees());
        let rows = match host {
            Host::DoubleWrite(form) => RowEngine::DoubleWrite(
                rows::start::<_, _, K, _>(on, (form, trees, sizes), start).await?,
            ),
            Host::Wal(form) => {
                RowEngine::Wal(rows::start::<_, _, K, _>(on, (form, trees, sizes), start).await?)
            }
            Host::Documents(mode) => {
                let workload = Workload { pages_end: device.limits().pages, future: &[] };
                let frames = sizes.pool_pages() * PAGE_PAGES;
                let lru = PolicySpec::parse("lru")?.build(frames, workload)?;
                let buffered = Rc::new(Buffered::new(Rc::clone(device), Some(lru)));
                let options = document_options(mode, batch_updates);
                let codec = &codecs.documents;
                return Ok(Store::Documents(match start {
                    Start::New => DocStore::create(runtime, &buffered, codec, options).await?,
                    Start::Again => DocStore::open(runtime, &buffered, codec, options).await?,
                }));
            }
        };
        Ok(Store::Rows(OneTree::new(rows, Tree(0))))
    }

    /// The engine of rows, if it is one.
    pub(super) fn rows(&self) -> Option<&RowEngine<R, D, K>> {
        match self {
            Store::Rows(rows) => Some(rows.rows()),
            Store::Documents(_) => None,
        }
    }

    /// Number of compactions that ended since the engine was opened; `None` if it has none.
    pub(super) fn compactions(&self) -> Option<u64> {
        match self {
            Store::Rows(_) => None,
            Store::Documents(documents) => Some(documents.statistics().compactions),
        }
    }

    /// Closes it in good order.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) async fn close(&self) -> Result<()> {
        match self {
            Store::Rows(rows) => rows.rows().close().await,
            Store::Documents(documents) => documents.close().await,
        }
    }
}

fn document_options(mode: Mode, batch_updates: u32) -> DocStoreOptions {
    DocStoreOptions { batch_updates, compact_at: Some(COMPACT_AT), ..DocStoreOptions::new(mode) }
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> KeyValueStore for Store<R, D, K> {
    type Value = K::Value;

    async fn get(&self, key: &[u8]) -> Result<Option<K::Value>> {
        match self {
            Store::Rows(rows) => rows.get(key).await,
            Store::Documents(documents) => KeyValueStore::get(documents, key).await,
        }
    }

    async fn put(&self, key: &[u8], value: K::Value) -> Result<()> {
        match self {
            Store::Rows(rows) => rows.put(key, value).await,
            Store::Documents(documents) => documents.put(key, value).await,
        }
    }

    async fn scan(&self, from: &[u8], records_max: usize) -> Result<Vec<(Key, K::Value)>> {
        match self {
            Store::Rows(rows) => rows.scan(from, records_max).await,
            Store::Documents(documents) => KeyValueStore::scan(documents, from, records_max).await,
        }
    }
}
