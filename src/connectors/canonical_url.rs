//! The canonical form of a web address, as an id: addresses of one page that are written differently are one
//! document.
//!
//! | what | canonical form |
//! |---|---|
//! | scheme | `https`; only `http` and `https` are accepted |
//! | user and password, fragment | none |
//! | host | lower case, Punycode, without `www.` (except before a number), without a dot at its end |
//! | port | none, if it is 80 or 443 |
//! | path | without `.` and `..`; `/` if it is empty. A slash at its end stays: it may be another page |
//! | query | without the parameters that count visits ([`TRACKING`]), the others in their order; none if none is left |
//! | percent-encoding | in upper case; letters, digits, `-`, `.`, `_` and `~` as they are |
//!
//! A canonical form is its own canonical form.
//!
//! Follows RFC 3986, section 6.2.2, and the URL Standard of WHATWG (parsing, hosts).

use url::{Host, Url};

use dupflow_core::doc::DocId;

/// Parameters that say how a visitor came, and not which page it is. One that ends with `_` stands for all
/// that begin with it.
const TRACKING: [&str; 25] = [
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "dclid",
    "fbclid",
    "gad_source",
    "gbraid",
    "gclid",
    "gclsrc",
    "hsa_",
    "igsh",
    "igshid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "oly_enc_id",
    "srsltid",
    "ttclid",
    "twclid",
    "utm_",
    "wbraid",
    "yclid",
];

/// The id of the page at an address, by its canonical form; `None` if it is no address of a page.
pub(crate) fn canonical_id(address: &[u8]) -> Option<DocId> {
    std::str::from_utf8(address).ok().and_then(canonical_url).as_deref().and_then(DocId::new)
}

/// The canonical form of an address; `None` if it is no address of a page.
fn canonical_url(address: &str) -> Option<String> {
    let (mut form, mut before) = (rewritten(address)?, String::new());
    // What one pass decodes may mean something to the next one, as the `u` of `%75tm_source` does. After the
    // first pass none makes the address longer.
    while form != before {
        before = std::mem::take(&mut form);
        form = rewritten(&before)?;
    }
    Some(form)
}

/// One pass over an address; `None` if it is no address of a page.
fn rewritten(address: &str) -> Option<String> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = url.host_str()?.trim_end_matches('.');
    let is_host = |rest: &&str| rest.contains('.') && matches!(Host::parse(rest), Ok(Host::Domain(_)));
    let host = host.strip_prefix("www.").filter(is_host).unwrap_or(host);
    let mut out = format!("https://{host}");
    if let Some(port) = url.port().filter(|port| !matches!(port, 80 | 443)) {
        out.push_str(&format!(":{port}"));
    }
    push_encoded(url.path(), &mut out);
    let parameters = url.query().unwrap_or_default().split('&').filter(|parameter| !is_tracking(parameter));
    for (separator, parameter) in std::iter::once('?').chain(std::iter::repeat('&')).zip(parameters) {
        out.push(separator);
        push_encoded(parameter, &mut out);
    }
    (!host.is_empty()).then_some(out)
}

/// Whether a parameter is empty, or counts visits.
fn is_tracking(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
    let is_one = |known: &&str| name == **known || known.ends_with('_') && name.starts_with(*known);
    parameter.is_empty() || TRACKING.iter().any(is_one)
}

