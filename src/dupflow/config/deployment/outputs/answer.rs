//! What the results of an output are: one of [`ANSWERS`].

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use dupflow_connectors::sinks::answers::{ANSWERS, Answer};

/// One of [`ANSWERS`], with the number of its rows where it has one.
#[derive(Clone, Copy, Debug)]
pub struct OutputAnswer {
    answer: &'static Answer,
    size: Option<NonZeroUsize>,
}

impl OutputAnswer {
    /// The answer of this name, which takes no number.
    ///
    /// # Panics
    /// If there is none.
    pub fn named(name: &str) -> Self {
        name.parse().expect("the register has an answer of this name")
    }

    /// The most rows of an answer that takes a number.
    pub fn size(self) -> Option<NonZeroUsize> {
        self.size
    }

    /// Whether a name is typed that a number follows.
    pub fn is_sized(typed: &str) -> bool {
        let name = typed.split_once(':').map(|(name, _)| name);
        ANSWERS.iter().any(|answer| answer.sized.is_some() && name == Some(answer.name))
    }

    /// All that can be typed.
    pub fn possible_values() -> impl Iterator<Item = PossibleValue> {
        ANSWERS.iter().map(|answer| PossibleValue::new(answer.sized.unwrap_or(answer.name)).help(answer.help))
    }
}

impl Default for OutputAnswer {
    fn default() -> Self {
        Self { answer: &ANSWERS[0], size: None }
    }
}

impl PartialEq for OutputAnswer {
    fn eq(&self, other: &Self) -> bool {
        (self.answer.name, self.size) == (other.answer.name, other.size)
    }
}

impl Eq for OutputAnswer {}

impl Deref for OutputAnswer {
    type Target = Answer;

    fn deref(&self) -> &Answer {
        self.answer
    }
}

impl FromStr for OutputAnswer {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let (name, size) = typed.split_once(':').map_or((typed, None), |(name, size)| (name, Some(size)));
        let is_meant = |answer: &&Answer| answer.name == name && answer.sized.is_some() == size.is_some();
        let answer = ANSWERS.iter().find(is_meant).ok_or_else(|| format!("there is no result {typed:?}"))?;
        let size = size.map(str::parse).transpose();
        let size = size.map_err(|_| format!("expected \"{name}:\" and a number of pairs, at least 1"))?;
        Ok(Self { answer, size })
    }
}

impl fmt::Display for OutputAnswer {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.size.map_or(Ok(()), |size| write!(f, ":{size}"))
    }
}

/// Those that take no number.
impl ValueEnum for OutputAnswer {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<OutputAnswer>> = LazyLock::new(|| {
            let all = ANSWERS.iter().filter(|answer| answer.sized.is_none());
            all.map(|answer| OutputAnswer { answer, size: None }).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.help))
    }
}
