//! How a device lives, beside what it does for hosts: the same for volumes, for simulated devices, and for
//! those that the crash lab switches off.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Limits, PageDevice, PageNo, Payload};

pub use tantalum_base::Result;

use crate::Runtime;
use crate::metrics::Readings;

/// What a device is made on, or opened from.
pub struct Opening<R, M, K> {
    /// The executor that it is to live on.
    pub runtime: R,
    /// The medium; to open a device, as it was left.
    pub media: M,
    /// What outlives the dark beside the medium. Clones name the same memory.
    pub kept: K,
}

/// Makes devices on media of one kind, and opens them again: the options of a device, with all that
/// they leave open decided.
#[allow(async_fn_in_trait, reason = "devices live on one thread; their futures need not be Send")]
pub trait DeviceKind<R: Runtime, M>: 'static {
    /// The device.
    type Device: LifeCycle;

    /// What outlives the dark beside the medium, such as NVRAM: empty until a device is made. `()` where
    /// there is none.
    type Kept: Clone + Default + 'static;

    /// What opening found and did.
    type Report;

    /// Whether such a device may do something on stored energy when the power is cut.
    const HAS_STORED_ENERGY: bool = false;

    /// Makes a new, empty device. What the medium held is lost. It has to be
    /// [started](LifeCycle::start).
    ///
    /// # Errors
    /// `InvalidInput` where the options contradict each other or the medium; the medium's own.
    async fn format(&self, on: Opening<R, M, Self::Kept>) -> Result<Rc<Self::Device>>;

    /// Makes a new device and starts it.
    ///
    /// # Errors
    /// Those of [`format`](Self::format).
    async fn make(&self, runtime: &R, media: M) -> Result<Rc<Self::Device>> {
        let kept = Self::Kept::default();
        let device = self.format(Opening { runtime: runtime.clone(), media, kept }).await?;
        device.start(runtime);
        Ok(device)
    }

    /// Opens the device that the medium holds: after [`close`](LifeCycle::close), or a power cut at any
    /// moment. It has to be started; tasks that recovery itself needs run already.
    ///
    /// # Errors
    /// `InvalidInput` as [`format`](Self::format); `Format` where there is no such device; `Corrupt` where
    /// durable content is damaged that it cannot do without; the medium's own.
    async fn open(&self, on: Opening<R, M, Self::Kept>)
    -> Result<(Rc<Self::Device>, Self::Report)>;

    /// What the device does between a power cut and darkness, such as a dump: its tasks are gone, what was
    /// in flight has met its fate, and the medium in `on` is powered for that long. Only called where
    /// [`HAS_STORED_ENERGY`](Self::HAS_STORED_ENERGY).
    ///
    /// # Errors
    /// The medium's.
    async fn on_stored_energy(
        &self,
        device: Rc<Self::Device>,
        on: Opening<R, M, Self::Kept>,
    ) -> Result<()> {
        let _ = (device, on);
        Ok(())
    }
}

/// A device from its opening to its end. When power is cut, its tasks stop where they
/// stand and it is dropped.
#[allow(async_fn_in_trait, reason = "devices live on one thread; their futures need not be Send")]
pub trait LifeCycle: PageDevice {
    /// Starts what must run beside the commands, once, before the first of them, on the executor that it
    /// was opened on. These tasks end when the device fails; what made it fail is told to whoever changes
    /// something next.
    fn start(self: &Rc<Self>, runtime: &impl Runtime);

    /// Writes everything back, so that the next opening is quick. No command may be in flight. What is
    /// open read-only is left as it is.
    ///
    /// # Errors
    /// `Latched` after an earlier failure; the medium's own.
    async fn close(&self) -> Result<()>;

    /// Reads every page, and walks every structure where the device has a way to; what is wrong, and
    /// where. Changes nothing, and changes must not be in flight. Calls `progress` with (pages done, pages
    /// in all).
    ///
    /// # Errors
    /// None that a finding could tell.
    async fn check(&self, mut progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        let pages = self.limits().pages;
        let mut findings = Vec::new();
        let mut content = [Self::Page::zero()];
        for page in (0..pages).map(PageNo) {
            match self.read(page, &mut content, None).await {
                Ok(()) => {}
                Err(error) if is_damage(error.kind()) => {
                    findings.push(Finding::new(format!("page {page}"), error.to_string()));
                }
                Err(error) => return Err(error),
            }
            progress(page.0 + 1, pages);
        }
        Ok(findings)
    }

