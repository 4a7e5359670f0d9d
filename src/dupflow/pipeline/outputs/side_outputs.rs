//! The side outputs of a run: from the changes of views to the rows of files, topics and tables, and from
//! notices to those of topics and tables.
//!
//! A file of lines is committed after the main output, so it is never ahead of what a restart repeats. Rows
//! of a topic or a table are part of the main output's commit. Both are corrected when the run is live
//! ([`dupflow_connectors::sinks::side`]).

use std::fmt;
use std::io::{self, BufWriter};
use std::mem;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::config::{NoticesConfig, ViewConfig};
use dupflow_connectors::failpoint;
use dupflow_connectors::mark::Mark;
use dupflow_connectors::owned::OwnedFile;
use dupflow_connectors::sinks::side::{FinalRows, SideDelta, SideLines, SideRow};
use dupflow_connectors::sinks::{Destination, MarkedFile, Sink};
use dupflow_core::pair::SharesBeside;
use dupflow_core::reconcile::Reconcile;
use dupflow_core::time::Epoch;
use dupflow_core::views::{ViewDelta, ViewKind, ViewMeasure, ViewPlan, ViewRow};
use dupflow_engine::dataflow::ClosedEpoch;
use dupflow_run::view_tables::ViewTables;
use dupflow_run::watch::{Notice, WatchMatch};

/// The side outputs of a run. The default has none.
#[derive(Debug, Default)]
pub struct SideOutputs {
    plans: Arc<[ViewPlan]>,
    outputs: Vec<SideOutput>,
    /// The rows in memory, if the run has a monitor.
    tables: Option<Arc<ViewTables>>,
}

/// One output, and the rows that it takes.
struct SideOutput {
    takes: TakenRows,
    /// As the user named it: a path, a topic or a table.
    name: String,
    to: SideDestination,
}

/// The rows that an output takes.
enum TakenRows {
    /// By view, whether its rows are written here.
    Views(Vec<bool>),
    Notices,
}

/// Where the rows of an output are written.
enum SideDestination {
    /// Every change, to a file.
    Lines(SideLines<Box<dyn Destination + Send>>),
    /// The rows that are left at the end, to a file.
    Final(FinalRows<BufWriter<OwnedFile>>),
    /// Every change, with the main output; before the run is live, what the corpus gives less what it holds.
    Main(Option<Reconcile<SideRow>>),
}

impl SideOutputs {
    /// The outputs of these views, and of notices where they go to a topic or a table. Opens the files: those
    /// of a run keep what they hold, those of a replay are written anew.
    ///
    /// # Errors
    /// If a file cannot be opened: its path, and why.
    pub(in crate::pipeline) fn open(
        views: &[ViewConfig],
        notices: Option<&NoticesConfig>,
        is_replay: bool,
    ) -> Result<Self, (String, io::Error)> {
        let plans: Arc<[ViewPlan]> = views.iter().map(|view| view.plan.clone()).collect();
        let mut opened = Self { plans, ..Self::default() };
        for (at, view) in views.iter().enumerate() {
            if let Some(path) = &view.output {
                let to = || {
                    Ok(if view.is_final() {
                        let out = BufWriter::new(OwnedFile::create(path)?);
                        SideDestination::Final(FinalRows::new(out, columns(&view.plan)))
                    } else {
                        SideDestination::Lines(SideLines::new(lines(path, is_replay)?))
                    })
                };
                let name = path.display().to_string();
                opened.add(at, &name, false, to).map_err(|error| (name, error))?;
            }
            for name in view.topic.iter().chain(&view.table) {
                let to = || Ok(SideDestination::Main(Some(Reconcile::default())));
                opened.add(at, name, true, to).map_err(|error| (name.clone(), error))?;
            }
        }
        for name in notices.into_iter().flat_map(|notices| notices.topic.iter().chain(&notices.table)) {
            let to = SideDestination::Main(Some(Reconcile::default()));
            opened.outputs.push(SideOutput { takes: TakenRows::Notices, name: name.clone(), to });
        }
        Ok(opened)
    }

    /// Adds the output of a view. Views that name the same output share it; a file and a topic of the same
    /// name are two.
    fn add(
        &mut self,
        view: usize,
        name: &str,
        is_main: bool,
        to: impl FnOnce() -> io::Result<SideDestination>,
    ) -> io::Result<()> {
        for SideOutput { takes, name: other, to: there } in &mut self.outputs {
            let is_here = other == name && matches!(there, SideDestination::Main(_)) == is_main;
            if let TakenRows::Views(takes) = takes
                && is_here
            {
                takes[view] = true;
                return Ok(());
            }
        }
        let mut takes = vec![false; self.plans.len()];
        takes[view] = true;
        self.outputs.push(SideOutput { takes: TakenRows::Views(takes), name: name.to_owned(), to: to()? });
        Ok(())
    }

