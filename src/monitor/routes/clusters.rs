//! Routes of clusters: pages of them, and single ones.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::export::{ListCell, ListExport, ListFormat, ListRow, ROWS, check_whole};
use super::pairs::{decode, encode, id, limit, no_cursor};
use super::{ErrorAnswer, RouteState};
use crate::View;
use crate::cluster_history::{
    ClusterCursor, ClusterEnd, ClusterEvent, ClusterOrder, EndedCluster, LiveCluster,
};
use dupflow_core::doc::DocId;

/// Default numbers of clusters and of members on a page, and the maximum of both.
const CLUSTERS: usize = 50;
const MEMBERS: usize = 100;
const MOST: usize = 1000;

/// Maximum number of members among which the centre is looked for: each is looked up beside each other.
const CENTRAL: usize = 200;

/// A query for a page of clusters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ClustersQuery {
    /// `size`: largest first; `recent`: last changed first. Default `size`.
    order: Option<OrderText>,
    /// The value of `next` of the previous page.
    after: Option<String>,
    /// Maximum number of clusters on the page, 1 to 1000; default 50.
    limit: Option<usize>,
    /// `csv` or `jsonl`: all of them as a file. Default: that of the header `Accept`, else `json`, a page.
    format: Option<ListFormat>,
}

/// The order of clusters.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OrderText {
    #[default]
    Size,
    Recent,
}

/// A query for members of a cluster.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct MembersQuery {
    /// The value of `next` of the previous page.
    after: Option<String>,
    /// Maximum number of members on the page, 1 to 1000; default 100.
    limit: Option<usize>,
}

/// A query for a cluster and its members.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ClusterQuery {
    /// Its name.
    id: String,
    /// The value of `next` of the previous page.
    after: Option<String>,
    /// Maximum number of members on the page, 1 to 1000; default 100.
    limit: Option<usize>,
}

/// A page of clusters.
#[derive(Serialize, ToSchema)]
#[schema(as = ClustersPage)]
pub(super) struct ClusterPage {
    /// The clusters are those after this epoch.
    epoch: u64,
    clusters: Vec<ClusterSummary>,
    /// The cursor of the next page; null on the last page.
    next: Option<String>,
    /// The epoch at which the history begins: what was there then may be older.
    history_begins: u64,
}

/// A cluster.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterShown)]
pub(super) struct ClusterSummary {
    /// Its name: the smallest member, or the centre of a star.
    cluster: String,
    /// Number of members.
    size: usize,
    /// Whether it is above the size limit: its members are not listed.
    giant: bool,
    /// The epoch in which the cluster first appeared, under this name or another one.
    born: u64,
    /// When that epoch was committed, in unix seconds; null if that is not known.
    born_at: Option<u64>,
    /// The epoch of its last change.
    changed: u64,
    /// When that epoch was committed, in unix seconds; null if that is not known.
    changed_at: Option<u64>,
}

/// A cluster with its members.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterWhole)]
pub(super) struct ClusterAnswer {
    /// The cluster is as it was after this epoch.
    epoch: u64,
    #[serde(flatten)]
    cluster: ClusterSummary,
    /// Some of its members, in byte order; none of a giant.
    members: Vec<String>,
    /// Of its first two hundred members, the one that forms a pair with the most of them; of several the
    /// first in byte order. Null for a giant.
    centre: Option<String>,
    /// The similarity of each listed member and the centre; null if the two are not a pair, and for the
    /// centre itself.
    similarities: Vec<Option<f64>>,
    /// The cursor of the next page of members; null on the last page.
    next: Option<String>,
    /// Its first event and its last ones.
    history: Vec<ClusterEventBody>,
}

/// A change of a cluster.
#[derive(Serialize, ToSchema)]
#[schema(as = Happened)]
struct ClusterEventBody {
    epoch: u64,
    /// When that epoch was committed, in unix seconds; null if that is not known.
    at: Option<u64>,
    /// The greatest time of the events of that epoch, in unix seconds; null if that is not known.
    event_time: Option<u64>,
    /// `born`, `renamed`, `merged`, `split`, `grew` or `shrank`.
    event: &'static str,
    /// Number of members after the epoch.
    size: usize,
    /// Other clusters in the event, at most sixteen.
    others: Vec<String>,
    /// How many more there are.
    more: usize,
}

