//! Routes of documents: one with its pairs, its text, and two of them compared.

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
use super::similar::{EvidenceAnswer, ask_after};
use super::{ErrorAnswer, RouteState};
use crate::View;
use crate::subject::TextUnavailable;
use crate::view::PairData;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::run::visit::{Answer, Found, Question, Similar};
use dupflow_core::time::Epoch;

/// Maximum number of pairs that an answer lists; the most similar ones.
const PAIRS: usize = 1000;

/// Maximum number of pairs that are searched for a given one.
const MANY: usize = 1 << 20;

/// How often two documents are read before they agree on an epoch.
const ATTEMPTS: usize = 8;

/// How long an answer waits until its epoch is durable.
const DURABLE: Duration = Duration::from_secs(1);

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
    similarity: f64,
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
    /// Whether the text was cut because of its length.
    truncated: bool,
}

/// A query for a document.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DocumentQuery {
    /// Its id.
    id: String,
}

/// A query for two documents.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CompareQuery {
    /// The id of the first document.
    a: String,
    /// The id of the second document.
    b: String,
}

/// Two documents compared.
#[derive(Serialize, ToSchema)]
#[schema(as = Comparison)]
pub(super) struct CompareAnswer {
    /// Everything here is of the corpus after this epoch.
    epoch: u64,
    a: ComparedText,
    b: ComparedText,
    /// The fraction of the tokens of each text that is in common passages.
    shared_a: f64,
    shared_b: f64,
    /// The similarity of the pair; null if they are not a pair.
    similarity: Option<f64>,
    /// The exact similarity of the texts, if they have one.
    exact: Option<f64>,
    /// Minimum similarity of a pair.
    threshold: f64,
    evidence: Option<EvidenceAnswer>,
    /// The epoch that added the pair with this similarity; null if that is unknown or not durable yet.
    since: Option<u64>,
    cause: Option<&'static str>,
}

/// One of the two texts.
#[derive(Serialize, ToSchema)]
#[schema(as = Side)]
struct ComparedText {
    id: String,
    /// The text in pieces; their concatenation is the text.
    pieces: Vec<ComparedPiece>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Piece)]
struct ComparedPiece {
    text: String,
    /// The number of the common passage, the same on both sides; null in other pieces.
    passage: Option<usize>,
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
    let KnownDocument { epoch: output_epoch, cluster, held: read_known } =
        read_known(state, &name, others).await?;
    let pairs = answer.similar.iter().zip(read_known).map(|(similar, held)| {
        let held = held.filter(|held| held.similarity == similar.similarity);
        PairedDocument {
            id: similar.id.to_string(),
            similarity: similar.similarity.get(),
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
    text_of(&state, &name).await
}

/// The text of a document, for ids that a path cannot contain, such as `..`.
#[utoipa::path(
    get, path = "/document/text",
    params(DocumentQuery),
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
    one: Result<Query<DocumentQuery>, QueryRejection>,
) -> Result<Json<TextAnswer>, ErrorAnswer> {
    let Query(one) = one.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    text_of(&state, &one.id).await
}

async fn text_of(state: &Arc<RouteState>, name: &str) -> Result<Json<TextAnswer>, ErrorAnswer> {
    let name = id(name)?;
    let (answer, found) = find(state, 0, &name, 0).await?;
    let (text, truncated) = read(state, name.clone(), found.position).await?;
    Ok(Json(TextAnswer { id: name.to_string(), epoch: answer.epoch, text, truncated }))
}

/// Two documents with the passages they have in common.
#[utoipa::path(
    get, path = "/compare",
    params(CompareQuery),
    responses(
        (status = 200, description = "Both.", body = CompareAnswer),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 404, description = "One of them is not alive.", body = ErrorAnswer),
        (status = 410, description = "A source has a text no more.", body = ErrorAnswer),
        (status = 501, description = "The source cannot give texts.", body = ErrorAnswer),
        (
            status = 503,
            description = "The source cannot be read at this moment, or the run is not live yet.",
            body = ErrorAnswer,
        ),
    ),
)]
pub(super) async fn compare(
    State(state): State<Arc<RouteState>>,
    two: Result<Query<CompareQuery>, QueryRejection>,
) -> Result<Json<CompareAnswer>, ErrorAnswer> {
    let Query(two) = two.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let (a, b) = (id(&two.a)?, id(&two.b)?);
    let compare = state.subject.compare.clone().ok_or_else(|| ErrorAnswer::not_here("texts"))?;
    let DocumentPair { epoch, at_a, at_b, paired, held } = find_both(&state, &a, &b).await?;
    let (text_a, _) = read(&state, a.clone(), at_a.position).await?;
    let (text_b, _) = read(&state, b.clone(), at_b.position).await?;
    let compared = state.read_slowly(move || compare(&text_a, &text_b)).await?;
    let side = |name: &DocId, pieces: Vec<(String, Option<usize>)>| {
        let pieces = pieces.into_iter().map(|(text, passage)| ComparedPiece { text, passage });
        ComparedText { id: name.to_string(), pieces: pieces.collect() }
    };
    Ok(Json(CompareAnswer {
        epoch,
        a: side(&a, compared.a),
        b: side(&b, compared.b),
        shared_a: compared.shared.0,
        shared_b: compared.shared.1,
        similarity: paired.as_ref().map(|similar| similar.similarity.get()),
        exact: compared.exact,
        threshold: state.subject.pipeline.threshold,
        evidence: paired.map(|similar| EvidenceAnswer::new(&state.subject.pipeline, &similar)),
        since: held.map(|held| held.since),
        cause: held.map(|held| held.cause.name()),
    }))
}

