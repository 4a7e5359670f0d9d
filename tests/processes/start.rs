//! Processes connect in any order, or report why not.

use std::net::TcpStream;
use std::time::Duration;

use dupflow::core::description::Description;
use dupflow::engine::processes::{ConnectError, Connected, Secret, connect, connect_on};

use crate::group::{self, Cable, connected, limits, listener, processes, settings, start};
use crate::log;

/// Each has a socket to each other process, and no more.
fn assert_connected(all: &[Connected]) {
    for (index, Connected { data, .. }) in all.iter().enumerate() {
        let missing: Vec<usize> = (0..data.len()).filter(|other| data[*other].is_none()).collect();
        assert_eq!(missing, [index]);
        for (other, stream) in data.iter().enumerate().filter_map(|(i, stream)| Some((i, stream.as_ref()?))) {
            let back = all[other].data[index].as_ref().unwrap();
            assert_eq!(stream.local_addr().unwrap(), back.peer_addr().unwrap(), "{index} and {other}");
        }
    }
}

#[test]
fn they_come_together_in_any_order() {
    for order in [vec![0, 1], vec![1, 0], vec![0, 1, 2], vec![2, 1, 0], vec![1, 2, 0], vec![3, 0, 2, 1]] {
        let mut waiting: Vec<_> = processes(order.len(), limits()).into_iter().map(Some).collect();
        let mut started: Vec<_> =
            order.iter().map(|index| (*index, start(waiting[*index].take().unwrap()))).collect();
        started.sort_by_key(|(index, _)| *index);
        let all: Vec<_> = started.into_iter().map(|(_, process)| process.join().unwrap().unwrap()).collect();
        assert_connected(&all);
    }
}

#[test]
fn one_that_is_late_is_waited_for() {
    let mut all = processes(3, limits());
    let first = all.remove(0);
    let others: Vec<_> = all.into_iter().map(start).collect();
    // Both have failed to connect, some more than once.
    for _ in 0..4 {
        drop(first.0.accept().unwrap());
    }
    let mut there = vec![connect_on(first.0, &first.1).unwrap()];
    there.extend(others.into_iter().map(|process| process.join().unwrap().unwrap()));
    assert_connected(&there);
}

#[test]
fn without_a_secret_they_come_together_too() {
    let mut all = processes(2, limits());
    all.iter_mut().for_each(|(_, settings)| settings.secret = Secret::default());
    assert_connected(&connected(all));
}

#[test]
fn a_secret_that_only_some_know_is_named() {
    log::start();
    for (one, two) in [("a secret", "another"), ("", "a secret"), ("a secret", "")] {
        let mut all = processes(2, limits());
        all[0].1.secret = Secret::new(one.as_bytes());
        all[1].1.secret = Secret::new(two.as_bytes());
        let host = all[0].1.processes.name(0);
        let (other, right) = (all[1].0.try_clone().unwrap(), all[0].1.secret.clone());
        let mut corrected = all[1].1.clone();
        let second = start(all.remove(1));
        let first = start(all.remove(0));
        let error = second.join().unwrap().unwrap_err();
        let why = "its secret is another one, or only one of the two has one";
        assert_eq!(error.to_string(), format!("{host}: it refused this one: {why}"));
        // It may connect again with the right one.
        corrected.secret = right;
        assert_connected(&[first, start((other, corrected))].map(|process| process.join().unwrap().unwrap()));
    }
    assert!(!log::lines("it does not know the secret").is_empty());
}

#[test]
fn what_differs_is_named_on_both_sides() {
    log::start();
    let ours = || Description::new().with("filter.threshold", 0.8).with("workers", 2_u64);
    let other = |name: &str| Description::new().with("filter.threshold", 0.8).with(name, 2_u64);
    let cases = [
        (
            Description::new().with("filter.threshold", 0.25).with("workers", 2_u64),
            "filter.threshold is 0.8 there and 0.25 here",
            "filter.threshold is 0.25 there and 0.8 here",
        ),
        (
            Description::new().with("filter.threshold", 0.8).with("workers", 77_u64),
            "workers is 2 there and 77 here",
            "workers is 77 there and 2 here",
        ),
        (other("helpers"), "helpers is ", "workers is "),
    ];
    for (description, here, there) in cases {
        let mut all = processes(3, limits());
        let host = all[0].1.processes.name(0);
        all[1].1.description = description;
        let (again, mut corrected) = (all[1].0.try_clone().unwrap(), all[1].1.clone());
        let mut started: Vec<_> = all.into_iter().map(start).collect();
        let error = started.remove(1).join().unwrap().unwrap_err();
        let ConnectError::Differs { process, differences } = &error else { panic!("{error}") };
        assert_eq!(*process, host);
        assert!(!differences.is_empty() && error.to_string().contains(here), "{error}");
        log::wait_for(there);
        // The others still wait, and continue once it connects correctly.
        corrected.description = ours();
        started.insert(1, start((again, corrected)));
        let gathered: Vec<_> = started.into_iter().map(|one| one.join().unwrap().unwrap()).collect();
        assert_connected(&gathered);
    }
}

