//! What a text is similar to.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use utoipa::ToSchema;

use super::{Asked, Failure};
use crate::View;
use crate::refusals::Refused;
use crate::stream::Flow;
use crate::subject::Pipeline;
use crate::view::Unseen;
use dupflow_core::cluster::history::History;
use dupflow_core::run::query::{Answer, Query, Refusal, SimilarDocument};
use dupflow_core::time::Epoch;

/// Documents that are told, unless it is said how many, and the most.
const TOP: usize = 20;
const MOST: usize = 1000;

/// How long the workers may take for an answer. They take milliseconds; longer where an epoch does.
const ANSWER: Duration = Duration::from_secs(30);

/// A text to be looked for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Asks {
    text: String,
    /// Most documents to be told, from 1 to 1000; 20 if absent.
    top: Option<usize>,
    /// What the answer is to be known by, where there are many.
    id: Option<serde_json::Value>,
}

/// What a text is similar to.
#[derive(Serialize, ToSchema)]
pub(super) struct Answered {
    /// What the question said.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<serde_json::Value>,
    /// The answer is of the corpus after this epoch.
    epoch: u64,
    /// Each `cluster` is of the output after this epoch; null where clusters are not kept.
    output_epoch: Option<u64>,
    /// The text has no token, so it is similar to nothing.
    empty: bool,
    /// The most similar first.
    documents: Vec<Near>,
    /// Further ones that are left out.
    more: usize,
}

/// A document that a text would be paired with.
#[derive(Serialize, ToSchema)]
struct Near {
    id: String,
    similarity: f64,
    /// The cluster that it is in, if that is no giant.
    cluster: Option<String>,
    evidence: Weighed,
}

/// Why two documents are a pair.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Weighed {
    /// Blocks that both sketches are in; 0 for copies of one sketch.
    blocks: u16,
    of_blocks: usize,
    /// The look that decided, from 1; 0 for copies of one sketch, of which nothing was compared.
    look: u16,
    /// Components that were compared.
    components: u32,
    of_components: usize,
    /// Of the similarity; 0 where it is exact.
    standard_error: f64,
}

impl Weighed {
    pub(super) fn of(pipeline: &Pipeline, similar: &SimilarDocument) -> Self {
        let evidence = &similar.evidence;
        Self {
            blocks: evidence.blocks,
            of_blocks: pipeline.of.0,
            look: evidence.look,
            components: evidence.components,
            of_components: pipeline.of.1,
            standard_error: (pipeline.standard_error)(similar.similarity.get(), evidence),
        }
    }
}

/// In which shape a body is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Json,
    Lines,
}

/// What a text would be paired with, were it that of a new document.
///
/// `application/x-ndjson`: one question on each line, one answer on each line, in their order; a question
/// that cannot be answered has `error` in its place.
#[utoipa::path(post, path = "/similar", request_body(content((String = "text/plain"), (Asks = "application/json"), (String = "application/x-ndjson"))),
    responses((status = 200, description = "What it is similar to.", body = Answered), (status = 400, description = "The question is wrong.", body = Failure), (status = 408, description = "The body came too slowly.", body = Failure),
    (status = 413, description = "The body is too large.", body = Failure), (status = 415, description = "No text, and no question.", body = Failure),
    (status = 503, description = "Too many questions, the run is not live yet, or it ends.", body = Failure)))]
pub(super) async fn similar(
    State(asked): State<Arc<Asked>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let shape = shape(&headers)?;
    // Before the body is read: it takes memory.
    let room = |of: &Arc<Semaphore>| {
        Arc::clone(of).try_acquire_owned().map_err(|_| {
            asked.refusals.add(Refused::Bodies);
            Failure::busy("too many questions are under way", 1)
        })
    };
    let many = (shape == Shape::Lines).then(|| room(&asked.many)).transpose()?;
    let permit = room(&asked.bodies)?;
    asked.is_live().inspect_err(|_| asked.refusals.add(Refused::NotLive))?;
    if shape != Shape::Lines {
        asked.questions.take(asked.subject.clock.now()).map_err(|_| {
            asked.refusals.add(Refused::Rate);
            Failure::busy("too many questions in a second", 1)
        })?;
    }
    let said = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if said.is_some_and(|length: u64| length > asked.limits.body_bytes as u64) {
        return Err(too_large(asked.limits.body_bytes));
    }
    let bytes = read(&asked, body).await?;
    let asks = match shape {
        Shape::Lines => {
            let (fill, answers) = Flow::open();
            tokio::spawn(lines(asked, bytes, fill, (permit, many)));
            return Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], answers).into_response());
        }
        Shape::Text => Asks { text: utf8(&bytes)?.to_owned(), top: None, id: None },
        Shape::Json => parse(&bytes)?,
    };
    drop(bytes);
    Ok(Json(answer(&asked, asks).await?).into_response())
}

fn shape(headers: &HeaderMap) -> Result<Shape, Failure> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("text/plain");
    match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        // The second one is what curl says of its own accord.
        "text/plain" | "application/x-www-form-urlencoded" => Ok(Shape::Text),
        "application/json" => Ok(Shape::Json),
        "application/x-ndjson" => Ok(Shape::Lines),
        _ => {
            let what = "content-type: expected text/plain, application/json or application/x-ndjson";
            Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what))
        }
    }
}

