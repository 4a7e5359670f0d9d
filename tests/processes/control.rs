//! Messages between processes, and the detection of lost processes.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use dupflow::engine::processes::{ConnectLimits, Connected, ControlEvent, ControlMessage};

use crate::group::{Cable, PATIENCE, connected, limits, listen, listener, processes, settings, start};

fn next(events: &Receiver<(usize, ControlEvent)>) -> (usize, ControlEvent) {
    events.recv_timeout(PATIENCE).unwrap()
}

/// All events, to the end.
fn rest(events: &Receiver<(usize, ControlEvent)>) -> Vec<(usize, ControlEvent)> {
    let mut heard = Vec::new();
    loop {
        match events.recv_timeout(PATIENCE) {
            Ok(event) => heard.push(event),
            Err(error) => {
                assert_eq!(error, std::sync::mpsc::RecvTimeoutError::Disconnected);
                return heard;
            }
        }
    }
}

/// Some processes, and the events of each.
fn group(count: usize, limits: ConnectLimits) -> (Vec<Connected>, Vec<Receiver<(usize, ControlEvent)>>) {
    let all = connected(processes(count, limits));
    let events = all.iter().map(listen).collect();
    (all, events)
}

fn failed(text: &str) -> ControlEvent {
    ControlEvent::Message(ControlMessage::Failed(text.to_owned()))
}

#[test]
fn messages_arrive_in_order() {
    let (all, events) = group(3, limits());
    let said = [
        ControlMessage::Go(vec![0, 1, 2]),
        ControlMessage::Opened(7),
        ControlMessage::Reached { line: 1, epoch: 7 },
        ControlMessage::Crossed { line: 2, epoch: u64::MAX },
        ControlMessage::Measures(vec![9; 3_000_000]),
    ];
    for message in &said {
        all[0].control.send(message.clone());
        all[2].control.send(message.clone());
    }
    all[0].control.send_to(1, ControlMessage::Opened(8));
    for message in &said {
        assert_eq!(next(&events[1]), (0, ControlEvent::Message(message.clone())));
        assert_eq!(next(&events[2]), (0, ControlEvent::Message(message.clone())));
        assert_eq!(next(&events[0]), (2, ControlEvent::Message(message.clone())));
    }
    assert_eq!(next(&events[1]), (0, ControlEvent::Message(ControlMessage::Opened(8))));
}

/// Under live weights the message that begins a run has the table of a large corpus.
#[test]
fn a_message_may_be_long() {
    let (all, events) = group(2, limits());
    let long =
        |length: usize| ControlMessage::Go((0..length).map(|n| u8::try_from(n % 251).unwrap()).collect());
    // With the letter before them: a piece, one more byte, many pieces.
    for length in [0, (1 << 20) - 1, 1 << 20, (1 << 21) - 1, 70 << 20] {
        all[0].control.send(long(length));
        assert!(next(&events[1]) == (0, ControlEvent::Message(long(length))), "{length}");
    }
    all[1].control.send(ControlMessage::Stop);
    assert_eq!(next(&events[0]), (1, ControlEvent::Message(ControlMessage::Stop)));
}

#[test]
fn an_end_in_good_order_is_no_loss() {
    let (mut all, events) = group(3, limits());
    for process in &all[1..] {
        process.control.send(ControlMessage::Measures(vec![1]));
        process.control.send(ControlMessage::Done);
    }
    let mut heard: Vec<_> = (0..4).map(|_| next(&events[0])).collect();
    heard.sort_by_key(|(from, _)| *from);
    let expected = [1, 1, 2, 2]
        .into_iter()
        .zip([ControlMessage::Measures(vec![1]), ControlMessage::Done].into_iter().cycle());
    assert_eq!(
        heard,
        expected.map(|(from, message)| (from, ControlEvent::Message(message))).collect::<Vec<_>>()
    );
    let first = all.remove(0);
    first.control.send(ControlMessage::Done);
    for of_one in &events[1..] {
        assert_eq!(next(of_one), (0, ControlEvent::Message(ControlMessage::Done)));
    }
    // In any order, and at the same time: each waits until the others have read what it has sent.
    std::thread::scope(|scope| {
        scope.spawn(move || first.control.end());
        all.into_iter().for_each(|process| drop(scope.spawn(move || process.control.end())));
    });
    assert!(events.iter().all(|of_one| rest(of_one).is_empty()));
}

#[test]
fn a_failure_reaches_all_with_its_reason() {
    for failing in 0..3 {
        let (all, events) = group(3, limits());
        let name = all[0].control.processes().name(failing);
        let text = format!("{name}: bad record in \"a.jsonl\", line 7201");
        all[failing].control.fail("bad record in \"a.jsonl\", line 7201");
        all[failing].control.fail("and what follows from it");
        for (index, of_one) in events.iter().enumerate().filter(|(index, _)| *index != failing) {
            let (_, event) = next(of_one);
            assert_eq!(event, failed(&text), "at {index}");
        }
        drop(all);
        // Consequences of a failure are not reported again.
        assert!(events.iter().all(|of_one| rest(of_one).is_empty()));
    }
}

