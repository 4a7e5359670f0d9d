//! Other connections during the start are refused, with a line of the log, and the processes connect all the
//! same.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use dupflow::engine::processes::connect_on;

use crate::group::{limits, processes, start};
use crate::log;

/// A hello of the protocol: purpose, from, to.
fn hello(version: u16, purpose: u8, from: u32, to: u32) -> Vec<u8> {
    let mut bytes = b"dupflow\n".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.push(purpose);
    bytes.extend(from.to_le_bytes());
    bytes.extend(to.to_le_bytes());
    bytes.extend([7; 32]);
    bytes
}

/// An answer of the protocol.
fn answer(kind: u8, length: u32, bytes: &[u8]) -> Vec<u8> {
    [&[kind][..], &length.to_le_bytes(), bytes].concat()
}

/// Reads until the other side ends.
fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // If a connection is closed with unread bytes, the system reports it as an error.
    stream.read_to_end(&mut bytes).map_or_else(|_| Vec::new(), |_| bytes.clone())
}

#[test]
fn each_is_refused_and_the_start_goes_on() {
    log::start();
    let mut limits = limits();
    limits.hello = Duration::from_secs(2);
    let mut all = processes(2, limits);
    let address = all[0].0.local_addr().unwrap();
    let second = all.remove(1);
    let first = start(all.remove(0));

    let proof = answer(b'p', 32, &[1; 32]);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "it does not speak as dupflow does"),
        (vec![0; 8], "it does not speak as dupflow does"),
        (vec![255; 100_000], "it does not speak as dupflow does"),
        (1_u64.to_be_bytes().to_vec(), "it does not speak as dupflow does"),
        (hello(3, 0, 1, 0), "it speaks version 3 of the protocol, this is version 2"),
        ([hello(2, 0, 1, 0), proof.clone()].concat(), "it does not know the secret"),
        ([hello(2, 1, 1, 0), proof.clone()].concat(), "it does not know the secret"),
        ([hello(2, 0, 0, 0), proof.clone()].concat(), "it does not know the secret"),
        ([hello(2, 0, u32::MAX, 9), proof].concat(), "it does not know the secret"),
        ([hello(2, 0, 1, 0), answer(b'p', 0, &[])].concat(), "it does not know the secret"),
        (
            [hello(2, 0, 1, 0), answer(b'p', u32::MAX, &[])].concat(),
            "it announces 4294967295 bytes, expected at most 1048576",
        ),
    ];
    for (bytes, why) in cases {
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(&bytes).unwrap_or(());
        // It learns only an index, and the reason.
        let told = read_all(&mut stranger);
        assert!(told.len() < 51 + 5 + 100, "{}", String::from_utf8_lossy(&told));
        log::wait_for(&format!(": {why}"));
    }

    let closes = TcpStream::connect(address).unwrap();
    drop(closes);
    log::wait_for(": it ended the connection");
    // These are still connected when the start is over.
    let _silent = TcpStream::connect(address).unwrap();
    let mut begins = TcpStream::connect(address).unwrap();
    begins.write_all(b"dupflow\n").unwrap();

    assert!(connect_on(second.0, &second.1).is_ok());
    let _first = first.join().unwrap().unwrap();
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
    log::wait_for(": it did not say all within 2 s");
}

#[test]
fn a_flood_of_them_is_a_line_a_second() {
    log::start();
    let mut all = processes(2, limits());
    let address = all[0].0.local_addr().unwrap();
    let second = all.remove(1);
    let first = start(all.remove(0));
    for _ in 0..300 {
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(b"a flood of bytes").unwrap_or(());
        read_all(&mut stranger);
    }
    assert!(connect_on(second.0, &second.1).is_ok() && first.join().unwrap().is_ok());
    log::wait_for("it does not speak as dupflow does");
    // This test, and the other one that is refused for it. Three hundred take less than a minute.
    let lines = log::lines("it does not speak as dupflow does").len();
    assert!(lines < 100, "{lines} lines");
}

#[test]
fn what_listens_elsewhere_is_no_process() {
    // At the address of process 0, another program answers; then it is replaced.
    let mut all = processes(2, limits());
    let second = all.remove(1);
    let (listener, settings) = all.remove(0);
    let second = start(second);
    for said in [&b"220 mail.example.org ESMTP\r\n"[..], &[0; 200], b""] {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(said).unwrap_or(());
        drop(stream);
    }
    // Repeating the received bytes does not prove the secret.
    let (mut mirror, _) = listener.accept().unwrap();
    let mut said = [0; 51];
    mirror.read_exact(&mut said).unwrap();
    let (from, to) = (said[11..15].to_vec(), said[15..19].to_vec());
    said[11..15].copy_from_slice(&to);
    said[15..19].copy_from_slice(&from);
    mirror.write_all(&said).unwrap();
    let mut proof = [0; 37];
    mirror.read_exact(&mut proof).unwrap();
    mirror.write_all(&proof).unwrap();
    assert_eq!(read_all(&mut mirror), b"", "it is told nothing more");
    assert!(connect_on(listener, &settings).is_ok() && second.join().unwrap().is_ok());
}
