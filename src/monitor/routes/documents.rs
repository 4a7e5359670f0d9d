//! Routes of documents: one with its pairs, and its text.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::pairs::id;
use super::similar::{EvidenceAnswer, ask_after};
use super::{ErrorAnswer, RouteState};
use crate::View;
use crate::subject::{ReadText, TextReader, TextUnavailable};
use crate::view::PairDetails;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::pair::SharesBeside;
use dupflow_core::time::Epoch;
use dupflow_run::query::{self, Answer, LastEvent};

/// Maximum number of pairs that an answer lists; the most similar ones.
pub(super) const PAIRS: usize = 1000;

/// A live document.
#[derive(Serialize, ToSchema)]
#[schema(as = Document)]
pub(super) struct DocumentAnswer {
    id: String,
    /// The answer is of the corpus after this epoch.
    epoch: u64,
    /// The epoch of its last change; null if it was before this run.
    changed: Option<u64>,
    position: TextPosition,
    /// Unix seconds, if the source has them.
    ts: Option<f64>,
    /// `cluster`, and `since` and `cause` of pairs, are of the output after this epoch; null if pairs are not
    /// kept.
    output_epoch: Option<u64>,
    /// Its cluster, unless that is a giant.
    cluster: Option<String>,
    /// The documents with which it forms a pair, most similar first.
    pairs: Vec<PairedDocument>,
    /// How many more pairs there are.
    more: usize,
}

/// The position of a text in its source.
#[derive(Serialize, ToSchema)]
#[schema(as = At)]
struct TextPosition {
    partition: u32,
    offset: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Paired)]
struct PairedDocument {
    id: String,
    /// True if it is a document of the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<bool>,
    similarity: f64,
    /// Of containment, if the two shares differ: the share of the features of the document asked for that
    /// this one has.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_id: Option<f64>,
    /// And the share of this one's features that the document asked for has.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_id: Option<f64>,
    /// The epoch that added the pair with this similarity; null if that is unknown or not durable yet.
    since: Option<u64>,
    cause: Option<&'static str>,
    evidence: EvidenceAnswer,
}

/// A text.
#[derive(Serialize, ToSchema)]
#[schema(as = Text)]
pub(super) struct TextAnswer {
    id: String,
    /// The text is the current one after this epoch.
    epoch: u64,
    text: String,
    /// Whether the text was cut because of its length, or at `most`.
    truncated: bool,
    /// Where the text stands, in the words of its source: a file and its line or row, a topic with partition
    /// and offset, a table; null if the source does not say.
    place: Option<String>,
}

/// A query for a document.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DocumentQuery {
    /// Its id.
    id: String,
}

/// A query for the text of a document.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TextQuery {
    /// Its id.
    id: String,
    /// Maximum number of characters of the text; default: all of it.
    most: Option<usize>,
}

/// A document and its pairs.
#[utoipa::path(
    get, path = "/documents/{id}",
    params(("id" = String, Path, description = "Percent-encoded.")),
    responses(
        (status = 200, description = "The document.", body = DocumentAnswer),
        (status = 400, description = "That is no id.", body = ErrorAnswer),
        (status = 404, description = "It is not alive.", body = ErrorAnswer),
        (
            status = 503,
            description = "Too many questions are under way, the run is not live yet, or it ends.",
            body = ErrorAnswer,
        ),
    ),
)]
pub(super) async fn document(
    State(state): State<Arc<RouteState>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<DocumentAnswer>, ErrorAnswer> {
    let Path(name) = name.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    document_of(&state, &name).await
}

/// A document and its pairs, for ids that a path cannot contain, such as `..`.
#[utoipa::path(
    get, path = "/document",
    params(DocumentQuery),
    responses(
        (status = 200, description = "The document.", body = DocumentAnswer),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 404, description = "It is not alive.", body = ErrorAnswer),
        (
            status = 503,
            description = "Too many questions are under way, the run is not live yet, or it ends.",
            body = ErrorAnswer,
        ),
    ),
)]
pub(super) async fn document_by(
    State(state): State<Arc<RouteState>>,
    one: Result<Query<DocumentQuery>, QueryRejection>,
) -> Result<Json<DocumentAnswer>, ErrorAnswer> {
    let Query(one) = one.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    document_of(&state, &one.id).await
}

