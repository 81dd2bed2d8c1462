//! A client: issues its commands one after the other, checks what it reads, and keeps the history.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, TxId};

use super::bench::Errors;
use super::command::{Command, Effect};
use super::damage::Damage;
use super::excuses::{Latching, tells_of_damage};
use super::history::History;
use super::holds::Holds;
use super::life::Violation;
use super::text::command_text;
use super::verify::{Sure, check_read, may_fail};
use tantalum_media::PowerCut;

/// One client of a device.
pub(super) struct Client<D: PageDevice> {
    pub(super) device: Rc<D>,
    pub(super) number: u32,
    pub(super) history: Rc<RefCell<History<D::Page>>>,
    /// The pages that transactions of all clients hold.
    pub(super) holds: Rc<Holds>,
    pub(super) violations: Rc<RefCell<Vec<Violation>>>,
    /// Whether the power has been cut: an answer after that reaches nobody.
    pub(super) is_cut: Rc<dyn Fn() -> bool>,
    /// Whether a trim is all or nothing.
    pub(super) trims_are_atomic: bool,
    /// The failures that may latch the device.
    pub(super) may_latch: Latching,
    /// The errors that pass.
    pub(super) errors: Errors,
    /// Whether a write in a transaction may be refused for lack of room.
    pub(super) transactions_may_fill: bool,
    /// The damage to the medium.
    pub(super) damage: Damage<D::Page>,
    /// Maximum number of states that a check visits.
    pub(super) states_max: usize,
}

impl<D: PageDevice> Client<D> {
    /// Issues `commands`; each comes with the number of its first content.
    pub(super) async fn run(self, commands: Vec<(Command, u64)>) {
        for (command, first_content) in commands {
            let performed = self.perform(&command, first_content).await;
            self.check_power();
            if let Err(error) = performed
                && !self.damage.latching(self.may_latch).excuses(&error)
            {
                let text = command_text(&command);
                let violation = format!("client {}, {text}: {error:?}", self.number);
                self.violations.borrow_mut().push(Violation(violation));
            }
        }
    }

    async fn perform(&self, command: &Command, first_content: u64) -> Result<()> {
        let device = &*self.device;
        let contents = command.contents(first_content);
        match command {
            Command::Write(range) => {
                let pages = self.make(&contents);
                let entry = self.issue(Effect::Set(contents), command);
                let write = device.write(range.first, &pages, None);
                let written = self.change(None, &[*range], write).await?;
                self.ended(entry, written)
            }
            Command::Commit(_) | Command::Abort(_) => self.transact(command, contents).await,
            Command::Trim(range) if self.trims_are_atomic => {
                let entry = self.issue(Effect::Clear(*range), command);
                let trimmed = self.change(None, &[*range], device.trim(*range)).await?;
                self.ended(entry, trimmed)
            }
            Command::Trim(range) => self.trim_page_by_page(*range, command).await,
            Command::Share(pairs) => {
                let issued = self.history.borrow_mut().now();
                let entry = self.issue(Effect::Share(pairs.clone()), command);
                let lefts: Vec<_> = pairs.iter().map(|(to, _)| PageRange::new(*to, 1)).collect();
                let shared = self.change(None, &lefts, device.share(pairs)).await?;
                if let Err(error) = &shared
                    && tells_of_damage(error)
                    && pairs.iter().any(|(_, from)| self.may_fail(PageRange::new(*from, 1), issued))
                {
                    self.history.borrow_mut().refuse(entry);
                    return Ok(());
                }
                let is_shared = shared.is_ok();
                self.ended(entry, shared)?;
                if is_shared {
                    self.history.borrow_mut().flushed(issued);
                }
                Ok(())
            }
            Command::Flush => {
                let issued = self.history.borrow_mut().now();
                let flushed = device.flush().await;
                self.check_power();
                flushed?;
                self.history.borrow_mut().flushed(issued);
                Ok(())
            }
            Command::Read(range) => self.read(*range).await,
        }
    }

    /// A trim whose pages take effect in any order, some of them or all.
    async fn trim_page_by_page(&self, range: PageRange, command: &Command) -> Result<()> {
        let entries: Vec<usize> = range
            .iter()
            .map(|page| {
                let label = format!("client {}, {}", self.number, command_text(command));
                let effect = Effect::Clear(PageRange::new(page, 1));
                self.history.borrow_mut().issue_apart(effect, label)
            })
            .collect();
        let trimmed = self.change(None, &[range], self.device.trim(range)).await?;
        entries.into_iter().try_for_each(|entry| self.ended(entry, trimmed.clone()))
    }

    /// Makes a change of `pages`, in the transaction `tx` or outside, and checks that it was refused if and only if another
    /// transaction holds one of them.
    async fn change(
        &self,
        tx: Option<TxId>,
        pages: &[PageRange],
        change: impl Future<Output = Result<()>>,
    ) -> Result<Result<()>> {
        let issued = self.history.borrow_mut().now();
        let done = change.await;
        self.check_power();
        let answered = self.history.borrow_mut().now();
        self.holds.check(tx, pages, (issued, answered), &done)?;
        Ok(done)
    }

    /// Ends `tx` by `end`.
    async fn end(&self, tx: TxId, end: impl Future<Output = Result<()>>) -> Result<()> {
        self.holds.ending(tx, self.history.borrow_mut().now());
        let ended = end.await;
        self.check_power();
        self.holds.ended(tx, self.history.borrow_mut().now());
        ended
    }

