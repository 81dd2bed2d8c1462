//! Stores of a volume with a home, of which a copy is kept as they are at a chosen moment: just before the second write to the home from then on.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_media::block_store::MemoryStore;
use tantalum_media::{BlockStore, IoBuf, StoreLayer};
use tantalum_volume::TieredStores;

/// Flash, journal and home.
pub(super) type Stores = (MemoryStore, MemoryStore, MemoryStore);

/// Whether the moment has come, by the state and the claim in the journal's newest head.
pub(super) type IsDue = fn(state: u8, claim: u8) -> bool;

/// A moment, and the stores at it.
#[derive(Clone)]
pub(super) struct Moment(Rc<Kept>);

struct Kept {
    stores: Stores,
    is_due: Cell<IsDue>,
    /// Whether the first write has been made.
    is_first_done: Cell<bool>,
    images: RefCell<Option<Vec<Vec<u8>>>>,
}

/// One of the stores.
#[derive(Clone)]
pub(super) struct Observed {
    inner: MemoryStore,
    /// Of the home.
    moment: Option<Moment>,
}

impl Moment {
    /// A moment that does not come until it is [awaited](Self::wait_for).
    pub(super) fn new(stores: Stores) -> Self {
        let is_due = Cell::new((|_, _| false) as IsDue);
        Moment(Rc::new(Kept {
            stores,
            is_due,
            is_first_done: Cell::new(false),
            images: RefCell::default(),
        }))
    }

    pub(super) fn wait_for(&self, is_due: IsDue) {
        self.0.is_due.set(is_due);
    }

    /// The stores, observed.
    pub(super) fn stores(&self) -> TieredStores<Observed> {
        let (flash, journal, home) = self.0.stores.clone();
        let plain = |inner| Observed { inner, moment: None };
        let home = Observed { inner: home, moment: Some(self.clone()) };
        TieredStores { flash: plain(flash), home, journal: Some(plain(journal)) }
    }

    pub(super) fn has_come(&self) -> bool {
        self.0.images.borrow().is_some()
    }

    /// The images at the moment; as the stores are now, if it has not come.
    pub(super) fn images(&self) -> Vec<Vec<u8>> {
        let (flash, journal, home) = &self.0.stores;
        let now = || [flash, journal, home].map(MemoryStore::image).to_vec();
        self.0.images.borrow_mut().take().unwrap_or_else(now)
    }

    fn look(&self) {
        let journal = self.0.stores.1.image();
        let sequence =
            |at: usize| journal[at + 40..at + 48].try_into().map_or(0, u64::from_le_bytes);
        let newest = if sequence(0) > sequence(512 << 10) { 0 } else { 512 << 10 };
        let is_due = self.0.is_due.get()(journal[newest + 12], journal[newest + 14]);
        if !self.has_come() && is_due && self.0.is_first_done.replace(true) {
            self.keep();
        }
    }

    fn keep(&self) {
        let images = self.images();
        self.0.images.replace(Some(images));
    }
}

impl StoreLayer for Observed {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> impl Future<Output = Result<IoBuf>> {
        self.moment.iter().for_each(Moment::look);
        self.inner.write(offset, buf, durable)
    }
}
