//! A device whose medium does not answer reads for a while, and the contents of its pages.
use crate::support::{Zones, format, recover, zones};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use tantalum_base::{PageNo, Payload, Result, Rng, SlotNo};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::block_store::MemoryStore;
use tantalum_media::wrappers::{Faults, FaultsOptions, ZoneWindow};
use tantalum_media::{ErasedZones, FileZones, FileZonesOptions, ZoneMedia};
use tantalum_runtime::Virtual;

pub const ZONES: u32 = 24;
pub const SLOTS_PER_ZONE: u32 = 32;
pub const PAGES: u64 = 340;
pub const SECOND_NS: u64 = 1_000_000_000;

/// All slots of the medium.
pub const ALL: Range<SlotNo> = SlotNo(0)..SlotNo(ZONES * SLOTS_PER_ZONE);
/// No slots: the medium answers all reads.
pub const NONE: Range<SlotNo> = SlotNo(0)..SlotNo(0);

/// The translation layer of a world.
pub type Device<M> = Ftl<ErasedZones<<M as ZoneMedia>::Page>>;

pub fn options() -> FtlOptions {
    FtlOptions::new(PAGES)
}

/// Content number `count` of `page`; zeros for 0.
pub fn content<P: Payload>(page: u64, count: u64) -> P {
    if count == 0 {
        return P::zero();
    }
    let mut bytes = [count as u8; 4096];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    P::from_bytes(&bytes)
}

/// A medium, and the count of the content that each page has.
pub struct World<M: ZoneMedia> {
    pub runtime: Virtual,
    pub media: Rc<Faults<M>>,
    known: RefCell<Vec<u64>>,
    rng: RefCell<Rng>,
}

/// On simulated flash.
pub fn on_flash(runtime: &Virtual, seed: u64) -> World<Zones> {
    World::new(runtime, zones(runtime, ZONES), seed)
}

/// On a file.
pub fn on_a_file(runtime: &Virtual, seed: u64) -> World<FileZones<MemoryStore>> {
    let disk = MemoryStore::new(u64::from(ALL.end.0) * 4096);
    let (zones, slots_per_zone) = (ZONES, SLOTS_PER_ZONE);
    let options = FileZonesOptions { volume_id: 7, first_byte: 0, zones, slots_per_zone };
    World::new(runtime, FileZones::new(disk, options).unwrap(), seed)
}

impl<M: ZoneMedia> World<M> {
    fn new(runtime: &Virtual, media: M, seed: u64) -> Self {
        let media = Rc::new(Faults::new(Rc::new(media), FaultsOptions::default()));
        let known = RefCell::new(vec![0; PAGES as usize]);
        let rng = RefCell::new(Rng::split(seed, "unanswered"));
        World { runtime: runtime.clone(), media, known, rng }
    }

    /// The medium, for a device.
    pub fn window(&self) -> ZoneWindow<Faults<M>> {
        ZoneWindow::new(Rc::clone(&self.media), 0..ZONES).unwrap()
    }

    /// A new device, started and with every page written.
    pub async fn filled(&self, options: FtlOptions) -> Rc<Device<M>> {
        let ftl = format(self.window(), options).await.unwrap();
        ftl.start_tasks(&self.runtime);
        for page in 0..PAGES {
            self.write(&ftl, page).await.unwrap();
        }
        ftl
    }

    /// The device after an opening, not started.
    pub async fn opened(&self, options: FtlOptions) -> Result<Rc<Device<M>>> {
        Ok(recover(self.window(), options).await?.0)
    }

    /// Writes new content to `page`.
    pub async fn write(&self, ftl: &Device<M>, page: u64) -> Result<()> {
        let count = self.known.borrow().iter().max().unwrap() + 1;
        ftl.write(&[(PageNo(page), content(page, count))], true).await?;
        self.known.borrow_mut()[page as usize] = count;
        Ok(())
    }

    /// Writes `count` random pages, none of them in `but`.
    pub async fn overwrite(&self, ftl: &Device<M>, count: u64, but: &[u64]) -> Result<()> {
        for _ in 0..count {
            let page = loop {
                let page = self.rng.borrow_mut().below(PAGES);
                if !but.contains(&page) {
                    break page;
                }
            };
            self.write(ftl, page).await?;
        }
        Ok(())
    }

    /// Notes that `page` has the content of `other` now, or zeros.
    pub fn note(&self, page: u64, other: Option<u64>) {
        let count = other.map_or(0, |other| self.known.borrow()[other as usize]);
        self.known.borrow_mut()[page as usize] = count;
    }

    /// Whether `page` reads as it was last written, or the error. Pages that were shared have the content of
    /// another page.
    pub async fn read(&self, ftl: &Device<M>, page: u64, written_to: u64) -> Result<bool> {
        let mut out = [M::Page::zero()];
        ftl.read(&[PageNo(page)], &mut out).await?;
        Ok(out[0] == content(written_to, self.known.borrow()[page as usize]))
    }

    /// The first page, other than those in `but`, that does not read as it was last written, and why.
    pub async fn first_wrong(&self, ftl: &Device<M>, but: &[u64]) -> Option<String> {
        for page in (0..PAGES).filter(|page| !but.contains(page)) {
            match self.read(ftl, page, page).await {
                Ok(true) => {}
                Ok(false) => return Some(format!("page {page} has another content")),
                Err(error) => return Some(format!("page {page}: {error:?}")),
            }
        }
        None
    }

    /// The slot of `page`: the one without which it cannot be read. Afterwards the medium answers all reads.
    pub async fn slot_of(&self, ftl: &Device<M>, page: u64) -> SlotNo {
        for slot in (ALL.start.0..ALL.end.0).map(SlotNo) {
            self.media.leave_unanswered(slot..SlotNo(slot.0 + 1));
            let read = self.read(ftl, page, page).await;
            self.media.leave_unanswered(NONE);
            if read.is_err() {
                return slot;
            }
        }
        panic!("page {page} is in no slot")
    }
}
