//! A simple reference device with transactions, in memory, optionally stored in a log file. It
//! counts its calls and can be told to fail one.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use tantalum::Volume;
use tantalum::front_end::{channel, serve};
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange,
    Payload, Result, TxId,
};
use tantalum_runtime::live::remote::RemoteSender;
use tantalum_runtime::live::{EngineChoice, LiveOptions};
use tantalum_runtime::{Runtime, live};

/// The content of the medium, shared by clients that open it one after another.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

pub struct State {
    pub pages: BTreeMap<u64, PageBuf>,
    pub reads: u64,
    pub commits: u64,
    pub pages_committed: u64,
    /// Calls until one fails; all later ones work again.
    pub fail_in: Option<u64>,
    pub failed: bool,
    /// Whether reads panic, as with a bug.
    pub panics: bool,
    limits: Limits,
    log: Option<File>,
}

impl Disk {
    pub fn new(pages: u64, transaction_pages_max: u32) -> Disk {
        Disk(Arc::new(Mutex::new(State {
            pages: BTreeMap::new(),
            reads: 0,
            commits: 0,
            pages_committed: 0,
            fail_in: None,
            failed: false,
            panics: false,
            limits: Limits {
                page_bytes: PAGE_BYTES as u32,
                pages,
                atomic_write_pages_max: 8,
                transaction_pages_max,
                transactions_max: 4,
                share_pairs_max: 0,
                durability: Durability::OnAck,
            },
            log: None,
        })))
    }

    /// A disk whose commits are appended to a file and read back from it. Each commit is a count of
    /// pages, the pages with their numbers, and a checksum.
    #[allow(dead_code, reason = "not each test file uses all")]
    pub fn in_file(path: &Path, pages: u64) -> std::io::Result<Disk> {
        let disk = Disk::new(pages, 4096);
        let mut file = File::options().read(true).append(true).create(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut rest = &bytes[..];
        while rest.len() >= 8 {
            let count = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            let Some(end) = count.checked_mul(8 + PAGE_BYTES).map(|bytes| bytes + 8) else { break };
            if rest.len() < end + 4
                || tantalum_base::checksum::crc32c(&rest[..end]).to_le_bytes() != rest[end..end + 4]
            {
                break;
            }
            for page in rest[8..end].chunks(8 + PAGE_BYTES) {
                let number = u64::from_le_bytes(page[..8].try_into().unwrap());
                disk.state().pages.insert(number, PageBuf::copy_from(&page[8..]));
            }
            rest = &rest[end + 4..];
        }
        // Removes an incomplete last commit left by a kill, so that the next commits do not follow
        // it.
        file.set_len((bytes.len() - rest.len()) as u64)?;
        disk.state().log = Some(file);
        Ok(disk)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    pub fn commits(&self) -> u64 {
        self.state().commits
    }

    pub fn pages_used(&self) -> usize {
        self.state().pages.len()
    }

    /// Opens the disk on a thread of its own.
    pub fn client(&self) -> Volume {
        let (connector, requests) = channel();
        let limits = self.state().limits.clone();
        let disk = self.clone();
        let thread = live::spawn_thread("disk", without_files(), move |live| async move {
            let device = Rc::new(Device { disk, open: RefCell::default() });
            serve(&live, device, requests).await;
        });
        connector.connect(limits, Joined(thread.ok()))
    }
}

impl State {
    fn called(&mut self) -> Result<()> {
        if let Some(left) = &mut self.fail_in {
            if *left == 0 {
                self.fail_in = None;
                self.failed = true;
                return Err(Error::new(ErrorKind::Io, "injected"));
            }
            *left -= 1;
        }
        Ok(())
    }

    fn commit(&mut self, writes: BTreeMap<u64, PageBuf>) {
        self.commits += 1;
        self.pages_committed += writes.len() as u64;
        self.append(&writes);
        self.pages.extend(writes);
    }

    fn append(&mut self, writes: &BTreeMap<u64, PageBuf>) {
        if let Some(log) = &mut self.log {
            let mut bytes = (writes.len() as u64).to_le_bytes().to_vec();
            for (page, content) in writes {
                bytes.extend(page.to_le_bytes());
                bytes.extend(&content[..]);
            }
            let checksum = tantalum_base::checksum::crc32c(&bytes);
            bytes.extend(checksum.to_le_bytes());
            log.write_all(&bytes).unwrap();
        }
    }
}

impl Disk {
    /// Opens the disk on a thread of its own that ends when the sender requests it.
    #[allow(dead_code, reason = "not each test file uses all")]
    pub fn mortal_client(&self) -> (Volume, RemoteSender<()>) {
        let (connector, requests) = channel();
        let (kill, mut killed) = live::remote::channel("the end", 1);
        let limits = self.state().limits.clone();
        let disk = self.clone();
        let thread = live::spawn_thread("disk", without_files(), move |live| async move {
            let device = Rc::new(Device { disk, open: RefCell::default() });
            let on = live.clone();
            let serving = async move { serve(&on, device, requests).await };
            drop(live.spawn("serving", serving));
            killed.recv().await;
        });
        (connector.connect(limits, Joined(thread.ok())), kill)
    }
}

/// A disk has no files of its own: no ring and no threads for them.
fn without_files() -> LiveOptions {
    LiveOptions { engine: EngineChoice::Blocking, ..LiveOptions::default() }
}

struct Joined(Option<live::LiveThread<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let joined = std::panic::AssertUnwindSafe(|| thread.join().unwrap());
            // The test has seen a planted panic already.
            let _ = std::panic::catch_unwind(joined);
        }
    }
}

