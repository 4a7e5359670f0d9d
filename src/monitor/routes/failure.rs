//! What is answered when what was asked for cannot be: a status and a line.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::view::Unseen;

/// What is wrong.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Failure {
    /// In a line.
    error: String,
    #[serde(skip)]
    status: StatusCode,
    /// Seconds after which it may be tried again.
    #[serde(skip)]
    again: Option<u64>,
}

impl Failure {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { error: error.into(), status, again: None }
    }

    /// Too much at a time.
    pub(super) fn busy(error: impl Into<String>, again: u64) -> Self {
        Self { again: Some(again), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, error) }
    }

    pub(super) fn missing(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(super) fn wrong(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// Another process has it, or this kind of run has not.
    pub(super) fn not_here(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_IMPLEMENTED,
            format!("this process does not tell of {what}; process 0 of a run does"),
        )
    }

    pub(super) fn unseen(why: &Unseen) -> Self {
        match why {
            Unseen::NotKept => Self::new(StatusCode::NOT_IMPLEMENTED, why.to_string()),
            Unseen::Broken => Self::new(StatusCode::INTERNAL_SERVER_ERROR, why.to_string()),
            Unseen::NotFilled | Unseen::Busy => Self::busy(why.to_string(), 1),
        }
    }

    /// Whether it may be answered later.
    pub(super) fn is_temporary(&self) -> bool {
        self.again.is_some()
    }

    /// The line.
    pub(super) fn line(&self) -> &str {
        &self.error
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, again) = (self.status, self.again);
        let mut answer = (status, Json(self)).into_response();
        if let Some(seconds) = again {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        answer
    }
}