async fn document_of(state: &Arc<RouteState>, name: &str) -> Result<Json<DocumentAnswer>, ErrorAnswer> {
    let name = id(name)?;
    let (answer, found) = find(state, 0, &name, PAIRS).await?;
    let others: Vec<DocId> = answer.similar.iter().map(|similar| similar.id.clone()).collect();
    let KnownDocument { epoch: output_epoch, cluster, held } = read_known(state, &name, others).await?;
    let pairs = answer.similar.iter().zip(held).map(|(similar, held)| {
        // Held as that of the pair; its first document may be the other one.
        let is_held = |known: &PairDetails| {
            [known.similarity, known.similarity.flipped()].contains(&similar.similarity)
        };
        let held = held.filter(is_held);
        let SharesBeside { in_id, of_id } = SharesBeside::new(similar.similarity);
        let (id, old) = similar.id.shown(state.subject.pipeline.has_reference);
        PairedDocument {
            id: id.to_owned(),
            old,
            similarity: similar.similarity.get(),
            in_id,
            of_id,
            since: held.map(|held| held.since),
            cause: held.map(|held| held.cause.name()),
            evidence: EvidenceAnswer::new(&state.subject.pipeline, similar),
        }
    });
    Ok(Json(DocumentAnswer {
        id: name.to_string(),
        epoch: answer.epoch,
        changed: found.changed,
        position: TextPosition { partition: found.position.partition, offset: found.position.offset },
        ts: found.ts,
        output_epoch,
        cluster: cluster.map(|id| id.to_string()),
        pairs: pairs.collect(),
        more: answer.more,
    }))
}

/// The text of a document, read again from its source.
#[utoipa::path(
    get, path = "/documents/{id}/text",
    params(("id" = String, Path, description = "Percent-encoded.")),
    responses(
        (status = 200, description = "The text.", body = TextAnswer),
        (status = 400, description = "That is no id.", body = ErrorAnswer),
        (status = 404, description = "It is not alive.", body = ErrorAnswer),
        (status = 410, description = "Its source has it no more.", body = ErrorAnswer),
        (status = 501, description = "The source cannot give texts.", body = ErrorAnswer),
        (
            status = 503,
            description = "The source cannot be read at this moment, or the run is not live yet.",
            body = ErrorAnswer,
        ),
    ),
)]
pub(super) async fn text(
    State(state): State<Arc<RouteState>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<TextAnswer>, ErrorAnswer> {
    let Path(name) = name.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    text_of(&state, &name, None).await
}

/// The text of a document, for ids that a path cannot contain, such as `..`.
#[utoipa::path(
    get, path = "/document/text",
    params(TextQuery),
    responses(
        (status = 200, description = "The text.", body = TextAnswer),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 404, description = "It is not alive.", body = ErrorAnswer),
        (status = 410, description = "Its source has it no more.", body = ErrorAnswer),
        (status = 501, description = "The source cannot give texts.", body = ErrorAnswer),
        (
            status = 503,
            description = "The source cannot be read at this moment, or the run is not live yet.",
            body = ErrorAnswer,
        ),
    ),
)]
pub(super) async fn text_by(
    State(state): State<Arc<RouteState>>,
    one: Result<Query<TextQuery>, QueryRejection>,
) -> Result<Json<TextAnswer>, ErrorAnswer> {
    let Query(one) = one.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    text_of(&state, &one.id, one.most).await
}

