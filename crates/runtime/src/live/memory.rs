//! Memory that the program has let go of and its allocator keeps.

/// Gives memory that is not in use back to the operating system, all that the allocator can: glibc's
/// keeps what lies between two blocks in use, which after many small ones may be nearly all of it.
/// May take tens of milliseconds a GiB, in which the calling thread does nothing else. Other C libraries do
/// this by themselves, or never.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "the standard library has no name for it")]
        // SAFETY: this is its declaration in malloc.h; it may be called at any time by any thread.
        unsafe extern "C" {
            safe fn malloc_trim(pad_bytes: usize) -> std::ffi::c_int;
        }
        // It tells whether there was any.
        let _ = malloc_trim(0);
    }
}
