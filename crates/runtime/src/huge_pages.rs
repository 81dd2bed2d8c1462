//! Large tables in few pages of memory.

/// Bytes of a huge page; where they are larger it only tells fewer of them.
#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Tells the operating system that all of `memory` will be used soon, and had better be in huge pages, which are
/// brought in once for each 512 small ones. To be called before the memory is touched; changes nothing else.
pub fn prefer_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        let bytes = memory.as_mut_ptr_range();
        let first = (bytes.start as usize).next_multiple_of(HUGE_PAGE_BYTES);
        let end = bytes.end as usize / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        if first >= end {
            return;
        }
        let skipped = first - bytes.start as usize;
        let start = bytes.start.cast::<std::ffi::c_void>().wrapping_byte_add(skipped);
        // SAFETY: the range lies within `memory`, and this advice leaves content and access as they are.
        #[expect(unsafe_code, reason = "other advice would take the memory away")]
        let advised =
            unsafe { rustix::mm::madvise(start, end - first, rustix::mm::Advice::LinuxHugepage) };
        // A kernel without them says so.
        let _ = advised;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}
