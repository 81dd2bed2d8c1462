//! A home that had a cache gets another one.
use super::rig::{Rig, page};
use tantalum_runtime::LifeCycle;
use tantalum_volume::{ClaimConfig, OpenOptions};

/// The former cache left a mark of the home, which was changed since. An attach that is interrupted after it made flash and journal
/// anew must find a volume without a page when it is repeated, and no home that was changed behind its cache.
#[test]
fn what_a_former_cache_knew_of_the_home_is_forgotten_with_its_journal() {
    for destage in ["ordered", "dense"] {
        let mut rig = Rig::new(destage);
        rig.config.home.as_mut().unwrap().claim = ClaimConfig::None;
        rig.live(|life| async move {
            life.write(0, 1).await.unwrap();
            life.write_home().await.unwrap();
            life.volume.close().await.unwrap();
        });
        rig.home.wipe_block(0);
        rig.format();
        rig.live_as(OpenOptions::READ_ONLY, |opened| async move {
            assert_eq!(opened.unwrap().read(0).await.unwrap(), page(0, 0));
        });
    }
}
