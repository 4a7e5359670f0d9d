//! Texts that are not read as records, by their form.

use serde::de::IgnoredAny;

/// The encoding of a text with two or four bytes per character: by its byte order mark, or by the zeros
/// between ASCII characters.
pub(super) fn wide(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [a, 0, b, 0, ..] if a.is_ascii_graphic() && (b.is_ascii_graphic() || b.is_ascii_whitespace()) => {
            Some("UTF-16LE")
        }
        [0, a, 0, b, ..] if a.is_ascii_graphic() && (b.is_ascii_graphic() || b.is_ascii_whitespace()) => {
            Some("UTF-16BE")
        }
        _ => None,
    }
}

/// A text with tags.
pub(super) enum Markup {
    /// A web page.
    Page,
    /// XML, and the name of the elements that repeat in it.
    Xml(String),
}

/// A program of Python that writes each element of the given name as an object, without its namespace: its
/// attributes, and the texts of the elements inside, the first one of each name.
pub(super) const ELEMENTS: &str = "import sys,json,xml.etree.ElementTree as E;n=lambda \
     e:e.tag.rpartition(\"}\")[2];\
     [print(json.dumps({**{n(c):\"\".join(c.itertext()) for c in reversed([*e.iter()])},**e.attrib})) or \
     e.clear() for _,e in E.iterparse(sys.stdin.buffer) if n(e)==sys.argv[1]]";

/// Whether a text begins with tags.
pub(super) fn markup(text: &[u8]) -> Option<Markup> {
    let begins = |bytes: &[u8], with: &str| {
        bytes.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
    };
    let is_tag =
        matches!(text, [b'<', b'?' | b'!', ..]) || matches!(text, [b'<', a, ..] if a.is_ascii_alphabetic());
    if !is_tag {
        return None;
    }
    // XHTML begins as XML does.
    let mut rest = text;
    loop {
        let end = match rest {
            _ if begins(rest, "<!doctype html") || begins(rest, "<html") => return Some(Markup::Page),
            [b'<', b'?', ..] => "?>",
            [b'<', b'!', b'-', b'-', ..] => "-->",
            [b'<', b'!', ..] => ">",
            _ => break,
        };
        let Some(at) = rest.windows(end.len()).position(|some| some == end.as_bytes()) else { break };
        rest = rest[at + end.len()..].trim_ascii_start();
    }
    let is_xml = begins(text, "<?xml") || matches!(rest, [b'<', a, ..] if a.is_ascii_alphabetic());
    is_xml.then(|| Markup::Xml(repeated(rest)))
}

/// The name of the outermost elements that repeat, without its namespace; `ELEMENT` if none does.
fn repeated(text: &[u8]) -> String {
    let mut depth = 0_usize;
    let mut counted: Vec<(usize, &[u8], usize)> = Vec::new();
    let tags = text.split(|byte| *byte == b'<').skip(1);
    for tag in tags {
        match tag {
            [b'/', ..] => depth = depth.saturating_sub(1),
            [a, ..] if a.is_ascii_alphabetic() || *a == b'_' => {
                let end =
                    tag.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/'));
                let name = &tag[..end.unwrap_or(tag.len())];
                let name = name.rsplit(|byte| *byte == b':').next().unwrap_or(name);
                match counted.iter().position(|(at, of, _)| (*at, *of) == (depth, name)) {
                    Some(place) => counted[place].2 += 1,
                    None if counted.len() < 1000 => counted.push((depth, name, 1)),
                    None => {}
                }
                let inside = tag.split(|byte| *byte == b'>').next().unwrap_or(tag);
                depth += usize::from(!inside.ends_with(b"/"));
            }
            _ => {}
        }
    }
    counted.retain(|(.., count)| *count > 1);
    let found = counted.iter().min_by_key(|(at, ..)| *at).map(|(_, name, _)| *name);
    let is_plain =
        |name: &&[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte));
    found.filter(is_plain).map_or_else(|| "ELEMENT".to_owned(), |name| String::from_utf8_lossy(name).into())
}

/// Whether it is JSON other than one object per line: what it is, and the command that converts it. Python
/// keeps all digits of whole numbers, which jq rounds before its version 1.7.
pub(super) fn json(text: &[u8]) -> Option<(&'static str, &'static str)> {
    const PRETTY: (&str, &str) = (
        "JSON over several lines, not an object a line",
        "python3 -c 'import sys,json,re;d=json.JSONDecoder();s=sys.stdin.buffer.read().decode(\"utf-8-sig\");\
         m=re.compile(r\"\\s*\").match;n=m(s).end();[(r:=d.raw_decode(s,n),print(json.dumps(r[0])),\
         n:=m(s,r[1]).end()) for _ in iter(lambda:n<len(s),False)]' <FILE",
    );
    match *text.first()? {
        b'{' => {
            let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if line.len() == text.len() {
                return None;
            }
            if line.trim_ascii() == b"{" {
                return Some(PRETTY);
            }
            let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
            let is_whole = matches!(values.next(), Some(Ok(_)));
            (is_whole && values.byte_offset() > line.len()).then_some(PRETTY)
        }
        _ => None,
    }
}
