//! Recovery: from the medium alone, to the state that the log rule promises.
//!
//! 1. Read the first append of every zone, or of those that anchors list: its epoch and stream.
//! 2. Load the newest intact checkpoint from the meta zones; with a dump it must be the newest.
//! 3. Scan the appends since: zones opened later entirely, others after the slots that the checkpoint covers.
//! 4. Accept all up to the highest durable watermark found, then continue while no version is missing, and stop at the
//!    last whole batch. Everything after it is dropped.
//! 5. Apply the accepted changes in the order of versions; a copy is as good as its original.
//! 6. Make the result durable (a checkpoint that skips the dropped versions) before serving.
//!
//! Until step 5 it only reads: a medium that is refused stays as it was. Opened read-only, it omits step 6, and every
//! change is refused.
mod find_checkpoint;
mod find_dump;
mod home;
mod limits;
mod log_scan;
mod merge;
mod places;
mod replay;
pub(crate) mod report;
mod survey;
mod undo_cleaning;

use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Result, Version, ZoneNo};
use tantalum_media::{AppendHeader, ScannedAppend, ZoneGeometry, ZoneMedia};

use crate::cache::HomeState;
use crate::checkpoints::anchor_pages::Era;
use crate::checkpoints::anchors::Anchors;
use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::options::FtlOptions;
use crate::parts::Parts;
use crate::read::is_damage;
use crate::space::Stream;
use find_dump::FoundDump;
use limits::{Checked, Limits, senseless};
use log_scan::ScannedLog;
use report::RecoveryReport;
use survey::Survey;

/// Versions skipped after a recovery, beyond all that were found, so that a dropped change never
/// looks newer than a later one.
pub(crate) const SKIPPED_VERSIONS: u64 = 1 << 20;

/// Numbers of checkpoints skipped for the same reason.
pub(crate) const SKIPPED_CHECKPOINTS: u64 = 1 << 10;

/// Numbers of zone openings skipped for the same reason.
pub(crate) const SKIPPED_EPOCHS: u64 = 1 << 20;

/// The present opening of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Opening {
    /// Its number.
    epoch: u64,
    /// The stream that filled it.
    stream: u8,
}

impl Opening {
    /// The opening `epoch`; `None` for 0, which means none.
    fn new(epoch: u64, stream: u8) -> Option<Self> {
        (epoch > 0).then_some(Opening { epoch, stream })
    }

    /// The opening that the header of an append names.
    fn of(header: AppendHeader) -> Self {
        Opening { epoch: header.epoch, stream: header.stream }
    }

    /// The opening of a zone with these appends, which are in order. It is the opening of cleaning if any append is
    /// cleaning's: hosts may have written behind cleaning's appends, the first of which may be damaged.
    fn of_all(appends: &[ScannedAppend]) -> Option<Self> {
        let headers = || appends.iter().map(|append| append.header);
        let copies = headers().find(|header| header.stream == Stream::Cleaning as u8);
        copies.or_else(|| headers().next()).map(Opening::of)
    }
}

fn corrupt(context: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, context)
}

/// Reads a medium without changing it. All that it returns is checked: see [`limits`].
struct Reader<'a, M> {
    media: &'a M,
    geometry: ZoneGeometry,
    options: &'a FtlOptions,
    limits: Limits,
}

impl<M: ZoneMedia> Reader<'_, M> {
    /// As [`ZoneMedia::scan`]. If loss is accepted, an invalid append is left out, like a damaged one.
    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        let mut appends = self.media.scan(zone, from_offset, epoch).await?;
        let mut failure = None;
        appends.retain(|append| {
            let checked = self.limits.append(append);
            let sound = self.is_sound(checked, || {
                format!("zone {zone}, the append whose pages begin at slot {}", append.first_offset)
            });
            sound.map_err(|error| failure.get_or_insert(error)).unwrap_or(false)
        });
        failure.map_or(Ok(appends), Err)
    }

    /// As [`ZoneMedia::peek`].
    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        let header = self.media.peek(zone).await?;
        let Some(found) = header else { return Ok(None) };
        let place = || format!("zone {zone}, its first append");
        Ok(self.is_sound(self.limits.header(&found), place)?.then_some(found))
    }

    /// Whether to use the content at `place`, given the result of its check: false if it is invalid and loss is
    /// accepted.
    ///
    /// # Errors
    /// `Corrupt` if it is invalid and loss is not accepted.
    fn is_sound(&self, checked: Checked, place: impl FnOnce() -> String) -> Result<bool> {
        match checked {
            Ok(()) => Ok(true),
            Err(_) if self.options.accept_loss => Ok(false),
            Err(why) => Err(senseless(place(), &why)),
        }
    }
}

