//! The format of a list: that of the query, or else that of the header `Accept`.

use axum::http::{HeaderMap, header};
use serde::Deserialize;
use utoipa::ToSchema;

/// The format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ListFormat {
    /// A page, as JSON.
    Json,
    /// All rows, as comma-separated values.
    Csv,
    /// All rows, as one JSON object a line.
    Jsonl,
}

impl ListFormat {
    /// The format of a file, if a client asks for one.
    pub(crate) fn of_file(given: Option<Self>, headers: &HeaderMap) -> Option<Self> {
        let accepted = || {
            let all = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
            let mut kinds =
                all.flat_map(|value| value.split(',')).map(|kind| kind.split(';').next().unwrap_or(kind));
            kinds.find_map(|kind| match kind.trim() {
                "text/csv" => Some(Self::Csv),
                "application/x-ndjson" | "application/jsonl" => Some(Self::Jsonl),
                "application/json" => Some(Self::Json),
                _ => None,
            })
        };
        given.or_else(accepted).filter(|format| *format != Self::Json)
    }

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Jsonl => "application/x-ndjson",
        }
    }

    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_that_of_the_query_or_else_of_accept() {
        let of = |given, accept: &[&str]| {
            let mut headers = HeaderMap::new();
            for one in accept {
                headers.append(header::ACCEPT, one.parse().unwrap());
            }
            ListFormat::of_file(given, &headers)
        };
        assert_eq!(of(None, &[]), None);
        assert_eq!(of(None, &["*/*"]), None);
        assert_eq!(of(None, &["text/html,application/xhtml+xml,*/*;q=0.8"]), None, "a browser");
        assert_eq!(of(None, &["text/csv; q=1, application/json"]), Some(ListFormat::Csv));
        assert_eq!(of(None, &["application/json", "text/csv"]), None, "the first one that is known");
        assert_eq!(of(None, &["application/x-ndjson"]), Some(ListFormat::Jsonl));
        assert_eq!(of(Some(ListFormat::Json), &["text/csv"]), None);
        assert_eq!(of(Some(ListFormat::Jsonl), &["text/csv"]), Some(ListFormat::Jsonl));
    }
}
