//! The claim of a cache on its home, which lies on the home itself: nothing mounts it by mistake.
//!
//! A full home has no spare room. So its first and its last MiB, all of a smaller home, are kept XORed, sector by sector, with one
//! text of 512 bytes of which none is zero. Every byte there differs from what it stands for: no file system, partition table or
//! member of anything is known any more. Where sectors hold zeros the text shows in clear, for people and for `tantalum unclaim`.
//!
//! ```text
//! text       Claim: the text; whose the home is
//! extent     Extent: which bytes are claimed
//! claimed    Claimed: a home as its cache sees it
//! evidence   what a home shows of a claim
//! change     Change: a claim is put on or taken off, so that it can be redone from what was saved first
//! opening    a home is opened, and its claim is as it should be
//! unclaim    the same from the home alone
//! watched    Watched: a home that has no claim, and whether somebody changed it
//!   mark       what it looked like, in the journal
//! ```
mod change;
mod claimed;
mod evidence;
mod extent;
mod mark;
mod opening;
mod text;
mod unclaim;
mod watched;

pub use change::Change;
pub(crate) use change::Record;
pub use claimed::Claimed;
pub use evidence::{Evidence, claim_in, look};
pub use extent::Extent;
pub use mark::forget_marks;
pub use opening::{HomeOwner, open_home, put_on, release, settle, take_off};
pub use text::{Claim, SECTOR_BYTES};
pub use unclaim::{UNDO_BYTES, unclaim};
pub use watched::{Watched, check_unchanged};

/// Longest read and write of a home here: 1 MiB.
const OPERATION_BYTES: usize = 1 << 20;
