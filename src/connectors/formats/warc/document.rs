//! The document of a record: which records have one, its text, its id, its time and its fields.

use super::super::layout::{WarcId, WarcRules};
use super::super::rows::{ArchiveRole, FileRow, NextRow, RowText, WantedColumns};
use super::body::is_binary;
use super::broken::ArchiveError;
use super::fields::{Fields, MediaType, unbracketed};
use super::http::{HttpMessage, http_begin};
use super::revisits;
use crate::instant;
use dupflow_core::html;

/// Whether an answer says that there is no page any more.
fn is_gone(message: &HttpMessage<'_>) -> bool {
    matches!(message.status, 404 | 410)
}

/// A complete record.
pub(super) struct WarcRecord<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) block: &'a [u8],
}

impl WarcRecord<'_> {
    /// Reads the document, if there is one, into `row`. Also returns whether the archive has only its
    /// beginning.
    pub(super) fn read(
        &self,
        columns: &WantedColumns,
        WarcRules { id, deletes }: WarcRules,
        row: &mut FileRow,
    ) -> Result<(NextRow, bool), ArchiveError> {
        let skipped = |why| Ok((NextRow::Skipped(why), false));
        // Of a segmented record the first segment is read, which is only the beginning.
        let is_marked_cut = self.fields.get("warc-truncated").is_some_and(|value| !value.is_empty())
            || self.fields.get("warc-segment-number").is_some();
        let own_type = MediaType::from_values(self.fields.all("content-type"));
        let kind = self.fields.text("warc-type").unwrap_or_default().to_ascii_lowercase();
        let is_http = own_type.as_ref().is_some_and(|own| own.name == "application/http")
            || http_begin(self.block) == Some(0);
        let mut is_cut = is_marked_cut;
        let mut message = None;
        let text = match kind.as_str() {
            "response" if is_http && self.block.trim_ascii().is_empty() => return skipped("empty"),
            "response" if is_http => {
                let message = &*message.insert(HttpMessage::parse(self.block)?);
                if deletes && is_gone(message) {
                    row.text = RowText::Deleted;
                    self.describe(columns, id, Some(message), row);
                    return Ok((NextRow::Row, false));
                }
                if message.status != 200 {
                    return skipped("status");
                }
                let (content, charset) = self.content(Some(message));
                if content == Some(ContentKind::Other) {
                    return skipped("content_type");
                }
                let body = message.body()?;
                is_cut |= body.is_cut;
                let content = content.or_else(|| ContentKind::of_bytes(&body.bytes));
                content.and_then(|content| content.text(body.bytes, charset.as_deref()))
            }
            "resource" | "response" if self.address().is_some_and(is_about_crawl) => {
                return skipped("metadata");
            }
            "resource" | "conversion" | "response" => {
                let charset = own_type.as_ref().and_then(|one| one.charset.as_deref());
                let known = ContentKind::of_type(own_type.as_ref());
                match (known, kind.as_str()) {
                    // The block of a conversion is text in UTF-8, unless its type says otherwise.
                    (None | Some(ContentKind::Text), "conversion") if charset.is_none() => {
                        Some(self.block.to_vec())
                    }
                    (None, "conversion") => ContentKind::Text.text(self.block.to_vec(), charset),
                    _ => known
                        .or_else(|| ContentKind::of_bytes(self.block))
                        .and_then(|content| content.text(self.block.to_vec(), charset)),
                }
            }
            "revisit" => {
                let own = HttpMessage::parse(self.block).ok();
                if deletes && own.as_ref().is_some_and(is_gone) {
                    row.text = RowText::Deleted;
                    self.describe(columns, id, own.as_ref(), row);
                    return Ok((NextRow::Row, false));
                }
                match self.revisit(own.as_ref(), id) {
                    Ok(role) => row.role = role,
                    Err(why) => return skipped(why),
                }
                self.describe(columns, id, own.as_ref(), row);
                return Ok((NextRow::Row, false));
            }
            "request" => return skipped("request"),
            "metadata" => return skipped("metadata"),
            "warcinfo" => return skipped("warcinfo"),
            "continuation" => return skipped("continuation"),
            _ => return skipped("kind"),
        };
        let Some(text) = text else { return skipped("content_type") };
        row.text = RowText::Is(text);
        if id == WarcId::Uri {
            row.role = revisits::page(&self.fields, self.address());
        }
        self.describe(columns, id, message.as_ref(), row);
        Ok((NextRow::Row, is_cut))
    }

    /// What a revisit refers to, or why it is no document. Where ids are those of records, the page that it
    /// refers to has an id of its own.
    fn revisit(&self, message: Option<&HttpMessage<'_>>, id: WarcId) -> Result<ArchiveRole, &'static str> {
        let status = message.map(|message| message.status);
        if status.is_some_and(|status| status != 200 && status != 304) {
            Err("status")
        } else if self.content(message).0 == Some(ContentKind::Other) {
            Err("content_type")
        } else if id == WarcId::Record || self.address().is_none_or(<[u8]>::is_empty) {
            Err("revisit")
        } else {
            Ok(revisits::revisit(&self.fields, self.address(), status))
        }
    }

    /// The kind of content by the type that the crawler has found or else that of the message, and the
    /// charset of the message.
    fn content(&self, message: Option<&HttpMessage<'_>>) -> (Option<ContentKind>, Option<String>) {
        let stated = message.and_then(|message| MediaType::from_values(message.fields.all("content-type")));
        let identified = MediaType::from_values(self.fields.all("warc-identified-payload-type"));
        let kind = ContentKind::of_type(identified.as_ref().or(stated.as_ref()));
        (kind, stated.and_then(|stated| stated.charset))
    }

    /// Sets the id, the time and the further fields of a row.
    fn describe(
        &self,
        columns: &WantedColumns,
        id: WarcId,
        message: Option<&HttpMessage<'_>>,
        row: &mut FileRow,
    ) {
        let named = match id {
            WarcId::Record => self.fields.get("warc-record-id").map(bare_id),
            WarcId::Uri => self.address(),
        };
        row.id = named.filter(|named| !named.is_empty()).map(<[u8]>::to_vec);
        row.ts = self.fields.text("warc-date").and_then(instant::of_iso).filter(|ts| *ts >= 0.0);
        let field = |name: &String| {
            let value = match (name.as_str(), name.strip_prefix("http.")) {
                ("url", _) => self.address(),
                ("date", _) => self.fields.get("warc-date"),
                (_, Some(name)) => message.and_then(|message| message.fields.get(name)),
                (name, None) => self.fields.get(name),
            };
            value.unwrap_or_default().to_vec()
        };
        row.fields = columns.fields.iter().map(field).collect();
    }

    /// The address of the page, without the angle brackets that some writers add.
    fn address(&self) -> Option<&[u8]> {
        self.fields.get("warc-target-uri").map(unbracketed)
    }
}

