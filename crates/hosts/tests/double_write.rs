//! Databases beside a `BTreeMap`, cut in the middle of what clients do at the same time, on the worst devices that each durability
//! allows, in all forms, as bytes and as stamps.

use crate::clients::{CLIENTS, Engine, Expected, Model, TREES, found, live};
use crate::made::Made;
use crate::worst_disk::WorstDisk;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{
    Durability, Error, ErrorKind, PageBuf, PageDevice, PageNo, Payload, Result, Rng, Stamp,
};
use tantalum_hosts::double_write::{DoubleWrite, DoubleWriteOptions, Form, PageOptions};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::{ByteCodec, Codec, Remembered};
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Key, Tree, ValueStamp};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const DURABILITIES: [Durability; 3] =
    [Durability::OnAck, Durability::OnFlush, Durability::Volatile];

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
                false => match DoubleWrite::open(&rt, &disk, &codec, options).await {
                    Err(error) if error.kind() == ErrorKind::Io => {
                        DoubleWrite::open(&rt, &disk, &codec, options).await.expect(&name).0
                    }
                    opened => opened.expect(&name).0,
                },
            };
            disk.cut_after(left);
            let clients = expected.into_iter().enumerate().map(|(client, expected)| {
                let rng = Rng::split(seed, &format!("client {client}"));
                let living = live(Rc::clone(&engine), client, expected, rng);
                rt.spawn("client", living)
            });
            let clients: Vec<_> = clients.collect();
            let mut left = Vec::new();
            for client in clients {
                let (expected, ended) = client.await;
                let excused = disk.is_off() || disk.has_failed();
                assert!(ended.is_ok() || excused, "{name}: {ended:?}");
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

/// A command of the device fails once: nothing that was acknowledged is lost, and nothing is there by halves.
#[test]
fn a_device_that_fails_once_loses_nothing() {
    for form in Form::ALL {
        for (seed, at) in (0..).zip((1..400).step_by(if nightly() { 1 } else { 11 })) {
            let history = History::<PageBuf, Bytes> {
                disk: WorstDisk::new(Durability::OnFlush, 264),
                ..volatile(form, format!("{form:?}, failure at {at}"))
            };
            let nothing = Expected { committed: Model::new(), issued: Model::new() };
            let mut expected = history.live(vec![nothing; CLIENTS], seed, u64::MAX, true);
            history.disk.fail_after(at);
            expected = history.look(&expected, seed).unwrap_or(expected);
            expected = history.live(expected, seed + 1, u64::MAX, false);
            assert!(history.disk.has_failed(), "{}: it never came", history.name);
            if seed % 2 == 0 {
                history.disk.power_on(&mut Rng::new(seed));
            }
            history.look(&expected, seed).unwrap();
        }
    }
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
