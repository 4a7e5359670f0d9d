//! Documents that are generated on demand: words by Zipf's law, every fourth document an edit of the one
//! before it.

use dupflow::core::hash::mix;

/// Number of different words; the k-th has a frequency in proportion to 1 / k.
const VOCABULARY: f64 = 50_000.0;

/// Between two versions of a document one word in `EDITED` differs: a similarity of about 0.9.
const EDITED: u64 = 60;

/// Number of words of a document of about 5 KB.
pub(crate) const WORDS: u64 = 900;

/// Generates texts.
pub(crate) struct Documents {
    /// Words, each repeated in proportion to its frequency.
    words: Vec<String>,
    words_each: u64,
}

impl Documents {
    /// Documents of this number of words each.
    pub(crate) fn new(words_each: u64) -> Self {
        let slots = 1_u32 << 15;
        let word = |slot: u32| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rank up to 50,000"
            )]
            let rank = VOCABULARY.powf((f64::from(slot) + 0.5) / f64::from(slots)) as u64;
            let letters = 2 + rank.max(1).ilog2() / 3;
            let letter = |n| char::from(b'a' + u8::try_from(mix(rank << 8 | u64::from(n)) % 26).unwrap());
            (0..letters).map(letter).collect()
        };
        Self { words: (0..slots).map(word).collect(), words_each }
    }

    /// Version `version` of document `number`.
    pub(crate) fn text(&self, number: u64, version: u64, text: &mut String) {
        text.clear();
        // An edit has the words of its original, except one in `EDITED`.
        let (origin, version) = if is_edit(number) { (number - 1, version + 1) } else { (number, version) };
        for place in 0..self.words_each {
            let usual = mix(origin << 20 ^ place);
            let edited = version > 0 && usual.is_multiple_of(EDITED);
            let drawn = if edited { mix(usual ^ version << 32 ^ number) } else { usual };
            let slot = usize::try_from(drawn >> 32).unwrap() % self.words.len();
            text.push_str(&self.words[slot]);
            text.push(if place % 12 == 11 { '\n' } else { ' ' });
        }
    }
}

/// Whether a document is an edit of the one before it.
pub(crate) fn is_edit(number: u64) -> bool {
    number % 4 == 1
}

/// The id of a document.
pub(crate) fn id(number: u64) -> String {
    format!("https://example.com/{number:09}")
}

/// The partition of a document, of four.
pub(crate) fn partition(number: u64) -> u32 {
    u32::try_from(mix(number) % 4).unwrap()
}
