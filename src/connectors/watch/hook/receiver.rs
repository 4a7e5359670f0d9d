//! The receiver of notices: one signed request for each.
//!
//! ```text
//! POST <url>
//! content-type: application/json
//! idempotency-key: <32 hexadecimal digits>
//! dupflow-signature: t=<unix seconds>,v1=<64 hexadecimal digits>
//!
//! {"number":17,"epoch":7,"diff":1,"watch":"press-17","id":"page-4711","similarity":0.93}
//! ```
//!
//! The signature is HMAC-SHA-256, keyed with the secret, of the seconds, a point and the body. The seconds
//! are those of the attempt, so that a receiver can refuse old requests. The key is a hash of what the notice
//! is: its number in the file, epoch, watch, document and diff. Epoch, watch, document and diff alone do not
//! identify it: where a list is changed between two starts without an epoch between them, a match may begin,
//! end and begin again in one epoch.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::http::{Response, StatusCode};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use super::settings::HookSettings;
use crate::credential::Credential;
use crate::watch::notice_file::NoticeLine;

/// Bytes of an answer that are read and kept with a refused notice.
const REASON_BYTES: u64 = 300;

/// The answer to an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// 2xx.
    Accepted,
    /// Another attempt cannot succeed.
    Refused(String),
    /// Another attempt may succeed, after the pause that was asked for, if any.
    Failed { reason: String, asked: Option<Duration> },
}

/// The client of one receiver.
pub(super) struct Receiver {
    agent: Agent,
    url: String,
    secret: Credential,
}

/// The body of a request.
#[derive(Serialize)]
struct HookBody<'a> {
    number: u64,
    #[serde(flatten)]
    notice: &'a NoticeLine,
}

impl Receiver {
    pub(super) fn new(settings: &HookSettings) -> io::Result<Self> {
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // Only the deployment says where notices are sent.
            .proxy(None)
            .timeout_global(Some(settings.timeout))
            .user_agent(concat!("dupflow/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build());
        let agent = config.build().new_agent();
        Ok(Self { agent, url: settings.url.clone(), secret: settings.secret.clone() })
    }

    /// One attempt to deliver a notice, at this time in unix seconds.
    pub(super) fn post(&self, key: &str, number: u64, notice: &NoticeLine, at: f64) -> Answered {
        let body = match serde_json::to_vec(&HookBody { number, notice }) {
            Ok(body) => body,
            Err(error) => return Answered::Refused(error.to_string()),
        };
        let signature = signature(&self.secret, &format!("{at:.0}"), &body);
        let request = self.agent.post(&self.url).content_type("application/json");
        let request = request.header("idempotency-key", key).header("dupflow-signature", signature);
        match request.send(&body[..]) {
            Ok(mut response) => {
                let said = limited(response.body_mut().as_reader(), REASON_BYTES);
                judged(&response, &said)
            }
            Err(error) => Answered::Failed { reason: error.to_string(), asked: None },
        }
    }
}

/// What an answer means for the notice.
fn judged<B>(response: &Response<B>, said: &str) -> Answered {
    let status = response.status();
    if status.is_success() {
        return Answered::Accepted;
    }
    let reason = format!("{status}: {said}");
    let again = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    if status.is_server_error() || again.contains(&status) {
        let asked = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        // The other form, a date, is left to the usual pauses.
        let asked = asked.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
        return Answered::Failed { reason, asked };
    }
    Answered::Refused(reason)
}

/// The value of the header `dupflow-signature`.
fn signature(secret: &Credential, seconds: &str, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.reveal().as_bytes());
    let mac = mac.expect("HMAC takes keys of any length").chain_update(seconds).chain_update(b".");
    let proof = mac.chain_update(body).finalize().into_bytes();
    format!("t={seconds},v1={}", hexadecimal(&proof))
}

/// The value of the header `idempotency-key`.
pub(super) fn key(number: u64, notice: &NoticeLine) -> String {
    let NoticeLine { epoch, diff, watch, id, .. } = notice;
    let mut hash = Sha256::new();
    hash.update(number.to_le_bytes());
    hash.update(epoch.to_le_bytes());
    hash.update(diff.to_le_bytes());
    hash.update((watch.as_bytes().len() as u64).to_le_bytes());
    hash.update(watch.as_bytes());
    hash.update(id.as_bytes());
    hexadecimal(&hash.finalize()[..16])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads at most this many bytes of an answer.
fn limited(mut body: impl Read, most: u64) -> String {
    let mut bytes = Vec::new();
    // A cut answer is as good as a whole one.
    drop(body.by_ref().take(most).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::doc::DocId;
    use dupflow_core::pair::SharesBeside;

    fn notice() -> NoticeLine {
        let id = |name| DocId::new(name).unwrap();
        NoticeLine {
            epoch: 7,
            diff: 1,
            watch: id("w"),
            id: id("d"),
            similarity: 0.5,
            shares: SharesBeside::default(),
        }
    }

    /// Computed with `openssl dgst -sha256 -hmac`.
    #[test]
    fn a_signature_is_that_of_the_seconds_and_the_body() {
        let found = signature(&Credential::new("key"), "1700000000", b"{\"a\":1}");
        assert_eq!(found, "t=1700000000,v1=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03");
    }

    #[test]
    fn a_key_is_a_function_of_what_the_notice_is() {
        let same = key(3, &notice());
        assert_eq!(same.len(), 32);
        assert_eq!(key(3, &NoticeLine { similarity: 0.9, ..notice() }), same);
        let id = |name| DocId::new(name).unwrap();
        let others = [
            key(4, &notice()),
            key(3, &NoticeLine { epoch: 8, ..notice() }),
            key(3, &NoticeLine { diff: -1, ..notice() }),
            key(3, &NoticeLine { watch: id("v"), ..notice() }),
            key(3, &NoticeLine { id: id("e"), ..notice() }),
            key(3, &NoticeLine { watch: id("wd"), id: id("x"), ..notice() }),
            key(3, &NoticeLine { watch: id("w"), id: id("dx"), ..notice() }),
        ];
        for (at, other) in others.iter().enumerate() {
            assert!(*other != same && !others[..at].contains(other), "{at}");
        }
    }

    #[test]
    fn an_answer_is_accepted_or_refused_or_tried_again() {
        let answered = |status: u16, retry: Option<&str>| {
            let response = Response::builder().status(status);
            let response =
                retry.into_iter().fold(response, |response, retry| response.header("Retry-After", retry));
            judged(&response.body(()).unwrap(), "why")
        };
        for status in [200, 201, 202, 204] {
            assert_eq!(answered(status, None), Answered::Accepted);
        }
        // Redirects are not followed: the deployment says where notices are sent.
        for status in [301, 302, 307, 400, 401, 404, 410, 413, 422] {
            assert!(matches!(answered(status, None), Answered::Refused(reason) if reason.ends_with(": why")));
        }
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert!(matches!(answered(status, None), Answered::Failed { asked: None, .. }), "{status}");
        }
        let asked = |retry| match answered(429, Some(retry)) {
            Answered::Failed { asked, .. } => asked,
            other => panic!("{other:?}"),
        };
        assert_eq!(asked("17"), Some(Duration::from_secs(17)));
        assert_eq!(asked("Wed, 21 Oct 2015 07:28:00 GMT"), None);
    }
}
