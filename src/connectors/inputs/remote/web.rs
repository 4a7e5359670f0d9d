//! Web addresses: one file each, requested with its query.
//!
//! The query is a part of the address: `?version=2` is another file. Values that let a reader in (a
//! signature,
//! a token, a password) are requested, and are neither shown nor a part of the input's name. So a file whose
//! address is signed anew is the same input.

use std::collections::BTreeSet;

use object_store::ObjectStoreScheme;
use url::{Url, form_urlencoded};

/// A web address, and what is shown of it.
#[derive(Clone, Debug)]
pub(super) struct WebAddress {
    url: Url,
    shown: String,
    /// Values that are not shown.
    secrets: Vec<String>,
}

/// Parameters that belong to a signature, if one of the first names is among them: of Amazon, Google,
/// CloudFront and Azure.
const SIGNED: [(&str, &[&str]); 2] = [
    (
        "signature",
        &["awsaccesskeyid", "expires", "googleaccessid", "key-pair-id", "policy", "hash-algorithm"],
    ),
    (
        "sig",
        &[
            "se", "si", "sip", "ske", "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "srt", "ss",
            "st", "sv",
        ],
    ),
];

/// Words in the name of a parameter whose value is a secret.
const SECRET: [&str; 17] = [
    "accesstoken",
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "credential",
    "hmac",
    "jwt",
    "key",
    "passwd",
    "password",
    "pwd",
    "secret",
    "session",
    "sig",
    "signature",
    "token",
];

impl WebAddress {
    /// The address of this URL.
    pub(super) fn new(url: &Url) -> Self {
        let mut url = url.clone();
        url.set_fragment(None);
        let names: BTreeSet<String> = url.query_pairs().map(|(name, _)| name.to_ascii_lowercase()).collect();
        let is_shown = |part: &&str| {
            let name = part.split_once('=').map_or(*part, |(name, _)| name).to_ascii_lowercase();
            let is_signed = |(sign, with): &(&str, &[&str])| names.contains(*sign) && with.contains(&&*name);
            let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
            !name.starts_with("x-amz-")
                && !name.starts_with("x-goog-")
                && !SIGNED.iter().any(is_signed)
                && !words.any(|word| SECRET.contains(&word))
        };
        let (query, hidden): (Vec<&str>, Vec<&str>) =
            url.query().into_iter().flat_map(|query| query.split('&')).partition(is_shown);
        let mut shown = format!("{}{}", url.origin().ascii_serialization(), url.path());
        if !query.is_empty() {
            shown = format!("{shown}?{}", query.join("&"));
        }
        // As they are requested, and as a server may repeat them. A short one is no secret, and may be a part
        // of any word.
        let decoded = hidden.iter().flat_map(|part| form_urlencoded::parse(part.as_bytes()));
        let raw = hidden.iter().filter_map(|part| Some(part.split_once('=')?.1));
        let secrets = decoded.map(|(_, value)| value.into_owned()).chain(raw.map(str::to_owned));
        let secrets = secrets.chain(url.password().map(str::to_owned)).filter(|value| value.len() >= 4);
        Self { shown, secrets: secrets.collect(), url }
    }

    /// What is requested.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Whether it is one file: not a folder, and no key of a store that has addresses of its own.
    pub(super) fn is_file(&self) -> bool {
        let is_in_store =
            || ObjectStoreScheme::parse(&self.url).is_ok_and(|(store, _)| store != ObjectStoreScheme::Http);
        self.url.query().is_some() || !self.url.path().ends_with('/') && !is_in_store()
    }

    /// What is shown, which is the name of the input.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// A message about the address without what is not shown.
    pub(super) fn redacted(&self, message: &str) -> String {
        let message = message.replace(self.url.as_str(), &self.shown);
        self.secrets.iter().fold(message, |message, secret| message.replace(secret, "***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_an_address_are_not_shown() {
        for (typed, shown) in [
            ("https://h/a.jsonl", "https://h/a.jsonl"),
            ("http://h:81/a%20b?version=2&page=1#c", "http://h:81/a%20b?version=2&page=1"),
            ("https://me:pass@h/a?b", "https://h/a?b"),
            ("https://h/a?X-Amz-Signature=se/cret&versionId=2&X-Amz-Expires=3", "https://h/a?versionId=2"),
            ("https://h/a?x-goog-signature=se%2Fcret&X-Goog-Date=2", "https://h/a"),
            ("https://h/a?Expires=1&Signature=se/cret&Key-Pair-Id=3", "https://h/a"),
            ("https://h/a?sv=1&sp=r&sig=se%2Fcret&comp=x", "https://h/a?comp=x"),
            ("https://h/a?sv=1&expires=2&policy=3", "https://h/a?sv=1&expires=2&policy=3"),
            ("https://h/a?access_token=se/cret&monkey=2&api_key=3&apiKey=4", "https://h/a?monkey=2"),
        ] {
            let address = WebAddress::new(&Url::parse(typed).unwrap());
            assert_eq!(address.shown(), shown);
            let query = address.url().query().unwrap_or("-");
            let redacted = address.redacted(&format!("GET {} failed, {query}, se/cret", address.url()));
            assert!(redacted.starts_with(&format!("GET {shown} failed")), "{redacted}");
            assert!(!redacted.contains("pass") && !redacted.contains("se%2F"), "{redacted}");
            assert_eq!(redacted.contains("se/cret"), !typed.contains("cret"), "{redacted}");
        }
    }
}
