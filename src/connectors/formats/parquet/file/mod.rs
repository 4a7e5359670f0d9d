//! Reads Parquet files, column by column.
//!
//! A file -> its row groups, each read independently, so that several threads can read them and damage is
//! limited to one group. A column is a leaf of the schema, named by its dotted path. The levels `list` and
//! `element` between a list and its elements may be omitted in a path. The elements of a list are joined by
//! line ends; as given features they are a JSON list.
//!
//! A bad row is kept as a JSON object: its number in the file, the values that could be read, and the reason.
//!
//! Damage inside a page is noticed by the page's checksum, if the file has them, else only if its compression
//! notices it. A panic of the `parquet` crate counts as damage that ends the row group.
//!
//! The crate allocates memory for the sizes stated in a file. Therefore those sizes are checked against the
//! file's bytes first: by `footer` for the metadata, and by `pages` for page headers and the counts inside
//! pages (`lengths`), both over `thrift`. `codec` decompresses no more than the stated size.

mod bytes;
mod codec;
mod column;
mod copy;
mod footer;
mod group;
mod lengths;
mod objects;
mod pages;
mod thrift;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;

pub(crate) use self::copy::{ParquetCopy, ParquetTarget};
pub(crate) use self::objects::objects;

use self::bytes::Chunks;
use self::codec::PageCodec;
use self::column::LeafColumn;
use self::group::{GroupRows, caught};
use self::pages::HeldBytes;
use super::super::bad_record::{BadRecord, RecordPlace};
use super::super::columns::{GivenColumn, KeptRow, ReadColumns};
use super::super::parallel::{ReadableParts, RowResult, each_record};
use super::super::part::TablePart;
use super::super::rows::{Damage, WantedColumns};
use super::super::storage::RandomAccess;

/// A file and what its footer says.
pub(crate) struct ParquetFile {
    file: Arc<Chunks>,
    about: ParquetMetaData,
    leaves: Leaves,
    given: Option<GivenColumn>,
    /// The leaves that are encrypted.
    encrypted: BTreeSet<usize>,
    /// What a table says of it.
    part: Option<Arc<TablePart>>,
}

/// The indices of the wanted columns.
#[derive(Clone, Debug)]
struct Leaves {
    id: Option<usize>,
    text: usize,
    has_text: bool,
    ts: Option<usize>,
    op: Option<usize>,
    fields: Vec<Option<usize>>,
}

impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile").field("leaves", &self.leaves).finish_non_exhaustive()
    }
}

impl ParquetFile {
    /// Reads the footer of a file.
    ///
    /// # Errors
    /// If the file cannot be read, or lacks a required column; the message lists the leaves that it has.
    pub(crate) fn open(file: Arc<dyn RandomAccess>, columns: &WantedColumns) -> Result<Self, Damage> {
        let damage = |reason, cause: String| Damage {
            reason,
            head: KeptRow::new(None, reason, Some(&cause)).line(),
            cause: Some(cause),
            place: RecordPlace::Whole,
            ends: true,
        };
        let file = Arc::new(Chunks(file));
        let (about, encrypted) =
            caught(|| footer::read(&file)).map_err(|cause| damage(BadRecord::Unreadable, cause))?;
        let schema = about.file_metadata().schema_descr();
        let part = columns.part.as_deref();
        let find = |name: &str| {
            let in_file = part.map_or(Some(name), |part| part.in_file(name))?;
            column::find(schema, in_file)
        };
        let names: Vec<_> =
            schema.columns().iter().map(|leaf| format!("{:?}", leaf.path().string())).collect();
        if let Some((reason, cause)) = columns.missing(|name| find(name).is_some(), &names) {
            return Err(damage(reason, cause));
        }
        // Of a file that is older than the column, another one says how many rows there are.
        let (has_text, text) = find(&columns.text).map_or((false, 0), |leaf| (true, leaf));
        if columns.given.is_some() && has_text && schema.column(text).max_rep_level() > 1 {
            let cause = format!("the column {:?} holds lists of lists, which are no features", columns.text);
            return Err(damage(BadRecord::BadFeatures, cause));
        }
        let fields = columns.fields.iter().map(|field| find(field)).collect();
        let id = columns.id.as_deref().and_then(find);
        let op = Some(&columns.op).filter(|op| !op.is_empty()).and_then(|op| find(op));
        let leaves = Leaves { id, text, has_text, ts: find(&columns.ts), op, fields };
        let given = columns.given.map(|given| column::given_column(given, &schema.column(text)));
        Ok(Self { file, about, leaves, given, encrypted, part: columns.part.clone() })
    }

