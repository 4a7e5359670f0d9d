//! Connections to a PostgreSQL server.

use std::borrow::Cow;
use std::error::Error as _;
use std::time::Duration;

use postgres::{Client, Config, NoTls, Transaction, TransactionBuilder};

use super::DatabaseFailure;
use crate::credential::Credential;

/// Silence of the server after which the connection counts as lost.
const SILENCE: Duration = Duration::from_secs(30);

/// Parses an address.
///
/// # Errors
/// That it is not one; the message does not contain it.
pub fn config(url: &Credential) -> Result<Config, String> {
    url.reveal().parse().map_err(|_| {
        "expected an address of a server, as in \"postgres://user@host:5432/database\"".to_owned()
    })
}

/// Connects to the server.
///
/// # Errors
/// That the server is unreachable, or refuses.
pub fn connect(url: &Credential, patience: Duration) -> Result<Client, DatabaseFailure> {
    let mut config = config(url).map_err(DatabaseFailure::Refused)?;
    if config.get_application_name().is_none() {
        config.application_name("dupflow");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(patience);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    config.keepalives_idle(SILENCE);
    config.connect(NoTls).map_err(|error| failure(&error))
}

/// The encoding of the database, if it is not UTF-8.
///
/// # Errors
/// That the server does not say.
pub fn other_encoding(client: &mut Client) -> Result<Option<String>, postgres::Error> {
    let encoding: String = client.query_one("SELECT current_setting('server_encoding')", &[])?.try_get(0)?;
    Ok(Some(encoding).filter(|encoding| encoding != "UTF8"))
}

/// Settings of a transaction. They make the texts of values, comparisons and writes independent of those of
/// the server and of the role, and the server notices soon that this machine is gone.
pub const SETTINGS: &str = "SET LOCAL TimeZone = 'UTC'; SET LOCAL standard_conforming_strings = on;
    SET LOCAL DateStyle = 'ISO, MDY'; SET LOCAL IntervalStyle = 'postgres';
    SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1;
    SET LOCAL tcp_keepalives_idle = 30; SET LOCAL tcp_keepalives_interval = 10;
    SET LOCAL tcp_keepalives_count = 3";

/// Begins a transaction with the [`SETTINGS`] and further ones. Nothing is set for the connection: a pooler
/// gives it to other programs too.
///
/// # Errors
/// That the server does not accept it.
pub fn begin<'c>(how: TransactionBuilder<'c>, settings: &str) -> Result<Transaction<'c>, DatabaseFailure> {
    let begun = how.start().and_then(|mut transaction| {
        transaction.batch_execute(&format!("{SETTINGS}; {settings}"))?;
        Ok(transaction)
    });
    begun.map_err(|error| failure(&error))
}

/// Classifies an error.
pub fn failure(error: &postgres::Error) -> DatabaseFailure {
    let Some(db_error) = error.as_db_error() else {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let what = format!("postgres: {error}{cause}");
        // Errors in a value or an address are not retriable.
        let is_ours = ["serializing", "deserializing", "invalid", "TLS", "authentication"]
            .iter()
            .any(|word| error.to_string().contains(word));
        return if is_ours { DatabaseFailure::Refused(what) } else { DatabaseFailure::Away(what) };
    };
    let code = db_error.code().code();
    let what = format!("postgres: {} ({code})", db_error.message());
    if passes(code) || db_error.routine() == Some(CHANGED_PLAN) {
        return DatabaseFailure::Away(what);
    }
    DatabaseFailure::Refused(match code {
        "26000" | "42P05" => format!(
            "{what}: a pooler gives each transaction another connection, and has to keep prepared \
             statements: PgBouncer from 1.21 on, with max_prepared_statements, or else pool_mode = session"
        ),
        "53400" => format!(
            "{what}: a limit of the server or the role (temp_file_limit) is too low for this: raise it \
             (ALTER ROLE … SET temp_file_limit), or make the index that docs/tables.md advises"
        ),
        "22P05" => format!(
            "{what}: the encoding of the database has no such character: use a database whose encoding is \
             UTF8 (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0)"
        ),
        _ => what,
    })
}

/// Error codes (SQLSTATE) of PostgreSQL, and their classes, with which a later attempt may succeed; any other
/// one ends a run. From its appendix A, versions 15 to 18.
const PASSING: [(&str, &str); 16] = [
    ("08", "the connection"),
    ("40", "a transaction that has to be repeated: serialization, deadlock"),
    ("53000", "out of resources"),
    ("53100", "out of disk space"),
    ("53200", "out of memory"),
    ("53300", "out of connections"),
    ("25006", "the server is read-only, as a standby is"),
    ("25P03", "idle_in_transaction_session_timeout"),
    ("25P04", "transaction_timeout"),
    ("55006", "something is in use"),
    ("55P03", "lock_timeout"),
    ("57014", "statement_timeout, or canceled"),
    ("57P01", "ended by an administrator"),
    ("57P02", "a crash of another session"),
    ("57P03", "the server starts or shuts down"),
    ("57P05", "idle_session_timeout"),
];

fn passes(code: &str) -> bool {
    PASSING.iter().any(|(passing, _)| code.starts_with(passing))
}

/// The routine of the error that a prepared statement has other columns since `ALTER TABLE`; its code is that
/// of any feature that is not supported. The next attempt prepares anew, and examines the columns.
const CHANGED_PLAN: &str = "RevalidateCachedQuery";

