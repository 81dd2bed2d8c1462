//! Compaction: writes a new file without the stale content.
//!
//! ```text
//! announce in the directory that the other half is in use
//! documents in the order of their keys: copied, or by SHARE remapped; nodes filled from the leaves up
//! changes that commits made meanwhile; the last of them while commits wait (catch_up)
//! header; (flush); the directory names the new file; commits continue there
//! (flush); the old file is trimmed once nothing reads it
//! ```
//!
//! A commit without room waits for the compaction in progress, or runs one itself. A compaction that is cut short leaves a file
//! that the directory does not name: the next opening, or the next compaction, deletes it and starts again.
use std::collections::BTreeSet;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Result};
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::Permit;

use super::barrier::Barrier;
use super::block::{Block, Directory, Entry, NODE_ROOM};
use super::files::{Snapshot, delete_other, write_block};
use super::options::Mode;
use super::store::{DocStore, read_document};
use super::tree::NodeBuilder;
use super::walk::Walk;
use crate::records::{Codec, Draft, Place};
use crate::values::Value;

/// Number of documents that are copied at a time.
const COPIED_DOCUMENTS: usize = 64;

impl<R, D, V, C> DocStore<R, D, V, C>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    /// Compacts the file, whatever share of it is stale.
    ///
    /// # Errors
    /// `Interrupted` if [`stop_compaction`](Self::stop_compaction) was called; `Corrupt`; those of the device. The store continues
    /// with its present file, unless it is uncertain which file counts.
    pub async fn compact(self: &Rc<Self>) -> Result<()> {
        let store = Rc::clone(self);
        // A separate task, so that it finishes even if the caller gives up.
        let compaction =
            self.runtime.spawn("compaction", async move { store.compact_beside_commits().await });
        compaction.await
    }

    /// Begins a compaction, unless one that was begun here is in progress.
    pub(super) fn begin_compaction(self: &Rc<Self>) {
        if std::mem::replace(&mut self.state.borrow_mut().compacts_by_itself, true) {
            return;
        }
        let store = Rc::clone(self);
        drop(self.runtime.spawn("compaction", async move {
            // If it fails, the next commit tries again.
            let _ = store.compact_beside_commits().await;
            store.state.borrow_mut().compacts_by_itself = false;
        }));
    }

    async fn compact_beside_commits(&self) -> Result<()> {
        let _compactor = self.compactor.acquire(1).await;
        let writer = self.writer.acquire(1).await;
        self.compact_counted(Some(writer)).await
    }

    /// Compacts while the caller holds off commits and other compactions.
    pub(super) async fn compact_without_commits(&self) -> Result<()> {
        self.compact_counted(None).await
    }

    /// Requests that a compaction in progress end.
    pub fn stop_compaction(&self) {
        self.state.borrow_mut().stop_compaction = true;
    }

    /// If the writer is given, commits continue while documents are copied.
    async fn compact_counted(&self, writer: Option<Permit>) -> Result<()> {
        let failed = self.state.borrow().failed.clone();
        let compacted = match failed {
            Some(failed) => Err(failed),
            None => self.compact_and_switch(writer).await,
        };
        let state = &mut *self.state.borrow_mut();
        state.changed = None;
        match compacted {
            Ok(()) => state.compactions += 1,
            Err(_) => state.compactions_failed += 1,
        }
        compacted
    }

    async fn compact_and_switch(&self, mut writer: Option<Permit>) -> Result<()> {
        let device = &self.compaction;
        let named = self.announce().await?;
        let from = {
            let state = &mut *self.state.borrow_mut();
            state.changed = Some(BTreeSet::new());
            state.snapshot
        };
        let beside_commits = writer.take().is_some();
        let mut new = named.empty_file();
        self.copy(&from, &mut new).await?;
        if beside_commits {
            writer = Some(self.catch_up(&mut new).await?);
        }
        if let Some(failed) = self.state.borrow().failed.clone() {
            // The new file may have a part of a commit that failed.
            return Err(failed);
        }
        new.header.number = self.state.borrow().snapshot.header.number + 1;
        let at = match self.options.mode {
            Mode::Share => new.file.first,
            Mode::Original => {
                let at = new.header.end;
                new.header.end.0 += 1;
                at
            }
        };
        write_block(device, at, Block::Header(new.header)).await?;
        Barrier::BeforeSwitch.pass(device).await?;
        self.keep_directory(named.write(device).await.map(|()| named))?;
        {
            let state = &mut *self.state.borrow_mut();
            (state.snapshot, state.changed) = (new, None);
        }
        self.keep_directory(Barrier::BeforeDeletion.pass(device).await.map(|()| named))?;
        drop(writer);
        self.until_unread(from.half).await;
        self.keep_directory(delete_other(device, &named).await)?;
        Ok(())
    }

    /// Announces in the directory that the other half is in use; returns a directory that names the file there.
    async fn announce(&self) -> Result<Directory> {
        let device = &self.compaction;
        let mut directory = {
            let state = &mut *self.state.borrow_mut();
            state.stop_compaction = false;
            state.directory
        };
        if directory.other_in_use {
            directory = self.keep_directory(delete_other(device, &directory).await)?;
        }
        directory = directory.changed(|directory| directory.other_in_use = true);
        self.keep_directory(directory.write(device).await.map(|()| directory))?;
        Barrier::AfterAnnouncement.pass(device).await?;
        Ok(directory.changed(|directory| {
            directory.half = 1 - directory.half;
            directory.file += 1;
        }))
    }

    /// Continues with a directory that was written. If the write failed, the state of the device is uncertain: no more changes are
    /// allowed.
    fn keep_directory(&self, written: Result<Directory>) -> Result<Directory> {
        match &written {
            Ok(directory) => self.state.borrow_mut().directory = *directory,
            Err(error) => self.change_no_more(error.clone()),
        }
        written
    }

    pub(super) fn check_stop(&self) -> Result<()> {
        match self.state.borrow().stop_compaction {
            true => Err(Error::new(ErrorKind::Interrupted, "the compaction was stopped")),
            false => Ok(()),
        }
    }

    /// Copies all documents of `from`, and builds the tree above them.
    async fn copy(&self, from: &Snapshot, new: &mut Snapshot) -> Result<()> {
        let mut walk = Walk::seek(&self.compaction, &from.header, &[]).await?;
        let mut levels = Levels::default();
        // Documents of one page each fill a share command.
        let documents = match self.options.mode {
            Mode::Original => COPIED_DOCUMENTS,
            Mode::Share => self.compaction.limits().share_pairs_max as usize,
        };
        loop {
            self.check_stop()?;
            let mut entries = Vec::new();
            while entries.len() < documents
                && let Some(entry) = walk.next(&self.compaction).await?
            {
                entries.push(entry);
            }
            let mut draft = Draft::new(new.header.end);
            let is_last = entries.len() < documents;
            let places = match self.options.mode {
                Mode::Original => {
                    let mut documents = Vec::with_capacity(entries.len());
                    for Entry { key, place } in &entries {
                        let document = read_document(&self.compaction, *place, key).await?;
                        documents.push(Rc::new(Block::Document(document)));
                    }
                    draft.pack(documents)
                }
                Mode::Share => self.remap(&entries, new, &mut draft).await?,
            };
            for (entry, place) in entries.into_iter().zip(places) {
                new.count_move(None, Some(place));
                levels.push(0, Entry { key: entry.key, place }, &mut draft);
            }
            if is_last {
                levels.finish(new, &mut draft);
            }
            check_room(new, draft.next())?;
            self.compaction.write(&draft).await?;
            new.header.end = draft.next();
            if is_last {
                return Ok(());
            }
        }
    }

    /// Shares documents' contents into the next pages of the new file.
    async fn remap(
        &self,
        entries: &[Entry],
        new: &Snapshot,
        draft: &mut Draft<Block<V>>,
    ) -> Result<Vec<Place>> {
        let mut pairs = Vec::new();
        let mut places = Vec::with_capacity(entries.len());
        for entry in entries {
            if self.options.compaction_reads {
                read_document(&self.compaction, entry.place, &entry.key).await?;
            }
            let old = entry.place.range();
            let range = draft.skip(old.pages);
            pairs.extend(range.iter().zip(old.iter()));
            places.push(Place::of_pages(range.first, range.pages));
        }
        check_room(new, draft.next())?;
        self.share_all(&pairs).await?;
        Ok(places)
    }

    /// Shares in as many commands as necessary: no file that counts contains the left pages.
    pub(super) async fn share_all(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        for part in pairs.chunks(self.compaction.limits().share_pairs_max as usize) {
            self.compaction.share(part).await?;
        }
        Ok(())
    }
}

