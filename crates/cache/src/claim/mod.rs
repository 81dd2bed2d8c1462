//! The claim of a cache on its home. It is stored on the home itself, so that nobody mounts the home by
//! mistake.
//!
//! A full home has no spare room. So its first and its last MiB, or all of a smaller home, are kept
//! XORed, sector by sector, with a text of 512 bytes, none of which is zero. Every byte there differs
//! from its true content: no file system, partition table or member of an array is recognised any more.
//! Sectors of zeros show the text in clear, for people and for `tantalum unclaim`.
//!
//! ```text
//! text       Claim: the text; names the owner of the home
//! extent     Extent: the bytes that are claimed
//! claimed    Claimed: a home as its cache sees it
//! evidence   evidence of a claim on a home
//! change     Change: puts a claim on or takes it off; can be redone from the content saved first
//! opening    opens a home, and brings its claim into the wanted state
//! unclaim    takes a claim off with nothing but the home
//! watched    Watched: a home without a claim; detects changes by others
//!   mark       the recorded state of such a home, in the journal
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
pub use claimed::{Claimed, Trust};
pub use evidence::{Evidence, claim_in, look};
pub use extent::Extent;
pub use mark::forget_marks;
pub use opening::{
    HomeOwner, accept, doubt, of_another, open_home, put_on, release, settle, take_off,
};
pub use text::{Claim, SECTOR_BYTES};
pub use unclaim::{UNDO_BYTES, unclaim};
pub use watched::{Watched, changes};

/// Maximum bytes of one read or write of a home here: 1 MiB.
const OPERATION_BYTES: usize = 1 << 20;
