//! `dupflow query --url`: queries a running process.
//!
//! Texts are sent to the run's monitor (`POST /similar`), one query per line. Each answer lists documents,
//! best first, as of the last closed epoch. Many queries are sent as several requests, one after the other.
//! Only HTTP is supported; HTTPS needs a proxy in front of the run.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use super::questions::UserQuery;
use dupflow_connectors::credential::Credential;
use dupflow_core::pair::SharesBeside;

/// Time limit for the answers to one request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Most documents in one answer of a run.
const MOST: usize = 1000;

/// Most queries in one request, and the body size that several queries must stay below; both are far below
/// the limits of a monitor.
const MOST_QUESTIONS: usize = 256;
const BODY_BYTES: usize = 1 << 20;

/// Most bytes of an answer: room for [`MOST`] of the longest ids.
const ANSWER_BYTES: u64 = 16 << 20;

/// The answer of a run to one query.
#[derive(Debug, Deserialize)]
pub(super) struct RemoteAnswer {
    pub(super) epoch: u64,
    pub(super) empty: bool,
    pub(super) documents: Vec<RemoteDocument>,
    /// Number of further documents that the answer leaves out.
    pub(super) more: usize,
}

/// A document that the text would be paired with.
#[derive(Debug, Deserialize)]
pub(super) struct RemoteDocument {
    pub(super) id: String,
    /// Whether it is of the reference of the run.
    pub(super) old: Option<bool>,
    pub(super) similarity: f64,
    #[serde(flatten)]
    pub(super) shares: SharesBeside,
    pub(super) evidence: RemoteEvidence,
}

/// Why it would be paired.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct RemoteEvidence {
    pub(super) blocks: u16,
    pub(super) look: u16,
    pub(super) components: u32,
    pub(super) standard_error: f64,
}

#[derive(Serialize)]
struct QueryLine<'t> {
    text: &'t str,
    top: usize,
}

#[derive(Deserialize)]
struct RemoteRefusal {
    error: String,
}

/// Reads the token from a file, if one is given.
///
/// # Errors
/// If the file cannot be read or holds no token.
pub(super) fn token(path: Option<&Path>) -> anyhow::Result<Option<Credential>> {
    let read = |file| Credential::from_file(file).map_err(|what| anyhow::anyhow!("--token-file: {what}"));
    path.map(read).transpose()
}

/// Queries the run at `url`, as in `http://127.0.0.1:9600`, for documents similar to each text: all of them,
/// or the `top` best. `note` receives the answers, or the reasons why there is none, in the order of the
/// queries.
///
/// # Errors
/// If the connection fails or the run refuses; errors of `note`.
pub(super) fn ask(
    url: &str,
    token: Option<&Credential>,
    questions: &[UserQuery],
    top: Option<usize>,
    mut note: impl FnMut(&UserQuery, Result<RemoteAnswer, String>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    ensure!(url.starts_with("http://"), "--url: expected http://HOST:PORT, found {url:?}");
    let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
    let agent = config.build().new_agent();
    let place = format!("{}/similar", url.trim_end_matches('/'));
    let mut rest = questions;
    while !rest.is_empty() {
        let (body, asked) = lines(rest, top)?;
        let mut request = agent.post(&place).header("content-type", "application/x-ndjson");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {}", token.reveal()));
        }
        let mut sent = request.send(&body[..]).with_context(|| format!("no run answers at {url}"))?;
        let status = sent.status().as_u16();
        let most = ANSWER_BYTES.saturating_mul(asked as u64);
        let mut answers = BufReader::new(sent.body_mut().with_config().limit(most).reader());
        if status != 200 {
            let mut reply = String::new();
            answers.read_to_string(&mut reply).with_context(|| broke_off(url))?;
            let line = serde_json::from_str::<RemoteRefusal>(&reply).map(|refusal| refusal.error);
            let line = line.unwrap_or_else(|_| reply.lines().next().unwrap_or_default().to_owned());
            match status {
                401 => bail!("{url} asks for a token: --token-file names the file that has it"),
                _ => bail!("{url} refuses ({status}): {line}"),
            }
        }
        for question in &rest[..asked] {
            let mut line = String::new();
            let length = answers.read_line(&mut line).with_context(|| broke_off(url))?;
            ensure!(length > 0, broke_off(url));
            let answer = match serde_json::from_str::<RemoteRefusal>(&line) {
                Ok(RemoteRefusal { error }) => Err(format!("has no answer: {error}")),
                Err(_) => {
                    Ok(serde_json::from_str(&line).with_context(|| format!("{url} is no run of dupflow"))?)
                }
            };
            note(question, answer)?;
        }
        rest = &rest[asked..];
    }
    Ok(())
}

