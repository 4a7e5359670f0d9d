//! The `dupflow` command.

use std::process::ExitCode;

use dupflow::cli;

/// Records are made by one worker and freed by another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::print_stderr, reason = "the one place where an error is told")]
fn main() -> ExitCode {
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
