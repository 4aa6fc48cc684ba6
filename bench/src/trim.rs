//! Memory that is free.

/// Gives memory that is free back to the system, so that what a process has is what it needs.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "it is a function of the C library")]
        // SAFETY: it has no conditions, and takes the locks of the allocator itself.
        let _given = unsafe { libc::malloc_trim(0) };
    }
}
