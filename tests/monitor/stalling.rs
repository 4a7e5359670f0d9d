//! Clients that stall, one and many.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use dupflow::core::run::status::Phase;
use dupflow::monitor::MonitorLimits;

use super::Watched;
use super::client::{BOUND, connect, get, rest};

/// Deadlines short enough to wait for.
const SHORT: MonitorLimits = MonitorLimits {
    head: Duration::from_millis(300),
    body: Duration::from_millis(300),
    stuck: Duration::from_millis(300),
    ..MonitorLimits::DEFAULT
};

/// Deadlines that are not reached.
const LONG: MonitorLimits =
    MonitorLimits { head: BOUND, body: BOUND, stuck: BOUND, ..MonitorLimits::DEFAULT };

#[test]
fn heads_that_do_not_come_to_an_end_are_closed() {
    let watched = Watched::new(SHORT);
    let mut silent = connect(watched.address());
    let mut half = connect(watched.address());
    half.write_all(b"GET /health HTTP/1.1\r\nhost: h").unwrap();
    // Also after an answer, and while bytes still arrive.
    let mut answered = connect(watched.address());
    answered.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut dribbling = connect(watched.address());
    dribbling.write_all(b"GET /health HTTP/1.1\r\nx: ").unwrap();
    dribbling.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut waits = BOUND.as_millis() / 20;
    loop {
        match dribbling.read(&mut [0; 512]) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                waits = waits.checked_sub(1).expect("it is closed before the bound");
                if dribbling.write_all(b"y").is_err() {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    assert!(!rest(&mut silent).starts_with(b"HTTP/1.1 200"));
    assert!(!rest(&mut half).starts_with(b"HTTP/1.1 200"));
    assert!(rest(&mut answered).starts_with(b"HTTP/1.1 200"));
}

#[test]
fn idle_connections_are_bounded_and_make_room() {
    let watched = Watched::new(SHORT);
    let mut idle: Vec<TcpStream> = (0..300).map(|_| connect(watched.address())).collect();
    // Connections within the limit end by the deadline, the others at once.
    let answered = idle.iter_mut().map(rest).filter(|text| text.starts_with(b"HTTP/1.1 200")).count();
    assert_eq!(answered, 0);
    assert_eq!(get(watched.address(), "/health").code, 200);
}

#[test]
fn one_connection_too_many_is_told_so() {
    let watched = Watched::new(MonitorLimits { connections: 2, ..LONG });
    // An answered request shows that its connection was accepted.
    let held: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = connect(watched.address());
            stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let mut begin = [0; 15];
            stream.read_exact(&mut begin).unwrap();
            assert_eq!(&begin, b"HTTP/1.1 200 OK");
            stream
        })
        .collect();
    let text = String::from_utf8(rest(&mut connect(watched.address()))).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 503 ") && text.ends_with("\r\n\r\n{\"error\":\"too many connections\"}"),
        "{text:?}"
    );
    drop(held);
}

#[test]
fn a_client_that_reads_nothing_is_closed() {
    let watched = Watched::new(MonitorLimits { head: BOUND, ..SHORT });
    let mut stuck = connect(watched.address());
    stuck.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    let requests = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
    // First the answers fill the buffers toward the client, then the requests fill those toward the server,
    // then the connection is closed.
    let mut waits = BOUND.as_millis() / 50;
    let closed = loop {
        match stuck.write(&requests) {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                waits = waits.checked_sub(1).expect("it is closed before the bound");
            }
            Err(error) => break error.kind(),
        }
    };
    assert!(matches!(closed, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{closed}");
    assert_eq!(get(watched.address(), "/health").code, 200);
}

#[test]
fn it_ends_though_clients_hold_on() {
    let watched = Watched::new(LONG);
    watched.status.enter(Phase::Live);
    let address = watched.address();
    let mut idle = connect(address);
    let mut half = connect(address);
    half.write_all(b"GET /health HTTP/1.1\r\nhost: h").unwrap();
    // Both were accepted before this one.
    assert_eq!(get(address, "/ready").code, 200);
    let (tell, ended) = channel();
    thread::spawn(move || {
        watched.monitor.stop();
        tell.send(()).unwrap();
    });
    ended.recv_timeout(BOUND / 2).expect("it ends before any deadline of a connection");
    assert_eq!((rest(&mut idle), rest(&mut half)), (Vec::new(), Vec::new()));
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}
