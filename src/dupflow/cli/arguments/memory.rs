//! Options of a memory budget.

use std::path::PathBuf;

use super::problems::Problems;
use crate::config::{MemoryBudget, SpillConfig};

/// How much memory a command may take.
#[derive(Clone, Debug, clap::Args)]
pub struct MemoryArgs {
    /// How much memory to take, as in 8GiB or 60%.
    ///
    /// A size, or a share of the machine's memory. Sketches and documents are then in temporary files, and
    /// read through a cache of a quarter of it. The result is the same [default: everything is in memory].
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<MemoryBudget>,

    /// With --memory: the folder of the temporary files [default: that of the system].
    #[arg(long, value_name = "FOLDER")]
    pub spill: Option<PathBuf>,
}

impl MemoryArgs {
    /// The options as settings of a deployment.
    pub(in crate::cli) fn config(&self) -> Option<SpillConfig> {
        self.memory.map(|memory| SpillConfig { memory, folder: self.spill.clone() })
    }

    /// Reports an option without effect.
    pub(in crate::cli) fn note_conflicts(&self, problems: &mut Problems) {
        if self.memory.is_none() && self.spill.is_some() {
            problems.note("--spill: has an effect with --memory only");
        }
    }
}
