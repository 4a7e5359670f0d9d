//! Writing the rows of a commit, as arrays of columns.

use postgres::Transaction;

use super::parameters::{Parameter, ROWS, check_gone, delete, each, empty, execute, insert, put, texts};
use super::schema::time_of;
use super::store::PostgresStore;
use crate::tables::database::DatabaseFailure;
use crate::tables::database::postgres::to_stored_json;
use crate::tables::sink::changed_rows::{Action, check_changed};
use crate::tables::sink::changes::{RowChange, SplitChanges, TableChanges, split_changes, split_rows};
use crate::tables::sink::progress::Rows;
use dupflow_core::pair::Cause;

impl PostgresStore {
    /// Writes the changes to tables of which those counted have `rows`. Returns how many more they have then.
    pub(super) fn put(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
        rows: Rows,
    ) -> Result<Rows, DatabaseFailure> {
        if changes.deltas_anew {
            self.begin_deltas(transaction, rows[0])?;
        }
        let more = [
            self.put_pairs(transaction, changes)?,
            self.put_clusters(transaction, changes)?,
            self.put_documents(transaction, changes)?,
        ];
        self.put_deltas(transaction, changes)?;
        self.put_decisions(transaction, changes)?;
        self.put_side(transaction, changes)?;
        Ok(more)
    }