    /// What it counted since it was opened.
    fn counters(&self) -> DeviceCounters;

    /// Tells what an administrator watches: what it counted, and how full and worn it is. A wrapper
    /// tells what is its own, and lets the device below tell the rest.
    fn metrics(&self, out: &mut Readings) {
        self.counters().tell(self.limits(), out);
    }

    /// Panics where its structures contradict each other. For tests; no command is in flight.
    fn validate(&self);
}

/// The life of a wrapper that has none of its own is that of the device in this field; but for
/// [`LifeCycle::validate`] and [`LifeCycle::metrics`], to which it may have something to add.
#[macro_export]
macro_rules! forward_life_cycle {
    ($device:ident) => {
        fn start(self: &std::rc::Rc<Self>, runtime: &impl $crate::Runtime) {
            self.$device.start(runtime);
        }

        async fn close(&self) -> $crate::life_cycle::Result<()> {
            self.$device.close().await
        }

        async fn check(
            &self,
            progress: impl FnMut(u64, u64),
        ) -> $crate::life_cycle::Result<Vec<$crate::Finding>> {
            self.$device.check(progress).await
        }

        fn counters(&self) -> $crate::DeviceCounters {
            self.$device.counters()
        }
    };
}

/// Whether an error says that what was written is not there any more.
pub fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt | ErrorKind::Checksum | ErrorKind::Uncorrectable)
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where: a page, a slot, a zone.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// Whether anything that the device holds, or needs to be opened, is concerned. What is not in force was
    /// replaced before, or has a copy that counts.
    pub in_force: bool,
    /// The medium did not answer. That says nothing of what it holds, and may pass: nothing is given up for it.
    pub unanswered: bool,
}

impl Finding {
    /// Something that is in force is wrong.
    pub fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Finding { place: place.into(), problem: problem.into(), in_force: true, unanswered: false }
    }

    /// Something is damaged that is not in force.
    pub fn not_in_force(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Finding { in_force: false, ..Finding::new(place, problem) }
    }

    /// Something that is not in force cannot be judged: `error` came in place of it, which may pass if it is of the medium.
    pub fn unread(place: impl Into<String>, error: &Error) -> Self {
        let finding = Finding::not_in_force(place, format!("it cannot be read now: {error}"));
        Finding { unanswered: error.kind() == ErrorKind::Io, ..finding }
    }

    /// Something that is in force cannot be read now.
    pub fn unanswered(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Finding { unanswered: true, ..Finding::new(place, problem) }
    }
}

/// What any device counts since it was opened. One kind of device has more to tell, in `statistics` of
/// its own. What a device has no notion of stays 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Pages that the host read.
    pub pages_read: u64,
    /// Of those, served by the device's write cache.
    pub read_hits: u64,
    /// Pages that the host wrote, transactions included when they commit.
    pub pages_written: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Of the pages written, those that reached the translation layer: rewrites coalesce above it.
    pub layer_pages_written: u64,
    /// Places of a page that the translation layer programmed, for any reason.
    pub slots_programmed: u64,
    /// Places programmed in a redo log beside it.
    pub log_slots: u64,
    /// Pages that cleaning and merges moved.
    pub pages_moved: u64,
    /// Zones or blocks that cleaning emptied.
    pub zones_cleaned: u64,
    /// Merges of log blocks.
    pub merges: u64,
    /// Checkpoints, or pages of the mapping, written.
    pub checkpoints: u64,
    /// Pages of open transactions that were moved out of a cache too small for them.
    pub pages_spilled: u64,
    /// Reads of a disk's platters; flash is counted by its array.
    pub disk_reads: u64,
    /// Writes to them.
    pub disk_writes: u64,
    /// `None` where no stored energy dumps anything.
    pub dump: Option<DumpCounters>,
}

impl DeviceCounters {
    /// Tells what any device with `limits` does for its hosts.
    pub fn tell(&self, limits: &Limits, out: &mut Readings) {
        let page_bytes = u64::from(limits.page_bytes);
        let capacity_bytes = limits.pages * page_bytes;
        out.gauge("tantalum_device_capacity_bytes", "Size of the device", capacity_bytes);
        out.gauge("tantalum_device_page_bytes", "Size of a page", page_bytes);
        let read = "Pages that hosts read, those from a buffer not counted";
        out.counter("tantalum_device_read_pages_total", read, self.pages_read);
        let written = "Pages that hosts wrote, those of transactions when they commit";
        out.counter("tantalum_device_written_pages_total", written, self.pages_written);
        out.counter("tantalum_device_flushes_total", "Flush commands", self.flushes);
    }

