//! A look at a table: what it is, how far its order and its transactions are.

use postgres::Client;

use super::PostgresRows;
use super::expressions::{literal, offset};
use crate::mark::TableLook;
use crate::tables::database::quoted_path;
use crate::tables::source::table::{DatabaseTable, OrderKind, Relation, TableNow};
use crate::tables::source::transactions::Transactions;

/// What stays the same, in the order of a [`look_query`], as far as the role may see it.
const IDENTITY: [&str; 6] = [
    "system identifier",
    "timeline",
    "identity (oid)",
    "order column",
    "definition (with views)",
    "database",
];

/// The query of a look: the snapshot, whether the server is a standby, the newest order, the clock, where the
/// rows are stored, the [`IDENTITY`], the next transaction, whose number is counted from the third, and how
/// far the log is durable: after a crash no number of a transaction need stay as it was.
pub(super) fn look_query(
    client: &mut Client,
    table: &DatabaseTable,
    is_named: bool,
    newest: &str,
) -> Result<String, postgres::Error> {
    let may = "SELECT has_function_privilege('pg_control_system()', 'execute')
        AND has_function_privilege('pg_control_checkpoint()', 'execute')";
    let (system, checkpoint) = if client.query_one(may, &[])?.try_get(0)? {
        (
            "(SELECT system_identifier::text FROM pg_control_system())",
            "(SELECT timeline_id FROM pg_control_checkpoint())",
        )
    } else {
        ("NULL::text", "NULL::integer")
    };
    // A standby that was promoted has a new timeline before its first checkpoint.
    let timeline = format!(
        "(CASE WHEN pg_is_in_recovery() THEN {checkpoint}
          ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer END)::text"
    );
    let log =
        "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END";
    let of_table = match &table.relation {
        Relation::Table(name) if is_named => {
            let oid = format!("to_regclass({})", literal(&quoted_path(name)));
            let of = |what: &str| format!("(SELECT {what} FROM pg_class WHERE oid = {oid})");
            [
                of("CASE WHEN relkind = 'r' THEN pg_relation_filenode(oid)::bigint END"),
                of("oid::text"),
                format!(
                    "(SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = {oid} AND \
                     attname = {} AND NOT attisdropped)",
                    literal(&table.order)
                ),
                definitions(&oid),
            ]
        }
        _ => ["NULL::bigint", "NULL::text", "NULL::text", "NULL::text"].map(str::to_owned),
    };
    let clock = offset("clock_timestamp()", OrderKind::Time);
    let [storage, oid, order, definition] = of_table;
    Ok(format!(
        "SELECT txid_current_snapshot()::text, pg_is_in_recovery(), {newest}, {clock}, {storage}, {system}, \
         {timeline}, {oid}, {order}, {definition}, current_database()::text, 3 + age('3'::xid)::bigint, \
         ({log} - '0/0'::pg_lsn)::bigint"
    ))
}

/// The expression of the definitions of a view, and of all views that it reads; NULL for a table. As the
/// server stores them, with identities instead of names: their texts depend on the search path. Where their
/// parts were written in a statement does not count.
fn definitions(oid: &str) -> String {
    format!(
        "(WITH RECURSIVE read AS (
            SELECT {oid}::oid AS view
            UNION SELECT refobjid FROM read JOIN pg_rewrite ON ev_class = view JOIN pg_depend ON
                classid = 'pg_catalog.pg_rewrite'::regclass AND objid = pg_rewrite.oid AND
                refclassid = 'pg_catalog.pg_class'::regclass)
          SELECT md5(string_agg(regexp_replace(ev_action::text,
                ':(location|stmt_location|stmt_len) -?[0-9]+', '', 'g'), ' ' ORDER BY view))
          FROM read JOIN pg_rewrite ON ev_class = view WHERE rulename = '_RETURN')"
    )
}

impl PostgresRows {
    /// Reads the answer of a [`look_query`].
    pub(super) fn now(&self, row: &postgres::Row) -> Result<TableNow, postgres::Error> {
        let (snapshot, is_standby): (&str, bool) = (row.try_get(0)?, row.try_get(1)?);
        let number = |place: usize| row.try_get::<_, Option<i64>>(place);
        let order =
            |place: usize| Ok(number(place)?.and_then(|order| u64::try_from(order).ok()).unwrap_or(0));
        let next = u32::try_from(number(11)?.unwrap_or(0) % (1 << 32)).unwrap_or(0);
        let transactions = Transactions::parse(snapshot, next, is_standby).unwrap_or_default();
        let (newest, clock) = (order(2)?, order(3)?);
        let storage = number(4)?.map(|storage| (storage.cast_unsigned(), transactions.oldest()));
        let mut identity = self.identity.clone();
        for (place, name) in (5..).zip(IDENTITY) {
            if let Some(value) = row.try_get::<_, Option<String>>(place)? {
                identity.insert(name.to_owned(), value);
            }
        }
        let latest = if self.kind == OrderKind::Time { clock } else { newest };
        let counters = [("position in the log (LSN)".to_owned(), order(12)?)].into();
        let look = TableLook { identity, counters, storage, ..TableLook::default() };
        Ok(TableNow { look, latest, newest, below: None, transactions })
    }
}
