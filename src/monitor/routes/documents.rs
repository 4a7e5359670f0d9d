//! A document: its pairs, its text, and two of them side by side.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::pairs::id;
use super::similar::{Weighed, ask};
use super::{Asked, Failure};
use crate::doc::{DocId, Position};
use crate::monitor::subject::NoText;
use crate::monitor::view::Held;
use crate::pair::Similarity;
use crate::visit::{Answer, Found, Question};

/// Pairs of a document that are told, the best ones.
const PAIRS: usize = 1000;

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
    /// The epoch that brought the pair with this similarity; null where that is not known, or not durable yet.
    since: Option<u64>,
    cause: Option<&'static str>,
    evidence: Weighed,
}

/// A text.
#[derive(Serialize, ToSchema)]
pub(super) struct Text {
    id: String,
    text: String,
    /// Whether it goes on, and is cut for its length.
    truncated: bool,
}

/// Two documents.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Two {
    a: String,
    b: String,
}

/// Two documents side by side.
#[derive(Serialize, ToSchema)]
pub(super) struct Comparison {
    a: Side,
    b: Side,
    /// The share of the tokens of each that is in common passages.
    shared_a: f64,
    shared_b: f64,
    /// That of the pair, if they are one.
    similarity: Option<f64>,
    /// That of the texts, if they have one.
    exact: Option<f64>,
    /// A pair has at least this.
    threshold: f64,
    /// Of a pair that is among the thousand most similar ones of the first document.
    evidence: Option<Weighed>,
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
    responses((status = 200, body = Document), (status = 404, description = "It is not alive.", body = Failure),
    (status = 503, description = "Too many questions are under way, or the run ends.", body = Failure)))]
pub(super) async fn document(
    State(asked): State<Arc<Asked>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Document>, Failure> {
    let Path(name) = name.map_err(|error| Failure::wrong(error.body_text()))?;
    let name = id(&name)?;
    let (answer, found) = find(&asked, &name, PAIRS).await?;
    let others: Vec<DocId> = answer.similar.iter().map(|similar| similar.id.clone()).collect();
    let (cluster, known) = known(&asked, &name, others).await?;
    let pairs = answer.similar.iter().zip(known).map(|(similar, held)| Paired {
        id: similar.id.to_string(),
        similarity: similar.similarity.get(),
        since: held.map(|held| held.since),
        cause: held.map(|held| held.cause.name()),
        evidence: Weighed::of(&asked.subject.pipeline, similar),
    });
    Ok(Json(Document {
        id: name.to_string(),
        epoch: answer.epoch,
        changed: found.changed,
        position: At { partition: found.position.partition, offset: found.position.offset },
        ts: found.ts,
        cluster: cluster.map(|id| id.to_string()),
        pairs: pairs.collect(),
        more: answer.more,
    }))
}

/// The text of a document, read back from its source.
#[utoipa::path(get, path = "/documents/{id}/text", params(("id" = String, Path, description = "Percent-encoded.")),
    responses((status = 200, body = Text), (status = 404, description = "It is not alive.", body = Failure),
    (status = 410, description = "Its source has it no more.", body = Failure),
    (status = 501, description = "The source cannot give texts.", body = Failure),
    (status = 503, description = "The source cannot be read at this moment.", body = Failure)))]
pub(super) async fn text(
    State(asked): State<Arc<Asked>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Text>, Failure> {
    let Path(name) = name.map_err(|error| Failure::wrong(error.body_text()))?;
    let name = id(&name)?;
    let (_, found) = find(&asked, &name, 0).await?;
    let (text, truncated) = read(&asked, name.clone(), found.position).await?;
    Ok(Json(Text { id: name.to_string(), text, truncated }))
}

/// Two documents side by side, with the passages that they have in common.
#[utoipa::path(get, path = "/compare", params(Two), responses((status = 200, body = Comparison), (status = 400, body = Failure),
    (status = 404, description = "One of them is not alive.", body = Failure), (status = 410, description = "A source has a text no more.", body = Failure),
    (status = 501, description = "The source cannot give texts.", body = Failure),
    (status = 503, description = "The source cannot be read at this moment.", body = Failure)))]
