//! Writing the rows of a commit, as arrays of columns.

use postgres::Transaction;

use super::parameters::{Parameter, ROWS, delete, each, execute, put, texts};
use super::schema::time_of;
use super::store::PostgresStore;
use crate::tables::sink::changes::{TableChanges, split_rows};
use crate::tables::sink::progress::Rows;
use dupflow_core::pair::Cause;

impl PostgresStore {
    /// Writes the changes. Returns how many rows more than before the counted tables have.
    pub(super) fn put(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<Rows, postgres::Error> {
        if changes.deltas_anew {
            self.begin_deltas(transaction)?;
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
    ) -> Result<(), postgres::Error> {
        for (table, rows) in &changes.side {
            let table = self.table(table);
            let changed: Vec<&String> = rows.keys().collect();
            for row in changed.chunks(ROWS) {
                let sql = format!(
                    "DELETE FROM {table} AS t USING unnest($1::text[]) AS changed WHERE t.row = changed"
                );
                execute(transaction, &sql, &[&row])?;
            }
            let (upserts, _) = split_rows(rows);
            for added in upserts.chunks(ROWS) {
                let row = each(added, |(row, _)| row.as_str());
                let key = each(added, |(_, (key, _))| key.as_str());
                let epoch = each(added, |(_, (_, epoch))| epoch.cast_signed());
                let sql = format!(
                    "INSERT INTO {table} (row, key, epoch)
                     SELECT * FROM unnest($1::text[], $2::text[], $3::int8[])"
                );
                execute(transaction, &sql, &[&row, &key, &epoch])?;
            }
        }
        Ok(())
    }

    /// Empties the table of deltas; if deltas are kept, fills it with the pairs of the table of pairs.
    fn begin_deltas(&self, transaction: &mut Transaction<'_>) -> Result<(), postgres::Error> {
        let (pairs, deltas) = (self.table("pairs"), self.table("deltas"));
        execute(transaction, &format!("DELETE FROM {deltas}"), &[])?;
        if self.deltas {
            let shares = if self.shares { ", in_a, in_b" } else { "" };
            let sql = format!(
                "INSERT INTO {deltas} (epoch, diff, a, b, similarity, cause, at{shares})
                 SELECT epoch, 1, a, b, similarity, $1::text, at{shares} FROM {pairs} ORDER BY epoch, a, b"
            );
            let cause = self.causes.then(|| Cause::Correction.name());
            execute(transaction, &sql, &[&cause])?;
        }
        Ok(())
    }

    fn put_pairs(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<i64, postgres::Error> {
        let table = |name| self.table(name);
        let (upserts, deletes) = split_rows(&changes.pairs);
        let mut more = 0;
        for keys in deletes.chunks(ROWS) {
            let (a, b) = (texts(keys, |pair| pair.lo()), texts(keys, |pair| pair.hi()));
            let sql = format!(
                "DELETE FROM {} p USING unnest($1::text[], $2::text[]) AS deleted (a, b)
                 WHERE p.a = deleted.a AND p.b = deleted.b",
                table("pairs")
            );
            more -= execute(transaction, &sql, &[&a, &b])?;
        }
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
                "INSERT INTO {} AS p
                    (a, b, similarity, epoch, blocks, look, components, standard_error{names})
                 SELECT * FROM unnest($1::text[], $2::text[], $3::float8[], $4::int8[], $5::int4[],
                    $6::int4[], $7::int8[], $8::float8[]{values})
                 ON CONFLICT (a, b) DO UPDATE SET similarity = excluded.similarity, epoch = excluded.epoch,
                    blocks = excluded.blocks, look = excluded.look, components = excluded.components,
                    standard_error = excluded.standard_error, at = now(){updates}",
                table("pairs")
            );
            let parameters: [Parameter<'_>; 10] =
                [&a, &b, &similarity, &epoch, &blocks, &look, &components, &standard_error, &in_a, &in_b];
            more += put(transaction, &sql, &parameters[..if self.shares { 10 } else { 8 }])?;
        }
        Ok(more)
    }

    fn put_clusters(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<i64, postgres::Error> {
        let table = |name| self.table(name);
        let (upserts, deletes) = split_rows(&changes.clusters);
        let mut more = -delete(transaction, &table("clusters"), "document", &deletes)?;
        for rows in upserts.chunks(ROWS) {
            let (document, cluster) =
                (texts(rows, |(document, _)| document), texts(rows, |(_, cluster)| cluster));
            let sql = format!(
                "INSERT INTO {} SELECT * FROM unnest($1::text[], $2::text[])
                 ON CONFLICT (document) DO UPDATE SET cluster = excluded.cluster",
                table("clusters")
            );
            more += put(transaction, &sql, &[&document, &cluster])?;
        }
        Ok(more)
    }

    fn put_documents(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<i64, postgres::Error> {
        let table = |name| self.table(name);
        let (upserts, deletes) = split_rows(&changes.documents);
        let mut more = -delete(transaction, &table("documents"), "id", &deletes)?;
        for rows in upserts.chunks(ROWS) {
            let document = texts(rows, |(document, _)| document);
            let ts = each(rows, |(_, facts)| facts.ts);
            let bytes = each(rows, |(_, facts)| i64::from(facts.bytes));
            let partition = each(rows, |(_, facts)| i64::from(facts.position.partition));
            let offset = each(rows, |(_, facts)| facts.position.offset.cast_signed());
            let sql = format!(
                "INSERT INTO {} (id, ts, bytes, source_partition, source_offset)
                 SELECT id, {}, bytes, source_partition, source_offset
                 FROM unnest($1::text[], $2::float8[], $3::int8[], $4::int8[], $5::int8[])
                    AS added (id, ts, bytes, source_partition, source_offset)
                 ON CONFLICT (id) DO UPDATE SET ts = excluded.ts, bytes = excluded.bytes,
                    source_partition = excluded.source_partition, source_offset = excluded.source_offset",
                table("documents"),
                time_of("ts")
            );
            more += put(transaction, &sql, &[&document, &ts, &bytes, &partition, &offset])?;
        }
        Ok(more)
    }

    fn put_deltas(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<(), postgres::Error> {
        let table = |name| self.table(name);
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
                "INSERT INTO {} (epoch, diff, a, b, similarity, cause{names})
                 SELECT *
                 FROM unnest($1::int8[], $2::int2[], $3::text[], $4::text[], $5::float8[],
                    $6::text[]{values})",
                table("deltas")
            );
            let parameters: [Parameter<'_>; 8] = [&epoch, &diff, &a, &b, &similarity, &cause, &in_a, &in_b];
            execute(transaction, &sql, &parameters[..if self.shares { 8 } else { 6 }])?;
        }
        Ok(())
    }
}
