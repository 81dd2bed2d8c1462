//! The file system under a sparse volume is full: a temporary state.
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use tantalum_base::{
    ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Result,
};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live, Runtime};
use tantalum_testing::skip;
use tantalum_volume::{
    FlashVolume, OpenOptions, VolumeConfig, VolumeStore, check_volume, config, create_volume,
    open_volume,
};

/// Pages per write.
const PIECE: u64 = 16;

type Volume = Rc<FlashVolume<VolumeStore>>;

/// A file system of 96 MiB, until it is dropped.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Small> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=96m", "tmpfs"]).arg(folder.path());
        let mounted = mount.status().is_ok_and(|status| status.success());
        if !mounted {
            skip("tmpfs");
        }
        mounted.then(|| Small(folder))
    }

    /// Another file takes all free space.
    fn fill(&self) {
        let mut other = std::fs::File::create(self.0.path().join("other")).unwrap();
        let full = std::io::copy(&mut std::io::repeat(1), &mut other).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.path().join("other")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // The message of a failed test is enough.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn volume(folder: &Path) -> VolumeConfig {
    let path = folder.join("v.toml");
    let text = config::template("256MiB").replace("# sparse = false", "sparse = true");
    assert!(text.contains("\nsparse = true"), "{text}");
    let text = text.replace("# durability = \"on_ack\"", "durability = \"on_flush\"");
    std::fs::write(&path, text).unwrap();
    VolumeConfig::read(&path).unwrap()
}

fn content(piece: u64) -> Vec<PageBuf> {
    let page = PageBuf::copy_from(&(piece + 1).to_le_bytes().repeat(PAGE_BYTES / 8));
    vec![page; PIECE as usize]
}

/// Writes a piece and makes it durable.
async fn write(volume: &Volume, piece: u64) -> Result<()> {
    volume.write(PageNo(piece * PIECE), &content(piece), None).await?;
    volume.flush().await
}

/// Writes pieces starting at `first` until one is refused; returns the number of accepted pieces.
async fn write_until_full(volume: &Volume, first: u64) -> u64 {
    for piece in first..first + 2000 {
        if let Err(error) = write(volume, piece).await {
            assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
            return piece - first;
        }
    }
    panic!("it is never full");
}

async fn assert_holds(volume: &Volume, pieces: u64) {
    for piece in 0..pieces {
        let mut read = vec![PageBuf::zero(); PIECE as usize];
        volume.read(PageNo(piece * PIECE), &mut read, None).await.unwrap();
        assert!(read == content(piece), "piece {piece}");
    }
}

fn on_live<T: 'static, F: Future<Output = T> + 'static>(body: impl FnOnce(Live) -> F) -> T {
    let live = Live::new(LiveOptions::default()).unwrap();
    let result = live.run(body(live.clone()));
    live.drop_tasks();
    result
}

/// Refused changes have no effect, and a refused commit ends its transaction.
async fn assert_refuses(volume: &Volume, pieces: u64) {
    let refused = |done: Result<()>| assert_eq!(done.unwrap_err().kind(), ErrorKind::OutOfSpace);
    refused(write(volume, 0).await);
    refused(volume.write_scattered(vec![(PageNo(0), PageBuf::zero())], || ()).await);
    let tx = volume.begin().await.unwrap();
    refused(volume.write(PageNo(0), &content(9), Some(tx)).await);
    refused(volume.commit(tx).await);
    assert_eq!(volume.abort(tx).await.unwrap_err().kind(), ErrorKind::UnknownTransaction);
    assert_holds(volume, pieces).await;
    volume.flush().await.unwrap();
}

#[test]
fn a_full_file_system_is_out_of_space_loses_nothing_and_passes() {
    let Some(small) = Small::mount() else { return };
    let config = volume(small.0.path());
    let small = Rc::new(small);
    let (disk, opened) = (Rc::clone(&small), config.clone());
    let pieces = on_live(async move |live| {
        create_volume(&live, &opened, false).await.unwrap();
        let (volume, _) = open_volume(&live, &opened, OpenOptions::default()).await.unwrap();
        for piece in 0..100 {
            write(&volume, piece).await.unwrap();
        }
        disk.fill();
        let mut pieces = 100 + write_until_full(&volume, 100).await;
        assert_refuses(&volume, pieces).await;
        // Discarding pages needs no free space.
        volume.trim(PageRange::new(PageNo(60_000), 16)).await.unwrap();
        disk.make_room();
        live.sleep(50_000_000).await;
        for _ in 0..50 {
            write(&volume, pieces).await.unwrap();
            pieces += 1;
        }
        disk.fill();
        pieces += write_until_full(&volume, pieces).await;
        // It was killed while the file system was full.
        pieces
    });
    small.make_room();
    let opened = config.clone();
    on_live(async move |live| {
        let (volume, _) = open_volume(&live, &opened, OpenOptions::default()).await.unwrap();
        assert_holds(&volume, pieces).await;
        write(&volume, pieces).await.unwrap();
        volume.close().await.unwrap();
    });
    let report = on_live(async move |live| check_volume(&live, &config, |_, _| ()).await.unwrap());
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn what_is_discarded_makes_room_on_a_full_file_system() {
    let Some(small) = Small::mount() else { return };
    let config = volume(small.0.path());
    on_live(async move |live| {
        create_volume(&live, &config, false).await.unwrap();
        let (volume, _) = open_volume(&live, &config, OpenOptions::default()).await.unwrap();
        for piece in 0..600 {
            write(&volume, piece).await.unwrap();
        }
        small.fill();
        let pieces = 600 + write_until_full(&volume, 600).await;
        assert_refuses(&volume, pieces).await;
        // More than the reserve for accepted writes.
        volume.trim(PageRange::new(PageNo(0), 500 * PIECE)).await.unwrap();
        volume.flush().await.unwrap();
        let mut tries = 0;
        while let Err(full) = write(&volume, 0).await {
            assert_eq!(full.kind(), ErrorKind::OutOfSpace, "{full}");
            tries += 1;
            assert!(tries < 250, "there is no room after 5 s");
            live.sleep(20_000_000).await;
        }
        println!("writes go on after {tries} tries");
        for piece in 500..pieces {
            let mut read = vec![PageBuf::zero(); PIECE as usize];
            volume.read(PageNo(piece * PIECE), &mut read, None).await.unwrap();
            assert!(read == content(piece), "piece {piece}");
        }
        assert_holds(&volume, 1).await;
        volume.close().await.unwrap();
    });
}
