//! A device that a provider runs: a round trip for each command, and an allowance of commands and bytes a second.
//!
//! ```text
//! meter    the time at which the next command may begin
//! device   commands: wait for the allowance, then for the round trip
//! blocks   its content
//! ```
//!
//! This models the volumes that clouds rent out. Providers do not document the hardware, and it is not modelled: there is no
//! cleaning of flash, and times do not vary. An acknowledged write is durable (`on_ack`), so a flush is only a round trip.
mod blocks;
mod device;
mod meter;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use device::Metered;
pub use meter::Rate;

use tantalum_base::{Error, ErrorKind, Result};

/// How the allowance is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// Reads and writes share one allowance.
    Shared(Rate),
    /// Reads and writes have an allowance each.
    Apart {
        /// For reads.
        reads: Rate,
        /// For writes.
        writes: Rate,
    },
}

/// Options of such a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeteredOptions {
    /// Number of logical pages.
    pub pages: u64,
    /// Round trip of a read, in nanoseconds.
    pub read_ns: u64,
    /// Round trip of a write or a trim, in nanoseconds.
    pub write_ns: u64,
    /// Round trip of a flush, in nanoseconds. A flush uses no allowance.
    pub flush_ns: u64,
    /// The allowance of commands and bytes.
    pub allowance: Allowance,
    /// Maximum number of pages in one command; a longer one counts as several.
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
