//! How a batch is written to the device: this file has all that SHARE changes.
//!
//! ```text
//! Original  | documents, packed | nodes | (flush) | header | (flush)      one write, if there is no flush in its middle
//! SHARE     | documents that need a place | nodes | header | documents that keep theirs |  then one share:
//!           old places get the new documents, the file's first page gets the header
//! ```
//!
//! By SHARE a document that occupies as many pages as before keeps its place in the tree. So no node and no header is
//! written if the batch has no other documents. All of a batch is one share command, so it is all or nothing. Documents
//! that do not fit into one command go to new places, as in the original. Pages that were written only for the share lie
//! after the end of the file, and the next batch overwrites them.
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Result};
use tantalum_runtime::Runtime;

use super::barrier::Barrier;
use super::batch::Batch;
use super::block::{Block, Document};
use super::files::Snapshot;
use super::options::Mode;
use super::store::DocStore;
use super::tree::{Change, Descent};
use crate::fault_points::Fault;
use crate::records::{Codec, Draft, PAGE_ROOM, Place, framed_bytes};
use crate::values::{Key, Value};

/// A batch that is laid out after the end of a file.
struct Plan<V> {
    draft: Draft<Block<V>>,
    /// Places that do not change, each with its new document.
    remapped: Vec<(Place, Rc<Block<V>>)>,
    /// The state of the file after the batch.
    after: Snapshot,
    documents: u64,
    nodes: u64,
    /// Whether the tree changed, so that there is a header to write.
    has_header: bool,
}

