//! A column of [given](Given) features.

use std::sync::Arc;

use dupflow_core::text::Given;

/// A column of [given](Given) features.
#[derive(Clone, Debug)]
pub(crate) struct GivenColumn {
    /// What it has.
    pub(crate) given: Given,
    /// Which column it is, of which type, and which types are read.
    pub(crate) expected: Arc<str>,
}

impl GivenColumn {
    /// The column at this path, of a type that is called `kind`. `types` are the names of a whole number and
    /// of bytes of one length.
    pub(crate) fn new(given: Given, path: &str, kind: &str, [whole, fixed]: [&str; 2]) -> Self {
        let wanted = match given {
            Given::Features { .. } => "a list of strings or of unsigned whole numbers, or text".to_owned(),
            Given::Fingerprint(bits) => {
                let words = match bits / 64 {
                    1 => whole.to_owned(),
                    words => format!("a list of {words} {whole}"),
                };
                format!(
                    "of {bits} bits (sketch.size) {fixed}({}), {words}, or text of {} hexadecimal digits",
                    bits / 8,
                    bits / 4
                )
            }
        };
        let expected = format!("the column {path:?} is {kind}; cast it to what is expected: {wanted}").into();
        Self { given, expected }
    }
}
