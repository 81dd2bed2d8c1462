//! Damage to a copy of the superblock: the other one is used, and opening for writing repairs the
//! damaged one, despite power cuts.
use std::path::Path;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result, Rng};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::{BlockStore, CutPlan, Fate};
use tantalum_runtime::LifeCycle;
use tantalum_runtime::virtual_time::{Schedule, Virtual};
use tantalum_volume::superblock::{COPIES, SUPERBLOCK_BYTES};
use tantalum_volume::{Copies, OpenOptions, VolumeConfig, config, create_flash, open_flash};

const SUPERBLOCKS_BYTES: usize = COPIES * SUPERBLOCK_BYTES;

fn configuration() -> VolumeConfig {
    let text = config::template("1MiB").replace("# zone = \"8MiB\"", "zone = \"128KiB\"");
    VolumeConfig::parse(&text, Path::new("v.toml")).unwrap()
}

/// A volume in memory with content in page 3.
fn volume(id: u128) -> MemoryStore {
    let store = MemoryStore::new(16 << 20);
    let runtime = Virtual::new(Schedule::Fifo);
    let (handle, made) = (runtime.clone(), store.clone());
    let life = async move {
        let config = configuration();
        create_flash(made.clone(), &config, id).await?;
        let (volume, _) = open_flash(&handle, made, &config, OpenOptions::default()).await?;
        volume.write(PageNo(3), &[page()], None).await?;
        volume.close().await
    };
    runtime.run(life).unwrap().unwrap();
    runtime.drop_tasks();
    store
}

fn page() -> PageBuf {
    PageBuf::copy_from(&[7; PAGE_BYTES])
}

fn superblocks(store: &MemoryStore) -> Vec<u8> {
    let store = store.clone();
    let read = async move { store.read(0, store.buffer(SUPERBLOCKS_BYTES)).await };
    Virtual::new(Schedule::Fifo).run(read).unwrap().unwrap().to_vec()
}

fn write(store: &MemoryStore, copy: usize, content: &[u8]) {
    let mut buf = store.buffer(SUPERBLOCK_BYTES);
    buf.copy_from_slice(content);
    let store = store.clone();
    let write = async move { store.write((copy * SUPERBLOCK_BYTES) as u64, buf, true).await };
    Virtual::new(Schedule::Fifo).run(write).unwrap().unwrap();
}

/// Opens the volume on `store`, checks page 3, and returns the number of repaired superblocks.
fn open<S: BlockStore + Clone>(runtime: Virtual, store: S, options: OpenOptions) -> Result<u32> {
    let handle = runtime.clone();
    let opened = runtime.run(async move {
        let config = configuration();
        let (volume, report) = open_flash(&handle, store, &config, options).await?;
        let mut found = [PageBuf::zero()];
        volume.read(PageNo(3), &mut found, None).await?;
        assert_eq!(found[0], page());
        Ok(report.superblocks_mended)
    });
    runtime.drop_tasks();
    opened.unwrap()
}

fn try_open(store: &MemoryStore, options: OpenOptions) -> Result<u32> {
    open(Virtual::new(Schedule::Fifo), store.clone(), options)
}

fn mended(store: &MemoryStore, options: OpenOptions) -> u32 {
    try_open(store, options).unwrap()
}

/// A volume with one damaged copy, for several kinds of damage to each copy, and the original
/// copies.
fn damaged() -> Vec<(MemoryStore, Vec<u8>)> {
    let mut all = Vec::new();
    for copy in 0..COPIES {
        for damage in 0..4 {
            let store = volume(77);
            let whole = superblocks(&store);
            let mut content = whole[..SUPERBLOCK_BYTES].to_vec();
            match damage {
                0 => content.fill(0),
                1 => content.fill(0xa5),
                // Another format version, from a flipped bit.
                2 => content[8] ^= 1,
                _ => content[4000] ^= 0x10,
            }
            write(&store, copy, &content);
            all.push((store, whole));
        }
    }
    all
}

#[test]
fn a_damaged_copy_is_mended_by_who_opens_the_volume_to_write() {
    for (at, (store, whole)) in damaged().into_iter().enumerate() {
        let before = superblocks(&store);
        assert_eq!(Copies::decode(&before).problems().len(), 1);
        assert_eq!(mended(&store, OpenOptions::READ_ONLY), 0);
        assert!(superblocks(&store) == before, "damage {at}: a reader mends nothing");
        assert_eq!(mended(&store, OpenOptions::default()), 1, "damage {at}");
        assert!(superblocks(&store) == whole, "damage {at}");
        assert_eq!(mended(&store, OpenOptions::default()), 0, "damage {at}");
    }
}

#[test]
fn a_power_cut_while_a_copy_is_mended_costs_nothing() {
    for (at, fate) in [Fate::Land, Fate::Vanish, Fate::Tear].into_iter().enumerate() {
        for operations in 0.. {
            let (store, whole) = damaged().swap_remove(at);
            let runtime = Virtual::new(Schedule::Fifo);
            let crashing = CrashStore::new(runtime.clone(), store.clone(), CrashOptions::default());
            crashing.plan_cut(CutPlan { after_operations: operations, fate });
            let opened = open(runtime, crashing.clone(), OpenOptions::default()).is_ok();
            let cut =
                async move { crashing.cut(&mut Rng::new(operations), CutStyle::TearAll).await };
            Virtual::new(Schedule::Fifo).run(cut).unwrap().unwrap();
            try_open(&store, OpenOptions::default())
                .unwrap_or_else(|error| panic!("{fate:?} at operation {operations}: {error}"));
            assert!(superblocks(&store) == whole, "{fate:?} at operation {operations}");
            if opened {
                assert!(operations > 0, "opening changes nothing");
                break;
            }
        }
    }
}

/// The state after a volume was created over another one, and the disk lost the write of one copy.
#[test]
fn copies_of_two_volumes_open_nothing_and_are_left_as_they_are() {
    for copy in 0..COPIES {
        let (store, other) = (volume(77), volume(78));
        write(&store, copy, &superblocks(&other)[..SUPERBLOCK_BYTES]);
        let before = superblocks(&store);
        for options in [OpenOptions::READ_ONLY, OpenOptions::default()] {
            let error = try_open(&store, options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
        assert!(superblocks(&store) == before);
        // A user who knows which copy is right copies it over the other.
        write(&store, copy, &superblocks(&volume(77))[..SUPERBLOCK_BYTES]);
        assert_eq!(mended(&store, OpenOptions::default()), 0);
    }
}