pub(super) fn check_room(new: &Snapshot, end: PageNo) -> Result<()> {
    if end >= new.file.end() {
        let context = format!("a compacted file has no room in {} pages", new.file.pages);
        return Err(Error::new(ErrorKind::OutOfSpace, context));
    }
    Ok(())
}

/// Partly built nodes, one on each level, which are filled one after the other.
#[derive(Default)]
struct Levels {
    /// The node being filled, and the number of nodes of this level so far.
    levels: Vec<(Option<NodeBuilder>, u64)>,
}

impl Levels {
    fn push<V: Value>(&mut self, level: usize, entry: Entry, draft: &mut Draft<Block<V>>) {
        if self.levels.len() == level {
            self.levels.push((Some(NodeBuilder::new(level as u8, NODE_ROOM)), 0));
        }
        let (builder, nodes) = &mut self.levels[level];
        let full = builder.as_mut().and_then(|builder| builder.push(entry, draft));
        if let Some(parent) = full {
            *nodes += 1;
            self.push(level + 1, parent, draft);
        }
    }

    fn finish<V: Value>(&mut self, new: &mut Snapshot, draft: &mut Draft<Block<V>>) {
        let mut level = 0;
        while let Some((builder, nodes)) = self.levels.get_mut(level) {
            let last = builder.as_mut().and_then(|builder| builder.finish(draft));
            let Some(last) = last else { return };
            *nodes += 1;
            new.header.nodes += *nodes;
            level += 1;
            if *nodes == 1 {
                new.header.root = Some(last.place.page);
                new.header.depth = level as u8;
                return;
            }
            self.push(level, last, draft);
        }
    }
}
