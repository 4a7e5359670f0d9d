//! The table `[monitor]` of a deployment file: the address of the run's page and metrics, who has access, and
//! limits.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::values::{path, secret, secret_in_file, time};
use crate::config::settings::{ConfigValue, DeploymentKey, FileSettings, ProblemKind};
use dupflow_connectors::credential::Credential;
use dupflow_run::missing_feature;

/// The problem of a monitor that this build does not have.
pub fn without_monitor() -> String {
    missing_feature("the monitor", "monitor")
}

/// The keys of `[monitor]`.
pub(super) const KEYS: [DeploymentKey; 16] = [
    DeploymentKey {
        name: "monitor.listen",
        expected: "an address with a port, as in \"127.0.0.1:9600\", or \"\" for none",
    },
    DeploymentKey { name: "monitor.pairs", expected: "true or false" },
    DeploymentKey { name: "monitor.token", expected: "text of 16 bytes or more, or \"\" for none" },
    DeploymentKey { name: "monitor.token_file", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "monitor.read_token", expected: "text of 16 bytes or more, or \"\" for none" },
    DeploymentKey { name: "monitor.read_token_file", expected: "a path, or \"\" for none" },
    DeploymentKey {
        name: "monitor.trusted_proxies",
        expected: "a list of addresses, as \"10.0.0.7\", or of ranges, as \"10.0.0.0/8\"",
    },
    DeploymentKey { name: "monitor.user_header", expected: "the name of a header, or \"\" for none" },
    DeploymentKey { name: "monitor.ready_behind", expected: "a time from \"1ms\" to \"3600s\"" },
    DeploymentKey { name: "monitor.hosts", expected: "a list of names of hosts, without ports" },
    DeploymentKey {
        name: "monitor.base_path",
        expected: "a path as \"/near\", without a slash at its end, or \"\" for none",
    },
    DeploymentKey { name: "monitor.ready_lag", expected: "a time from \"1ms\" to \"3600s\"" },
    DeploymentKey { name: "monitor.connections", expected: "a whole number from 1 to 10000" },
    DeploymentKey { name: "monitor.streams", expected: "a whole number from 1 to 10000" },
    DeploymentKey {
        name: "monitor.body_bytes",
        expected: "a size from 1024 to 1073741824 bytes, as in \"4MiB\"",
    },
    DeploymentKey { name: "monitor.questions_per_second", expected: "a whole number from 1 to 1000000" },
];

/// The least length of a token, in bytes, inclusive.
const TOKEN_BYTES: usize = 16;

/// Address, access and limits of the monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// The address that the monitor listens on.
    pub listen: SocketAddr,
    /// Whether pairs and clusters are held in memory, so that clients can query them.
    pub pairs: bool,
    /// The access token. An address outside the loopback always has one.
    pub token: Option<Credential>,
    /// A second token, which only permits to read.
    pub read_token: Option<Credential>,
    /// The proxies that are believed: addresses, each with the number of its first bits that count.
    pub trusted_proxies: Vec<(IpAddr, u8)>,
    /// The header in which a trusted proxy names the user, in lower case.
    pub user_header: Option<String>,
    /// Host names that requests may use beside those of the loopback, if there is no token.
    pub hosts: Vec<String>,
    /// The path prefix under which a proxy serves the monitor; empty for none.
    pub base_path: String,
    /// The run is ready while the oldest events that are not durable yet were read at most this long ago
    /// (inclusive).
    pub ready_lag: Duration,
    /// The run is ready while the oldest unread record of a topic has waited at most this long.
    pub ready_behind: Duration,
    /// Most connections at the same time.
    pub connections: usize,
    /// Most delta streams among the connections.
    pub streams: usize,
    /// Most bytes of a request body, inclusive.
    pub body_bytes: usize,
    /// Most queries per second.
    pub questions_per_second: u32,
}

impl MonitorConfig {
    /// The monitor at this address, with defaults for all other settings.
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            listen,
            pairs: true,
            token: None,
            read_token: None,
            trusted_proxies: Vec::new(),
            user_header: None,
            hosts: Vec::new(),
            base_path: String::new(),
            ready_lag: Duration::from_secs(30),
            ready_behind: Duration::from_secs(60),
            connections: 128,
            streams: 64,
            body_bytes: 4 << 20,
            questions_per_second: 500,
        }
    }
}

/// A list of host names, each as in a URL.
fn hosts(value: &ConfigValue) -> Option<Vec<String>> {
    let is_name = |name: &&str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    value.list(|name| name.text().filter(is_name).map(str::to_owned))
}

/// A list of addresses and ranges. The bits of a range that do not count must be 0.
fn proxies(value: &ConfigValue) -> Option<Vec<(IpAddr, u8)>> {
    let range = |text: &str| {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let (most, number) = match address {
            IpAddr::V4(address) => (32, u128::from(address.to_bits()) << 96),
            IpAddr::V6(address) => (128, address.to_bits()),
        };
        let bits: u8 = bits.map_or(Some(most), |bits| bits.parse().ok())?;
        let rest = number.checked_shl(u32::from(bits)).unwrap_or(0);
        (bits <= most && rest == 0).then_some((address, bits))
    };
    value.list(|one| range(one.text()?))
}

/// The name of a header, or nothing.
#[expect(clippy::option_option, reason = "the outer one says whether the value is understood")]
fn user_header(value: &ConfigValue) -> Option<Option<String>> {
    let name = value.text()?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then(|| Some(name.to_ascii_lowercase()).filter(|name| !name.is_empty()))
}

