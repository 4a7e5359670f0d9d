//! The web hook: each notice is sent to a receiver by POST, in the order of the file of notices.
//!
//! ```text
//!  NoticeFile (durable) ─▶ cursor ─▶ POST ─┬─ 2xx: the cursor moves on
//!                            ▲             ├─ 408, 425, 429, 5xx, no answer: again, after a pause
//!                            └─ next start └─ any other: to the dead letters, and the cursor moves on
//! ```
//!
//! The file of notices is the queue, so a receiver that is down costs no memory and holds nothing back: the
//! thread of the hook waits, no other thread does. The cursor is a file. It is stored after every
//! `STORED_EVERY` deliveries, before each wait, and after each delivery once the run stops; a crash in
//! between sends those again. So each notice is delivered at least once, in order, and one that is sent again
//! has the same key. Where the cursor or a dead letter cannot be stored, as on a full disk, that is tried
//! again, and nothing is sent meanwhile.
//!
//! References: `Idempotency-Key` as in the draft of the IETF httpapi group; RFC 9110, section 10.2.3
//! (`Retry-After`); RFC 2104 (HMAC).

mod cursor;
mod receiver;
mod settings;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use serde::Serialize;

use self::cursor::{Cursor, CursorFile};
use self::receiver::{Answered, Receiver};
pub use self::settings::HookSettings;
use super::notice_board::{MoreNotices, NoticeBoard};
use super::notice_file::{NoticeLine, parse};
use crate::failpoint;
use crate::owned::OwnedFile;
use dupflow_core::time::Clock;
use dupflow_run::watch::HookState;

/// Deliveries after which the cursor is stored.
const STORED_EVERY: u64 = 32;

/// First pause before another attempt; it doubles with each failure, with jitter.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Longest pause before another attempt, unless the receiver asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Longest pause before the cursor or a dead letter is stored again.
const LONGEST_STORE_PAUSE: Duration = Duration::from_secs(8);

/// Longest pause that a receiver may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);

/// What the thread works with.
struct Deliveries {
    receiver: Receiver,
    notices: BufReader<File>,
    dead_letters: OwnedFile,
    cursor: Cursor,
    stored: CursorFile,
    board: Arc<NoticeBoard>,
    clock: Arc<dyn Clock>,
}

/// A notice in the file of dead letters.
#[derive(Serialize)]
struct RefusedNotice<'a> {
    number: u64,
    key: &'a str,
    reason: &'a str,
    notice: &'a NoticeLine,
}

/// Checks that the files of the hook can be opened, and that the cursor is of this file of notices.
///
/// # Errors
/// If not.
pub fn check(settings: &HookSettings) -> io::Result<()> {
    CursorFile::open(&settings.cursor, &settings.notices)?.read()?;
    OwnedFile::open(&settings.dead_letter).map(drop)
}

/// Starts to deliver what is in the file of notices and what follows, until [`NoticeBoard::end_deliveries`].
///
/// # Errors
/// If a file cannot be opened, if the cursor is not of this file of notices, or if the thread cannot be
/// started.
pub fn start(settings: &HookSettings, board: Arc<NoticeBoard>, clock: Arc<dyn Clock>) -> io::Result<()> {
    let mut notices = File::open(&settings.notices)?;
    let stored = CursorFile::open(&settings.cursor, &settings.notices)?;
    let cursor = stored.read()?;
    notices.seek(SeekFrom::Start(cursor.offset))?;
    let mut dead_letters = OwnedFile::open(&settings.dead_letter).map_err(|error| {
        io::Error::new(error.kind(), format!("{}: {error}", settings.dead_letter.display()))
    })?;
    dead_letters.take(dead_letters.size()?)?;
    let receiver = Receiver::new(settings)?;
    board.begin_hook(cursor.number, settings.shutdown);
    let notices = BufReader::new(notices);
    let mut deliveries = Deliveries { receiver, notices, dead_letters, cursor, stored, board, clock };
    let work = move || {
        let ran = catch_unwind(AssertUnwindSafe(|| deliveries.run()));
        if let Err(error) = ran.unwrap_or_else(|_| Err(io::Error::other("it panicked"))) {
            tracing::error!(%error, "the web hook has ended, and a restart delivers the rest");
            deliveries.update(|hook| hook.failure = Some(error.to_string()));
            if !deliveries.board.is_stopping() {
                deliveries.board.hook_has_failed(error.to_string());
            }
        }
        deliveries.board.hook_has_ended();
    };
    // Not joined: an attempt may take as long as its time limit.
    thread::Builder::new().name("web hook".to_owned()).spawn(work)?;
    Ok(())
}

