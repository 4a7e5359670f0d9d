//! A PostgreSQL server for the tests: Debian's package or the one on the path, on a free port, with its data
//! in a temporary folder.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

/// Longest duration until the server answers.
const BOUND: Duration = Duration::from_secs(60);

/// A server, stopped on drop.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    binaries: PathBuf,
    port: u16,
}

impl Server {
    /// Creates and starts a server.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn start() -> Result<Self, String> {
        let server = Self::new()?;
        let data = server.data();
        let made = server
            .command("initdb")
            .args([
                "-D",
                data.to_str().unwrap(),
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
            ])
            .output()
            .unwrap();
        if !made.status.success() {
            return Err(format!("initdb failed: {}", String::from_utf8_lossy(&made.stderr)));
        }
        server.restart();
        Ok(server)
    }

    /// Creates and starts a hot standby of this server.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn standby(&self) -> Result<Self, String> {
        let standby = Self::new()?;
        let (data, port) = (standby.data(), self.port.to_string());
        let copied = standby
            .command("pg_basebackup")
            .args(["-D", data.to_str().unwrap(), "-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-R"])
            .args(["-c", "fast"])
            .output();
        match copied {
            Ok(copied) if copied.status.success() => standby.restart(),
            Ok(copied) => return Err(String::from_utf8_lossy(&copied.stderr).into_owned()),
            Err(error) => return Err(error.to_string()),
        }
        Ok(standby)
    }

    /// Waits until a standby has replayed what its primary has written.
    pub(crate) fn catch_up(&self, primary: &Self) {
        let text = |server: &Self, sql: &str| -> String {
            server.client().query_one(sql, &[]).unwrap().get::<_, Option<String>>(0).unwrap_or_default()
        };
        let written = text(primary, "SELECT pg_current_wal_flush_lsn()::text");
        let is_replayed = format!("SELECT (pg_last_wal_replay_lsn() >= '{written}')::text");
        let until = Instant::now() + BOUND;
        while text(self, &is_replayed) != "true" {
            assert!(Instant::now() < until, "the standby does not follow: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A server without data.
    fn new() -> Result<Self, String> {
        let binaries = binaries().ok_or("no server of PostgreSQL is installed")?;
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let server = Self { folder, binaries, port };
        if is_root() {
            // The server refuses to run as root.
            let own = Command::new("chown").arg("postgres").arg(server.folder.path()).status();
            if !own.is_ok_and(|status| status.success()) {
                return Err("there is no user postgres".to_owned());
            }
        }
        Ok(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts a pooler before this server, with one connection to it that all transactions share.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn pooler(&self) -> Result<Pooler, String> {
        let places =
            ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map(|place| Path::new(place).join("pgbouncer"));
        let program = places.iter().find(|place| place.exists()).ok_or("no pgbouncer is installed")?;
        let (port, settings) = (free_port(), self.folder.path().join("pooler.ini"));
        let text = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 1\nunix_socket_dir =\n",
            self.port
        );
        std::fs::write(&settings, text).unwrap();
        // It changes its user itself: a program between would be killed in its place.
        let user: &[&str] = if is_root() { &["-u", "postgres"] } else { &[] };
        let [stdin, stdout, stderr] = std::array::from_fn(|_| Stdio::null());
        let mut command = Command::new(program);
        command.args(user).arg("-q").arg(&settings).stdin(stdin).stdout(stdout).stderr(stderr);
        let started = command.spawn().unwrap();
        let pooler = Pooler { started, url: format!("postgres://postgres@127.0.0.1:{port}/postgres") };
        let until = Instant::now() + BOUND;
        while let Err(error) = Client::connect(&pooler.url, NoTls) {
            assert!(Instant::now() < until, "the pooler does not answer: {error}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(pooler)
    }

    /// A program of the server, run as a user that the server accepts.
    fn command(&self, program: &str) -> Command {
        let program = self.binaries.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.url(), NoTls).unwrap()
    }

    pub(crate) fn try_client(&self) -> Result<Client, postgres::Error> {
        Client::connect(&self.url(), NoTls)
    }

    /// Restarts the server and waits until it answers.
    pub(crate) fn restart(&self) {
        let until = Instant::now() + BOUND;
        loop {
            // Remains of a killed server may hold its shared memory for a moment: then the new one exits at
            // once and is started again.
            let log =
                std::fs::OpenOptions::new().create(true).append(true).open(self.folder.path().join("log"));
            let (data, port) = (self.data(), self.port.to_string());
            let folder = self.folder.path().to_str().unwrap();
            let mut started = self
                .command("postgres")
                .args(["-D", data.to_str().unwrap(), "-p", &port, "-k", folder, "-h", "127.0.0.1"])
                .args(["-c", "shared_buffers=16MB", "-c", "max_connections=20"])
                .stdout(Stdio::null())
                .stderr(log.unwrap())
                .spawn()
                .unwrap();
            while started.try_wait().unwrap().is_none() {
                if Client::connect(&self.url(), NoTls).is_ok() {
                    return;
                }
                assert!(Instant::now() < until, "the server does not answer");
                std::thread::sleep(Duration::from_millis(50));
            }
            assert!(Instant::now() < until, "the server does not start: {:?}", self.log());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn signal(&self, signal: &str) {
        let Some(pid) = pid(&self.data()) else { return };
        // The process may have ended already.
        drop(Command::new("kill").args(["-s", signal, &pid]).status());
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&self) {
        self.signal("KILL");
    }
}

/// Says that a test was left out, past the capture of test output: the reader of the log must see it.
pub(crate) fn skipped(test: &str, why: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), format!("SKIPPED {test}: {why}\n").as_bytes()).unwrap();
}

/// A pooler of connections, stopped on drop.
pub(crate) struct Pooler {
    started: Child,
    pub(crate) url: String,
}

impl Pooler {
    /// The settings that a session has changed, whose connection the pooler now gives to another one, except
    /// for the one that the pooler sets itself.
    pub(crate) fn changed_settings(&self) -> Vec<String> {
        let mut client = Client::connect(&self.url, NoTls).unwrap();
        let sql = "SELECT name FROM pg_settings WHERE source = 'session' AND name <> 'application_name'";
        client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.started.kill().and_then(|()| self.started.wait()));
    }
}

/// A port that no program uses now. Below the range of ephemeral ports: while the server is down, the system
/// could give an ephemeral port to another connection.
fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(|| rand::random_range(20_000..32_000)).find(is_free).unwrap()
}

/// The folder of its programs: the newest of Debian's versions, or one on the path.
fn binaries() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.sort_by_key(|binaries| {
        let version = binaries.parent().and_then(Path::file_name).and_then(std::ffi::OsStr::to_str);
        std::cmp::Reverse(version.and_then(|name| name.parse::<u32>().ok()))
    });
    found.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    found.into_iter().find(|binaries| ["initdb", "postgres"].iter().all(|name| binaries.join(name).exists()))
}

/// The process id that a server has written.
fn pid(data: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data.join("postmaster.pid")).ok()?;
    text.lines().next().map(str::to_owned)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal("QUIT");
        let until = Instant::now() + Duration::from_secs(10);
        while pid(&self.data()).is_some() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
