//! A small object store in this process: the part of S3 that reads, with faults.
//!
//! A fault begins with the second request for bytes of an object, so that the first part of it has been read.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::process::Command;
use std::sync::Arc;

use parking_lot::Mutex;

/// What happens to an object while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is replaced by one of the same size; the store knows conditions.
    Changed,
    /// It is replaced by one of the same size; the store ignores conditions.
    Replaced,
    /// It is replaced by a shorter one; the store ignores conditions.
    Shortened,
    /// It is deleted.
    Deleted,
    /// It may not be read any more.
    Forbidden,
    /// The credentials are too old.
    Expired,
    /// Answers have half of the bytes that they say.
    Short,
    /// Answers come in small pieces.
    Slow,
    /// One request is refused, for too many.
    Busy,
    /// The connection of one request ends in the middle of the answer.
    Lost,
}

impl Fault {
    /// All of them.
    pub(crate) const ALL: [Self; 10] = [
        Self::Changed,
        Self::Replaced,
        Self::Shortened,
        Self::Deleted,
        Self::Forbidden,
        Self::Expired,
        Self::Short,
        Self::Slow,
        Self::Busy,
        Self::Lost,
    ];

    /// Whether all bytes arrive in the end.
    pub(crate) fn passes(self) -> bool {
        matches!(self, Self::Slow | Self::Busy | Self::Lost)
    }
}

#[derive(Default)]
struct Objects {
    /// The bytes by bucket and key.
    bytes: BTreeMap<String, Vec<u8>>,
    /// The object that has a fault, and the number of requests for its bytes.
    fault: Option<(String, Fault)>,
    gets: usize,
    /// The requests, each with its target.
    log: Vec<String>,
}

/// The store, on a port of this machine.
pub(crate) struct Store {
    objects: Arc<Mutex<Objects>>,
    port: u16,
}

impl Store {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let objects = Arc::<Mutex<Objects>>::default();
        let shared = Arc::clone(&objects);
        // It ends with the process.
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let objects = Arc::clone(&shared);
                std::thread::spawn(move || serve(&connection, &objects));
            }
        });
        Self { objects, port }
    }

    /// Puts an object at `bucket/key`.
    pub(crate) fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.objects.lock().bytes.insert(path.to_owned(), bytes.into());
    }

    /// An object of the store.
    pub(crate) fn get(&self, path: &str) -> Option<Vec<u8>> {
        self.objects.lock().bytes.get(path).cloned()
    }

    /// Lets an object have a fault from now on; `None` ends all faults.
    pub(crate) fn fault(&self, fault: Option<(&str, Fault)>) {
        let mut objects = self.objects.lock();
        objects.fault = fault.map(|(path, fault)| (path.to_owned(), fault));
        objects.gets = 0;
    }

    /// Its web address.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests so far: method and target.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.objects.lock().log.clone()
    }

    /// Lets a program take this store for Amazon's.
    pub(crate) fn is_for(&self, command: &mut Command) {
        command.envs([
            ("AWS_ENDPOINT", &*self.address()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
        ]);
    }
}

