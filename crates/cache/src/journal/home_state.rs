//! The state of the home, as recorded in the journal's head.
use super::claims::Standing;
use super::head::{self, COPIES_AT, Found, Head, LACKED_PAGES_MAX, State};
use super::reading::Window;
use super::{Closed, FIRST_CONTENT_BYTE, Journal, Phase};
use crate::fault_points::Fault;
use crate::refusals::NO_JOURNAL;
use std::cell::Cell;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageNo, Payload, Result, ResultExt, Version};
use tantalum_ftl::{HomeState, Lacks};
use tantalum_media::BlockStore;
use tantalum_runtime::life_cycle::is_damage;
use tantalum_runtime::sync::Semaphore;

/// The in-memory state of the head's copies.
pub(super) struct Heads {
    pub(super) sequence: Cell<u64>,
    /// The copy that is older or damaged, if one is.
    pub(super) write_first: Cell<usize>,
    /// Whether the head on the store may say that an epoch is committed.
    pub(super) say_committed: Cell<bool>,
    /// The state of the epoch, as in the head.
    pub(super) state: Cell<State>,
    /// The claim on the home.
    pub(super) claim: Cell<Standing>,
    pub(super) turn: Semaphore,
}

impl<S: BlockStore, P: Payload> Journal<S, P> {
    /// The state of the home once the last committed epoch is on it, if known.
    pub fn home_state(&self) -> Option<HomeState> {
        let Closed { version, .. } = self.last.get()?;
        (version > Version::NEVER)
            .then(|| HomeState { version, lacks: self.lacks.borrow().clone() })
    }

    /// Whether pages were destaged without an epoch since the last epoch. Then only the flash knows
    /// which changes the home lacks.
    pub fn is_without_epochs(&self) -> bool {
        *self.lacks.borrow() == Lacks::ChangesUnknown
    }

    /// Records, before the commit, the pages that should be in the epoch but could not be read.
    pub fn lacks(&self, pages: impl Iterator<Item = PageNo>) {
        let pages: Vec<PageNo> = pages.take(LACKED_PAGES_MAX + 1).collect();
        self.lacks.replace(match pages.len() {
            0..=LACKED_PAGES_MAX => Lacks::Pages(pages),
            _ => Lacks::PagesUnknown,
        });
    }

    /// Frees the memory of the committed epoch, which has been applied. The store keeps the epoch
    /// until something is appended to the next one.
    pub fn forget(&self) {
        self.window.replace(Window::empty());
        let mut phase = self.phase.borrow_mut();
        if let Phase::Committed(_) = &*phase {
            *phase = Phase::Idle;
        }
    }

    /// Records durably in the store that the home has the committed epoch, and frees the memory of
    /// that epoch.
    ///
    /// # Errors
    /// Those of the store; the record may be written despite an error.
    pub async fn mark_applied(&self) -> Result<()> {
        self.forget();
        self.give_up_committed().await
    }

    /// Whether the journal says that the home is an image of its own, without an owner.
    pub fn is_released(&self) -> bool {
        matches!(self.heads.state.get(), State::Released(_))
    }

    /// Records durably that the flash may have content that the home lacks. Must precede the first
    /// acknowledgement of a volume that was opened.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn own_home(&self) -> Result<()> {
        if self.is_released() && !Fault::HomeNotClaimed.is_planted() {
            self.write_head(self.last.get().map_or(State::Empty, State::GivenUp)).await?;
        }
        Ok(())
    }

    /// Gives up the committed epoch, which has been applied and synced, because the home will be
    /// used without this journal. The journal's content must never be written there again. From now
    /// on another cache may be put over the home. The claim has already been taken off the home.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn give_up(&self) -> Result<()> {
        self.forget();
        // The content of the home may change from now on.
        let unknown = |last| Closed { version: Version::NEVER, ..last };
        self.last.set(self.last.get().map(unknown));
        let _turn = self.heads.turn.acquire(1).await;
        self.heads.say_committed.set(false);
        self.heads.claim.set(Standing::None);
        self.write_head(State::Released(self.last.get().unwrap_or_default())).await
    }

    /// Records durably that the home may have any change up to `version`, and gives up the
    /// committed epoch. Must precede destaging without an epoch. All changes up to `version` are
    /// durable in the flash; [`Version::NEVER`] if the version is unknown.
    ///
    /// # Errors
    /// Those of the store; the record may be written despite an error.
    pub async fn home_may_have(&self, version: Version) -> Result<()> {
        self.forget();
        let last = self.last.get().unwrap_or_default();
        self.last.set(Some(Closed { version, ..last }));
        self.lacks.replace(Lacks::ChangesUnknown);
        let _turn = self.heads.turn.acquire(1).await;
        self.heads.say_committed.set(false);
        self.write_head(self.last.get().map_or(State::Empty, State::GivenUp)).await
    }

    /// Records in the store that nothing is committed, before something is overwritten.
    pub(super) async fn give_up_committed(&self) -> Result<()> {
        let _turn = self.heads.turn.acquire(1).await;
        if self.heads.say_committed.get() && !Fault::CommittedWrittenOver.is_planted() {
            self.write_head(self.last.get().map_or(State::Empty, State::GivenUp)).await?;
            self.heads.say_committed.set(false);
        }
        Ok(())
    }

    pub(super) async fn write_head(&self, state: State) -> Result<()> {
        let Heads { sequence, write_first, .. } = &self.heads;
        sequence.set(sequence.get() + 1);
        let lacks = self.lacks.borrow().clone();
        let claim = self.heads.claim.get();
        let head = Head { pair: self.pair, sequence: sequence.get(), state, lacks, claim };
        let together = Fault::HeadsWrittenTogether.is_planted();
        let first = write_first.get();
        self.write_copy(first, &head, !together).await?;
        write_first.set(1 - first);
        self.write_copy(1 - first, &head, !together).await?;
        if together {
            self.store.sync().await?;
        }
        self.heads.state.set(head.state);
        Ok(())
    }

    async fn write_copy(&self, copy: usize, head: &Head, durable: bool) -> Result<()> {
        let mut buf = self.store.buffer(PAGE_BYTES);
        head.encode(&mut buf);
        let written = self.store.write(COPIES_AT[copy], buf, durable).await;
        self.store.recycle(written.context(|| "writing the head of the journal")?);
        Ok(())
    }
}

/// Whether opening a journal failed because there is none, or a damaged one. False if the store
/// could not be read: it may have an intact journal.
pub fn is_no_journal(error: &Error) -> bool {
    error.kind() == ErrorKind::Format || is_damage(error.kind())
}

/// Reads the head: the newer of its copies. If a copy cannot be read, this fails: that copy may be
/// the newer one.
pub(super) async fn read_head<S: BlockStore>(store: &S) -> Result<Found> {
    if store.bytes() < FIRST_CONTENT_BYTE {
        let context = format!("{NO_JOURNAL}: it has {} bytes", store.bytes());
        return Err(NO_JOURNAL.error(ErrorKind::Format, context));
    }
    let mut copies = [Vec::new(), Vec::new()];
    for (copy, at) in copies.iter_mut().zip(COPIES_AT) {
        let read = store.read(at, store.buffer(PAGE_BYTES)).await;
        let buf = read.context(|| "reading the head of the journal")?;
        *copy = buf.to_vec();
        store.recycle(buf);
    }
    head::decide([&copies[0], &copies[1]])
}