fn broke_off(url: &str) -> String {
    format!("the answer of {url} broke off")
}

/// The body of a request with the first of these queries, at least one, and their number.
fn lines(questions: &[UserQuery], top: Option<usize>) -> anyhow::Result<(Vec<u8>, usize)> {
    let mut body = Vec::new();
    for (asked, question) in questions.iter().take(MOST_QUESTIONS).enumerate() {
        let top = question.top.or(top).unwrap_or(MOST).clamp(1, MOST);
        let line = serde_json::to_vec(&QueryLine { text: &question.text, top })?;
        if asked > 0 && body.len() + line.len() >= BODY_BYTES {
            return Ok((body, asked));
        }
        body.extend(line);
        body.push(b'\n');
    }
    Ok((body, questions.len().min(MOST_QUESTIONS)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn question(text: &str, top: Option<usize>) -> UserQuery {
        UserQuery { name: "name".to_owned(), text: text.to_owned(), top }
    }

    /// The result of one answer, and the request that was sent for it.
    fn asked(answer: &'static str) -> (Result<Result<RemoteAnswer, String>, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (String::new(), [0; 4096]);
            while !request.contains("\"top\":2}\n") {
                let n = stream.read(&mut buffer).unwrap();
                request.push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
            stream.write_all(answer.as_bytes()).unwrap();
            request
        });
        let token = Credential::new("hunter2hunter2hunter2");
        let mut answers = Vec::new();
        let outcome =
            ask(&url, Some(&token), &[question("二 \"texts\"\n", None)], Some(2), |_, received| {
                answers.push(received);
                Ok(())
            });
        let answered = outcome.map(|()| answers.remove(0)).map_err(|error| format!("{error:#}"));
        (answered, server.join().unwrap())
    }

    #[test]
    fn a_running_process_is_queried() {
        let body = "{\"epoch\":7,\"empty\":false,\"documents\":[{\"id\":\"文\",\"similarity\":0.9,\
            \"cluster\":null,\
            \"evidence\":{\"blocks\":1,\"of_blocks\":18,\"look\":2,\"components\":128,\
            \"of_components\":448,\"standard_error\":0.01}}],\"more\":3}";
        let answer =
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let (answered, request) = asked(answer.leak());
        let answered = answered.unwrap().unwrap();
        assert_eq!((answered.epoch, answered.empty, answered.more), (7, false, 3));
        let [near] = &answered.documents[..] else { panic!("{answered:?}") };
        let weighed = &near.evidence;
        assert_eq!((near.id.as_str(), weighed.blocks, weighed.look, weighed.components), ("文", 1, 2, 128));
        assert!(request.starts_with("POST /similar HTTP/1.1\r\n"), "{request}");
        assert!(
            request.to_ascii_lowercase().contains("authorization: bearer hunter2hunter2hunter2\r\n"),
            "{request}"
        );
        assert!(request.ends_with("{\"text\":\"二 \\\"texts\\\"\\n\",\"top\":2}\n"), "{request}");
    }

    #[test]
    fn problems_are_reported() {
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
        let gone = ask(&format!("http://{nobody}/"), None, &[question("x", None)], None, |_, _| Ok(()))
            .unwrap_err()
            .to_string();
        assert_eq!(gone, format!("no run answers at http://{nobody}/"));
        let https = ask("https://127.0.0.1", None, &[question("x", None)], None, |_, _| Ok(()))
            .unwrap_err()
            .to_string();
        assert!(https.starts_with("--url: expected http://HOST:PORT"), "{https}");
    }

    #[test]
    fn a_question_alone_may_fail_and_many_go_in_several_requests() {
        let body = "{\"id\":null,\"error\":\"the run has ended\"}\n";
        let answer =
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        assert_eq!(asked(answer.leak()).0.unwrap().unwrap_err(), "has no answer: the run has ended");

        let many = vec![question("x", Some(5000)); 600];
        let (first, sent) = lines(&many, None).unwrap();
        assert_eq!((sent, first.iter().filter(|byte| **byte == b'\n').count()), (256, 256));
        assert!(first.starts_with(b"{\"text\":\"x\",\"top\":1000}\n"));
        assert_eq!(lines(&many[512..], None).unwrap().1, 88);
        let long = vec![question(&"x".repeat(400_000), None); 4];
        assert_eq!([lines(&long, None).unwrap().1, lines(&long[2..], None).unwrap().1], [2, 2]);
        let huge = vec![question(&"x".repeat(2 << 20), None); 2];
        assert_eq!(lines(&huge, None).unwrap().1, 1);
    }
}
