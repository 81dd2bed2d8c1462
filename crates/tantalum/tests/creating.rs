//! A volume that several callers create at once, or whose creation was cut short.
use std::fs;
use std::path::Path;
use std::sync::Barrier;
use tantalum::{ErrorKind, PageBuf, PageNo, Volume};
use tantalum_volume::config::{NewConfig, NewSettings, NewTiered, write_new, write_new_tiered};

const BYTES: u64 = 4 << 20;

fn open_or_create(path: &Path) -> tantalum::Result<Volume> {
    Volume::create(path).capacity_bytes(BYTES).open_or_create()
}

fn page(fill: u8) -> PageBuf {
    PageBuf::copy_from(&[fill; 4096])
}

#[test]
fn of_several_callers_one_creates_it_and_none_takes_it_away() {
    const CALLERS: usize = 6;
    for round in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v");
        let together = Barrier::new(CALLERS);
        let call = |caller: u64| {
            together.wait();
            let volume = match open_or_create(&path) {
                Ok(volume) => volume,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Locked, "round {round}: {error}");
                    return None;
                }
            };
            volume.write(PageNo(caller), vec![page(caller as u8 + 1)]).unwrap();
            Some(caller)
        };
        let call = &call;
        let acknowledged: Vec<u64> = std::thread::scope(|scope| {
            let callers: Vec<_> =
                (0..CALLERS as u64).map(|at| scope.spawn(move || call(at))).collect();
            callers.into_iter().filter_map(|it| it.join().unwrap()).collect()
        });
        // One of them won at once, or the loser of each pair was told to come again.
        let volume = open_or_create(&path).unwrap();
        assert!(!acknowledged.is_empty(), "round {round}: nobody created it");
        for caller in acknowledged {
            assert_eq!(volume.read(PageNo(caller), 1).unwrap(), [page(caller as u8 + 1)]);
        }
    }
}

/// A caller that looked before another one made the volume, and writes its configuration afterwards.
#[test]
fn a_late_caller_leaves_the_volume_of_another_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("VOLUME.toml");
    let late = NewConfig::at(&path);
    open_or_create(&path).unwrap().write(PageNo(1), vec![page(7)]).unwrap();
    let before = fs::read(&path).unwrap();
    let error = write_new(&path, "8MiB", &NewSettings::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    late.discard_after(&error);
    assert!(fs::read(&path).unwrap() == before, "its configuration was changed");
    assert_eq!(Volume::open(&path).unwrap().read(PageNo(1), 1).unwrap(), [page(7)]);
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["VOLUME.toml", "data.tantalum"], "nothing is left behind");
}

#[test]
fn a_creation_that_was_cut_short_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    drop(open_or_create(&made).unwrap());
    let whole = fs::read(made.join("data.tantalum")).unwrap();
    for length in [0, 5000, whole.len()] {
        let path = folder.path().join(format!("cut-{length}"));
        fs::create_dir(&path).unwrap();
        fs::copy(made.join("VOLUME.toml"), path.join("VOLUME.toml")).unwrap();
        fs::write(path.join("data.tantalum.creating"), &whole[..length]).unwrap();
        let told = Volume::open(&path).err().unwrap().to_string();
        assert!(
            told.contains("its creation was cut short") && told.contains("tantalum create"),
            "{told}"
        );
        let volume = open_or_create(&path).unwrap();
        volume.write(PageNo(3), vec![page(3)]).unwrap();
        drop(volume);
        assert_eq!(open_or_create(&path).unwrap().read(PageNo(3), 1).unwrap(), [page(3)]);
        assert!(!path.join("data.tantalum.creating").exists());
    }
}

/// The disk with the data is not there now, for instance.
#[test]
fn data_that_are_elsewhere_are_not_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    drop(open_or_create(folder.path()).unwrap());
    fs::remove_file(folder.path().join("data.tantalum")).unwrap();
    let told = open_or_create(folder.path()).err().unwrap().to_string();
    assert!(told.contains("data.tantalum does not exist"), "{told}");
}

#[test]
fn a_second_opening_in_one_process_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let _open = open_or_create(folder.path()).unwrap();
    let error = Volume::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    let told = error.to_string();
    assert!(
        told.contains("is open in this process already") && !told.contains("stop it"),
        "{told}"
    );
}

/// Its home may be in use, and its content is never taken for that of a new volume.
#[test]
fn a_tiered_volume_is_neither_finished_nor_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("VOLUME.toml");
    let flash = folder.path().join("flash");
    let home = folder.path().join("home");
    fs::write(&home, [7; 4096]).unwrap();
    let [flash_text, home_text] = [&flash, &home].map(|path| path.to_str().unwrap());
    let settings = NewSettings::default();
    let new = NewConfig::at(&path);
    let tiered = NewTiered {
        capacity: "16MiB",
        flash: flash_text,
        flash_size: "64MiB",
        home: home_text,
        journal: None,
        settings,
    };
    write_new_tiered(&path, tiered).unwrap();
    assert!(!folder.path().join("flash.creating").exists());
    fs::write(folder.path().join("flash.creating"), "").unwrap();
    let told = open_or_create(&path).err().unwrap().to_string();
    assert!(told.contains("flash does not exist"), "{told}");
    assert_eq!(fs::read(&home).unwrap(), [7; 4096]);
    let locked = tantalum::Error::new(ErrorKind::Locked, "the home is in use");
    new.discard_after(&locked);
    assert!(!path.exists(), "its configuration was left behind");
}
