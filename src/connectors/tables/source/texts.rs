//! Reads the texts of rows back, by id.

use super::table::{DatabaseTable, TableRow, TableRows};
use crate::intake::{FoundText, NoText, Texts};
use crate::tables::database::DatabaseFailure;
use dupflow_core::doc::{DocId, FIELD_SEPARATOR, Position, without_separators};

/// Reads texts back by id.
pub(super) struct TableTexts {
    pub(super) table: DatabaseTable,
    /// Names of further fields, in the order of the pipeline.
    pub(super) fields: Vec<String>,
    /// The open table: from the first call on, until a call fails.
    pub(super) rows: Option<Box<dyn TableRows>>,
}

impl TableTexts {
    fn text_of_row(
        &self,
        id: &DocId,
        position: Position,
        row: Option<TableRow>,
    ) -> Result<FoundText, NoText> {
        let name = self.table.name();
        let gone = |what: &str| Err(NoText::Gone(format!("{name}: {what}")));
        match row {
            None => gone(&format!("no row has the id \"{id}\" any more")),
            Some(TableRow { deleted: true, .. }) => gone("the row is deleted by now"),
            Some(TableRow { order, .. }) if order != Some(position.offset) => {
                gone("the row has changed since it was read")
            }
            Some(TableRow { text, fields, .. }) => {
                let text = text.and_then(|text| String::from_utf8(text).ok());
                let Some(text) = text else { return gone("the row holds no text any more") };
                let further = |field: &String| {
                    let at = self.table.fields.iter().position(|column| column == field)?;
                    fields.get(at)?.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                };
                let further: Vec<String> =
                    self.fields.iter().map(|field| further(field).unwrap_or_default()).collect();
                if self.fields.is_empty() {
                    return Ok(FoundText::new(&text));
                }
                if further.iter().all(String::is_empty) {
                    return Ok(FoundText::new(&without_separators(&text)));
                }
                let parts = std::iter::once(&text).chain(&further).map(|part| without_separators(part));
                let parts: Vec<_> = parts.collect();
                Ok(FoundText::new(&parts.join(&FIELD_SEPARATOR.to_string())))
            }
        }
    }
}

impl Texts for TableTexts {
    fn text(&mut self, id: &DocId, position: Position) -> Result<FoundText, NoText> {
        let failed = |failure: DatabaseFailure| NoText::Failed(failure.to_string());
        let mut rows = match self.rows.take() {
            Some(rows) => rows,
            None => self.table.reach().map_err(failed)?,
        };
        let row = rows.row(id.as_str()).map_err(failed)?;
        self.rows = Some(rows);
        Ok(self.text_of_row(id, position, row)?.at(self.table.name()))
    }
}
