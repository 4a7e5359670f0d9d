//! Which records are pages, and what their bodies are.

use super::*;

#[test]
fn pages_are_the_bodies_of_responses() {
    let page = "<html><p>Grüße 世界</html>".as_bytes();
    let chunk = |bytes: &[u8]| [format!("{:X};x=y\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let chunked = [chunk(&page[..5]), chunk(&page[5..]), b"0\r\n\r\n".to_vec()].concat();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(page).unwrap();
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(page).unwrap();
    let brotli = brotli_stored(page);
    let chunked_gzip = [chunk(&gzip(page)), b"0\r\n\r\n".to_vec()].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("", page.to_vec()),
        ("Transfer-Encoding: chunked\r\n", chunked),
        ("Transfer-Encoding: chunked\r\n", page.to_vec()),
        ("Content-Encoding: gzip\r\n", gzip(page)),
        ("Content-Encoding: x-gzip\r\n", page.to_vec()),
        ("content-encoding: GZIP\r\nTransfer-Encoding: chunked\r\n", chunked_gzip),
        ("Content-Encoding: deflate\r\n", zlib.finish().unwrap()),
        ("Content-Encoding: deflate\r\n", deflate.finish().unwrap()),
        ("Content-Encoding: deflate\r\n", page.to_vec()),
        ("Content-Encoding: br\r\n", brotli),
        ("Content-Encoding: br\r\n", page.to_vec()),
        ("Content-Encoding: zstd\r\n", zstd_frame(page, &[])),
        ("Content-Encoding: zstd, gzip\r\n", gzip(&zstd_frame(page, &[]))),
        ("Content-Encoding: identity\r\n", page.to_vec()),
    ];
    for (head, body) in cases {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n{head}\r\n");
        let mut warc = Warc::new(
            Box::new(Cursor::new(response(&[http.as_bytes(), &body].concat()))),
            &columns(&["url", "http.content-type", "nothing"]),
            WarcId::Uri,
        );
        let mut row = FileRow::default();
        assert_eq!(warc.next(&mut row), Ok(NextRow::Row), "{head:?}");
        assert_eq!(row.text, RowText::Is(page.to_vec()), "{head:?}: {row:?}");
        assert_eq!(row.id.as_deref(), Some(&b"https://example.org/"[..]));
        assert_eq!(row.fields, [&b"https://example.org/"[..], b"text/html; charset=utf-8", b""]);
        assert_eq!((warc.next(&mut row), warc.cut()), (Ok(NextRow::End), 0));
    }
}

/// A brotli stream of one stored block (RFC 7932, 9.2).
fn brotli_stored(bytes: &[u8]) -> Vec<u8> {
    // Bits: window of 16 (0), not last (0), four nibbles of length (00), length - 1 (16 bits), stored (1).
    // Then whole bytes follow.
    let header = ((bytes.len() - 1) << 4) | (1 << 20);
    let mut stream = header.to_le_bytes()[..3].to_vec();
    stream.extend_from_slice(bytes);
    // The last block, empty.
    stream.push(0b11);
    stream
}

#[test]
fn bodies_that_end_early_are_read_and_counted() {
    let page = texts(200, 9).join(" ");
    let page = format!("<html>{page}");
    let http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n".to_vec();
    let body = gzip(page.as_bytes());
    let early = response(&[http, body[..body.len() / 2].to_vec()].concat());
    let chunks = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: \
        chunked\r\n\r\n5\r\n<html\r\n9\r\n>12"
        .to_vec();
    let marked = conversion(1, "cut here").replace("WARC-Type", "WARC-Truncated: length\r\nWARC-Type");
    let mut warc = warc([early, response(&chunks), marked, conversion(2, "whole")].concat());
    let mut row = FileRow::default();
    let mut texts = Vec::new();
    while warc.next(&mut row) == Ok(NextRow::Row) {
        let RowText::Is(text) = std::mem::take(&mut row.text) else { panic!("{row:?}") };
        texts.push(String::from_utf8_lossy(&text).into_owned());
    }
    assert_eq!((texts.len(), warc.cut()), (4, 3));
    assert!(page.starts_with(texts[0].trim_end_matches('\u{fffd}')) && texts[0].len() > page.len() / 4);
    assert_eq!(texts[1..], ["<html>12", "cut here", "whole"]);
}

#[test]
fn other_records_are_skipped_with_a_reason() {
    let http = |head: &str, body: &str| response(format!("HTTP/1.1 {head}\r\n\r\n{body}").as_bytes());
    let identified = |as_what: &str| {
        http("200 OK\r\nContent-Type: text/html", "x")
            .replace("WARC-Type", &format!("WARC-Identified-Payload-Type: {as_what}\r\nWARC-Type"))
    };
    let about = |address: &str| {
        let head = format!("WARC-Target-URI: {address}\r\nContent-Type: text/plain\r\n");
        record("resource", &head, b"of the crawl")
    };
    let cases = [
        (record("warcinfo", "", b"software: x"), "warcinfo"),
        (record("request", "", b"GET / HTTP/1.1\r\n\r\n"), "request"),
        (record("metadata", "", b""), "metadata"),
        (record("Revisit", "", b""), "revisit"),
        (record("continuation", "", b""), "continuation"),
        (record("x-new", "", b""), "kind"),
        (http("404 Not Found\r\nContent-Type: text/html", "<html>"), "status"),
        (http("200 OK\r\nContent-Type: application/pdf", "%PDF"), "content_type"),
        (http("200 OK", "no type"), "content_type"),
        (http("0 No Content\r\nContent-Type: text/html", "<html>"), "status"),
        (http("20 OK\r\nContent-Type: text/html", "<html>"), "status"),
        (http("999999 OK\r\nContent-Type: text/html", "<html>"), "status"),
        (response(b"HTTP/1.1 200\r\nContent-Type: text/plain\r\n\r\n\x00\x01\xff"), "content_type"),
        (about("metadata://gnu.org/software/wget/warc/wget.log"), "metadata"),
        (about("<metadata://gnu.org/software/wget/warc/MANIFEST.txt>"), "metadata"),
        (about("urn:text:https://example.org/"), "metadata"),
        (about("urn:pageinfo:a"), "metadata"),
        (about("urn:new:https://example.org/"), "metadata"),
        (response(b""), "empty"),
        (response(b"\r\n\r\n"), "empty"),
        (identified("application/pdf"), "content_type"),
        (record("response", "Content-Type: text/dns\r\n", b"20240101"), "content_type"),
        (record("resource", "Content-Type: image/png\r\n", b"\x89PNG"), "content_type"),
    ];
    for (bytes, expected) in cases {
        let found = read(bytes.clone());
        assert_eq!(
            (found.skipped.as_slice(), found.rows.len(), found.damages.len()),
            (&[expected][..], 0, 0)
        );
    }
    let documents = [
        (http("200 OK\r\nContent-Type: text/plain", "plain"), "plain"),
        (http("200", "\n<!-- a --><HTML>sniffed"), "\n<!-- a --><HTML>sniffed"),
        (identified("text/plain"), "x"),
        (http("200 OK\r\nContent-Type: application/xhtml+xml", "<p>x"), "<!doctype html><p>x"),
        (record("resource", "Content-Type: text/html\r\n", b"<html>r"), "<html>r"),
        (record("resource", "Content-Type: text/plain;charset=koi8-r\r\n", b"\xf0\xf2"), "ПР"),
        (record("conversion", "", b"untyped"), "untyped"),
        (about("urn:isbn:123"), "of the crawl"),
        (http("OK\r\nContent-Type: text/plain", "no number"), "no number"),
        (response(b"http/1.1 200 OK\nContent-Type: text/plain\n\nlower"), "lower"),
        (response(b"\r\nHTTP/1.1 200 OK\nContent-Type: text/plain\n\nafter a line end"), "after a line end"),
        (
            response(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\nContent-Type: text/plain\n\nsecond"),
            "second",
        ),
        (
            response(b"HTTP/1.1 200\nContent-Type: text/plain\n\nd\xe9j\xe0 vu, d\xe9cid\xe9"),
            "déjà vu, décidé",
        ),
        (response(b"HTTP/1.1 200\nContent-Type: text/plain\n\n\xff\xfeh\0i\0"), "hi"),
    ];
    for (bytes, expected) in documents {
        let found = read(bytes);
        assert_eq!(found.texts(), [expected], "{found:?}");
    }
    for bad in [
        response(b"no message"),
        http("200 OK\r\nContent-Type: text/html\r\nContent-Encoding: lzma", "\u{1}\u{2}"),
    ] {
        let found = read([bad, conversion(1, "next")].concat());
        assert_eq!((found.texts(), found.damages.len()), (vec!["next"], 1));
    }
}

/// Heads that name no valid type, or several; the last valid one counts, else the first bytes.
#[test]
fn types_are_those_that_browsers_find() {
    for (types, is_page) in [
        ("Content-Type: text/html, text/html; charset=utf-8", true),
        ("Content-Type: charset=utf-8", true),
        ("Content-Type: html", true),
        ("Content-Type: \"text/html\"", true),
        ("Content-Type: */*", true),
        ("Content-Type: application/octet-stream\r\nContent-Type: text/html", true),
        ("Content-Type: text/html\r\nContent-Type: application/octet-stream", false),
        ("Content-Type: application/pdf; a=\",text/html\"", false),
    ] {
        let found = read(response(format!("HTTP/1.1 200 OK\r\n{types}\r\n\r\n<html>a page").as_bytes()));
        assert_eq!((found.rows.len(), found.damages.len()), (usize::from(is_page), 0), "{types}");
    }
    let shift_jis = b"HTTP/1.1 200\nContent-Type: text/html; charset=shift_jis, text/html\n\n<html>\x93\xfa";
    assert_eq!(read(response(shift_jis)).texts(), ["<html>日"]);
}

/// Bodies that do not have the encoding of their heads, and what follows an encoded one.
#[test]
fn bodies_that_are_not_encoded_are_used_unchanged() {
    let text = "the quick brown fox jumps over the lazy dog while seven wizards quietly bake bread";
    let page = format!("<!doctype html><p>café {text}");
    let latin: Vec<u8> = page.chars().map(|one| one as u8).collect();
    let of = |kind: &str, encoding: &str, body: &[u8]| {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{encoding}\r\n\r\n");
        read(response(&[http.as_bytes(), body].concat()))
    };
    for encoding in ["br", "deflate", "gzip", "zstd", "utf-8", "aws-chunked", "zip", "br, x"] {
        let encoding = format!("Content-Encoding: {encoding}");
        for (kind, body, read) in [
            ("text/html; charset=iso-8859-1", &latin[..], &page[..]),
            ("text/html", page.as_bytes(), &page),
            ("text/html", &[b"\xef\xbb\xbf", page.as_bytes()].concat(), &page),
            ("text/plain", text.as_bytes(), text),
            ("text/plain", b"short", "short"),
        ] {
            let found = of(kind, &encoding, body);
            assert_eq!((found.texts(), found.cut), (vec![read], 0), "{encoding}: {found:?}");
        }
    }
    let packed = gzip(page.as_bytes());
    let wrong_sum = [&packed[..packed.len() - 8], &[1, 2, 3, 4, 5, 6, 7, 8]].concat();
    for (encoding, body, cut) in [
        ("gzip, aws-chunked", packed.clone(), 0),
        ("gzip", [&packed[..], b"\r\n\r\n"].concat(), 0),
        ("gzip", [&packed[..], &[0; 16]].concat(), 0),
        ("gzip", [&packed[..], b"<!-- served from cache 7 -->"].concat(), 0),
        ("gzip", wrong_sum, 1),
        ("zstd", [&zstd_frame(page.as_bytes(), &[])[..], b"<!-- served from cache 7 -->"].concat(), 0),
    ] {
        let found = of("text/html", &format!("Content-Encoding: {encoding}"), &body);
        assert_eq!((found.texts(), found.cut), (vec![&*page], cut), "{encoding}: {found:?}");
    }
    for (body, read, cut) in [
        ("2024\nA text that begins with a number", "2024\nA text that begins with a number", 0),
        ("5\nhello, and more", "5\nhello, and more", 0),
        ("0\nnothing", "0\nnothing", 0),
        ("5\r\nhello\r\n0\r\n\r\n", "hello", 0),
        ("0\r\n\r\n", "", 0),
        ("5\r\nhello\r\n0\r\nX: y\r\n\r\n", "hello", 0),
        // They were decoded before.
        ("0\nUser-agent: bot\nDisallow: /x\n", "0\nUser-agent: bot\nDisallow: /x\n", 0),
        ("4d2\n<p>a line of a text", "4d2\n<p>a line of a text", 0),
        ("1\r\n2\r\n3\r\n4\r\n", "1\r\n2\r\n3\r\n4\r\n", 0),
        ("1\n2\n0\n5\n", "1\n2\n0\n5\n", 0),
        ("+5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", 0),
    ] {
        let found = of("text/plain", "Transfer-Encoding: chunked", body.as_bytes());
        assert_eq!((found.texts(), found.cut), (vec![read], cut), "{body:?}");
    }
    for (body, read) in [
        ("1f40\r\n<html>the first chunk is cut", "<html>the first chunk is cut"),
        ("6\r\n<html>\r\n9\r\nand", "<html>and"),
    ] {
        let cut_page = of("text/html", "Transfer-Encoding: chunked", body.as_bytes());
        assert_eq!((cut_page.texts(), cut_page.cut), (vec![read], 1));
    }
}

/// Otherwise one such page would make a file one that has not been read as a whole.
#[test]
fn damage_of_one_record_hides_no_other() {
    let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: deflate\r\n\r\n";
    let undecodable = response(&[http.as_bytes(), b"\x78\x9c\xff\xff\0\x01\x02"].concat());
    let first = conversion(1, "a record that is not stored as a whole");
    let cut = gzip(&first[..first.len() - 20]);
    for bytes in [gzip(&undecodable), cut] {
        let found = read([bytes, gzip(&conversion(2, "next"))].concat());
        let [damage] = &found.damages[..] else { panic!("{found:?}") };
        assert_eq!((damage.reason, damage.place), (BadRecord::Unreadable, RecordPlace::Byte(0)));
        assert!(!damage.ends);
        assert_eq!(found.texts(), ["next"]);
    }
}

#[test]
fn the_first_segment_of_a_record_is_a_beginning() {
    let first =
        conversion(1, "the first segment").replace("WARC-Type", "WARC-Segment-Number: 1\r\nWARC-Type");
    let found = read([first, record("continuation", "WARC-Segment-Number: 2\r\n", b"and more")].concat());
    assert_eq!((found.texts(), found.cut), (vec!["the first segment"], 1));
    assert_eq!(found.skipped, ["continuation"]);
}
