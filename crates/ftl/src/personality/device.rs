//! A personality as a device: one request at a time, pages one by one.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Payload,
    Result, TxId,
};
use tantalum_media::ZoneMedia;
use tantalum_runtime::sync::Semaphore;

use super::PersonalitySpec;
use super::bast::Bast;
use super::block_map::BlockMap;
use super::blocks::Blocks;
use super::dftl::Dftl;
use super::fast::Fast;
use super::statistics::PersonalityStatistics;

/// The layers.
enum Layer<M: ZoneMedia> {
    BlockMap(BlockMap<M>),
    Bast(Bast<M>),
    Fast(Fast<M>),
    Dftl(Dftl<M>),
}

/// A translation layer over `M`, without write cache: what is acknowledged is durable.
///
/// A call must be driven to its end: after one that was dropped midway, other than at a power
/// cut, the device refuses everything until it is opened again.
pub struct Personality<M: ZoneMedia> {
    limits: Limits,
    spec: PersonalitySpec,
    /// One request at a time; whoever has the turn takes the layer out and puts it back.
    turn: Semaphore,
    layer: Cell<Option<Box<Layer<M>>>>,
    /// The first failure of a change; changes are refused from then on.
    latched: RefCell<Option<Error>>,
    statistics: Cell<PersonalityStatistics>,
}

impl<M: ZoneMedia> Personality<M> {
    /// An empty device of `pages` pages on `media`; what that holds is forgotten.
    ///
    /// # Errors
    /// `InvalidInput` where the medium cannot carry the pages.
    pub async fn format(media: M, spec: PersonalitySpec, pages: u64) -> Result<Rc<Self>> {
        spec.check(pages, &media.geometry(), media.retired().len() as u32)?;
        let blocks = Blocks::recover(media).await?.forget().await?;
        let layer = match spec {
            PersonalitySpec::BlockMap => Layer::BlockMap(BlockMap::new(blocks, pages)),
            PersonalitySpec::Bast { logs } => Layer::Bast(Bast::new(blocks, pages, logs)),
            PersonalitySpec::Fast { logs } => Layer::Fast(Fast::new(blocks, pages, logs)),
            PersonalitySpec::Dftl { cmt } => Layer::Dftl(Dftl::new(blocks, pages, cmt)),
        };
        Ok(Personality::over(layer, spec, pages))
    }

    /// The device that `media` holds, from a scan of its spare areas.
    ///
    /// # Errors
    /// `InvalidInput` as [`format`](Self::format); `Corrupt` where what is found contradicts
    /// itself.
    pub async fn recover(media: M, spec: PersonalitySpec, pages: u64) -> Result<Rc<Self>> {
        // Blocks retired since it was made take from its spare ones.
        spec.check(pages, &media.geometry(), 0)?;
        let blocks = Blocks::recover(media).await?;
        let layer = match spec {
            PersonalitySpec::BlockMap => Layer::BlockMap(BlockMap::recover(blocks, pages).await?),
            PersonalitySpec::Bast { logs } => {
                Layer::Bast(Bast::recover(blocks, pages, logs).await?)
            }
            PersonalitySpec::Fast { logs } => {
                Layer::Fast(Fast::recover(blocks, pages, logs).await?)
            }
            PersonalitySpec::Dftl { cmt } => Layer::Dftl(Dftl::recover(blocks, pages, cmt).await?),
        };
        Ok(Personality::over(layer, spec, pages))
    }

    fn over(layer: Layer<M>, spec: PersonalitySpec, pages: u64) -> Rc<Self> {
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages,
            atomic_write_pages_max: 1,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        let statistics = Cell::new(layer.blocks().statistics());
        Rc::new(Personality {
            limits,
            spec,
            turn: Semaphore::new("the translation layer's turn", 1),
            layer: Cell::new(Some(Box::new(layer))),
            latched: RefCell::new(None),
            statistics,
        })
    }

    /// The layer and its parameters.
    pub fn spec(&self) -> &PersonalitySpec {
        &self.spec
    }

    /// Counters since opening, as of the last request that ended.
    pub fn statistics(&self) -> PersonalityStatistics {
        self.statistics.get()
    }

    /// Carries out one request on the layer. A failure of a `change` latches the device.
    async fn with<T>(
        &self,
        change: bool,
        request: impl AsyncFnOnce(&mut Layer<M>) -> Result<T>,
    ) -> Result<T> {
        let _turn = self.turn.acquire(1).await;
        if change && let Some(first) = &*self.latched.borrow() {
            return Err(refused(first.clone()));
        }
        let Some(mut layer) = self.layer.take() else {
            let context = "a request was dropped midway";
            return Err(refused(Error::new(ErrorKind::Closed, context)));
        };
        let result = request(&mut layer).await;
        self.statistics.set(layer.blocks().statistics());
        self.layer.set(Some(layer));
        if change && let Err(error) = &result {
            self.latched.borrow_mut().get_or_insert_with(|| error.clone());
        }
        result
    }
}

