//! Arrow files: the IPC file format, as Polars and pyarrow read it.

#[cfg(feature = "arrow")]
mod writer;

use super::format::{OpenRows, RowFormat};
#[cfg(feature = "arrow")]
use writer::ArrowRows;

pub(super) const FORMAT: RowFormat = RowFormat {
    name: "arrow",
    help: "An Arrow file (IPC, Feather V2). It is complete only at the end of the run",
    has_columns: true,
    is_of_end: true,
    holds_provenance: false,
    feature: Some(("Arrow", "arrow")),
    open: OPEN,
};

#[cfg(feature = "arrow")]
const OPEN: Option<OpenRows> = Some(|out, columns| Ok(Box::new(ArrowRows::new(out, &columns)?)));

#[cfg(not(feature = "arrow"))]
const OPEN: Option<OpenRows> = None;
