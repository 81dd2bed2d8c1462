//! The cost ratio of a real device (5.2.3), detected by CASA through the live runtime: direct I/O on
//! a file or a block device, with each write durable before it counts as done, as with the device's
//! own write cache off. The result depends on the machine and its other load.
use std::path::Path;
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange,
    Result, TxId,
};
use tantalum_buffer::{Intent, LargePages, Pool, PoolOptions};
use tantalum_media::block_store::{BlockStore, FileStore, FileStoreOptions};
use tantalum_policy::{PolicySpec, Workload};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;

use super::super::{Progress, Row, Scale};
use super::bank::bank;
use super::runs::{self, PARTS};
use tantalum_replay::cache_replay::CacheTrace;

/// Pages in a file, with nothing in between.
struct FileDevice {
    store: FileStore,
    limits: Limits,
}

impl FileDevice {
    fn new(store: FileStore) -> FileDevice {
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages: store.bytes() / PAGE_BYTES as u64,
            atomic_write_pages_max: PARTS,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        FileDevice { store, limits }
    }
}

impl PageDevice for FileDevice {
    type Page = PageBuf;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [PageBuf], _tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        let buffer = self.store.buffer(out.len() * PAGE_BYTES);
        let read = self.store.read(first.0 * PAGE_BYTES as u64, buffer).await?;
        for (out, bytes) in out.iter_mut().zip(read.chunks_exact(PAGE_BYTES)) {
            *out = PageBuf::copy_from(bytes);
        }
        self.store.recycle(read);
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[PageBuf], _tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, pages.len() as u64))?;
        let mut buffer = self.store.buffer(pages.len() * PAGE_BYTES);
        for (bytes, page) in buffer.chunks_exact_mut(PAGE_BYTES).zip(pages) {
            bytes.copy_from_slice(&page[..]);
        }
        let written = self.store.write(first.0 * PAGE_BYTES as u64, buffer, true).await?;
        self.store.recycle(written);
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.store.sync().await
    }

    async fn trim(&self, _range: PageRange) -> Result<()> {
        Err(unsupported())
    }

    async fn share(&self, _pairs: &[(PageNo, PageNo)]) -> Result<()> {
        Err(unsupported())
    }
}

fn unsupported() -> Error {
    Error::new(ErrorKind::Unsupported, "pages in a file are read and written, nothing else")
}

/// Checks the preconditions of [`casa_live`] before anything is measured.
///
/// # Errors
/// `InvalidInput` if `path` already exists and is not a block device.
pub fn check(path: &Path) -> Result<()> {
    let is_file = path.symlink_metadata().is_ok_and(|there| !is_block_device(&there));
    if is_file {
        let context = format!("{} is there already, and would be overwritten", path.display());
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    Ok(())
}

/// Sends the stand-in for the trace of 5.3.3 through CASA with 1,000 pages over the file at `path`,
/// and returns the detected costs. The file is created anew; its old content is lost.
///
/// # Errors
/// Those of [`check`]; those of the file.
pub fn casa_live(path: &Path, scale: Scale, progress: Progress) -> Result<Vec<Row>> {
    check(path)?;
    let made = !path.exists();
    progress(&format!("figure 5.5: detection, live on {}", path.display()));
    let detected = detect(path, &bank(scale, 1)?);
    if made {
        // The measurement is valid even if this fails.
        let _ = std::fs::remove_file(path);
    }
    detected
}

fn is_block_device(there: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    there.file_type().is_block_device()
}

fn detect(path: &Path, trace: &CacheTrace) -> Result<Vec<Row>> {
    let live = Live::new(LiveOptions::default())?;
    let bytes = trace.pages_end * u64::from(runs::PAGE_BYTES);
    let store = FileStore::create(&live, path, bytes, FileStoreOptions::default())?;
    let direct = store.is_direct();
    let workload = Workload { pages_end: trace.pages_end, future: &[] };
    let policy = PolicySpec::parse("casa")?.build(1_000, workload)?;
    let device = Rc::new(FileDevice::new(store));
    let runtime = live.clone();
    let requests = trace.requests.clone();
    let run = async move {
        // Written once, so that reads find content and writes overwrite it.
        device.store.prepare(0, device.store.bytes()).await?;
        device.flush().await?;
        let store = Rc::new(LargePages::new(device, runs::PAGE_BYTES)?);
        let pool = Pool::new(store, runtime, policy, PoolOptions::classic())?;
        for request in requests {
            let intent = if request.is_write() { Intent::Update } else { Intent::Read };
            let mut guard = pool.fix(request.page(), intent).await?;
            if request.is_write() {
                let mut page = guard.page_mut();
                let counted = page.iter().cloned().map(|mut part| {
                    part.make_mut()[0] = part[0].wrapping_add(1);
                    part
                });
                *page = counted.collect();
            }
        }
        Ok::<_, Error>(pool.with_policy(|policy| policy.gauges()))
    };
    let gauges = live.run(run)?;
    live.drop_tasks();
    let how = if direct { "direct I/O" } else { "without direct I/O" };
    let rows = gauges.iter().filter_map(|gauge| {
        let (metric, unit, scale) = match gauge.name {
            "read_cost_ns" => ("detected cost of a read", "us", 1e-3),
            "write_cost_ns" => ("detected cost of a write", "us", 1e-3),
            "write_cost_ratio" => ("detected cost ratio", "ratio", 1.0),
            _ => return None,
        };
        let case = format!("live, {how}, 1000 pages");
        Some(Row::new("Figure 5.5", case, (metric, unit), None, gauge.value * scale))
    });
    Ok(rows.collect())
}