    /// Tells what the write cache of a device does, where it has one.
    pub fn tell_write_cache(&self, out: &mut Readings) {
        let asked = "Pages read that were looked for in the write cache";
        out.counter("tantalum_write_cache_requested_pages_total", asked, self.pages_read);
        let hits = "Of those, pages that were there";
        out.counter("tantalum_write_cache_hit_pages_total", hits, self.read_hits);
    }

    /// Tells what its translation layer does, where it has one.
    pub fn tell_layer(&self, out: &mut Readings) {
        let written =
            "Pages of hosts that reached the translation layer: rewrites coalesce above it";
        out.counter("tantalum_ftl_written_pages_total", written, self.layer_pages_written);
        let programmed = "Places of a page that the translation layer programmed, for any reason";
        out.counter("tantalum_ftl_programmed_slots_total", programmed, self.slots_programmed);
        let moved = "Pages that cleaning and merges moved";
        out.counter("tantalum_ftl_moved_pages_total", moved, self.pages_moved);
        let cleaned = "Zones or blocks that cleaning emptied";
        out.counter("tantalum_ftl_cleaned_zones_total", cleaned, self.zones_cleaned);
        let checkpoints = "Checkpoints, or pages of the mapping, written";
        out.counter("tantalum_ftl_checkpoints_total", checkpoints, self.checkpoints);
    }
}

/// What a power loss would have to dump, of a device with stored energy for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpCounters {
    /// Most bytes at any time since the device was made.
    pub bytes_max: u64,
    /// Bytes that there is energy for.
    pub budget_bytes: u64,
    /// Delta pages written, so that a dump need not hold their mapping entries.
    pub delta_pages: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Virtual;
    use crate::virtual_time::Schedule;
    use tantalum_base::{Durability, Error, PageRange, Stamp, TxId};

    /// A device of four pages, of which reading page 2 fails as it says.
    struct Damaged(ErrorKind, Limits);

    impl PageDevice for Damaged {
        type Page = Stamp;

        fn limits(&self) -> &Limits {
            &self.1
        }

        async fn read(&self, first: PageNo, _: &mut [Stamp], _: Option<TxId>) -> Result<()> {
            if first == PageNo(2) { Err(Error::new(self.0, "page 2")) } else { Ok(()) }
        }

        async fn write(&self, _: PageNo, _: &[Stamp], _: Option<TxId>) -> Result<()> {
            unreachable!("a check changes nothing")
        }

        async fn flush(&self) -> Result<()> {
            unreachable!("a check changes nothing")
        }

        async fn trim(&self, _: PageRange) -> Result<()> {
            unreachable!("a check changes nothing")
        }
    }

    impl LifeCycle for Damaged {
        fn start(self: &Rc<Self>, _runtime: &impl Runtime) {}

        async fn close(&self) -> Result<()> {
            Ok(())
        }

        fn counters(&self) -> DeviceCounters {
            DeviceCounters::default()
        }

        fn validate(&self) {}
    }

    fn check(kind: ErrorKind) -> (Result<Vec<Finding>>, Vec<(u64, u64)>) {
        let limits = Limits {
            page_bytes: 4096,
            pages: 4,
            atomic_write_pages_max: 1,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        let main = async move {
            let mut told = Vec::new();
            let found = Damaged(kind, limits).check(|done, all| told.push((done, all))).await;
            (found, told)
        };
        Virtual::new(Schedule::Fifo).run(main).unwrap()
    }

    #[test]
    fn a_check_reads_every_page_and_goes_on_behind_a_damaged_one() {
        for kind in [ErrorKind::Checksum, ErrorKind::Corrupt, ErrorKind::Uncorrectable] {
            let (found, told) = check(kind);
            let places: Vec<String> = found.unwrap().into_iter().map(|it| it.place).collect();
            assert_eq!(places, ["page 2"]);
            assert_eq!(told, [(1, 4), (2, 4), (3, 4), (4, 4)]);
        }
    }

    #[test]
    fn a_check_that_cannot_read_says_so_and_finds_nothing() {
        assert_eq!(check(ErrorKind::Io).0.unwrap_err().kind(), ErrorKind::Io);
    }
}
