//! The rules by which a text becomes features.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::fields::Field;
use super::given::Given;
use super::tokens::letters::Letters;
use super::tokens::tables;
use super::tokens::{Fold, Folds, Invisible, Marks, Normalize, Spaceless, Stem};
use super::weights::Weights;
use crate::description::{Description, FieldValue};
use crate::doc::{FIELD_SEPARATOR, without_separators};
use crate::hash::TokenHash;

/// What a shingle is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shingle {
    /// Runs of tokens that hold this many words (1 or more). A text with fewer words has one shingle of all
    /// its tokens.
    Words(usize),
    /// Runs of this many characters (1 or more) of the tokens joined by one space. A shorter text is one
    /// shingle.
    Chars(usize),
}

/// Which text of a page is tokenized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Html {
    /// The whole page, including its markup.
    None,
    /// Its [content](crate::html).
    #[default]
    Text,
    /// As [`Self::Text`]; and of a text that is no page but [has markup](crate::html::has_markup), its text.
    Fragments,
    /// Its article, or its content if it has none. Only with the feature `article`.
    Article,
}

impl Html {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Text => "text",
            Self::Fragments => "fragments",
            Self::Article => "article",
        }
    }
}

/// The columns of a record that are its text; derefs to the names of the further fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextColumns {
    /// The further fields, in the order in which they follow the text.
    pub further: Vec<String>,
    /// What the text is, unless it is a text.
    pub given: Option<Given>,
}

/// A text with these further fields.
impl From<Vec<String>> for TextColumns {
    fn from(further: Vec<String>) -> Self {
        Self { further, given: None }
    }
}

impl Deref for TextColumns {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.further
    }
}

/// How a text becomes features. Part of the scheme: texts under different rules are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextRules {
    /// What a shingle is made of.
    pub shingle: Shingle,
    /// How scripts without spaces are tokenized.
    pub spaceless: Spaceless,
    /// How combining marks are treated.
    pub marks: Marks,
    /// Unicode normalization.
    pub normalize: Normalize,
    /// What is done with characters that do not show.
    #[serde(skip_serializing_if = "is_kept")]
    pub invisible: Invisible,
    /// Letters that are made equal.
    #[serde(skip_serializing_if = "Folds::is_empty")]
    pub folds: Folds,
    /// How tokens are hashed.
    #[serde(skip_serializing_if = "is_known")]
    pub hash: TokenHash,
    /// Lowercased tokens that are removed before shingling; sorted, without repeats.
    pub stop_words: Vec<String>,
    /// Stemming of the other tokens; must be [`Stem::None`] with shingles of characters.
    #[serde(skip_serializing_if = "is_none")]
    pub stem: Stem,
    /// What a record brings in place of a text; no rule but that of shingles and weights applies to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<Given>,
    /// Which text of a page is read, before all other steps.
    #[serde(skip_serializing_if = "is_as_it_stands")]
    pub html: Html,
    /// Further fields of a record, by name, without repeats.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// How features are weighted.
    #[serde(skip_serializing_if = "is_unit")]
    pub weights: Weights,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(stem: &Stem) -> bool {
    *stem == Stem::None
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_kept(invisible: &Invisible) -> bool {
    *invisible == Invisible::Keep
}

fn is_known(hash: &TokenHash) -> bool {
    hash.name().is_none()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_as_it_stands(html: &Html) -> bool {
    *html == Html::None
}

fn is_unit(weights: &Weights) -> bool {
    *weights == Weights::Unit
}

impl Default for TextRules {
    fn default() -> Self {
        Self {
            given: None,
            html: Html::default(),
            shingle: Shingle::Words(3),
            spaceless: Spaceless::Part,
            marks: Marks::Keep,
            normalize: Normalize::default(),
            invisible: Invisible::default(),
            folds: Folds::default(),
            hash: TokenHash::default(),
            stop_words: Vec::new(),
            stem: Stem::None,
            fields: Vec::new(),
            weights: Weights::Unit,
        }
    }
}

impl TextRules {
    /// All fields by name: see [`Description`].
    pub fn description(&self) -> Description {
        let shingle = match self.shingle {
            Shingle::Words(size) => format!("words:{size}"),
            Shingle::Chars(size) => format!("chars:{size}"),
        };
        let described = Description::new()
            .with("text.shingle", &*shingle)
            .with("text.spaceless", self.spaceless.name())
            .with("text.marks", self.marks.name())
            .with("text.normalize", self.normalize.name())
            .with("text.stop_words", FieldValue::list(&self.stop_words))
            .with("text.fields", FieldValue::list(self.fields.iter().map(|field| &field.name)))
            .and(self.weights.description());
        // Fields added later are left out while they have the value that older versions behaved by, so that
        // old fingerprints stay valid. For pages that is `none` (markup is text), which is not the default.
        let described = match self.stem {
            Stem::None => described,
            stem => described.with("text.stem", stem.name()),
        };
        let described = match self.html {
            Html::None => described,
            Html::Text | Html::Fragments => described.with("text.html", self.html.name()),
            // Another version of the article rule is another scheme.
            Html::Article => described
                .with("text.html", self.html.name())
                .with("text.html.article", crate::html::ARTICLE_VERSION),
        };
        let described = match self.invisible {
            Invisible::Keep => described,
            Invisible::Ignore => described.with("text.invisible", self.invisible.name()),
        };
        let described = match self.folds.is_empty() {
            true => described,
            false => described.with("text.fold", FieldValue::list(self.folds.iter().map(Fold::name))),
        };
        let described = match self.hash.name() {
            None => described,
            Some(name) => described.with("text.secret", FieldValue::hash(name)),
        };
        // A fingerprint is described by its sketch.
        let described = match self.given {
            None if tables::different().is_empty() => described,
            None => described.with("text.unicode", FieldValue::list(tables::different())),
            Some(_) => described.with("text.features", "given"),
        };
        let weight =
            |all: Description, field: &Field| all.with(format!("text.fields.{}", field.name), field.weight);
        self.fields.iter().fold(described, weight)
    }

    /// The names of the further fields, in the order in which they follow the text.
    pub fn field_names(&self) -> Vec<String> {
        self.fields.iter().map(|field| field.name.clone()).collect()
    }

    /// What readers have to know to read the text of a record.
    pub fn columns(&self) -> TextColumns {
        TextColumns { further: self.field_names(), given: self.given }
    }

    /// How letters are compared.
    pub(super) fn letters(&self) -> Letters {
        Letters { normalize: self.normalize, invisible: self.invisible, folds: self.folds }
    }

    /// A text that has no fields, as the rules read it: where they have fields, a separator in it would begin
    /// one.
    pub fn alone(&self, text: String) -> String {
        if self.fields.is_empty() { text } else { without_separators(&text).into_owned() }
    }

    /// Splits a text into its own part and its fields. If the rules have no fields, the text is not searched
    /// for separators.
    pub fn parts<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        text.splitn(1 + self.fields.len(), FIELD_SEPARATOR)
    }

    /// How many times the shingles of a part count; part 0 is the text.
    pub(super) fn times(&self, part: usize) -> u32 {
        part.checked_sub(1).map_or(1, |field| self.fields[field].weight)
    }
}
