//! Clusters, page by page, and one of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::pairs::{decode, encode, id, limit, no_cursor};
use super::{Asked, Failure};
use crate::View;
use dupflow_core::cluster::history::{
    ClusterCursor, ClusterEnd, ClusterEvent, ClusterOrder, EndedCluster, LiveCluster,
};

/// Clusters on a page, unless it says how many; members, and the most of both.
const CLUSTERS: usize = 50;
const MEMBERS: usize = 100;
const MOST: usize = 1000;

/// Which clusters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// `size`: the largest first, or `recent`: those that changed last first. `size` if absent.
    order: Option<OrderText>,
    /// `next` of the page before.
    after: Option<String>,
    /// Most clusters on the page, from 1 to 1000; 50 if absent.
    limit: Option<usize>,
}

/// By what clusters are ordered.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OrderText {
    #[default]
    Size,
    Recent,
}

/// Which members.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Members {
    /// `next` of the page before.
    after: Option<String>,
    /// Most members on the page, from 1 to 1000; 100 if absent.
    limit: Option<usize>,
}

/// Which cluster, and which members of it.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Named {
    /// Its name.
    id: String,
    /// `next` of the page before.
    after: Option<String>,
    /// Most members on the page, from 1 to 1000; 100 if absent.
    limit: Option<usize>,
}

/// Some clusters.
#[derive(Serialize, ToSchema)]
#[schema(as = ClustersPage)]
pub(super) struct Page {
    /// The page is of the clusters after this epoch.
    epoch: u64,
    clusters: Vec<Shown>,
    /// Where the next page begins; null if this is the last one.
    next: Option<String>,
}

/// A cluster.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterShown)]
pub(super) struct Shown {
    /// Its smallest member, or the centre of a star.
    cluster: String,
    /// Documents in it.
    size: usize,
    /// Whether it is too large for its members to be told.
    giant: bool,
    /// The epoch since which there is a cluster of this name.
    born: u64,
    /// The epoch of its last change.
    changed: u64,
}

/// A cluster with its members.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterWhole)]
pub(super) struct Whole {
    /// The answer is of the clusters after this epoch.
    epoch: u64,
    #[serde(flatten)]
    cluster: Shown,
    /// Some of its members, in the order of bytes; none of a giant.
    members: Vec<String>,
    /// Where the next page of members begins; null if this is the last one.
    next: Option<String>,
    /// What happened to it: its birth, and the last changes.
    history: Vec<Happened>,
}

/// A change of a cluster.
#[derive(Serialize, ToSchema)]
struct Happened {
    epoch: u64,
    /// `born`, `renamed`, `merged`, `split`, `grew` or `shrank`.
    event: &'static str,
    /// Documents in it after the epoch.
    size: usize,
    /// Other clusters in it, at most sixteen.
    others: Vec<String>,
    /// Further ones.
    more: usize,
}

impl Shown {
    fn of(cluster: &LiveCluster<'_>) -> Self {
        Self {
            cluster: cluster.cluster.to_string(),
            size: cluster.size,
            giant: cluster.giant,
            born: cluster.born,
            changed: cluster.changed,
        }
    }
}

impl Happened {
    fn of(event: &ClusterEvent) -> Self {
        Self {
            epoch: event.epoch,
            event: event.kind.name(),
            size: event.size,
            others: event.others.iter().map(ToString::to_string).collect(),
            more: event.more,
        }
    }
}

/// Clusters by their size or by when they changed.
#[utoipa::path(get, path = "/clusters", params(Which), responses((status = 200, description = "A page of them.", body = Page),
    (status = 400, description = "The query is wrong.", body = Failure), (status = 501, description = "Clusters are not kept.", body = Failure),
    (status = 503, description = "The run is not live yet.", body = Failure)))]
pub(super) async fn clusters(
    State(asked): State<Arc<Asked>>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Page>, Failure> {
    let Query(which) = which.map_err(|error| Failure::wrong(error.body_text()))?;
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
    let read = move |view: &View| {
        view.clusters(|history| {
            let (found, next) = history.page(order, after.as_ref(), limit);
            let next = next.map(|cursor| encode(&[&cursor.to_string()]));
            Json(Page { epoch: view.epoch(), clusters: found.iter().map(Shown::of).collect(), next })
        })
    };
    asked.see(asked.view()?, read).await
}

/// One cluster, by its name.
#[utoipa::path(get, path = "/clusters/{id}", params(("id" = String, Path, description = "Its name, percent-encoded."), Members),
    responses((status = 200, description = "The cluster.", body = Whole), (status = 400, description = "The query is wrong.", body = Failure),
    (status = 404, description = "There is none; the line says what became of it, if that is remembered.", body = Failure),
    (status = 501, description = "Clusters are not kept.", body = Failure),
    (status = 503, description = "The run is not live yet.", body = Failure)))]
pub(super) async fn cluster(
    State(asked): State<Arc<Asked>>,
    name: Result<Path<String>, PathRejection>,
    which: Result<Query<Members>, QueryRejection>,
) -> Result<Json<Whole>, Failure> {
    let Path(name) = name.map_err(|error| Failure::wrong(error.body_text()))?;
    let Query(which) = which.map_err(|error| Failure::wrong(error.body_text()))?;
    cluster_of(&asked, &name, which).await
}

/// One cluster, by its name; for names that a path cannot hold, as `..` is.
#[utoipa::path(get, path = "/cluster", params(Named), responses((status = 200, description = "The cluster.", body = Whole),
    (status = 400, description = "The query is wrong.", body = Failure),
    (status = 404, description = "There is none; the line says what became of it, if that is remembered.", body = Failure),
    (status = 501, description = "Clusters are not kept.", body = Failure),
    (status = 503, description = "The run is not live yet.", body = Failure)))]
pub(super) async fn cluster_by(
    State(asked): State<Arc<Asked>>,
    which: Result<Query<Named>, QueryRejection>,
) -> Result<Json<Whole>, Failure> {
    let Query(Named { id, after, limit }) = which.map_err(|error| Failure::wrong(error.body_text()))?;
    cluster_of(&asked, &id, Members { after, limit }).await
}

async fn cluster_of(asked: &Arc<Asked>, name: &str, which: Members) -> Result<Json<Whole>, Failure> {
    let name = id(name)?;
    let after = which.after.as_deref().map(|text| {
        let [after] = decode(text).ok_or_else(no_cursor)?;
        id(&after)
    });
    let after = after.transpose()?;
    let limit = limit(which.limit, MEMBERS, MOST)?;
    let read = move |view: &View| {
        let epoch = view.epoch();
        view.clusters(|history| {
            let cluster = history.cluster(&name);
            let cluster = cluster.ok_or_else(|| Failure::missing(missing(history.ended(&name))))?;
            let (found, goes_on) = history.members(&name, after.as_ref(), limit);
            Ok(Json(Whole {
                epoch,
                cluster: Shown::of(&cluster),
                members: found.iter().map(ToString::to_string).collect(),
                next: found.last().filter(|_| goes_on).map(|last| encode(&[last.as_str()])),
                history: history.events(&name).iter().map(Happened::of).collect(),
            }))
        })
    };
    asked.see(asked.view()?, read).await?
}

/// Why there is no cluster of a name.
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
