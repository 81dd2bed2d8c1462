//! Damage to every block of a committed epoch: each read returns the right content or an error.
use super::contents::content;
use super::epochs::{Epoch, JOURNAL_BYTES, PAIR, made_up};
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Result, Rng};
use tantalum_cache::Journal;
use tantalum_cache::journal::{Closed, Run};
use tantalum_media::BlockStore;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

/// Writes a journal with two epochs, the larger one last; returns the content of the store after
/// the first.
fn written(store: &MemoryStore, epochs: [&Epoch; 2]) -> Vec<u8> {
    let mut before = Vec::new();
    for (number, epoch) in (1..).zip(epochs) {
        before = store.image();
        let (store, epoch) = (store.clone(), epoch.clone());
        run(async move {
            let journal = match number {
                1 => Journal::<_, PageBuf>::format(store, PAIR, 0).await?,
                _ => Journal::open(store, PAIR, 0).await?.0,
            };
            journal.begin(number);
            let pages = epoch.contents.iter();
            journal.append(pages.map(|(page, of)| (*page, content(*of))).collect()).await?;
            for range in epoch.zeros {
                journal.append_zeros(range).await?;
            }
            journal.commit(Closed { epoch: number, ..Closed::default() }).await
        })
        .unwrap();
    }
    before
}

fn run<T: 'static>(main: impl Future<Output = Result<T>> + 'static) -> Result<T> {
    Virtual::new(Schedule::Fifo).run(main).expect("no deadlock")
}

/// Whether the journal has the complete epoch.
fn look(store: &MemoryStore, epoch: &Epoch) -> Result<bool> {
    let (store, mut expected) = (store.clone(), epoch.clone());
    expected.contents.sort_unstable();
    expected.zeros.sort_unstable_by_key(|range| range.first);
    run(async move {
        let (journal, closed) = Journal::<_, PageBuf>::open(store, PAIR, 0).await?;
        let (mut contents, mut zeros, mut from) = (Vec::new(), Vec::<PageRange>::new(), PageNo(0));
        while let Some(run) = journal.next_run(from, 64).await? {
            from = run.range().end();
            match run {
                Run::Contents { first, pages } => {
                    contents.extend((first.0..).map(PageNo).zip(pages));
                }
                Run::Zeros(range) => zeros.push(range),
            }
        }
        let right = expected.contents.iter().map(|(page, number)| (*page, content(*number)));
        Ok(closed.is_some_and(|closed| closed.epoch == 2)
            && zeros == expected.zeros
            && contents.into_iter().eq(right))
    })
}

fn judge(store: &MemoryStore, epoch: &Epoch, what: &str) -> Option<String> {
    match look(store, epoch) {
        Ok(true) => None,
        Ok(false) => Some(format!("{what}: something else is read")),
        Err(error) if matches!(error.kind(), ErrorKind::Checksum | ErrorKind::Corrupt) => None,
        Err(error) => Some(format!("{what}: {error:?}")),
    }
}

fn put(store: &MemoryStore, at: u64, block: &[u8]) {
    let (store, block) = (store.clone(), block.to_vec());
    let write = async move {
        let mut buf = store.buffer(block.len());
        buf.copy_from_slice(&block);
        store.write(at, buf, true).await.map(drop)
    };
    run(write).unwrap();
}

/// Flips a bit in each block, then restores each block to its content of the epoch before, as after
/// a lost write. Returns the first damage that was not noticed.
pub fn damage_everywhere(seed: u64) -> Option<String> {
    let epochs = made_up(seed, 5);
    let store = MemoryStore::new(JOURNAL_BYTES);
    let before = written(&store, [&epochs[2], &epochs[4]]);
    let after = store.image();
    assert!(look(&store, &epochs[4]).unwrap(), "undamaged");
    let mut rng = Rng::split(seed, "damage");
    let contents = 1 << 20..(1 << 20) + (epochs[4].contents.len() * PAGE_BYTES) as u64;
    let blocks = after.chunks(PAGE_BYTES).zip(before.chunks(PAGE_BYTES)).enumerate();
    for (number, (block, older)) in blocks {
        let at = (number * PAGE_BYTES) as u64;
        if block.iter().all(|byte| *byte == 0) {
            continue;
        }
        // Heads and index have meaning in every byte.
        let is_content = contents.contains(&at);
        for _ in 0..if is_content { 2 } else { 100 } {
            let (byte, bit) = (at + rng.below(PAGE_BYTES as u64), rng.below(8) as u8);
            store.flip_bit(byte, bit);
            let wrong = judge(&store, &epochs[4], &format!("bit {bit} of byte {byte}"));
            store.flip_bit(byte, bit);
            if wrong.is_some() {
                return wrong;
            }
        }
        put(&store, at, older);
        let wrong = judge(&store, &epochs[4], &format!("the block at {at} an epoch older"));
        put(&store, at, block);
        if wrong.is_some() {
            return wrong;
        }
    }
    None
}