/// Answers the requests of a connection.
fn serve(connection: &TcpStream, objects: &Mutex<Objects>) {
    let mut reader = BufReader::new(connection);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => head.push(line.trim().to_owned()),
            }
        }
        let header = |name: &str| {
            head.iter().find_map(|line| {
                line.split_once(": ")
                    .filter(|(one, _)| one.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value)
            })
        };
        let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
        if std::io::Read::read_exact(&mut reader, &mut body).is_err() {
            return;
        }
        let mut words = head[0].split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let range = header("range").map(|range| {
            let (from, to) = range.trim_start_matches("bytes=").split_once('-').unwrap();
            from.parse().unwrap()..to.parse::<usize>().unwrap() + 1
        });
        let answer = answer(method, target, range, header("if-match"), body, &mut objects.lock());
        let mut out = connection;
        let head = format!(
            "HTTP/1.1 {}\r\nLast-Modified: Sat, 28 Nov 2026 10:00:00 GMT\r\nContent-Length: {}\r\n{}\r\n",
            answer.status, answer.says, answer.headers
        );
        let is_head = method == "HEAD";
        let pieces = answer.body[..if is_head { 0 } else { answer.body.len() }].chunks(answer.piece);
        let sent = out.write_all(head.as_bytes()).and_then(|()| {
            pieces.into_iter().try_for_each(|piece| out.write_all(piece).and_then(|()| out.flush()))
        });
        if sent.is_err() || !is_head && answer.says > answer.body.len() {
            let _ = connection.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

/// An answer.
struct Answer {
    status: &'static str,
    headers: String,
    body: Vec<u8>,
    /// The length that it says.
    says: usize,
    /// Bytes of each write.
    piece: usize,
}

impl Answer {
    fn new(status: &'static str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self { status, headers: String::new(), says: body.len(), body, piece: usize::MAX }
    }
}

fn answer(
    method: &str,
    target: &str,
    range: Option<Range<usize>>,
    if_match: Option<&str>,
    body: Vec<u8>,
    objects: &mut Objects,
) -> Answer {
    objects.log.push(format!("{method} {target}"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = decoded(path.trim_start_matches('/'));
    if query.contains("list-type=2") {
        return Answer::new("200 OK", listing(path.trim_end_matches('/'), query, objects));
    }
    match method {
        "PUT" if query.is_empty() => {
            let answer = Answer { headers: tag(&body), ..Answer::new("200 OK", "") };
            objects.bytes.insert(path, body);
            return answer;
        }
        "POST" => {
            let named = String::from_utf8(body).unwrap();
            for key in named.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
                objects.bytes.remove(&format!("{path}/{key}"));
            }
            return Answer::new("200 OK", "<DeleteResult></DeleteResult>");
        }
        _ => {}
    }
    let mut fault = objects.fault.as_ref().filter(|(of, _)| *of == path).map(|(_, fault)| *fault);
    if method == "GET" && fault.is_some() {
        objects.gets += 1;
    }
    fault = fault.filter(|fault| match fault {
        Fault::Busy | Fault::Lost => objects.gets == 2,
        _ => objects.gets >= 2,
    });
    // A query of a web address has an object of its own.
    let named = if query.is_empty() || query.starts_with("x-id") { path } else { format!("{path}?{query}") };
    let Some(mut bytes) = objects.bytes.get(&named).cloned().filter(|_| fault != Some(Fault::Deleted)) else {
        return Answer::new("404 Not Found", "<Error><Code>NoSuchKey</Code></Error>");
    };
    match fault {
        Some(Fault::Forbidden) => {
            return Answer::new("403 Forbidden", "<Error><Code>AccessDenied</Code></Error>");
        }
        Some(Fault::Expired) => {
            return Answer::new("400 Bad Request", "<Error><Code>ExpiredToken</Code></Error>");
        }
        Some(Fault::Busy) => {
            return Answer::new("503 Slow Down", "<Error><Code>SlowDown</Code></Error>");
        }
        Some(Fault::Changed | Fault::Replaced) => bytes.reverse(),
        Some(Fault::Shortened) => bytes.truncate(bytes.len() / 3),
        _ => {}
    }
    let headers = tag(&bytes);
    let ignores = matches!(fault, Some(Fault::Replaced | Fault::Shortened));
    if if_match.is_some_and(|wanted| !headers.contains(wanted)) && !ignores {
        return Answer::new("412 Precondition Failed", "<Error><Code>PreconditionFailed</Code></Error>");
    }
    let mut answer = Answer { headers, ..Answer::new("200 OK", bytes) };
    if let Some(range) = range {
        let size = answer.body.len();
        if range.start >= size {
            return Answer::new("416 Range Not Satisfiable", "<Error><Code>InvalidRange</Code></Error>");
        }
        let part = range.start..range.end.min(size);
        answer.headers += &format!("Content-Range: bytes {}-{}/{size}\r\n", part.start, part.end - 1);
        answer = Answer { headers: answer.headers, ..Answer::new("206 Partial Content", &answer.body[part]) };
    }
    match fault {
        Some(Fault::Slow) => answer.piece = 10_000,
        Some(Fault::Lost) => answer.body.truncate(answer.body.len() / 2),
        Some(Fault::Short) => {
            answer.body.truncate(answer.body.len() / 2);
            answer.says = answer.body.len();
        }
        _ => {}
    }
    answer
}

/// The header with the entity tag of these bytes: their number, and the first and the last of them.
fn tag(bytes: &[u8]) -> String {
    format!("ETag: \"{}-{:?}-{:?}\"\r\n", bytes.len(), bytes.first(), bytes.last())
}

/// What a bucket has below a prefix.
fn listing(bucket: &str, query: &str, objects: &Objects) -> String {
    let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix=")).unwrap_or_default();
    let prefix = decoded(&prefix.replace('+', " "));
    let (mut files, mut folders) = (String::new(), BTreeMap::new());
    for (path, bytes) in &objects.bytes {
        let Some((of, key)) = path.split_once('/').filter(|(of, _)| *of == bucket) else { continue };
        let Some(rest) = key.strip_prefix(&prefix) else { continue };
        if let Some((folder, _)) = rest.split_once('/') {
            folders.insert(
                format!("{of}/{prefix}{folder}"),
                format!("<CommonPrefixes><Prefix>{prefix}{folder}/</Prefix></CommonPrefixes>"),
            );
        } else {
            let tag = tag(bytes);
            let tag = tag.trim_start_matches("ETag: ").trim();
            files += &format!(
                "<Contents><Key>{key}</Key><Size>{}</Size><ETag>{tag}</ETag>\
                 <LastModified>2026-11-28T10:00:00.000Z</LastModified></Contents>",
                bytes.len()
            );
        }
    }
    let folders: String = folders.into_values().collect();
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{files}{folders}</ListBucketResult>")
}

/// A text without percent-encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        match (first, more) {
            (b'%', [a, b, ..]) => {
                let digits = std::str::from_utf8(&[*a, *b]).unwrap().to_owned();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap());
                rest = &more[2..];
            }
            _ => {
                bytes.push(first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}
