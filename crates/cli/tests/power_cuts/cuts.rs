//! Power cuts at random positions of a journal: each image is opened, checked, read completely and compared with the
//! clients' history.
use crate::disk::{Disk, Honesty};
use crate::history::{Durability, History, PAGES, WriteNo, numbers_of};
use crate::journal::Journal;
use crate::rig::{config_text, served};
use crate::support::server::Server;
use crate::support::tantalum;
use std::path::{Path, PathBuf};
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Rng};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live};
use tantalum_volume::{OpenOptions, VolumeConfig, open_volume};
use tempfile::TempDir;

/// One in this many images is opened by the command line, the others by the library in this process.
const BY_COMMAND_LINE_EVERY: usize = 16;
/// One in this many images is opened twice, the first time without being closed.
const TWICE_EVERY: usize = 4;

/// The cuts to make in a journal.
pub struct Cuts {
    pub seed: u64,
    pub images: usize,
    /// No cut is before this position.
    pub from: usize,
    pub honesty: Honesty,
}

/// The result of the cuts.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Images of cuts that found writes that were not yet durable.
    pub met_pending: usize,
    /// The broken promises, with the image's number and position.
    pub violations: Vec<String>,
}

impl Cuts {
    /// The positions of the cuts, in order.
    pub fn positions(&self, journal: &Journal, rng: &mut Rng) -> Vec<usize> {
        let span = (journal.position() - self.from) as u64 + 1;
        let drawn = (0..self.images).map(|_| self.from + rng.below(span) as usize);
        let mut positions: Vec<usize> = drawn.collect();
        positions.sort_unstable();
        positions
    }

    /// Makes the images, one after the other. If `keep` is given, the first image that breaks a promise is copied there
    /// for analysis.
    pub fn make(
        &self,
        journal: &Journal,
        history: &History,
        durability: Durability,
        keep: Option<&Path>,
    ) -> Outcome {
        let folder = image_folder();
        let (image, config) = (folder.path().join("image"), folder.path().join("v.toml"));
        std::fs::write(&config, config_text(durability, &image)).expect("written");
        let mut rng = Rng::split(self.seed, "cuts");
        let mut outcome = Outcome::default();
        let mut disk = Disk::new(journal, self.honesty);
        for (number, position) in self.positions(journal, &mut rng).into_iter().enumerate() {
            disk.advance(position);
            outcome.met_pending += usize::from(disk.has_pending());
            let bytes = disk.image(&mut rng);
            place(&image, &bytes);
            let explained = open(&config, &image, number)
                .and_then(|found| history.explain(&found, position).map(|_| ()));
            if let Err(error) = explained {
                if let (Some(keep), true) = (keep, outcome.violations.is_empty()) {
                    std::fs::write(keep, &bytes).expect("written");
                }
                outcome.violations.push(format!("image {number}, cut at {position}: {error}"));
            }
        }
        outcome
    }
}

/// The path at which the first image that breaks a promise of a run is kept.
pub fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("power-cut-{name}.tantalum"))
}

/// A folder for images: in memory if possible, as syncs during an opening need not survive.
pub fn image_folder() -> TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// Makes an image as a new file that was never open: a program that another test is starting may still have inherited
/// the previous file, with its lock.
pub fn place(image: &Path, bytes: &[u8]) {
    // Before the first image there is no file.
    let _ = std::fs::remove_file(image);
    std::fs::write(image, bytes).expect("written");
}

/// Opens image `number`, checks it, and reads every page.
fn open(config: &Path, image: &Path, number: usize) -> Result<Vec<WriteNo>, String> {
    if number.is_multiple_of(BY_COMMAND_LINE_EVERY) {
        return open_by_command_line(config);
    }
    if !number.is_multiple_of(TWICE_EVERY) {
        return open_by_library(config, true);
    }
    let first = open_by_library(config, false)?;
    place(image, &std::fs::read(image).expect("read"));
    let second = open_by_library(config, true).map_err(|error| format!("opened again: {error}"))?;
    if first == second {
        return Ok(first);
    }
    Err("what one opening found the next does not".into())
}

fn open_by_command_line(config: &Path) -> Result<Vec<WriteNo>, String> {
    let checked = tantalum(&["check", config.to_str().expect("UTF-8")]);
    if checked.code != 0 {
        return Err(format!("check: {}{}", checked.out, checked.err));
    }
    let server = Server::start(config);
    let found = served(&server);
    server.terminate();
    found
}

fn open_by_library(config: &Path, closes: bool) -> Result<Vec<WriteNo>, String> {
    let config = VolumeConfig::read(config).map_err(|error| error.to_string())?;
    let live = Live::new(LiveOptions::default()).expect("an executor");
    let handle = live.clone();
    let opened = live.run(async move {
        let (volume, _) = open_volume(&handle, &config, OpenOptions::default()).await?;
        let findings = volume.check(|_, _| ()).await?;
        let mut pages = vec![PageBuf::zero(); PAGES as usize];
        volume.read(PageNo(0), &mut pages, None).await?;
        if closes {
            volume.close().await?;
        }
        Ok::<_, tantalum_base::Error>((findings, pages))
    });
    live.drop_tasks();
    let (findings, pages) = opened.map_err(|error| format!("{error:?}"))?;
    if !findings.is_empty() {
        return Err(format!("check finds {findings:?}"));
    }
    let mut bytes = Vec::with_capacity(pages.len() * PAGE_BYTES);
    pages.iter().for_each(|page| bytes.extend_from_slice(&page[..]));
    numbers_of(&bytes)
}
