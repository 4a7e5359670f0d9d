//! The state of a run of several processes: process 0 owns it, and the others write their share of it, where
//! they reach it. Tasks and replies go over the control connections.
//!
//! Process 0 waits for replies with the lock of the state held, and the drop of the state waits for them too.
//! These waits end: the committer drops the state before process 0 sends `Done`, and until then the others
//! reply; a failure of any process calls [`OtherWriters::end`]. So neither the thread that receives replies
//! nor what a failure ends may take that lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use dupflow_connectors::state::{StateWriters, WriterReply, WriterTask};
use dupflow_engine::processes::{Control, ControlMessage};

/// Process 0: the other processes as writers. Writer i is process i + 1.
#[derive(Debug)]
pub(super) struct OtherWriters {
    control: Arc<Control>,
    replies: Mutex<Replies>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Replies {
    /// By writer and number of the task.
    waiting: BTreeMap<(usize, u64), WriterReply>,
    has_failed: bool,
}

impl OtherWriters {
    pub(super) fn new(control: Arc<Control>) -> Self {
        Self { control, replies: Mutex::default(), changed: Condvar::new() }
    }

    /// A process has replied.
    pub(super) fn replied(&self, process: usize, reply: WriterReply) {
        self.replies.lock().waiting.insert((process - 1, reply.serial), reply);
        self.changed.notify_all();
    }

    /// No reply is waited for any more: the run has failed.
    pub(super) fn end(&self) {
        self.replies.lock().has_failed = true;
        self.changed.notify_all();
    }
}

impl StateWriters for OtherWriters {
    fn count(&self) -> usize {
        self.control.processes().hosts().len() - 1
    }

    fn name(&self, writer: usize) -> String {
        self.control.processes().name(writer + 1)
    }

    fn send(&self, writer: usize, task: WriterTask) {
        self.control.send_to(writer + 1, ControlMessage::StateTask(encoded(&task)));
    }

    fn reply(&self, writer: usize, serial: u64) -> Option<WriterReply> {
        let at = (writer, serial);
        let mut replies = self.replies.lock();
        self.changed
            .wait_while(&mut replies, |replies| !replies.waiting.contains_key(&at) && !replies.has_failed);
        replies.waiting.remove(&at)
    }
}

/// A task or a reply as it is sent.
pub(super) fn encoded(message: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("numbers, texts and bytes are always JSON")
}