    /// Keeps the rows in memory too, for a monitor; `None` if there is no view.
    pub fn keep_tables(&mut self) -> Option<Arc<ViewTables>> {
        if self.plans.is_empty() {
            return None;
        }
        let plans = Arc::clone(&self.plans);
        Some(Arc::clone(self.tables.get_or_insert_with(|| Arc::new(ViewTables::new(plans)))))
    }

    /// Takes the files over, and reads what they hold.
    pub(in crate::pipeline) fn take_over_files(&mut self) -> io::Result<()> {
        for output in &mut self.outputs {
            if let SideDestination::Lines(lines) = &mut output.to {
                lines.take_over().map_err(|error| output.named(&error))?;
            }
        }
        Ok(())
    }

    /// Reads the rows that the main output holds, after it was taken over.
    pub(in crate::pipeline) fn take_over_rows(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        for output in &mut self.outputs {
            if let SideDestination::Main(Some(rows)) = &mut output.to {
                let read = sink.side_rows(&output.name, &mut |SideDelta { row, diff }| rows.held(row, diff));
                read.map_err(|error| output.named(&error))?;
            }
        }
        Ok(())
    }

    /// Takes the changes of an epoch before the run is live.
    pub(in crate::pipeline) fn restored(&mut self, epoch: &ClosedEpoch) {
        for SideOutput { takes, to, .. } in &mut self.outputs {
            match to {
                SideDestination::Lines(lines) => lines.restored(takes.changes(&self.plans, epoch)),
                SideDestination::Main(Some(rows)) => {
                    let changes = takes.changes(&self.plans, epoch).into_iter();
                    changes.for_each(|SideDelta { row, diff }| rows.given(row, diff));
                }
                SideDestination::Main(None) => {}
                SideDestination::Final(rows) => takes.add_up(&self.plans, epoch, rows),
            }
        }
        self.durable(epoch.progress.epoch, &epoch.views);
    }

    /// The run is live after `epoch`: corrects the outputs. Returns whether the main output has rows that
    /// wait for its commit.
    pub(in crate::pipeline) fn live(
        &mut self,
        epoch: Epoch,
        mark: &Mark,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        let mut waits = false;
        for output in &mut self.outputs {
            let corrected = match &mut output.to {
                SideDestination::Lines(lines) => lines.live(epoch, mark),
                SideDestination::Main(rows) => {
                    let differences = mem::take(rows).map(SideDelta::differences).unwrap_or_default();
                    waits |= !differences.is_empty();
                    if differences.is_empty() { Ok(()) } else { sink.side(&output.name, epoch, &differences) }
                }
                SideDestination::Final(_) => Ok(()),
            };
            corrected.map_err(|error| output.named(&error))?;
        }
        Ok(waits)
    }

    /// Writes the changes of an epoch.
    pub(in crate::pipeline) fn epoch(&mut self, epoch: &ClosedEpoch, sink: &mut dyn Sink) -> io::Result<()> {
        let number = epoch.progress.epoch;
        for output in &mut self.outputs {
            let SideOutput { takes, name, to } = output;
            let written = match to {
                SideDestination::Lines(lines) => lines.epoch(number, &takes.changes(&self.plans, epoch)),
                SideDestination::Main(_) => {
                    let changes = takes.changes(&self.plans, epoch);
                    if changes.is_empty() { Ok(()) } else { sink.side(name, number, &changes) }
                }
                SideDestination::Final(rows) => {
                    takes.add_up(&self.plans, epoch, rows);
                    Ok(())
                }
            };
            written.map_err(|error| output.named(&error))?;
        }
        Ok(())
    }

    /// The main output has made these epochs durable, with this mark.
    pub(in crate::pipeline) fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        for output in &mut self.outputs {
            if let SideDestination::Lines(lines) = &mut output.to {
                lines.commit(mark).map_err(|error| output.named(&error))?;
            }
        }
        failpoint::reach("side");
        Ok(())
    }

    /// Checks that the files are still this run's.
    pub(in crate::pipeline) fn check(&mut self) -> io::Result<()> {
        self.outputs.iter_mut().try_for_each(|output| match &mut output.to {
            SideDestination::Lines(lines) => lines.check(),
            SideDestination::Final(_) | SideDestination::Main(_) => Ok(()),
        })
    }

    /// The changes of an epoch are durable.
    pub(in crate::pipeline) fn durable(&self, epoch: Epoch, views: &[ViewDelta]) {
        if let Some(tables) = &self.tables {
            tables.apply(epoch, views);
        }
    }

    /// Writes what is written at the end.
    pub(in crate::pipeline) fn finish(self) -> io::Result<()> {
        for SideOutput { name, to, .. } in self.outputs {
            if let SideDestination::Final(rows) = to {
                rows.finish().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
            }
        }
        Ok(())
    }
}