/// A recovery in progress: the parts, as rebuilt in memory.
struct Recovery<'a, M: ZoneMedia> {
    reader: Reader<'a, M>,
    parts: Parts,
    report: RecoveryReport,
    /// Frames of the dump in force, in the order of the host's writes.
    frames: Vec<(PageNo, M::Page)>,
    /// The changes that the home of a cache has.
    home: Option<HomeState>,
    is_behind_home: bool,
}

/// An FTL that a recovery has rebuilt in memory; the medium is unchanged.
pub struct Rebuilt<M: ZoneMedia> {
    ftl: Rc<Ftl<M>>,
    skip_to: Option<Version>,
    report: RecoveryReport,
    is_behind_home: bool,
}

impl<M: ZoneMedia> Rebuilt<M> {
    /// Whether the home of a cache has later changes than the log: then everything is taken from there. Changes that
    /// home still lacks must be written to it before the recovery is concluded, as nothing records them afterwards.
    pub fn is_behind_home(&self) -> bool {
        self.is_behind_home
    }

    /// Makes the rebuilt state durable, unless the FTL is read-only.
    ///
    /// # Errors
    /// As for [`Ftl::recover`].
    pub async fn conclude(self) -> Result<(Rc<Ftl<M>>, RecoveryReport)> {
        let Rebuilt { ftl, skip_to, mut report, .. } = self;
        if ftl.options.read_only {
            ftl.refuse_changes();
            return Ok((ftl, report));
        }
        ftl.conclude_recovery(skip_to).await?;
        if ftl.options.accept_loss {
            report.pages_unreadable = ftl.give_up_unreadable().await?;
            report.pages_lost = ftl.parts.borrow().map.lost_pages();
        }
        Ok((ftl, report))
    }
}

impl<M: ZoneMedia> Ftl<M> {
    /// Opens the FTL on `media`.
    ///
    /// # Errors
    /// `Corrupt` if durable content is damaged so that a wrong version might be served, or if there is no intact
    /// checkpoint; `InvalidInput` if `options` differ from those it was made with. In these cases nothing on the medium
    /// is changed.
    pub async fn recover(media: M, options: FtlOptions) -> Result<(Rc<Self>, RecoveryReport)> {
        Self::rebuild(media, options, None).await?.conclude().await
    }

    /// The first half of [`recover`](Self::recover), which changes nothing on the medium. For a cache, `home` describes
    /// the changes that its home has, if that is known. If home has later changes than the log, the end of the log is
    /// damaged, and all pages are taken from home.
    ///
    /// # Errors
    /// `Corrupt` also if home is ahead of the log and it is unknown which changes it lacks.
    pub async fn rebuild(
        media: M,
        options: FtlOptions,
        home: Option<HomeState>,
    ) -> Result<Rebuilt<M>> {
        // Zones that were retired since may lead to `OutOfSpace` later, but not now.
        options.check(&media.geometry(), 0)?;
        let mut recovery = Recovery::new(&media, &options, home)?;
        if !options.read_only {
            // Content that a killed process left may be readable but not durable.
            media.sync().await?;
        }
        let skip_to = recovery.rebuild().await?;
        let Recovery { parts, report, frames, is_behind_home, .. } = recovery;
        let ftl = Rc::new(Ftl::new(media, options, parts));
        if let Some(dumper) = &ftl.dumper {
            dumper.frames.replace(frames);
        }
        Ok(Rebuilt { ftl, skip_to, report, is_behind_home })
    }

    /// Makes the result of a recovery durable: versions up to `skip_to` are never used.
    async fn conclude_recovery(&self, skip_to: Option<Version>) -> Result<()> {
        // The cleaner does not run yet: without space for a checkpoint this must fail, not wait.
        self.parts.borrow_mut().relocation.stuck = true;
        if Fault::DumpClearedEarly.is_planted() && self.has_dump() {
            self.clear_dump_area().await?;
        }
        self.set_dump_zones_aside()?;
        if let Some(skip_to) = skip_to {
            self.checkpoint_recovery(skip_to).await?;
        }
        {
            let parts = &mut *self.parts.borrow_mut();
            parts.relocation.stuck = false;
            parts.space.rebuild_free();
            parts.track_changes();
        }
        if !self.has_dump() {
            self.clear_dump_area().await?;
        }
        Ok(())
    }
}

impl Parts {
    /// Tracks changes from here on: the checkpoint in force holds the whole mapping.
    fn track_changes(&mut self) {
        if let Some(dump) = &mut self.dump {
            // Higher than any number of an earlier opening's delta pages.
            let first_number = self.space.epoch() << 24;
            dump.log.resume(self.checkpoints.begun, first_number);
        }
    }
}