pub(super) async fn compare(
    State(asked): State<Arc<Asked>>,
    two: Result<Query<Two>, QueryRejection>,
) -> Result<Json<Comparison>, Failure> {
    let Query(two) = two.map_err(|error| Failure::wrong(error.body_text()))?;
    let (a, b) = (id(&two.a)?, id(&two.b)?);
    let compare = asked.subject.compare.clone().ok_or_else(|| Failure::not_here("texts"))?;
    let (answer, at_a) = find(&asked, &a, PAIRS).await?;
    let (_, at_b) = find(&asked, &b, 0).await?;
    let (text_a, _) = read(&asked, a.clone(), at_a.position).await?;
    let (text_b, _) = read(&asked, b.clone(), at_b.position).await?;
    let compared = asked.read_slowly(move || compare(&text_a, &text_b)).await?;
    let paired = answer.similar.iter().find(|similar| similar.id == b);
    let (_, known) = known(&asked, &a, vec![b.clone()]).await?;
    let held = known.into_iter().flatten().next();
    let side = |name: &DocId, pieces: Vec<(String, Option<usize>)>| {
        let pieces = pieces.into_iter().map(|(text, passage)| Piece { text, passage });
        Side { id: name.to_string(), pieces: pieces.collect() }
    };
    Ok(Json(Comparison {
        a: side(&a, compared.a),
        b: side(&b, compared.b),
        shared_a: compared.shared.0,
        shared_b: compared.shared.1,
        similarity: paired
            .map(|similar| similar.similarity)
            .or(held.map(|held| held.similarity))
            .map(Similarity::get),
        exact: compared.exact,
        threshold: asked.subject.pipeline.threshold,
        evidence: paired.map(|similar| Weighed::of(&asked.subject.pipeline, similar)),
        since: held.map(|held| held.since),
        cause: held.map(|held| held.cause.name()),
    }))
}

/// Asks the workers for a document.
async fn find(asked: &Asked, name: &DocId, top: usize) -> Result<(Answer, Found), Failure> {
    let mut answer = ask(asked, Question::Document { id: name.clone(), top }).await?;
    let missing = || Failure::missing(format!("there is no document {name:?} alive"));
    let found = answer.document.take().ok_or_else(missing)?;
    Ok((answer, found))
}

/// The cluster of a document, and what is known of its pairs with others: where there is a view that keeps pairs.
async fn known(
    asked: &Arc<Asked>,
    name: &DocId,
    others: Vec<DocId>,
) -> Result<(Option<DocId>, Vec<Option<Held>>), Failure> {
    let Ok(view) = asked.view() else { return Ok((None, vec![None; others.len()])) };
    let name = name.clone();
    asked
        .read(move || {
            let cluster = view.clusters(|_, history| history.cluster_of(&name).cloned());
            let held = view.pairs(|_, pairs| others.iter().map(|other| pairs.get(&name, other)).collect());
            (cluster, held)
        })
        .await
}

/// Reads a text again.
async fn read(asked: &Arc<Asked>, name: DocId, position: Position) -> Result<(String, bool), Failure> {
    let texts = asked.subject.texts.clone().ok_or_else(|| Failure::not_here("texts"))?;
    let shown = name.to_string();
    let found = asked.read_slowly(move || texts.text(&name, position)).await?;
    found.map_err(|why| match why {
        NoText::Gone(why) => Failure::new(StatusCode::GONE, format!("the text of {shown:?}: {why}")),
        NoText::Unsupported(why) => Failure::new(StatusCode::NOT_IMPLEMENTED, why),
        NoText::Failed(why) => Failure::busy(why, 5),
    })
}
