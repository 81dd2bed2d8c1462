//! The life cycle of a device, apart from its service to hosts. It is the same for volumes, for simulated devices,
//! and for devices whose power the crash lab cuts.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Limits, PageDevice, PageNo, Payload};

pub use tantalum_base::Result;

use crate::Runtime;
use crate::metrics::Readings;

/// The resources on which a device is made, or from which it is opened.
pub struct Opening<R, M, K> {
    /// The executor on which the device runs.
    pub runtime: R,
    /// The medium. To open a device, it must be as the device left it.
    pub media: M,
    /// State that survives a power loss outside the medium. Clones refer to the same memory.
    pub kept: K,
}

/// Makes and opens devices on media of one kind. It holds the options of a device, with all choices resolved.
#[allow(async_fn_in_trait, reason = "devices live on one thread; their futures need not be Send")]
pub trait DeviceKind<R: Runtime, M>: 'static {
    /// The device.
    type Device: LifeCycle;

    /// State that survives a power loss outside the medium, such as NVRAM. It is empty until a device is made. `()`
    /// if there is none.
    type Kept: Clone + Default + 'static;

    /// The report of an open: findings and actions.
    type Report;

    /// Whether such a device may act on stored energy when power is cut.
    const HAS_STORED_ENERGY: bool = false;

    /// Makes a new, empty device. The old content of the medium is lost. The device must then be
    /// [started](LifeCycle::start).
    ///
    /// # Errors
    /// `InvalidInput` if the options contradict each other or the medium; errors of the medium.
    async fn format(&self, on: Opening<R, M, Self::Kept>) -> Result<Rc<Self::Device>>;

    /// Makes a new device and starts it.
    ///
    /// # Errors
    /// As for [`format`](Self::format).
    async fn make(&self, runtime: &R, media: M) -> Result<Rc<Self::Device>> {
        let kept = Self::Kept::default();
        let device = self.format(Opening { runtime: runtime.clone(), media, kept }).await?;
        device.start(runtime);
        Ok(device)
    }

    /// Opens the device on the medium, after [`close`](LifeCycle::close) or a power cut at any moment. It must then
    /// be started; tasks that recovery itself needs already run.
    ///
    /// # Errors
    /// `InvalidInput` as for [`format`](Self::format); `Format` if there is no such device; `Corrupt` if durable
    /// content that is required is damaged; errors of the medium.
    async fn open(&self, on: Opening<R, M, Self::Kept>)
    -> Result<(Rc<Self::Device>, Self::Report)>;

    /// The actions of the device between a power cut and the loss of all power, such as a dump. Its tasks have been
    /// dropped. The operations in flight have landed, vanished or torn. The medium in `on` has power until this
    /// returns. Only called if [`HAS_STORED_ENERGY`](Self::HAS_STORED_ENERGY).
    ///
    /// # Errors
    /// Errors of the medium.
    async fn on_stored_energy(
        &self,
        device: Rc<Self::Device>,
        on: Opening<R, M, Self::Kept>,
    ) -> Result<()> {
        let _ = (device, on);
        Ok(())
    }
}

/// A device from its opening to its end. At a power cut its tasks stop at once, and it is dropped.
#[allow(async_fn_in_trait, reason = "devices live on one thread; their futures need not be Send")]
pub trait LifeCycle: PageDevice {
    /// Starts the background tasks, once, before the first command, on the executor on which the device was opened.
    /// The tasks end when the device fails; the next change then returns the error that caused the failure.
    fn start(self: &Rc<Self>, runtime: &impl Runtime);

    /// Writes everything back, so that the next open is quick. No command may be in flight. A device that is open
    /// read-only is left unchanged.
    ///
    /// # Errors
    /// `Latched` after an earlier failure; errors of the medium.
    async fn close(&self) -> Result<()>;

    /// Ends waits that may last forever, such as a wait for a slow home that does not respond. Commands that wait fail
    /// with `Closed`, and [`close`](Self::close) omits everything that the next open can do as well. A server that is
    /// stopping calls this when it has waited long enough.
    fn wait_no_longer(&self) {}

    /// Reads every page, and walks every structure if the device supports that. Returns the problems found, with
    /// their places. Changes nothing; no changes may be in flight. Calls `progress` with (pages done, total pages).
    ///
    /// # Errors
    /// Errors that cannot be reported as a finding.
    async fn check(&self, mut progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        let pages = self.limits().pages;
        let mut findings = Vec::new();
        let mut content = [Self::Page::zero()];
        for page in (0..pages).map(PageNo) {
            match self.read(page, &mut content, None).await {
                Ok(()) => {}
                Err(error) if is_damage(error.kind()) => {
                    findings.push(Finding::of_page(page, error.to_string()));
                }
                Err(error) => return Err(error),
            }
            progress(page.0 + 1, pages);
        }
        Ok(findings)
    }

    /// Counts since the device was opened.
    fn counters(&self) -> DeviceCounters;

    /// Reports the numbers that an administrator watches: counts, fill level and wear. A wrapper reports its own
    /// numbers, and lets the device below report the rest.
    fn metrics(&self, out: &mut Readings) {
        self.counters().tell(self.limits(), out);
    }

    /// Panics if its structures contradict each other. For tests; no command may be in flight.
    fn validate(&self);
}

