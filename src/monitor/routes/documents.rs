//! A document: its pairs, its text, and two of them side by side.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

use super::pairs::id;
use super::similar::{Weighed, ask_after};
use super::{Asked, Failure};
use crate::View;
use crate::subject::NoText;
use crate::view::Held;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::run::query::{self, Answer, LastEvent, SimilarDocument};
use dupflow_core::time::Epoch;

/// Pairs of a document that are told, the best ones.
const PAIRS: usize = 1000;

/// The same, where one of them is looked for.
const MANY: usize = 1 << 20;

/// How often two documents are asked for, to be had at one epoch.
const ATTEMPTS: usize = 8;

/// How long an answer waits until the output holds the epoch that it is of.
const DURABLE: Duration = Duration::from_secs(1);

/// A document alive.
#[derive(Serialize, ToSchema)]
pub(super) struct Document {
    id: String,
    /// The answer is of the corpus after this epoch.
    epoch: u64,
    /// The epoch of its last change; null if that was before this run.
    changed: Option<u64>,
    position: At,
    /// Unix seconds, if its source says so.
    ts: Option<f64>,
    /// `cluster`, and `since` and `cause` of pairs, are of the output after this epoch; null where they are
    /// not kept.
    output_epoch: Option<u64>,
    /// The cluster that it is in, if that is no giant.
    cluster: Option<String>,
    /// What it is paired with, the most similar first.
    pairs: Vec<Paired>,
    /// Further ones that are left out.
    more: usize,
}

/// Where a text stands in its source.
#[derive(Serialize, ToSchema)]
struct At {
    partition: u32,
    offset: u64,
}

#[derive(Serialize, ToSchema)]
struct Paired {
    id: String,
    similarity: f64,
    /// The epoch that brought the pair with this similarity; null where that is not known, or not durable
    /// yet.
    since: Option<u64>,
    cause: Option<&'static str>,
    evidence: Weighed,
}

/// A text.
#[derive(Serialize, ToSchema)]
pub(super) struct Text {
    id: String,
    /// It is the text in force after this epoch.
    epoch: u64,
    text: String,
    /// Whether it goes on, and is cut for its length.
    truncated: bool,
}

/// One document.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct One {
    /// Its id.
    id: String,
}

/// Two documents.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Two {
    /// The id of one of them.
    a: String,
    /// That of the other one.
    b: String,
}

/// Two documents side by side.
#[derive(Serialize, ToSchema)]
pub(super) struct Comparison {
    /// All of this is of the corpus after this epoch.
    epoch: u64,
    a: Side,
    b: Side,
    /// The share of the tokens of each that is in common passages.
    shared_a: f64,
    shared_b: f64,
    /// That of the pair, if they are one; null if they are none.
    similarity: Option<f64>,
    /// That of the texts, if they have one.
    exact: Option<f64>,
    /// A pair has at least this.
    threshold: f64,
    evidence: Option<Weighed>,
    /// The epoch that brought the pair with this similarity; null if that is not durable, or not known.
    since: Option<u64>,
    cause: Option<&'static str>,
}

/// One of two texts.
#[derive(Serialize, ToSchema)]
struct Side {
    id: String,
    /// Together they are the text.
    pieces: Vec<Piece>,
}

#[derive(Serialize, ToSchema)]
struct Piece {
    text: String,
    /// The common passage that it is, if it is one: the same number on both sides.
    passage: Option<usize>,
}

/// What is known of a document, and what it is paired with.
#[utoipa::path(get, path = "/documents/{id}", params(("id" = String, Path, description = "Percent-encoded.")),
    responses((status = 200, description = "The document.", body = Document), (status = 400, description = "That is no id.", body = Failure), (status = 404, description = "It is not alive.", body = Failure),
    (status = 503, description = "Too many questions are under way, the run is not live yet, or it ends.", body = Failure)))]
pub(super) async fn document(
    State(asked): State<Arc<Asked>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Document>, Failure> {
    let Path(name) = name.map_err(|error| Failure::wrong(error.body_text()))?;
    document_of(&asked, &name).await
}

/// What is known of a document, and what it is paired with; for ids that a path cannot hold, as `..` is.
#[utoipa::path(get, path = "/document", params(One), responses((status = 200, description = "The document.", body = Document),
    (status = 400, description = "The query is wrong.", body = Failure), (status = 404, description = "It is not alive.", body = Failure),
    (status = 503, description = "Too many questions are under way, the run is not live yet, or it ends.", body = Failure)))]
pub(super) async fn document_by(
    State(asked): State<Arc<Asked>>,
    one: Result<Query<One>, QueryRejection>,
) -> Result<Json<Document>, Failure> {
    let Query(one) = one.map_err(|error| Failure::wrong(error.body_text()))?;
    document_of(&asked, &one.id).await
}

