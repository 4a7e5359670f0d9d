//! What threads write to a status, and the health and readiness that result.

use super::*;

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn phases_go_forward_only_and_the_first_failure_stays() {
    let status = Status::new(0, 1, 1);
    assert_eq!(status.phase(), Phase::Starting);
    status.enter(Phase::Live);
    status.enter(Phase::Restoring);
    assert_eq!(status.phase(), Phase::Live);
    status.enter(Phase::Failed("disk".to_owned()));
    status.enter(Phase::Failed("z: a worker that followed".to_owned()));
    status.enter(Phase::Stopping);
    assert_eq!(status.phase(), Phase::Failed("disk".to_owned()));
    assert_eq!(status.phase().name(), "failed");
}

#[test]
fn a_process_is_healthy_until_it_fails() {
    let status = Status::new(0, 1, 2);
    assert_eq!(status.health(seconds(0)), Ok(()));
    status.enter(Phase::Failed("the output\ncannot be written".to_owned()));
    assert_eq!(status.health(seconds(0)), Err("failed: the output; cannot be written".to_owned()));
}

#[test]
fn a_worker_that_hangs_is_seen_and_one_that_has_ended_does_not_hang() {
    let status = Status::new(0, 1, 2);
    status.stepped(0, seconds(10));
    status.stepped(1, seconds(20));
    assert_eq!(status.health(seconds(310)), Ok(()), "exactly the limit");
    assert!(
        status
            .health(seconds(311))
            .is_err_and(|line| line.starts_with("worker 0 has been in one step for 301 s"))
    );
    status.ended(0);
    assert_eq!(status.health(seconds(320)), Ok(()));
    assert_eq!(status.step_ages(seconds(25)).collect::<Vec<_>>(), [(1, seconds(5))]);
    // An unknown worker is ignored.
    status.stepped(7, seconds(0));
}

#[test]
fn a_run_is_ready_while_it_is_live_and_its_output_keeps_up() {
    let status = Status::new(0, 1, 1);
    let mut waits = Vec::new();
    for phase in [Phase::Starting, Phase::Restoring, Phase::CatchingUp, Phase::Live, Phase::Stopping] {
        status.enter(phase);
        waits.push(
            status
                .readiness(seconds(9))
                .map_err(|line| line.split(':').next().unwrap_or_default().to_owned()),
        );
    }
    let waiting = |what: &str| Err(what.to_owned());
    let expected =
        [waiting("starting"), waiting("restoring"), waiting("catching up"), Ok(()), waiting("stopping")];
    assert_eq!(waits, expected);

    let behind = Status::new(0, 1, 1);
    behind.durable(100);
    behind.enter(Phase::Live);
    behind.closed(100 + EPOCHS_BEHIND);
    assert_eq!(behind.readiness(seconds(9)), Ok(()), "exactly the limit");
    behind.closed(101 + EPOCHS_BEHIND);
    assert!(behind.readiness(seconds(9)).is_err_and(|line| line.starts_with("33 epochs behind")));
    behind.committed(101, seconds(1), seconds(9));
    assert_eq!(behind.readiness(seconds(9)), Ok(()));
    behind.set_ready_lag(seconds(30));
    behind.begun(102, seconds(5));
    behind.begun(103, seconds(20));
    assert_eq!(behind.readiness(seconds(35)), Ok(()), "exactly the limit");
    assert!(behind.readiness(seconds(36)).is_err_and(|line| line.starts_with("31.0 s behind")));
    assert_eq!(behind.in_flight(), 2, "counted while nothing is committed");
    behind.committed(102, seconds(1), seconds(9));
    assert_eq!((behind.readiness(seconds(36)), behind.lags(seconds(36)).1), (Ok(()), seconds(16)));
    assert_eq!((behind.commit_age(seconds(11)), status.commit_age(seconds(11))), (Some(seconds(2)), None));
}

