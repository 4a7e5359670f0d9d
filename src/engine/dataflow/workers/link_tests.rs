use super::*;

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A link without workers, the other end of its socket, and the reports of lost processes.
fn link() -> (PeerLink, TcpStream, Receiver<(usize, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (report, reports) = channel();
    let report = Mutex::new(report);
    let lost: OnLost = Box::new(move |process, why| report.lock().send((process, why.to_owned())).unwrap());
    let sockets = vec![None, Some(listener.accept().unwrap().0)];
    let links = PeerLinks::new(0, 1, &sockets, lost).unwrap();
    links.leave();
    let link = links.over(sockets).remove(1).unwrap();
    (link, peer, reports)
}

fn header(length: u64) -> impl Iterator<Item = u8> {
    [3, 1, 0, 1, length, 9].into_iter().flat_map(u64::to_be_bytes)
}

fn message(length: u64) -> Vec<u8> {
    header(length).chain((0..length).map(|n| n.to_le_bytes()[0] | 1)).collect()
}

/// All bytes that a link returns, read with buffers of this size.
fn read_all(link: &mut PeerLink, size: usize) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; size]);
    loop {
        match link.read(&mut buffer).unwrap() {
            0 => return all,
            count => all.extend_from_slice(&buffer[..count]),
        }
    }
}

#[test]
fn messages_pass_as_they_are_however_they_are_cut() {
    let sent = [message(8), message(300), message(1), vec![0; 48]].concat();
    for size in [1, 2, 47, 48, 49, 100, 1000] {
        let (mut link, mut peer, reports) = link();
        let bytes = [&sent[..], b"what is behind the end"].concat();
        let writer = thread::spawn(move || {
            peer.set_nodelay(true).unwrap();
            bytes.chunks(size).for_each(|part| peer.write_all(part).unwrap_or(()));
            peer
        });
        assert_eq!(read_all(&mut link, size), sent, "{size} bytes at once");
        assert!(reports.try_recv().is_err());
        drop(writer.join().unwrap());
    }
}

#[test]
fn what_is_cut_off_ends_in_good_order_for_the_reader() {
    let sent = [message(8), message(30), message(16)].concat();
    for cut in 0..sent.len() {
        let (mut link, mut peer, reports) = link();
        peer.write_all(&sent[..cut]).unwrap();
        drop(peer);
        let read = read_all(&mut link, 64);
        assert_eq!(reports.recv().unwrap(), (1, "the connection has ended".to_owned()));
        // Complete messages, then the mark of the end.
        let mut at = 0;
        while read[at..at + 48] != [0; 48] {
            let length = u64::from_be_bytes(read[at + 32..at + 40].try_into().unwrap());
            let end = at + 48 + usize::try_from(length).unwrap();
            let came = end.min(cut);
            assert_eq!(read[at..came], sent[at..came]);
            assert!(read[came..end].iter().all(|byte| *byte == 0));
            at = end;
        }
        assert_eq!(read.len(), at + 48, "cut at {cut}");
        assert!(reports.try_recv().is_err(), "reported once");
    }
}

#[test]
fn what_cannot_be_is_refused_behind_what_is_right() {
    let (mut link, mut peer, reports) = link();
    let right = message(8);
    peer.write_all(&[right.clone(), header(MESSAGE_BYTES + 1).collect()].concat()).unwrap();
    assert_eq!(read_all(&mut link, 1000), [right, vec![0; 48]].concat());
    assert!(reports.recv().unwrap().1.starts_with("it announces a message of 1073741825 bytes"));
}

#[test]
fn nothing_is_said_once_it_is_muted() {
    let (mut link, mut peer, reports) = link();
    link.write_all(b"said").unwrap();
    link.links.stop_sending();
    link.write_all(b"unsaid").unwrap();
    let mut received = Vec::new();
    peer.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"said");
    assert_eq!(read_all(&mut link, 100), [0; 48]);
    assert!(reports.try_recv().is_err(), "this side has ended it");
}
