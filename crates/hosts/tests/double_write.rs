//! Databases beside a `BTreeMap`, cut in the middle of what clients do at the same time, on the worst devices that each durability
//! allows, in all forms, as bytes and as stamps.
mod made;
mod worst_disk;

use made::Made;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{
    Durability, Error, ErrorKind, PageBuf, PageDevice, PageNo, Payload, Result, Rng, Stamp,
};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Form, PageOptions, Tree};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::{ByteCodec, Codec, Remembered};
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Key, ValueStamp};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};
use worst_disk::WorstDisk;

const DURABILITIES: [Durability; 3] =
    [Durability::OnAck, Durability::OnFlush, Durability::Volatile];

const CLIENTS: usize = 3;
const TREES: u32 = 2;
const TRANSACTIONS: u64 = 40;

/// Pages of 8 KiB in a small pool, and a log that goes round.
fn options(form: Form) -> DoubleWriteOptions {
    let pages = PageOptions {
        form,
        database_pages: 60,
        device_pages_per_page: 2,
        pool_pages: 20,
        batch_pages: 4,
        metadata_per_page: 0.1,
        metadata_pages: 2,
    };
    DoubleWriteOptions { pages, log_pages: 128, trees: TREES }
}

type Model<V> = BTreeMap<(Tree, Key), V>;
type Engine<P, V, C> = Rc<DoubleWrite<Virtual, WorstDisk<P>, V, C>>;

/// What must be there of a client's rows after a cut: one of two states.
#[derive(Clone)]
struct Expected<V> {
    committed: Model<V>,
    /// With the transaction that was being committed.
    issued: Model<V>,
}

/// Rows of a client: long keys, so that a small tree has several levels.
fn row(client: usize, rng: &mut Rng) -> (Tree, Key) {
    let number = rng.below(25);
    let mut key = format!("{client} row {number:02}").into_bytes();
    key.resize(60 + 7 * (number % 20) as usize, b'.');
    (Tree(rng.below(u64::from(TREES)) as u32), key.into())
}

/// What is there of a client's rows.
async fn found<P, V, C>(engine: &Engine<P, V, C>, client: usize) -> Result<Model<V>>
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>>,
{
    let mut found = Model::new();
    let (from, to) = (format!("{client} "), format!("{client}!"));
    for tree in (0..TREES).map(Tree) {
        let rows = engine.scan(tree, from.as_bytes(), Some(to.as_bytes()), usize::MAX).await?;
        found.extend(rows.into_iter().map(|(key, value)| ((tree, key), value)));
    }
    Ok(found)
}

/// Random transactions of a client, until one fails; what must be there then.
async fn live<P, V, C>(
    engine: Engine<P, V, C>,
    client: usize,
    mut expected: Expected<V>,
    mut rng: Rng,
    transactions: u64,
) -> (Expected<V>, Result<()>)
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>>,
{
    for _ in 0..transactions {
        expected.issued.clone_from(&expected.committed);
        let ended = transact(&engine, client, &mut expected, &mut rng).await;
        if let Err(error) = ended {
            return (expected, Err(error));
        }
    }
    (expected, Ok(()))
}

