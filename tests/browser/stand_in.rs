//! A server with made-up answers for the page, for states that a run cannot produce on demand.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dupflow::monitor::page;
use serde_json::{Value, json};

/// Answers by path without query; 404 for others. The server itself answers `/` and `/deltas`.
pub(crate) type Answers = Arc<dyn Fn(&str) -> Option<(u16, Value)> + Send + Sync>;

pub(crate) struct StandIn {
    pub(crate) address: SocketAddr,
    readers: Arc<Mutex<Vec<TcpStream>>>,
    /// Dropping it ends the thread that sends frames.
    _stop: Sender<()>,
}

impl StandIn {
    pub(crate) fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let readers = Arc::new(Mutex::new(Vec::new()));
        let (stop, _) = channel();
        let kept = Arc::clone(&readers);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (held, kept) = (Arc::clone(&answers), Arc::clone(&kept));
                thread::spawn(move || serve(stream.unwrap(), &held, &kept));
            }
        });
        Self { address, readers, _stop: stop }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every `every`, sends the frame of the next epoch to all readers of deltas, until the returned value is
    /// dropped.
    pub(crate) fn send_each(&mut self, every: Duration, frame: impl Fn(u64) -> Value + Send + 'static) {
        let (stop, stopped) = channel();
        self._stop = stop;
        let readers = Arc::clone(&self.readers);
        thread::spawn(move || send(&readers, every, &stopped, frame));
    }
}

fn send(
    readers: &Mutex<Vec<TcpStream>>,
    every: Duration,
    stopped: &Receiver<()>,
    frame: impl Fn(u64) -> Value,
) {
    let mut epoch = 1;
    while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let text = format!("id: made-up-{epoch}\nevent: epoch\ndata: {}\n\n", frame(epoch));
        let mut readers = readers.lock().unwrap();
        readers.retain_mut(|reader| reader.write_all(text.as_bytes()).is_ok());
        epoch += u64::from(!readers.is_empty());
    }
}

fn serve(mut stream: TcpStream, answers: &Answers, readers: &Mutex<Vec<TcpStream>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    // Skips the rest of the head; bodies are not needed.
    lines.by_ref().find(String::is_empty);
    let path = first.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/").to_owned();
    let (kind, code, body, policy) = match path.as_str() {
        "/" => ("text/html; charset=utf-8", 200, page::html().to_owned(), page::policy()),
        "/deltas" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n";
            stream.write_all(head.as_bytes()).unwrap();
            return readers.lock().unwrap().push(stream);
        }
        _ => {
            let (code, value) = answers(&path).unwrap_or((404, json!({"error": "no such path"})));
            ("application/json", code, value.to_string(), "default-src 'none'")
        }
    };
    let head = format!(
        "HTTP/1.1 {code} Made Up\r\ncontent-type: {kind}\r\ncontent-length: {}\r\ncontent-security-policy: \
            {policy}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The browser may have closed the connection.
    drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())));
}

/// The status of a run without problems.
pub(crate) fn status() -> Value {
    json!({
        "run": "made-up", "version": "0", "phase": "live", "failure": null, "process": [0, 1], "workers": 1,
            "uptime_seconds": 10.0, "now": 1_760_000_000.0,
        "epochs": {"closed": 7, "durable": 7, "in_flight": 0, "waiting_deltas": 0},
        "documents": 5, "sketches": 5, "planned_sketches": 1_000_000, "pairs": 3, "clusters": 1,
            "giant_clusters": 0,
        "counts": {"events": 5, "bytes": 100, "empty": 0, "unchanged": 0, "unknown_deletes": 0,
            "restored": 0, "inserted": 5, "deleted": 0, "sketches_born": 5,
            "sketches_died": 0, "candidates": 3, "rejected_at_first_word": 0, "compared": 3,
                "components_compared": 300, "accepted": 3, "starred_groups": 0,
            "epochs": 7, "epochs_durable": 7, "pairs_added": 3, "pairs_removed": 0, "clusters_formed": 1,
                "clusters_dissolved": 0},
        "causes": {"insert": 3}, "compared_by_look": [3], "bad_records": {}, "resident_bytes": 1000,
            "peak_resident_bytes": 1000,
        "state": {"epoch": 0, "bytes": 0}, "similarities": vec![0; 100], "hot_blocks": [],
    })
}