impl ClusterSummary {
    fn new(cluster: &LiveCluster<'_>) -> Self {
        Self {
            cluster: cluster.cluster.to_string(),
            size: cluster.size,
            giant: cluster.giant,
            born: cluster.born,
            born_at: cluster.born_at.committed(),
            changed: cluster.changed,
            changed_at: cluster.changed_at.committed(),
        }
    }
}

impl ClusterEventBody {
    fn new(event: &ClusterEvent) -> Self {
        Self {
            epoch: event.epoch,
            at: event.times.committed(),
            event_time: event.times.event(),
            event: event.kind.name(),
            size: event.size,
            others: event.others.iter().map(ToString::to_string).collect(),
            more: event.more,
        }
    }
}

/// Clusters by size or by their last change.
#[utoipa::path(
    get, path = "/clusters",
    params(ClustersQuery),
    responses(
        (
            status = 200,
            description = "A page of them; with `format` all of them as a file.",
            content(
                (ClusterPage = "application/json"), (String = "text/csv"), (String = "application/x-ndjson"),
            ),
        ),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 501, description = "Clusters are not kept.", body = ErrorAnswer),
        (status = 503, description = "The run is not live yet.", body = ErrorAnswer),
    ),
)]
pub(super) async fn clusters(
    State(state): State<Arc<RouteState>>,
    which: Result<Query<ClustersQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ErrorAnswer> {
    let Query(which) = which.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let file = ListFormat::of_file(which.format, &headers);
    check_whole(file.is_some() && (which.after.is_some() || which.limit.is_some()))?;
    let order = match which.order.unwrap_or_default() {
        OrderText::Size => ClusterOrder::Size,
        OrderText::Recent => ClusterOrder::Recent,
    };
    let after = which.after.as_deref().map(|text| {
        let [cursor] = decode(text).ok_or_else(no_cursor)?;
        cursor.parse::<ClusterCursor>().map_err(|_| no_cursor())
    });
    let after = after.transpose()?;
    let limit = limit(which.limit, CLUSTERS, MOST)?;
    if let Some(format) = file {
        return export_clusters(order, format).answer(&state, state.view()?);
    }
    let read = move |view: &View| {
        view.clusters(|history| {
            let (found, next) = history.page(order, after.as_ref(), limit);
            let next = next.map(|cursor| encode(&[&cursor.to_string()]));
            Json(ClusterPage {
                epoch: view.epoch(),
                clusters: found.iter().map(ClusterSummary::new).collect(),
                next,
                history_begins: view.history().meta.begins,
            })
            .into_response()
        })
    };
    state.read_view(state.view()?, read).await
}

/// All clusters in an order. A cluster that changes meanwhile may be there twice or not at all.
fn export_clusters(
    order: ClusterOrder,
    format: ListFormat,
) -> ListExport<impl FnMut(&View) -> (Vec<ListRow>, bool) + Send + 'static> {
    let mut after = None;
    let read = move |view: &View| {
        view.clusters(|history| {
            let (found, next) = history.page(order, after.as_ref(), ROWS);
            after = next;
            let row = |cluster: &LiveCluster<'_>| {
                let summary = ClusterSummary::new(cluster);
                vec![
                    ListCell::Text(summary.cluster),
                    ListCell::Whole(summary.size as u64),
                    ListCell::Truth(summary.giant),
                    ListCell::Whole(summary.born),
                    ListCell::optional(summary.born_at),
                    ListCell::Whole(summary.changed),
                    ListCell::optional(summary.changed_at),
                ]
            };
            (found.iter().map(row).collect(), after.is_none())
        })
    };
    const COLUMNS: &[&str] = &["cluster", "size", "giant", "born", "born_at", "changed", "changed_at"];
    ListExport { name: "clusters", columns: COLUMNS, format, read }
}

