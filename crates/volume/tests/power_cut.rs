//! Power cuts of a volume on a real file, on the live executor: a store between the two holds
//! writes back until they are durable. At the cut it lets each such write land, vanish or tear.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_base::{Durability, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Rng};
use tantalum_ftl::fault_points::Fault;
use tantalum_media::block_store::{
    CrashOptions, CrashStore, CutStyle, FileStore, FileStoreOptions,
};
use tantalum_media::{CutPlan, Fate};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live, Runtime};
use tantalum_volume::{OnAck, OpenOptions, VolumeConfig, config, create_volume, open_flash};

const PAGES: u64 = 512;
const WRITERS: u64 = 4;
const ROUNDS: u64 = 12;

/// The content of a page after write `number`; 0 means no content.
fn page(page: u64, number: u64) -> PageBuf {
    let mut content = PageBuf::zero();
    if number > 0 {
        Rng::new(number ^ (page << 40)).fill(content.make_mut());
        content.make_mut()[..8].copy_from_slice(&number.to_le_bytes());
    }
    content
}

#[derive(Clone, Copy)]
struct Write {
    first: u64,
    pages: u64,
    number: u64,
}

/// The knowledge of the volume's clients.
#[derive(Default)]
struct Known {
    /// Number of the last acknowledged write of each page.
    acknowledged: RefCell<BTreeMap<u64, u64>>,
    /// Writes and commits of this round that were not acknowledged.
    in_flight: RefCell<Vec<Write>>,
    next_number: Cell<u64>,
}

/// Writes until power is cut, every third time with a transaction. Each writer has its own pages.
async fn write_until_cut<D>(device: Rc<D>, known: Rc<Known>, writer: u64, seed: u64)
where
    D: PageDevice<Page = PageBuf>,
{
    let mut rng = Rng::split(seed, &format!("writer {writer}"));
    let share = PAGES / WRITERS;
    loop {
        let first = writer * share + rng.below(share - 8);
        let number = known.next_number.get() + 1;
        known.next_number.set(number);
        let write = Write { first, pages: 1 + rng.below(8), number };
        let pages: Vec<_> =
            (first..first + write.pages).map(|number_of| page(number_of, number)).collect();
        let done = if rng.chance(0.3) {
            commit(&*device, PageNo(first), &pages).await
        } else {
            device.write(PageNo(first), &pages, None).await
        };
        if done.is_err() {
            known.in_flight.borrow_mut().push(write);
            return;
        }
        let mut acknowledged = known.acknowledged.borrow_mut();
        acknowledged.extend((first..first + write.pages).map(|page| (page, number)));
    }
}

async fn commit<D>(device: &D, first: PageNo, pages: &[PageBuf]) -> tantalum_base::Result<()>
where
    D: PageDevice<Page = PageBuf>,
{
    let tx = device.begin().await?;
    for (index, page) in pages.iter().enumerate() {
        let at = PageNo(first.0 + index as u64);
        device.write(at, std::slice::from_ref(page), Some(tx)).await?;
    }
    device.commit(tx).await
}

/// Writes to the volume until power is cut at a random operation, possibly during recovery.
async fn load_and_cut(live: Live, config: VolumeConfig, known: Rc<Known>, seed: u64) {
    let mut rng = Rng::split(seed, "cut");
    let path = config.data_path().unwrap();
    let file = FileStore::open(&live, &path, FileStoreOptions::default()).unwrap();
    let store = CrashStore::new(live.clone(), file, CrashOptions::default());
    let fate = Fate::ALL[rng.below(3) as usize];
    store.plan_cut(CutPlan { after_operations: rng.below(250), fate });
    if let Ok((volume, _)) = open_flash(&live, store.clone(), &config, OpenOptions::default()).await
    {
        // If the volume is already durable on acknowledgement, this changes nothing.
        let volume = Rc::new(OnAck::over(volume));
        assert_eq!(volume.limits().durability, Durability::OnAck);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (device, known) = (Rc::clone(&volume), Rc::clone(&known));
                live.spawn("writer", write_until_cut(device, known, writer, seed))
            })
            .collect();
        for writer in writers {
            writer.await;
        }
    }
    assert!(store.is_cut(), "seed {seed}: the device failed before power was cut");
    store.cut(&mut rng, CutStyle::Random).await.unwrap();
}

