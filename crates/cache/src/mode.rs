//! The modes of a cache. The mode may be changed at run time. In every mode changes go through the
//! flash's log, so that each is all or nothing. The modes differ in the promise of an
//! acknowledgement, and in the pages that stay in the flash.
use tantalum_base::{ErrorKind, PageDevice, PageNo, Result, ResultExt};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::{Runtime, yield_now};

use crate::fault_points::Fault;
use crate::refusals::NO_MODE;
use crate::tiered::{Tiered, invalid};

/// Number of clean pages that are marked before other tasks get a turn.
const UNUSED_AT_ONCE: u32 = 4096;

/// The mode of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A change is acknowledged when the flash has it, and is destaged later.
    #[default]
    WriteBack,
    /// A change is acknowledged when the home, or the journal beside it, has it too: nothing is
    /// lost with the flash.
    WriteThrough,
    /// As `WriteThrough`, but written pages do not stay in the flash once the home has them. Only
    /// pages that are read stay.
    ReadCache,
    /// As `ReadCache`, but pages that the home has are read from there, and are not admitted to the
    /// flash.
    Off,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 4] = [Mode::WriteBack, Mode::WriteThrough, Mode::ReadCache, Mode::Off];

    /// The name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::WriteBack => "write-back",
            Mode::WriteThrough => "write-through",
            Mode::ReadCache => "read-cache",
            Mode::Off => "off",
        }
    }

    /// The mode of this name.
    ///
    /// # Errors
    /// `InvalidInput` with the valid names.
    pub fn parse(name: &str) -> Result<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            let names = Mode::ALL.map(Mode::name).join(", ");
            NO_MODE.error(
                ErrorKind::InvalidInput,
                format!("{name:?} {NO_MODE}: the modes are {names}"),
            )
        })
    }

    /// Whether a change is acknowledged only when it is safe without the flash.
    pub fn waits_for_home(self) -> bool {
        self != Mode::WriteBack
    }

    /// Whether a written page stays in the flash once the home has it.
    pub fn keeps_written(self) -> bool {
        matches!(self, Mode::WriteBack | Mode::WriteThrough)
    }

    /// Whether pages read from the home are admitted to the flash.
    pub fn admits_reads(self) -> bool {
        self != Mode::Off
    }
}

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// The present mode.
    pub fn mode(&self) -> Mode {
        self.mode.get()
    }

    /// Changes the mode. When this returns, changes acknowledged before also keep the promise of
    /// the new mode: except in write-back, none of them is newer in the flash than on the home. The
    /// number of pages left meanwhile is in [`statistics`](Self::statistics).
    ///
    /// # Errors
    /// `InvalidInput` if it is open read-only. Those of the home: the new mode is in force, and the
    /// rest is destaged when the home works again; repeat the call to wait for that.
    pub async fn set_mode(&self, mode: Mode) -> Result<()> {
        if self.drive.is_read_only() {
            return Err(invalid("it is open read-only: no page enters or leaves the cache"));
        }
        self.mode.set(mode);
        if mode.waits_for_home() {
            self.write_home().await.context(|| {
                format!(
                    "the mode is {} from now on; pages acknowledged before are not on the home yet: they are destaged when the home \
                     can be written again (repeat the command to wait for that)",
                    mode.name()
                )
            })?;
        }
        self.use_none().await;
        Ok(())
    }

    /// In mode `Off`, marks all clean pages to be evicted before others.
    async fn use_none(&self) {
        let ftl = self.drive.ftl();
        let mut next = PageNo(0);
        let mut marked = 0_u32;
        while self.mode() == Mode::Off
            && let Some(page) = ftl.next_clean(next)
        {
            ftl.unused([page]);
            next = PageNo(page.0 + 1);
            marked += 1;
            if marked.is_multiple_of(UNUSED_AT_ONCE) {
                yield_now().await;
            }
        }
    }

    /// The round that must end before a change accepted in this step is safe without the flash. If
    /// changes wait for the home in this mode, that round takes everything dirty.
    pub(crate) fn round_of_changes(&self) -> u64 {
        let round = self.destager.round_after_this();
        if self.mode().waits_for_home() {
            self.destager.want(round);
        }
        round
    }

    /// Waits until round `round` is safe without the flash, if the mode requires that.
    ///
    /// # Errors
    /// Those of the home. The flash has the change nevertheless, and destages it when the home
    /// works again.
    pub(crate) async fn until_safe(&self, round: u64) -> Result<()> {
        if !self.mode().waits_for_home() || Fault::HomeNotAwaited.is_planted() {
            return Ok(());
        }
        self.wait_for_round(round).await
    }
}
