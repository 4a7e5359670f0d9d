//! Where the values of records have their documents: the picks for every form, and the event that they show.

use std::borrow::Cow;

use super::super::bad_record::BadRecord;
use super::super::layout::named_path;
use super::pick::{Leaf, Picks};
use super::settings::{RecordShape, ValueFormat};
use dupflow_core::text::TextColumns;

/// The column by which Debezium's flattened rows say that they are deletes (`ExtractNewRecordState`, with
/// `delete.tombstone.handling.mode=rewrite`): "true" or "false".
const DELETED: &str = "__deleted";

/// Indices of the JSON values that are picked from a record value.
#[derive(Debug)]
pub(super) struct ValuePicks {
    pub(super) picks: Picks,
    pub(super) whole: usize,
    /// A row at the top level, and one below `payload`, with a schema beside it.
    pub(super) plain: PlainPicks,
    inner: PlainPicks,
    schema: usize,
    insert: RowPicks,
    delete: RowPicks,
    /// The envelope at the top level, and the one below `payload`.
    envelopes: [EnvelopePicks; 2],
    /// What records of Maxwell have: `database`, `table`, `type` and `data`.
    maxwell: [usize; 4],
    /// As [`RecordShape::has_changes`].
    has_changes: bool,
}

/// A row with its operation.
#[derive(Debug)]
pub(super) struct PlainPicks {
    pub(super) row: RowPicks,
    op: Option<usize>,
    deleted: usize,
}

#[derive(Debug)]
pub(super) struct EnvelopePicks {
    pub(super) whole: usize,
    pub(super) op: usize,
    before: RowPicks,
    after: RowPicks,
    ts: [usize; 2],
}

/// Indices of what is picked from a row.
#[derive(Debug)]
pub(super) struct RowPicks {
    pub(super) whole: usize,
    pub(super) text: usize,
    pub(super) id: Option<usize>,
    pub(super) ts: usize,
    pub(super) fields: Vec<usize>,
    /// By column of the fields of documents.
    pub(super) columns: Vec<usize>,
}

/// Indices of what is picked from a key: the id, at two paths.
#[derive(Debug)]
pub(super) struct KeyPicks {
    pub(super) picks: Picks,
    pub(super) ids: [usize; 2],
    /// The ids of MongoDB's keys.
    pub(super) documents: [usize; 2],
}

