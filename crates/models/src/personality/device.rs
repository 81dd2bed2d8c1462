//! A personality as a device: one request at a time, page by page.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Payload,
    Result, TxId,
};
use tantalum_media::ZoneMedia;
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::Semaphore;
use tantalum_runtime::{DeviceCounters, DeviceKind, LifeCycle, Opening, Runtime};

use super::PersonalitySpec;
use super::bast::Bast;
use super::block_map::BlockMap;
use super::blocks::{Blocks, Place};
use super::dftl::Dftl;
use super::fast::Fast;
use super::statistics::PersonalityStatistics;
use super::writes::Writes;
use tantalum_ftl::CommandTasks;

/// The layers.
enum Layer<M: ZoneMedia> {
    BlockMap(BlockMap<M>),
    Bast(Bast<M>),
    Fast(Fast<M>),
    Dftl(Dftl<M>),
}

/// A translation layer over `M`, without a write cache: an acknowledged change is durable. Every request
/// that may change something is a task, which runs to its end even if the caller drops its future.
pub struct Personality<M: ZoneMedia> {
    limits: Limits,
    spec: PersonalitySpec,
    commands: CommandTasks<Self>,
    /// One request at a time; the request with the turn takes the layer out and puts it back.
    turn: Semaphore,
    layer: Cell<Option<Box<Layer<M>>>>,
    /// Writes waiting for a turn.
    writes: RefCell<Writes<M::Page>>,
    /// The first failure of a change; from then on changes are refused.
    latched: RefCell<Option<Error>>,
    statistics: Cell<PersonalityStatistics>,
}

impl<M: ZoneMedia> Personality<M> {
    /// A new empty device of `pages` pages on `media`, whose requests run on `runtime`; the old
    /// content of the medium is dropped.
    ///
    /// # Errors
    /// `InvalidInput` if the medium is too small for the pages.
    pub async fn format(
        runtime: &impl Runtime,
        media: M,
        spec: PersonalitySpec,
        pages: u64,
    ) -> Result<Rc<Self>> {
        spec.check(pages, &media.geometry(), media.retired().len() as u32)?;
        let blocks = Blocks::recover(media).await?.forget().await?;
        Personality::over(runtime, blocks, spec, pages).await
    }

    /// The device stored on `media`, from a scan of its spare areas.
    ///
    /// # Errors
    /// `InvalidInput` as [`format`](Self::format); `Corrupt` if the content is inconsistent.
    pub async fn recover(
        runtime: &impl Runtime,
        media: M,
        spec: PersonalitySpec,
        pages: u64,
    ) -> Result<Rc<Self>> {
        // Blocks retired since it was made reduce the spare ones.
        spec.check(pages, &media.geometry(), 0)?;
        let blocks = Blocks::recover(media).await?;
        Personality::over(runtime, blocks, spec, pages).await
    }

    /// The device, with the state that the layer finds on `blocks`.
    async fn over(
        runtime: &impl Runtime,
        blocks: Blocks<M>,
        spec: PersonalitySpec,
        pages: u64,
    ) -> Result<Rc<Self>> {
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
        let device = Rc::new(Personality {
            limits,
            spec,
            commands: CommandTasks::new(),
            turn: Semaphore::new("the translation layer's turn", 1),
            layer: Cell::new(Some(Box::new(layer))),
            writes: RefCell::default(),
            latched: RefCell::new(None),
            statistics,
        });
        device.commands.start(&device, runtime);
        Ok(device)
    }

    /// The layer and its parameters.
    pub fn spec(&self) -> &PersonalitySpec {
        &self.spec
    }

    /// Counters since opening, as of the end of the last request.
    pub fn statistics(&self) -> PersonalityStatistics {
        self.statistics.get()
    }