/// An id as stored on the server, whose texts cannot contain U+0000: U+0000 becomes U+001A "0", and U+001A
/// becomes U+001A "1". All other characters stay the same.
pub fn to_stored_text(id: &str) -> String {
    if id.contains(['\0', '\u{1a}']) {
        id.replace('\u{1a}', "\u{1a}1").replace('\0', "\u{1a}0")
    } else {
        id.to_owned()
    }
}

/// The id of a [to_stored_text] text.
pub fn from_stored_text(text: &str) -> String {
    if text.contains('\u{1a}') {
        text.replace("\u{1a}0", "\0").replace("\u{1a}1", "\u{1a}")
    } else {
        text.to_owned()
    }
}

/// JSON whose strings are [stored texts](to_stored_text): the server reads no U+0000 in them.
pub fn to_stored_json(json: &str) -> Cow<'_, str> {
    escapes(json, |escape, _| match escape {
        "\\u0000" => Some(("\\u001a0", 0)),
        "\\u001a" => Some(("\\u001a1", 0)),
        _ => None,
    })
}

/// The JSON of a [to_stored_json] text.
pub fn from_stored_json(stored: &str) -> Cow<'_, str> {
    escapes(stored, |escape, behind| match (escape, behind.first()?) {
        ("\\u001a", b'0') => Some(("\\u0000", 1)),
        ("\\u001a", b'1') => Some(("\\u001a", 1)),
        _ => None,
    })
}

/// Replaces escaped characters of JSON. `other` is given one, and what is behind it; it returns what to
/// write, and how many bytes behind are left out.
fn escapes(json: &str, other: impl Fn(&str, &[u8]) -> Option<(&'static str, usize)>) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let (mut out, mut from, mut at) = (String::new(), 0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        let place = at + found;
        at = place + if bytes.get(place + 1) == Some(&b'u') { 6 } else { 2 };
        let replaced = json.get(place..at).and_then(|escape| other(escape, &bytes[at..]));
        if let Some((written, more)) = replaced {
            out = out + &json[from..place] + written;
            at += more;
            from = at;
        }
    }
    if from == 0 { json.into() } else { (out + &json[from..]).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_codes() {
        let rows: String = PASSING.iter().map(|(code, what)| format!("| `{code}` | {what} |\n")).collect();
        assert!(
            include_str!("../../../../docs/tables.md").contains(&rows),
            "docs/tables.md should have:\n{rows}"
        );
    }

    /// Each code as a server raises it: those that pass, and others of the same classes.
    #[test]
    fn codes_pass_or_end_a_run() {
        let server = match crate::tables::test_server::Server::start() {
            Ok(server) => server,
            Err(why) => return crate::tables::test_server::skipped("codes_pass_or_end_a_run", &why),
        };
        let mut client = server.client();
        let mut raised = |code: &str| {
            let sql = format!("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{code}'; END $$");
            failure(&client.batch_execute(&sql).unwrap_err())
        };
        let of_class = |code: &str| if code.len() == 2 { format!("{code}001") } else { code.to_owned() };
        for (code, _) in PASSING {
            assert!(raised(&of_class(code)).is_retriable(), "{code}");
        }
        let ending = "0A000 22021 22P05 53400 23505 25001 25P02 26000 28000 28P01 3D000 42501 42703 \
                      42P01 42P05 55000 57P04 XX001";
        for code in ending.split(' ') {
            let failure = raised(code);
            assert!(!failure.is_retriable(), "{code}");
            let advises = failure.to_string().contains("max_prepared_statements");
            assert_eq!(advises, matches!(code, "26000" | "42P05"), "{failure}");
        }
        client.batch_execute("CREATE TABLE t (a integer)").unwrap();
        let prepared = client.prepare("SELECT * FROM t").unwrap();
        client.batch_execute("ALTER TABLE t ADD b integer").unwrap();
        let failure = failure(&client.query(&prepared, &[]).unwrap_err());
        assert!(failure.is_retriable() && failure.to_string().contains("0A000"), "{failure}");
    }

    #[test]
    fn stored_json_has_the_ids_of_other_tables() {
        for id in ["a\0x", "\u{1a}0", "a\u{1a}1", "\\u0000", "\\\0", "\"\0\n", "\u{1}0", "é\0ü", "plain"] {
            let json = serde_json::json!({ "id": id }).to_string();
            let stored = to_stored_json(&json);
            let read: serde_json::Value = serde_json::from_str(&stored).unwrap();
            assert_eq!(read["id"], to_stored_text(id), "{json}");
            assert_eq!(from_stored_json(&stored), json);
        }
    }

    #[test]
    fn stored_texts_of_ids_are_unique() {
        let ids = [
            "a",
            "a\0b",
            "\u{1a}",
            "\u{1a}0",
            "\u{1a}1",
            "\0",
            "\0\u{1a}1",
            "文\0書🦀",
            "مرحبا",
            "เอกสาร",
            "重複",
        ];
        for id in ids {
            assert!(!to_stored_text(id).contains('\0'));
            assert_eq!(from_stored_text(&to_stored_text(id)), id);
        }
        let mut texts: Vec<_> = ids.iter().map(|id| to_stored_text(id)).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), ids.len());
        assert_eq!(to_stored_text("重複 é"), "重複 é");
    }

    #[test]
    fn messages_do_not_contain_addresses() {
        let message = config(&Credential::new("postgres://me:hunter2@host:port/db")).unwrap_err();
        assert!(!message.contains("hunter2") && message.contains("postgres://"));
        // No server listens on this port.
        let refused = connect(&Credential::new("host=127.0.0.1 port=1 user=me password=hunter2"), SILENCE)
            .err()
            .unwrap();
        assert!(refused.is_retriable() && !refused.to_string().contains("hunter2"), "{refused}");
    }
}
