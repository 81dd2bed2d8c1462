//! What a cache is for. It may be changed while it runs: every mode goes through the flash's log, so that a change
//! is all or nothing in each of them; they differ in what an acknowledgement promises, and in what stays.
use tantalum_base::{ErrorKind, PageDevice, PageNo, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::{Runtime, yield_now};

use crate::fault_points::Fault;
use crate::refusals::NO_MODE;
use crate::tiered::{Tiered, invalid};

/// Clean pages that are marked before others have a turn.
const UNUSED_AT_ONCE: u32 = 4096;

/// What a cache is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A change is acknowledged when the flash has it, and goes home later.
    #[default]
    WriteBack,
    /// A change is acknowledged when home, or the journal beside it, has it too: nothing is lost with the flash.
    WriteThrough,
    /// The same; and what was written does not stay for long, as what is read does.
    ReadCache,
    /// The same; and no page is read from the flash that home has.
    Off,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 4] = [Mode::WriteBack, Mode::WriteThrough, Mode::ReadCache, Mode::Off];

    /// As users write it.
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
    /// `InvalidInput` with the names there are.
    pub fn parse(name: &str) -> Result<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            let names = Mode::ALL.map(Mode::name).join(", ");
            NO_MODE.error(ErrorKind::InvalidInput, format!("{name:?} {NO_MODE}: there are {names}"))
        })
    }

    /// Whether a change is acknowledged only when it is safe without the flash.
    pub fn waits_for_home(self) -> bool {
        self != Mode::WriteBack
    }

    /// Whether a page stays in the flash when home has it.
    pub fn keeps_written(self) -> bool {
        matches!(self, Mode::WriteBack | Mode::WriteThrough)
    }

    /// Whether a page that is read from home comes into the flash.
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
    /// What the cache is for, now.
    pub fn mode(&self) -> Mode {
        self.mode.get()
    }

    /// Changes what the cache is for. When it returns, what was acknowledged before keeps the promise of the new
    /// mode, too: nothing of it is newer in the flash than at home, but in write-back. How much is left
    /// meanwhile is in [`statistics`](Self::statistics).
    ///
    /// # Errors
    /// `InvalidInput` where it is open read-only. The home's: the new mode is in force, and what is left goes home when that
    /// works again; repeat it to wait for that.
    pub async fn set_mode(&self, mode: Mode) -> Result<()> {
        if self.drive.is_read_only() {
            return Err(invalid("it is open read-only: nothing comes into the cache or leaves it"));
        }
        self.mode.set(mode);
        if mode.waits_for_home() {
            self.write_home().await?;
        }
        self.use_none().await;
        Ok(())
    }

    /// Has all clean pages go before others, where it is off.
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

    /// Which round has to end before a change is safe without the flash that is accepted in this step. Where the
    /// mode waits for it, that round takes all there is.
    pub(crate) fn round_of_changes(&self) -> u64 {
        let round = self.destager.round_after_this();
        if self.mode().waits_for_home() {
            self.destager.want(round);
        }
        round
    }

    /// Waits until round `round` is safe without the flash, where the mode wants that.
    ///
    /// # Errors
    /// The home's. The flash has the change all the same, and it goes home when that works again.
    pub(crate) async fn until_safe(&self, round: u64) -> Result<()> {
        if !self.mode().waits_for_home() || Fault::HomeNotAwaited.is_planted() {
            return Ok(());
        }
        self.wait_for_round(round).await
    }
}