async fn transact<P, V, C>(
    engine: &Engine<P, V, C>,
    client: usize,
    expected: &mut Expected<V>,
    rng: &mut Rng,
) -> Result<()>
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>>,
{
    let mut transaction = engine.begin();
    let mut changed = expected.committed.clone();
    for _ in 0..1 + rng.below(4) {
        let (tree, key) = row(client, rng);
        match rng.below(10) {
            0..5 => {
                let bytes = [10, 300, 900, 1_700][rng.below(4) as usize];
                let value = V::made(rng.next_u64(), bytes);
                transaction.put(tree, &key, value.clone()).await?;
                changed.insert((tree, key), value);
            }
            5..8 => {
                transaction.delete(tree, &key).await?;
                changed.remove(&(tree, key));
            }
            8 => {
                let value = changed.get(&(tree, Rc::clone(&key))).cloned();
                assert_eq!(transaction.get(tree, &key).await?, value);
            }
            _ => {
                let (end, most) = (format!("{client}!"), rng.below(10) as usize);
                let rows = transaction.scan(tree, &key, Some(end.as_bytes()), most).await?;
                let range = (tree, key)..(tree, end.into_bytes().into());
                let within = changed.range(range).take(most);
                let within: Vec<_> = within.map(|(k, v)| (k.1.clone(), v.clone())).collect();
                assert_eq!(rows, within);
            }
        }
    }
    if rng.chance(0.05) {
        engine.checkpoint().await?;
        engine.checkpoint().await?;
    }
    if rng.chance(0.1) {
        drop(transaction);
        return match found(engine, client).await? == expected.committed {
            true => Ok(()),
            false => panic!("a transaction that was given up has changed something"),
        };
    }
    expected.issued = changed;
    match transaction.commit().await {
        Ok(()) => expected.committed.clone_from(&expected.issued),
        // The log is as small as it gets.
        Err(error) if error.kind() == ErrorKind::TooLarge => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// How a history ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Uncut,
    Cut,
    /// A page was torn, and it was said which.
    Torn,
}

struct History<P, C> {
    form: Form,
    disk: Rc<WorstDisk<P>>,
    codec: Rc<C>,
    name: String,
    /// The device tears pages and nothing protects from it.
    may_tear: bool,
}

impl<P, V, C> History<P, C>
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
{
    /// Clients live until the power goes, or all is done.
    fn live(
        &self,
        expected: Vec<Expected<V>>,
        seed: u64,
        left: u64,
        create: bool,
    ) -> Vec<Expected<V>> {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let (rt, disk, codec) = (runtime.clone(), Rc::clone(&self.disk), Rc::clone(&self.codec));
        let (options, name) = (options(self.form), self.name.clone());
        let ran = runtime.run(async move {
            let engine = match create {
                true => DoubleWrite::create(&rt, &disk, &codec, options).await.expect(&name),
                false => DoubleWrite::open(&rt, &disk, &codec, options).await.expect(&name).0,
            };
            disk.cut_after(left);
            let clients = expected.into_iter().enumerate().map(|(client, expected)| {
                let rng = Rng::split(seed, &format!("client {client}"));
                let living = live(Rc::clone(&engine), client, expected, rng, TRANSACTIONS);
                rt.spawn("client", living)
            });
            let clients: Vec<_> = clients.collect();
            let mut left = Vec::new();
            for client in clients {
                let (expected, ended) = client.await;
                assert!(ended.is_ok() || disk.is_off(), "{name}: {ended:?}");
                left.push(expected);
            }
            left
        });
        let left = ran.unwrap_or_else(|deadlock| panic!("{}: {deadlock:?}", self.name));
        runtime.drop_tasks();
        left
    }

    /// Makes a database and does something with it.
    fn make<F: Future<Output = ()> + 'static>(
        &self,
        seed: u64,
        what: impl FnOnce(Engine<P, V, C>, Rc<WorstDisk<P>>) -> F + 'static,
    ) {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let (rt, disk, codec) = (runtime.clone(), Rc::clone(&self.disk), Rc::clone(&self.codec));
        let options = options(self.form);
        let ran = runtime.run(async move {
            let engine = DoubleWrite::create(&rt, &disk, &codec, options).await.unwrap();
            what(engine, disk).await;
        });
        ran.unwrap_or_else(|deadlock| panic!("{deadlock:?}"));
        runtime.drop_tasks();
    }

    /// Opens the database and looks; each client's rows are as expected.
    fn look(&self, expected: &[Expected<V>], seed: u64) -> Result<Vec<Expected<V>>> {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let (rt, disk, codec) = (runtime.clone(), Rc::clone(&self.disk), Rc::clone(&self.codec));
        let (options, name, expected) = (options(self.form), self.name.clone(), expected.to_vec());
        let ran = runtime.run(async move {
            let engine = DoubleWrite::open(&rt, &disk, &codec, options).await?.0;
            let mut left = Vec::new();
            for (client, expected) in expected.into_iter().enumerate() {
                let found = found(&engine, client).await?;
                let whole = found == expected.committed || found == expected.issued;
                assert!(whole, "{name}: client {client}: neither the last commit nor the next");
                left.push(Expected { committed: found.clone(), issued: found });
            }
            Ok::<_, Error>(left)
        });
        let left = ran.unwrap_or_else(|deadlock| panic!("{}: {deadlock:?}", self.name));
        runtime.drop_tasks();
        left
    }
}

