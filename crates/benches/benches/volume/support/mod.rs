//! Volumes to measure, and programs to measure beside them.
#![allow(dead_code, reason = "each bench uses a part of it")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use tantalum_runtime::live::{LiveOptions, spawn_thread};
use tantalum_runtime::{LifeCycle, Live};
use tantalum_volume::{
    FlashVolume, OpenOptions, VolumeConfig, VolumeStore, create_volume, open_volume,
};

/// Whether the bench is to run: `cargo test` builds benches too and starts them without
/// `--bench`.
pub fn wanted() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// The configuration of a volume of kind `flash` in `folder`; `media` and `device` are what
/// stands in these tables beside type, path and capacity.
pub fn config(folder: &Path, media: &str, capacity_bytes: u64, device: &str) -> VolumeConfig {
    let text = format!(
        "kind = \"flash\"\n[media]\n{media}\n[device]\ncapacity = \"{}MiB\"\n{device}\n",
        capacity_bytes >> 20
    );
    VolumeConfig::parse(&text, &folder.join("volume.toml")).expect("a sound configuration")
}

/// A new volume in a file, all of which was written before, as `fio --overwrite=1` does with its
/// own: what is measured is not the file system's allocation.
pub fn create(folder: &Path, capacity_bytes: u64, device: &str) -> VolumeConfig {
    let config = config(folder, "type = \"file\"\npath = \"volume.data\"", capacity_bytes, device);
    let mut file = File::create(config.data_path().expect("a path")).expect("the volume's file");
    let zeros = vec![0; 1 << 20];
    for _ in 0..capacity_bytes / (1 << 20) * 5 / 4 {
        file.write_all(&zeros).expect("room for the volume");
    }
    file.sync_all().expect("a sync");
    drop(file);
    let created = config.clone();
    let thread = spawn_thread("create", LiveOptions::default(), move |live| async move {
        create_volume(&live, &created, true).await.map(|_| ())
    });
    thread.and_then(|thread| thread.join()).expect("an executor").expect("a new volume");
    config
}

/// Opens the volume of `config` on an executor of its own, does `work` with it and closes it.
pub fn with_volume<T, W, F>(config: VolumeConfig, work: W) -> T
where
    T: Send + 'static,
    W: FnOnce(Live, Rc<FlashVolume<VolumeStore>>) -> F + Send + 'static,
    F: Future<Output = T> + 'static,
{
    let thread = spawn_thread("volume", LiveOptions::default(), move |live| async move {
        let (volume, _) =
            open_volume(&live, &config, OpenOptions::default()).await.expect("the volume opens");
        let volume = Rc::new(volume);
        let result = work(live, Rc::clone(&volume)).await;
        volume.close().await.expect("the volume closes");
        result
    });
    thread.and_then(|thread| thread.join()).expect("an executor")
}
