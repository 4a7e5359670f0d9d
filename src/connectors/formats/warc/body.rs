//! What the bytes of a body show: whether they are chunked, and whether they are a text.

use super::super::bad_record::MAX_RECORD_BYTES;

/// First bytes of a body that show whether it is a text, as in the MIME Sniffing Standard of the WHATWG.
const SNIFFED: usize = 1445;

/// Whether the first bytes include one that no text has. A text with a byte order mark may have any.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    let first = &bytes[..bytes.len().min(SNIFFED)];
    let is_marked =
        [&b"\xfe\xff"[..], b"\xff\xfe", b"\xef\xbb\xbf"].iter().any(|mark| first.starts_with(mark));
    !is_marked && first.iter().any(|byte| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

/// Removes the sizes of chunks; also returns whether a chunk is missing. `None` if the body is not chunked:
/// archives also store it without them, and a text may begin with a line of hexadecimal digits. So the chunks
/// have to add up. Only of what is a page or compressed, with lines as they are sent, the end may be missing.
pub(super) fn chunked(body: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (mut bytes, mut rest) = (Vec::new(), body);
    for number in 0.. {
        let is_first = number == 0;
        let (size, after) = match chunk_size(rest) {
            Some((size, _)) if is_first && size > MAX_RECORD_BYTES => return None,
            Some(found) => found,
            None if number < 2 => return None,
            None => break,
        };
        if size == 0 {
            let is_end = after.trim_ascii().is_empty()
                || !is_first && (is_trailer(after) || is_surely_chunked(body, &bytes));
            return is_end.then_some((bytes, false));
        }
        let (chunk, after) = after.split_at(size.min(after.len()));
        bytes.extend_from_slice(chunk);
        rest = match line_end(after) {
            Some(length) => &after[length..],
            None if is_first && !after.is_empty() => return None,
            None => break,
        };
        if rest.is_empty() {
            break;
        }
    }
    is_surely_chunked(body, &bytes).then_some((bytes, true))
}

/// Whether the first line of a body is the size of a chunk in any case: it ends as it is sent, and what
/// follows is a page or compressed.
fn is_surely_chunked(body: &[u8], bytes: &[u8]) -> bool {
    let line = body.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    line.ends_with(b"\r\n") && (bytes.trim_ascii_start().starts_with(b"<") || is_binary(bytes))
}

/// The size that the line here states, and the bytes after the line.
fn chunk_size(body: &[u8]) -> Option<(usize, &[u8])> {
    let length = body.iter().take(4096).position(|byte| *byte == b'\n');
    let (line, rest) = length.map_or((body, &body[body.len()..]), |at| (&body[..at], &body[at + 1..]));
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_size = (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let size = is_size.then(|| std::str::from_utf8(digits).ok()).flatten()?;
    let size = usize::from_str_radix(size, 16).ok()?;
    // Only the last line, of size 0, may lack its end.
    (length.is_some() || size == 0).then_some((size, rest))
}

/// Whether these bytes may follow the last chunk: header lines and an empty line.
fn is_trailer(rest: &[u8]) -> bool {
    let mut lines = rest.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.all(|line| line.is_empty() || line.contains(&b':'))
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\n', ..] => Some(1),
        [b'\r', b'\n', ..] => Some(2),
        _ => None,
    }
}
