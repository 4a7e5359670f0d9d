//! Folds: letters that some texts distinguish and others do not, made equal on request.
//!
//! References: the classes `ArabicNormalizer` and `PersianNormalizer` of Apache Lucene 10; [`Fold::Arabic`]
//! has the rules of both, and ٱ, ۂ and U+0670.

use serde::{Serialize, Serializer};

/// One fold. A character becomes another, two, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Ё is Е, as most Russian texts are written.
    Yo,
    /// ß is ss, as in capitals.
    SharpS,
    /// Arabic without tatweel and vowel signs; the forms of alef, yeh, kaf and heh are one letter each.
    Arabic,
    /// Hebrew without points and accents.
    HebrewPoints,
    /// Turkish İ, I, ı and i are one letter.
    TurkishI,
}

impl Fold {
    /// All folds, in the order of their names in a [description](crate::description).
    pub const ALL: [Self; 5] = [Self::Arabic, Self::HebrewPoints, Self::TurkishI, Self::SharpS, Self::Yo];

    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yo => "ё",
            Self::SharpS => "ß",
            Self::Arabic => "arabic",
            Self::HebrewPoints => "hebrew-points",
            Self::TurkishI => "turkish-i",
        }
    }

    /// What takes the place of this character; `None` if it stays.
    fn replacement(self, c: char) -> Option<&'static str> {
        Some(match (self, c) {
            (Self::Yo, 'ё') => "е",
            (Self::Yo, 'Ё') => "Е",
            (Self::SharpS, 'ß') => "ss",
            (Self::SharpS, 'ẞ') => "SS",
            (Self::TurkishI, 'İ' | 'ı') => "i",
            // The dot of an i typed as two characters, which is how its lowercase is written elsewhere.
            (Self::TurkishI, '\u{307}') => "",
            (Self::Arabic, '\u{640}' | '\u{64b}'..='\u{652}' | '\u{654}' | '\u{670}') => "",
            (Self::Arabic, 'آ' | 'أ' | 'إ' | 'ٱ') => "ا",
            (Self::Arabic, 'ى' | 'ی' | 'ے') => "ي",
            (Self::Arabic, 'ک') => "ك",
            (Self::Arabic, 'ة' | 'ۀ' | 'ہ' | 'ۂ') => "ه",
            (Self::HebrewPoints, '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}') => "",
            (Self::HebrewPoints, '\u{5c4}' | '\u{5c5}' | '\u{5c7}') => "",
            _ => return None,
        })
    }
}

/// A set of folds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folds(u8);

impl Folds {
    /// These folds.
    pub fn new(folds: impl IntoIterator<Item = Fold>) -> Self {
        Self(folds.into_iter().fold(0, |set, fold| set | 1 << fold as u8))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// The folds of the set, in the order of [`Fold::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Fold> {
        Fold::ALL.into_iter().filter(move |fold| self.0 >> *fold as u8 & 1 == 1)
    }

    /// Appends what a character becomes.
    pub(super) fn push(self, c: char, text: &mut String) {
        match self.iter().find_map(|fold| fold.replacement(c)) {
            // Only the dot of an i is part of it.
            Some("") if c == '\u{307}' && !text.ends_with(['i', 'I']) => text.push(c),
            Some(other) => text.push_str(other),
            None => text.push(c),
        }
    }
}

/// As the names of the folds.
impl Serialize for Folds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Fold::name))
    }
}
