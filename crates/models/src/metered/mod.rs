//! A device that somebody else runs: a round trip for each command, and an allowance of commands and bytes a second.
//!
//! ```text
//! meter    when the next command may begin
//! device   commands: wait for the allowance, then for the round trip
//! blocks   its content
//! ```
//!
//! A cloud sells its volumes so. It does not tell of the hardware behind them, and nothing of that is modelled: no flash is cleaned,
//! and nothing varies. An acknowledged write is durable (`on_ack`), so that a flush is a round trip alone.
mod blocks;
mod device;
mod meter;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use device::Metered;
pub use meter::Rate;

use tantalum_base::{Error, ErrorKind, Result};

/// Who may do how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// Reads and writes take from one.
    Shared(Rate),
    /// Reads have one, and writes another.
    Apart {
        /// Of reads.
        reads: Rate,
        /// Of writes.
        writes: Rate,
    },
}

/// Options of such a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeteredOptions {
    /// Pages that it offers.
    pub pages: u64,
    /// Round trip of a read, in nanoseconds.
    pub read_ns: u64,
    /// Round trip of a write or a trim, in nanoseconds.
    pub write_ns: u64,
    /// Round trip of a flush, in nanoseconds. It takes nothing from the allowance.
    pub flush_ns: u64,
    /// The allowance of commands and bytes.
    pub allowance: Allowance,
    /// Pages that count as one command; a longer one counts as several.
    pub command_pages: u32,
}

impl MeteredOptions {
    fn check(&self) -> Result<()> {
        let rates = match self.allowance {
            Allowance::Shared(rate) => [rate, rate],
            Allowance::Apart { reads, writes } => [reads, writes],
        };
        let is_positive = |rate: Rate| rate.commands_per_second > 0 && rate.bytes_per_second > 0;
        if self.pages == 0 || self.command_pages == 0 || !rates.into_iter().all(is_positive) {
            let problem = "a device with an allowance needs pages, and rates of at least 1";
            return Err(Error::new(ErrorKind::InvalidInput, format!("{problem}: {self:?}")));
        }
        Ok(())
    }
}