/// A token that is typed in at `key`, or that is in the file of `key_of_file`.
fn access_token(
    settings: &mut FileSettings,
    key: &'static str,
    key_of_file: &'static str,
) -> Option<Credential> {
    let file = settings.read(key_of_file, path).filter(|path| !path.as_os_str().is_empty());
    let typed = secret(settings, key).filter(|token| !token.reveal().is_empty());
    if file.is_some() && typed.is_some() {
        let what = format!("{key} and {key_of_file} are both set");
        settings.problem(key_of_file, ProblemKind::Contradiction(what));
    }
    let named = if typed.is_some() { key } else { key_of_file };
    let token = typed.or_else(|| secret_in_file(settings, key_of_file));
    if let Some(token) = &token {
        let token = token.reveal();
        if token.len() < TOKEN_BYTES {
            let what = format!("a token has {TOKEN_BYTES} bytes or more");
            settings.problem(named, ProblemKind::Contradiction(what));
        } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let what = "a token is of visible ASCII characters, without spaces";
            settings.problem(named, ProblemKind::Contradiction(what.to_owned()));
        }
    }
    token
}

/// Reports a second token without a first one, or the same one, and a user's header that nobody may set.
fn check_access(settings: &mut FileSettings, place: &MonitorConfig) {
    let tokens = ["monitor.token", "monitor.token_file", "monitor.read_token", "monitor.read_token_file"];
    if let Some(reader) = place.read_token.as_ref().filter(|_| settings.sound(&tokens)) {
        let what = match &place.token {
            None => "nothing could be changed: it needs monitor.token or monitor.token_file",
            Some(token) if token.reveal() == reader.reveal() => "it is the same as monitor.token",
            Some(_) => "",
        };
        if !what.is_empty() {
            settings.problem("monitor.read_token", ProblemKind::Contradiction(what.to_owned()));
        }
    }
    let proxies = ["monitor.user_header", "monitor.trusted_proxies"];
    if place.user_header.is_some() && place.trusted_proxies.is_empty() && settings.sound(&proxies) {
        let what = "no one is trusted to set it: it needs monitor.trusted_proxies".to_owned();
        settings.problem("monitor.user_header", ProblemKind::Contradiction(what));
    }
}

/// A path of one or more parts, in characters that need no escapes.
fn base_path(value: &ConfigValue) -> Option<String> {
    let path = value.text()?;
    let is_part = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        !matches!(part, "" | "." | "..") && part.bytes().all(is_plain)
    };
    let is_path =
        path.is_empty() || path.strip_prefix('/').is_some_and(|parts| parts.split('/').all(is_part));
    is_path.then(|| path.to_owned())
}

/// The monitor, if `monitor.listen` is set.
pub(super) fn monitor(settings: &mut FileSettings) -> Option<MonitorConfig> {
    let address = |value: &ConfigValue| match value.text()? {
        "" => Some(None),
        written => written.parse().ok().map(Some),
    };
    let listen: Option<SocketAddr> = settings.read("monitor.listen", address).flatten();
    if listen.is_some() && !cfg!(feature = "monitor") {
        settings.problem("monitor.listen", ProblemKind::Contradiction(without_monitor()));
    }
    let token = access_token(settings, "monitor.token", "monitor.token_file");
    let default = MonitorConfig::at(SocketAddr::from(([127, 0, 0, 1], 0)));
    let place = MonitorConfig {
        pairs: settings.read("monitor.pairs", ConfigValue::boolean).unwrap_or(default.pairs),
        ready_lag: time(settings, "monitor.ready_lag", Duration::from_secs(3600))
            .unwrap_or(default.ready_lag),
        ready_behind: time(settings, "monitor.ready_behind", Duration::from_secs(3600))
            .unwrap_or(default.ready_behind),
        connections: settings
            .read("monitor.connections", |v| v.integer(1..=10_000))
            .unwrap_or(default.connections),
        streams: settings.read("monitor.streams", |v| v.integer(1..=10_000)).unwrap_or(default.streams),
        body_bytes: settings
            .read("monitor.body_bytes", |v| v.bytes(1024..=1 << 30))
            .unwrap_or(default.body_bytes),
        questions_per_second: settings
            .read("monitor.questions_per_second", |v| v.integer(1..=1_000_000))
            .unwrap_or(default.questions_per_second),
        hosts: settings.read("monitor.hosts", hosts).unwrap_or_default(),
        base_path: settings.read("monitor.base_path", base_path).unwrap_or_default(),
        token,
        read_token: access_token(settings, "monitor.read_token", "monitor.read_token_file"),
        trusted_proxies: settings.read("monitor.trusted_proxies", proxies).unwrap_or_default(),
        user_header: settings.read("monitor.user_header", user_header).flatten(),
        ..default
    };
    check_access(settings, &place);
    let is_public = listen.is_some_and(|at| !at.ip().is_loopback());
    let tokens = ["monitor.token", "monitor.token_file"];
    if is_public && place.token.is_none() && settings.sound(&tokens) {
        let what = "whoever reaches this address may ask: it needs monitor.token or monitor.token_file; or \
            listen on a loopback address, such \
                    as \"127.0.0.1:9600\"";
        settings.problem("monitor.listen", ProblemKind::Contradiction(what.to_owned()));
    }
    listen.map(|listen| MonitorConfig { listen, ..place })
}
