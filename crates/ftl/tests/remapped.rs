//! Remapped pages, on flash that returns another slot's content, intact and with its spare: an
//! error, wherever the page's entry was meanwhile.
use crate::support::{Zones, batch, format, recover, start, zones, zones_of};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, Payload, Result, SlotNo, Stamp};
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::{ErasedZones, Spare, ZoneLayer, ZoneMedia};
use tantalum_policy::CleaningSpec;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 200;
const ZONES: u32 = 60;
/// Pages that were remapped to another page's content, and that content: of a page that still has
/// it, through another remapped page, and of a page that was written again since.
const REMAPPED: [(u64, Stamp); 3] = [
    (100, Stamp { page_plus_one: 1, count: 1 }),
    (101, Stamp { page_plus_one: 1, count: 1 }),
    (102, Stamp { page_plus_one: 2, count: 1 }),
];

/// Returns one slot's content and spare instead of another's.
struct Strays {
    inner: Zones,
    // The slot requested, and the one returned instead.
    stray: Cell<Option<(SlotNo, SlotNo)>>,
    last_read: RefCell<Vec<SlotNo>>,
}

impl ZoneLayer for Strays {
    type Inner = Zones;

    fn inner(&self) -> &Zones {
        &self.inner
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [Stamp],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        *self.last_read.borrow_mut() = slots.to_vec();
        let given = |slot: &SlotNo| match self.stray.get() {
            Some((asked, given)) if asked == *slot => given,
            _ => *slot,
        };
        let slots: Vec<SlotNo> = slots.iter().map(given).collect();
        self.inner.read_with_spares(&slots, out, spares).await
    }
}

type Device = Rc<Ftl<ErasedZones<Stamp>>>;

fn strays(inner: Zones) -> Strays {
    Strays { inner, stray: Cell::new(None), last_read: RefCell::default() }
}

fn options(with_dump: bool) -> FtlOptions {
    let geometry = zones(&Virtual::new(Schedule::Fifo), ZONES).geometry();
    let dump = with_dump.then(|| DumpOptions::least(&geometry, PAGES, 8));
    FtlOptions {
        dump,
        checkpoint_interval_slots: 1 << 40,
        // Every zone in turn, however full.
        cleaning: CleaningSpec::Fifo,
        ..FtlOptions::new(PAGES)
    }
}

async fn read(ftl: &Device, page: u64) -> Result<Stamp> {
    let mut out = [Stamp::zero()];
    ftl.read(&[PageNo(page)], &mut out).await.map(|()| out[0])
}

/// The slot of `page`.
async fn slot_of(ftl: &Device, page: u64) -> Result<SlotNo> {
    read(ftl, page).await?;
    Ok(zones_of::<Strays>(ftl).last_read.borrow()[0])
}

/// A new device with the pages of [`REMAPPED`].
async fn filled(rt: &Virtual, inner: Zones, options: FtlOptions) -> Result<Device> {
    let ftl = format(strays(inner), options).await?;
    start(rt, &ftl);
    ftl.write(&batch(0, 40, 1), true).await?;
    for (left, right) in [(100, 0), (101, 100), (102, 1)] {
        ftl.share(&[(PageNo(left), PageNo(right))], true, || {}).await?;
    }
    ftl.write(&batch(1, 1, 2), true).await?;
    Ok(ftl)
}

/// Checks that every page of [`REMAPPED`] has its content, and is an error if the medium returns
/// the content of a page written by a host, or of another remapped page.
async fn check(ftl: &Device) -> Result<()> {
    ftl.validate();
    for (page, content) in REMAPPED {
        assert_eq!(read(ftl, page).await?, content, "page {page}");
        let place = slot_of(ftl, page).await?;
        for other in [5, 1, 100, 102] {
            let given = slot_of(ftl, other).await?;
            if given == place {
                continue;
            }
            zones_of::<Strays>(ftl).stray.set(Some((place, given)));
            let alone = read(ftl, page).await;
            let mut out = [Stamp::zero(); 2];
            let together = ftl.read(&[PageNo(7), PageNo(page)], &mut out).await;
            let found = ftl.check(|_, _| {}).await?;
            zones_of::<Strays>(ftl).stray.set(None);
            let kinds = [alone.map(|_| ()), together].map(|read| read.unwrap_err().kind());
            assert_eq!(kinds, [ErrorKind::Checksum; 2], "page {page}, content of {other}");
            let named = |page| found.iter().any(|finding| finding.place == format!("page {page}"));
            assert!(named(page), "{found:?}");
        }
    }
    Ok(())
}