#[test]
fn another_list_of_hosts_differs() {
    let ((one, a), (two, b), (_three, c)) = (listener(), listener(), listener());
    let first = settings(&[a.clone(), b.clone()], limits()).remove(0);
    let second = settings(&[a.clone(), b.clone(), c.clone()], limits()).remove(1);
    let _first = start((one, first));
    let error = connect_on(two, &second).unwrap_err().to_string();
    let here_and_there =
        format!("processes.hosts is [\"{a}\", \"{b}\"] there and [\"{a}\", \"{b}\", \"{c}\"] here");
    assert!(error.ends_with(&here_and_there), "{error}");
}

#[test]
fn hosts_in_another_order_are_told() {
    let ((one, a), (two, b)) = (listener(), listener());
    // It is process 1, and the other one looks for process 0 at its address; the connection that it takes for
    // process 0 sends nothing.
    let (_silent, c) = listener();
    let first = settings(&[c, a.clone()], limits()).remove(1);
    let _first = start((one, first));
    let second = settings(&[a.clone(), b], limits()).remove(1);
    let error = connect_on(two, &second).unwrap_err().to_string();
    assert_eq!(error, format!("process 0 ({a}): it says that it is process 1"));
}

#[test]
fn the_second_of_one_index_is_refused() {
    log::start();
    let mut all = processes(3, limits());
    let (again, same) = (listener().0, all[1].1.clone());
    let last = all.remove(2);
    let (host, name) = (same.processes.name(0), same.processes.name(1));
    let mut started: Vec<_> = all.into_iter().map(start).collect();
    log::wait_for(&format!("{name} is there"));
    let error = start((again, same)).join().unwrap().unwrap_err().to_string();
    assert_eq!(error, format!("{host}: it refused this one: there is a {name} already"));
    log::wait_for("there is a process 1 already");
    started.push(start(last));
    let there: Vec<_> = started.into_iter().map(|process| process.join().unwrap().unwrap()).collect();
    assert_connected(&there);
}

#[test]
fn an_address_in_use_is_told_at_once() {
    let ((_one, a), (_two, b)) = (listener(), listener());
    let error = connect(&settings(&[a.clone(), b], limits())[0]).unwrap_err();
    assert!(matches!(error, ConnectError::Listen { .. }));
    assert_eq!(error.to_string(), format!("cannot listen on \"{a}\", the address of process 0"));
}

#[test]
fn who_is_missing_is_named_at_the_limit() {
    let mut limits = limits();
    limits.connect = Duration::from_secs(3);
    let mut all = processes(4, limits);
    let names: Vec<String> = (0..4).map(|i| all[0].1.processes.name(i)).collect();
    all.truncate(2);
    // Process 1 has a long limit, and is notified.
    all[1].1.limits.connect = group::PATIENCE;
    let [first, second] =
        [start(all.remove(0)), start(all.remove(0))].map(|p| p.join().unwrap().unwrap_err());
    let missing = format!(
        "after 3 s there is no {}: it did not connect; no {}: it did not connect",
        names[2], names[3]
    );
    assert_eq!(first.to_string(), missing);
    assert_eq!(second.to_string(), format!("{}: {missing}", names[0]));
}

#[test]
fn one_that_cannot_be_reached_is_named_with_its_reason() {
    let mut limits = limits();
    limits.connect = Duration::from_secs(2);
    let mut all = processes(2, limits);
    let second = all.remove(1);
    let name = second.1.processes.name(0);
    drop(all);
    let error = start(second).join().unwrap().unwrap_err().to_string();
    assert!(error.starts_with(&format!("after 2 s there is no {name}: ")), "{error}");
    assert!(error.to_lowercase().contains("refused"), "{error}");
}

#[test]
fn nobody_listens_once_all_are_there() {
    let all = processes(3, limits());
    let addresses: Vec<_> = all.iter().map(|(listener, _)| listener.local_addr().unwrap()).collect();
    let _connected = connected(all);
    for address in addresses {
        assert!(TcpStream::connect(address).is_err(), "{address}");
    }
}

#[test]
fn connections_that_end_before_all_are_there_are_made_anew() {
    let (behind, address) = listener();
    let (_kept, hosts): (Vec<_>, Vec<_>) = (0..3).map(|_| listener()).unzip();
    let mut listeners = _kept.into_iter();
    let cable = Cable::new(listeners.next().unwrap(), address);
    let mut all = settings(&hosts, limits()).into_iter();
    let first = start((behind, all.next().unwrap()));
    let second = start((listeners.next().unwrap(), all.next().unwrap()));
    // For control and for data.
    cable.cut(2);
    let third = start((listeners.next().unwrap(), all.next().unwrap()));
    for process in [first, second, third] {
        process.join().unwrap().unwrap();
    }
}
