//! What a journal says of its home, in its head.
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

/// What is known of the head's copies.
pub(super) struct Heads {
    pub(super) sequence: Cell<u64>,
    /// The copy that is older or damaged, if one is.
    pub(super) write_first: Cell<usize>,
    /// Whether the store may say that an epoch is committed.
    pub(super) say_committed: Cell<bool>,
    /// What it says of epochs.
    pub(super) state: Cell<State>,
    /// The claim on the home.
    pub(super) claim: Cell<Standing>,
    pub(super) turn: Semaphore,
}

impl<S: BlockStore, P: Payload> Journal<S, P> {
    /// What the home has when the last committed epoch is there, if that is known.
    pub fn home_state(&self) -> Option<HomeState> {
        let Closed { version, .. } = self.last.get()?;
        (version > Version::NEVER)
            .then(|| HomeState { version, lacks: self.lacks.borrow().clone() })
    }

    /// Whether pages went home one by one since the last epoch: nothing but the flash knows what home lacks.
    pub fn is_without_epochs(&self) -> bool {
        *self.lacks.borrow() == Lacks::ChangesUnknown
    }

    /// Notes, before it is committed, the pages that the epoch should have and that could not be read.
    pub fn lacks(&self, pages: impl Iterator<Item = PageNo>) {
        let pages: Vec<PageNo> = pages.take(LACKED_PAGES_MAX + 1).collect();
        self.lacks.replace(match pages.len() {
            0..=LACKED_PAGES_MAX => Lacks::Pages(pages),
            _ => Lacks::PagesUnknown,
        });
    }

    /// Frees what memory holds of the committed epoch, which has been applied. The store keeps it until
    /// something is appended to the next one.
    pub fn forget(&self) {
        self.window.replace(Window::empty());
        let mut phase = self.phase.borrow_mut();
        if let Phase::Committed(_) = &*phase {
            *phase = Phase::Idle;
        }
    }

    /// Makes the store say that home has the committed epoch, durably, and frees what memory holds of it.
    ///
    /// # Errors
    /// The store's: it may be said all the same.
    pub async fn mark_applied(&self) -> Result<()> {
        self.forget();
        self.give_up_committed().await
    }

    /// Whether it says that home is an image of its own, which belongs to nobody.
    pub fn is_released(&self) -> bool {
        matches!(self.heads.state.get(), State::Released(_))
    }

    /// Says, durably, before a volume that was opened acknowledges anything, that its flash may have what home lacks.
    ///
    /// # Errors
    /// The store's.
    pub async fn own_home(&self) -> Result<()> {
        if self.is_released() && !Fault::HomeNotClaimed.is_planted() {
            self.write_head(self.last.get().map_or(State::Empty, State::GivenUp)).await?;
        }
        Ok(())
    }

    /// Gives the committed epoch up, which has been applied and synced: home is about to be used without this
    /// journal, and what it holds must never go there again. Another cache may be put over home from now on. The claim
    /// has been taken off home.
    ///
    /// # Errors
    /// The store's.
    pub async fn give_up(&self) -> Result<()> {
        self.forget();
        // What home has may change from now on.
        let unknown = |last| Closed { version: Version::NEVER, ..last };
        self.last.set(self.last.get().map(unknown));
        let _turn = self.heads.turn.acquire(1).await;
        self.heads.say_committed.set(false);
        self.heads.claim.set(Standing::None);
        self.write_head(State::Released(self.last.get().unwrap_or_default())).await
    }

    /// Says, durably, before pages go home without an epoch, that home may have any change up to `version`, which is
    /// durable in the flash, and gives the committed epoch up. [`Version::NEVER`] where that is not known.
    ///
    /// # Errors
    /// The store's: it may be said all the same.
    pub async fn home_may_have(&self, version: Version) -> Result<()> {
        self.forget();
        let last = self.last.get().unwrap_or_default();
        self.last.set(Some(Closed { version, ..last }));
        self.lacks.replace(Lacks::ChangesUnknown);
        let _turn = self.heads.turn.acquire(1).await;
        self.heads.say_committed.set(false);
        self.write_head(self.last.get().map_or(State::Empty, State::GivenUp)).await
    }

    /// Makes the store say that nothing is committed, before something is written over.
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

/// Whether opening a journal has failed because there is none, or a damaged one; where the store could not be read there may
/// be one that is whole.
pub fn is_no_journal(error: &Error) -> bool {
    error.kind() == ErrorKind::Format || is_damage(error.kind())
}

/// Reads the head: the newer of its copies. Where one cannot be read it may be the newer one, so that neither counts.
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
