//! Clients of a database, each with rows of its own, compared with a `BTreeMap`.
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{ErrorKind, Payload, Result, Rng};
use tantalum_hosts::database::{Database, Way};
use tantalum_hosts::records::Codec;
use tantalum_hosts::redo::Block;
use tantalum_hosts::values::{Key, Tree};
use tantalum_runtime::Virtual;

use crate::made::Made;
use crate::worst_disk::WorstDisk;

pub const CLIENTS: usize = 3;
pub const TREES: u32 = 2;

/// Number of transactions per client in a life.
const TRANSACTIONS: u64 = 40;

pub type Model<V> = BTreeMap<(Tree, Key), V>;
pub type Engine<P, V, C, W> = Rc<Database<Virtual, WorstDisk<P>, V, C, W>>;

/// The expected rows of a client after a cut: one of two states.
#[derive(Clone)]
pub struct Expected<V> {
    pub committed: Model<V>,
    /// Including the transaction that was being committed.
    pub issued: Model<V>,
}

/// Rows of a client: long keys, so that a small tree has several levels.
fn row(client: usize, rng: &mut Rng) -> (Tree, Key) {
    let number = rng.below(25);
    let mut key = format!("{client} row {number:02}").into_bytes();
    key.resize(60 + 7 * (number % 20) as usize, b'.');
    (Tree(rng.below(u64::from(TREES)) as u32), key.into())
}

/// The rows of a client that the database has.
pub async fn found<P, V, C, W>(engine: &Engine<P, V, C, W>, client: usize) -> Result<Model<V>>
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>>,
    W: Way,
{
    let mut found = Model::new();
    let (from, to) = (format!("{client} "), format!("{client}!"));
    for tree in (0..TREES).map(Tree) {
        let rows = engine.scan(tree, from.as_bytes(), Some(to.as_bytes()), usize::MAX).await?;
        found.extend(rows.into_iter().map(|(key, value)| ((tree, key), value)));
    }
    Ok(found)
}

/// Runs random transactions of a client until one fails; returns the expected rows.
pub async fn live<P, V, C, W>(
    engine: Engine<P, V, C, W>,
    client: usize,
    mut expected: Expected<V>,
    mut rng: Rng,
) -> (Expected<V>, Result<()>)
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>>,
    W: Way,
{
    for _ in 0..TRANSACTIONS {
        expected.issued.clone_from(&expected.committed);
        let ended = transact(&engine, client, &mut expected, &mut rng).await;
        if let Err(error) = ended {
            return (expected, Err(error));
        }
    }
    (expected, Ok(()))
}

async fn transact<P, V, C, W>(
    engine: &Engine<P, V, C, W>,
    client: usize,
    expected: &mut Expected<V>,
    rng: &mut Rng,
) -> Result<()>
where
    P: Payload,
    V: Made,
    C: Codec<Page = P, Record = Block<V>>,
    W: Way,
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
                let value = changed.get(&(tree, key.clone())).cloned();
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
        // The log has its minimum size.
        Err(error) if error.kind() == ErrorKind::TooLarge => {}
        Err(error) => return Err(error),
    }
    Ok(())
}