/// A history with a cut after `operations`, others in recoveries, and whole recoveries.
fn cut_history<P, V, C>(form: Form, durability: Durability, seed: u64, operations: u64) -> Ended
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
{
    let history = History::<P, C> {
        form,
        disk: WorstDisk::new(durability, 264),
        codec: Rc::new(C::default()),
        name: format!("{form:?}, {durability:?}, seed {seed}, cut after {operations}"),
        may_tear: form == Form::Off && durability == Durability::Volatile,
    };
    let cuts = &mut Rng::split(seed ^ operations << 8, "cuts");
    let nothing = Expected { committed: Model::new(), issued: Model::new() };
    let mut expected = vec![nothing; CLIENTS];
    let mut ended = Ended::Uncut;
    for life in 0..3 {
        let left = if life == 0 { operations } else { cuts.below(300) };
        expected = history.live(expected, seed ^ life << 32, left, life == 0);
        if life == 0 && history.disk.is_off() {
            ended = Ended::Cut;
        }
        match cuts.chance(0.3) {
            true => history.disk.killed(),
            false => history.disk.power_on(cuts),
        }
        history.disk.cut_after(cuts.below(60));
        let first = history.look(&expected, cuts.next_u64());
        let off = history.disk.is_off();
        history.disk.power_on(cuts);
        let looked = match first {
            Ok(found) if !off => history.look(&found, cuts.next_u64()),
            Err(error) if !off => Err(error),
            _ => history.look(&expected, cuts.next_u64()),
        };
        expected = match looked {
            Ok(found) => found,
            Err(error) if history.may_tear && error.kind() == ErrorKind::Corrupt => {
                let text = error.to_string();
                assert!(text.contains("page ") && text.contains("torn"), "{text}");
                return Ended::Torn;
            }
            Err(error) => panic!("{}: {error}", history.name),
        };
    }
    ended
}

/// Cuts histories at one of so many of their operations each; how often a page was torn.
fn cut_everywhere<P, V, C>(form: Form, durability: Durability, seeds: u64, every: u64) -> u64
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
{
    let torn = Cell::new(0);
    for seed in 0..seeds {
        let cuts = (0..).map(|cut| every * cut + seed % every).take_while(|at| {
            let ended = cut_history::<P, V, C>(form, durability, seed, *at);
            torn.set(torn.get() + u64::from(ended == Ended::Torn));
            ended != Ended::Uncut
        });
        assert!(cuts.count() > 5, "seed {seed}: nothing happens in this history");
    }
    torn.get()
}

fn nightly() -> bool {
    std::env::var_os("TANTALUM_NIGHTLY").is_some()
}

type Bytes = ByteCodec<Block<Rc<[u8]>>>;
type Stamps = Remembered<Block<ValueStamp>>;

fn cut_all<P, V, C>()
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
{
    let (seeds, every) = if nightly() { (20, 1) } else { (1, 23) };
    for form in Form::ALL {
        for durability in DURABILITIES {
            let torn = cut_everywhere::<P, V, C>(form, durability, seeds, every);
            let tears = form == Form::Off && durability == Durability::Volatile;
            assert_eq!(torn > 0, tears, "{form:?}, {durability:?}: torn {torn} times");
        }
    }
}

#[test]
fn a_cut_anywhere_leaves_each_transaction_whole_in_bytes() {
    cut_all::<PageBuf, _, Bytes>();
}

#[test]
fn a_cut_anywhere_leaves_each_transaction_whole_in_stamps() {
    cut_all::<Stamp, _, Stamps>();
}

fn volatile(form: Form, name: String) -> History<PageBuf, Bytes> {
    let disk = WorstDisk::new(Durability::Volatile, 264);
    History { form, disk, codec: Rc::default(), name, may_tear: form == Form::Off }
}

/// Whether histories on a device are as they should be where a protection is left out.
fn notices(fault: Fault, form: Form, durability: Durability, seeds: u64) {
    assert_noticed(fault, || {
        cut_everywhere::<PageBuf, _, Bytes>(form, durability, seeds, 17);
        None
    });
}

