//! Resets that fail without retiring the zone: the zone is tried again, and none is lost.
use crate::support::{Zones, batch, format, start, zones, zones_of};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, Payload, Stamp};
use tantalum_ftl::{FtlOptions, pages_max};
use tantalum_media::ZoneMedia;
use tantalum_media::wrappers::{Faults, FaultsOptions};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const ZONES: u32 = 20;
/// Pages in one write.
const BATCH: u64 = 8;
/// Resets that fail.
const REFUSED: u64 = 6;

#[test]
fn a_zone_whose_reset_fails_is_not_lost() {
    let runtime = Virtual::new(Schedule::Fifo);
    let rt = runtime.clone();
    let run = async move {
        let inner = zones(&rt, ZONES);
        // As many pages as fit, so that without some of its zones the device would soon be full.
        let pages = pages_max(&inner.geometry(), 0) / BATCH * BATCH;
        let media = Faults::new(Rc::new(inner), FaultsOptions::default());
        let options = FtlOptions { checkpoint_interval_slots: 1 << 40, ..FtlOptions::new(pages) };
        let ftl = format(media, options).await.unwrap();
        start(&rt, &ftl);
        // On a new device only hosts' zones are opened.
        let mut refused = 0;
        zones_of::<Faults<Zones>>(&ftl).refuse_reset(0);
        for first in (0..pages).step_by(BATCH as usize) {
            let pages = batch(first, BATCH, 1);
            if let Err(error) = ftl.write(&pages, true).await {
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                refused += 1;
                ftl.write(&pages, true).await.unwrap();
                if refused < REFUSED {
                    zones_of::<Faults<Zones>>(&ftl).refuse_reset(0);
                }
            }
        }
        assert_eq!(refused, REFUSED);
        for count in 2..12 {
            for first in (0..pages).step_by(BATCH as usize) {
                ftl.write(&batch(first, BATCH, count), true).await.unwrap();
            }
        }
        ftl.validate();
        for page in (0..pages).map(PageNo) {
            let mut out = [Stamp::zero()];
            ftl.read(&[page], &mut out).await.unwrap();
            assert_eq!(out[0], Stamp::new(page, 11), "page {page}");
        }
    };
    runtime.run(run).unwrap();
    runtime.drop_tasks();
}
