//! The address of an object store, and the client of the store that it names.
//!
//! Keys are literal: `s3://bucket/a%20b?c#d` is the key `a%20b?c#d`, in which `%20` is no blank and
//! `#` begins no fragment.

use std::env;
use std::error::Error;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{ObjectStore, parse_url_opts};
use url::Url;

/// Parses an address as a URL, whose path is the encoded key.
///
/// # Errors
/// Why it is none, or why its key is not read.
pub(crate) fn url_of(address: &str) -> Result<Url, String> {
    let (scheme, rest) = address.split_once("://").unwrap_or((address, ""));
    if scheme.starts_with("http") {
        return Url::parse(address).map_err(|error| error.to_string());
    }
    let key = rest.split_once('/').map_or("", |(_, key)| key);
    if key.contains("//") {
        let why = "a name in its key is empty (\"//\"), which is not read: copy the object under another key";
        return Err(why.to_owned());
    }
    if let Some(name) = key.split('/').find(|name| matches!(*name, "." | "..")) {
        return Err(format!("a name in its key is \"{name}\", which is not read: write the key without it"));
    }
    let mut encoded = String::new();
    for character in rest.chars() {
        match character {
            '%' | '#' | '?' | '\\' | '\0'..=' ' => encoded += &format!("%{:02X}", u32::from(character)),
            other => encoded.push(other),
        }
    }
    Url::parse(&format!("{scheme}://{encoded}")).map_err(|error| error.to_string())
}

/// The store that a URL names, and the key in it. Settings that the URL lacks are read from the environment.
///
/// # Errors
/// If no store has such a URL, or its settings are wrong.
pub(crate) fn store_at(url: &Url) -> object_store::Result<(Arc<dyn ObjectStore>, Path)> {
    let (store, key) = parse_url_opts(url, settings(url))?;
    Ok((store.into(), key))
}

/// The settings of the client of a URL: the variables of the environment.
pub(crate) fn settings(url: &Url) -> impl Iterator<Item = (String, String)> + use<> {
    let variables = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let plain = (url.scheme() == "http").then(|| ("allow_http".to_owned(), "true".to_owned()));
    variables.chain(plain)
}

/// An error with its causes, each one once.
pub(crate) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_literal() {
        assert_eq!(url_of("https://h/a%20b#c").unwrap().as_str(), "https://h/a%20b#c");
        assert_eq!(url_of("s3://b/a%20b#c?d").unwrap().path(), "/a%2520b%23c%3Fd");
        for key in ["a%20b", "a b#c?d", "a+b&c=d", " a\\b ", "日本/%", "a..b/.c"] {
            let url = url_of(&format!("memory:///{key}")).unwrap();
            assert_eq!(store_at(&url).unwrap().1.as_ref(), key);
        }
        for (key, why) in [("a//b", "is empty"), ("a/../b", "is \"..\""), ("./b", "is \".\"")] {
            let error = url_of(&format!("s3://bucket/{key}")).unwrap_err();
            assert!(error.starts_with("a name in its key ") && error.contains(why), "{error}");
        }
    }
}