/// Forwards the life cycle of a wrapper to the device in its field `$device`. [`LifeCycle::validate`] and
/// [`LifeCycle::metrics`] are not included, because the wrapper may add to them.
#[macro_export]
macro_rules! forward_life_cycle {
    ($device:ident) => {
        fn start(self: &std::rc::Rc<Self>, runtime: &impl $crate::Runtime) {
            self.$device.start(runtime);
        }

        async fn close(&self) -> $crate::life_cycle::Result<()> {
            self.$device.close().await
        }

        fn wait_no_longer(&self) {
            self.$device.wait_no_longer();
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

/// Whether an error means that written content is lost.
pub fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt | ErrorKind::Checksum | ErrorKind::Uncorrectable)
}

/// The part of a device that a problem is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DevicePart {
    /// A copy of the superblock.
    Superblock,
    /// Checkpoints, anchors, and the log since.
    Log,
    /// The content of a page that hosts read.
    Page,
    /// A zone, or a table of the mapping.
    Zone,
    /// The journal beside a home.
    Journal,
}

/// A problem that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The part that it is in.
    pub part: DevicePart,
    /// The place: a page, a slot, a zone.
    pub place: String,
    /// The problem.
    pub problem: String,
    /// Whether it affects content of the device, or anything needed to open it. If false, the damaged item had been
    /// replaced already, or an intact copy of it is used instead.
    pub in_force: bool,
    /// The medium did not respond. This says nothing about its content and may be transient, so nothing is given up
    /// because of it.
    pub unanswered: bool,
}

impl Finding {
    /// A problem with an item that is in force.
    pub fn new(part: DevicePart, place: impl Into<String>, problem: impl Into<String>) -> Self {
        let (place, problem) = (place.into(), problem.into());
        Finding { part, place, problem, in_force: true, unanswered: false }
    }

    /// A problem with the content of `page`.
    pub fn of_page(page: PageNo, problem: impl Into<String>) -> Self {
        Finding::new(DevicePart::Page, format!("page {page}"), problem)
    }

    /// A problem with an item that is not in force.
    pub fn not_in_force(
        part: DevicePart,
        place: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Finding { in_force: false, ..Finding::new(part, place, problem) }
    }

    /// An item that is not in force could not be read because of `error`. This may be transient if it is an error of
    /// the medium.
    pub fn unread(part: DevicePart, place: impl Into<String>, error: &Error) -> Self {
        let finding = Finding::not_in_force(part, place, format!("it cannot be read now: {error}"));
        Finding { unanswered: error.kind() == ErrorKind::Io, ..finding }
    }

    /// The same problem of an item that is in force, but which only cannot be read now.
    pub fn unanswered(self) -> Self {
        Finding { unanswered: true, ..self }
    }
}

/// Counts of any device since it was opened. Some kinds of device report more in their own `statistics`. Counts that
/// do not apply to a device stay 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Pages that the host read.
    pub pages_read: u64,
    /// Pages among `pages_read` that the write cache served.
    pub read_hits: u64,
    /// Pages that the host wrote. Pages of a transaction count at its commit.
    pub pages_written: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Pages among `pages_written` that reached the translation layer. Rewrites are coalesced above it.
    pub layer_pages_written: u64,
    /// Page slots that the translation layer programmed, for any reason.
    pub slots_programmed: u64,
    /// Page slots programmed in a redo log beside it.
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
    /// Reads of a disk's platters. Operations on flash are counted by the flash array.
    pub disk_reads: u64,
    /// Writes to the platters.
    pub disk_writes: u64,
    /// `None` if the device has no dump on stored energy.
    pub dump: Option<DumpCounters>,
}

impl DeviceCounters {
    /// Reports the counts that every device with `limits` has.
    pub fn tell(&self, limits: &Limits, out: &mut Readings) {
        let page_bytes = u64::from(limits.page_bytes);
        let capacity_bytes = limits.pages * page_bytes;
        out.gauge("tantalum_device_capacity_bytes", "Size of the device", capacity_bytes);
        out.gauge("tantalum_device_page_bytes", "Size of a page", page_bytes);
        let read = "Pages that hosts read, without those from a buffer";
        out.counter("tantalum_device_read_pages_total", read, self.pages_read);
        let written = "Pages that hosts wrote; pages of a transaction count at its commit";
        out.counter("tantalum_device_written_pages_total", written, self.pages_written);
        out.counter("tantalum_device_flushes_total", "Flush commands", self.flushes);
    }

    /// Reports the counts of the write cache, for a device that has one.
    pub fn tell_write_cache(&self, out: &mut Readings) {
        let asked = "Page reads that looked in the write cache";
        out.counter("tantalum_write_cache_requested_pages_total", asked, self.pages_read);
        let hits = "Of those, pages found there";
        out.counter("tantalum_write_cache_hit_pages_total", hits, self.read_hits);
    }

    /// Reports the counts of the translation layer, for a device that has one.
    pub fn tell_layer(&self, out: &mut Readings) {
        let written =
            "Pages of hosts that reached the translation layer: rewrites coalesce above it";
        out.counter("tantalum_ftl_written_pages_total", written, self.layer_pages_written);
        let programmed = "Slots that the translation layer programmed, for any reason";
        out.counter("tantalum_ftl_programmed_slots_total", programmed, self.slots_programmed);
        let moved = "Pages that cleaning and merges moved";
        out.counter("tantalum_ftl_moved_pages_total", moved, self.pages_moved);
        let cleaned = "Victim zones or blocks that cleaning emptied";
        out.counter("tantalum_ftl_cleaned_zones_total", cleaned, self.zones_cleaned);
        let checkpoints = "Checkpoints, or pages of the mapping, written";
        out.counter("tantalum_ftl_checkpoints_total", checkpoints, self.checkpoints);
    }
}

/// The data that a power loss would have to dump, for a device with stored energy for a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpCounters {
    /// Maximum bytes at any time since the device was made.
    pub bytes_max: u64,
    /// Bytes for which there is energy.
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

    /// A device of four pages. A read of page 2 fails with the given kind.
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
