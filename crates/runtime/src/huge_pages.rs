//! Huge pages for large tables.

/// Bytes of a huge page. If huge pages are larger, a smaller part of the memory gets them.
#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Advises the operating system that all of `memory` will be used soon and should be in huge pages. A huge page is
/// faulted in once instead of 512 small ones. Call this before the memory is touched. It has no other effect.
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
        // A kernel without huge pages returns an error.
        let _ = advised;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}