#[test]
fn a_process_that_ends_without_a_word_is_lost() {
    let (mut all, events) = group(3, limits());
    let name = all[0].control.processes().name(2);
    drop(all.remove(2));
    let why = "the connection has ended".to_owned();
    assert_eq!(next(&events[0]), (2, ControlEvent::Lost { process: 2, why: why.clone() }));
    assert_eq!(next(&events[1]), (0, failed(&format!("{name} is gone: {why}"))));
    drop(all);
    assert!(events.iter().all(|of_one| rest(of_one).is_empty()), "told once");
}

#[test]
fn if_process_0_ends_each_other_one_notices() {
    let (mut all, events) = group(3, limits());
    drop(all.remove(0));
    for of_one in &events[1..] {
        let why = "the connection has ended".to_owned();
        assert_eq!(next(of_one), (0, ControlEvent::Lost { process: 0, why }));
    }
    drop(all);
    assert!(events.iter().all(|of_one| rest(of_one).is_empty()));
}

/// Three processes; the connection between process 1 and process 0 can be frozen.
fn on_a_cable(limits: ConnectLimits) -> (Cable, Vec<Connected>) {
    let (behind, address) = listener();
    let (listeners, hosts): (Vec<_>, Vec<_>) = (0..3).map(|_| listener()).unzip();
    let mut listeners = listeners.into_iter();
    let front = listeners.next().unwrap();
    let direct = settings(&hosts, limits);
    let cable = Cable::new(front, address);
    let mut all = vec![start((behind, direct[0].clone()))];
    all.extend(listeners.zip(direct[1..].to_vec()).map(start));
    (cable, all.into_iter().map(|process| process.join().unwrap().unwrap()).collect())
}

#[test]
fn a_process_that_says_nothing_is_lost() {
    let limits = ConnectLimits { beat: Duration::from_millis(50), lost: Duration::from_secs(2), ..limits() };
    let (cable, all) = on_a_cable(limits);
    let events: Vec<_> = all.iter().map(listen).collect();
    // Beats pass: no process is lost while they do.
    all[1].control.send(ControlMessage::Opened(1));
    assert_eq!(next(&events[0]), (1, ControlEvent::Message(ControlMessage::Opened(1))));
    cable.freeze();
    for (at, gone) in [(0, [1, 2].as_slice()), (1, &[0]), (2, &[0])] {
        let (from, event) = next(&events[at]);
        let ControlEvent::Lost { process, why } = event else { panic!("{event:?}") };
        assert!(process == from && gone.contains(&from), "{from} at {at}");
        assert_eq!(why, "it said nothing for 2 s");
    }
    drop(cable);
    drop(all);
    assert!(events.iter().all(|of_one| rest(of_one).is_empty()), "told once");
}

#[test]
fn nobody_waits_for_one_that_takes_nothing() {
    let (cable, all) = on_a_cable(limits());
    let events: Vec<_> = all.iter().map(listen).collect();
    cable.freeze();
    // Far more than sockets and queues hold.
    let message = ControlMessage::Measures(vec![0; 1000]);
    (0..100_000).for_each(|_| all[0].control.send_to(1, message.clone()));
    let (from, ControlEvent::Lost { process, why }) = next(&events[0]) else { panic!("a loss is told") };
    assert_eq!((from, process, why.as_str()), (1, 1, "it took none of 4096 messages"));
    drop(cable);
}

#[test]
fn a_suspicion_becomes_a_loss_after_a_beat() {
    let (all, events) = group(3, ConnectLimits { beat: Duration::from_millis(50), ..limits() });
    let name = |process| all[0].control.processes().name(process);
    all[1].control.suspect(2, "the connection has ended");
    let why = "the connection has ended".to_owned();
    assert_eq!(next(&events[1]), (2, ControlEvent::Lost { process: 2, why }));
    let told = failed(&format!("{}: {} is gone: the connection has ended", name(1), name(2)));
    assert_eq!((next(&events[0]).1, next(&events[2]).1), (told.clone(), told));
}

#[test]
fn a_reason_that_is_told_comes_before_a_suspicion() {
    // The time of a beat is longer than the test.
    let (all, events) = group(3, ConnectLimits { beat: PATIENCE, ..limits() });
    all[0].control.suspect(2, "the connection has ended");
    all[1].control.suspect(2, "the connection has ended");
    all[2].control.fail("bad record");
    let told = failed(&format!("{}: bad record", all[0].control.processes().name(2)));
    assert_eq!((next(&events[0]).1, next(&events[1]).1), (told.clone(), told));
    drop(all);
    assert!(events.iter().all(|of_one| rest(of_one).is_empty()));
}