async fn document_of(asked: &Arc<Asked>, name: &str) -> Result<Json<Document>, Failure> {
    let name = id(name)?;
    let (answer, found) = find(asked, 0, &name, PAIRS).await?;
    let others: Vec<DocId> = answer.similar.iter().map(|similar| similar.id.clone()).collect();
    let Known { epoch: output_epoch, cluster, held: known } = known(asked, &name, others).await?;
    let pairs = answer.similar.iter().zip(known).map(|(similar, held)| {
        let held = held.filter(|held| held.similarity == similar.similarity);
        Paired {
            id: similar.id.to_string(),
            similarity: similar.similarity.get(),
            since: held.map(|held| held.since),
            cause: held.map(|held| held.cause.name()),
            evidence: Weighed::of(&asked.subject.pipeline, similar),
        }
    });
    Ok(Json(Document {
        id: name.to_string(),
        epoch: answer.epoch,
        changed: found.changed,
        position: At { partition: found.position.partition, offset: found.position.offset },
        ts: found.ts,
        output_epoch,
        cluster: cluster.map(|id| id.to_string()),
        pairs: pairs.collect(),
        more: answer.more,
    }))
}

/// The text of a document, read back from its source.
#[utoipa::path(get, path = "/documents/{id}/text", params(("id" = String, Path, description = "Percent-encoded.")),
    responses((status = 200, description = "The text.", body = Text), (status = 400, description = "That is no id.", body = Failure), (status = 404, description = "It is not alive.", body = Failure),
    (status = 410, description = "Its source has it no more.", body = Failure),
    (status = 501, description = "The source cannot give texts.", body = Failure),
    (status = 503, description = "The source cannot be read at this moment, or the run is not live yet.", body = Failure)))]
pub(super) async fn text(
    State(asked): State<Arc<Asked>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Text>, Failure> {
    let Path(name) = name.map_err(|error| Failure::wrong(error.body_text()))?;
    text_of(&asked, &name).await
}

/// The text of a document, read back from its source; for ids that a path cannot hold, as `..` is.
#[utoipa::path(get, path = "/document/text", params(One), responses((status = 200, description = "The text.", body = Text),
    (status = 400, description = "The query is wrong.", body = Failure), (status = 404, description = "It is not alive.", body = Failure),
    (status = 410, description = "Its source has it no more.", body = Failure),
    (status = 501, description = "The source cannot give texts.", body = Failure),
    (status = 503, description = "The source cannot be read at this moment, or the run is not live yet.", body = Failure)))]
pub(super) async fn text_by(
    State(asked): State<Arc<Asked>>,
    one: Result<Query<One>, QueryRejection>,
) -> Result<Json<Text>, Failure> {
    let Query(one) = one.map_err(|error| Failure::wrong(error.body_text()))?;
    text_of(&asked, &one.id).await
}

async fn text_of(asked: &Arc<Asked>, name: &str) -> Result<Json<Text>, Failure> {
    let name = id(name)?;
    let (answer, found) = find(asked, 0, &name, 0).await?;
    let (text, truncated) = read(asked, name.clone(), found.position).await?;
    Ok(Json(Text { id: name.to_string(), epoch: answer.epoch, text, truncated }))
}

/// Two documents side by side, with the passages that they have in common.
#[utoipa::path(get, path = "/compare", params(Two), responses((status = 200, description = "Both.", body = Comparison),
    (status = 400, description = "The query is wrong.", body = Failure),
    (status = 404, description = "One of them is not alive.", body = Failure), (status = 410, description = "A source has a text no more.", body = Failure),
    (status = 501, description = "The source cannot give texts.", body = Failure),
    (status = 503, description = "The source cannot be read at this moment, or the run is not live yet.", body = Failure)))]
pub(super) async fn compare(
    State(asked): State<Arc<Asked>>,
    two: Result<Query<Two>, QueryRejection>,
) -> Result<Json<Comparison>, Failure> {
    let Query(two) = two.map_err(|error| Failure::wrong(error.body_text()))?;
    let (a, b) = (id(&two.a)?, id(&two.b)?);
    let compare = asked.subject.compare.clone().ok_or_else(|| Failure::not_here("texts"))?;
    let Both { epoch, at_a, at_b, paired, held } = both(&asked, &a, &b).await?;
    let (text_a, _) = read(&asked, a.clone(), at_a.position).await?;
    let (text_b, _) = read(&asked, b.clone(), at_b.position).await?;
    let compared = asked.read_slowly(move || compare(&text_a, &text_b)).await?;
    let side = |name: &DocId, pieces: Vec<(String, Option<usize>)>| {
        let pieces = pieces.into_iter().map(|(text, passage)| Piece { text, passage });
        Side { id: name.to_string(), pieces: pieces.collect() }
    };
    Ok(Json(Comparison {
        epoch,
        a: side(&a, compared.a),
        b: side(&b, compared.b),
        shared_a: compared.shared.0,
        shared_b: compared.shared.1,
        similarity: paired.as_ref().map(|similar| similar.similarity.get()),
        exact: compared.exact,
        threshold: asked.subject.pipeline.threshold,
        evidence: paired.map(|similar| Weighed::of(&asked.subject.pipeline, &similar)),
        since: held.map(|held| held.since),
        cause: held.map(|held| held.cause.name()),
    }))
}