/// Rewrites hot pages until every page of [`REMAPPED`] was moved.
async fn clean(ftl: &Device) -> Result<()> {
    let mut before = Vec::new();
    for (page, _) in REMAPPED {
        before.push(slot_of(ftl, page).await?);
    }
    for count in 2..2000 {
        ftl.write(&batch(20 + count % 4 * 4, 4, count), true).await?;
        let mut moved = 0;
        for ((page, _), before) in REMAPPED.iter().zip(&before) {
            moved += usize::from(slot_of(ftl, *page).await? != *before);
        }
        if moved == REMAPPED.len() {
            return Ok(());
        }
    }
    panic!("cleaning moved nothing");
}

/// How the device is shut down.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Cut,
    Checkpoint,
    Dump { behind_delta_pages: bool },
}

/// Runs a device, cleaned or not, shuts it down by `end`, opens it again, and checks before and
/// after; cleans again, and opens it once more.
fn before_and_after(cleaned: bool, end: End) {
    let runtime = Virtual::new(Schedule::Fifo);
    let inner = zones(&runtime, ZONES);
    let media = inner.reopen(runtime.clone());
    let options = options(matches!(end, End::Dump { .. }));
    let rt = runtime.clone();
    let life = async move {
        let ftl = filled(&rt, media, options).await?;
        if cleaned {
            clean(&ftl).await?;
        }
        check(&ftl).await?;
        match end {
            End::Checkpoint => ftl.checkpoint().await?,
            End::Dump { behind_delta_pages: true } => {
                for first in (40..90).step_by(10) {
                    ftl.write(&batch(first, 10, 1), true).await?;
                    rt.sleep(50_000_000).await;
                }
                for first in (110..190).step_by(10) {
                    ftl.write(&batch(first, 10, 1), true).await?;
                    rt.sleep(50_000_000).await;
                }
                assert!(ftl.statistics().delta_pages > 0);
            }
            End::Cut | End::Dump { .. } => {}
        }
        Ok::<_, tantalum_base::Error>(ftl)
    };
    let ftl = runtime.run(life).unwrap().unwrap();
    runtime.drop_tasks();
    if matches!(end, End::Dump { .. }) {
        let runtime = Virtual::new(Schedule::Fifo);
        let media = ErasedZones::new(strays(inner.reopen(runtime.clone())));
        runtime.run(async move { ftl.dump(&media, &[]).await.map(|_| ()) }).unwrap().unwrap();
    }
    for opening in 0..2 {
        let runtime = Virtual::new(Schedule::Fifo);
        let media = strays(inner.reopen(runtime.clone()));
        let rt = runtime.clone();
        let life = async move {
            let (ftl, report) = recover(media, options).await?;
            if let (0, End::Dump { behind_delta_pages }) = (opening, end) {
                assert!(report.merged && (report.delta_pages > 0) == behind_delta_pages);
                ftl.conclude_dump().await?;
            }
            check(&ftl).await?;
            start(&rt, &ftl);
            clean(&ftl).await?;
            check(&ftl).await?;
            if end == End::Checkpoint {
                ftl.checkpoint().await?;
            }
            Ok::<_, tantalum_base::Error>(())
        };
        runtime.run(life).unwrap().unwrap();
        runtime.drop_tasks();
        if matches!(end, End::Dump { .. }) {
            // Without another dump the device cannot be opened.
            break;
        }
    }
}

#[test]
fn a_stray_slot_is_found_out_before_and_after_a_scan_of_the_log() {
    before_and_after(false, End::Cut);
    before_and_after(true, End::Cut);
}

#[test]
fn a_stray_slot_is_found_out_before_and_after_a_checkpoint() {
    before_and_after(false, End::Checkpoint);
    before_and_after(true, End::Checkpoint);
}

#[test]
fn a_stray_slot_is_found_out_before_and_after_a_dump() {
    for behind_delta_pages in [false, true] {
        before_and_after(false, End::Dump { behind_delta_pages });
        before_and_after(true, End::Dump { behind_delta_pages });
    }
}

#[test]
fn cleaning_copies_no_stray_slot() {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = zones(&runtime, ZONES);
    let rt = runtime.clone();
    let life = async move {
        let ftl = filled(&rt, media, options(false)).await?;
        let (place, given) = (slot_of(&ftl, 102).await?, slot_of(&ftl, 5).await?);
        zones_of::<Strays>(&ftl).stray.set(Some((place, given)));
        for count in 2..1000 {
            ftl.write(&batch(20 + count % 4 * 4, 4, count), true).await?;
        }
        assert!(ftl.statistics().zones_cleaned > 0);
        let lost = read(&ftl, 102).await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::Checksum, "{lost}");
        Ok::<_, tantalum_base::Error>(())
    };
    runtime.run(life).unwrap().unwrap();
}
