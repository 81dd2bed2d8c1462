//! The same engines, load and forms live, on files of this machine: by the real clock, in bytes, through the kernel. The results depend on
//! the machine and its other load.
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageDevice, Result};
use tantalum_cache::Image;
use tantalum_media::BlockStore;
use tantalum_media::block_store::{FileStore, FileStoreOptions};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live, Runtime, supervision};
use tantalum_volume::config::{DurabilityConfig, template};
use tantalum_volume::{
    FlashVolume, OpenOptions, TieredVolume, VolumeConfig, VolumeStore, create_volume,
    open_tiered_volume, open_volume,
};

use super::super::{Progress, Row, Scale};
use super::cell::{Cell, Device};
use super::clients::Clients;
use super::load::Load;
use super::served::{Served, Service, Serving};
use super::sizes::Sizes;
use super::store::{Bytes, Codecs};
use super::table;

/// Number of operations between two reads of the clock.
const OPERATIONS: u64 = 256;

/// Bytes reserved for the files of a cell, per byte of the drive: a home, its cache and a journal need the most.
const ROOM: u64 = 2;

/// The size of a file, and the times for which clients run before and during the measurement.
struct Extent {
    sizes: Sizes,
    warm_up_ns: u64,
    measured_ns: u64,
}

impl Extent {
    fn of(scale: Scale) -> Extent {
        let (mib, warm_up_ms, measured_ms) = match scale {
            Scale::Small => (64, 100, 300),
            Scale::Full | Scale::Paper => (256, 1_000, 4_000),
        };
        let sizes = Sizes { drive_pages: mib << 8, ..Sizes::of(scale) };
        let [warm_up_ns, measured_ns] = [warm_up_ms, measured_ms].map(|ms| ms * 1_000_000);
        Extent { sizes, warm_up_ns, measured_ns }
    }

    /// More than the total size of any cell's files.
    fn room_bytes(&self) -> u64 {
        ROOM * self.sizes.drive_pages * PAGE_BYTES as u64
    }
}

/// The files of a cell: the given one, and two beside it for a home and its journal.
struct Files {
    data: PathBuf,
    home: PathBuf,
    journal: PathBuf,
}

impl Files {
    fn at(path: &Path) -> Files {
        let beside = |end: &str| {
            let mut name = OsString::from(path);
            name.push(end);
            PathBuf::from(name)
        };
        Files { data: path.to_owned(), home: beside(".home"), journal: beside(".home.journal") }
    }

    fn all(&self) -> [&Path; 3] {
        [&self.data, &self.home, &self.journal]
    }

    /// Their total size.
    fn bytes(&self) -> u64 {
        let bytes = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
        self.all().into_iter().map(bytes).sum()
    }

    fn remove(&self) {
        // The measurement is valid even if this fails.
        self.all().into_iter().for_each(|path| drop(std::fs::remove_file(path)));
    }
}

