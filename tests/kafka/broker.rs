//! The broker of the tests, its topics, and records written by other programs.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use dupflow::connectors::credential::Credential;
use dupflow::connectors::kafka::broker::{Admin, Connection, Producer, TopicRequest};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _};
use tempfile::TempDir;

/// Longer than any operation of a test takes.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// A Kafka broker.
pub(crate) struct Broker {
    address: String,
    /// Folder and port of a broker that the tests have started; `None` for an external one.
    own: Option<(TempDir, u16)>,
    /// Whether tests run at the same time.
    shared: AtomicBool,
}

fn script(arguments: &[&str]) -> Output {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/broker.sh");
    Command::new(script).args(arguments).output().unwrap()
}

impl Broker {
    /// Uses the broker of `KAFKA_BOOTSTRAP`, or starts one. The error says why there is none.
    pub(crate) fn start() -> Result<Self, String> {
        if let Ok(address) = std::env::var("KAFKA_BOOTSTRAP") {
            return Ok(Self::at(&address));
        }
        Self::start_in(tempfile::tempdir().unwrap())
    }

    /// Starts a broker on the data of another one, an archive with the folder `data`.
    pub(crate) fn restored(data: &Path) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let unpack = Command::new("tar").arg("-xzf").arg(data).arg("-C").arg(folder.path()).status().unwrap();
        assert!(unpack.success(), "{}", data.display());
        Self::start_in(folder)
    }

    fn start_in(folder: TempDir) -> Result<Self, String> {
        // Below the range of ephemeral ports: while the broker is down, the system could give an ephemeral
        // port to another connection.
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        let port = std::iter::repeat_with(|| rand::random_range(20_000..32_000)).find(is_free).unwrap();
        let started = script(&["start", folder.path().to_str().unwrap(), &port.to_string()]);
        if !started.status.success() {
            return Err(String::from_utf8_lossy(&started.stderr).trim().to_owned());
        }
        let address = String::from_utf8_lossy(&started.stdout).trim().to_owned();
        Ok(Self { address, own: Some((folder, port)), shared: AtomicBool::new(false) })
    }

    /// A broker that is already running.
    pub(crate) fn at(address: &str) -> Self {
        Self { address: address.to_owned(), own: None, shared: AtomicBool::new(false) }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection { brokers: self.address.clone(), patience: BOUND, ..Connection::default() }
    }

    /// A connection as a user without rights; `None` for an external broker.
    pub(crate) fn guest(&self, password: &str) -> Option<Connection> {
        let (folder, _) = self.own.as_ref()?;
        let port = std::fs::read_to_string(folder.path().join("sasl_port")).unwrap();
        let settings = [
            ("security.protocol", "sasl_plaintext"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.username", "guest"),
            ("sasl.password", password),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), Credential::new(value)));
        Some(Connection {
            brokers: format!("127.0.0.1:{}", port.trim()),
            settings: settings.into(),
            ..self.connection()
        })
    }

    /// The address of the TLS listener and the path of its certificate; `None` for an external broker, or one
    /// without TLS.
    pub(crate) fn tls(&self) -> Option<(String, String)> {
        let (folder, _) = self.own.as_ref()?;
        let port = std::fs::read_to_string(folder.path().join("tls_port")).ok()?;
        let certificate = folder.path().join("ca.pem").to_str()?.to_owned();
        Some((format!("127.0.0.1:{}", port.trim()), certificate))
    }

    /// The folder of the partitions; `None` for an external broker.
    pub(crate) fn data(&self) -> Option<PathBuf> {
        self.own.as_ref().map(|(folder, _)| folder.path().join("data"))
    }

    /// From now on several tests share the broker, and none may kill it.
    pub(crate) fn lives_on(&self) {
        self.shared.store(true, Ordering::Relaxed);
    }

    /// Kills the broker as a crash does; `false` for an external broker.
    ///
    /// # Panics
    /// In a test that is not listed in `KILLING`.
    pub(crate) fn kill(&self) -> bool {
        assert!(
            !self.shared.load(Ordering::Relaxed),
            "tests that kill the broker are listed, and have another one"
        );
        let Some((folder, _)) = &self.own else { return false };
        assert!(script(&["kill", folder.path().to_str().unwrap()]).status.success());
        true
    }

    /// Restarts the broker.
    pub(crate) fn restart(&self) {
        let Some((folder, port)) = &self.own else { return };
        let again = script(&["restart", folder.path().to_str().unwrap(), &port.to_string()]);
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    }

    pub(crate) fn admin(&self) -> Admin {
        Admin::new(&self.connection()).unwrap()
    }

    /// A unique topic name.
    pub(crate) fn name(what: &str) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let run = std::process::id();
        format!("{what}-{run}-{}-{:x}", NUMBER.fetch_add(1, Ordering::Relaxed), rand::random::<u32>())
    }

    /// Creates a topic.
    pub(crate) fn topic(&self, partitions: u32) -> String {
        let name = Self::name("topic");
        self.make(&name, partitions);
        name
    }

    pub(crate) fn make(&self, topic: &str, partitions: u32) {
        let wanted = TopicRequest { topic, partitions: Some(partitions), compacted: false };
        assert_eq!(self.admin().ensure(wanted, &[]).unwrap().partitions, partitions);
    }

    /// Creates a topic with settings.
    pub(crate) fn make_with(&self, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
        let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
        let new = settings.iter().fold(new, |new, (name, value)| new.set(name, value));
        let made = block_on(self.client().create_topics([&new], &AdminOptions::new()));
        made.unwrap().into_iter().for_each(|one| drop(one.unwrap()));
        let (admin, end) = (self.admin(), Instant::now() + BOUND);
        while admin.find(topic).unwrap().is_none() {
            assert!(Instant::now() < end, "{topic} is not known");
        }
    }

    /// Adds partitions to a topic; returns when producers can find them.
    pub(crate) fn grow(&self, topic: &str, partitions: u32) {
        let (admin, end) = (self.admin(), Instant::now() + BOUND);
        admin.grow(topic, partitions as usize).unwrap();
        while admin.find(topic).unwrap().is_none_or(|found| found.partitions < partitions) {
            assert!(Instant::now() < end, "{topic} has not grown");
        }
    }

    /// Deletes a topic and creates another one under the same name.
    pub(crate) fn remake(&self, topic: &str, partitions: u32) {
        let (admin, end) = (self.admin(), Instant::now() + BOUND);
        admin.remove(topic).unwrap();
        while admin.find(topic).unwrap().is_some() {
            assert!(Instant::now() < end, "{topic} is not gone");
        }
        self.make(topic, partitions);
    }

    /// Grants operations on a topic to the guest.
    pub(crate) fn allow_guest(&self, topic: &str, what: &[&str]) {
        let Some((folder, port)) = &self.own else { return };
        for operation in what {
            let words = ["allow", folder.path().to_str().unwrap(), &port.to_string(), topic, operation];
            let allowed = script(&words);
            assert!(allowed.status.success(), "{}", String::from_utf8_lossy(&allowed.stderr));
        }
    }

    fn client(&self) -> AdminClient<DefaultClientContext> {
        ClientConfig::new().set("bootstrap.servers", &self.address).create().unwrap()
    }

    /// Waits until a partition ends at `end`: the broker writes the marker of a transaction after it has
    /// acknowledged the commit.
    pub(crate) fn until_end(&self, topic: &str, partition: u32, end: u64) {
        let (admin, last) = (self.admin(), Instant::now() + BOUND);
        while admin.offset_range(topic, partition).unwrap().1 != end {
            assert!(Instant::now() < last, "{topic} does not end at {end}");
        }
    }

    /// A producer.
    pub(crate) fn writer(&self) -> Writer {
        Writer(self.connection().producer("writer", &[("linger.ms", "1")]).unwrap())
    }

    /// A transactional producer.
    pub(crate) fn transactional(&self, id: &str) -> Writer {
        let own = [("transactional.id", id), ("transaction.timeout.ms", "10000")];
        let writer = self.connection().producer("writer", &own).unwrap();
        writer.init_transactions(BOUND).unwrap();
        Writer(writer)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some((folder, _)) = &self.own {
            script(&["stop", folder.path().to_str().unwrap()]);
        }
    }
}