async fn text_of(
    state: &Arc<RouteState>,
    name: &str,
    most: Option<usize>,
) -> Result<Json<TextAnswer>, ErrorAnswer> {
    let name = id(name)?;
    let (answer, found) = find(state, 0, &name, 0).await?;
    let ReadText { mut text, mut truncated, place } = read(state, name.clone(), found.position).await?;
    if let Some((end, _)) = most.and_then(|most| text.char_indices().nth(most)) {
        text.truncate(end);
        truncated = true;
    }
    Ok(Json(TextAnswer { id: name.to_string(), epoch: answer.epoch, text, truncated, place }))
}

/// Asks the workers for a live document with at most `top` of its pairs, as of epoch `after` or a later one.
pub(super) async fn find(
    state: &RouteState,
    after: Epoch,
    name: &DocId,
    top: usize,
) -> Result<(Answer, LastEvent), ErrorAnswer> {
    let mut answer = ask_after(state, after, query::Query::Document { id: name.clone(), top }).await?;
    let epoch = answer.epoch;
    let missing = || ErrorAnswer::missing(format!("there is no document {name:?} alive after epoch {epoch}"));
    let found = answer.document.take().ok_or_else(missing)?;
    Ok((answer, found))
}

/// The position of a document's text in its source.
pub(super) async fn position_of(state: &RouteState, name: &DocId) -> Result<Position, ErrorAnswer> {
    Ok(find(state, 0, name, 0).await?.1.position)
}

/// A document's cluster and pairs, as the view holds them.
pub(super) struct KnownDocument {
    /// The epoch of the view; `None` without a view that keeps pairs.
    pub(super) epoch: Option<Epoch>,
    pub(super) cluster: Option<DocId>,
    /// Its pairs with the given documents, in their order.
    pub(super) held: Vec<Option<PairDetails>>,
}

/// Reads from the view a document's cluster and its pairs with `others`.
pub(super) async fn read_known(
    state: &Arc<RouteState>,
    name: &DocId,
    others: Vec<DocId>,
) -> Result<KnownDocument, ErrorAnswer> {
    let Ok(view) = state.view() else {
        return Ok(KnownDocument { epoch: None, cluster: None, held: vec![None; others.len()] });
    };
    let name = name.clone();
    let read = move |seen: &View| KnownDocument {
        epoch: Some(seen.epoch()),
        cluster: seen.clusters(|history| history.cluster_of(&name).cloned()),
        held: seen.pairs(|_, pairs| others.iter().map(|other| pairs.get(&name, other)).collect()),
    };
    state.read_view(view, read).await
}

/// Reads a text again from its source.
pub(super) async fn read(
    state: &Arc<RouteState>,
    name: DocId,
    position: Position,
) -> Result<ReadText, ErrorAnswer> {
    let texts = texts(state)?;
    let shown = name.to_string();
    let found = state.read_slowly(move || texts.text(&name, position)).await?;
    found.map_err(|why| unavailable(&shown, why))
}

/// The text of a live document as its record holds it.
pub(super) async fn read_record(state: &Arc<RouteState>, name: DocId) -> Result<ReadText, ErrorAnswer> {
    let texts = texts(state)?;
    let position = position_of(state, &name).await?;
    let shown = name.to_string();
    let found = state.read_slowly(move || texts.record_text(&name, position)).await?;
    found.map_err(|why| unavailable(&shown, why))
}

fn texts(state: &RouteState) -> Result<Arc<dyn TextReader>, ErrorAnswer> {
    state.subject.texts.clone().ok_or_else(|| ErrorAnswer::not_here("texts"))
}

/// The answer where the text of a document cannot be read.
fn unavailable(name: &str, why: TextUnavailable) -> ErrorAnswer {
    match why {
        TextUnavailable::Gone(why) => {
            ErrorAnswer::new(StatusCode::GONE, format!("the text of {name:?}: {why}"))
        }
        TextUnavailable::Unsupported(why) => ErrorAnswer::new(StatusCode::NOT_IMPLEMENTED, why),
        TextUnavailable::Failed(why) => ErrorAnswer::busy(why, 5),
    }
}
