//! Transfers to the new file the changes that commits made while a compaction copied, until both files have the same content.
//!
//! It works in rounds while commits continue, each for the changes since the previous round. The last round, when few changes are left or
//! rounds no longer shrink, runs while commits wait. Each changed key is looked up in the old file as it is then: its document is copied or
//! remapped, or deleted from the new file. Nothing reads the new file before the last round is over.
use std::rc::Rc;
use tantalum_base::{PageDevice, Result};
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::Permit;

use super::block::Block;
use super::compaction::check_room;
use super::files::Snapshot;
use super::options::Mode;
use super::store::{DocStore, read_document};
use super::tree::{Change, Descent};
use crate::fault_points::Fault;
use crate::records::{Codec, Draft, Place};
use crate::values::{Key, Value};

/// Up to this many changed keys, commits may wait for the last round.
const FEW_KEYS: usize = 64;

/// Number of keys that are transferred at a time.
const KEYS_AT_A_TIME: usize = 1_024;

impl<R, D, V, C> DocStore<R, D, V, C>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    /// Transfers all changes; no commit runs until the returned permit is dropped.
    pub(super) async fn catch_up(&self, new: &mut Snapshot) -> Result<Permit> {
        let mut before = usize::MAX;
        loop {
            let changed = self.state.borrow().changed.as_ref().map_or(0, |keys| keys.len());
            let is_last = changed <= FEW_KEYS || changed >= before;
            before = changed;
            let writer = if is_last { Some(self.writer.acquire(1).await) } else { None };
            let (keys, old) = {
                let state = &mut *self.state.borrow_mut();
                let changed = state.changed.as_mut().map(std::mem::take);
                (Vec::from_iter(changed.unwrap_or_default()), state.snapshot)
            };
            for keys in keys.chunks(KEYS_AT_A_TIME) {
                self.check_stop()?;
                if !Fault::NoCatchUp.is_planted() {
                    self.bring_along(keys, &old, new).await?;
                }
            }
            if let Some(writer) = writer {
                return Ok(writer);
            }
        }
    }

    /// Gives `new` the same documents for `keys`, which ascend, as `old` has.
    async fn bring_along(&self, keys: &[Key], old: &Snapshot, new: &mut Snapshot) -> Result<()> {
        let device = &self.compaction;
        let from = Descent::new(device, &old.header, keys.to_vec()).await?;
        let to = Descent::new(device, &new.header, keys.to_vec()).await?;
        let mut draft = Draft::new(new.header.end);
        let mut changes = vec![Change::Keep; keys.len()];
        let gone =
            (0..keys.len()).filter(|at| from.found(*at).is_none() && to.found(*at).is_some());
        gone.for_each(|at| changes[at] = Change::Remove);
        match self.options.mode {
            Mode::Original => {
                let (mut documents, mut ats) = (Vec::new(), Vec::new());
                for (at, key) in keys.iter().enumerate() {
                    let Some(place) = from.found(at) else { continue };
                    let document = read_document(device, place, key).await?;
                    documents.push(Rc::new(Block::Document(document)));
                    ats.push(at);
                }
                for (at, place) in ats.into_iter().zip(draft.pack(documents)) {
                    changes[at] = Change::Put(place);
                }
            }
            Mode::Share => {
                let mut pairs = Vec::new();
                for (at, change) in changes.iter_mut().enumerate() {
                    let Some(place) = from.found(at) else { continue };
                    let pages = place.range().pages;
                    let range = match to.found(at).map(|place| place.range()) {
                        Some(range) if range.pages == pages => range,
                        _ => {
                            let range = draft.skip(pages);
                            *change = Change::Put(Place::of_pages(range.first, pages));
                            range
                        }
                    };
                    pairs.extend(range.iter().zip(place.range().iter()));
                }
                check_room(new, draft.next())?;
                self.share_all(&pairs).await?;
            }
        }
        for (at, change) in changes.iter().enumerate() {
            match change {
                Change::Keep => {}
                Change::Put(place) => new.count_move(to.found(at), Some(*place)),
                Change::Remove => new.count_move(to.found(at), None),
            }
        }
        if changes.iter().any(|change| *change != Change::Keep) {
            let tree = to.apply(&new.header, &changes, &mut draft);
            let header = &mut new.header;
            (header.root, header.depth, header.nodes) = (tree.root, tree.depth, tree.nodes);
        }
        check_room(new, draft.next())?;
        device.write(&draft).await?;
        new.header.end = draft.next();
        self.state.borrow_mut().caught_up += keys.len() as u64;
        Ok(())
    }
}