/// Appends a part of an address, of ASCII, with its percent-encoding in canonical form.
fn push_encoded(part: &str, out: &mut String) {
    let mut rest = part;
    while let Some((before, encoded)) = rest.split_once('%') {
        out.push_str(before);
        // `from_str_radix` takes a sign too.
        let digits = encoded.get(..2).filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = &encoded[if byte.is_some() { 2 } else { 0 }..];
        match byte.map(char::from) {
            Some(plain) if plain.is_ascii_alphanumeric() || "-._~".contains(plain) => out.push(plain),
            Some(other) => out.push_str(&format!("%{:02X}", u32::from(other))),
            None => out.push('%'),
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_page_have_one_form() {
        for (canonical, written) in [
            (
                "https://example.com/a/b?q=1",
                &[
                    "http://example.com/a/b?q=1",
                    "HTTPS://WWW.Example.COM:443/a/b?q=1#part",
                    "http://example.com.:80/a/./x/../b?utm_source=n&q=1&fbclid=2",
                    "https://user:word@example.com/%61/b?&q=1&UTM_Medium=mail&",
                    "  https://example.com/a/b?q=%31\n",
                ][..],
            ),
            (
                "https://example.com/",
                &["http://www.example.com", "https://example.com/?", "https://example.com/?gclid=1"],
            ),
            ("https://example.com/a/", &["http://example.com/a/"]),
            ("https://example.com:8080/", &["http://www.example.com:8080"]),
            (
                "https://xn--bcher-kva.de/%C3%BC%2F",
                &["http://bücher.de/ü%2f", "https://xn--bcher-kva.de/%c3%bc%2F"],
            ),
            ("https://www.de/", &["http://www.de"]),
            ("https://[::1]:81/", &["http://[0:0::1]:81/"]),
            ("https://example.com/?a=1&b=2&a=3", &["http://example.com/?a=1&b=2&a=3"]),
            ("https://example.com/100%?q=%+", &["http://example.com/100%?q=%+"]),
            ("https://example.com/%+b?q=%-1", &["http://example.com/%+b?q=%-1"]),
            (
                "https://example.com/a",
                &["https://www.www.example.com/a?%75tm_x=1", "http://example.com/%%361"],
            ),
        ] {
            for address in written {
                assert_eq!(canonical_url(address).as_deref(), Some(canonical), "{address}");
            }
            assert_eq!(canonical_url(canonical).as_deref(), Some(canonical), "its own canonical form");
        }
    }

    #[test]
    fn what_is_no_address_of_a_page_has_none() {
        for address in [
            "",
            "example.com/a",
            "/a",
            "ftp://example.com/",
            "mailto:a@b.c",
            "http://",
            "http://a b/",
            "urn:uuid:1",
        ] {
            assert_eq!(canonical_url(address), None, "{address}");
        }
    }

    /// Addresses of parts that are canonical, that are not, and that become so.
    #[test]
    fn a_canonical_form_is_its_own() {
        let parts: [&[&str]; 5] = [
            &["http://", "https://user@", " HTTP://"],
            &["www.", "WWW.www.", "", "www.1.", "%77ww."],
            &["e.com", "127.1", "0x7f.1", "com", "ü.de.", "[::1]", "a..b", "1.256.1"],
            &[
                "/",
                "/%2e%2E/a",
                "/%%34%31",
                "/%%63%33",
                "/%25%32%35",
                "/%+b/%c3%BC",
                "/./%2e./x/..",
                "",
                ":443/%2541",
            ],
            &["?%75tm_x=1&b", "?&&a=%26&%67clid=1", "?%%36%31=%3d", "?%5fga=1#x", "", "?a=%+1&UTM_%=1"],
        ];
        let (mut canonical, mut all) = (0, 0);
        for n in 0..parts.iter().map(|part| part.len()).product::<usize>() {
            let mut rest = n;
            let address: String = parts
                .iter()
                .map(|part| {
                    let one = part[rest % part.len()];
                    rest /= part.len();
                    one
                })
                .collect();
            all += 1;
            if let Some(form) = canonical_url(&address) {
                canonical += 1;
                assert_eq!(canonical_url(&form).as_ref(), Some(&form), "{address}");
            }
        }
        assert!(canonical * 2 > all && canonical < all, "{canonical} of {all}");
    }

    #[test]
    fn other_parameters_stay() {
        for query in ["utmost=1", "ref=home", "gclid2=1", "id=utm_source"] {
            let address = format!("https://example.com/?{query}");
            assert_eq!(canonical_url(&address), Some(address.clone()));
        }
        assert!(TRACKING.is_sorted());
    }
}