/// Checks the preconditions of [`engines_live`] before anything is measured. Leaves no files behind.
///
/// # Errors
/// `InvalidInput` if something exists at `path`, or at its name with `.home` or `.home.journal` appended; `OutOfSpace` if there is not
/// enough room; `Io` if no file can be created.
pub fn check(path: &Path, scale: Scale) -> Result<()> {
    let files = Files::at(path);
    for path in files.all() {
        if path.symlink_metadata().is_ok() {
            let context = format!("{} is there already, and would be overwritten", path.display());
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
    }
    let (data, bytes) = (files.data.clone(), Extent::of(scale).room_bytes());
    let room = async move |live: Live| {
        FileStore::create(&live, &data, bytes, FileStoreOptions::default()).map(drop)
    };
    let made = on_live(room);
    files.remove();
    made
}

/// Runs every cell under a load live on a new file at `path`, which is deleted afterwards, and adds its rows once it is complete.
///
/// # Errors
/// Those of [`check`]; those of the files.
pub fn engines_live(
    path: &Path,
    (load, scale): (Load, Scale),
    seed: u64,
    progress: Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    check(path, scale)?;
    let files = Files::at(path);
    for cell in Cell::all(load) {
        supervision::check_stop()?;
        progress(&format!("live on {}: {}", path.display(), cell.name()));
        let measured = measure((cell, load), &files, &Extent::of(scale), seed);
        debug_assert!(files.bytes() <= Extent::of(scale).room_bytes(), "{}", files.bytes());
        files.remove();
        let (service, recovery_ms) = measured.map_err(|error| error.wrap(cell.name()))?;
        rows.extend(rows_of(cell, load, &service, recovery_ms));
    }
    Ok(())
}

fn rows_of(cell: Cell, load: Load, service: &Service, recovery_ms: f64) -> Vec<Row> {
    let case = format!("{}, {}, {}", cell.engine.name(), name(cell.device), cell.host.form());
    let recovery = (("recovery after a kill until the engine serves", "ms"), recovery_ms);
    let numbers = table::service(service).into_iter().chain([recovery]);
    let row = |(what, measured)| {
        let row = Row::new(load.live_figure(), case.clone(), what, None, measured);
        row.at("", cell.engine.name(), ("in place of", cell.device.name()))
    };
    numbers.map(row).collect()
}

/// The stand-in for a device. No file has stored energy: acknowledged writes are in the file.
fn name(device: Device) -> &'static str {
    match device {
        Device::Plain => "plain file",
        Device::DuraSsd => "volume on_ack",
        Device::Share | Device::Transactions => "volume on_flush",
        Device::Tiered => "tiered volume",
    }
}

fn measure(
    (cell, load): (Cell, Load),
    files: &Files,
    extent: &Extent,
    seed: u64,
) -> Result<(Service, f64)> {
    let pages = extent.sizes.drive_pages;
    let flash = |durability| Ok(FlashFile { config: flash_config(files, pages, durability)? });
    let bench = (cell, load, extent, seed);
    match cell.device {
        Device::Plain => run(PlainFile { path: files.data.clone(), pages }, bench),
        Device::DuraSsd => run(flash(DurabilityConfig::OnAck)?, bench),
        Device::Share | Device::Transactions => run(flash(DurabilityConfig::OnFlush)?, bench),
        Device::Tiered => run(TieredFile { config: tiered_config(files, pages)? }, bench),
    }
}

/// A device in files.
trait LiveDevice: 'static {
    type Device: LifeCycle + PageDevice<Page = PageBuf>;

    /// Makes its files.
    async fn make(&self, live: &Live) -> Result<()>;

    /// Opens it.
    async fn open(&self, live: &Live) -> Result<Rc<Self::Device>>;
}

/// Runs a cell, stops in the middle of the load as a kill does, and opens it again. Returns the result, and the time of the opening.
fn run<L: LiveDevice>(
    device: L,
    (cell, load, extent, seed): (Cell, Load, &Extent, u64),
) -> Result<(Service, f64)> {
    let (files, sizes) = (Rc::new(device), extent.sizes);
    let clients = Clients::new::<Rc<[u8]>>(load, &sizes, seed)?;
    let (made, loaded) = (Rc::clone(&files), clients.clone());
    let (warm_up_ns, measured_ns) = (extent.warm_up_ns, extent.measured_ns);
    let served = on_live(|live| async move {
        made.make(&live).await?;
        let (device, codecs) = (made.open(&live).await?, Codecs::<Bytes>::default());
        let engine = (cell.host, load, &sizes);
        let serving = Serving::make((&live, &device), &codecs, engine, &loaded).await?;
        serve_for(&live, &serving, warm_up_ns, |round| seed ^ round << 32).await?;
        let measured = |round| seed ^ (1 << 20 | round) << 32;
        let served = serve_for(&live, &serving, measured_ns, measured).await?;
        serving.leave_after(seed ^ 1 << 63, warm_up_ns).await?;
        Ok(served.service())
    })?;
    let recovery_ms = on_live(|live| async move {
        let start_ns = live.now_ns();
        let (device, codecs) = (files.open(&live).await?, Codecs::<Bytes>::default());
        let engine = (cell.host, load, &sizes);
        let serving = Serving::open((&live, &device), &codecs, engine, &clients).await?;
        let recovery_ms = (live.now_ns() - start_ns) as f64 / 1e6;
        serving.check().await?;
        serving.close().await?;
        device.close().await?;
        Ok(recovery_ms)
    })?;
    Ok((served, recovery_ms))
}

