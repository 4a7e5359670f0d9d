//! Panics of a library as messages.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a library's function returns; a panic becomes a message. `what` is the format that it reads.
pub(crate) fn caught<T>(what: &str, read: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic: Box<dyn Any + Send>| {
        let message = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        format!("the reader of {what} panicked: {message}")
    })
}
