//! Records of a file as they are written there, for a second pass that copies some of them: columns that are
//! added to them, and parts of their texts that are cut out.

mod cut;
mod mark;

pub(crate) use cut::TextPlace;
#[cfg(feature = "parquet")]
pub(crate) use cut::cut_text;
#[cfg(feature = "parquet")]
pub(crate) use mark::taken;
pub(crate) use mark::{MarkColumns, RecordChoice, RowMark, marked_csv_header, push_csv_mark, push_json_mark};
