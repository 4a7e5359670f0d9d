//! The `dupflow` command.

use std::process::ExitCode;

use dupflow::cli;

/// Records are made by one worker and freed by another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keeps freed pages for half a second, instead of 10 ms, before the system gets them back: an epoch frees about what the next one
/// needs, and every page that was given back is cleared by the system when it is touched again. What a structure leaves behind when it
/// grows still goes back. `MIMALLOC_PURGE_DELAY` in the environment is stronger.
#[expect(unsafe_code, reason = "an option of the allocator, which is written in C")]
fn keep_freed_pages() {
    /// `mi_option_purge_delay` of mimalloc 2; milliseconds.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: the function writes one number, before there is another thread; of an option that does not exist it does nothing.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, 500) }
}

#[expect(clippy::print_stderr, reason = "the one place where an error is told")]
fn main() -> ExitCode {
    keep_freed_pages();
    match cli::run(std::env::args_os()) {
        Ok(code) => code,
        Err(error) => {
            let code = cli::exit_code(&error);
            if code != 0 {
                eprintln!("error: {error:#}");
            }
            ExitCode::from(code)
        }
    }
}