struct Device {
    disk: Disk,
    open: RefCell<BTreeMap<TxId, BTreeMap<u64, PageBuf>>>,
}

fn unknown() -> Error {
    Error::new(ErrorKind::UnknownTransaction, "not open")
}

impl PageDevice for Device {
    type Page = PageBuf;

    fn limits(&self) -> &Limits {
        // Leaked once per device; tests create few.
        Box::leak(Box::new(self.disk.state().limits.clone()))
    }

    async fn read(&self, first: PageNo, out: &mut [PageBuf], tx: Option<TxId>) -> Result<()> {
        let mut state = self.disk.state();
        state.called()?;
        if state.panics {
            // So that later users of the disk do not find the lock poisoned.
            drop(state);
            panic!("planted");
        }
        state.limits.check_range(PageRange::new(first, out.len() as u64))?;
        state.reads += 1;
        let open = self.open.borrow();
        for (page, out) in (first.0..).zip(out) {
            let own = tx.and_then(|tx| open.get(&tx)?.get(&page));
            *out = own.or(state.pages.get(&page)).cloned().unwrap_or_else(PageBuf::zero);
        }
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[PageBuf], tx: Option<TxId>) -> Result<()> {
        let mut state = self.disk.state();
        state.called()?;
        state.limits.check_range(PageRange::new(first, pages.len() as u64))?;
        assert!(pages.len() <= state.limits.atomic_write_pages_max as usize);
        let writes = (first.0..).zip(pages.iter().cloned());
        match tx {
            Some(tx) => {
                let mut open = self.open.borrow_mut();
                let own = open.get_mut(&tx).ok_or_else(unknown)?;
                own.extend(writes);
                if own.len() > state.limits.transaction_pages_max as usize {
                    return Err(Error::new(ErrorKind::TooLarge, "too many pages"));
                }
            }
            None => state.pages.extend(writes),
        }
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.disk.state().called()
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        let mut state = self.disk.state();
        state.called()?;
        state.limits.check_range(range)?;
        state.pages.retain(|page, _| !range.contains(PageNo(*page)));
        Ok(())
    }

    async fn share(&self, _: &[(PageNo, PageNo)]) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "no share"))
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, PageBuf)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let mut state = self.disk.state();
        state.called()?;
        state.limits.check_scattered(&pages)?;
        state.commit(pages.into_iter().map(|(page, content)| (page.0, content)).collect());
        ended();
        Ok(())
    }

    async fn begin(&self) -> Result<TxId> {
        self.disk.state().called()?;
        let mut open = self.open.borrow_mut();
        if open.len() >= 4 {
            return Err(Error::new(ErrorKind::TooManyTransactions, "four are open"));
        }
        let tx = TxId(open.keys().last().map_or(1, |last| last.0 + 1));
        open.insert(tx, BTreeMap::new());
        Ok(tx)
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        let mut state = self.disk.state();
        state.called()?;
        let writes = self.open.borrow_mut().remove(&tx).ok_or_else(unknown)?;
        state.commit(writes);
        Ok(())
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        self.open.borrow_mut().remove(&tx).map(|_| ()).ok_or_else(unknown)
    }
}