/// Which event a value is, and where its row is.
pub(super) enum PickedEvent<'r, 'a> {
    Upsert(&'r RowPicks),
    /// The text itself, without a row.
    Text(Cow<'a, str>),
    Delete(Option<&'r RowPicks>),
}

impl<'r> PickedEvent<'r, '_> {
    pub(super) fn row(&self) -> Option<&'r RowPicks> {
        match self {
            Self::Upsert(row) => Some(row),
            Self::Delete(row) => *row,
            Self::Text(_) => None,
        }
    }
}

impl ValuePicks {
    pub(super) fn new(shape: &RecordShape, columns: &TextColumns, own: &[String]) -> Self {
        let mut picks = Picks::default();
        let mut row = |base: &[&'static str]| RowPicks::new(&mut picks, base, shape, columns, own);
        let rows = [
            &[][..],
            &["insert"],
            &["delete"],
            &["before"],
            &["after"],
            &["payload", "before"],
            &["payload", "after"],
            &["payload"],
        ];
        let [plain_row, insert, delete, before, after, before_in, after_in, inner_row] = rows.map(&mut row);
        let mut envelope = |base: &[&'static str], old, new| {
            let mut want = |path: &[&'static str]| picks.want([base, path].concat());
            EnvelopePicks {
                whole: want(&[]),
                op: want(&["op"]),
                before: old,
                after: new,
                ts: [want(&["source", "ts_ms"]), want(&["ts_ms"])],
            }
        };
        let envelopes = [envelope(&[], before, after), envelope(&["payload"], before_in, after_in)];
        let mut plain = |base: &[&'static str], at| {
            let path = shape.op.iter().map(String::as_str);
            let op = (!shape.op.is_empty()).then(|| picks.want(base.iter().copied().chain(path)));
            PlainPicks { row: at, op, deleted: picks.want(base.iter().copied().chain([DELETED])) }
        };
        let (plain, inner) = (plain(&[], plain_row), plain(&["payload"], inner_row));
        let maxwell = ["database", "table", "type", "data"].map(|name| picks.want([name]));
        let (whole, schema) = (picks.want([]), picks.want(["schema"]));
        let has_changes = shape.has_changes;
        Self { picks, whole, plain, inner, schema, insert, delete, envelopes, maxwell, has_changes }
    }

    /// The format of an object.
    pub(super) fn shape(&self, leaves: &[Leaf<'_>]) -> ValueFormat {
        let envelope = self.envelope(leaves);
        let has = |row: &RowPicks| leaves[row.whole] != Leaf::Absent;
        let is_change =
            matches!(leaves[envelope.op], Leaf::Text(_)) && (has(&envelope.before) || has(&envelope.after));
        let is_empty = leaves[self.schema] != Leaf::Absent && leaves[envelope.whole] == Leaf::Null;
        if is_change || is_empty { ValueFormat::Debezium } else { ValueFormat::Json }
    }

    /// The row of an object that is no change: the one below `payload` if a schema is beside it.
    pub(super) fn row(&self, leaves: &[Leaf<'_>]) -> &PlainPicks {
        let is_inner = leaves[self.schema] != Leaf::Absent && leaves[self.inner.row.whole] == Leaf::Object;
        if is_inner { &self.inner } else { &self.plain }
    }

    /// Whether an object is a delete by the word of Debezium's rewritten rows, or of Maxwell.
    fn is_deleted(&self, row: &PlainPicks, leaves: &[Leaf<'_>]) -> bool {
        let is_true = match &leaves[row.deleted] {
            Leaf::Text(word) => word == "true",
            Leaf::Flag(flag) => *flag,
            _ => false,
        };
        let [database, table, kind, data] = self.maxwell.map(|place| &leaves[place]);
        let is_text = |leaf: &Leaf<'_>| matches!(leaf, Leaf::Text(_));
        let is_maxwell = is_text(database) && is_text(table) && *data == Leaf::Object;
        is_true || is_maxwell && matches!(kind, Leaf::Text(kind) if kind == "delete")
    }

    /// The event of a JSON value.
    pub(super) fn json<'a>(&self, leaves: &mut [Leaf<'a>]) -> Result<PickedEvent<'_, 'a>, BadRecord> {
        let is_set =
            |row: &RowPicks| self.has_changes && !matches!(leaves[row.whole], Leaf::Absent | Leaf::Null);
        match (is_set(&self.insert), is_set(&self.delete)) {
            (true, true) => Err(BadRecord::UnknownOp),
            (false, true) => Ok(PickedEvent::Delete(Some(&self.delete))),
            (true, false) => match std::mem::take(&mut leaves[self.insert.whole]) {
                Leaf::Object => Ok(PickedEvent::Upsert(&self.insert)),
                Leaf::Text(text) => Ok(PickedEvent::Text(text)),
                _ => Err(BadRecord::BadText),
            },
            (false, false) => {
                let plain = if self.has_changes { self.row(leaves) } else { &self.plain };
                match plain.op.map_or(&Leaf::Absent, |op| &leaves[op]) {
                    _ if self.has_changes && self.is_deleted(plain, leaves) => {
                        Ok(PickedEvent::Delete(Some(&plain.row)))
                    }
                    Leaf::Absent | Leaf::Null => Ok(PickedEvent::Upsert(&plain.row)),
                    Leaf::Text(op) if op == "upsert" => Ok(PickedEvent::Upsert(&plain.row)),
                    Leaf::Text(op) if op == "delete" => Ok(PickedEvent::Delete(Some(&plain.row))),
                    Leaf::Text(_) => Err(BadRecord::UnknownOp),
                    _ => Err(BadRecord::BadOp),
                }
            }
        }
    }

    /// The envelope of a change: the one below `payload` if there is one.
    pub(super) fn envelope(&self, leaves: &[Leaf<'_>]) -> &EnvelopePicks {
        let [plain, inner] = &self.envelopes;
        if leaves[inner.whole] == Leaf::Absent { plain } else { inner }
    }
}

impl EnvelopePicks {
    /// The event of an envelope.
    pub(super) fn found<'a>(&self, leaves: &[Leaf<'a>]) -> Result<PickedEvent<'_, 'a>, BadRecord> {
        if leaves[self.whole] == Leaf::Null {
            return Ok(PickedEvent::Delete(None));
        }
        match &leaves[self.op] {
            Leaf::Text(op) if matches!(&**op, "c" | "r" | "u") => match leaves[self.after.whole] {
                // MongoDB's documents are strings.
                Leaf::Object | Leaf::Text(_) => Ok(PickedEvent::Upsert(&self.after)),
                _ => Err(BadRecord::MissingText),
            },
            Leaf::Text(op) if op == "d" => Ok(PickedEvent::Delete(Some(&self.before))),
            Leaf::Text(_) => Err(BadRecord::UnknownOp),
            _ => Err(BadRecord::BadOp),
        }
    }

    /// When the change happened, in unix seconds.
    pub(super) fn ts(&self, leaves: &[Leaf<'_>]) -> Option<f64> {
        self.ts.iter().find_map(|place| Some(leaves[*place].number()? / 1000.0))
    }
}

impl RowPicks {
    pub(super) fn new(
        picks: &mut Picks,
        base: &[&'static str],
        shape: &RecordShape,
        text_columns: &TextColumns,
        own: &[String],
    ) -> Self {
        fn below<'p>(base: &'p [&'static str], path: &'p [String]) -> impl Iterator<Item = &'p str> {
            base.iter().copied().chain(path.iter().map(String::as_str))
        }
        let whole = picks.want(base.iter().copied());
        let text = below(base, &shape.text);
        let text = if text_columns.given.is_some() { picks.want_list(text) } else { picks.want(text) };
        let id = shape.id.as_ref().map(|id| picks.want_id(below(base, id)));
        let ts = picks.want(below(base, &shape.ts));
        let mut places = |of: &[String]| -> Vec<usize> {
            of.iter().map(|name| picks.want(below(base, &named_path(name)))).collect()
        };
        Self { whole, text, id, ts, fields: places(text_columns), columns: places(own) }
    }
}

impl KeyPicks {
    pub(super) fn new(shape: &RecordShape) -> Self {
        let mut picks = Picks::default();
        let id = || shape.id.iter().flatten().map(String::as_str);
        let ids = [picks.want_id(id()), picks.want_id(["payload"].into_iter().chain(id()))];
        let documents = [picks.want(["id"]), picks.want(["payload", "id"])];
        Self { picks, ids, documents }
    }
}
