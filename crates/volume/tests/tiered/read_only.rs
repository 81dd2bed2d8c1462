//! A tiered volume that is opened read-only: it shows all acknowledged content, and no byte of flash, home or
//! journal changes.
use super::failing::Fails;
use super::rig::{PAGES, Rig, page};
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange};
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::LifeCycle;
use tantalum_volume::OpenOptions;

/// How the last writer ended.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Closed, with everything destaged.
    AtHome,
    /// Closed, with newer pages in the flash.
    Dirty,
    /// Killed during destaging: an epoch is in the journal, and partly in place at home.
    InPlace,
}

fn count_of(number: u64) -> u64 {
    match number {
        0..400 => 2,
        400..800 => 1,
        _ => 0,
    }
}

fn written(destage: &str, end: End) -> Rig {
    let rig = Rig::new(destage);
    rig.live(move |life| async move {
        for number in 0..800 {
            life.write(number, 1).await.unwrap();
        }
        life.write_home().await.unwrap();
        match end {
            End::AtHome => {}
            End::Dirty => life.home.fail(Fails::Changes(ErrorKind::Io)),
            End::InPlace => {
                // The second and later operations of the next round at home fail.
                life.home.vanish_after(1);
            }
        }
        for number in 0..400 {
            life.write(number, 2).await.unwrap();
        }
        match end {
            End::AtHome => life.write_home().await.unwrap(),
            End::Dirty => {}
            End::InPlace => assert!(life.write_home().await.is_err()),
        }
        if !matches!(end, End::InPlace) {
            life.volume.close().await.unwrap();
        }
    });
    rig
}

#[test]
fn nothing_changes_and_all_of_it_is_there() {
    for destage in ["ordered", "dense"] {
        for end in [End::AtHome, End::Dirty, End::InPlace] {
            println!("{destage}, {end:?}");
            let rig = written(destage, end);
            let images = || [&rig.flash, &rig.home, &rig.journal].map(MemoryStore::image);
            let before = images();
            rig.live_as(OpenOptions::READ_ONLY, |opened| async move {
                let life = opened.unwrap();
                for number in 0..PAGES {
                    assert_eq!(life.read(number).await.unwrap(), page(number, count_of(number)));
                }
                let error = life.write(1, 9).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ReadOnly);
                let error = life.volume.trim(PageRange::new(PageNo(0), 1)).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ReadOnly);
                life.volume.flush().await.unwrap();
                // Long enough for pages to be destaged, if the volume did that.
                life.sleep_s(60).await;
                let findings = life.volume.check(|_, _| ()).await.unwrap();
                assert!(findings.is_empty(), "{findings:?}");
                life.volume.close().await.unwrap();
            });
            assert!(images() == before, "{destage}, {end:?}: something was written");
        }
    }
}