/// Runs `body` on an executor of its own, of which nothing is left afterwards.
fn on_live<T: 'static, F: Future<Output = Result<T>> + 'static>(
    body: impl FnOnce(Live) -> F,
) -> Result<T> {
    let live = Live::new(LiveOptions::default())?;
    let ended = live.run(body(live.clone()));
    live.drop_tasks();
    ended
}

/// Runs loads, each with a seed of its own, one after the other for this long.
async fn serve_for<D: PageDevice<Page = PageBuf>>(
    live: &Live,
    serving: &Serving<Live, D, Bytes>,
    for_ns: u64,
    seed: impl Fn(u64) -> u64,
) -> Result<Served> {
    let end_ns = live.now_ns() + for_ns;
    let mut served = serving.serve(OPERATIONS, seed(0)).await?;
    let mut round = 1;
    while live.now_ns() < end_ns {
        served = served.and(&serving.serve(OPERATIONS, seed(round)).await?);
        round += 1;
    }
    Ok(served)
}

/// Pages in a file, with nothing in between.
struct PlainFile {
    path: PathBuf,
    pages: u64,
}

impl LiveDevice for PlainFile {
    type Device = Image<FileStore>;

    async fn make(&self, live: &Live) -> Result<()> {
        let bytes = self.pages * PAGE_BYTES as u64;
        let store = FileStore::create(live, &self.path, bytes, FileStoreOptions::default())?;
        // Written once, as for a volume's file.
        store.prepare(0, bytes).await?;
        store.zero(0, bytes).await?;
        store.sync().await
    }

    async fn open(&self, live: &Live) -> Result<Rc<Image<FileStore>>> {
        let store = FileStore::open(live, &self.path, FileStoreOptions::default())?;
        Image::new(store, self.pages).map(Rc::new)
    }
}

/// A volume.
struct FlashFile {
    config: VolumeConfig,
}

fn flash_config(files: &Files, pages: u64, durability: DurabilityConfig) -> Result<VolumeConfig> {
    let capacity = format!("{}MiB", pages >> 8);
    let mut config = VolumeConfig::parse(&template(&capacity), &files.data)?;
    config.media.path = Some(files.data.clone());
    config.device.durability = Some(durability);
    Ok(config)
}

impl LiveDevice for FlashFile {
    type Device = FlashVolume<VolumeStore>;

    async fn make(&self, live: &Live) -> Result<()> {
        create_volume(live, &self.config, false).await.map(drop)
    }

    async fn open(&self, live: &Live) -> Result<Rc<FlashVolume<VolumeStore>>> {
        Ok(open_volume(live, &self.config, OpenOptions::default()).await?.0)
    }
}

/// A volume whose flash is a cache of a home in another file, with zones and a write cache sized for little flash.
struct TieredFile {
    config: VolumeConfig,
}

fn tiered_config(files: &Files, pages: u64) -> Result<VolumeConfig> {
    let capacity = pages >> 8;
    let flash = capacity / u64::from(Device::Tiered.flash_divisor());
    let text = format!(
        "kind = \"tiered\"\n[media]\ntype = \"file\"\npath = \"\"\nsize = \"{flash}MiB\"\n\
         zone = \"512KiB\"\n[home]\npath = \"\"\n[device]\ncapacity = \"{capacity}MiB\"\ncache = \"1MiB\"\n"
    );
    let mut config = VolumeConfig::parse(&text, &files.data)?;
    config.media.path = Some(files.data.clone());
    if let Some(home) = &mut config.home {
        home.path.clone_from(&files.home);
        home.journal = Some(files.journal.clone());
    }
    Ok(config)
}

impl LiveDevice for TieredFile {
    type Device = TieredVolume<Live, VolumeStore>;

    async fn make(&self, live: &Live) -> Result<()> {
        create_volume(live, &self.config, false).await.map(drop)
    }

    async fn open(&self, live: &Live) -> Result<Rc<TieredVolume<Live, VolumeStore>>> {
        Ok(open_tiered_volume(live, &self.config, OpenOptions::default()).await?.0)
    }
}
