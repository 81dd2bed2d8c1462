//! Devices that were opened and ended several times, with all writes and the content of their pages. Writes are
//! recorded below the FTL, as they go to the store: they are the oracle for the place of a flipped bit.
use crate::support::{format, recover};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result, Rng};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::file_zones::anchor_area_bytes;
use tantalum_media::{
    BlockStore, CutPlan, ErasedZones, Fate, FileZones, FileZonesOptions, IoBuf, StoreLayer,
};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Finding, Runtime, Virtual};

pub const PAGES: u64 = 150;
pub const ZONES: u32 = 28;
pub const SLOTS_PER_ZONE: u32 = 16;
pub const ANCHORS: u32 = 24;
pub const ZONES_BYTE: u64 = anchor_area_bytes(ANCHORS);
const CLIENTS: u64 = 3;

/// How a run of the device ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Closed,
    /// All writes stay.
    Killed,
    /// Writes that were not durable land, vanish or tear.
    Cut,
}

/// One write to the store, which a power cut may have undone.
pub struct Write {
    pub run: usize,
    pub first_block: u64,
    pub bytes: Vec<u8>,
}

impl Write {
    /// Its blocks that hold in `image` the content written, with that content.
    pub fn landed<'a>(&'a self, image: &'a [u8]) -> impl Iterator<Item = (u64, &'a [u8])> {
        let held = image.chunks_exact(PAGE_BYTES).skip(self.first_block as usize);
        let written = (self.first_block..).zip(self.bytes.chunks_exact(PAGE_BYTES));
        written.zip(held).filter(|((_, bytes), held)| bytes == held).map(|(written, _)| written)
    }
}

/// A page, and the number of the change that gave it its content.
pub type Content = (u64, u64);

/// Records every write.
struct Noted {
    inner: CrashStore<MemoryStore, Virtual>,
    run: usize,
    writes: Rc<RefCell<Vec<Write>>>,
}

impl StoreLayer for Noted {
    type Inner = CrashStore<MemoryStore, Virtual>;

    fn inner(&self) -> &Self::Inner {
        &self.inner
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        self.writes.borrow_mut().push(Write {
            run: self.run,
            first_block: offset / PAGE_BYTES as u64,
            bytes: buf.to_vec(),
        });
        BlockStore::write(&self.inner, offset, buf, durable).await
    }
}

/// A device that was used, and is now off.
pub struct World {
    pub image: Vec<u8>,
    pub ends: Vec<End>,
    /// In the order in which they were issued.
    pub writes: Vec<Write>,
    /// The content of each page.
    pub held: Vec<Option<Content>>,
}

fn content((page, change): Content) -> PageBuf {
    let mut bytes = [change as u8; PAGE_BYTES];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&change.to_le_bytes());
    PageBuf::copy_from(&bytes)
}

/// The page and the change that a content names.
pub fn said(bytes: &[u8]) -> Content {
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    (long(0).wrapping_sub(1), long(8))
}

fn zones<S: BlockStore>(store: S) -> FileZones<S> {
    let options = FileZonesOptions {
        volume_id: 7,
        first_byte: ZONES_BYTE,
        zones: ZONES,
        slots_per_zone: SLOTS_PER_ZONE,
    };
    FileZones::new(store, options).unwrap().with_anchors(0, ANCHORS)
}

fn options() -> FtlOptions {
    FtlOptions { checkpoint_interval_slots: 250, wear_spread_max: 3, ..FtlOptions::new(PAGES) }
}