impl SideOutput {
    /// An error with the name of the output.
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.name))
    }
}

impl TakenRows {
    /// The changes of an epoch that are taken.
    fn changes(&self, plans: &[ViewPlan], epoch: &ClosedEpoch) -> Vec<SideDelta> {
        let of_view = |delta: &ViewDelta| SideDelta { row: side_row(plans, &delta.row), diff: delta.diff };
        match self {
            Self::Views(_) => self.of_views(epoch).map(of_view).collect(),
            Self::Notices => epoch.notices.iter().map(notice_delta).collect(),
        }
    }

    /// The changes of views that are taken.
    fn of_views<'e>(&self, epoch: &'e ClosedEpoch) -> impl Iterator<Item = &'e ViewDelta> + use<'_, 'e> {
        let is_taken = |delta: &&ViewDelta| match self {
            Self::Views(takes) => takes[usize::from(delta.row.view)],
            Self::Notices => false,
        };
        epoch.views.iter().filter(is_taken)
    }

    /// Adds the changes of an epoch to final rows.
    fn add_up(&self, plans: &[ViewPlan], epoch: &ClosedEpoch, rows: &mut FinalRows<BufWriter<OwnedFile>>) {
        for ViewDelta { row, diff } in self.of_views(epoch) {
            let plan = &plans[usize::from(row.view)];
            let values = plan.values(&row.group).map(str::to_owned);
            let id = row.id.as_ref().map(|id| id.as_str().to_owned());
            rows.change(values.chain(id).chain([row.value.to_string()]).collect(), *diff);
        }
    }
}

/// A row as the members of a JSON object, with its key: the name of the view and the values of its group.
fn side_row(plans: &[ViewPlan], row: &ViewRow) -> SideRow {
    let plan = &plans[usize::from(row.view)];
    let (name, group): (&str, Vec<&str>) = (&plan.name, plan.values(&row.group).collect());
    let key = Json::from_iter([name].into_iter().chain(group.iter().copied())).to_string();
    let id = row.id.as_ref().map_or_else(String::new, |id| format!("\"id\":{},", json!(id.as_str())));
    let members = format!("\"view\":{},\"group\":{},{id}\"value\":{}", json!(name), json!(group), row.value);
    SideRow { key, json: members }
}

/// A notice as the change of a row: the record in a topic is the line in a file. Its key is of the watch and
/// the document.
fn notice_delta(notice: &Notice) -> SideDelta {
    let WatchMatch { watch, id, similarity } = &notice.of;
    let (watch, id) = (json!(watch.as_str()), json!(id.as_str()));
    let mut json = format!("\"watch\":{watch},\"id\":{id},\"similarity\":{}", json!(similarity.get()));
    let SharesBeside { in_id, of_id } = SharesBeside::new(*similarity);
    if let (Some(in_id), Some(of_id)) = (in_id, of_id) {
        json += &format!(",\"in_id\":{},\"of_id\":{}", json!(in_id), json!(of_id));
    }
    SideDelta { row: SideRow { key: format!("[{watch},{id}]"), json }, diff: notice.diff.into() }
}

/// The columns of the final rows of a view.
fn columns(plan: &ViewPlan) -> Vec<String> {
    let (id, value) = match (plan.kind, plan.measure) {
        (kind, ViewMeasure::Count) => (
            None,
            match kind {
                ViewKind::Pairs => "pairs",
                ViewKind::Documents => "documents",
                ViewKind::Clusters => "clusters",
            },
        ),
        (ViewKind::Clusters, ViewMeasure::Top(_)) => (Some("cluster"), "documents"),
        (ViewKind::Pairs | ViewKind::Documents, ViewMeasure::Top(_)) => (Some("document"), "pairs"),
    };
    plan.columns().into_iter().chain(id.map(str::to_owned)).chain([value.to_owned()]).collect()
}

/// A file of lines.
fn lines(path: &Path, is_replay: bool) -> io::Result<Box<dyn Destination + Send>> {
    Ok(if is_replay {
        Box::new(BufWriter::new(OwnedFile::create(path)?))
    } else {
        Box::new(MarkedFile::open(path)?)
    })
}

impl fmt::Debug for SideOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SideOutput").field("name", &self.name).finish_non_exhaustive()
    }
}
