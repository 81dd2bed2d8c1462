//! The requests that a device accepts: a scenario beyond them is a mistake of its author, not a
//! broken promise.
use tantalum_base::{Error, ErrorKind, Limits, Result};

use super::command::Command;
use super::life::Life;
use super::text::command_text;

impl Life {
    /// Checks every command against the limits of the device.
    ///
    /// # Errors
    /// `InvalidInput`, which names the first command beyond them.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let clients = self.power_ons.iter().flat_map(|power_on| &power_on.clients);
        for command in clients.flatten() {
            check(command, limits).map_err(|error| {
                let context = format!("replay: {:?}: {error}", command_text(command));
                Error::new(ErrorKind::InvalidInput, context)
            })?;
        }
        Ok(())
    }
}

fn check(command: &Command, limits: &Limits) -> Result<()> {
    let at_most = |what: &str, pages: u64, most: u32| match pages > u64::from(most) {
        true => {
            let context = format!("{what} of {pages} pages is over the limit of {most}");
            Err(Error::new(ErrorKind::TooLarge, context))
        }
        false => Ok(()),
    };
    match command {
        Command::Write(range) => at_most("a write", range.pages, limits.atomic_write_pages_max),
        Command::Commit(_) | Command::Abort(_) if limits.transactions_max == 0 => {
            Err(Error::new(ErrorKind::Unsupported, "this device has no transactions"))
        }
        Command::Commit(pages) | Command::Abort(pages) => {
            at_most("a transaction", pages.len() as u64, limits.transaction_pages_max)
        }
        Command::Share(pairs) => limits.check_share(pairs),
        _ => Ok(()),
    }
}
