//! The route that finds the documents similar to a text.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use utoipa::ToSchema;

use super::{ErrorAnswer, RouteState};
use crate::View;
use crate::cluster_history::History;
use crate::guard::refusals::RefusalReason;
use crate::stream::BodyStream;
use crate::subject::Pipeline;
use crate::view::ViewUnavailable;
use dupflow_core::pair::SharesBeside;
use dupflow_core::time::Epoch;
use dupflow_run::query::{Answer, Query, Refusal, SimilarDocument};

/// Default and maximum number of documents in an answer.
const TOP: usize = 20;
const MOST: usize = 1000;

/// How long the workers may take for an answer. It takes milliseconds, or as long as the epoch in progress.
const ANSWER: Duration = Duration::from_secs(30);

/// A body that is too large is read, and discarded, up to so many times the limit.
const DISCARDED: usize = 16;

/// A query for similar documents.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Asks)]
pub(super) struct SimilarQuery {
    text: String,
    /// Maximum number of documents in the answer, 1 to 1000; default 20.
    top: Option<usize>,
    /// Any value; the answer repeats it.
    id: Option<serde_json::Value>,
}

/// The documents similar to a text.
#[derive(Serialize, ToSchema)]
#[schema(as = Answered)]
pub(super) struct SimilarAnswer {
    /// The value of `id` of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<serde_json::Value>,
    /// The answer is of the corpus after this epoch.
    epoch: u64,
    /// Each `cluster` is of the output after this epoch; null if clusters are not kept.
    output_epoch: Option<u64>,
    /// The text has no token, so no document is similar to it.
    empty: bool,
    /// Most similar first.
    documents: Vec<SimilarEntry>,
    /// How many more there are.
    more: usize,
}

/// A document that would form a pair with the text.
#[derive(Serialize, ToSchema)]
#[schema(as = Near)]
struct SimilarEntry {
    id: String,
    /// True if it is a document of the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<bool>,
    similarity: f64,
    /// Of containment, if the two shares differ: the share of the text's features that this document has.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_id: Option<f64>,
    /// And the share of this document's features that the text has.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_id: Option<f64>,
    /// Its cluster, unless that is a giant.
    cluster: Option<String>,
    evidence: EvidenceAnswer,
}

/// Why two documents are a pair.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Weighed)]
pub(super) struct EvidenceAnswer {
    /// Number of blocks that both sketches share; 0 for copies of one sketch.
    blocks: u16,
    of_blocks: usize,
    /// The look that decided, from 1; 0 for copies of one sketch, which are not compared.
    look: u16,
    /// Number of components that were compared.
    components: u32,
    of_components: usize,
    /// Standard error of the similarity; 0 if it is exact.
    standard_error: f64,
}

impl EvidenceAnswer {
    pub(super) fn new(pipeline: &Pipeline, similar: &SimilarDocument) -> Self {
        let evidence = &similar.evidence;
        Self {
            blocks: evidence.blocks,
            of_blocks: pipeline.blocks,
            look: evidence.look,
            components: evidence.components,
            of_components: pipeline.components,
            standard_error: (pipeline.standard_error)(similar.similarity.get(), evidence),
        }
    }
}

/// The format of a request body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyFormat {
    Text,
    Json,
    Lines,
}