/// Waits for a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A producer of records.
pub(crate) struct Writer(pub(crate) Producer);

impl Writer {
    /// Writes a record. It is stored once [`Self::flush`] has returned.
    pub(crate) fn put(&self, topic: &str, partition: u32, key: Option<&str>, value: Option<&[u8]>) {
        self.put_with(topic, partition, key, value, None, &[]);
    }

    pub(crate) fn put_with(
        &self,
        topic: &str,
        partition: u32,
        key: Option<&str>,
        value: Option<&[u8]>,
        ms: Option<i64>,
        headers: &[(&str, &str)],
    ) {
        let all = headers.iter().fold(OwnedHeaders::new(), |all, (name, text)| {
            all.insert(Header { key: name, value: Some(*text) })
        });
        let mut record: BaseRecord<'_, str, [u8]> =
            BaseRecord::to(topic).partition(partition.cast_signed()).headers(all);
        (record.key, record.payload, record.timestamp) = (key, value, ms);
        let end = Instant::now() + BOUND;
        while let Err((error, refused)) = self.0.send(record) {
            assert!(Instant::now() < end, "{error}");
            record = refused;
            self.0.poll(Duration::from_millis(10));
        }
    }

    pub(crate) fn texts(&self, topic: &str, partition: u32, records: &[(&str, &str)]) {
        records.iter().for_each(|(key, text)| self.put(topic, partition, Some(key), Some(text.as_bytes())));
        self.flush();
    }

    pub(crate) fn flush(&self) {
        self.0.flush(BOUND).unwrap();
        assert_eq!(self.0.context().undelivered(), None);
    }

    pub(crate) fn begin(&self) {
        self.0.begin_transaction().unwrap();
    }

    pub(crate) fn commit(&self) {
        self.0.commit_transaction(BOUND).unwrap();
    }

    pub(crate) fn abort(&self) {
        self.0.flush(BOUND).unwrap();
        self.0.abort_transaction(BOUND).unwrap();
    }
}
