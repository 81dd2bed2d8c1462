//! Recovery: from media alone, to the state that the log rule promises.
//!
//! 1. Look at the first append of every zone: its epoch and stream.
//! 2. Load the newest checkpoint from the meta zones; where it is damaged, that is the end.
//! 3. Scan what was appended since: zones opened later whole, others behind what is covered.
//! 4. Take the highest durable watermark found, then go on while no version is missing, and stop
//!    at the last whole batch. What lies behind is dropped.
//! 5. Apply what was accepted in the order of versions; a copy is as good as its original.
//! 6. Make the conclusion durable (a checkpoint that skips the dropped versions) before serving.
//!
//! Opened to be read only, it writes nothing: 6 is left out, and every change is refused.
use std::rc::Rc;
use tantalum_base::{Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::checkpoint;
use crate::dump::DumpHeader;
use crate::fault_points::Fault;
use crate::find_checkpoint::{Checkpoint, is_damage};
use crate::ftl::Ftl;
use crate::log_scan::{Change, Log};
use crate::logged::VersionRange;
use crate::map::{Entry, Occupant, Place};
use crate::options::FtlOptions;
use crate::places::{Original, Rank};
use crate::read::OwnPage;
use crate::records::Record;
use crate::recovery_report::RecoveryReport;
use crate::survey::Survey;
use crate::zones::{Stream, ZoneState};

/// Versions left out after a recovery, behind everything seen: what was dropped can never be
/// taken for something newer.
const SKIPPED_VERSIONS: u64 = 1 << 20;

/// Numbers of checkpoints left out likewise.
const SKIPPED_CHECKPOINTS: u64 = 1 << 10;

/// Zone openings left out likewise.
const SKIPPED_EPOCHS: u64 = 1 << 20;

impl<M: ZoneMedia> Ftl<M> {
    /// Opens the FTL that `media` holds.
    ///
    /// # Errors
    /// `Corrupt` where durable content is damaged so that a wrong version might be served, or
    /// where there is no whole checkpoint; `InvalidInput` where `options` are not those it was
    /// made with.
    pub async fn recover(media: M, options: FtlOptions) -> Result<(Rc<Self>, RecoveryReport)> {
        // Zones that were retired since it was made are missed where room is needed, not before.
        options.check(&media.geometry(), 0)?;
        let ftl = Rc::new(Ftl::blank(media, options)?);
        if !options.read_only {
            // What a killed process left may be readable and not yet durable.
            ftl.media.sync().await?;
        }
        let mut report = RecoveryReport::default();
        let skip_to = ftl.rebuild(&mut report).await?;
        if options.read_only {
            ftl.refuse_changes();
            return Ok((ftl, report));
        }
        // Nobody cleans yet: where there is no room for a checkpoint, that is the end.
        ftl.state.borrow_mut().cleaning_stuck = true;
        if Fault::DumpClearedEarly.is_planted() && ftl.has_dump() {
            ftl.clear_dump_area().await?;
        }
        ftl.set_dump_zones_aside()?;
        if let Some(skip_to) = skip_to {
            ftl.checkpoint_recovery(skip_to).await?;
        }
        {
            let state = &mut *ftl.state.borrow_mut();
            state.cleaning_stuck = false;
            state.zones.rebuild_free();
        }
        ftl.resume_tracking();
        if !ftl.has_dump() {
            ftl.clear_dump_area().await?;
        }
        Ok((ftl, report))
    }

    /// Rebuilds in memory what the medium holds: from what its anchors say, or where it has none, or
    /// they or the checkpoint that they name are damaged, from all zones. Returns the version up to
    /// which none may be used again, where a conclusion must be made durable.
    async fn rebuild(&self, report: &mut RecoveryReport) -> Result<Option<Version>> {
        let Some(era) = self.find_era().await? else {
            return self.rebuild_from(self.survey_all().await?, report).await;
        };
        // Where that is damaged, an older checkpoint or one that was not in force yet may do: whether
        // it does the account shows.
        let survey = match self.survey_era(&era).await {
            Err(error) if is_damage(error.kind()) => self.survey_all().await.map_err(|_| error)?,
            Ok(survey) if survey.misses_any() => match self.survey_all().await {
                Ok(all) if all.newest.id > survey.newest.id => all,
                _ => survey,
            },
            survey => survey?,
        };
        self.rebuild_from(survey, report).await
    }

    async fn rebuild_from(
        &self,
        mut survey: Survey,
        report: &mut RecoveryReport,
    ) -> Result<Option<Version>> {
        let void = survey.newest.footer.dumps_void;
        let dump = self.find_dump(&survey.epochs, void).await?;
        {
            let state = &mut *self.state.borrow_mut();
            // Checkpoints say when what is tracked is void, and there is none yet.
            state.deltas.pause();
            state.dumps_void = void;
            state.dump_in_force = dump.as_ref().map(|dump| dump.header.number);
        }
        let unmerged = dump.as_ref().filter(|dump| dump.header.number > void.mapping);
        if let Some(dump) = unmerged {
            let Survey { epochs, meta, newest, .. } = &survey;
            report.merged = self.merge(epochs, meta, newest, dump, report).await?;
        }
        let mut skip_to = None;
        if report.merged {
            let none = Log::default();
            report.pages_lost =
                self.settle_zones(&survey.epochs, &none, (Version::NEVER, Version::NEVER));
        } else if survey.clean {
            self.take_over(&survey, report)?;
        } else {
            skip_to = self.scan(&mut survey, unmerged.map(|dump| &dump.header), report).await?;
        }
        // Of one that was begun later not a page may have been readable.
        let skipped = if survey.clean { 0 } else { SKIPPED_CHECKPOINTS };
        self.state.borrow_mut().checkpoint_id = survey.highest_checkpoint + skipped;
        if let Some(dump) = unmerged {
            let next = self.state.borrow().next_version.max(dump.header.next_version);
            skip_to = skip_to.max(Some(Version(next.0 + SKIPPED_VERSIONS)));
            self.state.borrow_mut().dumps_void.mapping = dump.header.number;
        }
        if let Some(mut dump) = dump {
            if dump.header.number <= void.mapping {
                self.drop_frames_written_back(&mut dump);
            }
            self.lose_frames(&dump);
            report.pages_lost = self.state.borrow().map.lost_pages();
            (report.dump, report.frames) = (dump.header.number, dump.header.frames);
            *self.restored.borrow_mut() = dump.frames;
        }
        Ok(skip_to)
    }

    /// Takes the state over from a checkpoint behind which nothing was appended.
    fn take_over(&self, survey: &Survey, report: &mut RecoveryReport) -> Result<()> {
        let newest = &survey.newest;
        report.checkpoint = newest.id;
        report.pages_given_up = self.load(newest, &survey.epochs, &mut Vec::new())?;
        report.pages_lost =
            self.settle_zones(&survey.epochs, &Log::default(), (Version::NEVER, Version::NEVER));
        let state = &mut *self.state.borrow_mut();
        state.tracker = crate::durable::DurableTracker::new(newest.footer.durable);
        state.next_version = newest.footer.next_version;
        state.logged.covered_up_to(newest.footer.covered);
        Ok(())
    }

    /// Recovers the mapping from the newest checkpoint and what the log says since. Returns the
    /// version up to which none may be used again, where anything was found. What `kept` builds on
    /// stays.
    async fn scan(
        &self,
        survey: &mut Survey,
        kept: Option<&DumpHeader>,
        report: &mut RecoveryReport,
    ) -> Result<Option<Version>> {
        let mut log = match survey.log.take() {
            Some(log) => log,
            None => self.scan_log(survey).await?,
        };
        let Survey { newest, epochs, meta, .. } = survey;
        (report.checkpoint, report.zones_scanned) = (newest.id, log.zones_scanned);
        report.pages_given_up = self.load(newest, epochs, &mut log.dead)?;
        if let Some(dump) = kept {
            self.pin(meta, newest, dump);
        }
        log.found.sort_by_key(|found| (found.version, found.slot));
        report.changes_given_up = self.account(&log, newest.footer.covered)?;
        let (accepted, seen) = self.replay(newest, epochs, &mut log, report);
        self.mark_damaged(&mut log, accepted);
        self.undo_cleaning(epochs, &log).await?;
        report.pages_lost = self.settle_zones(epochs, &log, (newest.footer.covered, accepted));
        let state = &mut *self.state.borrow_mut();
        state.tracker = crate::durable::DurableTracker::new(accepted);
        state.next_version = newest.footer.next_version.max(accepted.next());
        // Where headers stand among the pages a reset leaves them: the first append of a zone may have
        // vanished under an old header and a later one not, so that nothing is seen of an opening
        // whose versions and epochs would be used again. A conclusion in a zone of its own is seen.
        let unseen = self.geometry.append_overhead_slots > 0;
        let seen = seen.or(unseen.then_some(newest.footer.next_version));
        Ok(seen.map(|seen| {
            let highest = seen.max(newest.footer.next_version);
            if Fault::NoVersionSkip.is_planted() {
                accepted
            } else {
                Version(highest.0 + SKIPPED_VERSIONS)
            }
        }))
    }

    /// Puts the checkpoint's map in force. What lay in a zone that was opened again later is
    /// marked lost until its copy is found. Versions in it that were not durable yet when it was begun
    /// are `known`. Returns how many pages are given up.
    fn load(
        &self,
        checkpoint: &Checkpoint,
        epochs: &[Option<(u64, u8)>],
        known: &mut Vec<VersionRange>,
    ) -> Result<u64> {
        let state = &mut *self.state.borrow_mut();
        let mut given_up = 0;
        for range in &checkpoint.damaged_map {
            for page in range.iter() {
                let (version, place) = (checkpoint.footer.covered, Place::Lost);
                state.replace(page, Entry { version, place, ..Entry::default() });
            }
            given_up += range.pages;
        }
        for (header, chunk) in &checkpoint.map {
            let entries = checkpoint::decode_map(header, chunk, !M::READS_SPARES)?;
            state.map.fetch_slots(entries.iter().filter_map(|(_, entry)| entry.place.slot()));
            for (page, mut entry) in entries {
                if let Place::At(slot) = entry.place {
                    let zone = self.geometry.zone_of(slot);
                    let intact = match epochs[zone.index()] {
                        Some((epoch, _)) => epoch <= header.epoch,
                        // What stands beside its pages cannot be read, or a copy of them is found.
                        None => state.zones.get(zone).state != ZoneState::Retired,
                    };
                    if !intact || !state.map.fits(page, &entry, slot) {
                        entry.place = Place::Lost;
                    }
                }
                if entry.version > checkpoint.footer.covered {
                    known.push(VersionRange { first: entry.version, last: entry.version });
                }
                state.replace(page, entry);
            }
        }
        self.note_checkpoint(state, checkpoint);
        Ok(given_up)
    }

    /// Accepts the longest promised prefix of the log and applies it. Returns the last version
    /// in force, and the highest that was seen where anything was.
    fn replay(
        &self,
        checkpoint: &Checkpoint,
        epochs: &[Option<(u64, u8)>],
        log: &mut Log,
        report: &mut RecoveryReport,
    ) -> (Version, Option<Version>) {
        let mut accepted = log.durable;
        let mut reached = log.durable;
        for found in &log.found {
            if found.version == reached.next() {
                reached = found.version;
            }
            if found.version == reached
                && (found.batch_last == reached || Fault::HalfBatches.is_planted())
            {
                accepted = accepted.max(reached);
            }
        }
        let rank = Rank { geometry: self.geometry, epochs };
        let state = &mut *self.state.borrow_mut();
        let mut seen = log.anything.then_some(checkpoint.footer.next_version);
        for found in &log.found {
            seen = seen.max(Some(found.version));
            if found.version > accepted {
                report.dropped += 1;
                continue;
            }
            report.replayed += u64::from(found.version > checkpoint.footer.covered);
            match &found.change {
                Change::Data { page, taken, checksum } => {
                    let (place, taken, checksum) = (Place::At(found.slot), *taken, *checksum);
                    let entry = Entry { version: found.version, place, taken, checksum };
                    state.settle(*page, entry, &rank, &mut log.originals);
                }
                Change::Records { changes, checksum } => {
                    // As for data, the latest copy is the one in force.
                    let known = state.records.get(found.version).map(|record| record.slot);
                    let slot = known.filter(|slot| rank.of(*slot) > rank.of(found.slot));
                    let slot = slot.unwrap_or(found.slot);
                    let checksum = *checksum;
                    if let Some(known) =
                        state.records.insert(found.version, OwnPage { slot, checksum })
                    {
                        state.map.set_record(known, false);
                        state.zones.remove_live(known);
                    }
                    state.map.set_record(slot, true);
                    state.zones.add_live(slot);
                    state.apply_trims(changes, found.version);
                    for change in changes {
                        let Record::Share(share) = change else { continue };
                        state.settle_share(share, found.version, &rank, &mut log.originals);
                    }
                }
            }
        }
        (accepted, seen)
    }

    /// Where zones are short, takes the copies back that a cleaning under way had made: its zone
    /// can only be closed now, and each cut would cost one. What it copied from zones that it
    /// emptied stays, but then it has given these.
    async fn undo_cleaning(&self, epochs: &[Option<(u64, u8)>], log: &Log) -> Result<()> {
        let cleaning = |(_, epoch): &(usize, &Option<(u64, u8)>)| {
            epoch.is_some_and(|(_, stream)| stream == Stream::Cleaning as u8)
        };
        let newest = epochs.iter().enumerate().filter(cleaning).max_by_key(|(_, epoch)| **epoch);
        let Some((copies, _)) = newest else { return Ok(()) };
        let copies = ZoneNo(copies as u32);
        let moves = {
            let state = self.state.borrow();
            let unused = |zone: &crate::zones::Zone| {
                zone.state != ZoneState::Retired && zone.live_slots == 0
            };
            let free = state.zones.iter().filter(|(_, zone)| unused(zone)).count();
            if free as u32 >= self.reserve_zones + self.layout.zones
                || state.zones.get(copies).live_slots == 0
            {
                return Ok(());
            }
            let emptied_in_part = |slot: &SlotNo| {
                let zone = self.geometry.zone_of(*slot);
                zone != copies && state.zones.get(zone).live_slots > 0
            };
            let mut moves = Vec::new();
            let mut slots = 0;
            for offset in 0..self.geometry.slots_per_zone {
                let slot = self.geometry.slot(copies, offset);
                slots += u32::from(state.map.pages_of(slot).next().is_some());
                for page in state.map.pages_of(slot) {
                    let version = state.map.get(page).version;
                    let mut places = log.originals.iter().filter(|original| {
                        (original.page, original.entry.version) == (page, version)
                            && emptied_in_part(&original.slot)
                            && state.map.occupant(original.slot) == Occupant::Dead
                    });
                    let Some(original) = places.next_back() else { return Ok(()) };
                    moves.push(*original);
                }
            }
            if slots != state.zones.get(copies).live_slots {
                return Ok(());
            }
            moves
        };
        for Original { page, slot, entry } in &moves {
            let (mut content, mut spare) = ([M::Page::zero()], [None]);
            let read = self.media.read_with_spares(&[*slot], &mut content, &mut spare).await;
            let ([content], [spare]) = (content, spare);
            if read.is_err() || !entry.holds(*page, &content, spare.as_ref()) {
                return Ok(());
            }
        }
        let state = &mut *self.state.borrow_mut();
        for Original { page, slot, entry } in moves {
            state.replace(page, Entry { place: Place::At(slot), ..entry });
        }
        Ok(())
    }

    /// Closes every zone that holds something and frees the others; counts lost pages.
    fn settle_zones(
        &self,
        epochs: &[Option<(u64, u8)>],
        log: &Log,
        (covered, accepted): (Version, Version),
    ) -> u64 {
        let state = &mut *self.state.borrow_mut();
        // Until the conclusion is durable, the next recovery counts these versions again.
        let mut counted = vec![false; self.geometry.zones as usize];
        for found in &log.found {
            if found.version > log.durable && found.version <= accepted {
                counted[self.geometry.zone_of(found.slot).index()] = true;
            }
        }
        let vouching = self.vouching(state, log, covered);
        for (zone, epoch) in epochs.iter().enumerate() {
            let number = ZoneNo(zone as u32);
            let zone = state.zones.get_mut(number);
            if zone.state == ZoneState::Retired {
                continue;
            }
            zone.needs_reset = true;
            let dumped = epoch.filter(|(_, stream)| *stream == Stream::Dump as u8);
            if dumped.is_some() && dumped.map(|(number, _)| number) == state.dump_in_force {
                zone.state = ZoneState::Dump;
            } else if zone.live_slots == 0 && !counted[number.index()] {
                zone.state = ZoneState::Free;
                zone.epoch = epoch.map_or(0, |(epoch, _)| epoch);
            } else {
                let (epoch, stream) = epoch.unwrap_or((0, Stream::Host as u8));
                zone.state = ZoneState::Full;
                zone.epoch = epoch;
                zone.stream = Stream::from_byte(stream);
                zone.used_slots = self.geometry.slots_per_zone;
                zone.durable_slots = zone.used_slots;
            }
        }
        let newest = epochs.iter().flatten().map(|(epoch, _)| *epoch).max().unwrap_or(0);
        // An opening of which only later appends reached the medium may not have been seen.
        state.zones.continue_epochs(newest + SKIPPED_EPOCHS);
        state.zones.rebuild_free();
        state.zones.keep_for_last(|zone| vouching[zone.index()]);
        state.map.lost_pages()
    }
}
