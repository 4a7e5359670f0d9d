//! The `dupflow` command.

use std::process::ExitCode;

use dupflow::cli;
use tracing_subscriber::util::SubscriberInitExt;

/// Records are often allocated by one worker and freed by another, which is slow with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Disables transparent huge pages. The allocator requests them, and a run that uses a small part of each
/// page pays for the whole page: 61 MB where 29 are in use for 10,000 pages, and 371 MB instead of 301 for
/// 470,000 documents, at no less CPU (November 2026).
fn without_huge_pages() {
    #[cfg(target_os = "linux")]
    // A kernel without this setting has no huge pages to disable.
    rustix::thread::disable_transparent_huge_pages(true).unwrap_or(());
}

/// Makes a file that reaches the limit of its size (`ulimit -f`) an error of the write, and not the end of
/// the process without a message.
fn without_file_size_signal() {
    #[cfg(unix)]
    // Without the handler the process ends as before.
    drop(signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default()));
}

fn main() -> ExitCode {
    without_huge_pages();
    without_file_size_signal();
    // The first and only subscriber of the process.
    ExitCode::from(cli::main(std::env::args_os(), &|messages| drop(messages.try_init())))
}
