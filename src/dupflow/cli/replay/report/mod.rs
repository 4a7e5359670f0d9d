//! The report of a replay (`--report`): its pairs as one page that needs nothing but itself.
//!
//! The pairs are counted as an output beside those that are asked for. When the replay has ended, the inputs
//! are read once more, for the texts that the page shows.

mod found;
mod page;
mod shown;
mod texts;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use parking_lot::Mutex;

use self::found::FoundPairs;
use self::shown::Shown;
use self::texts::Texts;
use crate::config::{
    Deployment, OpenError, OpenedOutput, OutputAnswer, OutputConfig, OutputFormat, OutputPlace,
    OutputSettings, Place, Plan,
};
use crate::pipeline::Summary;
use dupflow_connectors::inputs::Input;
use dupflow_connectors::sinks::answers::Written;
use dupflow_connectors::sinks::{OutputCell, OutputRow, RowWriter};

/// Where pairs are counted for a report.
#[derive(Clone, Debug, Default)]
struct ReportPlace(Arc<Mutex<FoundPairs>>);

/// The output that counts the pairs.
pub(super) fn output() -> OutputConfig {
    let mut output = OutputConfig::at(OutputPlace::new(ReportPlace::default()));
    "--report".clone_into(&mut output.table);
    output.answer = OutputAnswer::named("pairs");
    output
}

/// Writes the page of a replay that has ended.
///
/// # Errors
/// If not all pairs were counted; if the inputs cannot be read again, or the page not be written.
pub(super) fn write(
    path: &Path,
    plan: &Plan,
    deployment: &Deployment,
    inputs: &[Input],
    summary: &Summary,
) -> anyhow::Result<()> {
    let place = deployment.others.iter().find_map(|output| output.place.as_a::<ReportPlace>());
    let found = place.map(|place| std::mem::take(&mut *place.0.lock())).unwrap_or_default();
    ensure!(found.is_whole, "--report: the replay has ended before all pairs were known: nothing is written");
    let shown = Shown::new(&found);
    let texts = Texts::read(plan, deployment, inputs, &shown)?;
    let page = page::page(plan, deployment, summary, &found, &shown, &texts);
    fs::write(path, page).with_context(|| format!("the report {path:?}"))
}

impl Place for ReportPlace {
    fn kind(&self) -> &'static str {
        "report"
    }

    fn name(&self) -> String {
        "the report".to_owned()
    }

    fn refusal(&self, _: OutputAnswer, _: OutputFormat, _: bool) -> Option<&'static str> {
        None
    }

    fn keeps_marks(&self, _: OutputAnswer) -> bool {
        false
    }

    fn is_corrected(&self) -> bool {
        false
    }

    fn open(&self, of: &dyn OutputSettings) -> Result<OpenedOutput, OpenError> {
        let Written::AtEnd(open) = of.answer().written else {
            return Err((self.name().into(), io::Error::other("a report is of pairs")));
        };
        Ok((open(of, Box::new(Counted(Arc::clone(&self.0)))), None))
    }
}

/// Takes the rows of pairs.
struct Counted(Arc<Mutex<FoundPairs>>);

impl RowWriter for Counted {
    fn row(&mut self, row: &dyn OutputRow) -> io::Result<()> {
        row.cells(&mut |cells| {
            if let [OutputCell::Text(a), OutputCell::Text(b), OutputCell::Float(similarity), ..] = cells {
                let is_old = cells.contains(&OutputCell::Flag(true));
                self.0.lock().add([(is_old, a), (false, b)], *similarity);
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.lock().is_whole = true;
        Ok(())
    }
}
