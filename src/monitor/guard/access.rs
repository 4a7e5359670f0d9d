//! Access control: which requests are answered.
//!
//! | the monitor listens on | required of a request |
//! |---|---|
//! | a loopback address, no token | `Host` is a name of the loopback, or in [`Endpoint::hosts`](crate::Entry) |
//! | any address, with a token | the token: `Authorization: Bearer TOKEN`, or the cookie of `/login` |
//!
//! A second token only permits to read: a request that changes something is refused. A question
//! (`POST /similar`) changes nothing.
//!
//! `/health` needs neither. The check of `Host` stops DNS rebinding, where a page of another site reaches the
//! monitor by a name of its own. With a token `Host` may be anything, since such a page has no token.
//!
//! A request other than GET and HEAD is refused if `Sec-Fetch-Site`, which browsers set, says that a page of
//! another site sends it. Browsers do not set it for plain HTTP to other than loopback addresses: so without
//! a token `Origin`, which they always set, has to name the host of the request, or an accepted one. Tokens
//! are compared by their SHA-256 hashes in constant time.

use axum::http::{HeaderMap, Method, StatusCode, header};
use sha2::{Digest, Sha256};

use super::refusals::RefusalReason;

/// The name of the cookie.
pub(crate) const COOKIE: &str = "dupflow";

/// Minimum length of a token, in bytes.
pub const TOKEN_BYTES: usize = 16;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Whether the monitor listens on a loopback address.
    pub(crate) is_loopback: bool,
    /// The hashes of the tokens, the one for reading last; empty if no token is required.
    tokens: Vec<TokenHashes>,
    /// Accepted values of `Host` besides the names of the loopback, in lower case.
    hosts: Vec<String>,
    /// The path of the page, and of its cookies.
    home: String,
}

/// SHA-256 hashes; the token itself is not stored.
#[derive(Clone, Debug)]
struct TokenHashes {
    token: [u8; 32],
    /// Hash of the cookie's value.
    cookie: [u8; 32],
    /// Whether it only permits to read.
    only_reads: bool,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) reason: RefusalReason,
    pub(crate) status: StatusCode,
    pub(crate) why: &'static str,
}

impl Access {
    pub(crate) fn new(is_loopback: bool, token: Option<&str>) -> Self {
        let tokens = token.map(|token| TokenHashes::new(token, false)).into_iter().collect();
        Self { is_loopback, tokens, hosts: Vec::new(), home: "/".to_owned() }
    }

    /// Accepts this token too, for requests that change nothing.
    pub(crate) fn with_reader(mut self, token: Option<&str>) -> Self {
        self.tokens.extend(token.map(|token| TokenHashes::new(token, true)));
        self
    }

    /// Accepts these names in `Host` too, and serves the page under this base path.
    pub(crate) fn with_proxy(self, hosts: &[String], base_path: &str) -> Self {
        let hosts = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Self { hosts, home: format!("{base_path}/"), ..self }
    }

    /// Whether the value of `Host` is accepted.
    fn accepts_host(&self, host: &[u8]) -> bool {
        let name = std::str::from_utf8(host).ok().map(|host| without_port(host).to_ascii_lowercase());
        is_local(host) || name.is_some_and(|name| self.hosts.contains(&name))
    }

    /// Whether `Origin`, if it is there, names the host of the request or an accepted one.
    fn accepts_origin(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).map(|host| host.as_bytes());
        headers.get_all(header::ORIGIN).iter().all(|origin| {
            let origin = origin.to_str().unwrap_or_default();
            let Some((_, authority)) = origin.split_once("://") else { return false };
            host.is_some_and(|host| host.eq_ignore_ascii_case(authority.as_bytes()))
                || self.hosts.contains(&without_port(authority).to_ascii_lowercase())
        })
    }

    /// The path of the page.
    pub(crate) fn home(&self) -> &str {
        &self.home
    }

    pub(crate) fn needs_token(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Whether a request may be answered.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Denied> {
        let refused = |reason, status, why| Err(Denied { reason, status, why });
        let is_guarded = self.needs_token() || !self.is_loopback;
        if !is_guarded && !headers.get_all(header::HOST).iter().all(|host| self.accepts_host(host.as_bytes()))
        {
            return refused(
                RefusalReason::Host,
                StatusCode::FORBIDDEN,
                "the host is not a name of the loopback, such as localhost or 127.0.0.1, and not in \
                    monitor.hosts",
            );
        }
        let is_read = [Method::GET, Method::HEAD].contains(method);
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        let is_foreign = !matches!(site, None | Some(b"same-origin" | b"none"))
            || (!is_guarded && !self.accepts_origin(headers));
        if !is_read && is_foreign {
            return refused(
                RefusalReason::Site,
                StatusCode::FORBIDDEN,
                "the request comes from a page of another site",
            );
        }
        if is_open(path) || !self.needs_token() {
            return Ok(());
        }
        let mut presented = self.tokens.iter().filter(|token| token.is_presented(headers)).peekable();
        if presented.peek().is_some() {
            // Each of several credentials counts.
            return if is_read || path == "/similar" || presented.any(|token| !token.only_reads) {
                Ok(())
            } else {
                refused(
                    RefusalReason::ReadOnly,
                    StatusCode::FORBIDDEN,
                    "the token only permits to read (monitor.read_token), and this would change something",
                )
            };
        }
        refused(
            RefusalReason::Token,
            StatusCode::UNAUTHORIZED,
            "a token is needed: Authorization: Bearer TOKEN, or the cookie of /login",
        )
    }

    /// The `Set-Cookie` value for a request that presents a token; `None` for a wrong one. `is_encrypted`:
    /// browsers are to send it over encrypted connections only.
    pub(crate) fn login(&self, token: &str, is_encrypted: bool) -> Option<String> {
        let hash = hash(token);
        let is_known = |known: &TokenHashes| equal_in_constant_time(&known.token, &hash);
        self.tokens.iter().any(is_known).then(|| self.cookie(&cookie_of(token), is_encrypted))
    }

    /// The `Set-Cookie` value that removes the cookie.
    pub(crate) fn logout(&self, is_encrypted: bool) -> String {
        self.cookie("", is_encrypted) + "; Max-Age=0"
    }

    fn cookie(&self, value: &str, is_encrypted: bool) -> String {
        let secure = if is_encrypted { "; Secure" } else { "" };
        format!("{COOKIE}={value}; SameSite=Strict; HttpOnly{secure}; Path={}", self.home)
    }
}

