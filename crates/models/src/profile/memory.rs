//! Checks that this machine has the memory for a device's tables before they are made: a failed
//! allocation ends the program, without a word about the requested device.
use tantalum_base::size::human_bytes;
use tantalum_base::{Error, ErrorKind, Result};

/// Minimum bytes of the mapping per logical page.
const MAPPING_BYTES_A_PAGE: u64 = 6;
/// Bytes of the mapping per physical slot.
const MAPPING_BYTES_A_SLOT: u64 = 4;
/// Minimum bytes of an empty frame of a write cache.
const FRAME_BYTES: u64 = 64;

/// Checks that there is memory for the device called `name`, with `pages` logical pages, `slots`
/// physical slots and `frames` frames in its caches.
///
/// # Errors
/// `InvalidInput` if this machine cannot provide so much memory.
pub(super) fn check(name: &str, pages: u64, slots: u64, frames: u64) -> Result<()> {
    let bytes = pages * MAPPING_BYTES_A_PAGE + slots * MAPPING_BYTES_A_SLOT + frames * FRAME_BYTES;
    let fits =
        usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if fits {
        return Ok(());
    }
    let context = format!(
        "{name}: its tables alone take {} of memory, more than this machine gives; a smaller \
         capacity or cache takes less",
        human_bytes(bytes)
    );
    Err(Error::new(ErrorKind::InvalidInput, context))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_gives_is_refused() {
        check("small", 1000, 1000, 1000).unwrap();
        for (pages, slots, frames) in [(1 << 56, 0, 0), (0, 1 << 56, 0), (0, 0, 1 << 56)] {
            let error = check("large", pages, slots, frames).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("large: its tables alone take"), "{error}");
        }
    }
}
