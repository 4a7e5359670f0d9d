//! The route that compares two documents.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

use super::documents::{PAIRS, find, read, read_known};
use super::pairs::id;
use super::similar::EvidenceAnswer;
use super::{ErrorAnswer, RouteState};
use crate::view::PairDetails;
use dupflow_core::doc::DocId;
use dupflow_core::pair::SharesBeside;
use dupflow_core::time::Epoch;
use dupflow_run::query::{LastEvent, SimilarDocument};

/// Maximum number of pairs that are searched for a given one.
const MANY: usize = 1 << 20;

/// How often two documents are read before they agree on an epoch.
const ATTEMPTS: usize = 8;

/// How long an answer waits until its epoch is durable.
const DURABLE: Duration = Duration::from_secs(1);

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
    /// Whether the two texts are the same, character by character; false if one was cut because of its
    /// length.
    are_equal: bool,
    /// The fraction of the tokens of each text that is in common passages.
    shared_a: f64,
    shared_b: f64,
    /// The similarity of the pair; null if they are not a pair.
    similarity: Option<f64>,
    /// Of containment, if the two shares differ: the share of b's features that a has.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_a: Option<f64>,
    /// And the share of a's features that b has.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_b: Option<f64>,
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
    /// Where the text stands, in the words of its source; null if the source does not say.
    place: Option<String>,
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

/// Two documents with the passages they have in common.
#[utoipa::path(
    get, path = "/compare", tag = "documents",
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
    let text_a = read(&state, a.clone(), at_a.position).await?;
    let text_b = read(&state, b.clone(), at_b.position).await?;
    let places = (text_a.place, text_b.place);
    let are_equal = text_a.text == text_b.text && !(text_a.truncated || text_b.truncated);
    let compared = state.read_slowly(move || compare(&text_a.text, &text_b.text)).await?;
    let side = |name: &DocId, place, pieces: Vec<(String, Option<usize>)>| {
        let pieces = pieces.into_iter().map(|(text, passage)| ComparedPiece { text, passage });
        ComparedText { id: name.to_string(), place, pieces: pieces.collect() }
    };
    let shares = paired.as_ref().map(|similar| SharesBeside::new(similar.similarity)).unwrap_or_default();
    Ok(Json(CompareAnswer {
        epoch,
        a: side(&a, places.0, compared.a),
        b: side(&b, places.1, compared.b),
        are_equal,
        shared_a: compared.shared.0,
        shared_b: compared.shared.1,
        similarity: paired.as_ref().map(|similar| similar.similarity.get()),
        in_a: shares.of_id,
        in_b: shares.in_id,
        exact: compared.exact,
        threshold: state.subject.pipeline.threshold,
        evidence: paired.map(|similar| EvidenceAnswer::new(&state.subject.pipeline, &similar)),
        since: held.map(|held| held.since),
        cause: held.map(|held| held.cause.name()),
    }))
}

/// Two documents and their pair, if they are one, at the same epoch.
struct DocumentPair {
    epoch: Epoch,
    at_a: LastEvent,
    at_b: LastEvent,
    paired: Option<SimilarDocument>,
    /// The pair in the output, if it is there.
    held: Option<PairDetails>,
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
        // Held as that of the pair, whose first document may be b.
        let similarity = if a < b { paired.similarity } else { paired.similarity.flipped() };
        let held = held.filter(|held| reached && held.since <= epoch && held.similarity == similarity);
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
