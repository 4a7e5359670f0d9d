//! The units of a file, decompressed: one stream.

mod codec;
mod gzip;
mod reader;
mod window;

pub(super) use reader::{StreamPlace, UnitReader};
pub(super) use window::find;
