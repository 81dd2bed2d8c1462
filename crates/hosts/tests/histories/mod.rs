//! Databases compared with a `BTreeMap`, cut while several clients work.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Durability, Error, ErrorKind, PageBuf, Payload, Result, Rng};
use tantalum_hosts::database::{Database, DatabaseOptions, Drives, Way};
use tantalum_hosts::fault_points::Fault;
use tantalum_hosts::records::{ByteCodec, Codec};
use tantalum_hosts::redo::Block;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

use crate::clients::{CLIENTS, Engine, Expected, Model, found, live};
use crate::made::Made;
use crate::worst_disk::WorstDisk;

pub const DURABILITIES: [Durability; 3] =
    [Durability::OnAck, Durability::OnFlush, Durability::Volatile];

/// The setting of histories.
#[derive(Clone, Copy, Debug)]
pub struct Case<W> {
    pub options: DatabaseOptions<W>,
    pub durability: Durability,
    /// The maximum pages of a device transaction.
    pub transaction_pages_max: u32,
    /// The log has a device of its own.
    pub log_apart: bool,
    /// The device tears pages and nothing protects from it.
    pub may_tear: bool,
}

/// The end of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    Uncut,
    Cut,
    /// A page was torn, and the error named it.
    Torn,
}

/// A database on the worst disk.
pub struct History<P, C, W> {
    pub options: DatabaseOptions<W>,
    pub disk: Rc<WorstDisk<P>>,
    /// The disk of the log, if it has one.
    pub log_disk: Option<Rc<WorstDisk<P>>>,
    pub codec: Rc<C>,
    pub log_codec: Rc<C>,
    /// The number of the database, if its log has a device of its own.
    pub database: u64,
    pub name: String,
}