/// Queries a document as of epoch `after` or a later one.
async fn find(
    state: &RouteState,
    after: Epoch,
    name: &DocId,
    top: usize,
) -> Result<(Answer, Found), ErrorAnswer> {
    let mut answer = ask_after(state, after, Question::Document { id: name.clone(), top }).await?;
    let epoch = answer.epoch;
    let missing = || ErrorAnswer::missing(format!("there is no document {name:?} alive after epoch {epoch}"));
    let found = answer.document.take().ok_or_else(missing)?;
    Ok((answer, found))
}

/// The position of a document's text in its source.
pub(super) async fn position_of(state: &RouteState, name: &DocId) -> Result<Position, ErrorAnswer> {
    Ok(find(state, 0, name, 0).await?.1.position)
}

/// What the view holds of a document.
struct KnownDocument {
    /// The epoch of the view; `None` without a view that keeps pairs.
    epoch: Option<Epoch>,
    cluster: Option<DocId>,
    /// Its pairs with the given documents, in their order.
    held: Vec<Option<PairData>>,
}

/// Reads from the view a document's cluster and its pairs with `others`.
async fn read_known(
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

/// Two documents and their pair, if they are one, at the same epoch.
struct DocumentPair {
    epoch: Epoch,
    at_a: Found,
    at_b: Found,
    paired: Option<Similar>,
    /// The pair in the output, if it is there.
    held: Option<PairData>,
}

/// Queries both until neither has changed between the two answers. The second answer is of a later epoch. If
/// the last change of its document is not after the first answer's epoch, it also holds at that epoch. The
/// same applies to the pair in the output.
async fn find_both(state: &Arc<RouteState>, a: &DocId, b: &DocId) -> Result<DocumentPair, ErrorAnswer> {
    let mut top = PAIRS;
    for _ in 0..ATTEMPTS {
        let (answer, at_a) = find(state, 0, a, top).await?;
        let (epoch, more) = (answer.epoch, answer.more);
        let (_, at_b) = find(state, epoch, b, 0).await?;
        if at_b.changed.is_some_and(|changed| changed > epoch) {
            continue;
        }
        let Some(paired) = answer.similar.into_iter().find(|similar| similar.id == *b) else {
            if more == 0 {
                return Ok(DocumentPair { epoch, at_a, at_b, paired: None, held: None });
            }
            top = MANY;
            continue;
        };
        let reached = state.reached(epoch).await;
        let held = read_known(state, a, vec![b.clone()]).await?.held.into_iter().flatten().next();
        let held = held.filter(|held| reached && held.since <= epoch && held.similarity == paired.similarity);
        return Ok(DocumentPair { epoch, at_a, at_b, paired: Some(paired), held });
    }
    Err(ErrorAnswer::busy(
        "the documents change faster than both can be read at one epoch, or have too many pairs",
        1,
    ))
}

impl RouteState {
    /// Waits for the view to reach an epoch, for a limited time; returns whether it did.
    async fn reached(&self, epoch: Epoch) -> bool {
        let Ok(view) = self.view() else { return false };
        let mut applied = view.applied();
        let reached = async {
            while view.epoch() < epoch {
                if applied.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout(DURABLE, reached).await.is_ok() && view.epoch() >= epoch
    }
}

/// Reads a text again from its source.
pub(super) async fn read(
    state: &Arc<RouteState>,
    name: DocId,
    position: Position,
) -> Result<(String, bool), ErrorAnswer> {
    let texts = state.subject.texts.clone().ok_or_else(|| ErrorAnswer::not_here("texts"))?;
    let shown = name.to_string();
    let found = state.read_slowly(move || texts.text(&name, position)).await?;
    found.map_err(|why| match why {
        TextUnavailable::Gone(why) => {
            ErrorAnswer::new(StatusCode::GONE, format!("the text of {shown:?}: {why}"))
        }
        TextUnavailable::Unsupported(why) => ErrorAnswer::new(StatusCode::NOT_IMPLEMENTED, why),
        TextUnavailable::Failed(why) => ErrorAnswer::busy(why, 5),
    })
}