impl<'a, M: ZoneMedia> Recovery<'a, M> {
    fn new(media: &'a M, options: &'a FtlOptions, home: Option<HomeState>) -> Result<Self> {
        let geometry = media.geometry();
        let reader = Reader { media, geometry, options, limits: Limits::new(&geometry, options) };
        let mut parts = Parts::new(media, options)?;
        if let Some(dump) = &mut parts.dump {
            // No checkpoint exists yet that could make tracked changes void.
            dump.log.pause();
        }
        let (report, frames) = (RecoveryReport::default(), Vec::new());
        Ok(Recovery { reader, parts, report, frames, home, is_behind_home: false })
    }

    /// Rebuilds the state from the medium. Returns the version up to which no version may be used again, if the result
    /// must be made durable.
    async fn rebuild(&mut self) -> Result<Option<Version>> {
        let mut survey = match self.find_era().await? {
            Some(era) => self.survey_from(&era).await?,
            None => self.reader.survey_all().await?,
        };
        let void = survey.newest.footer.dumps_void;
        let dump = self.reader.find_dump(&survey.openings, void).await?;
        self.parts.checkpoints.dumps_void = void;
        if let (Some(part), Some(found)) = (&mut self.parts.dump, &dump) {
            part.in_force = Some(found.header.number);
        }
        let unmerged = dump.as_ref().filter(|dump| dump.header.number > void.mapping);
        let mut skip_to = None;
        if let Some(dump) = unmerged {
            self.merge(&survey, dump).await?;
        } else if survey.clean {
            self.take_over(&survey)?;
        } else {
            skip_to = self.replay_log(&mut survey).await?;
        }
        self.parts.checkpoints.found_clean = survey.clean;
        self.parts.space.found_covered(&survey.covered_slots);
        // All pages of a checkpoint that was begun later may be unreadable.
        let skipped = if survey.clean { 0 } else { SKIPPED_CHECKPOINTS };
        self.parts.checkpoints.begun = survey.highest_checkpoint + skipped;
        if let Some(dump) = unmerged {
            let next = self.parts.log.next_version().max(dump.header.next_version);
            skip_to = skip_to.max(Some(Version(next.0 + SKIPPED_VERSIONS)));
            self.parts.checkpoints.dumps_void.mapping = dump.header.number;
        }
        if let Some(dump) = dump {
            self.take_frames(dump, void.mapping);
        }
        skip_to = skip_to.max(self.follow_home()?);
        self.report.pages_lost = self.parts.map.lost_pages();
        Ok(skip_to)
    }

    /// The era of the medium's anchors, if they are used and complete.
    async fn find_era(&mut self) -> Result<Option<Era>> {
        if self.parts.checkpoints.anchors.is_none() {
            return Ok(None);
        }
        let (anchors, era) = Anchors::read(self.reader.media).await?;
        self.parts.checkpoints.anchors = Some(anchors);
        Ok(era)
    }

    /// Surveys the zones that the anchors of `era` list; all zones if the anchors or their checkpoint are damaged. Then
    /// an older checkpoint, or one that was not in force yet, may suffice: accounting for all versions shows whether it
    /// does.
    async fn survey_from(&self, era: &Era) -> Result<Survey> {
        match self.reader.survey_era(era).await {
            Err(error) if is_damage(error.kind()) => {
                let all = self.reader.survey_all().await;
                all.map_err(|other| if is_damage(other.kind()) { error } else { other })
            }
            Ok(survey) if survey.misses_any() => match self.reader.survey_all().await {
                Ok(all) if all.newest.id > survey.newest.id => Ok(all),
                Err(error) if !is_damage(error.kind()) => Err(error),
                _ => Ok(survey),
            },
            survey => survey,
        }
    }

    /// Takes the state from a checkpoint that covers every change.
    fn take_over(&mut self, survey: &Survey) -> Result<()> {
        let newest = &survey.newest;
        self.report.checkpoint = newest.id;
        self.report.pages_given_up = self.load(newest, &survey.openings, &mut Vec::new())?;
        self.close_zones(&survey.openings, &ScannedLog::default(), Version::NEVER, Version::NEVER);
        let log = &mut self.parts.log;
        log.go_on(newest.footer.durable, newest.footer.next_version);
        log.uncovered.covered_up_to(newest.footer.covered);
        Ok(())
    }

    /// Keeps the frames of `dump`, to be written back. The mapping of dumps up to `void` is in a
    /// checkpoint.
    fn take_frames(&mut self, mut dump: FoundDump<M::Page>, void: u64) {
        if dump.header.number <= void {
            self.drop_frames_written_back(&mut dump);
        }
        self.lose_frames(&dump);
        (self.report.dump, self.report.frames) = (dump.header.number, dump.header.frames);
        self.frames = dump.frames;
    }
}