    /// Runs one request on the layer to its end. If a `change` fails, the device is latched.
    async fn with<T: 'static>(
        &self,
        name: &'static str,
        change: bool,
        request: impl AsyncFnOnce(&mut Layer<M>) -> Result<T> + 'static,
    ) -> Result<T> {
        let in_turn = |device: Rc<Self>| async move {
            let _turn = device.turn.acquire(1).await;
            device.in_turn(change, request).await
        };
        self.commands.run(name, in_turn).await
    }

    /// As [`with`](Self::with), for a caller that has the turn.
    async fn in_turn<T>(
        &self,
        change: bool,
        request: impl AsyncFnOnce(&mut Layer<M>) -> Result<T>,
    ) -> Result<T> {
        if change && let Some(first) = &*self.latched.borrow() {
            return Err(refused(first.clone()));
        }
        let Some(mut layer) = self.layer.take() else { return Err(dropped_midway()) };
        let result = request(&mut layer).await;
        self.statistics.set(layer.blocks().statistics());
        let refusal = result.as_ref().err().filter(|_| change).cloned();
        if let Some(error) = refusal.or_else(|| layer.failure()) {
            let first = self.latched.borrow_mut().get_or_insert(error).clone();
            layer.freeze(first);
        }
        self.layer.set(Some(layer));
        result
    }

    /// Reads the pages from `first` on, for a layer that reads do not change. Not a task, so the caller may drop it
    /// midway.
    async fn read_only(&self, first: PageNo, out: &mut [M::Page]) -> Result<()> {
        let _turn = self.turn.acquire(1).await;
        let mut taken = Taken { device: self, layer: self.layer.take() };
        let Some(layer) = &mut taken.layer else { return Err(dropped_midway()) };
        layer.blocks_mut().statistics.host_reads += out.len() as u64;
        let read = layer.read(first, out).await;
        self.statistics.set(layer.blocks().statistics());
        read
    }

    /// Writes one page, together with others if their pages are consecutive. The caller must wait
    /// for its turn after queueing a write: an abandoned write would be left to the next caller.
    async fn write_page(&self, page: PageNo, content: M::Page) -> Result<()> {
        let number = self.writes.borrow_mut().push(page, content);
        let _turn = self.turn.acquire(1).await;
        if self.writes.borrow().taken > number {
            return self.outcome_of(number);
        }
        // Writes get their turns in the order of the queue, so this one is the oldest in it.
        let first = self.writes.borrow().taken;
        let Some((page, contents)) = self.writes.borrow_mut().take_run() else {
            return Err(refused(Error::new(ErrorKind::Closed, "a write was lost from its queue")));
        };
        let written = self.in_turn(true, async |layer| {
            let mut at = 0;
            while at < contents.len() {
                at += layer.write(PageNo(page.0 + at as u64), &contents[at..]).await?;
            }
            layer.blocks_mut().statistics.host_pages += contents.len() as u64;
            Ok(())
        });
        let written = written.await;
        if written.is_err() {
            self.writes.borrow_mut().failed_from.get_or_insert(first);
        }
        written
    }

    /// The outcome of a write that went along with an older one.
    fn outcome_of(&self, number: u64) -> Result<()> {
        match self.writes.borrow().failed_from {
            Some(failed) if number >= failed => {
                let first = self.latched.borrow().clone();
                let unknown = || Error::new(ErrorKind::Closed, "a write failed");
                Err(refused(first.unwrap_or_else(unknown)))
            }
            _ => Ok(()),
        }
    }
}

/// The layer, held by the request with the turn and put back on drop: for requests that leave it consistent at every
/// await.
struct Taken<'a, M: ZoneMedia> {
    device: &'a Personality<M>,
    layer: Option<Box<Layer<M>>>,
}

impl<M: ZoneMedia> Drop for Taken<'_, M> {
    fn drop(&mut self) {
        self.device.layer.set(self.layer.take());
    }
}

fn dropped_midway() -> Error {
    refused(Error::new(ErrorKind::Closed, "a request was dropped midway"))
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

    /// The reason why a read could not make a change that it needed, if so.
    fn failure(&self) -> Option<Error> {
        if let Layer::Dftl(layer) = self { layer.failed.clone() } else { None }
    }

    /// Refuses changes from now on because of `error`; reads change nothing either.
    fn freeze(&mut self, error: Error) {
        if let Layer::Dftl(layer) = self {
            layer.failed = Some(error);
        }
    }

    /// The place of `page`, for layers that know it without a read.
    fn find(&self, page: PageNo) -> Option<Place> {
        match self {
            Layer::BlockMap(layer) => layer.find(page),
            Layer::Bast(layer) => layer.find(page),
            Layer::Fast(layer) => layer.find(page),
            Layer::Dftl(_) => None,
        }
    }

    async fn read(&mut self, first: PageNo, out: &mut [M::Page]) -> Result<()> {
        if let Layer::Dftl(layer) = self {
            for (page, out) in (first.0..).map(PageNo).zip(out) {
                *out = layer.read(page).await?;
            }
            return Ok(());
        }
        if let [out] = out {
            *out = match self.find(first) {
                Some(place) => self.blocks().read(place).await?,
                None => M::Page::zero(),
            };
            return Ok(());
        }
        let pages = (first.0..).map(PageNo).zip(out);
        let mut places = Vec::new();
        let mut held = Vec::new();
        for (page, out) in pages {
            match self.find(page) {
                Some(place) => {
                    places.push(place);
                    held.push(out);
                }
                None => *out = M::Page::zero(),
            }
        }
        let read = self.blocks().read_all(&places).await?;
        held.into_iter().zip(read).for_each(|(out, content)| *out = content);
        Ok(())
    }

    /// Writes the first of `contents`, and those after it that go along with it. Returns the number
    /// written.
    async fn write(&mut self, page: PageNo, contents: &[M::Page]) -> Result<usize> {
        match self {
            Layer::BlockMap(layer) => layer.write(page, &contents[0]).await.map(|()| 1),
            Layer::Bast(layer) => layer.write(page, contents).await,
            Layer::Fast(layer) => layer.write(page, contents).await,
            Layer::Dftl(layer) => layer.write(page, &contents[0]).await.map(|()| 1),
        }
    }

    async fn trim(&mut self, range: PageRange) -> Result<()> {
        if let Layer::BlockMap(layer) = self {
            return layer.trim(range).await;
        }
        for page in range.iter() {
            let held = match self {
                Layer::Dftl(layer) => layer.holds(page).await?,
                _ => self.find(page).is_some(),
            };
            if held {
                self.blocks_mut().statistics.pages_trimmed += 1;
                self.write(page, &[M::Page::zero()]).await?;
            }
        }
        Ok(())
    }
}

