//! An engine with rows on the live executor, over a volume on a real file, with power cuts: a store in between holds back writes
//! that are not durable, and lets each of them land, vanish or tear.
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageBuf, PageDevice, Result, Rng};
use tantalum_hosts::database::{Database, DatabaseOptions, PageOptions, Way};
use tantalum_hosts::records::ByteCodec;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::Tree;
use tantalum_media::block_store::{
    CrashOptions, CrashStore, CutStyle, FileStore, FileStoreOptions,
};
use tantalum_media::{CutPlan, Fate};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{Live, Runtime};
use tantalum_volume::{OpenOptions, VolumeConfig, config, create_volume, open_flash};

const CLIENTS: u64 = 4;
const ROUNDS: u64 = 5;

type Value = Rc<[u8]>;
type Bytes = ByteCodec<Block<Value>>;

fn options<W: Way>(form: W) -> DatabaseOptions<W> {
    let pages = PageOptions {
        form,
        database_pages: 64,
        device_pages_per_page: 4,
        pool_pages: 32,
        batch_pages: 4,
        metadata_per_page: 0.0,
        metadata_pages: 0,
    };
    let log_pages = match (form.has_log(), form.logs_whole_pages()) {
        (false, _) => 0,
        (true, false) => 256,
        (true, true) => 512,
    };
    DatabaseOptions { pages, log_pages, trees: 2 }
}

/// For each client, the number of acknowledged transactions.
type Counts = Rc<[Cell<u64>; CLIENTS as usize]>;

fn value(count: u64) -> Value {
    let mut value = vec![0; 3_000];
    Rng::new(count).fill(&mut value);
    value[..8].copy_from_slice(&count.to_le_bytes());
    value.into()
}

/// The key of the client's row number `count`, which wraps around.
fn key(client: u64, count: u64) -> Vec<u8> {
    format!("client {client}, row {:02}", count % 16).into_bytes()
}

/// Puts one row after the other, in both trees, until the power is cut.
async fn put_until_cut<D: PageDevice<Page = PageBuf>, W: Way>(
    engine: Rc<Database<Live, D, Value, Bytes, W>>,
    client: u64,
    counts: Counts,
) -> Result<()> {
    loop {
        let count = counts[client as usize].get() + 1;
        let put = async {
            let mut transaction = engine.begin();
            transaction.put(Tree(0), &key(client, count), value(count)).await?;
            transaction.put(Tree(1), &key(client, count), value(count)).await?;
            transaction.commit().await
        };
        put.await?;
        counts[client as usize].set(count);
    }
}

async fn load_and_cut<W: Way>(
    live: Live,
    config: VolumeConfig,
    form: W,
    counts: Counts,
    seed: u64,
) -> Result<()> {
    let mut rng = Rng::split(seed, "cut");
    let file = FileStore::open(&live, &config.data_path()?, FileStoreOptions::default())?;
    let store = CrashStore::new(live.clone(), file, CrashOptions::default());
    let (volume, _) = open_flash(&live, store.clone(), &config, OpenOptions::default()).await?;
    let codec = Rc::new(Bytes::default());
    let engine = match Database::open(&live, &volume, &codec, options(form)).await {
        Err(error) if error.kind() == ErrorKind::Format => {
            Database::create(&live, &volume, &codec, options(form)).await?
        }
        opened => opened?.0,
    };
    let fate = Fate::ALL[rng.below(3) as usize];
    store.plan_cut(CutPlan { after_operations: rng.below(250), fate });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let putting = put_until_cut(Rc::clone(&engine), client, Rc::clone(&counts));
            live.spawn("client", putting)
        })
        .collect();
    for client in clients {
        let ended = client.await;
        assert!(store.is_cut(), "{form:?}, seed {seed}: {ended:?} before power was cut");
    }
    store.cut(&mut rng, CutStyle::Random).await
}

/// Each client's rows are those of its last acknowledged transaction, or of the next one.
async fn verify<W: Way>(
    live: Live,
    config: VolumeConfig,
    form: W,
    counts: Counts,
    seed: u64,
) -> Result<()> {
    let file = FileStore::open(&live, &config.data_path()?, FileStoreOptions::default())?;
    let (volume, _) = open_flash(&live, file, &config, OpenOptions::default()).await?;
    let codec = Rc::new(Bytes::default());
    let (engine, _) = Database::open(&live, &volume, &codec, options(form)).await?;
    for client in 0..CLIENTS {
        let count = &counts[client as usize];
        let next = engine.get(Tree(0), &key(client, count.get() + 1)).await?;
        count.set(count.get() + u64::from(next == Some(value(count.get() + 1))));
        for row in count.get().saturating_sub(15).max(1)..=count.get() {
            for tree in [Tree(0), Tree(1)] {
                let found = engine.get(tree, &key(client, row)).await?;
                assert!(found == Some(value(row)), "{form:?}, seed {seed}: {client}, row {row}");
            }
        }
    }
    engine.stop().await;
    Ok(())
}

/// Runs `body` on an executor of its own, of which nothing is left afterwards.
fn on_live<F: Future<Output = Result<()>> + 'static>(body: impl FnOnce(Live) -> F) {
    let live = Live::new(LiveOptions::default()).unwrap();
    live.run(body(live.clone())).unwrap();
    live.drop_tasks();
}

/// Cuts the power of an engine of `form` in the volume of a new file below `base`.
pub fn survives_cuts<W: Way>(base: &Path, form: W) {
    let text = config::template("4MiB").replace("# zone = \"8MiB\"", "zone = \"256KiB\"");
    let config = VolumeConfig::parse(&text, &base.join("v.toml")).unwrap();
    let made = config.clone();
    on_live(|live| async move { create_volume(&live, &made, false).await.map(drop) });
    let counts = Counts::default();
    for seed in 1..=ROUNDS {
        let (cut, verified) = (config.clone(), config.clone());
        let (loaded, compared) = (Rc::clone(&counts), Rc::clone(&counts));
        on_live(|live| load_and_cut(live, cut, form, loaded, seed));
        on_live(|live| verify(live, verified, form, compared, seed));
    }
    let transactions: u64 = counts.iter().map(Cell::get).sum();
    assert!(transactions > 100, "{form:?}: {transactions} transactions test little");
}
