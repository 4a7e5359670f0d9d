//! Proxies in front of the monitor: which of them are trusted, and what they say of a request.
//!
//! A trusted proxy says in `X-Forwarded-Proto` whether the client's connection is encrypted, and in the
//! configured header the name of the user. The same headers from any other address are ignored and counted:
//! any client can send them. A proxy has to remove them from what its clients send.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName};

/// Set by proxies: the protocol that the client used.
const PROTOCOL: &str = "x-forwarded-proto";

/// Maximum length of a user's name in bytes, inclusive.
const USER_BYTES: usize = 256;

/// The addresses with the same first bits as one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// An address of the range.
    pub address: IpAddr,
    /// How many bits they share; those of a single address are 32, or 128 of IPv6.
    pub bits: u8,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies {
    trusted: Vec<AddressRange>,
    user_header: Option<HeaderName>,
}

/// What a request says of its client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestClient {
    /// The user, as a trusted proxy names it.
    pub(crate) user: Option<String>,
    /// Whether the client's connection is encrypted, as a trusted proxy says.
    pub(crate) is_encrypted: bool,
    /// Whether it has headers that only a trusted proxy may set.
    pub(crate) is_ignored: bool,
}

impl AddressRange {
    fn contains(&self, address: IpAddr) -> bool {
        // An IPv4 client of an IPv6 socket has a mapped address.
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(range), IpAddr::V4(one)) => {
                let other = range.to_bits() ^ one.to_bits();
                other.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(range), IpAddr::V6(one)) => {
                let other = range.to_bits() ^ one.to_bits();
                other.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

impl TrustedProxies {
    pub(crate) fn new(trusted: &[AddressRange], user_header: Option<HeaderName>) -> Self {
        Self { trusted: trusted.to_vec(), user_header }
    }

    /// Whether requests are logged with their users.
    pub(crate) fn names_users(&self) -> bool {
        self.user_header.is_some()
    }

    /// What a request from this address says of its client.
    pub(crate) fn client(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> RequestClient {
        let is_trusted = peer.is_some_and(|peer| self.trusted.iter().any(|range| range.contains(peer)));
        if !is_trusted {
            let user_header = self.user_header.as_ref();
            let is_ignored =
                headers.contains_key(PROTOCOL) || user_header.is_some_and(|name| headers.contains_key(name));
            return RequestClient { is_ignored, ..RequestClient::default() };
        }
        // Of several values, a client may have sent all but one.
        let only = |name: &str| {
            let mut values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            values.next().filter(|_| values.next().is_none())
        };
        let user = self.user_header.as_ref().and_then(|name| only(name.as_str()));
        let user = user.map(str::trim).filter(|user| (1..=USER_BYTES).contains(&user.len()));
        RequestClient {
            user: user.map(str::to_owned),
            is_encrypted: only(PROTOCOL)
                .is_some_and(|protocol| protocol.trim().eq_ignore_ascii_case("https")),
            is_ignored: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn ranges_are_by_their_first_bits() {
        let contains = |address: &str, bits, one: &str| {
            AddressRange { address: address.parse().unwrap(), bits }.contains(one.parse().unwrap())
        };
        assert!(contains("10.1.2.3", 32, "10.1.2.3") && !contains("10.1.2.3", 32, "10.1.2.2"));
        assert!(contains("10.1.0.0", 16, "10.1.255.255") && !contains("10.1.0.0", 16, "10.2.0.0"));
        assert!(contains("0.0.0.0", 0, "203.0.113.9") && !contains("0.0.0.0", 0, "2001:db8::1"));
        assert!(contains("127.0.0.1", 32, "::ffff:127.0.0.1"));
        assert!(contains("2001:db8::", 32, "2001:db8:ffff::1") && !contains("2001:db8::", 32, "2001:db9::"));
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let range = AddressRange { address: "127.0.0.1".parse().unwrap(), bits: 32 };
        let proxies = TrustedProxies::new(&[range], Some(HeaderName::from_static("x-user")));
        let given = headers(&[("x-forwarded-proto", "https"), ("x-user", " Ada ")]);
        let client = |peer: &str, sent: &HeaderMap| proxies.client(Some(peer.parse().unwrap()), sent);
        let believed = RequestClient { user: Some("Ada".to_owned()), is_encrypted: true, is_ignored: false };
        assert_eq!(client("127.0.0.1", &given), believed);
        let ignored = RequestClient { is_ignored: true, ..RequestClient::default() };
        assert_eq!(client("127.0.0.2", &given), ignored);
        assert_eq!(proxies.client(None, &given), ignored);
        assert_eq!(client("127.0.0.2", &headers(&[("accept", "x")])), RequestClient::default());
        let twice = headers(&[("x-user", "Eve"), ("x-user", "Ada"), ("x-forwarded-proto", "http, https")]);
        assert_eq!(client("127.0.0.1", &twice), RequestClient::default());
    }
}
