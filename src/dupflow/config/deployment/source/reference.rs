//! The table `[reference]` of a deployment file: a corpus that is there before the run, which its documents
//! are compared with.

use std::path::{Path, PathBuf};

use super::layout::{LayoutKeys, QUOTE_EXPECTED, layout};
use crate::config::deployment::values::{key_names, path};
use crate::config::settings::{DeploymentKey, FileSettings, ProblemKind};
use dupflow_connectors::formats::{IdRule, InputLayout};
use dupflow_connectors::inputs::unreadable;

/// The keys of `[reference]`.
pub(in crate::config::deployment) const KEYS: [DeploymentKey; 12] = [
    DeploymentKey { name: "reference.inputs", expected: "a list of paths, or [] for none" },
    DeploymentKey {
        name: "reference.format",
        expected: "\"auto\", \"jsonl\", \"csv\", \"tsv\", \"warc\", \"parquet\", \"text\" or \"html\"",
    },
    DeploymentKey {
        name: "reference.id_path",
        expected: "names with points between them, as in \"page.id\", or \"\" for \"id\"",
    },
    DeploymentKey {
        name: "reference.text_path",
        expected: "names with points between them, as in \"page.body\"",
    },
    DeploymentKey {
        name: "reference.op_path",
        expected: "names with points between them, as in \"page.op\", or \"\" for none",
    },
    DeploymentKey { name: "reference.ids", expected: "\"once\" or \"file\"" },
    DeploymentKey { name: "reference.canonical_url", expected: "true or false" },
    DeploymentKey {
        name: "reference.csv_delimiter",
        expected: "one character of ASCII that is no quote, or \"tab\"; \"\": that of the format",
    },
    DeploymentKey {
        name: "reference.csv_escape",
        expected: "one character of ASCII that is no quote, or \"\" for none",
    },
    DeploymentKey { name: "reference.csv_quote", expected: QUOTE_EXPECTED },
    DeploymentKey { name: "reference.json_surrogates", expected: "\"bad\" or \"replace\"" },
    DeploymentKey { name: "reference.warc_id", expected: "\"record\" or \"uri\"" },
];

const LAYOUT: LayoutKeys = LayoutKeys {
    format: "reference.format",
    id: "reference.id_path",
    text: "reference.text_path",
    // A document of a reference has no time: it does not expire.
    ts: None,
    op: "reference.op_path",
    csv_delimiter: "reference.csv_delimiter",
    csv_escape: "reference.csv_escape",
    csv_quote: "reference.csv_quote",
    surrogates: "reference.json_surrogates",
    warc_id: "reference.warc_id",
    // A reference has no page that ends.
    warc_not_found: None,
    ids: "reference.ids",
    // A later document replaces none: the reference is no feed.
    id_rules: &[("once", IdRule::Once), ("file", IdRule::File)],
    canonical_url: "reference.canonical_url",
};

/// A corpus that is read once, before the first record of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceConfig {
    /// The inputs, at least one.
    pub inputs: Vec<PathBuf>,
    /// How their records are mapped to documents.
    pub layout: InputLayout,
}

/// Reads `[reference]`; `None` if it names no input.
pub(in crate::config::deployment) fn reference(settings: &mut FileSettings) -> Option<ReferenceConfig> {
    let inputs = settings.read("reference.inputs", |v| v.list(path)).unwrap_or_default();
    let layout = layout(settings, &LAYOUT);
    if inputs.is_empty() {
        let mut others = key_names(&KEYS).into_iter().filter(|key| *key != "reference.inputs");
        if let Some(key) = others.find(|key| settings.is_set(key))
            && settings.sound(&["reference.inputs"])
        {
            let what = "there is no reference: set reference.inputs";
            settings.problem(key, ProblemKind::Contradiction(what.to_owned()));
        }
        return None;
    }
    for input in &inputs {
        let refused = if input == Path::new("-") {
            Some("\"-\": each start reads the reference again, which has to be files".to_owned())
        } else {
            unreadable(input)
        };
        if let Some(what) = refused {
            settings.problem("reference.inputs", ProblemKind::Contradiction(what));
        }
    }
    Some(ReferenceConfig { inputs, layout })
}
