//! Log messages: from any thread of the process to a callable, on the thread of a caller.
//!
//! One subscriber serves the process. It keeps up to [`MOST`] messages until a call of this module delivers
//! them. While the command line runs, its own subscriber gets everything.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::{Mutex, RwLock};
use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

use crate::numbers::whole;

/// Most messages that wait; further ones are counted.
const MOST: usize = 1000;

/// A message: its level as in `logging`, its module, its text.
type Message = (u8, &'static str, String);

struct Waiting {
    messages: VecDeque<Message>,
    dropped: u64,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { messages: VecDeque::new(), dropped: 0 });
/// Messages below this level are not made.
static LEAST: AtomicU8 = AtomicU8::new(30);
/// The subscriber of the command line, while it runs.
static COMMAND: RwLock<Option<Dispatch>> = RwLock::new(None);
static LOG: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Messages of all corpora and calls go to `log(level, target, message)`; None discards them.
#[pyfunction]
#[pyo3(signature = (log, /))]
pub(crate) fn set_log(log: Option<Py<PyAny>>) {
    // The earlier one is dropped after the lock.
    let earlier = std::mem::replace(&mut *LOG.lock(), log);
    drop(earlier);
}

/// Messages below this level of `logging` are not made.
#[pyfunction]
#[pyo3(signature = (level, /))]
pub(crate) fn set_log_level(#[pyo3(from_py_with = whole)] level: i64) {
    let level = level.clamp(0, u8::MAX.into());
    LEAST.store(u8::try_from(level).unwrap_or(u8::MAX), Ordering::Relaxed);
}

/// Takes the messages of this process from now on.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    // Nobody else sets a subscriber in this module.
    ONCE.call_once(|| drop(tracing::dispatcher::set_global_default(Dispatch::new(Router))));
}

/// Runs the command line: meanwhile the subscriber that it passes gets all messages.
pub(crate) fn during_command<T>(run: impl FnOnce(&dyn Fn(Dispatch)) -> T) -> T {
    install();
    let result = run(&|dispatch| *COMMAND.write() = Some(dispatch));
    let ended = COMMAND.write().take();
    drop(ended);
    result
}

/// Delivers the waiting messages.
pub(crate) fn deliver(py: Python<'_>) -> PyResult<()> {
    let (messages, dropped) = {
        let mut waiting = WAITING.lock();
        if waiting.messages.is_empty() {
            return Ok(());
        }
        (std::mem::take(&mut waiting.messages), std::mem::take(&mut waiting.dropped))
    };
    let Some(log) = LOG.lock().as_ref().map(|log| log.clone_ref(py)) else { return Ok(()) };
    let lost = (dropped > 0).then(|| (30, "dupflow", format!("{dropped} messages were dropped")));
    for message in messages.into_iter().chain(lost) {
        log.call1(py, message)?;
    }
    Ok(())
}

struct Router;

fn level(level: Level) -> u8 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 5,
    }
}

impl Subscriber for Router {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        match &*COMMAND.read() {
            Some(command) => command.enabled(metadata),
            None => {
                level(*metadata.level()) >= LEAST.load(Ordering::Relaxed)
                    && metadata.target().starts_with("dupflow")
            }
        }
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        COMMAND.read().as_ref().map_or_else(|| Id::from_u64(1), |command| command.new_span(span))
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(command) = &*COMMAND.read() {
            command.record(span, values);
        }
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        if let Some(command) = &*COMMAND.read() {
            command.record_follows_from(span, follows);
        }
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(command) = &*COMMAND.read() {
            return command.event(event);
        }
        let mut text = MessageText::default();
        event.record(&mut text);
        let message = (level(*event.metadata().level()), event.metadata().target(), text.whole());
        let mut waiting = WAITING.lock();
        if waiting.messages.len() < MOST { waiting.messages.push_back(message) } else { waiting.dropped += 1 }
    }

    fn enter(&self, span: &Id) {
        if let Some(command) = &*COMMAND.read() {
            command.enter(span);
        }
    }

    fn exit(&self, span: &Id) {
        if let Some(command) = &*COMMAND.read() {
            command.exit(span);
        }
    }
}

/// The text of a message: its words, then its fields as `name=value`.
#[derive(Default)]
struct MessageText {
    words: String,
    fields: String,
}

impl MessageText {
    fn whole(self) -> String {
        self.words + &self.fields
    }
}

impl Visit for MessageText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A String takes everything.
        let _ = match field.name() {
            "message" => write!(self.words, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = match field.name() {
            "message" => self.words.write_str(value),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
