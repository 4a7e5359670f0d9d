//! The state of a run of several processes: process 0 owns it, and the others write their share of it, where
//! they reach it. Tasks and replies go over the control connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use parking_lot::{Condvar, Mutex};

use super::threads::spawn;
use super::worker::RunShared;
use dupflow_connectors::state::{StateWriter, StateWriters, WriterReply, WriterTask};
use dupflow_engine::dataflow::KeptEpochs;
use dupflow_engine::processes::{Control, ControlMessage};

/// What this process stores itself: its writer, and the changes that it writes.
pub(super) type OwnShare = (StateWriter, Arc<KeptEpochs>);

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
    has_ended: bool,
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

    /// Nobody replies any more.
    pub(super) fn end(&self) {
        self.replies.lock().has_ended = true;
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
            .wait_while(&mut replies, |replies| !replies.waiting.contains_key(&at) && !replies.has_ended);
        replies.waiting.remove(&at)
    }
}

/// Any other process: starts the thread that does the tasks, until their sender is dropped. `None` if this
/// process does not reach the state, or the thread cannot be started.
pub(super) fn start_writer(
    share: Option<OwnShare>,
    control: &Arc<Control>,
    shared: &Arc<RunShared>,
) -> Option<Sender<WriterTask>> {
    let (mut writer, kept) = share?;
    let (send, tasks) = channel::<WriterTask>();
    let control = Arc::clone(control);
    spawn("state", shared, move |_| {
        for task in tasks {
            let to = Arc::clone(&control);
            let reply = move |reply| to.send(ControlMessage::StateReply(encoded(&reply)));
            writer.work(task, |through| kept.take(through), reply);
        }
        Ok(())
    })?;
    Some(send)
}

/// A task or a reply as it is sent.
pub(super) fn encoded(message: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("numbers, texts and bytes are always JSON")
}