impl<P, V, C, W> History<P, C, W>
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
    W: Way,
{
    pub fn new(case: &Case<W>, name: String) -> Self {
        let most = case.transaction_pages_max;
        let disk = WorstDisk::with_transactions_of(most, case.durability, 400);
        let log_disk = case.log_apart.then(|| disk.beside(2 + case.options.log_pages));
        let (codec, log_codec) = (Rc::default(), Rc::default());
        History { options: case.options, disk, log_disk, codec, log_codec, database: 1, name }
    }

    pub fn drives(&self) -> Drives<WorstDisk<P>, C> {
        let drives = Drives::new(&self.disk, &self.codec);
        match &self.log_disk {
            Some(log) => drives.with_log_on(log, &self.log_codec, self.database),
            None => drives,
        }
    }

    /// Keeps only the content that survived.
    pub fn power_on(&self, rng: &mut Rng) {
        self.disk.power_on(rng);
        self.log_disk.iter().for_each(|log| log.power_on(rng));
    }

    /// Runs `what` in an executor of its own, of which nothing is left afterwards.
    fn run<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        seed: u64,
        what: impl FnOnce(Virtual) -> F,
    ) -> T {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let ran = runtime.run(what(runtime.clone()));
        let ran = ran.unwrap_or_else(|deadlock| panic!("{}: {deadlock:?}", self.name));
        runtime.drop_tasks();
        ran
    }

    /// Clients run until the power is cut, or all work is done.
    pub fn live(
        &self,
        expected: Vec<Expected<V>>,
        seed: u64,
        left: u64,
        create: bool,
    ) -> Vec<Expected<V>> {
        let (disk, drives) = (Rc::clone(&self.disk), self.drives());
        let (options, name) = (self.options, self.name.clone());
        self.run(seed, |rt| async move {
            let engine = match create {
                true => Database::create_on(&rt, &drives, options).await.expect(&name),
                false => match Database::open_on(&rt, &drives, options).await {
                    Err(error) if error.kind() == ErrorKind::Io => {
                        Database::open_on(&rt, &drives, options).await.expect(&name).0
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
        })
    }

    /// Makes a database and runs a function on it.
    pub fn make<F: Future<Output = ()> + 'static>(
        &self,
        seed: u64,
        what: impl FnOnce(Engine<P, V, C, W>, Rc<WorstDisk<P>>) -> F + 'static,
    ) {
        let (disk, drives, options) = (Rc::clone(&self.disk), self.drives(), self.options);
        self.run(seed, |rt| async move {
            let engine = Database::create_on(&rt, &drives, options).await.unwrap();
            what(engine, disk).await;
        });
    }

    /// Opens the database and checks that each client's rows are as expected.
    pub fn look(&self, expected: &[Expected<V>], seed: u64) -> Result<Vec<Expected<V>>> {
        let (drives, options) = (self.drives(), self.options);
        let (name, expected) = (self.name.clone(), expected.to_vec());
        self.run(seed, |rt| async move {
            let engine = Database::open_on(&rt, &drives, options).await?.0;
            let mut left = Vec::new();
            for (client, expected) in expected.into_iter().enumerate() {
                let found = found(&engine, client).await?;
                let whole = found == expected.committed || found == expected.issued;
                assert!(whole, "{name}: client {client}: neither the last commit nor the next");
                left.push(Expected { committed: found.clone(), issued: found });
            }
            Ok::<_, Error>(left)
        })
    }
}

/// No rows, for this many clients.
pub fn nothing<V: Made>(clients: usize) -> Vec<Expected<V>> {
    vec![Expected { committed: Model::new(), issued: Model::new() }; clients]
}

/// A history with a cut after `operations`, others in recoveries, and complete recoveries.
pub fn cut_history<P, V, C, W>(case: &Case<W>, seed: u64, operations: u64) -> Ended
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
    W: Way,
{
    let (form, durability) = (case.options.pages.form, case.durability);
    let name = format!("{form:?}, {durability:?}, seed {seed}, cut after {operations}");
    let history = History::<P, C, W>::new(case, name);
    let cuts = &mut Rng::split(seed ^ operations << 8, "cuts");
    let mut expected = nothing(CLIENTS);
    let mut ended = Ended::Uncut;
    for life in 0..3 {
        let left = if life == 0 { operations } else { cuts.below(300) };
        expected = history.live(expected, seed ^ life << 32, left, life == 0);
        if life == 0 && history.disk.is_off() {
            ended = Ended::Cut;
        }
        match cuts.chance(0.3) {
            true => history.disk.killed(),
            false => history.power_on(cuts),
        }
        history.disk.cut_after(cuts.below(60));
        let first = history.look(&expected, cuts.next_u64());
        let off = history.disk.is_off();
        history.power_on(cuts);
        let looked = match first {
            Ok(found) if !off => history.look(&found, cuts.next_u64()),
            Err(error) if !off => Err(error),
            _ => history.look(&expected, cuts.next_u64()),
        };
        expected = match looked {
            Ok(found) => found,
            Err(error) if case.may_tear && error.kind() == ErrorKind::Corrupt => {
                let text = error.to_string();
                assert!(text.contains("page ") && text.contains("torn"), "{text}");
                return Ended::Torn;
            }
            Err(error) => panic!("{}: {error}", history.name),
        };
    }
    ended
}

/// Cuts histories, each at one of `every` operations; returns how often a page was torn.
pub fn cut_everywhere<P, V, C, W>(case: &Case<W>, seeds: u64, every: u64) -> u64
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
    W: Way,
{
    let torn = Cell::new(0);
    for seed in 0..seeds {
        let cuts = (0..).map(|cut| every * cut + seed % every).take_while(|at| {
            let ended = cut_history::<P, V, C, W>(case, seed, *at);
            torn.set(torn.get() + u64::from(ended == Ended::Torn));
            ended != Ended::Uncut
        });
        assert!(cuts.count() > 5, "seed {seed}: nothing happens in this history");
    }
    torn.get()
}

/// A command of the device fails once: no acknowledged change is lost, and no change is there in part.
pub fn fail_once<P, V, C, W>(case: &Case<W>)
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
    W: Way,
{
    for (seed, at) in (0..).zip((1..400).step_by(if nightly() { 1 } else { 11 })) {
        let name = format!("{:?}, failure at {at}", case.options.pages.form);
        let history = History::<P, C, W>::new(case, name);
        let mut expected = history.live(nothing(CLIENTS), seed, u64::MAX, true);
        history.disk.fail_after(at);
        expected = history.look(&expected, seed).unwrap_or(expected);
        expected = history.live(expected, seed + 1, u64::MAX, false);
        if !history.disk.has_failed() {
            assert!(at > 150, "{}: it never came", history.name);
            return;
        }
        if seed % 2 == 0 {
            history.power_on(&mut Rng::new(seed));
        }
        history.look(&expected, seed).unwrap();
    }
}

/// Cuts histories in every form of an engine and on every durability. `case_of` gives the setting of each; pages may be torn only if it
/// allows that.
pub fn cut_in_every_form<P, V, C, W>(case_of: fn(W, Durability) -> Case<W>)
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>> + Default,
    W: Way,
{
    let (seeds, every) = if nightly() { (20, 1) } else { (1, 23) };
    for form in W::WAYS {
        for durability in DURABILITIES {
            let case = case_of(*form, durability);
            let torn = cut_everywhere::<P, V, C, W>(&case, seeds, every);
            assert_eq!(torn > 0, case.may_tear, "{form:?}, {durability:?}: torn {torn} times");
        }
    }
}

/// Checks that cut histories fail if a protection is left out.
pub fn cuts_notice<W: Way>(fault: Fault, case: &Case<W>, seeds: u64) {
    assert_noticed(fault, || {
        cut_everywhere::<PageBuf, _, ByteCodec<Block<Rc<[u8]>>>, W>(case, seeds, 17);
        None
    });
}

pub fn nightly() -> bool {
    std::env::var_os("TANTALUM_NIGHTLY").is_some()
}
