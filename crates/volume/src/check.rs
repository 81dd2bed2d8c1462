//! Checks a volume for all problems without changing it.
use tantalum_base::Result;
use tantalum_ftl::RecoveryReport;
use tantalum_media::block_store::StoreCounters;
use tantalum_runtime::life_cycle::is_damage;
use tantalum_runtime::{DevicePart, Finding, LifeCycle, Live};

use crate::config::{Kind, VolumeConfig};
use crate::flash::{open_flash, read_copies, within_data};
use crate::lost_flash::refuse_blank_flash;
use crate::open::open_tiered_volume;
use crate::open_options::OpenOptions;
use crate::store::open_store;
use crate::superblock::Superblock;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// Problems of the structures in force, each with its place; empty if the volume is sound.
    pub findings: Vec<Finding>,
    /// Damage in structures that are not in force: none of the volume's content is affected.
    pub not_in_force: Vec<Finding>,
    /// The superblock in force, if there is one.
    pub superblock: Option<Superblock>,
    /// The result of a recovery in memory. `None` if damage prevents opening the volume; nothing behind that damage
    /// was checked.
    pub recovery: Option<RecoveryReport>,
}

impl CheckReport {
    fn of(
        findings: Vec<Finding>,
        superblock: Option<Superblock>,
        recovery: Option<RecoveryReport>,
    ) -> Self {
        let (findings, not_in_force) = findings.into_iter().partition(|found| found.in_force);
        CheckReport { findings, not_in_force, superblock, recovery }
    }
}

/// Checks both copies of the superblock, recovers the volume in memory, walks every structure and reads every zone
/// that holds anything in force. For a tiered volume it also checks the journal. Nothing is written; others may read
/// at the same time. Calls `progress` with (slots read, slots in these zones).
///
/// # Errors
/// If there is nothing to check: `Locked` if another process has the volume open for writing; `Format` if the store
/// is no volume, has another version, was cut short, or has other sizes than `config`; `Io`.
pub async fn check_volume(
    live: &Live,
    config: &VolumeConfig,
    progress: impl FnMut(u64, u64),
) -> Result<CheckReport> {
    let within =
        |error: tantalum_base::Error| error.wrap(format!("checking {}", config.path.display()));
    let options = OpenOptions::READ_ONLY;
    let mut config = config.without_buffer();
    // The medium is checked, not the system's page cache.
    config.media.system_cache = Some(false);
    let config = &config;
    let store =
        open_store(live, config, options, &StoreCounters::default()).await.map_err(within)?;
    if config.kind == Kind::Tiered {
        refuse_blank_flash(live, &store, config).await.map_err(within)?;
    }
    let in_data = within_data(config);
    let copies = read_copies(&store).await.map_err(&in_data).map_err(within)?;
    let mut findings = copies.problems();
    let superblock = copies.in_force();
    let stopped = |findings, superblock| Ok(CheckReport::of(findings, superblock, None));
    let superblock = match superblock {
        Ok(superblock) => superblock,
        Err(error) if is_damage(error.kind()) => return stopped(findings, None),
        Err(error) => return Err(within(in_data(error))),
    };
    let checked = match config.kind {
        Kind::Flash => match open_flash(live, store, config, options).await {
            Ok((volume, report)) => Ok((volume.check(progress).await, report)),
            Err(error) => Err(error),
        },
        Kind::Tiered => {
            drop(store);
            match open_tiered_volume(live, config, options).await {
                Ok((volume, report)) => Ok((volume.check(progress).await, report)),
                Err(error) => Err(error),
            }
        }
    };
    let (found, report) = match checked {
        Ok(checked) => checked,
        Err(error) if is_damage(error.kind()) => {
            let problem = format!("it cannot be opened: {error}");
            findings.push(Finding::new(DevicePart::Log, "log and checkpoints", problem));
            return stopped(findings, Some(superblock));
        }
        Err(error) => return Err(within(error)),
    };
    findings.extend(found.map_err(within)?);
    Ok(CheckReport::of(findings, Some(superblock), Some(report.recovery)))
}