impl<M: ZoneMedia> LifeCycle for Personality<M> {
    /// Does nothing: commands run on the runtime that it was opened with, and there are no other
    /// tasks.
    fn start(self: &Rc<Self>, _runtime: &impl Runtime) {}

    /// Acknowledged changes are durable, so there is nothing to do.
    async fn close(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        let counts = self.statistics();
        DeviceCounters {
            pages_read: counts.host_reads,
            pages_written: counts.host_pages,
            flushes: counts.flushes,
            layer_pages_written: counts.host_pages,
            slots_programmed: counts.programs,
            pages_moved: counts.pages_moved,
            zones_cleaned: counts.blocks_cleaned,
            merges: counts.merges_switch + counts.merges_partial + counts.merges_full,
            checkpoints: counts.map_writes,
            ..DeviceCounters::default()
        }
    }

    fn metrics(&self, out: &mut Readings) {
        let counters = self.counters();
        counters.tell(self.limits(), out);
        counters.tell_layer(out);
        out.counter("tantalum_ftl_merges_total", "Merges of log blocks", counters.merges);
    }

    /// Recovery builds all structures from the spare areas and checks them there.
    fn validate(&self) {}
}

/// A [`Personality`] on zones of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonalityKind {
    /// The layer and its parameters.
    pub spec: PersonalitySpec,
    /// Logical pages.
    pub pages: u64,
}

impl<R: Runtime, M: ZoneMedia> DeviceKind<R, M> for PersonalityKind {
    type Device = Personality<M>;
    type Kept = ();
    type Report = ();

    async fn format(&self, on: Opening<R, M, ()>) -> Result<Rc<Self::Device>> {
        Personality::format(&on.runtime, on.media, self.spec, self.pages).await
    }

    async fn open(&self, on: Opening<R, M, ()>) -> Result<(Rc<Self::Device>, ())> {
        let device = Personality::recover(&on.runtime, on.media, self.spec, self.pages).await?;
        Ok((device, ()))
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
        if !matches!(self.spec, PersonalitySpec::Dftl { .. }) {
            return self.read_only(first, out).await;
        }
        let pages = out.len();
        let read = async move |layer: &mut Layer<M>| {
            layer.blocks_mut().statistics.host_reads += pages as u64;
            let mut contents = vec![M::Page::zero(); pages];
            layer.read(first, &mut contents).await?;
            Ok(contents)
        };
        let contents = self.with("read", false, read).await?;
        out.iter_mut().zip(contents).for_each(|(out, content)| *out = content);
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[M::Page], tx: Option<TxId>) -> Result<()> {
        refuse_transactions(tx)?;
        self.limits.check_range(PageRange::new(first, pages.len() as u64))?;
        if pages.len() > 1 {
            let context = format!("a write of {} pages: {} takes one", pages.len(), self.spec);
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        match pages {
            [content] => {
                let content = content.clone();
                let write =
                    move |device: Rc<Self>| async move { device.write_page(first, content).await };
                self.commands.run("write", write).await
            }
            _ => Ok(()),
        }
    }

    async fn flush(&self) -> Result<()> {
        // Acknowledged changes are durable; only wait for earlier requests in the queue.
        let count = async |layer: &mut Layer<M>| {
            layer.blocks_mut().statistics.flushes += 1;
            Ok(())
        };
        self.with("flush", true, count).await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.with("trim", true, async move |layer: &mut Layer<M>| layer.trim(range).await).await
    }
}

fn refuse_transactions(tx: Option<TxId>) -> Result<()> {
    match tx {
        None => Ok(()),
        Some(_) => Err(Error::new(ErrorKind::Unsupported, "there are no transactions")),
    }
}