#[test]
fn what_is_told_late_does_not_go_back() {
    let status = Status::new(0, 1, 1);
    status.durable(7);
    status.closed(6);
    status.committed(5, seconds(0), seconds(0));
    assert_eq!((status.closed_epoch(), status.durable_epoch()), (7, 7));
}

#[test]
fn readiness_needs_an_input_that_is_read() {
    let status = Status::new(0, 1, 1);
    status.enter(Phase::Live);
    let input = Arc::new(Backlog::default());
    input.read(2, 10);
    input.looked(2, 10, 60);
    status.watch_input(Arc::clone(&input));
    assert_eq!((status.unread(), status.readiness(seconds(0))), (50, Ok(())), "without a bound");
    status.set_ready_behind(Duration::ZERO);
    let why = std::iter::repeat_with(|| status.readiness(seconds(0))).find_map(Result::err).unwrap();
    let expected = "the input is behind: of partition 2 50 records wait for a transaction of their producer, \
        open at offset 10; ";
    assert!(why.starts_with(expected), "{why}");
    // The transaction ends, so its records can be read.
    input.looked(2, 60, 60);
    let unread = status.readiness(seconds(0)).unwrap_err();
    assert!(unread.starts_with("the input is behind: of partition 2 50 records are not read; "), "{unread}");
    input.read(2, 60);
    assert_eq!((status.unread(), status.readiness(seconds(0))), (0, Ok(())));
}

#[test]
fn readiness_needs_a_broker_that_says_where_the_input_ends() {
    let seen = |age, most| seen(Some((2, seconds(age))), seconds(most));
    assert_eq!(
        (seen(60, 60), super::seen(None, seconds(60))),
        (Ok(()), Ok(())),
        "exactly the limit, or no topic"
    );
    let why = seen(61, 60).unwrap_err();
    let expected = "how much of the input waits is not known: no broker has said for 61.0 s where partition \
        2 ends, at most 60 s may pass";
    assert!(why.starts_with(expected), "{why}");
    // Ends are requested at intervals, so a bound below ten seconds counts as ten.
    assert!(seen(10, 0).is_ok() && seen(11, 0).is_err());
}

/// A database that is locked or away, from ten seconds on.
#[test]
fn readiness_needs_an_input_that_can_be_read() {
    let readable = |away| super::readable(Some((seconds(away), "it is locked".to_owned())));
    assert_eq!((readable(9), super::readable(None)), (Ok(()), Ok(())));
    assert_eq!(readable(12).unwrap_err(), "the input cannot be read, for 12.0 s: it is locked");
    let input = Backlog::default();
    input.away(Some("it is locked".to_owned()));
    assert_eq!(input.is_away().map(|(_, why)| why).as_deref(), Some("it is locked"));
    input.away(None);
    assert_eq!(input.is_away(), None);
}

#[test]
fn only_a_wall_clock_is_ahead() {
    let status = Status::default();
    status.set_retention_clock(2_000.0);
    assert_eq!(status.retention_ahead(500.0), None);
    status.follow_wall_clock();
    assert_eq!(
        [500.0, 2_000.0, 9_000.0].map(|unix| status.retention_ahead(unix)),
        [1_500.0, 0.0, 0.0].map(Some)
    );
    assert_eq!(Status::default().retention_ahead(0.0), None);
}

#[test]
fn what_is_read_before_the_run_is_live_is_known_until_then() {
    let status = Status::default();
    let up_to = Offsets::from([(3, 700)]);
    status.set_beginning(Some(50), up_to.clone());
    status.enter(Phase::Restoring);
    status.count_restored(20);
    status.count_restored(10);
    assert_eq!(status.beginning(), Some(BeginningStatus { restored: 30, stored: Some(50), up_to }));
    status.enter(Phase::CatchingUp);
    assert!(status.beginning().is_some());
    status.enter(Phase::Live);
    assert_eq!(status.beginning(), None);
}
