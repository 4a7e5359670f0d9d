//! Routes of views: the list of them, and pages of the rows of one.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::pairs::limit;
use super::{ErrorAnswer, RouteState};
use dupflow_core::views::{ViewKind, ViewMeasure, ViewPlan};
use dupflow_run::view_tables::{RowOrder, TableRow, ViewTables};

/// Default number of rows on a page, and the maximum.
const ROWS: usize = 100;
const MOST: usize = 1000;

/// A query for a page of rows.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RowsQuery {
    /// `value`: greatest value first; `group`: by group, then id. Default `value`.
    order: Option<RowOrderText>,
    /// How many rows to leave out; default 0. Rows may change between two pages.
    offset: Option<usize>,
    /// Maximum number of rows on the page, 1 to 1000; default 100.
    limit: Option<usize>,
}

/// The order of rows.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RowOrderText {
    #[default]
    Value,
    Group,
}

/// The views of the run.
#[derive(Serialize, ToSchema)]
pub(crate) struct ViewList {
    /// The numbers of rows are those after this epoch.
    epoch: u64,
    views: Vec<ViewSummary>,
}

/// A view.
#[derive(Serialize, ToSchema)]
pub(crate) struct ViewSummary {
    name: String,
    /// `pairs`, `documents` or `clusters`.
    of: &'static str,
    /// `count`, or `top:K`.
    measure: String,
    /// The names of the values of a group, in order; of pairs those of both documents.
    columns: Vec<String>,
    /// Number of rows.
    rows: usize,
}

/// A page of rows.
#[derive(Serialize, ToSchema)]
pub(crate) struct ViewPage {
    /// The rows are those after this epoch.
    epoch: u64,
    #[serde(flatten)]
    view: ViewSummary,
    /// The rows of this page.
    page: Vec<ViewRowBody>,
    /// The offset of the next page; null on the last page.
    next: Option<usize>,
}

/// A row.
#[derive(Serialize, ToSchema)]
pub(crate) struct ViewRowBody {
    /// The values of the group, by the columns of the view.
    group: Vec<String>,
    /// The document or cluster, where the measure is `top:K`.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The count; in a top the pairs of the document, or the documents of the cluster.
    value: u64,
}

impl ViewSummary {
    fn new(plan: &ViewPlan, rows: usize) -> Self {
        Self {
            name: plan.name.to_string(),
            of: match plan.kind {
                ViewKind::Pairs => "pairs",
                ViewKind::Documents => "documents",
                ViewKind::Clusters => "clusters",
            },
            measure: match plan.measure {
                ViewMeasure::Count => "count".to_owned(),
                ViewMeasure::Top(most) => format!("top:{most}"),
            },
            columns: plan.columns(),
            rows,
        }
    }
}

impl ViewRowBody {
    fn new(plan: &ViewPlan, ((group, id), value): &TableRow) -> Self {
        Self {
            group: plan.values(group).map(str::to_owned).collect(),
            id: id.as_ref().map(ToString::to_string),
            value: *value,
        }
    }
}

impl RouteState {
    /// The rows of the views, once the run is live.
    fn tables(&self) -> Result<Arc<ViewTables>, ErrorAnswer> {
        let none = || {
            ErrorAnswer::missing("this run keeps no views: [[view]] tables of its deployment file name them")
        };
        let tables = self.subject.views.as_ref().ok_or_else(none)?;
        self.is_live()?;
        Ok(Arc::clone(tables))
    }
}

/// The views.
#[utoipa::path(
    get, path = "/views",
    responses(
        (status = 200, description = "All of them.", body = ViewList),
        (status = 404, description = "The run keeps no views.", body = ErrorAnswer),
        (status = 503, description = "The run is not live yet.", body = ErrorAnswer),
    ),
)]
pub(crate) async fn views(State(state): State<Arc<RouteState>>) -> Result<Json<ViewList>, ErrorAnswer> {
    let tables = state.tables()?;
    let read = move || {
        let (epoch, lengths) = tables.lengths();
        let views = tables.plans().iter().zip(lengths).map(|(plan, rows)| ViewSummary::new(plan, rows));
        Json(ViewList { epoch, views: views.collect() })
    };
    state.read(read).await
}

/// Rows of a view.
#[utoipa::path(
    get, path = "/views/{name}",
    params(("name" = String, Path, description = "The name of the view."), RowsQuery),
    responses(
        (status = 200, description = "A page of them.", body = ViewPage),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 404, description = "There is no such view.", body = ErrorAnswer),
        (status = 503, description = "The run is not live yet.", body = ErrorAnswer),
    ),
)]
pub(crate) async fn view(
    State(state): State<Arc<RouteState>>,
    name: Result<Path<String>, PathRejection>,
    which: Result<Query<RowsQuery>, QueryRejection>,
) -> Result<Json<ViewPage>, ErrorAnswer> {
    let Path(name) = name.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let Query(which) = which.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let limit = limit(which.limit, ROWS, MOST)?;
    let offset = which.offset.unwrap_or_default();
    let order = match which.order.unwrap_or_default() {
        RowOrderText::Value => RowOrder::Value,
        RowOrderText::Group => RowOrder::Group,
    };
    let tables = state.tables()?;
    let missing = || ErrorAnswer::missing("there is no such view; /views lists all");
    let at = tables.plans().iter().position(|plan| *plan.name == *name).ok_or_else(missing)?;
    let read = move || {
        let plan = &tables.plans()[at];
        tables.page(at, order, offset, limit).map(|page| {
            let end = offset.saturating_add(page.rows.len());
            Json(ViewPage {
                epoch: page.epoch,
                view: ViewSummary::new(plan, page.total),
                page: page.rows.iter().map(|row| ViewRowBody::new(plan, row)).collect(),
                next: (end < page.total).then_some(end),
            })
        })
    };
    state.read(read).await?.ok_or_else(missing)
}
