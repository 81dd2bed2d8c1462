//! A volume that records its requests.
use std::path::Path;
use tantalum::{PAGE_BYTES, PageBuf, PageNo, PageRange, Volume};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_trace::PageEvent::{self, Commit, Read, Trim, Write};
use tantalum_volume::{VolumeConfig, config, create_volume};

/// A volume of 8 MiB that records to `record`.
fn volume(folder: &Path, record: &str) -> VolumeConfig {
    let path = folder.join("volume.toml");
    let text = config::template("8MiB").replace("# record = \"trace.csv.zst\"", record);
    std::fs::write(&path, text).unwrap();
    let config = VolumeConfig::read(&path).unwrap();
    let live = Live::new(LiveOptions::default()).unwrap();
    let (handle, made) = (live.clone(), config.clone());
    live.run(async move { create_volume(&handle, &made, false).await }).unwrap();
    config
}

fn open(config: &VolumeConfig) -> Volume {
    Volume::open(&config.path).unwrap()
}

fn events(path: &Path) -> Vec<PageEvent> {
    let events = tantalum_trace::open_pages(path, &Default::default()).unwrap();
    events.map(|event| event.unwrap()).collect()
}

fn pages(count: usize) -> Vec<PageBuf> {
    vec![PageBuf::copy_from(&[7; PAGE_BYTES]); count]
}

fn write(page: u64) -> PageEvent {
    Write { page: PageNo(page), pages: 1 }
}

#[test]
fn what_was_done_is_told_in_the_order_in_which_it_took_effect() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path(), "record = \"load.csv.zst\"");
    let volume = open(&config);
    volume.write(PageNo(0), pages(3)).unwrap();
    let mut one = volume.begin().unwrap();
    let mut other = volume.begin().unwrap();
    one.write(PageNo(10), pages(2)).unwrap();
    other.write(PageNo(20), pages(1)).unwrap();
    one.write(PageNo(30), pages(1)).unwrap();
    one.read(PageNo(10), 1).unwrap();
    volume.read(PageNo(5), 2).unwrap();
    one.commit().unwrap();
    other.abort().unwrap();
    volume.share(vec![(PageNo(40), PageNo(0)), (PageNo(41), PageNo(1))]).unwrap();
    let scattered = [50, 52, 51].map(|page| (PageNo(page), pages(1).remove(0)));
    volume.write_scattered(scattered.to_vec()).unwrap();
    volume.trim(PageRange::new(PageNo(1), 2)).unwrap();
    volume.flush().unwrap();
    // Refused requests are not recorded.
    volume.write(PageNo(1 << 40), pages(1)).unwrap_err();
    volume.share(vec![(PageNo(60), PageNo(100))]).unwrap_err();
    drop(volume);
    // One line per page.
    let read = |page| Read { page: PageNo(page), pages: 1 };
    let trim = |page| Trim { page: PageNo(page), pages: 1 };
    let told: [&[PageEvent]; 8] = [
        &[0, 1, 2].map(write),
        &[10, 5, 6].map(read),
        &[10, 11, 30].map(write),
        &[Commit, write(40), write(41), Commit],
        &[50, 51, 52].map(write),
        &[Commit],
        &[1, 2].map(trim),
        &[Commit],
    ];
    assert_eq!(events(&folder.path().join("load.csv.zst")), told.concat());
}

#[test]
fn each_opening_begins_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path(), "record = \"load.csv.gz\"");
    for page in 0..3 {
        open(&config).write(PageNo(page), pages(1)).unwrap();
    }
    for (page, name) in ["load.csv.gz", "load-2.csv.gz", "load-3.csv.gz"].iter().enumerate() {
        assert_eq!(events(&folder.path().join(name)), [write(page as u64)]);
    }
}

#[test]
fn a_file_that_cannot_be_made_is_an_error_and_leaves_the_volume_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let record = "record = \"none/load.csv\"";
    let config = volume(folder.path(), record);
    let error = Volume::open(&config.path).err().unwrap().to_string();
    assert!(error.contains("recording") && error.contains("none/load.csv"), "{error}");
    let text = std::fs::read_to_string(&config.path).unwrap().replace(record, "");
    std::fs::write(&config.path, text).unwrap();
    open(&config).write(PageNo(0), pages(1)).unwrap();
}