    /// Writes the rows of side outputs. No index makes them unique, since a row may be longer than a unique
    /// index accepts: each changed row is deleted before it is inserted.
    fn put_side(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<(), DatabaseFailure> {
        for (table, rows) in &changes.side {
            let table = self.table(table);
            let all: Vec<(&String, &RowChange<_>)> = rows.iter().collect();
            for changed in all.chunks(ROWS) {
                let row = each(changed, |(row, _)| to_stored_json(row));
                let were = changed.iter().filter(|(_, change)| change.was).count();
                let sql = format!(
                    "DELETE FROM {table} AS t USING unnest($1::text[]) AS changed WHERE t.row = changed"
                );
                let gone = execute(transaction, &table, &sql, &[&row])?;
                let of_rows = format!("FROM {table} WHERE row = ANY ($1::text[])");
                check_gone(transaction, &table, &of_rows, &[&row], were, gone)?;
            }
            for added in split_changes(rows).upserts.chunks(ROWS) {
                let row = each(added, |(row, _)| to_stored_json(row));
                let key = each(added, |(_, (key, _))| to_stored_json(key));
                let epoch = each(added, |(_, (_, epoch))| epoch.cast_signed());
                let sql = format!(
                    "INSERT INTO {table} (row, key, epoch)
                     SELECT * FROM unnest($1::text[], $2::text[], $3::int8[])"
                );
                insert(transaction, &table, &sql, &[&row, &key, &epoch], added.len())?;
            }
        }
        Ok(())
    }

    /// Empties the table of deltas; if deltas are kept, fills it with the pairs of the table of pairs.
    /// There are `rows` pairs.
    fn begin_deltas(&self, transaction: &mut Transaction<'_>, rows: i64) -> Result<(), DatabaseFailure> {
        let (pairs, deltas) = (self.table("pairs"), self.table("deltas"));
        empty(transaction, &deltas)?;
        if self.deltas {
            let shares = if self.shares { ", in_a, in_b" } else { "" };
            let sql = format!(
                "INSERT INTO {deltas} (epoch, diff, a, b, similarity, cause, at{shares})
                 SELECT epoch, 1, a, b, similarity, $1::text, at{shares} FROM {pairs} ORDER BY epoch, a, b"
            );
            let cause = self.causes.then(|| Cause::Correction.name());
            let sent = usize::try_from(rows).unwrap_or_default();
            insert(transaction, &deltas, &sql, &[&cause], sent)?;
        }
        Ok(())
    }

    fn put_pairs(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<i64, DatabaseFailure> {
        let table = self.table("pairs");
        let SplitChanges { upserts, new, deletes } = split_changes(&changes.pairs);
        let mut gone = 0;
        for keys in deletes.chunks(ROWS) {
            let (a, b) = (texts(keys, |pair| pair.lo()), texts(keys, |pair| pair.hi()));
            let sql = format!(
                "DELETE FROM {table} p USING unnest($1::text[], $2::text[]) AS deleted (a, b)
                 WHERE p.a = deleted.a AND p.b = deleted.b"
            );
            gone += execute(transaction, &table, &sql, &[&a, &b])?;
        }
        check_changed(&table, Action::Deleted, deletes.len(), gone)?;
        let mut added = 0;
        for rows in upserts.chunks(ROWS) {
            let (a, b) = (texts(rows, |(pair, _)| pair.lo()), texts(rows, |(pair, _)| pair.hi()));
            let similarity = each(rows, |(_, row)| row.pair.similarity.get());
            let epoch = each(rows, |(_, row)| row.epoch.cast_signed());
            let evidence = each(rows, |(_, row)| row.standard_error.map(|_| row.pair.evidence));
            let blocks = each(&evidence, |shown| shown.map(|shown| i32::from(shown.blocks)));
            let look = each(&evidence, |shown| shown.map(|shown| i32::from(shown.look)));
            let components = each(&evidence, |shown| shown.map(|shown| i64::from(shown.components)));
            let standard_error = each(rows, |(_, row)| row.standard_error);
            let in_b = each(rows, |(_, row)| row.pair.similarity.shares()[0]);
            let in_a = each(rows, |(_, row)| row.pair.similarity.shares()[1]);
            let (names, values, updates) = if self.shares {
                (
                    ", in_a, in_b",
                    ", $9::float8[], $10::float8[]",
                    ", in_a = excluded.in_a, in_b = excluded.in_b",
                )
            } else {
                ("", "", "")
            };
            let sql = format!(
                "INSERT INTO {table} AS p
                    (a, b, similarity, epoch, blocks, look, components, standard_error{names})
                 SELECT * FROM unnest($1::text[], $2::text[], $3::float8[], $4::int8[], $5::int4[],
                    $6::int4[], $7::int8[], $8::float8[]{values})
                 ON CONFLICT (a, b) DO UPDATE SET similarity = excluded.similarity, epoch = excluded.epoch,
                    blocks = excluded.blocks, look = excluded.look, components = excluded.components,
                    standard_error = excluded.standard_error, at = now(){updates}"
            );
            let parameters: [Parameter<'_>; 10] =
                [&a, &b, &similarity, &epoch, &blocks, &look, &components, &standard_error, &in_a, &in_b];
            let parameters = &parameters[..if self.shares { 10 } else { 8 }];
            added += put(transaction, &table, &sql, parameters, rows.len())?;
        }
        check_changed(&table, Action::Added, new, added)?;
        Ok(added - gone)
    }

    fn put_clusters(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<i64, DatabaseFailure> {
        let table = self.table("clusters");
        let SplitChanges { upserts, new, deletes } = split_changes(&changes.clusters);
        let gone = delete(transaction, &table, "document", &deletes)?;
        check_changed(&table, Action::Deleted, deletes.len(), gone)?;
        let mut added = 0;
        for rows in upserts.chunks(ROWS) {
            let (document, cluster) =
                (texts(rows, |(document, _)| document), texts(rows, |(_, cluster)| cluster));
            let sql = format!(
                "INSERT INTO {table} (document, cluster) SELECT * FROM unnest($1::text[], $2::text[])
                 ON CONFLICT (document) DO UPDATE SET cluster = excluded.cluster"
            );
            added += put(transaction, &table, &sql, &[&document, &cluster], rows.len())?;
        }
        check_changed(&table, Action::Added, new, added)?;
        Ok(added - gone)
    }

    fn put_documents(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<i64, DatabaseFailure> {
        let table = self.table("documents");
        let (upserts, deletes) = split_rows(&changes.documents);
        let mut more = -delete(transaction, &table, "id", &deletes)?;
        for rows in upserts.chunks(ROWS) {
            let document = texts(rows, |(document, _)| document);
            let ts = each(rows, |(_, facts)| facts.ts);
            let bytes = each(rows, |(_, facts)| i64::from(facts.bytes));
            let partition = each(rows, |(_, facts)| i64::from(facts.position.partition));
            let offset = each(rows, |(_, facts)| facts.position.offset.cast_signed());
            let sql = format!(
                "INSERT INTO {table} (id, ts, bytes, source_partition, source_offset)
                 SELECT id, {}, bytes, source_partition, source_offset
                 FROM unnest($1::text[], $2::float8[], $3::int8[], $4::int8[], $5::int8[])
                    AS added (id, ts, bytes, source_partition, source_offset)
                 ON CONFLICT (id) DO UPDATE SET ts = excluded.ts, bytes = excluded.bytes,
                    source_partition = excluded.source_partition, source_offset = excluded.source_offset",
                time_of("ts")
            );
            let parameters: [Parameter<'_>; 5] = [&document, &ts, &bytes, &partition, &offset];
            more += put(transaction, &table, &sql, &parameters, rows.len())?;
        }
        Ok(more)
    }

    fn put_deltas(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<(), DatabaseFailure> {
        let table = self.table("deltas");
        for rows in changes.deltas.chunks(ROWS) {
            let epoch = each(rows, |(epoch, _)| epoch.cast_signed());
            let diff = each(rows, |(_, delta)| if delta.diff > 0 { 1_i16 } else { -1 });
            let (a, b) = (
                texts(rows, |(_, delta)| delta.pair.pair.lo()),
                texts(rows, |(_, delta)| delta.pair.pair.hi()),
            );
            let similarity = each(rows, |(_, delta)| delta.pair.similarity.get());
            let cause = each(rows, |(_, delta)| self.causes.then(|| delta.cause.name()));
            let in_b = each(rows, |(_, delta)| delta.pair.similarity.shares()[0]);
            let in_a = each(rows, |(_, delta)| delta.pair.similarity.shares()[1]);
            let (names, values) = match self.shares {
                true => (", in_a, in_b", ", $7::float8[], $8::float8[]"),
                false => ("", ""),
            };
            let sql = format!(
                "INSERT INTO {table} (epoch, diff, a, b, similarity, cause{names})
                 SELECT *
                 FROM unnest($1::int8[], $2::int2[], $3::text[], $4::text[], $5::float8[],
                    $6::text[]{values})"
            );
            let parameters: [Parameter<'_>; 8] = [&epoch, &diff, &a, &b, &similarity, &cause, &in_a, &in_b];
            let parameters = &parameters[..if self.shares { 8 } else { 6 }];
            insert(transaction, &table, &sql, parameters, rows.len())?;
        }
        Ok(())
    }
}
