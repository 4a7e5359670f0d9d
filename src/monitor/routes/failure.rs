//! The answer to a request that fails: a status and one line.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::view::ViewUnavailable;

/// An error.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Failure)]
pub(super) struct ErrorAnswer {
    /// One line.
    error: String,
    #[serde(skip)]
    status: StatusCode,
    /// Value of `Retry-After` in seconds.
    #[serde(skip)]
    again: Option<u64>,
}

impl ErrorAnswer {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { error: error.into(), status, again: None }
    }

    /// A temporary failure: 503, with the seconds after which the client may retry.
    pub(super) fn busy(error: impl Into<String>, again: u64) -> Self {
        Self { again: Some(again), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, error) }
    }

    /// More than the run takes: 429, with the seconds after which the client may retry.
    pub(super) fn too_many(error: impl Into<String>, again: u64) -> Self {
        Self { again: Some(again), ..Self::new(StatusCode::TOO_MANY_REQUESTS, error) }
    }

    pub(super) fn missing(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(super) fn wrong(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// Another process serves it, or no process of this run does.
    pub(super) fn not_here(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_IMPLEMENTED,
            format!("this process does not tell of {what}; process 0 of a run does"),
        )
    }

    pub(super) fn unseen(why: &ViewUnavailable) -> Self {
        match why {
            ViewUnavailable::NotKept => Self::new(StatusCode::NOT_IMPLEMENTED, why.to_string()),
            ViewUnavailable::Broken => Self::new(StatusCode::INTERNAL_SERVER_ERROR, why.to_string()),
            ViewUnavailable::NotFilled | ViewUnavailable::Busy => Self::busy(why.to_string(), 1),
        }
    }

    /// Whether the request may succeed later.
    pub(super) fn is_temporary(&self) -> bool {
        self.again.is_some()
    }

    /// The message.
    pub(super) fn line(&self) -> &str {
        &self.error
    }
}

impl IntoResponse for ErrorAnswer {
    fn into_response(self) -> Response {
        let (status, again) = (self.status, self.again);
        let mut answer = (status, Json(self)).into_response();
        if let Some(seconds) = again {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        answer
    }
}
