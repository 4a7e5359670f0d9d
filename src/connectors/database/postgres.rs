//! Connections to a server of PostgreSQL.

use std::error::Error as _;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};

use super::Failure;
use crate::broker::Secret;

/// How long a server may not answer until the connection counts as lost.
const SILENCE: Duration = Duration::from_secs(30);

/// Reads an address.
///
/// # Errors
/// That it is none; nothing of it is told.
pub fn config(url: &Secret) -> Result<Config, String> {
    url.reveal().parse().map_err(|_| {
        "expected an address of a server, as in \"postgres://user@host:5432/database\"".to_owned()
    })
}

/// Connects.
///
/// # Errors
/// That the server is away, or says no.
pub fn connect(url: &Secret, patience: Duration) -> Result<Client, Failure> {
    let mut config = config(url).map_err(Failure::Refused)?;
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
    let mut client = config.connect(NoTls).map_err(|error| failure(&error))?;
    // What is compared and what is written does not depend on how the server is set up.
    client
        .batch_execute(
            "SET client_encoding = 'UTF8'; SET TIME ZONE 'UTC'; SET standard_conforming_strings = on",
        )
        .map_err(|error| failure(&error))?;
    Ok(client)
}

/// What an error means.
pub fn failure(error: &postgres::Error) -> Failure {
    let Some(told) = error.as_db_error() else {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let what = format!("postgres: {error}{cause}");
        // What is wrong with a value or an address passes by no waiting.
        let is_ours = ["serializing", "deserializing", "invalid", "TLS", "authentication"]
            .iter()
            .any(|word| error.to_string().contains(word));
        return if is_ours { Failure::Refused(what) } else { Failure::Away(what) };
    };
    let what = format!("postgres: {} ({})", told.message(), told.code().code());
    let class = &told.code().code()[..2];
    let passes = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    // 08: the connection; 40: a transaction that is to be tried again; 53: no room, no memory, too many
    // connections.
    if passes.contains(told.code()) || matches!(class, "08" | "40" | "53") {
        Failure::Away(what)
    } else {
        Failure::Refused(what)
    }
}

/// An id as a text of the server, which cannot hold U+0000: that becomes U+001A and "0", and U+001A becomes
/// U+001A and "1". All others are as they are.
pub fn stored(id: &str) -> String {
    if id.contains(['\0', '\u{1a}']) {
        id.replace('\u{1a}', "\u{1a}1").replace('\0', "\u{1a}0")
    } else {
        id.to_owned()
    }
}

/// The id that is [stored] so.
pub fn restored(text: &str) -> String {
    if text.contains('\u{1a}') {
        text.replace("\u{1a}0", "\0").replace("\u{1a}1", "\u{1a}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_text_of_its_own() {
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
            assert!(!stored(id).contains('\0'));
            assert_eq!(restored(&stored(id)), id);
        }
        let mut texts: Vec<_> = ids.iter().map(|id| stored(id)).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), ids.len());
        assert_eq!(stored("重複 é"), "重複 é");
    }

    #[test]
    fn an_address_is_never_told() {
        let told = config(&Secret::new("postgres://me:hunter2@host:port/db")).unwrap_err();
        assert!(!told.contains("hunter2") && told.contains("postgres://"));
        // Nobody listens there.
        let refused =
            connect(&Secret::new("host=127.0.0.1 port=1 user=me password=hunter2"), SILENCE).err().unwrap();
        assert!(refused.is_retriable() && !refused.to_string().contains("hunter2"), "{refused}");
    }
}
