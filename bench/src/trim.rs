//! Returns free memory to the system.

/// Returns free memory to the system, so that the resident size of the process is what it needs.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "it is a function of the C library")]
        // SAFETY: `malloc_trim` has no preconditions and takes the locks of the allocator itself.
        let _given = unsafe { libc::malloc_trim(0) };
    }
}