impl<R, D, V, C> DocStore<R, D, V, C>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    /// Commits a batch, after a compaction if the file has no room for it. If enough of the file is stale afterwards, a
    /// compaction begins.
    pub(super) async fn commit_batch(self: &Rc<Self>, batch: &Batch<V>) -> Result<()> {
        let mut writer = self.writer.acquire(1).await;
        let mut plan = self.plan(batch).await?;
        if !plan.has_room() {
            // A compaction in progress needs the writer in order to finish.
            drop(writer);
            let _compactor = self.compactor.acquire(1).await;
            writer = self.writer.acquire(1).await;
            plan = self.plan(batch).await?;
            if !plan.has_room() {
                // A request to stop compactions must not fail commits.
                while let Err(error) = self.compact_without_commits().await {
                    if error.kind() != ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
                plan = self.plan(batch).await?;
            }
            if !plan.has_room() {
                let context = "the file has no room for a commit, even compacted";
                return Err(Error::new(ErrorKind::OutOfSpace, context));
            }
        }
        match self.options.mode {
            Mode::Original => self.append(&mut plan).await?,
            Mode::Share => self.append_and_share(&mut plan).await?,
        }
        let snapshot = plan.after;
        {
            let state = &mut *self.state.borrow_mut();
            state.snapshot = snapshot;
            if let Some(changed) = &mut state.changed {
                changed.extend(batch.updates().keys().map(Key::clone));
            }
        }
        let mut counts = self.counts.get();
        counts.commits += 1;
        counts.documents += batch.updates().len() as u64;
        counts.document_pages += plan.documents;
        counts.node_pages += plan.nodes;
        counts.header_pages += u64::from(plan.has_header);
        self.counts.set(counts);
        drop(writer);
        let stale = 1.0 - snapshot.live_pages() as f64 / snapshot.used_pages() as f64;
        if self.options.compact_at.is_some_and(|ratio| stale >= ratio)
            && snapshot.used_pages() >= snapshot.file.pages / 4
        {
            self.begin_compaction();
        }
        Ok(())
    }

    async fn plan(&self, batch: &Batch<V>) -> Result<Plan<V>> {
        let before = self.state.borrow().snapshot;
        let keys = batch.updates().keys().map(Key::clone).collect();
        let descent = Descent::new(&self.device, &before.header, keys).await?;
        let mut draft = Draft::new(before.header.end);
        let mut after = before;
        let mut remapped = Vec::new();
        // One pair is reserved for the header.
        let mut pairs_left = u64::from(self.device.limits().share_pairs_max).saturating_sub(1);
        let (mut packed, mut packed_at) = (Vec::new(), Vec::new());
        let mut changes = vec![Change::Keep; batch.updates().len()];
        for (at, (key, value)) in batch.updates().iter().enumerate() {
            let old = descent.found(at);
            let Some(value) = value else {
                if old.is_some() {
                    changes[at] = Change::Remove;
                    after.count_move(old, None);
                }
                continue;
            };
            let document = Document { key: key.clone(), value: value.clone() };
            let document = Rc::new(Block::Document(document));
            if self.options.mode == Mode::Original {
                packed.push(document);
                packed_at.push(at);
                continue;
            }
            let pages = framed_bytes(&*document).div_ceil(PAGE_ROOM) as u64;
            match old {
                Some(old)
                    if (old.range().pages == pages || Fault::SharesCutShort.is_planted())
                        && pages <= pairs_left =>
                {
                    pairs_left -= pages;
                    remapped.push((old, document));
                }
                _ => {
                    let place = draft.align(document);
                    changes[at] = Change::Put(place);
                    after.count_move(old, Some(place));
                }
            }
        }
        for (at, place) in packed_at.into_iter().zip(draft.pack(packed)) {
            changes[at] = Change::Put(place);
            after.count_move(descent.found(at), Some(place));
        }
        let documents = draft.next().0 - before.header.end.0;
        let changes_tree = changes.iter().any(|change| *change != Change::Keep);
        let has_header = changes_tree || batch.wants_header() && remapped.is_empty();
        after.header.number += u64::from(has_header);
        if changes_tree {
            let tree = descent.apply(&before.header, &changes, &mut draft);
            let header = &mut after.header;
            (header.root, header.depth, header.nodes) = (tree.root, tree.depth, tree.nodes);
        }
        let nodes = draft.next().0 - before.header.end.0 - documents;
        Ok(Plan { draft, remapped, after, documents, nodes, has_header })
    }

    /// A search for the header finds it by its place, after all the pages that it refers to. So none of those may be lost if
    /// it is there, and it must be durable before the commit is acknowledged. A device that keeps the order of writes gets
    /// all of them as one unit, and one flush.
    async fn append(&self, plan: &mut Plan<V>) -> Result<()> {
        if !plan.has_header {
            return Ok(());
        }
        let at = plan.draft.next();
        plan.after.header.end = PageNo(at.0 + 1);
        if Barrier::BeforeHeader.is_needed(self.device.limits()) {
            self.device.write(&plan.draft).await?;
            Barrier::BeforeHeader.pass(&self.device).await?;
            plan.draft = Draft::new(at);
        }
        plan.draft.align(Rc::new(Block::Header(plan.after.header)));
        self.device.write(&plan.draft).await?;
        Barrier::AfterHeader.pass(&self.device).await
    }

    async fn append_and_share(&self, plan: &mut Plan<V>) -> Result<()> {
        let mut pairs = Vec::new();
        if plan.has_header {
            // The copy of the header is not needed after the share: the file ends before it.
            let at = plan.draft.next();
            plan.after.header.end = at;
            plan.draft.align(Rc::new(Block::Header(plan.after.header)));
            pairs.push((plan.after.file.first, at));
        }
        for (old, document) in std::mem::take(&mut plan.remapped) {
            let new = plan.draft.align(document);
            plan.documents += new.range().pages;
            pairs.extend(old.range().iter().zip(new.range().iter()));
        }
        if pairs.is_empty() {
            return Ok(());
        }
        self.device.write(&plan.draft).await?;
        if Fault::SharesSeenBeforeTheHeader.is_planted() {
            pairs.reverse();
            for pair in pairs {
                self.device.share(&[pair]).await?;
            }
            return Ok(());
        }
        self.device.share(&pairs).await
    }
}

impl<V: Value> Plan<V> {
    fn has_room(&self) -> bool {
        self.end() <= self.after.file.end()
    }

    /// The first page after all pages that will be written.
    fn end(&self) -> PageNo {
        let remapped: u64 = self.remapped.iter().map(|(old, _)| old.range().pages).sum();
        PageNo(self.draft.next().0 + u64::from(self.has_header) + remapped)
    }
}
