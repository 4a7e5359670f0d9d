//! libFuzzer on one of the targets, named by `DUPFLOW_FUZZ`.

#![no_main]

#[path = "../targets.rs"]
mod targets;

use std::panic::{set_hook, take_hook};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<String> = LazyLock::new(|| {
    let target = std::env::var("DUPFLOW_FUZZ").unwrap_or_default();
    assert!(
        targets::ALL.contains(&target.as_str()),
        "DUPFLOW_FUZZ is {target:?}, and none of {:?}",
        targets::ALL
    );
    target
});

/// Crates whose panics the program catches and reports or works around; these panics are not findings.
const CAUGHT: [&str; 4] = ["/parquet-", "/thrift-", "/bytes-", "/dom_"];

fuzz_target!(
    init: {
        // libFuzzer's hook ends the process even if a panic would be caught.
        let fails = take_hook();
        set_hook(Box::new(move |panic| {
            let is_caught = |at: &std::panic::Location<'_>| CAUGHT.iter().any(|of| at.file().contains(of));
            if !panic.location().is_some_and(is_caught) {
                fails(panic);
            }
        }));
    },
    |bytes: &[u8]| targets::run(&TARGET, bytes)
);
