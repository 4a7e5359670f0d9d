//! The steps of a history, the same for all outputs.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use crate::feed;
use crate::places::is_of_changes;
use crate::scene::{BOUND, Outcome, Scene};

/// What happens between two runs that end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Restart,
    /// There are more events.
    Grow,
    /// More events, and the run is killed while it writes them, twice.
    Kill,
    /// The state is deleted, and there are more events.
    LoseState,
    /// An output is left out while there are more events, and is put back.
    LeaveOut,
    /// What an output holds is removed.
    LoseOutput,
    /// A second run on the same outputs is started beside the first.
    TakeOver,
    /// Another threshold: refused, then written as corrections, then killed meanwhile and started again.
    Reconcile,
    /// The disk of the outputs is full while there are more events.
    FullDisk,
    /// The place is away while there are more events.
    Away,
}

impl Step {
    pub(crate) const ALL: [Self; 10] = [
        Self::Restart,
        Self::Grow,
        Self::Kill,
        Self::LoseState,
        Self::LeaveOut,
        Self::LoseOutput,
        Self::TakeOver,
        Self::Reconcile,
        Self::FullDisk,
        Self::Away,
    ];
}

impl Scene<'_> {
    /// Whether a step means something here.
    pub(crate) fn takes(&self, step: Step) -> bool {
        match step {
            Step::LoseState => self.has_state,
            Step::LeaveOut | Step::LoseOutput => self.outputs.len() > 1,
            Step::TakeOver => self.outputs[0].cell.leads,
            Step::FullDisk => self.disk.is_some() && (self.uses("lines") || self.uses("sqlite")),
            _ => true,
        }
    }

    pub(crate) fn step(&mut self, step: Step) -> Outcome {
        let begun = Instant::now();
        self.history.push(format!("{step:?}"));
        let outcome = self.take(step);
        self.history.push(format!("{:.1} s", begun.elapsed().as_secs_f64()));
        outcome
    }

    fn take(&mut self, step: Step) -> Outcome {
        match step {
            Step::Restart => self.complete("", None),
            Step::Grow => {
                let pieces = 1 + self.random(6);
                self.grow(pieces);
                self.complete("", None)
            }
            Step::Kill => {
                for _ in 0..self.kills.each_step() {
                    let pieces = 3 + self.random(8);
                    self.grow(pieces);
                    self.kill("")?;
                }
                self.complete("", None)
            }
            Step::LoseState => {
                std::fs::remove_dir_all(self.path("state")).unwrap();
                self.grow(2);
                self.complete_or_anew()
            }
            Step::LeaveOut => {
                let without = 1 + self.random(self.outputs.len() - 1);
                self.grow(2);
                self.complete("", Some(without))?;
                self.complete("", None)
            }
            Step::LoseOutput => {
                let lost = 1 + self.random(self.outputs.len() - 1);
                let is_lost = self.outputs[lost].place.lose();
                self.history.push(format!("{}: {is_lost}", self.outputs[lost].cell));
                self.grow(1);
                self.complete("", None)
            }
            Step::TakeOver => self.take_over(),
            Step::Reconcile => self.reconcile(),
            Step::FullDisk => self.fill_disk(),
            Step::Away => self.leave(),
        }
    }

    /// Starts a run and kills it while it writes.
    fn kill(&mut self, options: &str) -> Outcome {
        self.configure(false, None);
        let random = (self.random(64), self.random(3));
        if let Some(point) = self.kills.point(random.1) {
            let ended = self.ended(self.start(options, "log", Some(&point)), "log")?;
            self.kills.note(&point, ended.code.is_none());
            self.history.push(format!("{point}: {:?}", ended.code));
            if ![None, Some(0)].contains(&ended.code) {
                return Err(format!("it failed by itself: {ended:?}"));
            }
            if ended.code == Some(0) {
                self.hold(None);
            }
            return self.check_durable();
        }
        let target = random.0 % self.outputs.len();
        let look = || self.outputs[target].place.look();
        let (mut before, mut changes) = (look(), 1 + random.1);
        let mut child = self.start(options, "log", None);
        let until = Instant::now() + BOUND;
        let ended: Option<ExitStatus> = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            let now = look();
            if now != before {
                (before, changes) = (now, changes - 1);
            }
            if changes == 0 || Instant::now() > until {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        self.kills.note("a change of an output", ended.is_none());
        self.history.push(format!("{} changes: {ended:?}", self.outputs[target].cell));
        match ended.map(|status| status.success()) {
            Some(false) => {
                Err(format!("it failed by itself: {}", std::fs::read_to_string(self.path("log")).unwrap()))
            }
            Some(true) => {
                self.hold(None);
                self.check_durable()
            }
            None => self.check_durable(),
        }
    }

    fn reconcile(&mut self) -> Outcome {
        let (old, threshold) = (self.threshold, if self.threshold == "0.8" { "0.6" } else { "0.8" });
        self.grow(1);
        self.configure(false, None);
        self.threshold = threshold;
        let first = &self.outputs[0].cell;
        if !first.leads {
            return self.complete("", None);
        }
        let is_read_back = first.form.as_deref() != Some("csv");
        let refused = self.run(if is_read_back { "" } else { " --reconcile" })?;
        if refused.code != Some(1) && refused.code != Some(2) {
            return Err(format!("another threshold is not refused: {refused:?}"));
        }
        self.threshold = old;
        self.check_durable()?;
        if !is_read_back {
            return self.complete("", None);
        }
        self.threshold = threshold;
        self.is_corrected = true;
        for _ in 0..2 {
            self.grow(1);
            self.kill_in_correction(old)?;
        }
        self.complete(" --reconcile", None)?;
        self.complete("", None)
    }

    /// Kills a run that corrects; until an output is corrected its rows are those of the old threshold.
    fn kill_in_correction(&mut self, old: &'static str) -> Outcome {
        match self.kill(" --reconcile") {
            Err(problem) if problem.contains("it failed") || problem.contains("does not end") => Err(problem),
            Ok(()) => Ok(()),
            Err(_) => {
                // Not all have begun their correction.
                for at in 0..self.outputs.len() {
                    let Some(mark) = self.outputs[at].place.mark() else { continue };
                    if !mark.in_correction {
                        let now = self.check(at, mark.lines, self.threshold);
                        now.or_else(|_| self.check(at, mark.lines, old))?;
                    }
                }
                Ok(())
            }
        }
    }

    fn fill_disk(&mut self) -> Outcome {
        let disk = self.disk.as_ref().unwrap();
        disk.fill();
        self.grow(4);
        self.configure(false, None);
        let ended = self.run("");
        self.disk.as_ref().unwrap().empty();
        let ended = ended?;
        if ended.code != Some(1) || ended.said.contains("panicked") {
            return Err(format!("a full disk is no failure: {ended:?}"));
        }
        self.check_durable()?;
        self.complete("", None)
    }

    /// Waits until the first output has all that is there to read, or one of the runs has ended.
    fn until_read(&self, children: &mut [&mut Child]) -> Result<(), String> {
        let until = Instant::now() + BOUND;
        loop {
            let mark = self.outputs[0].place.mark();
            // The last epoch is open until there is another event.
            let closed = self.lines() - (feed::EVENTS + 1);
            if mark.is_some_and(|mark| !mark.in_correction && mark.lines >= closed) {
                return Ok(());
            }
            if children.iter_mut().any(|child| child.try_wait().unwrap().is_some()) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("{mark:?}, where there are {} lines", self.lines()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn take_over(&mut self) -> Outcome {
        self.configure(true, None);
        self.grow(1);
        let mut first = self.start("", "log", None);
        let mut outcome = self.until_read(&mut [&mut first]);
        let mut second = self.start("", "second", None);
        if outcome.is_ok() && self.uses("postgres") {
            // The second waits for the connection of the first.
            let said = || std::fs::read_to_string(self.path("second")).unwrap();
            let until = Instant::now() + BOUND;
            while second.try_wait().unwrap().is_none()
                && !said().contains("is connected")
                && Instant::now() < until
            {
                if first.try_wait().unwrap().is_some()
                    || Instant::now() + BOUND > until + Duration::from_secs(3)
                {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        } else if outcome.is_ok() {
            let until = Instant::now() + BOUND;
            let mut pieces = 0;
            while [&mut first, &mut second].into_iter().all(|child| child.try_wait().unwrap().is_none()) {
                if Instant::now() > until {
                    outcome = Err("two runs write to one output".to_owned());
                    break;
                }
                // The first one finds at its next commit that it was taken over.
                if pieces < 40 {
                    self.grow(1);
                    pieces += 1;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        for (child, log) in [(&mut first, "log"), (&mut second, "second")] {
            match child.try_wait().unwrap() {
                Some(status) if status.success() => outcome = Err(format!("{log} ended well")),
                Some(status) => self.history.push(format!("{log} ended by itself, {status}")),
                None => {
                    child.kill().unwrap();
                    child.wait().unwrap();
                }
            }
        }
        outcome?;
        self.check_durable()?;
        self.complete("", None)
    }

    /// The server is killed, or the folder is another one's, while a run follows.
    fn leave(&mut self) -> Outcome {
        let servers = self.servers;
        let (server, broker) = (self.uses("postgres"), self.uses("kafka"));
        if !server && !broker {
            // As a mount that is not there.
            std::fs::rename(self.path("mnt/disk"), self.path("mnt/away")).unwrap();
            self.grow(2);
            self.configure(false, None);
            let ended = self.run("")?;
            assert!(!self.path("mnt/disk").exists(), "the run made a folder: {ended:?}");
            std::fs::rename(self.path("mnt/away"), self.path("mnt/disk")).unwrap();
            if ended.code == Some(0) {
                return Err(format!("an output that is away is no failure: {ended:?}"));
            }
            return self.complete("", None);
        }
        let leads = self.outputs[0].cell.leads;
        self.configure(leads, None);
        let mut child = self.start("", "log", None);
        if leads {
            self.until_read(&mut [&mut child])?;
        }
        self.grow(2);
        if let Some(server) = servers.postgres.as_ref().filter(|_| server) {
            server.kill();
            self.grow(2);
            server.restart();
        }
        if let Some(broker) = servers.broker.as_ref().filter(|_| broker)
            && broker.kill()
        {
            self.grow(2);
            broker.restart();
        }
        self.until_read(&mut [&mut child])?;
        match child.try_wait().unwrap() {
            Some(status) => self.history.push(format!("it ended by itself, {status}")),
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }
        self.check_durable()?;
        self.complete("", None)
    }

    /// A run that has to correct its first output, or, where it cannot be read back, writes it anew after
    /// what the message says.
    fn complete_or_anew(&mut self) -> Outcome {
        let first = &self.outputs[0].cell;
        if first.form.as_deref() != Some("csv") || !is_of_changes(&first.answer) {
            return self.complete("", None);
        }
        self.configure(false, None);
        let refused = self.run("")?;
        if refused.code == Some(0) {
            // All input was read again, without what is written already.
            return self.complete("", None);
        }
        if refused.code != Some(1) || !refused.said.contains("move it and its .mark away") {
            return Err(format!("it cannot be corrected, and is not refused: {refused:?}"));
        }
        self.outputs[0].place.lose();
        // Their mark was that of the output.
        let refused = self.run(" --reconcile")?;
        if refused.code != Some(1) || !refused.said.contains("letters.jsonl holds") {
            return Err(format!("letters that no mark names are not refused: {refused:?}"));
        }
        std::fs::remove_file(self.path("mnt/disk/letters.jsonl")).unwrap();
        self.complete(" --reconcile", None)
    }
}