/// Asks the workers for a document, as this epoch or a later one has left it.
async fn find(asked: &Asked, after: Epoch, name: &DocId, top: usize) -> Result<(Answer, LastEvent), Failure> {
    let mut answer = ask_after(asked, after, query::Query::Document { id: name.clone(), top }).await?;
    let epoch = answer.epoch;
    let missing = || Failure::missing(format!("there is no document {name:?} alive after epoch {epoch}"));
    let found = answer.document.take().ok_or_else(missing)?;
    Ok((answer, found))
}

/// Where the text of a document stands.
pub(super) async fn whereabouts(asked: &Asked, name: &DocId) -> Result<Position, Failure> {
    Ok(find(asked, 0, name, 0).await?.1.position)
}

/// What the output holds of a document.
struct Known {
    /// After which epoch.
    epoch: Option<Epoch>,
    cluster: Option<DocId>,
    /// Of its pairs with others, in their order.
    held: Vec<Option<Held>>,
}

/// What the output holds of a document, and of its pairs with others: where there is a view that keeps pairs.
async fn known(asked: &Arc<Asked>, name: &DocId, others: Vec<DocId>) -> Result<Known, Failure> {
    let Ok(view) = asked.view() else {
        return Ok(Known { epoch: None, cluster: None, held: vec![None; others.len()] });
    };
    let name = name.clone();
    let read = move |seen: &View| Known {
        epoch: Some(seen.epoch()),
        cluster: seen.clusters(|history| history.cluster_of(&name).cloned()),
        held: seen.pairs(|_, pairs| others.iter().map(|other| pairs.get(&name, other)).collect()),
    };
    asked.see(view, read).await
}

/// Two documents, and their pair if they are one, as one epoch has left them.
struct Both {
    epoch: Epoch,
    at_a: LastEvent,
    at_b: LastEvent,
    paired: Option<SimilarDocument>,
    /// The same as it is in the output, where it is.
    held: Option<Held>,
}

/// Asks for both until neither has changed between the two answers. What holds of the second document at a
/// later epoch held at the first answer's epoch too, if the document's last event is not later than that; in
/// the same way what the output says of their pair.
async fn both(asked: &Arc<Asked>, a: &DocId, b: &DocId) -> Result<Both, Failure> {
    let mut top = PAIRS;
    for _ in 0..ATTEMPTS {
        let (answer, at_a) = find(asked, 0, a, top).await?;
        let (epoch, more) = (answer.epoch, answer.more);
        let (_, at_b) = find(asked, epoch, b, 0).await?;
        if at_b.changed.is_some_and(|changed| changed > epoch) {
            continue;
        }
        let Some(paired) = answer.similar.into_iter().find(|similar| similar.id == *b) else {
            if more == 0 {
                return Ok(Both { epoch, at_a, at_b, paired: None, held: None });
            }
            top = MANY;
            continue;
        };
        let reached = asked.reached(epoch).await;
        let held = known(asked, a, vec![b.clone()]).await?.held.into_iter().flatten().next();
        let held = held.filter(|held| reached && held.since <= epoch && held.similarity == paired.similarity);
        return Ok(Both { epoch, at_a, at_b, paired: Some(paired), held });
    }
    Err(Failure::busy(
        "the documents change faster than both can be read at one epoch, or have too many pairs",
        1,
    ))
}

impl Asked {
    /// Waits until the view is of this epoch or a later one, for a while; whether it is.
    async fn reached(&self, epoch: Epoch) -> bool {
        let Ok(view) = self.view() else { return false };
        let mut taken = view.taken();
        let reached = async {
            while view.epoch() < epoch {
                if taken.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout(DURABLE, reached).await.is_ok() && view.epoch() >= epoch
    }
}

/// Reads a text again.
pub(super) async fn read(
    asked: &Arc<Asked>,
    name: DocId,
    position: Position,
) -> Result<(String, bool), Failure> {
    let texts = asked.subject.texts.clone().ok_or_else(|| Failure::not_here("texts"))?;
    let shown = name.to_string();
    let found = asked.read_slowly(move || texts.text(&name, position)).await?;
    found.map_err(|why| match why {
        NoText::Gone(why) => Failure::new(StatusCode::GONE, format!("the text of {shown:?}: {why}")),
        NoText::Unsupported(why) => Failure::new(StatusCode::NOT_IMPLEMENTED, why),
        NoText::Failed(why) => Failure::busy(why, 5),
    })
}
