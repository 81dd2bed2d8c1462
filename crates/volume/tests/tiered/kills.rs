//! A kill makes pages dirty again that went home since the last checkpoint.
use super::rig::{Rig, page};
use tantalum_base::{PAGE_BYTES, PageDevice, PageNo};

/// They may be more than may be dirty, and than the journal beside the home has room for.
#[test]
fn more_pages_than_may_be_dirty_go_home_after_a_kill() {
    for destage in ["ordered", "dense"] {
        let rig = Rig::with_dirty_max(destage, "30%");
        rig.live(|life| async move {
            for part in 0..6 {
                for first in (part * 150..(part + 1) * 150).step_by(10) {
                    let run: Vec<_> = (first..first + 10).map(|number| page(number, 1)).collect();
                    life.volume.write(PageNo(first), &run, None).await.unwrap();
                }
                life.write_home().await.unwrap();
            }
        });
        rig.live(|life| async move {
            let limit = life.volume.device().device().options().dirty_hard_pages;
            let told = life.statistics();
            assert!(told.dirty_pages > limit + 200, "{} dirty, {limit} may be", told.dirty_pages);
            // There is no room for more until some are known to be at home.
            for number in 100..200 {
                life.write(number, 2).await.unwrap();
            }
            life.write_home().await.unwrap();
            let told = life.statistics();
            assert_eq!((told.dirty_pages, told.home_failure), (0, None));
        });
        let image = rig.home.image();
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
