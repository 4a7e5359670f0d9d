//! The document of a record: which records have one, its text, its id, its time and its fields.

use super::super::layout::WarcId;
use super::super::rows::{FileRow, NextRow, RowText, WantedColumns};
use super::broken::ArchiveError;
use super::fields::{Fields, charset, media_type};
use super::http::HttpMessage;
use crate::instant;
use dupflow_core::html;

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
        id: WarcId,
        row: &mut FileRow,
    ) -> Result<(NextRow, bool), ArchiveError> {
        let skipped = |why| Ok((NextRow::Skipped(why), false));
        let is_marked_cut = self.fields.get("warc-truncated").is_some_and(|value| !value.is_empty());
        let own_type = self.fields.text("content-type");
        let kind = self.fields.text("warc-type").unwrap_or_default().to_ascii_lowercase();
        let is_http = own_type.is_some_and(|own| media_type(own).eq_ignore_ascii_case("application/http"))
            || self.block.starts_with(b"HTTP/");
        let mut is_cut = is_marked_cut;
        let mut message = None;
        let text = match kind.as_str() {
            "response" if is_http => {
                let message = &*message.insert(HttpMessage::parse(self.block)?);
                if message.status != 200 {
                    return skipped("status");
                }
                let content_type = message.fields.text("content-type");
                let identified =
                    self.fields.text("warc-identified-payload-type").filter(|found| !found.is_empty());
                let content = ContentKind::of_type(identified.or(content_type));
                if content == Some(ContentKind::Other) {
                    return skipped("content_type");
                }
                let body = message.body()?;
                is_cut |= body.is_cut;
                content
                    .or_else(|| ContentKind::of_bytes(&body.bytes))
                    .and_then(|content| content.text(&body.bytes, content_type.and_then(charset)))
            }
            "resource" | "conversion" | "response" => {
                // The block of a conversion is text, unless its type says otherwise.
                let other = if kind == "conversion" {
                    Some(ContentKind::Text)
                } else {
                    ContentKind::of_bytes(self.block)
                };
                let content = ContentKind::of_type(own_type).or(other);
                content.and_then(|content| content.text(self.block, own_type.and_then(charset)))
            }
            "revisit" => return skipped("revisit"),
            "request" => return skipped("request"),
            "metadata" => return skipped("metadata"),
            "warcinfo" => return skipped("warcinfo"),
            "continuation" => return skipped("continuation"),
            _ => return skipped("kind"),
        };
        let Some(text) = text else { return skipped("content_type") };
        row.text = RowText::Is(text);
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
                (_, Some(name)) => message.as_ref().and_then(|message| message.fields.get(name)),
                (name, None) => self.fields.get(name),
            };
            value.unwrap_or_default().to_vec()
        };
        row.fields = columns.fields.iter().map(field).collect();
        Ok((NextRow::Row, is_cut))
    }

    /// The address of the page, without the angle brackets that some writers add.
    fn address(&self) -> Option<&[u8]> {
        self.fields.get("warc-target-uri").map(unbracketed)
    }
}

fn unbracketed(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"<").and_then(|inner| inner.strip_suffix(b">")).unwrap_or(value)
}

fn bare_id(value: &[u8]) -> &[u8] {
    let value = unbracketed(value);
    let prefix = b"urn:uuid:";
    let has_prefix = value.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    if has_prefix { &value[prefix.len()..] } else { value }
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
    fn of_type(named: Option<&str>) -> Option<Self> {
        let named = media_type(named?).to_ascii_lowercase();
        match named.as_str() {
            "text/html" | "application/xhtml+xml" => Some(Self::Page),
            "text/plain" => Some(Self::Text),
            "" => None,
            _ => Some(Self::Other),
        }
    }

    /// By the first bytes; `None` if they are inconclusive.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        html::page(bytes).map(|_| Self::Page)
    }

    fn text(self, bytes: &[u8], charset: Option<&str>) -> Option<Vec<u8>> {
        match self {
            Self::Page => Some(html::with_doctype(bytes, charset).into_owned().into_bytes()),
            // A text in UTF-8 is used as it is, even if another charset is stated.
            Self::Text if charset.is_none() || std::str::from_utf8(bytes).is_ok() => Some(bytes.to_vec()),
            Self::Text => Some(html::decode(bytes, charset).into_owned().into_bytes()),
            Self::Other => None,
        }
    }
}
