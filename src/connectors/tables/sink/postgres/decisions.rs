//! The table of decisions on a server.

use postgres::Transaction;

use super::parameters::{Parameter, ROWS, delete, each, empty, insert, texts};
use super::store::PostgresStore;
use crate::sinks::book::LastDecisions;
use crate::tables::database::DatabaseFailure;
use crate::tables::database::postgres::{from_stored_text, to_stored_text};
use crate::tables::sink::changes::{TableChanges, split_rows};
use crate::tables::sink::store::{DecisionColumns, id};
use dupflow_core::doc::Position;

impl PostgresStore {
    /// SQL that creates the table of decisions. `repeats` is `json`, not `jsonb`: it holds ids unchanged,
    /// U+0000 included, as escapes.
    pub(super) fn decisions_table(&self) -> String {
        let table = self.table("decisions");
        format!(
            "CREATE TABLE {table} (id text COLLATE \"C\" PRIMARY KEY,
                source_partition bigint NOT NULL, source_offset bigint NOT NULL, epoch bigint NOT NULL,
                at timestamptz NOT NULL DEFAULT now(), ended boolean NOT NULL, copy boolean NOT NULL,
                \"of\" text COLLATE \"C\", repeats json NOT NULL, pairs bigint NOT NULL,
                cluster text COLLATE \"C\");
             CREATE INDEX ON {table} (\"of\");"
        )
    }

    /// Writes the rows of decisions.
    pub(super) fn put_decisions(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<(), DatabaseFailure> {
        let table = self.table("decisions");
        if changes.decisions_anew {
            empty(transaction, &table)?;
        }
        let (upserts, deletes) = split_rows(&changes.decisions);
        // Without decisions there may be no such table.
        delete(transaction, &table, "id", &deletes)?;
        for rows in upserts.chunks(ROWS) {
            let columns = each(rows, |(_, row)| DecisionColumns::new(&row.decision));
            let stored = |id: &Option<String>| id.as_deref().map(to_stored_text);
            let document = texts(rows, |(document, _)| document);
            let partition = each(&columns, |one| i64::from(one.position.partition));
            let offset = each(&columns, |one| one.position.offset.cast_signed());
            let epoch = each(rows, |(_, row)| row.epoch.cast_signed());
            let (ended, copy) = (each(&columns, |one| one.ended), each(&columns, |one| one.copy));
            let of = each(&columns, |one| stored(&one.of));
            let repeats = each(&columns, |one| one.repeats.as_str());
            let pairs = each(&columns, |one| one.pairs);
            let cluster = each(&columns, |one| stored(&one.cluster));
            let sql = format!(
                "INSERT INTO {table} (id, source_partition, source_offset, epoch, ended, copy, \"of\",
                    repeats, pairs, cluster)
                 SELECT id, source_partition, source_offset, epoch, ended, copy, \"of\", repeats::json,
                    pairs, cluster
                 FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[], $5::bool[], $6::bool[],
                    $7::text[], $8::text[], $9::int8[], $10::text[])
                    AS added (id, source_partition, source_offset, epoch, ended, copy, \"of\", repeats, pairs,
                        cluster)
                 ON CONFLICT (id) DO UPDATE SET source_partition = excluded.source_partition,
                    source_offset = excluded.source_offset, epoch = excluded.epoch, at = now(),
                    ended = excluded.ended, copy = excluded.copy, \"of\" = excluded.\"of\",
                    repeats = excluded.repeats, pairs = excluded.pairs, cluster = excluded.cluster"
            );
            let parameters: [Parameter<'_>; 10] =
                [&document, &partition, &offset, &epoch, &ended, &copy, &of, &repeats, &pairs, &cluster];
            insert(transaction, &table, &sql, &parameters, rows.len())?;
        }
        Ok(())
    }

    /// The rows of decisions.
    pub(super) fn read_decisions(&mut self) -> Result<LastDecisions, DatabaseFailure> {
        let sql = format!(
            "SELECT id, source_partition, source_offset, ended, copy, \"of\", repeats::text, pairs, cluster
             FROM {}",
            self.table("decisions")
        );
        let rows = self.rows(&sql, |row| {
            let text = |at: usize| row.try_get::<_, Option<String>>(at);
            let partition = u32::try_from(row.try_get::<_, i64>(1)?).unwrap_or(u32::MAX);
            let columns = DecisionColumns {
                position: Position { partition, offset: row.try_get::<_, i64>(2)?.cast_unsigned() },
                ended: row.try_get(3)?,
                copy: row.try_get(4)?,
                of: text(5)?.as_deref().map(from_stored_text),
                repeats: row.try_get(6)?,
                pairs: row.try_get(7)?,
                cluster: text(8)?.as_deref().map(from_stored_text),
            };
            Ok((row.try_get::<_, String>(0)?, columns))
        })?;
        let decision = |(text, columns): (String, DecisionColumns)| {
            let document = id(&from_stored_text(&text))?;
            Ok((document.clone(), columns.decision(document)?))
        };
        rows.into_iter().map(decision).collect::<Result<_, _>>().map(LastDecisions)
    }
}