    fn make(&self, contents: &[(PageNo, u64)]) -> Vec<D::Page> {
        let mut history = self.history.borrow_mut();
        contents.iter().map(|(page, number)| history.write(*page, *number)).collect()
    }

    fn issue(&self, effect: Effect, command: &Command) -> usize {
        let is_durable = matches!(command, Command::Commit(_) | Command::Share(_));
        let label = format!("client {}, {}", self.number, command_text(command));
        self.history.borrow_mut().issue(self.number, effect, is_durable, label)
    }

    /// Records how a command ended. A refused command did nothing.
    fn ended(&self, entry: usize, result: Result<()>) -> Result<()> {
        self.check_power();
        let mut history = self.history.borrow_mut();
        match result {
            Ok(()) => history.acknowledge(entry),
            Err(error) if is_refusal(&error) => history.refuse(entry),
            Err(error) => {
                history.failed(entry);
                return Err(error);
            }
        }
        Ok(())
    }

    /// A transaction; its writes must be visible inside it and not outside.
    async fn transact(&self, command: &Command, contents: Vec<(PageNo, u64)>) -> Result<()> {
        let device = &*self.device;
        let tx = match device.begin().await {
            Ok(tx) => tx,
            Err(error) if is_refusal(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        for ((page, _), made) in contents.iter().zip(self.make(&contents)) {
            match self.write_in(tx, *page, made).await {
                Ok(()) => {}
                Err(error)
                    if is_refusal(&error)
                        || self.is_full(&error)
                        || self.is_lost(&error, &contents) =>
                {
                    return self.end(tx, device.abort(tx)).await;
                }
                Err(error) => return Err(error),
            }
        }
        if !matches!(command, Command::Commit(_)) {
            return self.end(tx, device.abort(tx)).await;
        }
        let entry = self.issue(Effect::Set(contents.clone()), command);
        let committed = self.end(tx, device.commit(tx)).await;
        // If commits wait for the home, the transaction may have taken effect, and its pages may have been damaged on their
        // way to the home.
        if let Err(error) = &committed
            && !self.may_latch.awaits_home
            && self.is_lost(error, &contents)
        {
            self.history.borrow_mut().refuse(entry);
            return Ok(());
        }
        self.ended(entry, committed)
    }

    /// Whether `error` reports damage to one of `contents`, which a transaction had put on the medium.
    fn is_lost(&self, error: &Error, contents: &[(PageNo, u64)]) -> bool {
        let lost = || self.damage.excuses_in(&self.history.borrow()).lost;
        tells_of_damage(error) && contents.iter().any(|(_, number)| lost().contains(number))
    }

    /// Whether `error`, of a write in a transaction, reports that the open transactions are too large.
    fn is_full(&self, error: &Error) -> bool {
        self.transactions_may_fill && error.kind() == ErrorKind::OutOfSpace
    }

    async fn write_in(&self, tx: TxId, page: PageNo, made: D::Page) -> Result<()> {
        let device = &*self.device;
        self.holds.taking(tx, page, self.history.borrow_mut().now());
        let write = device.write(page, std::slice::from_ref(&made), Some(tx));
        self.change(Some(tx), &[PageRange::new(page, 1)], write).await??;
        self.holds.taken(tx, self.history.borrow_mut().now());
        self.read(PageRange::new(page, 1)).await?;
        let mut seen = [D::Page::zero()];
        device.read(page, &mut seen, Some(tx)).await?;
        if seen[0] == made {
            return Ok(());
        }
        let context = format!("page {page} inside of its transaction is {:?}", seen[0]);
        Err(Error::new(ErrorKind::Checksum, context))
    }

    /// Whether damage allows that a read of `range` issued at `issued` fails.
    fn may_fail(&self, range: PageRange, issued: u64) -> bool {
        let history = self.history.borrow();
        let durability = self.device.limits().durability;
        let mut lost = self.damage.excuses_in(&history).lost;
        if self.may_latch.io {
            // Contents that a failed sync was to make durable may be gone.
            lost.extend(history.not_promised(durability));
        }
        may_fail(&history, range, issued, &lost, durability, self.states_max)
    }

    /// Stops everything if the power has been cut.
    fn check_power(&self) {
        if (self.is_cut)() {
            PowerCut::unwind();
        }
    }

    /// Reads `range` and checks the result.
    ///
    /// # Errors
    /// The error of the device, if damage does not excuse it.
    pub(super) async fn read(&self, range: PageRange) -> Result<()> {
        let issued = self.history.borrow_mut().now();
        let failed = self.errors.failed_reads();
        let mut seen = vec![D::Page::zero(); range.pages as usize];
        let read = self.device.read(range.first, &mut seen, None).await;
        self.check_power();
        if let Err(error) = read {
            if self.may_latch.passing && !self.may_latch.io {
                self.errors.check_failed_since(failed, &error)?;
            }
            let is_excused = tells_of_damage(&error) && self.may_fail(range, issued);
            return if is_excused { Ok(()) } else { Err(error) };
        }
        let mut history = self.history.borrow_mut();
        let durability = self.device.limits().durability;
        let checked = check_read(&history, range, issued, &seen, durability, self.states_max)?;
        history.undecided += u64::from(checked == Sure::Undecided);
        Ok(())
    }
}

/// Errors that a device may return to one client among several, with nothing done.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Conflict | ErrorKind::TooManyTransactions | ErrorKind::Unmapped
    )
}
