//! Expressions of SQL for the columns of a table.

use postgres::types::Type;

use crate::tables::database::quoted;
use crate::tables::source::table::OrderKind;

/// A text as a literal of SQL.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Expressions with column names.
pub(super) fn list_named(expressions: &[String], names: &[String]) -> String {
    let named = expressions.iter().zip(names).map(|(expression, name)| format!("{expression} AS {name}"));
    named.collect::<Vec<_>>().join(", ")
}

/// The expression of an order as a number; NULL for an infinite time.
pub(super) fn offset(column: &str, kind: OrderKind) -> String {
    match kind {
        OrderKind::Number => format!("{column}::bigint"),
        OrderKind::Time => {
            // Computed in two parts: older servers compute the whole as a float, which cannot represent
            // present times to the microsecond.
            let seconds =
                format!("floor(extract(epoch FROM date_trunc('second', {column})))::bigint * 1000000");
            let rest = format!("(extract(microseconds FROM {column})::bigint % 1000000)");
            format!("CASE WHEN isfinite({column}) THEN {seconds} + {rest} END")
        }
    }
}

/// The expression of a time in unix seconds, as a text. What the server cannot convert in one row would end
/// the run: it is read here.
pub(super) fn seconds(column: &str, of: &Type) -> String {
    match *of {
        Type::TIMESTAMPTZ | Type::TIMESTAMP | Type::DATE => {
            format!("extract(epoch FROM {column})::float8::text")
        }
        Type::NUMERIC | Type::TEXT | Type::VARCHAR | Type::BPCHAR => format!("{column}::text"),
        _ => format!("{column}::float8::text"),
    }
}

/// The expression of a mark of deletion, as a text that [`is_deleted`] reads.
pub(super) fn flag(column: &str, of: &Type) -> String {
    match *of {
        Type::MONEY => format!("{column}::numeric::text"),
        Type::INTERVAL => format!("extract(epoch FROM {column})::text"),
        // The characters of its bytes.
        Type::BYTEA => format!("replace(encode({column}, 'escape'), '\\000', '')"),
        _ => format!("{column}::text"),
    }
}

/// The name of a type in a cast.
pub(super) fn type_name(of: &Type) -> String {
    match *of {
        // Without its length, which would truncate values.
        Type::BPCHAR => "text".to_owned(),
        _ => format!("{}.{}", quoted(of.schema()), quoted(of.name())),
    }
}