/// The host of an authority.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => authority,
    }
}

/// Whether a path needs no token.
pub(crate) fn is_open(path: &str) -> bool {
    path == "/health" || path == "/login" || path == "/logout"
}

impl TokenHashes {
    fn new(token: &str, only_reads: bool) -> Self {
        Self { token: hash(token), cookie: hash(&cookie_of(token)), only_reads }
    }

    fn is_presented(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let bearer = text(header::AUTHORIZATION).filter_map(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        let cookies = text(header::COOKIE).flat_map(|value| value.split(';'));
        let mut cookies = cookies.filter_map(|one| one.trim().strip_prefix(COOKIE)?.strip_prefix('='));
        bearer.into_iter().any(|token| equal_in_constant_time(&self.token, &hash(token)))
            || cookies.any(|value| equal_in_constant_time(&self.cookie, &hash(value)))
    }
}

/// The value of the cookie: it grants the same access as the token and does not reveal it.
fn cookie_of(token: &str) -> String {
    Sha256::digest(format!("dupflow monitor cookie\0{token}"))
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Compares in constant time.
fn equal_in_constant_time(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |all, (x, y)| all | (x ^ y)) == 0
}

/// Whether the value of `Host` is a name of the loopback, with or without a port.
fn is_local(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => {
            return rest.split_once(']').is_some_and(|(ip, port)| {
                is_port(port) && ip.parse::<std::net::Ipv6Addr>().is_ok_and(|ip| ip.is_loopback())
            });
        }
        None => match host.split_once(':') {
            Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
            Some(_) => return false,
            None => host,
        },
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Headers<'h> = &'h [(&'static str, &'h str)];

    const TOKEN: &str = "correct horse battery staple";

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn status(access: &Access, method: &Method, path: &str, headers_given: &[(&'static str, &str)]) -> u16 {
        access
            .check(method, path, &headers(headers_given))
            .map_or_else(|refused| refused.status.as_u16(), |()| 200)
    }

    #[test]
    fn loopback_hosts_are_accepted() {
        for local in ["localhost", "LocalHost:9600", "127.0.0.1", "127.8.0.1:1", "[::1]", "[::1]:9600"] {
            assert!(is_local(local.as_bytes()), "{local}");
        }
        for other in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:1",
            "::1",
            "localhost:x",
            "[::1]x",
            "127.0.0.1@evil",
        ] {
            assert!(!is_local(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn on_loopback_other_names_and_other_sites_are_refused() {
        let access = Access::new(true, None);
        let get = |headers_given: Headers<'_>| status(&access, &Method::GET, "/status", headers_given);
        assert_eq!((get(&[("host", "localhost:1")]), get(&[])), (200, 200));
        assert_eq!(get(&[("host", "rebound.example")]), 403);
        assert_eq!(
            get(&[("host", "localhost"), ("sec-fetch-site", "cross-site")]),
            200,
            "reads change nothing"
        );
        let post = |site: &str| status(&access, &Method::POST, "/similar", &[("sec-fetch-site", site)]);
        assert_eq!(
            (post("same-origin"), post("none"), post("cross-site"), post("same-site")),
            (200, 200, 403, 403)
        );
        assert_eq!(status(&access, &Method::POST, "/similar", &[]), 200, "no browser says nothing");
    }

    #[test]
    fn a_page_of_another_origin_changes_nothing() {
        let hosts = ["dupflow.lan".to_owned()];
        let access = Access::new(true, None).with_proxy(&hosts, "");
        let post = |host: &str, origin: &str| {
            status(&access, &Method::POST, "/watch", &[("host", host), ("origin", origin)])
        };
        for (host, origin) in [
            ("dupflow.lan", "http://dupflow.lan"),
            ("dupflow.lan:80", "https://DUPFLOW.lan"),
            ("localhost:9600", "http://localhost:9600"),
            ("127.0.0.1:9600", "https://dupflow.lan"),
        ] {
            assert_eq!(post(host, origin), 200, "{host} {origin}");
        }
        for (host, origin) in [
            ("dupflow.lan", "http://evil.example"),
            ("dupflow.lan", "null"),
            ("dupflow.lan", "http://dupflow.lan.evil"),
            ("localhost:9600", "http://localhost:3000"),
            ("localhost:9600", ""),
        ] {
            assert_eq!(post(host, origin), 403, "{host} {origin}");
        }
        let guarded = Access::new(true, Some(TOKEN));
        let bearer = format!("Bearer {TOKEN}");
        let given = [("host", "here"), ("origin", "https://public.example"), ("authorization", &*bearer)];
        assert_eq!(status(&guarded, &Method::POST, "/similar", &given), 200, "such a page has no token");
    }

    #[test]
    fn configured_hosts_are_accepted_and_a_token_allows_any_host() {
        let hosts = ["dupflow.example".to_owned(), "Other.example".to_owned()];
        let access = Access::new(true, None).with_proxy(&hosts, "/near");
        let get = |by: &Access, host: &str, headers_given: Headers<'_>| {
            status(by, &Method::GET, "/status", &[&[("host", host)], headers_given].concat())
        };
        for host in ["dupflow.example", "DUPFLOW.example:443", "other.EXAMPLE", "localhost:1"] {
            assert_eq!(get(&access, host, &[]), 200, "{host}");
        }
        for host in ["example", "x.dupflow.example", "dupflow.example.evil", "dupflow.example:x", ""] {
            assert_eq!(get(&access, host, &[]), 403, "{host}");
        }
        let guarded = Access::new(true, Some(TOKEN)).with_proxy(&[], "/near");
        let bearer = format!("Bearer {TOKEN}");
        let any = "any.example";
        assert_eq!(get(&guarded, any, &[]), 401);
        assert_eq!(get(&guarded, any, &[("authorization", &bearer)]), 200);
        assert!(guarded.login(TOKEN, false).unwrap().ends_with("; Path=/near/"));
    }

    #[test]
    fn token_or_cookie_grants_access() {
        let access = Access::new(false, Some(TOKEN));
        let get = |path: &str, headers_given: Headers<'_>| status(&access, &Method::GET, path, headers_given);
        for path in
            ["/", "/metrics", "/ready", "/status", "/openapi.json", "/nowhere", "/health/", "//health"]
        {
            assert_eq!(get(path, &[("host", "any.example")]), 401, "{path}");
        }
        assert_eq!(get("/health", &[]), 200);
        let bearer = |token: &str| get("/status", &[("authorization", &format!("Bearer {token}"))]);
        assert_eq!((bearer(TOKEN), bearer("correct horse battery stapl"), bearer("")), (200, 401, 401));
        assert_eq!(get("/status", &[("authorization", &format!("Basic {TOKEN}"))]), 401);

        let set = access.login(TOKEN, false).unwrap();
        assert!(set.ends_with("; SameSite=Strict; HttpOnly; Path=/") && !set.contains(TOKEN), "{set}");
        let cookie = set.split(';').next().unwrap();
        assert_eq!(get("/status", &[("cookie", &format!("a=b; {cookie}"))]), 200);
        assert_eq!(get("/status", &[("cookie", &format!("{COOKIE}={TOKEN}"))]), 401);
        assert_eq!(access.login("wrong", false), None);
        assert_eq!(Access::new(true, None).login("", false), None);
    }

    #[test]
    fn a_token_for_reading_changes_nothing() {
        const READER: &str = "only reads, and is long";
        let access = Access::new(true, Some(TOKEN)).with_reader(Some(READER));
        let ask = |method: Method, path: &str, token: &str| {
            status(&access, &method, path, &[("authorization", &format!("Bearer {token}"))])
        };
        for (path, method, reader) in [
            ("/pairs", Method::GET, 200),
            ("/", Method::HEAD, 200),
            ("/similar", Method::POST, 200),
            ("/watch", Method::POST, 403),
            ("/watch", Method::DELETE, 403),
            ("/similar/", Method::POST, 403),
        ] {
            assert_eq!(ask(method.clone(), path, READER), reader, "{method} {path}");
            assert_eq!(ask(method.clone(), path, TOKEN), 200, "{method} {path}");
            assert_eq!(ask(method, path, "neither of the two tokens"), 401);
        }
        let cookie = access.login(READER, true).unwrap();
        assert!(cookie.ends_with("; SameSite=Strict; HttpOnly; Secure; Path=/"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap();
        let post = |given: Headers<'_>| status(&access, &Method::POST, "/watch", given);
        assert_eq!(post(&[("cookie", cookie)]), 403);
        assert_eq!(post(&[("cookie", cookie), ("authorization", &format!("Bearer {TOKEN}"))]), 200);
        assert_eq!(access.logout(true), "dupflow=; SameSite=Strict; HttpOnly; Secure; Path=/; Max-Age=0");
    }
}
