//! Checkpoints record which pages are clean. Pages destaged since the last checkpoint are found after a kill.
use super::failing::Fails;
use super::rig::{Life, Rig, page};
use tantalum_base::{ErrorKind, PAGE_BYTES, PageDevice, PageNo, PageRange};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_volume::{TieredStores, rescue};

/// Writes 900 pages in batches of 150, each destaged before the next.
async fn fill(life: &Life) {
    for part in 0..6 {
        for first in (part * 150..(part + 1) * 150).step_by(10) {
            let run: Vec<_> = (first..first + 10).map(|number| page(number, 1)).collect();
            life.volume.write(PageNo(first), &run, None).await.unwrap();
        }
        life.write_home().await.unwrap();
    }
}

/// The journal records the pages that home has. Only the last epoch is written in place again, because nothing records
/// that it was.
#[test]
fn what_went_home_is_clean_after_a_kill() {
    for is_written_down in [false, true] {
        let rig = Rig::new("ordered");
        rig.live(move |life| async move {
            fill(&life).await;
            life.volume.trim(PageRange::new(PageNo(700), 100)).await.unwrap();
            life.write_home().await.unwrap();
            life.home.fail(Fails::Changes(ErrorKind::Io));
            for number in 1000..1005 {
                life.write(number, 1).await.unwrap();
            }
            if is_written_down {
                life.sleep_s(1).await;
            }
        });
        rig.live(move |life| async move {
            assert_eq!(life.statistics().dirty_pages, 5);
            life.sleep_s(10).await;
            let told = life.statistics();
            assert_eq!((told.dirty_pages, told.dirty_or_trimmed_pages), (0, 0), "{told:?}");
            assert_eq!(told.journal_pages_written, if is_written_down { 0 } else { 5 });
            assert_eq!(told.home_pages_written, 5);
            for number in 0..1005 {
                let count =
                    u64::from(!(700..800).contains(&number) && !(900..1000).contains(&number));
                assert_eq!(life.read(number).await.unwrap(), page(number, count));
            }
        });
    }
}

/// The journal does not record them if home was rescued although the flash existed, or if pages are destaged one by
/// one. Then more pages may count as dirty than the limit on dirty pages, and than the journal has room for.
#[test]
fn more_pages_than_may_be_dirty_go_home_after_a_kill() {
    for destage in ["ordered", "dense"] {
        let rig = Rig::with_dirty_max(destage, "30%");
        rig.live(|life| async move { fill(&life).await });
        let runtime = Virtual::new(Schedule::Fifo);
        if let TieredStores { home, journal: Some(journal), .. } = rig.stores(&runtime) {
            let rescued = runtime.run(rescue(journal, home)).unwrap();
            assert_eq!(rescued.is_ok(), destage == "ordered", "{rescued:?}");
        }
        rig.live(|life| async move {
            let limit = life.volume.device().device().options().dirty_hard_pages;
            let before = life.statistics().dirty_pages;
            assert!(before > limit + 200, "{before} dirty, {limit} may be");
            // There is no room for more until some pages are known to be at home.
            for number in 100..200 {
                life.write(number, 2).await.unwrap();
            }
            life.write_home().await.unwrap();
            let told = life.statistics();
            assert_eq!((told.dirty_pages, &told.home_failure), (0, &None));
            // This includes pages that home seems to have: a sync may have failed before, and they may be in memory
            // only.
            assert!(told.home_pages_written >= before, "{before} were dirty: {told:?}");
        });
        let image = Rig::under_the_claim(&rig.home);
        for (number, bytes) in (0..1000).zip(image.chunks(PAGE_BYTES)) {
            let count = match number {
                100..200 => 2,
                0..900 => 1,
                _ => 0,
            };
            assert!(*bytes == page(number, count)[..], "{destage}: page {number}");
        }
    }
}