    /// The column of the texts; of given features each element counts.
    fn texts(&self, texts: LeafColumn, leaf: usize) -> LeafColumn {
        let schema = self.about.file_metadata().schema_descr();
        if self.given.is_some() { texts.with_elements(schema, leaf) } else { texts }
    }

    /// Why a wanted column cannot be read: it is encrypted, or compressed in an unsupported way, judged by
    /// the first row group.
    pub(crate) fn foreign_column(&self) -> Option<String> {
        let Leaves { id, text, ts, op, fields, .. } = &self.leaves;
        let mut leaves = [id, ts, op].into_iter().chain(fields).flatten().chain([text]);
        if let Some(leaf) = leaves.clone().find(|leaf| self.encrypted.contains(leaf)) {
            let column = self.about.file_metadata().schema_descr().column(*leaf);
            return Some(format!(
                "it is an encrypted Parquet file, whose column {:?} is not read: write it without encryption",
                column.path().string()
            ));
        }
        let group = self.about.row_groups().first()?;
        leaves.find_map(|leaf| {
            let codec = group.columns().get(*leaf)?.compression_codec();
            (!PageCodec::is_read(codec)).then(|| {
                format!("it is compressed with {codec}, which is not read: write it with zstd or snappy")
            })
        })
    }

    /// Number of rows of each row group, according to the footer.
    pub(crate) fn groups(&self) -> Vec<u64> {
        let rows =
            |group: &parquet::file::metadata::RowGroupMetaData| u64::try_from(group.num_rows()).unwrap_or(0);
        self.about.row_groups().iter().map(rows).collect()
    }

    /// The rows of the row group at this index.
    ///
    /// # Errors
    /// If it cannot be read at all.
    pub(crate) fn group(&self, place: usize) -> Result<GroupRows, Damage> {
        let opened = caught(|| {
            if let Some(why) = self.foreign_column() {
                return Err(ParquetError::General(why));
            }
            let group = self.about.row_groups().get(place);
            let group = group.ok_or_else(|| ParquetError::General("it is not in the file".to_owned()))?;
            let left = u64::try_from(group.num_rows()).unwrap_or(0);
            let Leaves { id, text, ts, op, fields, .. } = &self.leaves;
            let others = [id, ts, op].into_iter().chain(fields).flatten();
            let held = HeldBytes::among(1 + others.count());
            let column = |leaf: usize| LeafColumn::open(&self.file, group.column(leaf), left, &held);
            let all = |leaf: &Option<usize>| leaf.map(column).transpose();
            Ok(GroupRows {
                columns: ReadColumns {
                    id: all(id)?,
                    text: self.texts(column(*text)?, *text),
                    has_text: self.leaves.has_text,
                    given: self.given.clone(),
                    ts: all(ts)?,
                    op: all(op)?,
                    fields: fields.iter().map(all).collect::<Result<_>>()?,
                },
                left,
                row: before(&self.groups(), place),
                part: self.part.clone(),
            })
        });
        opened.map_err(|cause| {
            let (reason, row) = (BadRecord::Unreadable, before(&self.groups(), place));
            let cause = format!("row group {place}: {cause}");
            let head = KeptRow::new(Some(row), reason, Some(&cause)).line();
            Damage { reason, cause: Some(cause), place: RecordPlace::From(row), head, ends: true }
        })
    }
}

/// Number of rows before a row group, by the numbers in the footer, which may be wrong.
fn before(groups: &[u64], place: usize) -> u64 {
    groups.iter().take(place).fold(0, |sum, rows| sum.saturating_add(*rows))
}

impl ReadableParts for ParquetFile {
    type PartItem = RowResult;

    fn count(&self) -> usize {
        self.about.num_row_groups()
    }

    fn read(&self, part: usize, each: &mut dyn FnMut(RowResult) -> bool) {
        match self.group(part) {
            Ok(mut group) => each_record(&mut group, each),
            Err(damage) => drop(each(Err(damage))),
        }
    }
}

#[cfg(test)]
mod tests;
