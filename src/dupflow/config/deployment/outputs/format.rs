//! The file format of the results: one of [`ROW_FORMATS`].

use std::ops::Deref;
use std::path::Path;
use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use dupflow_connectors::formats::{FileFormat, instead_of, promised};
use dupflow_connectors::sinks::{ROW_FORMATS, RowFormat};
use dupflow_run::missing_feature;

/// The file format of the results: one of [`ROW_FORMATS`].
#[derive(Clone, Copy, Debug)]
pub struct OutputFormat(&'static RowFormat);

impl Default for OutputFormat {
    fn default() -> Self {
        Self(&ROW_FORMATS[0])
    }
}

impl PartialEq for OutputFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for OutputFormat {}

impl Deref for OutputFormat {
    type Target = RowFormat;

    fn deref(&self) -> &RowFormat {
        self.0
    }
}

impl ValueEnum for OutputFormat {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<OutputFormat>> =
            LazyLock::new(|| ROW_FORMATS.iter().map(OutputFormat).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.help))
    }
}

impl OutputFormat {
    /// The name in a deployment file.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The format by a file name; the default if the name says none.
    pub fn of_name(path: Option<&Path>) -> Self {
        path.and_then(Self::named).unwrap_or_default()
    }

    /// The format that the extension of a file name says.
    fn named(path: &Path) -> Option<Self> {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        let said = promised(path).0.map_or("", FileFormat::name);
        let all = Self::value_variants().iter().copied();
        all.clone()
            .find(|format| ending == *format.name())
            .or_else(|| all.clone().find(|format| said == format.name()))
    }

    /// The names of all, as in a sentence.
    fn names() -> String {
        let names: Vec<_> = ROW_FORMATS.iter().map(|format| format!("\"{}\"", format.name)).collect();
        let (last, others) = names.split_last().expect("there are formats");
        format!("{} or {last}", others.join(", "))
    }

    /// Why a result that is rows cannot have this name, which says another format or a compression. A format
    /// that is set beside it counts more than the name's.
    pub fn misnamed(path: &Path, is_set: bool) -> Option<String> {
        let rows = format!("rows are {}", Self::names());
        match promised(path) {
            (_, Some(end)) => Some(format!(
                "{path:?} is compressed by its name, and rows are written as they are: leave {end} out, or \
                    compress standard output"
            )),
            (None, None) if !is_set && Self::named(path).is_none() => {
                instead_of(path).map(|help| format!("{path:?}: {rows}; {help}"))
            }
            _ if Self::named(path).is_some() => None,
            (None, None) => None,
            (Some(named), None) => (!is_set)
                .then(|| format!("{path:?} is {} by its name: {rows}; name another format", named.name())),
        }
    }

    /// Why this build cannot write the format; `None` if it can.
    pub fn missing(self) -> Option<String> {
        let (what, feature) = self.feature.filter(|_| self.open.is_none())?;
        Some(missing_feature(what, feature))
    }
}
