//! Zones that the medium retired before the FTL was opened.
#[allow(dead_code, reason = "tests have what they need of it in common")]
mod support;

use std::rc::Rc;
use support::{batch, start, zones};
use tantalum_base::{ErrorKind, Result, Rng, ZoneNo};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::ZoneMedia;
use tantalum_media::wrappers::{Faults, FaultsOptions};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const ZONES: u32 = 40;
const PAGES: u64 = 500;

/// Writes batches of the most pages that the FTL says it can take, for long, on a device of which
/// `retired` zones are gone; how many pages that are.
fn write_largest_batches(retired: u32) -> Result<u64> {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = Faults::new(Rc::new(zones(&runtime, ZONES)), FaultsOptions::default());
    let rt = runtime.clone();
    let run = async move {
        for zone in 0..retired {
            media.fail_reset(0);
            let failed = media.reset(ZoneNo(zone)).await.unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::ZoneRetired);
        }
        let ftl = Ftl::format(media, FtlOptions::new(PAGES)).await?;
        assert_eq!(ftl.statistics().zones_retired, retired);
        start(&rt, &ftl);
        let most = u64::from(ftl.batch_pages_max()).min(PAGES);
        for first in (0..PAGES).step_by(10) {
            ftl.write(&batch(first, 10, 1), true).await?;
        }
        let mut rng = Rng::split(1, "batches");
        for count in 2..200 {
            let first = rng.below(PAGES - most + 1);
            ftl.write(&batch(first, most, count), true).await?;
        }
        ftl.validate();
        Ok(u64::from(ftl.batch_pages_max()))
    };
    runtime.run(run).unwrap()
}

#[test]
fn a_batch_of_the_most_pages_finds_room_however_many_zones_are_gone() {
    let whole = write_largest_batches(0).unwrap();
    for retired in 1..=14 {
        let most = write_largest_batches(retired)
            .unwrap_or_else(|error| panic!("{retired} zones retired: {error}"));
        assert!(most < whole, "{retired} zones retired: {most} pages of {whole}");
    }
}
