//! LIRS-WSR: LIRS with a second chance for dirty pages at both places where a page could lose its
//! rank.
//!
//! Source: Jung, Yoon, Shim, Park, Kang, Cha, "LIRS-WSR: integration of LIRS and writes sequence
//! reordering for flash memory", ICCSA 2007 (LNCS 4705), with the rule of cold flags as in Jung,
//! Shim, Park, Kang, Cha, "LRU-WSR", IEEE Transactions on Consumer Electronics 54(3), 2008. A dirty
//! page whose cold flag is clear gets the flag and stays. If it is a LIR page that would become
//! HIR, it moves to the top of the stack; if it is a HIR page that would be evicted, it moves to
//! the end of the queue. A use clears the flag. This was built from the papers' abstracts and
//! LRU-WSR's rule, without a comparison with the authors' program: where details differ, this is
//! the rule applied twice.
//!
//! Weak if reads matter as much as writes: clean pages are evicted instead of dirty ones, dirty
//! pages may take all HIR frames, and a miss may walk over many of them. Otherwise as LIRS.
use crate::lirs::{Lirs, Reluctance};

/// Dirty pages stay once, unless they are already cold.
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