/// Opens the real file and compares.
async fn verify(live: Live, config: VolumeConfig, known: Rc<Known>, seed: u64) {
    let path = config.data_path().unwrap();
    let file = FileStore::open(&live, &path, FileStoreOptions::default()).unwrap();
    let (volume, _) = open_flash(&live, file, &config, OpenOptions::default()).await.unwrap();
    let mut found = vec![PageBuf::zero(); PAGES as usize];
    volume.read(PageNo(0), &mut found, None).await.unwrap();
    compare(&found, &known, seed);
    assert_eq!(volume.check(|_, _| ()).await.unwrap(), [], "seed {seed}");
    if seed.is_multiple_of(2) {
        volume.close().await.unwrap();
    }
}

/// Each page must hold the last acknowledged write, or a complete write that was in flight.
fn compare(found: &[PageBuf], known: &Known, seed: u64) {
    let mut acknowledged = known.acknowledged.borrow_mut();
    for write in known.in_flight.take() {
        let range = write.first..write.first + write.pages;
        if range.clone().all(|at| found[at as usize] == page(at, write.number)) {
            acknowledged.extend(range.map(|page| (page, write.number)));
        }
    }
    for at in 0..PAGES {
        let number = acknowledged.get(&at).copied().unwrap_or(0);
        let bytes = &found[at as usize][..8];
        let holds = u64::from_le_bytes(bytes.try_into().unwrap());
        assert!(
            found[at as usize] == page(at, number),
            "seed {seed}: page {at} holds write {holds}, not {number}"
        );
    }
}

/// Runs `body` on an executor of its own, and drops all its tasks afterwards.
fn on_live<F: Future<Output = ()> + 'static>(body: impl FnOnce(Live) -> F) {
    let live = Live::new(LiveOptions::default()).unwrap();
    live.run(body(live.clone()));
    live.drop_tasks();
}

/// Acknowledged changes over a volume of `durability` survive power cuts.
fn on_ack_survives(base: &Path, durability: &str, first_seed: u64) {
    assert_eq!(PAGES * PAGE_BYTES as u64, 2 << 20);
    let text = config::template("2MiB").replace("# zone = \"8MiB\"", "zone = \"128KiB\"");
    let said = format!("durability = \"{durability}\"");
    let text = text.replace("# durability = \"on_ack\"", &said);
    let config = VolumeConfig::parse(&text, &base.join("v.toml")).unwrap();
    let known = Rc::new(Known::default());
    let made = config.clone();
    on_live(|live| async move {
        create_volume(&live, &made, false).await.unwrap();
    });
    for seed in first_seed..first_seed + ROUNDS {
        let before = known.next_number.get();
        let (cut, verified) = (config.clone(), config.clone());
        let (loaded, compared) = (Rc::clone(&known), Rc::clone(&known));
        on_live(|live| load_and_cut(live, cut, loaded, seed));
        println!("seed {seed}: cut after {} writes", known.next_number.get() - before);
        on_live(|live| verify(live, verified, compared, seed));
    }
    assert!(known.next_number.get() > 300, "{} writes test little", known.next_number.get());
}

#[test]
fn on_ack_survives_power_cuts_on_a_real_file() {
    let folder = tempfile::tempdir().unwrap();
    on_ack_survives(folder.path(), "on_ack", 1);
}

#[test]
fn on_ack_over_a_volume_that_keeps_what_is_flushed_survives_power_cuts() {
    let folder = tempfile::tempdir().unwrap();
    on_ack_survives(folder.path(), "on_flush", 101);
}

#[test]
#[should_panic(expected = "holds write")]
fn a_change_that_is_acknowledged_without_a_flush_is_noticed() {
    let _planted = plant(Fault::EarlyAcknowledgement);
    let folder = tempfile::tempdir().unwrap();
    on_ack_survives(folder.path(), "on_flush", 201);
}