/// The documents that would form pairs with the text if it were a new document. A text has no fields, so
/// `pairs.where` is not applied to it.
///
/// `application/x-ndjson`: one query on each line, one answer on each line in the same order. The answer of a
/// query that fails has `error`.
#[utoipa::path(
    post, path = "/similar",
    request_body(
        content(
            (String = "text/plain"),
            (SimilarQuery = "application/json"),
            (String = "application/x-ndjson")
        ),
    ),
    responses(
        (status = 200, description = "What it is similar to.", body = SimilarAnswer),
        (status = 400, description = "The question is wrong.", body = ErrorAnswer),
        (status = 408, description = "The body came too slowly.", body = ErrorAnswer),
        (status = 413, description = "The body is too large.", body = ErrorAnswer),
        (status = 415, description = "No text, and no question.", body = ErrorAnswer),
        (
            status = 503, description = "Too many questions, the run is not live yet, or it ends.",
            body = ErrorAnswer,
        ),
    ),
)]
pub(super) async fn similar(
    State(state): State<Arc<RouteState>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorAnswer> {
    let body_format = body_format(&headers)?;
    // Permits are taken before the body is read, since it takes memory.
    let room = |of: &Arc<Semaphore>| {
        Arc::clone(of).try_acquire_owned().map_err(|_| {
            state.refusals.add(RefusalReason::Bodies);
            ErrorAnswer::busy("too many questions are under way", 1)
        })
    };
    let many = (body_format == BodyFormat::Lines).then(|| room(&state.many)).transpose()?;
    let permit = room(&state.bodies)?;
    state.is_live().inspect_err(|_| state.refusals.add(RefusalReason::NotLive))?;
    if body_format != BodyFormat::Lines {
        state.questions.take(state.subject.clock.now()).map_err(|_| {
            state.refusals.add(RefusalReason::Rate);
            ErrorAnswer::busy("too many questions in a second", 1)
        })?;
    }
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: u64| length > state.limits.body_bytes as u64) {
        return Err(too_large(state.limits.body_bytes));
    }
    let bytes = read_body(&state, body).await?;
    let query = match body_format {
        BodyFormat::Lines => {
            let (fill, answers) = BodyStream::open();
            tokio::spawn(lines(state, bytes, fill, (permit, many)));
            return Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], answers).into_response());
        }
        BodyFormat::Text => SimilarQuery { text: utf8(&bytes)?.to_owned(), top: None, id: None },
        BodyFormat::Json => parse(&bytes)?,
    };
    drop(bytes);
    Ok(Json(answer(&state, query).await?).into_response())
}

fn body_format(headers: &HeaderMap) -> Result<BodyFormat, ErrorAnswer> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("text/plain");
    match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        // curl sends the second one by default.
        "text/plain" | "application/x-www-form-urlencoded" => Ok(BodyFormat::Text),
        "application/json" => Ok(BodyFormat::Json),
        "application/x-ndjson" => Ok(BodyFormat::Lines),
        _ => {
            let what = "content-type: expected text/plain, application/json or application/x-ndjson";
            Err(ErrorAnswer::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what))
        }
    }
}

/// Reads the body, within its limits of size and time.
pub(super) async fn read_body(state: &RouteState, mut body: Body) -> Result<Vec<u8>, ErrorAnswer> {
    let (most, within) = (state.limits.body_bytes, state.limits.body);
    let read = async {
        let (mut bytes, mut length) = (Vec::new(), 0);
        // A client that sends more reads no answer before it has sent it: a part is read that is not held.
        while length <= most.saturating_mul(DISCARDED)
            && let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            let frame = frame.map_err(|_| ErrorAnswer::wrong("the body ended early"))?;
            let Ok(data) = frame.into_data() else { continue };
            length += data.len();
            if length <= most {
                bytes.extend_from_slice(&data);
            } else {
                bytes = Vec::new();
            }
        }
        if length <= most { Ok(bytes) } else { Err(too_large(most)) }
    };
    timeout(within, read).await.unwrap_or_else(|_| {
        let what = format!("the body took more than {} s", within.as_secs_f64());
        Err(ErrorAnswer::new(StatusCode::REQUEST_TIMEOUT, what))
    })
}

fn too_large(most: usize) -> ErrorAnswer {
    let what = format!("the body has more than {most} bytes (monitor.body_bytes)");
    ErrorAnswer::new(StatusCode::PAYLOAD_TOO_LARGE, what)
}

fn utf8(bytes: &[u8]) -> Result<&str, ErrorAnswer> {
    std::str::from_utf8(bytes)
        .map_err(|error| ErrorAnswer::wrong(format!("the body is not UTF-8 at byte {}", error.valid_up_to())))
}

fn parse(bytes: &[u8]) -> Result<SimilarQuery, ErrorAnswer> {
    let query: SimilarQuery =
        serde_json::from_slice(bytes).map_err(|error| ErrorAnswer::wrong(error.to_string()))?;
    match query.top {
        Some(top) if !(1..=MOST).contains(&top) => {
            Err(ErrorAnswer::wrong(format!("top: expected a whole number from 1 to {MOST}")))
        }
        _ => Ok(query),
    }
}

