//! Floods of requests: the run continues and ends normally.
//!
//! Bug classes: clients that exhaust memory or files; a run that waits for a client; a server that no longer
//! answers after a flood.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::client::{BOUND, connect, get, rest};
use super::run::{Place, Process};

/// Connections open at the same time.
const CONNECTIONS: usize = 10_000;

/// Maximum peak memory of a run of a small feed under any flood, in bytes. It receives bodies of 1 GB.
const MEMORY: u64 = 256 << 20;

/// Length of a body: 1 GB.
const LONG: u64 = 1 << 30;

/// Opens the wanted number of connections, or as many as the system allows.
fn open(address: SocketAddr, wanted: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    while open.len() < wanted {
        match TcpStream::connect_timeout(&address, BOUND) {
            Ok(stream) => open.push(stream),
            // This process cannot open more files, or the server's accept queue is full.
            Err(error) => {
                println!("{error} after {} connections", open.len());
                break;
            }
        }
    }
    open
}

/// Sends until the connection is closed or everything is sent; returns the answer.
fn send(mut stream: TcpStream, head: &str, piece: &[u8], bytes: u64) -> String {
    stream.write_all(head.as_bytes()).unwrap();
    let mut sent = 0;
    while sent < bytes {
        match stream.write(piece) {
            Ok(n) => sent += n as u64,
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(sent < bytes, "all of it was taken");
    String::from_utf8_lossy(&rest(&mut stream)).into_owned()
}

/// Waits until a new connection is answered.
fn wait_until_answered(address: SocketAddr) {
    let well = |stream: &mut TcpStream| {
        let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).is_ok() && rest(stream).starts_with(b"HTTP/1.1 200")
    };
    while !well(&mut connect(address)) {}
}

/// Every kind of flood at the same time.
fn flood(process: &Process, connections: usize) {
    let address = process.address;
    let mut idle = open(address, connections);
    println!("{} connections were made", idle.len());
    assert!(idle.len() >= connections.min(1000), "{} connections", idle.len());
    // A further connection receives 503 or is closed. On a slow machine the first ones may have been closed
    // as idle before the last one was made: then more are made.
    let late = || {
        let mut late = connect(address);
        drop(late.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"));
        rest(&mut late)
    };
    let mut answer = late();
    for _ in 0..20 {
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            break;
        }
        idle.extend(open(address, 1000));
        answer = late();
    }
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1.1 503 "),
        "{:?}",
        String::from_utf8_lossy(&answer)
    );
    idle.clear();
    wait_until_answered(address);

    // Request heads that never end, and readers that do not read.
    let mut dribbling = open(address, 40);
    dribbling.iter_mut().for_each(|stream| drop(stream.write_all(b"GET /status HTTP/1.1\r\nx: y")));
    let mut stalling = open(address, 40);
    let stall = b"GET /deltas HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stalling.iter_mut().for_each(|stream| drop(stream.write_all(stall)));

    // Bodies of 1 GB in each format.
    wait_until_answered(address);
    let post =
        "POST /similar HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: text/plain\r\n";
    let zeros = vec![b'0'; 64 << 10];
    let told = send(connect(address), &format!("{post}content-length: {LONG}\r\n\r\n"), &zeros, LONG);
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 413 "), "{told}");
    let chunk = [format!("{:x}\r\n", zeros.len()).as_bytes(), &zeros, b"\r\n"].concat();
    let chunked = format!("{post}transfer-encoding: chunked\r\n\r\n");
    let told_of_chunks = send(connect(address), &chunked, &chunk, LONG);
    assert!(told_of_chunks.is_empty() || told_of_chunks.starts_with("HTTP/1.1 413 "), "{told_of_chunks}");
    // A path without a body does not read one.
    let get_with_body = format!("GET /status HTTP/1.1\r\nhost: localhost\r\ncontent-length: {LONG}\r\n\r\n");
    drop(send(connect(address), &get_with_body, &zeros, LONG));
    wait_until_answered(address);
    drop((dribbling, stalling));
}

/// Documents replayed slowly enough that a flood overlaps them.
fn feed(place: &Place) -> String {
    let line = |n: usize| {
        let text = format!("text {} of a family of texts that are near each other", n / 3);
        format!("{{\"id\":\"{n}\",\"ts\":{},\"text\":\"{text}\"}}\n", n as f64 / 100.0)
    };
    let lines: String = (0..600).map(line).collect();
    place.write("feed.jsonl", &lines);
    let (code, log) = place.done("replay -o expected.jsonl --epoch events:10 feed.jsonl");
    assert_eq!(code, Some(0), "{log}");
    place.read("expected.jsonl")
}

fn the_run_ends_right(start: impl Fn(&Place, &str) -> Process, connections: usize) {
    let place = Place::new();
    let expected = feed(&place);
    let words = "replay -o out.jsonl --epoch events:10 --speed 2x --monitor 127.0.0.1:0 feed.jsonl";
    let process = start(&place, words);
    flood(&process, connections);
    process.wait_for("all is read");
    assert_eq!(get(process.address, "/health").code, 200);
    let memory = process.peak_bytes();
    println!("{} MiB at most", memory >> 20);
    assert!(memory < MEMORY, "{memory} bytes");
    assert_eq!(process.interrupt().code(), Some(0));
    assert_eq!(place.read("out.jsonl"), expected);
}

#[test]
fn ten_thousand_connections_and_endless_bodies_cost_the_run_nothing() {
    the_run_ends_right(|place, words| place.start(words), CONNECTIONS);
}

#[test]
fn nor_do_they_where_few_files_may_be_open() {
    the_run_ends_right(|place, words| place.start_with_files(words, 256), 400);
}

/// A reader that does not read is closed, which frees its place.
#[test]
fn streams_are_bounded_and_make_room() {
    let place = Place::new();
    place.write("feed.jsonl", "{\"id\":\"a\",\"text\":\"one\"}\n");
    let process = place.start("replay -o out.jsonl --monitor 127.0.0.1:0 feed.jsonl");
    process.wait_for("all is read");
    while get(process.address, "/ready").code != 200 {}
    let begin = |address| {
        let mut stream = connect(address);
        stream.write_all(b"GET /deltas HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
        let mut code = [0; 12];
        stream.read_exact(&mut code).unwrap();
        (stream, String::from_utf8(code[9..].to_vec()).unwrap())
    };
    let readers: Vec<_> = (0..64).map(|_| begin(process.address)).collect();
    assert!(readers.iter().all(|(_, code)| code == "200"));
    let (mut refused, code) = begin(process.address);
    assert_eq!(code, "503");
    let text = String::from_utf8(rest(&mut refused)).unwrap();
    assert!(text.contains("retry-after: 5\r\n") && text.contains("too many streams"), "{text}");
    drop(readers);
    while begin(process.address).1 != "200" {}
    assert_eq!(process.interrupt().code(), Some(0));
}