impl Deliveries {
    fn run(&mut self) -> io::Result<()> {
        let mut unstored = 0;
        loop {
            if self.board.wait_beyond(self.cursor.offset) == MoreNotices::Ended {
                return self.store();
            }
            let mut line = Vec::new();
            self.notices.read_until(b'\n', &mut line)?;
            let notice = parse(&line, self.cursor.number + 1)?;
            if !self.deliver(&notice)? {
                // The next run goes on here.
                return self.store();
            }
            failpoint::reach("delivered");
            self.cursor.number += 1;
            self.cursor.offset += line.len() as u64;
            unstored += 1;
            let is_last = self.notices.buffer().is_empty();
            // At the end the process may not wait for the next attempt.
            if unstored >= STORED_EVERY || is_last || self.board.is_stopping() {
                self.store()?;
                unstored = 0;
            }
        }
    }

    /// Stores the cursor.
    fn store(&mut self) -> io::Result<()> {
        self.until_stored("cursor", |own| own.stored.store(own.cursor))
    }

    /// Repeats a step that stores something, until it succeeds.
    ///
    /// # Errors
    /// Its error, once the run stops; at once if a file is not this run's any more.
    fn until_stored(
        &mut self,
        what: &'static str,
        mut step: impl FnMut(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut pause = FIRST_PAUSE;
        loop {
            let Err(error) = step(self) else {
                if pause > FIRST_PAUSE {
                    self.update(|hook| hook.unstored = None);
                }
                return Ok(());
            };
            if error.kind() == io::ErrorKind::InvalidData || self.board.is_stopping() {
                return Err(error);
            }
            let pause_ms = pause.as_millis();
            let again = "a file of the web hook cannot be stored; it is tried again";
            tracing::error!(%error, file = what, pause_ms, "{again}");
            self.update(|hook| hook.unstored = Some(format!("its {what} cannot be stored: {error}")));
            self.board.wait_for_stop(pause);
            pause = (2 * pause).min(LONGEST_STORE_PAUSE);
        }
    }

    /// Sends a notice until it is accepted or refused. False if an attempt fails and the run stops.
    fn deliver(&mut self, notice: &NoticeLine) -> io::Result<bool> {
        let number = self.cursor.number + 1;
        let key = receiver::key(number, notice);
        let mut pauses = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .without_max_times()
            .build();
        loop {
            match self.receiver.post(&key, number, notice, self.clock.unix()) {
                Answered::Accepted => {
                    self.done(|hook| hook.delivered += 1);
                    return Ok(true);
                }
                Answered::Refused(reason) => {
                    tracing::warn!(number, reason, "the receiver of notices refuses one");
                    let letter = RefusedNotice { number, key: &key, reason: &reason, notice };
                    let mut letter = serde_json::to_vec(&letter)?;
                    letter.push(b'\n');
                    self.until_stored("dead letter", |own| own.dead_letters.append_durably(&letter))?;
                    self.done(|hook| hook.refused += 1);
                    return Ok(true);
                }
                Answered::Failed { reason, asked } => {
                    tracing::warn!(number, reason, "a notice could not be delivered, and is sent again");
                    self.update(|hook| {
                        hook.retries += 1;
                        hook.failure = Some(reason);
                    });
                    self.store()?;
                    let pause = pauses.next().unwrap_or(LONGEST_PAUSE);
                    let pause = pause.max(asked.unwrap_or_default().min(LONGEST_ASKED));
                    if self.board.wait_for_stop(pause) {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Notes that the notice at the cursor is done.
    fn done(&self, count: impl FnOnce(&mut HookState)) {
        self.board.update_hook(self.cursor.number + 1, |hook| {
            hook.failure = None;
            count(hook);
        });
    }

    fn update(&self, change: impl FnOnce(&mut HookState)) {
        self.board.update_hook(self.cursor.number, change);
    }
}