/// Answers line by line. Each line waits for the rate limit, and leaves half of the rate to single queries.
async fn lines(
    state: Arc<RouteState>,
    bytes: Vec<u8>,
    fill: mpsc::Sender<Bytes>,
    permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
) {
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        while let Err(time) = state.questions.take_upper_half(state.subject.clock.now()) {
            sleep(time).await;
        }
        let answered = match parse(line) {
            Ok(query) => {
                let id = query.id.clone();
                answer(&state, query).await.map_err(|failure| (id, failure))
            }
            Err(failure) => Err((None, failure)),
        };
        let written = match answered {
            Ok(answered) => serde_json::to_vec(&answered),
            Err((id, failure)) => serde_json::to_vec(&serde_json::json!({"id": id, "error": failure.line()})),
        };
        let mut answer_line = written.expect("texts and numbers are written to memory");
        answer_line.push(b'\n');
        if fill.send(answer_line.into()).await.is_err() {
            break;
        }
    }
    drop(permits);
}

async fn answer(state: &Arc<RouteState>, query: SimilarQuery) -> Result<SimilarAnswer, ErrorAnswer> {
    let question = Query::Text { text: query.text, top: query.top.unwrap_or(TOP) };
    let answer = ask(state, question).await?;
    let (output_epoch, clusters): (Option<u64>, Vec<Option<String>>) = match state.view() {
        Err(_) => (None, vec![None; answer.similar.len()]),
        Ok(view) => {
            let ids: Vec<_> = answer.similar.iter().map(|similar| similar.id.clone()).collect();
            let cluster = move |seen: &View| {
                let of = |history: &History| {
                    ids.iter().map(|id| history.cluster_of(id).map(ToString::to_string)).collect()
                };
                (Some(seen.epoch()), seen.clusters(of))
            };
            state.read_view(view, cluster).await?
        }
    };
    let documents = answer.similar.iter().zip(clusters).map(|(similar, cluster)| {
        let SharesBeside { in_id, of_id } = SharesBeside::new(similar.similarity);
        let (id, old) = similar.id.shown(state.subject.pipeline.has_reference);
        SimilarEntry {
            id: id.to_owned(),
            old,
            similarity: similar.similarity.get(),
            in_id,
            of_id,
            cluster,
            evidence: EvidenceAnswer::new(&state.subject.pipeline, similar),
        }
    });
    Ok(SimilarAnswer {
        id: query.id,
        epoch: answer.epoch,
        output_epoch,
        empty: !answer.sketched,
        documents: documents.collect(),
        more: answer.more,
    })
}

/// Sends a query to the workers.
pub(super) async fn ask(state: &RouteState, question: Query) -> Result<Answer, ErrorAnswer> {
    ask_after(state, 0, question).await
}

/// Sends a query to the workers; the answer is of this epoch or a later one.
pub(super) async fn ask_after(
    state: &RouteState,
    epoch: Epoch,
    question: Query,
) -> Result<Answer, ErrorAnswer> {
    state.is_live()?;
    let queries = state.subject.queries.as_ref();
    let queries = queries.ok_or_else(|| ErrorAnswer::not_here("similar documents"))?;
    let status = &state.subject.status;
    let refuse = |why, failure| {
        state.refusals.add(why);
        Err(failure)
    };
    let (reply_to, line) = oneshot::channel();
    let begun = state.subject.clock.now();
    status.count_query();
    // Fails if the client has disconnected.
    queries.ask_after(epoch, question, move |reply| drop(reply_to.send(reply)));
    let outcome = timeout(ANSWER, line).await;
    let took = state.subject.clock.now().saturating_sub(begun);
    match outcome {
        Ok(Ok(Ok(answer))) => {
            status.record_answer(took);
            Ok(answer)
        }
        Ok(Ok(Err(Refusal::Full))) => {
            refuse(RefusalReason::Full, ErrorAnswer::busy("too many questions are under way", 1))
        }
        Ok(Ok(Err(Refusal::NotLive))) => {
            refuse(RefusalReason::NotLive, ErrorAnswer::unseen(&ViewUnavailable::NotFilled))
        }
        Ok(_) => refuse(RefusalReason::Ended, ErrorAnswer::busy("the run has ended", 30)),
        Err(_) => {
            let what = "the workers have not answered in time: an epoch takes long, or they are held up";
            refuse(RefusalReason::Late, ErrorAnswer::busy(what, 5))
        }
    }
}
