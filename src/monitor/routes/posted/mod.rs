//! The route that takes documents.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

use super::similar::read_body;
use super::{ErrorAnswer, RouteState};
use crate::guard::refusals::RefusalReason;
use dupflow_run::posted::{PostRefusal, PostWait, PostedBody, PostedLines};

/// How long the run may take for an answer. It takes milliseconds, or as long as the run is not live.
const ANSWER: Duration = Duration::from_secs(30);

/// The header with the key of a body, and most bytes of it, inclusive.
const KEY: &str = "idempotency-key";
const KEY_BYTES: usize = 255;

const LATE: &str =
    "not within 30 s: the run is still checking what an earlier one has written, or the disk is slow";

/// How a body is posted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PostQuery {
    /// `none`: the answer is sent when the documents are stored, and says where. `closed`: when their epoch
    /// is computed, and says what was found. Without it, when that is durable in the output too.
    #[param(inline)]
    wait: Option<WaitText>,
}

/// What a post waits for.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum WaitText {
    None,
    Closed,
}

/// Takes documents: JSON Lines, one event on each line, or one JSON object; `Content-Encoding` may be gzip or
/// zstd. The answer has one line for each, in their order. Sent again with the same `Idempotency-Key`, they
/// change nothing, also after others have changed the documents; without a key, unless others have.
///
/// A line of the answer is the decision of a document, with `document` (`new`, `changed` or `unchanged`),
/// `{"id":…,"epoch":…,"at":…,"ended":true}` of one that is deleted, `{"id":…,"offset":…}` with `wait=none`,
/// or `{"line":…,"bad":…}` of a bad record.
#[utoipa::path(
    post, path = "/documents",
    params(
        PostQuery,
        (
            "idempotency-key" = Option<String>, Header,
            description = "Of bodies with one key only the first is stored.",
        ),
    ),
    request_body(content((String = "application/x-ndjson"))),
    responses(
        (status = 200, description = "What was found.", body = String, content_type = "application/x-ndjson"),
        (
            status = 202, description = "They are stored, and not decided yet.", body = String,
            content_type = "application/x-ndjson",
        ),
        (
            status = 400, description = "The body is wrong. If all of its lines are bad records, the answer \
                has one line for each, as of 200.",
            body = ErrorAnswer,
        ),
        (status = 408, description = "The body came too slowly.", body = ErrorAnswer),
        (status = 413, description = "The body is too large.", body = ErrorAnswer),
        (status = 415, description = "No such encoding.", body = ErrorAnswer),
        (status = 422, description = "The key was that of another body.", body = ErrorAnswer),
        (status = 429, description = "Too many documents wait.", body = ErrorAnswer),
        (status = 501, description = "The source of this run is another one.", body = ErrorAnswer),
        (status = 503, description = "They cannot be stored, or the run ends.", body = ErrorAnswer),
    ),
)]
pub(super) async fn post(
    State(state): State<Arc<RouteState>>,
    query: Result<Query<PostQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorAnswer> {
    let Query(query) = query.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let receiver = state.subject.receiver.clone().ok_or_else(|| {
        let what = "this process takes no documents: source.kind is not \"http\", or another process writes \
            the output";
        ErrorAnswer::new(StatusCode::NOT_IMPLEMENTED, what)
    })?;
    check_encoding(&headers)?;
    let key = key(&headers)?;
    // The permit is taken before the body is read, since it takes memory.
    let permit = Arc::clone(&state.bodies).try_acquire_owned().map_err(|_| {
        state.refusals.add(RefusalReason::Bodies);
        ErrorAnswer::too_many("too many bodies are read", 1)
    })?;
    let wait = match query.wait {
        None => PostWait::Durable,
        Some(WaitText::Closed) => PostWait::Closed,
        Some(WaitText::None) => PostWait::Stored,
    };
    let bytes = read_body(&state, body).await?;
    let posted_body = PostedBody { bytes, most: state.limits.body_bytes, wait, key };
    let (reply, mut answer) = oneshot::channel();
    // A client that has closed its connection gets no answer.
    let reply = Box::new(move |posted| drop(reply.send(posted)));
    let posting = Arc::clone(&receiver);
    let posted = tokio::task::spawn_blocking(move || {
        let number = posting.post(posted_body, reply);
        drop(permit);
        number
    });
    let number = posted.await.map_err(|_| refused(&state, &PostRefusal::Ended))?;
    let answer = match timeout(ANSWER, &mut answer).await {
        Ok(answer) => answer.unwrap_or(Err(PostRefusal::Ended)),
        Err(_) => {
            receiver.cancel(number);
            answer.try_recv().unwrap_or_else(|_| Err(PostRefusal::NotStored(LATE.to_owned())))
        }
    };
    let PostedLines { answers, bad, are_decided } = answer.map_err(|why| refused(&state, &why))?;
    let status = match (bad == answers.len(), are_decided) {
        (true, _) => StatusCode::BAD_REQUEST,
        (_, true) => StatusCode::OK,
        (_, false) => StatusCode::ACCEPTED,
    };
    Ok(lines(status, answers.into_iter().map(|line| line + "\n").collect()))
}

/// A body is decompressed by its first bytes; another encoding would be a bad record.
fn check_encoding(headers: &HeaderMap) -> Result<(), ErrorAnswer> {
    let is_known = |encoding: &str| ["identity", "gzip", "x-gzip", "zstd"].contains(&encoding);
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let are_known = encodings.all(|encoding| {
        encoding.to_str().is_ok_and(|encoding| is_known(&encoding.trim().to_ascii_lowercase()))
    });
    let what = "content-encoding: expected gzip, zstd or none";
    if are_known { Ok(()) } else { Err(ErrorAnswer::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what)) }
}

/// The key of a body, by which it is stored once.
fn key(headers: &HeaderMap) -> Result<Option<String>, ErrorAnswer> {
    let mut keys = headers.get_all(KEY).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let typed = key.to_str().ok().filter(|key| (1..=KEY_BYTES).contains(&key.len()));
    let typed = typed.filter(|_| keys.next().is_none());
    let what =
        || ErrorAnswer::wrong("idempotency-key: expected one of 1 to 255 characters of ASCII".to_owned());
    Ok(Some(typed.ok_or_else(what)?.to_owned()))
}

fn lines(status: StatusCode, lines: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/x-ndjson")], lines).into_response()
}

fn refused(state: &RouteState, why: &PostRefusal) -> ErrorAnswer {
    let reason = match why {
        PostRefusal::Full => Some(RefusalReason::Waiting),
        PostRefusal::NotStored(_) => Some(RefusalReason::NotStored),
        _ => None,
    };
    reason.into_iter().for_each(|reason| state.refusals.add(reason));
    match why {
        PostRefusal::Empty | PostRefusal::Damaged(_) => ErrorAnswer::wrong(why.to_string()),
        PostRefusal::OtherBody => ErrorAnswer::new(StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
        PostRefusal::TooLarge(_) => ErrorAnswer::new(StatusCode::PAYLOAD_TOO_LARGE, why.to_string()),
        PostRefusal::Full => ErrorAnswer::too_many(why.to_string(), 1),
        PostRefusal::NotStored(_) | PostRefusal::Ended => ErrorAnswer::busy(why.to_string(), 5),
    }
}
