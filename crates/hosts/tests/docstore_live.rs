//! Document stores live, on a volume in a file: killed during updates, and under YCSB with a recorded trace.
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use tantalum_base::Rng;
use tantalum_hosts::docstore::{Block, DocStore, DocStoreOptions, Mode};
use tantalum_hosts::records::ByteCodec;
use tantalum_hosts::workload::LoadValue;
use tantalum_hosts::workload::ycsb::{RecordOptions, Workload, Ycsb, YcsbOptions, key_of};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live};
use tantalum_trace::PageEvent;
use tantalum_volume::{
    FlashVolume, OpenOptions, VolumeConfig, VolumeStore, config, create_volume, open_volume,
};

/// Passes the path of the volume, and the mode, to the child process.
const VOLUME: &str = "DOCSTORE_LIVE_VOLUME";
const MODE: &str = "DOCSTORE_LIVE_MODE";

const DOCUMENTS: u64 = 64;
const VALUE_BYTES: u32 = 3_000;

type Bytes = ByteCodec<Block<Rc<[u8]>>>;
type Store = Rc<DocStore<Live, FlashVolume<VolumeStore>, Rc<[u8]>, Bytes>>;

/// A new volume of 16 MiB in a file, with an additional line in its VOLUME.toml.
fn volume(folder: &Path, record: &str) -> PathBuf {
    let path = folder.join("volume.toml");
    let text = config::template("16MiB").replace("# record = \"trace.csv.zst\"", record);
    std::fs::write(&path, text).unwrap();
    live(&path, |live, config| async move {
        create_volume(&live, &config, false).await.unwrap();
    });
    path
}

fn live<T: 'static, F: Future<Output = T> + 'static>(
    path: &Path,
    test: impl FnOnce(Live, VolumeConfig) -> F,
) -> T {
    let (live, config) =
        (Live::new(LiveOptions::default()).unwrap(), VolumeConfig::read(path).unwrap());
    let ended = live.run(test(live.clone(), config));
    live.drop_tasks();
    ended
}

fn options(mode: Mode) -> DocStoreOptions {
    DocStoreOptions { compact_at: Some(0.5), ..DocStoreOptions::new(mode) }
}

async fn open(
    live: &Live,
    config: &VolumeConfig,
    mode: Mode,
    is_new: bool,
) -> (Rc<FlashVolume<VolumeStore>>, Store) {
    let volume = open_volume(live, config, OpenOptions::default()).await.unwrap().0;
    let codec = Rc::new(Bytes::default());
    let store = match is_new {
        true => DocStore::create(live, &volume, &codec, options(mode)).await.unwrap(),
        false => DocStore::open(live, &volume, &codec, options(mode)).await.unwrap(),
    };
    (volume, store)
}

/// The killed process: updates one document after the other, and reports each once it is durable.
#[test]
#[ignore = "the process that a_killed_process_loses_no_update_that_was_durable starts and kills"]
fn child() {
    let Some(path) = std::env::var_os(VOLUME).map(PathBuf::from) else {
        return;
    };
    let mode = Mode::ALL[usize::from(std::env::var_os(MODE).is_some())];
    live(&path, |live, config| async move {
        let (_volume, store) = open(&live, &config, mode, false).await;
        let mut versions = found(&store).await;
        for at in (0..DOCUMENTS).cycle() {
            let version = &mut versions[at as usize];
            *version += 1;
            store.set(&key_of(at, 0), LoadValue::made(at, *version, VALUE_BYTES)).await.unwrap();
            println!("durable {at} {version}");
        }
    });
}

/// The version of each document; all must be whole.
async fn found(store: &Store) -> Vec<u32> {
    let mut versions = Vec::new();
    for at in 0..DOCUMENTS {
        let value = store.get(&key_of(at, 0)).await.unwrap();
        versions.push(value.map_or(0, |value| {
            let (record, version) = value.told(VALUE_BYTES).expect("a whole value");
            assert_eq!(record, at);
            version
        }));
    }
    versions
}

