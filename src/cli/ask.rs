//! `dupflow query --url`: asks a run that is under way.
//!
//! The text goes to the run's monitor (`POST /similar`), and comes back as documents, best first, of the epoch that the run has closed
//! last. Only HTTP: a run that is to be asked from elsewhere by HTTPS stands behind something that speaks it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::broker::{Secret, from_file};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most documents that a run tells at once.
const MOST: usize = 1000;

/// The most bytes of an answer: [`MOST`] of the longest ids, and some.
const ANSWER_BYTES: u64 = 16 << 20;

/// What a run answers.
#[derive(Debug, Deserialize)]
pub(super) struct Answered {
    pub(super) epoch: u64,
    pub(super) empty: bool,
    pub(super) documents: Vec<Near>,
    /// Further ones that it leaves out.
    pub(super) more: usize,
}

/// A document that the text would be paired with.
#[derive(Debug, Deserialize)]
pub(super) struct Near {
    pub(super) id: String,
    pub(super) similarity: f64,
    pub(super) evidence: Weighed,
}

/// Why.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Weighed {
    pub(super) blocks: u16,
    pub(super) look: u16,
    pub(super) components: u32,
    pub(super) standard_error: f64,
}

#[derive(Serialize)]
struct Question<'t> {
    text: &'t str,
    top: usize,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// The token in a file, if one is given.
///
/// # Errors
/// What is wrong with the file.
pub(super) fn token(path: Option<&Path>) -> anyhow::Result<Option<Secret>> {
    let read = |file| from_file(file).map_err(|what| anyhow::anyhow!("--token-file: {what}"));
    path.map(read).transpose()
}

/// Asks the run at `url`, as in `http://127.0.0.1:9600`, which documents are similar to a text: all that it tells, or the `top` best.
///
/// # Errors
/// If nobody answers there, or the run refuses, with what it says.
pub(super) fn ask(
    url: &str,
    token: Option<&Secret>,
    text: &str,
    top: Option<usize>,
) -> anyhow::Result<Answered> {
    ensure!(url.starts_with("http://"), "--url: expected http://HOST:PORT, found {url:?}");
    let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
    let agent = config.build().new_agent();
    let place = format!("{}/similar", url.trim_end_matches('/'));
    let mut request = agent.post(&place).header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {}", token.reveal()));
    }
    let question = serde_json::to_vec(&Question { text, top: top.unwrap_or(MOST).clamp(1, MOST) })?;
    let sent = request.send(&question[..]);
    let mut answer = sent.with_context(|| format!("no run answers at {url}"))?;
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
    let body = body.with_context(|| format!("the answer of {url} broke off"))?;
    if status != 200 {
        let line = serde_json::from_slice::<Refusal>(&body).map(|refusal| refusal.error);
        let line = line
            .unwrap_or_else(|_| String::from_utf8_lossy(&body).lines().next().unwrap_or_default().to_owned());
        match status {
            401 => bail!("{url} asks for a token: --token-file names the file that has it"),
            _ => bail!("{url} refuses ({status}): {line}"),
        }
    }
    serde_json::from_slice(&body).with_context(|| format!("{url} is no run of dupflow"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// What is made of one answer, and what was asked for it.
    fn asked(answer: &'static str) -> (Result<Answered, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (String::new(), [0; 4096]);
            while !request.contains("\"top\":2}") {
                let n = stream.read(&mut buffer).unwrap();
                request.push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
            stream.write_all(answer.as_bytes()).unwrap();
            request
        });
        let token = Secret::new("hunter2hunter2hunter2");
        let answered =
            ask(&url, Some(&token), "二 \"texts\"\n", Some(2)).map_err(|error| format!("{error:#}"));
        (answered, server.join().unwrap())
    }

    #[test]
    fn a_run_is_asked_and_its_answer_is_read() {
        let body = "{\"epoch\":7,\"empty\":false,\"documents\":[{\"id\":\"文\",\"similarity\":0.9,\"cluster\":null,\"evidence\":\
            {\"blocks\":1,\"of_blocks\":18,\"look\":2,\"components\":128,\"of_components\":448,\"standard_error\":0.01}}],\"more\":3}";
        let answer =
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let (answered, request) = asked(answer.leak());
        let answered = answered.unwrap();
        assert_eq!((answered.epoch, answered.empty, answered.more), (7, false, 3));
        let [near] = &answered.documents[..] else { panic!("{answered:?}") };
        let weighed = &near.evidence;
        assert_eq!((near.id.as_str(), weighed.blocks, weighed.look, weighed.components), ("文", 1, 2, 128));
        assert!(request.starts_with("POST /similar HTTP/1.1\r\n"), "{request}");
        assert!(
            request.to_ascii_lowercase().contains("authorization: bearer hunter2hunter2hunter2\r\n"),
            "{request}"
        );
        assert!(request.ends_with("{\"text\":\"二 \\\"texts\\\"\\n\",\"top\":2}"), "{request}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused = |answer| asked(answer).0.unwrap_err();
        let no = |status: &str, body: &str| -> &'static str {
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
                .leak()
        };
        let busy = refused(no("503 Service Unavailable", "{\"error\":\"too many questions are under way\"}"));
        assert!(busy.ends_with("refuses (503): too many questions are under way"), "{busy}");
        let full = refused(no("503 Service Unavailable", "too many connections\n"));
        assert!(full.ends_with("refuses (503): too many connections"), "{full}");
        let token = refused(no("401 Unauthorized", "{\"error\":\"a token is needed\"}"));
        assert!(token.ends_with("asks for a token: --token-file names the file that has it"), "{token}");
        let other = refused(no("200 OK", "<html>"));
        assert!(other.contains("is no run of dupflow"), "{other}");

        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let gone = ask(&format!("http://{nobody}/"), None, "x", None).unwrap_err().to_string();
        assert_eq!(gone, format!("no run answers at http://{nobody}/"));
        let https = ask("https://127.0.0.1", None, "x", None).unwrap_err().to_string();
        assert!(https.starts_with("--url: expected http://HOST:PORT"), "{https}");
    }
}