/// A cluster by its name.
#[utoipa::path(
    get, path = "/clusters/{id}",
    params(("id" = String, Path, description = "Its name, percent-encoded."), MembersQuery),
    responses(
        (status = 200, description = "The cluster.", body = ClusterAnswer),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (
            status = 404,
            description = "There is none; the line says what became of it, if that is remembered.",
            body = ErrorAnswer,
        ),
        (status = 501, description = "Clusters are not kept.", body = ErrorAnswer),
        (status = 503, description = "The run is not live yet.", body = ErrorAnswer),
    ),
)]
pub(super) async fn cluster(
    State(state): State<Arc<RouteState>>,
    name: Result<Path<String>, PathRejection>,
    which: Result<Query<MembersQuery>, QueryRejection>,
) -> Result<Json<ClusterAnswer>, ErrorAnswer> {
    let Path(name) = name.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let Query(which) = which.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    cluster_of(&state, &name, which).await
}

/// A cluster by its name, for names that a path cannot contain, such as `..`.
#[utoipa::path(
    get, path = "/cluster",
    params(ClusterQuery),
    responses(
        (status = 200, description = "The cluster.", body = ClusterAnswer),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (
            status = 404,
            description = "There is none; the line says what became of it, if that is remembered.",
            body = ErrorAnswer,
        ),
        (status = 501, description = "Clusters are not kept.", body = ErrorAnswer),
        (status = 503, description = "The run is not live yet.", body = ErrorAnswer),
    ),
)]
pub(super) async fn cluster_by(
    State(state): State<Arc<RouteState>>,
    which: Result<Query<ClusterQuery>, QueryRejection>,
) -> Result<Json<ClusterAnswer>, ErrorAnswer> {
    let Query(ClusterQuery { id, after, limit }) =
        which.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    cluster_of(&state, &id, MembersQuery { after, limit }).await
}

async fn cluster_of(
    state: &Arc<RouteState>,
    name: &str,
    which: MembersQuery,
) -> Result<Json<ClusterAnswer>, ErrorAnswer> {
    let name = id(name)?;
    let after = which.after.as_deref().map(|text| {
        let [after] = decode(text).ok_or_else(no_cursor)?;
        id(&after)
    });
    let after = after.transpose()?;
    let limit = limit(which.limit, MEMBERS, MOST)?;
    let read = move |view: &View| {
        let epoch = view.epoch();
        let first: Vec<DocId> = view.clusters(|history| history.members(&name, None, CENTRAL).0.to_vec());
        let centre = centre(view, &first);
        view.clusters(|history| {
            let cluster = history.cluster(&name);
            let cluster = cluster.ok_or_else(|| ErrorAnswer::missing(missing(history.ended(&name))))?;
            let (found, goes_on) = history.members(&name, after.as_ref(), limit);
            let similarity = |member: &DocId| {
                let held =
                    centre.as_ref().and_then(|centre| view.pairs(|_, pairs| pairs.get(centre, member)));
                held.map(|held| held.similarity.get())
            };
            Ok(Json(ClusterAnswer {
                epoch,
                similarities: found.iter().map(similarity).collect(),
                centre: centre.as_ref().map(ToString::to_string),
                cluster: ClusterSummary::new(&cluster),
                members: found.iter().map(ToString::to_string).collect(),
                next: found.last().filter(|_| goes_on).map(|last| encode(&[last.as_str()])),
                history: history.events(&name).iter().map(ClusterEventBody::new).collect(),
            }))
        })
    };
    state.read_view(state.view()?, read).await?
}

/// The member that forms a pair with the most of these members, which are sorted.
fn centre(view: &View, members: &[DocId]) -> Option<DocId> {
    let pairs_of = |document: &DocId| {
        view.pairs(|_, pairs| members.iter().filter(|other| pairs.get(document, other).is_some()).count())
    };
    members.iter().rev().max_by_key(|member| pairs_of(member)).cloned()
}

/// The message for a cluster that does not exist.
fn missing(ended: Option<&EndedCluster>) -> String {
    match ended {
        None => "there is no such cluster".to_owned(),
        Some(EndedCluster { epoch, how: ClusterEnd::Renamed(name), .. }) => {
            format!("in epoch {epoch} the cluster took another name: {:?}", name.as_str())
        }
        Some(EndedCluster { epoch, how: ClusterEnd::Merged(name), .. }) => {
            format!("in epoch {epoch} the cluster merged into another one: {:?}", name.as_str())
        }
        Some(EndedCluster { epoch, how: ClusterEnd::Dissolved, .. }) => {
            format!("the cluster dissolved in epoch {epoch}")
        }
    }
}
