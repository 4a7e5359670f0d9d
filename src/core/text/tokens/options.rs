//! Options of the tokenizer.

use serde::{Deserialize, Serialize};

/// How characters of scripts written without spaces become tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spaceless {
    /// Each such character is a token of its own and a part of a word: a half, a quarter or a sixth, by its
    /// script.
    Part,
    /// As [`Self::Part`], with a half, a sixth or an eighth of a word. For bags of single words, where a part
    /// carries less information.
    Bag,
    /// Each such character is a token of its own and one word.
    Char,
    /// Treated as any other alphanumeric character: they run together.
    Run,
}

/// The effect of a combining mark that is not alphanumeric in a word, such as the virama of Indic scripts or
/// the accent of a letter typed as two characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Marks {
    /// It continues the word, and so do U+200C and U+200D if a letter or a mark follows. Variation selectors
    /// and enclosing marks separate; so do marks that follow a character of a script without spaces, or no
    /// word.
    #[default]
    Keep,
    /// It separates, as any other character that is not alphanumeric.
    Split,
}

/// Unicode normalization before tokenizing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// The text as it is.
    None,
    /// Canonical composition.
    #[default]
    Nfc,
    /// Compatibility composition.
    Nfkc,
}

/// What is done with characters that do not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Invisible {
    /// They are removed before all other steps, also from the inside of words.
    #[default]
    Ignore,
    /// They separate words, as other characters that are not alphanumeric.
    Keep,
}

impl Spaceless {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Part => "part",
            Self::Bag => "bag",
            Self::Char => "char",
            Self::Run => "run",
        }
    }
}

impl Marks {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Split => "split",
        }
    }
}

impl Invisible {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Keep => "keep",
        }
    }
}

impl Normalize {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Nfc => "nfc",
            Self::Nfkc => "nfkc",
        }
    }
}
