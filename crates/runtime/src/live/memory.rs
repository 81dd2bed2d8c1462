//! Memory that the program has freed but its allocator keeps.

/// Returns as much unused memory as possible to the operating system. glibc's allocator keeps memory that lies
/// between two used blocks; after many small blocks that may be nearly all of it. This may take tens of milliseconds
/// per GiB and blocks the calling thread. Other C libraries do this by themselves, or never.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "the standard library has no name for it")]
        // SAFETY: this is its declaration in malloc.h; it may be called at any time by any thread.
        unsafe extern "C" {
            safe fn malloc_trim(pad_bytes: usize) -> std::ffi::c_int;
        }
        // It returns whether any memory was released.
        let _ = malloc_trim(0);
    }
}