/// The body, within its bounds of bytes and time.
async fn read(asked: &Asked, body: Body) -> Result<Bytes, Failure> {
    let (most, within) = (asked.limits.body_bytes, asked.limits.body);
    match timeout(within, axum::body::to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => {
            let mut cause: Option<&dyn std::error::Error> = Some(&error);
            let is_long = std::iter::from_fn(|| {
                let this = cause?;
                cause = this.source();
                Some(this.to_string())
            });
            if is_long.into_iter().any(|what| what.contains("length limit exceeded")) {
                return Err(too_large(most));
            }
            Err(Failure::wrong("the body ended early"))
        }
        Err(_) => {
            let what = format!("the body took more than {} s", within.as_secs_f64());
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, what))
        }
    }
}

fn too_large(most: usize) -> Failure {
    let what = format!("the body has more than {most} bytes (monitor.body_bytes)");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, what)
}

fn utf8(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes)
        .map_err(|error| Failure::wrong(format!("the body is not UTF-8 at byte {}", error.valid_up_to())))
}

fn parse(bytes: &[u8]) -> Result<Asks, Failure> {
    let asks: Asks = serde_json::from_slice(bytes).map_err(|error| Failure::wrong(error.to_string()))?;
    match asks.top {
        Some(top) if !(1..=MOST).contains(&top) => {
            Err(Failure::wrong(format!("top: expected a whole number from 1 to {MOST}")))
        }
        _ => Ok(asks),
    }
}

/// Answers line by line: each waits for its share of a second, and leaves half of that to single questions.
async fn lines(
    asked: Arc<Asked>,
    bytes: Bytes,
    fill: mpsc::Sender<Bytes>,
    permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
) {
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        while let Err(time) = asked.questions.take_upper_half(asked.subject.clock.now()) {
            sleep(time).await;
        }
        let answered = match parse(line) {
            Ok(asks) => {
                let id = asks.id.clone();
                answer(&asked, asks).await.map_err(|failure| (id, failure))
            }
            Err(failure) => Err((None, failure)),
        };
        let told = match answered {
            Ok(answered) => serde_json::to_vec(&answered),
            Err((id, failure)) => serde_json::to_vec(&serde_json::json!({"id": id, "error": failure.line()})),
        };
        let mut told = told.expect("texts and numbers are written to memory");
        told.push(b'\n');
        if fill.send(told.into()).await.is_err() {
            break;
        }
    }
    drop(permits);
}

async fn answer(asked: &Arc<Asked>, asks: Asks) -> Result<Answered, Failure> {
    let question = Query::Text { text: asks.text, top: asks.top.unwrap_or(TOP) };
    let answer = ask(asked, question).await?;
    let (output_epoch, clusters): (Option<u64>, Vec<Option<String>>) = match asked.view() {
        Err(_) => (None, vec![None; answer.similar.len()]),
        Ok(view) => {
            let ids: Vec<_> = answer.similar.iter().map(|similar| similar.id.clone()).collect();
            let cluster = move |seen: &View| {
                let of = |history: &History| {
                    ids.iter().map(|id| history.cluster_of(id).map(ToString::to_string)).collect()
                };
                (Some(seen.epoch()), seen.clusters(of))
            };
            asked.see(view, cluster).await?
        }
    };
    let documents = answer.similar.iter().zip(clusters).map(|(similar, cluster)| Near {
        id: similar.id.to_string(),
        similarity: similar.similarity.get(),
        cluster,
        evidence: Weighed::of(&asked.subject.pipeline, similar),
    });
    Ok(Answered {
        id: asks.id,
        epoch: answer.epoch,
        output_epoch,
        empty: !answer.sketched,
        documents: documents.collect(),
        more: answer.more,
    })
}

/// Asks the workers.
pub(super) async fn ask(asked: &Asked, question: Query) -> Result<Answer, Failure> {
    ask_after(asked, 0, question).await
}

/// Asks the workers for an answer of this epoch or a later one.
pub(super) async fn ask_after(asked: &Asked, epoch: Epoch, question: Query) -> Result<Answer, Failure> {
    asked.is_live()?;
    let queries = asked.subject.queries.as_ref();
    let queries = queries.ok_or_else(|| Failure::not_here("similar documents"))?;
    let status = &asked.subject.status;
    let refuse = |why, failure| {
        asked.refusals.add(why);
        Err(failure)
    };
    let (tell, told) = oneshot::channel();
    let begun = asked.subject.clock.now();
    status.asked();
    // Nobody listens any more once the client is gone.
    queries.ask_after(epoch, question, move |reply| drop(tell.send(reply)));
    let outcome = timeout(ANSWER, told).await;
    let took = asked.subject.clock.now().saturating_sub(begun);
    match outcome {
        Ok(Ok(Ok(answer))) => {
            status.answered(took);
            Ok(answer)
        }
        Ok(Ok(Err(Refusal::Full))) => {
            refuse(Refused::Full, Failure::busy("too many questions are under way", 1))
        }
        Ok(Ok(Err(Refusal::NotLive))) => refuse(Refused::NotLive, Failure::unseen(&Unseen::NotFilled)),
        Ok(_) => refuse(Refused::Ended, Failure::busy("the run has ended", 30)),
        Err(_) => {
            let what = "the workers have not answered in time: an epoch takes long, or they are held up";
            refuse(Refused::Late, Failure::busy(what, 5))
        }
    }
}
