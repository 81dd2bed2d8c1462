//! Changes of clients that outgrow their memory: transactions that are mostly staged.
use super::history::{Change, History, content, count_of};
use super::lives::passes;
use super::media::Device;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tantalum_base::{
    Error, ErrorKind, PageBuf, PageDevice, PageNo, PageRange, Payload, Result, Rng, TxId,
};

/// Makes such a change of the pages `own` of client `me`, or aborts it.
///
/// # Errors
/// Those of the device; `Corrupt` if it returns wrong content.
pub async fn change(
    device: &Device,
    history: &RefCell<History>,
    me: usize,
    own: PageRange,
    rng: &mut Rng,
) -> Result<()> {
    let number = |history: &RefCell<History>| {
        let history = &mut *history.borrow_mut();
        history.writes += 1;
        history.writes
    };
    // The first content that it writes to some of the pages.
    let (before, write) = (number(history), number(history));
    let mut pages = BTreeMap::new();
    for _ in 0..9 + rng.below(30) {
        let page = own.first.0 + rng.below(own.pages);
        pages.insert(page, if rng.chance(0.2) { 0 } else { write });
    }
    let tx = device.begin().await?;
    match write_all(device, history, me, tx, (&pages, before), rng).await {
        Err(error) if error.kind() != ErrorKind::OutOfSpace && !passes(&error) => {
            return Err(error);
        }
        Ok(()) if rng.chance(0.7) => {}
        _ => return device.abort(tx).await,
    }
    let waits = device.mode().waits_for_home();
    let mode_changes = {
        let history = &mut *history.borrow_mut();
        let (issued, acknowledged) = (history.tick(), None);
        history.clients[me].push(Change { pages, issued, acknowledged, safe: false });
        history.mode_changes
    };
    let mut is_safe = waits;
    if let Err(error) = device.commit(tx).await {
        // The home failed for a moment, but the flash has the change.
        is_safe = false;
        if !passes(&error) && error.kind() != ErrorKind::OutOfSpace {
            return Err(error);
        }
        if !passes(&error) {
            // The pages in memory found no room: no part of the change is present.
            history.borrow_mut().clients[me].pop();
            return Ok(());
        }
    }
    history.borrow_mut().acknowledge(me, is_safe, mode_changes);
    Ok(())
}

/// Writes `pages` in `tx`. The transaction must read its own writes, and others must not see them.
async fn write_all(
    device: &Device,
    history: &RefCell<History>,
    me: usize,
    tx: TxId,
    (pages, before): (&BTreeMap<u64, u64>, u64),
    rng: &mut Rng,
) -> Result<()> {
    let again: Vec<u64> = pages.keys().copied().filter(|_| rng.chance(0.2)).collect();
    for page in &again {
        device.write(PageNo(*page), &[content(*page, before)], Some(tx)).await?;
    }
    for (page, count) in pages {
        device.write(PageNo(*page), &[content(*page, *count)], Some(tx)).await?;
    }
    for (page, count) in pages.iter().filter(|_| rng.chance(0.2)) {
        let mut out = [PageBuf::zero()];
        device.read(PageNo(*page), &mut out, Some(tx)).await?;
        let own = count_of(*page, &out[0][..]);
        device.read(PageNo(*page), &mut out, None).await?;
        let others = count_of(*page, &out[0][..]);
        let last = history.borrow().last(me, *page);
        if (own, others) != (Some(*count), Some(last)) {
            let context = format!(
                "page {page} was {last} and {count} in a transaction: it reads {others:?}, there {own:?}"
            );
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
    }
    Ok(())
}