fn refused(first: Error) -> Error {
    let context = "refused until the device is opened again, after an earlier failure";
    Error::with_source(ErrorKind::Latched, context, first)
}

impl<M: ZoneMedia> Layer<M> {
    fn blocks(&self) -> &Blocks<M> {
        match self {
            Layer::BlockMap(layer) => &layer.blocks,
            Layer::Bast(layer) => &layer.blocks,
            Layer::Fast(layer) => &layer.blocks,
            Layer::Dftl(layer) => &layer.blocks,
        }
    }

    fn blocks_mut(&mut self) -> &mut Blocks<M> {
        match self {
            Layer::BlockMap(layer) => &mut layer.blocks,
            Layer::Bast(layer) => &mut layer.blocks,
            Layer::Fast(layer) => &mut layer.blocks,
            Layer::Dftl(layer) => &mut layer.blocks,
        }
    }

    async fn read(&mut self, page: PageNo) -> Result<M::Page> {
        let (blocks, place) = match self {
            Layer::BlockMap(layer) => (&layer.blocks, layer.find(page)),
            Layer::Bast(layer) => (&layer.blocks, layer.find(page)),
            Layer::Fast(layer) => (&layer.blocks, layer.find(page)),
            Layer::Dftl(layer) => return layer.read(page).await,
        };
        match place {
            Some(place) => blocks.read(place).await,
            None => Ok(M::Page::zero()),
        }
    }

    async fn write(&mut self, page: PageNo, content: &M::Page) -> Result<()> {
        match self {
            Layer::BlockMap(layer) => layer.write(page, content).await,
            Layer::Bast(layer) => layer.write(page, content).await,
            Layer::Fast(layer) => layer.write(page, content).await,
            Layer::Dftl(layer) => layer.write(page, content).await,
        }
    }

    async fn trim(&mut self, range: PageRange) -> Result<()> {
        if let Layer::BlockMap(layer) = self {
            return layer.trim(range).await;
        }
        for page in range.iter() {
            let held = match self {
                Layer::BlockMap(layer) => layer.find(page).is_some(),
                Layer::Bast(layer) => layer.find(page).is_some(),
                Layer::Fast(layer) => layer.find(page).is_some(),
                Layer::Dftl(layer) => layer.holds(page).await?,
            };
            if held {
                self.blocks_mut().statistics.pages_trimmed += 1;
                self.write(page, &M::Page::zero()).await?;
            }
        }
        Ok(())
    }
}

impl<M: ZoneMedia> PageDevice for Personality<M> {
    type Page = M::Page;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [M::Page], tx: Option<TxId>) -> Result<()> {
        refuse_transactions(tx)?;
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        // Reading may change the cached map.
        let change = matches!(self.spec, PersonalitySpec::Dftl { .. });
        self.with(false, async |layer| {
            layer.blocks_mut().statistics.host_reads += out.len() as u64;
            for (page, out) in (first.0..).map(PageNo).zip(out) {
                *out = layer.read(page).await?;
            }
            Ok(())
        })
        .await
        .inspect_err(|error| {
            let decayed = matches!(error.kind(), ErrorKind::Uncorrectable | ErrorKind::Checksum);
            if change && !decayed {
                self.latched.borrow_mut().get_or_insert_with(|| error.clone());
            }
        })
    }

    async fn write(&self, first: PageNo, pages: &[M::Page], tx: Option<TxId>) -> Result<()> {
        refuse_transactions(tx)?;
        self.limits.check_range(PageRange::new(first, pages.len() as u64))?;
        if pages.len() > 1 {
            let context = format!("a write of {} pages: {} takes one", pages.len(), self.spec);
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        self.with(true, async |layer| {
            for (page, content) in (first.0..).map(PageNo).zip(pages) {
                layer.write(page, content).await?;
            }
            layer.blocks_mut().statistics.host_pages += pages.len() as u64;
            Ok(())
        })
        .await
    }

    async fn flush(&self) -> Result<()> {
        // What was acknowledged is durable; only wait for what is before this in the queue.
        self.with(true, async |layer| {
            layer.blocks_mut().statistics.flushes += 1;
            Ok(())
        })
        .await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.with(true, async |layer| layer.trim(range).await).await
    }

    async fn share(&self, _pairs: &[(PageNo, PageNo)]) -> Result<()> {
        Err(unsupported("pages cannot be shared"))
    }

    async fn begin(&self) -> Result<TxId> {
        Err(unsupported("there are no transactions"))
    }

    async fn commit(&self, _tx: TxId) -> Result<()> {
        Err(unsupported("there are no transactions"))
    }

    async fn abort(&self, _tx: TxId) -> Result<()> {
        Err(unsupported("there are no transactions"))
    }
}

fn unsupported(context: &str) -> Error {
    Error::new(ErrorKind::Unsupported, context)
}

fn refuse_transactions(tx: Option<TxId>) -> Result<()> {
    if tx.is_none() { Ok(()) } else { Err(unsupported("there are no transactions")) }
}
