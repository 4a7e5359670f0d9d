//! Documents that are made as they are needed: words by Zipf's law, every fourth document an edit of the one
//! before it.

use dupflow::core::hash::mix;

/// Different words; the k-th is met in proportion to 1 / k.
const VOCABULARY: f64 = 50_000.0;

/// One word in so many differs between two versions of a document: a similarity of about 0.9.
const EDITED: u64 = 60;

/// Words of a document of about 5 KB.
pub(crate) const WORDS: u64 = 900;

/// Makes texts.
pub(crate) struct Documents {
    /// Words, as often as they are met.
    words: Vec<String>,
    words_each: u64,
}

impl Documents {
    /// Of so many words each.
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
        // An edit has the words of its original, but for some.
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

/// Its id.
pub(crate) fn id(number: u64) -> String {
    format!("https://example.com/{number:09}")
}

/// Its partition, of four.
pub(crate) fn partition(number: u64) -> u32 {
    u32::try_from(mix(number) % 4).unwrap()
}