#[test]
fn a_log_that_is_not_durable_in_time_is_noticed() {
    notices(Fault::NoFlushAfterLog, Form::On, Durability::OnFlush, 2);
    notices(Fault::PagesBeforeLog, Form::Transactions, Durability::OnAck, 6);
}

#[test]
fn transactions_in_pieces_are_noticed() {
    notices(Fault::GroupsCutShort, Form::Share, Durability::OnAck, 2);
}

#[test]
fn a_double_write_that_is_not_durable_in_time_is_noticed() {
    notices(Fault::NoFlushBeforeHomes, Form::On, Durability::Volatile, 2);
    notices(Fault::NoFlushAfterHomes, Form::On, Durability::Volatile, 2);
}

#[test]
fn checkpoints_that_are_written_together_are_noticed() {
    assert_noticed(Fault::NoFlushAfterCheckpoint, || {
        for seed in 0..200 {
            let history = volatile(Form::On, format!("seed {seed}"));
            history.make(seed, |engine, _| async move {
                engine.checkpoint().await.unwrap();
                engine.checkpoint().await.unwrap();
            });
            history.disk.power_on(&mut Rng::new(seed));
            let nothing = Expected { committed: Model::new(), issued: Model::new() };
            history.look(&[nothing], seed).unwrap();
        }
        None
    });
}

#[test]
fn a_torn_page_that_passes_for_whole_is_noticed() {
    notices(Fault::ChecksumsIgnored, Form::On, Durability::Volatile, 2);
}

/// A process is killed at its first commit, the power goes while the next one recovers, and the third one looks.
fn killed_and_cut() -> Option<String> {
    for seed in 0..600 {
        let (killed, cut) = (1 + seed % 5, seed / 5 % 24);
        let history = volatile(Form::Off, format!("killed after {killed}, cut after {cut}"));
        let value: Rc<[u8]> = vec![7; 1_000].into();
        let key: Key = b"0 row".as_slice().into();
        let rows = (0..TREES).map(|tree| ((Tree(tree), Rc::clone(&key)), Rc::clone(&value)));
        let expected = [Expected { committed: Model::new(), issued: rows.collect() }];
        history.make(seed, move |engine, disk| async move {
            disk.cut_after(killed);
            let mut transaction = engine.begin();
            for tree in 0..TREES {
                transaction.put(Tree(tree), &key, Rc::clone(&value)).await.unwrap();
            }
            drop(transaction.commit().await);
        });
        history.disk.killed();
        history.disk.cut_after(cut);
        drop(history.look(&expected, seed));
        history.disk.power_on(&mut Rng::new(seed));
        match history.look(&expected, seed) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            looked => drop(looked.unwrap()),
        }
    }
    None
}

#[test]
fn a_recovery_from_what_may_still_be_lost_is_noticed() {
    assert_noticed(Fault::NoFlushBeforeRecovery, killed_and_cut);
}

/// Puts a page as it was at a checkpoint in the place of a later one, as a device would that has lost a write.
fn lost_write() -> Option<String> {
    let history = volatile(Form::Share, "a lost write".into());
    let home = PageNo(2 + 128 + 4 * 2 + 2 + 2);
    let put = |engine: Engine<PageBuf, Rc<[u8]>, Bytes>, key: &'static [u8]| async move {
        let mut transaction = engine.begin();
        transaction.put(Tree(0), key, vec![7; 100].into()).await.unwrap();
        transaction.commit().await.unwrap();
    };
    history.make(1, move |engine, disk| async move {
        put(Rc::clone(&engine), b"0 one").await;
        engine.checkpoint().await.unwrap();
        let mut old = vec![PageBuf::zero(); 2];
        disk.read(home, &mut old, None).await.unwrap();
        put(Rc::clone(&engine), b"0 two").await;
        engine.checkpoint().await.unwrap();
        put(Rc::clone(&engine), b"0 three").await;
        engine.stop().await;
        disk.write(home, &old, None).await.unwrap();
    });
    let found = history.look(&[Expected { committed: Model::new(), issued: Model::new() }], 1);
    match found {
        Err(error) if error.to_string().contains("page 1 of the database has changes") => None,
        other => Some(format!("{:?}", other.err())),
    }
}

#[test]
fn a_write_that_a_device_has_lost_is_noticed() {
    assert_noticed(Fault::LostWritesIgnored, lost_write);
}