fn bare_id(value: &[u8]) -> &[u8] {
    let value = unbracketed(value);
    let prefix = b"urn:uuid:";
    let has_prefix = value.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    if has_prefix { &value[prefix.len()..] } else { value }
}

/// Whether an address is one that crawlers give to what they write about a crawl: logs, arguments, and what
/// they have made of pages (wget, wpull, browsertrix, warcprox, Heritrix).
fn is_about_crawl(address: &[u8]) -> bool {
    const SCHEMES: [&[u8]; 4] = [b"metadata", b"filedesc", b"screenshot", b"thumbnail"];
    const NAMES: [&[u8]; 9] = [
        b"pageinfo",
        b"text",
        b"textFinal",
        b"thumbnail",
        b"view",
        b"fullPage",
        b"screenshot",
        b"logs",
        b"X-wpull",
    ];
    let mut parts = address.splitn(3, |byte| *byte == b':');
    let [scheme, name, rest] = [(); 3].map(|()| parts.next());
    let is = |found: &[u8], known: &[&[u8]]| known.iter().any(|one| found.eq_ignore_ascii_case(one));
    let (Some(scheme), Some(name)) = (scheme, name) else { return false };
    let is_of_page = |of: &[u8]| of.starts_with(b"http:") || of.starts_with(b"https:");
    is(scheme, &SCHEMES)
        || is(scheme, &[b"urn"]) && rest.is_some_and(|rest| is(name, &NAMES) || is_of_page(rest))
}

/// The kind of content of a block or body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    Page,
    Text,
    Other,
}

impl ContentKind {
    /// By a media type; `None` if there is none.
    fn of_type(named: Option<&MediaType>) -> Option<Self> {
        Some(match &*named?.name {
            "text/html" | "application/xhtml+xml" => Self::Page,
            "text/plain" => Self::Text,
            _ => Self::Other,
        })
    }

    /// By the first bytes; `None` if they are inconclusive.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        html::page(bytes).map(|_| Self::Page)
    }

    /// The text; `None` if it is none.
    fn text(self, bytes: Vec<u8>, charset: Option<&str>) -> Option<Vec<u8>> {
        match self {
            Self::Page => Some(html::with_doctype(&bytes, charset).into_owned().into_bytes()),
            // A text in UTF-8 is used as it is, even if another charset is stated.
            Self::Text if std::str::from_utf8(&bytes).is_ok() => Some(bytes),
            // Servers send `text/plain` with files of which they do not know the type.
            Self::Text if charset.is_none() && is_binary(&bytes) => None,
            Self::Text => Some(html::decode(&bytes, charset).into_owned().into_bytes()),
            Self::Other => None,
        }
    }
}