/// A world whose runs end in `ends`; after each of them `check` is called with the store.
pub fn world(seed: u64, ends: &[End], check: impl Fn(&[u8], usize)) -> World {
    let disk = MemoryStore::new(ZONES_BYTE + u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64);
    let writes: Rc<RefCell<Vec<Write>>> = Rc::default();
    let mut rng = Rng::split(seed, "world");
    for (run, end) in ends.iter().enumerate() {
        let runtime = Virtual::new(Schedule::Shuffled(rng.next_u64()));
        let delays = CrashOptions {
            seed: rng.next_u64(),
            read_ns: (10_000, 100_000),
            write_ns: (20_000, 400_000),
            sync_ns: (100_000, 500_000),
        };
        let store = CrashStore::new(runtime.clone(), disk.clone(), delays);
        if *end == End::Cut {
            let fate = Fate::ALL[rng.below(3) as usize];
            store.plan_cut(CutPlan { after_operations: rng.below(250), fate });
        }
        let noted = Noted { inner: store.clone(), run, writes: Rc::clone(&writes) };
        let load = live(runtime.clone(), zones(noted), run as u64, rng.next_u64(), *end);
        match runtime.run(load) {
            Ok(Err(error)) => {
                let cut = [ErrorKind::PowerCut, ErrorKind::Latched].contains(&error.kind());
                assert!(cut && store.is_cut(), "seed {seed}, run {run}: {error:?}");
            }
            Ok(Ok(())) => {}
            Err(deadlock) => assert!(store.is_cut(), "seed {seed}, run {run}: {deadlock}"),
        }
        runtime.drop_tasks();
        let styles = [CutStyle::DropAll, CutStyle::Random, CutStyle::TearAll];
        let style = match end {
            End::Cut => styles[rng.below(3) as usize],
            _ => CutStyle::LandAll,
        };
        let mut fates = Rng::new(rng.next_u64());
        runtime.run(async move { store.cut(&mut fates, style).await }).unwrap().unwrap();
        check(&disk.image(), run);
    }
    let image = disk.image();
    let held = held(&image);
    World { image, ends: ends.to_vec(), writes: writes.take(), held }
}

/// One run: clients that write, trim and share, while zones are cleaned and checkpoints are written.
async fn live(
    runtime: Virtual,
    media: FileZones<Noted>,
    run: u64,
    seed: u64,
    end: End,
) -> Result<()> {
    let ftl = match run {
        0 => format(media, options()).await?,
        _ => recover(media, options()).await?.0,
    };
    let (cleaner, checkpointer) = (Rc::clone(&ftl), Rc::clone(&ftl));
    runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
    runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let ftl = Rc::clone(&ftl);
            runtime.spawn("client", changes(ftl, (run + 1) * 1000 + client * 300, seed ^ client))
        })
        .collect();
    for client in clients {
        client.await?;
    }
    if end == End::Closed { ftl.close().await } else { Ok(()) }
}

/// The changes of one client, with numbers from `first` on.
async fn changes(ftl: Rc<Ftl<ErasedZones<PageBuf>>>, first: u64, seed: u64) -> Result<()> {
    let mut rng = Rng::split(seed, "changes");
    let count = 20 + rng.below(60);
    for number in first..first + count {
        // Some pages change often and some rarely, so that some zones have few live pages.
        let range = if rng.chance(0.7) { 30 } else { PAGES - 10 };
        let (page, pages) = (rng.below(range), 1 + rng.below(6));
        let durable = rng.chance(0.5);
        match rng.below(12) {
            0 => ftl.trim(PageRange::new(PageNo(page), pages), durable).await?,
            1 => {
                let right = (page + 1 + rng.below(PAGES - 1)) % PAGES;
                let pair = (PageNo(page), PageNo(right));
                match ftl.share(&[pair], durable, || ()).await {
                    Err(error) if error.kind() == ErrorKind::Unmapped => {}
                    shared => shared?,
                }
            }
            _ => {
                let write = |page| (PageNo(page), content((page, number)));
                ftl.write(&(page..page + pages).map(write).collect::<Vec<_>>(), durable).await?;
            }
        }
    }
    Ok(())
}

/// The contents of the pages of an undamaged device.
fn held(image: &[u8]) -> Vec<Option<Content>> {
    let disk = MemoryStore::with_image(image);
    let runtime = Virtual::new(Schedule::Fifo);
    let read = async move {
        let options = FtlOptions { read_only: true, ..options() };
        let (ftl, _) = recover(zones(disk), options).await?;
        let mut found = vec![PageBuf::zero(); PAGES as usize];
        for (page, out) in (0..).zip(&mut found) {
            ftl.read(&[PageNo(page)], std::slice::from_mut(out)).await?;
        }
        Ok::<_, tantalum_base::Error>(found)
    };
    let found = runtime.run(read).unwrap().unwrap();
    found.iter().map(|page| (*page != PageBuf::zero()).then(|| said(&page[..]))).collect()
}

/// The findings of a check; an error if the device cannot be opened.
pub fn checked(image: &[u8]) -> Result<Vec<Finding>> {
    checked_in(MemoryStore::with_image(image))
}

/// As [`checked`], for a store.
pub fn checked_in(disk: MemoryStore) -> Result<Vec<Finding>> {
    let runtime = Virtual::new(Schedule::Fifo);
    let check = async move {
        let options = FtlOptions { read_only: true, ..options() };
        let (ftl, _) = recover(zones(disk), options).await?;
        ftl.check(|_, _| {}).await
    };
    runtime.run(check).unwrap()
}
