//! LIRS-WSR: LIRS in which a dirty page gets a second chance at both places where it could lose.
//!
//! Source: Jung, Yoon, Shim, Park, Kang, Cha, "LIRS-WSR: integration of LIRS and writes sequence
//! reordering for flash memory", ICCSA 2007 (LNCS 4705), with the rule of cold flags as in Jung,
//! Shim, Park, Kang, Cha, "LRU-WSR", IEEE Transactions on Consumer Electronics 54(3), 2008. A dirty
//! page whose cold flag is clear gets the flag and stays: a LIR page that is to become HIR goes to
//! the top of the stack instead, a HIR page that is to be evicted to the end of the queue. A use
//! clears the flag. Built from the papers' abstracts and the rule that LRU-WSR states, not beside
//! the authors' program: where they differ in a detail, this is the rule applied twice.
//!
//! Weak where reads matter as much as writes: clean pages go in the dirty ones' place, the HIR
//! frames may all be taken by dirty pages, and a miss may walk over many of them. Otherwise as LIRS.
use crate::lirs::{Lirs, Reluctance};

/// Dirty pages stay once, unless they are cold already.
#[derive(Debug)]
pub struct WriteSequenceReordering;

impl Reluctance for WriteSequenceReordering {
    #[inline]
    fn stays(is_dirty: bool, is_cold: bool) -> bool {
        is_dirty && !is_cold
    }
}

/// LIRS with writes sequence reordering.
pub type LirsWsr<T> = Lirs<T, WriteSequenceReordering>;