#[test]
fn a_killed_process_loses_no_update_that_was_durable() {
    for mode in Mode::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = volume(folder.path(), "");
        live(&path, |live, config| async move {
            let (volume, store) = open(&live, &config, mode, true).await;
            store.close().await.unwrap();
            volume.close().await.unwrap();
        });
        let mut durable = vec![0; DOCUMENTS as usize];
        for seed in 1..=4 {
            let most = 100 + Rng::new(seed).below(300);
            let before = durable.clone();
            update_and_kill(&path, mode, most, &mut durable);
            let found = live(&path, |live, config| async move {
                let (volume, store) = open(&live, &config, mode, false).await;
                let found = found(&store).await;
                store.close().await.unwrap();
                volume.close().await.unwrap();
                found
            });
            let updates: u32 = durable.iter().zip(&before).map(|(now, before)| now - before).sum();
            assert!(u64::from(updates) >= most, "{mode:?}: {updates} updates before the kill");
            // At most one update was in progress.
            let ahead: u32 = found
                .iter()
                .zip(&durable)
                .map(|(found, durable)| {
                    assert!(
                        found >= durable,
                        "{mode:?}, seed {seed}: {found} where {durable} was durable"
                    );
                    found - durable
                })
                .sum();
            assert!(ahead <= 1, "{mode:?}, seed {seed}: {ahead} updates that nobody was told of");
            durable = found;
        }
    }
}

/// Kills a child that has reported `most` updates as durable; collects its reports until it was gone.
fn update_and_kill(path: &Path, mode: Mode, most: u64, durable: &mut [u32]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["docstore_live::child", "--exact", "--ignored", "--nocapture"]).env(VOLUME, path);
    if mode == Mode::Share {
        command.env(MODE, "share");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        // The last line may be incomplete.
        if words.next() == Some("durable")
            && let (Some(at), Some(version)) = (words.next(), words.next())
            && let (Ok(at), Ok(version)) = (at.parse::<usize>(), version.parse())
        {
            durable[at] = durable[at].max(version);
            said += 1;
            if said == most {
                child.kill().unwrap();
            }
        }
    }
    child.wait().unwrap();
    assert!(said >= most, "the child ended by itself after {said} updates");
}

/// The load runs live as in virtual time, and the volume's trace has the requests of the store.
#[test]
fn a_run_is_recorded() {
    for mode in Mode::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = volume(folder.path(), "record = \"run.csv.zst\"");
        let (read, written) = live(&path, |live, config| async move {
            let (volume, store) = open(&live, &config, mode, true).await;
            let ycsb = Ycsb::new::<Rc<[u8]>>(RecordOptions::new(500)).unwrap();
            ycsb.load(&store).await.unwrap();
            let options = YcsbOptions { clients: 16, ..YcsbOptions::new(Workload::F, 1_000, 1) };
            let report = ycsb.run(&live, &store, options).await.unwrap();
            assert_eq!(report.operations(), 1_000);
            store.close().await.unwrap();
            volume.close().await.unwrap();
            let statistics = store.statistics();
            let both = [statistics.device, statistics.compaction];
            let read: u64 = both.iter().map(|counts| counts.pages_read).sum();
            // Each page that a share saves is recorded as a write.
            let written = both.iter().map(|counts| counts.pages_written + counts.pages_shared);
            (read, written.sum::<u64>())
        });
        let events =
            tantalum_trace::open_pages(&folder.path().join("run.csv.zst"), &Default::default());
        let (mut reads, mut writes) = (0, 0);
        for event in events.unwrap() {
            match event.unwrap() {
                PageEvent::Read { pages, .. } => reads += u64::from(pages),
                PageEvent::Write { pages, .. } => writes += u64::from(pages),
                PageEvent::Trim { .. } | PageEvent::Commit => {}
            }
        }
        assert_eq!((reads, writes), (read, written), "{mode:?}");
    }
}
