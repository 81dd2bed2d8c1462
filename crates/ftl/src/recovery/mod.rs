//! Recovery: from media alone, to the state that the log rule promises.
//!
//! 1. Look at the first append of every zone: its epoch and stream. Or at those alone that anchors name.
//! 2. Load the newest checkpoint from the meta zones; where it is damaged, that is the end.
//! 3. Scan what was appended since: zones opened later whole, others behind what is covered.
//! 4. Take the highest durable watermark found, then go on while no version is missing, and stop
//!    at the last whole batch. What lies behind is dropped.
//! 5. Apply what was accepted in the order of versions; a copy is as good as its original.
//! 6. Make the conclusion durable (a checkpoint that skips the dropped versions) before serving.
//!
//! Up to 5 it only reads: a medium that is refused stays as it was. Opened to be read only, it leaves
//! 6 out, and every change is refused.
mod find_checkpoint;
mod find_dump;
mod log_scan;
mod merge;
mod places;
mod replay;
pub(crate) mod report;
mod survey;
mod undo_cleaning;

use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Result, Version};
use tantalum_media::{AppendHeader, ZoneGeometry, ZoneMedia};

use crate::checkpoints::anchor_pages::Era;
use crate::checkpoints::anchors::Anchors;
use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::options::FtlOptions;
use crate::parts::Parts;
use find_checkpoint::is_damage;
use find_dump::FoundDump;
use log_scan::ScannedLog;
use report::RecoveryReport;
use survey::Survey;

/// Versions left out after a recovery, behind everything seen: what was dropped can never be
/// taken for something newer.
const SKIPPED_VERSIONS: u64 = 1 << 20;

/// Numbers of checkpoints left out likewise.
const SKIPPED_CHECKPOINTS: u64 = 1 << 10;

/// Zone openings left out likewise.
const SKIPPED_EPOCHS: u64 = 1 << 20;

/// What a zone holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Opening {
    /// The zone opening in which it was filled.
    epoch: u64,
    /// The stream that filled it.
    stream: u8,
}

impl Opening {
    /// That of `epoch`, which is 0 where there was none.
    fn new(epoch: u64, stream: u8) -> Option<Self> {
        (epoch > 0).then_some(Opening { epoch, stream })
    }

    /// That which the header of an append names.
    fn of(header: AppendHeader) -> Self {
        Opening { epoch: header.epoch, stream: header.stream }
    }
}

fn corrupt(context: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, context)
}

/// Reads a medium, and changes nothing.
struct Reader<'a, M> {
    media: &'a M,
    geometry: ZoneGeometry,
    options: &'a FtlOptions,
}

/// A recovery under way: what was read, put together in memory.
struct Recovery<'a, M: ZoneMedia> {
    reader: Reader<'a, M>,
    parts: Parts,
    report: RecoveryReport,
    /// Frames of the dump in force, in the order of the host's writes.
    frames: Vec<(PageNo, M::Page)>,
}

impl<M: ZoneMedia> Ftl<M> {
    /// Opens the FTL that `media` holds.
    ///
    /// # Errors
    /// `Corrupt` where durable content is damaged so that a wrong version might be served, or
    /// where there is no whole checkpoint; `InvalidInput` where `options` are not those it was
    /// made with. Then nothing on the medium was changed.
    pub async fn recover(media: M, options: FtlOptions) -> Result<(Rc<Self>, RecoveryReport)> {
        // Zones that were retired since it was made are missed where space is needed, not before.
        options.check(&media.geometry(), 0)?;
        let mut recovery = Recovery::new(&media, &options)?;
        if !options.read_only {
            // What a killed process left may be readable and not yet durable.
            media.sync().await?;
        }
        let skip_to = recovery.rebuild().await?;
        let Recovery { parts, report, frames, .. } = recovery;
        let ftl = Rc::new(Ftl::new(media, options, parts));
        if let Some(dumper) = &ftl.dumper {
            dumper.frames.replace(frames);
        }
        if options.read_only {
            ftl.refuse_changes();
        } else {
            ftl.conclude_recovery(skip_to).await?;
        }
        Ok((ftl, report))
    }

    /// Makes what a recovery concluded durable: versions up to `skip_to` are never used.
    async fn conclude_recovery(&self, skip_to: Option<Version>) -> Result<()> {
        // Nobody cleans yet: where there is no space for a checkpoint, that is the end.
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
    /// The checkpoint in force holds all of the mapping: changes are tracked from here on.
    fn track_changes(&mut self) {
        if let Some(dump) = &mut self.dump {
            // No opening of the volume before this one can have numbered delta pages so high.
            let first_number = self.space.epoch() << 24;
            dump.log.resume(self.checkpoints.begun, first_number);
        }
    }
}

impl<'a, M: ZoneMedia> Recovery<'a, M> {
    fn new(media: &'a M, options: &'a FtlOptions) -> Result<Self> {
        let reader = Reader { media, geometry: media.geometry(), options };
        let mut parts = Parts::new(media, options)?;
        if let Some(dump) = &mut parts.dump {
            // Checkpoints say when what is tracked is void, and there is none yet.
            dump.log.pause();
        }
        Ok(Recovery { reader, parts, report: RecoveryReport::default(), frames: Vec::new() })
    }

    /// Rebuilds in memory what the medium holds. Returns the version up to which none may be used again,
    /// where a conclusion must be made durable.
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
        if let Some(dump) = unmerged {
            self.report.merged = self.merge(&survey, dump).await?;
        }
        let mut skip_to = None;
        if self.report.merged {
            self.close_zones(
                &survey.openings,
                &ScannedLog::default(),
                Version::NEVER,
                Version::NEVER,
            );
        } else if survey.clean {
            self.take_over(&survey)?;
        } else {
            skip_to = self.replay_log(&mut survey, unmerged.map(|dump| &dump.header)).await?;
        }
        // Of one that was begun later not a page may have been readable.
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
        self.report.pages_lost = self.parts.map.lost_pages();
        Ok(skip_to)
    }

    /// The era that the medium's anchors tell of, where they are used and all there.
    async fn find_era(&mut self) -> Result<Option<Era>> {
        if self.parts.checkpoints.anchors.is_none() {
            return Ok(None);
        }
        let (anchors, era) = Anchors::read(self.reader.media).await?;
        self.parts.checkpoints.anchors = Some(anchors);
        Ok(era)
    }

    /// Where the anchors of `era` say to begin; where they or the checkpoint that they name are damaged,
    /// where all zones do. Then an older checkpoint, or one that was not in force yet, may be enough:
    /// whether it is the account shows.
    async fn survey_from(&self, era: &Era) -> Result<Survey> {
        match self.reader.survey_era(era).await {
            Err(error) if is_damage(error.kind()) => {
                self.reader.survey_all().await.map_err(|_| error)
            }
            Ok(survey) if survey.misses_any() => match self.reader.survey_all().await {
                Ok(all) if all.newest.id > survey.newest.id => Ok(all),
                _ => Ok(survey),
            },
            survey => survey,
        }
    }

    /// Takes the state over from a checkpoint behind which nothing was appended.
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
