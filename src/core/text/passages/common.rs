//! Common passages: the stretches that two texts share, and which stretches of one correspond to which of the
//! other.
//!
//! Two texts and the [`TextRules`] of a pipeline -> both texts cut into [`TextPiece`]s, where shared pieces
//! have the number of their passage; and the share of each text that is in common.
//!
//! The rule: a token (for shingles of characters, a character) is *in common* if it is in a shingle that the
//! other text has too. So the marked text is exactly what the similarity counts: moved text is found, and a
//! run of tokens shorter than a shingle is not.
//!
//! A *passage* is a run of common shingles in the same order in both texts. From the next shingle of the
//! second text on, the longest such run is taken; of equally long runs, the one that continues the previous
//! run. Up to [`PLACES`] positions of a shingle are tried on either side of the expected one, so that texts
//! of few distinct words cost no more than others. A passage that occurs once in one text and repeatedly in
//! the other has one number.
//!
//! Invariants: the pieces of a text, concatenated, are the text; no piece is empty. Passages are numbered
//! from 0 in the order of the first text. Cost is linear in the length of the texts, except for sorting the
//! hashes of their shingles.
//!
//! ```
//! use dupflow_core::text::{TextRules, common_passages};
//!
//! let (a, b) = ("It began: one two three four.", "One two three four, it ended.");
//! let found = common_passages(a, b, &TextRules::default());
//! let pieces: Vec<&str> = found.a.iter().map(|piece| piece.text).collect();
//! assert_eq!(pieces, ["It began: ", "one two three four", "."]);
//! assert_eq!((found.a[1].passage, found.b[0].passage), (Some(0), Some(0)));
//! assert_eq!((found.shared_a, found.shared_b), (4.0 / 6.0, 4.0 / 6.0));
//! ```
//!
//! Not done here: markup is not removed, so pass the [readable](crate::text::readable) text of a page;
//! weights and repeat counts of shingles are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Serialize;

use super::units::{Unit, Units};
use crate::hash::{self, mix};
use crate::text::rules::TextRules;

/// How many positions of a shingle are tried on either side of the expected one. 8: a shingle with more
/// positions is one of many such shingles, and any of the tried positions is as good.
const PLACES: usize = 8;

/// A stretch of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextPiece<'t> {
    /// The original text of the stretch.
    pub text: &'t str,
    /// The number of the passage; `None` if the stretch is not in common.
    pub passage: Option<usize>,
}

/// Common passages of two texts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Passages<'t> {
    /// The first text.
    pub a: Vec<TextPiece<'t>>,
    /// The second text.
    pub b: Vec<TextPiece<'t>>,
    /// The share of the first text's tokens that are in common, from 0 to 1 inclusive. For a text without
    /// tokens: 1 if the other text has none either, else 0.
    pub shared_a: f64,
    /// The same for the second text.
    pub shared_b: f64,
}

/// The common passages of two texts under these rules.
pub fn common_passages<'t>(a: &'t str, b: &'t str, rules: &TextRules) -> Passages<'t> {
    let (of_a, of_b) = (Units::new(a, rules), Units::new(b, rules));
    let (marks_a, marks_b) = passage_numbers(&of_a, &of_b);
    let both_empty = marks_a.is_empty() && marks_b.is_empty();
    let (mut a, mut b) = (pieces(a, &of_a.units, &marks_a), pieces(b, &of_b.units, &marks_b));
    renumber(&mut a, &mut b);
    Passages { a, b, shared_a: share(&marks_a, both_empty), shared_b: share(&marks_b, both_empty) }
}

/// For each unit the number of its passage, if it is in common.
type PassageNumbers = Vec<Option<usize>>;

fn passage_numbers(a: &Units, b: &Units) -> (PassageNumbers, PassageNumbers) {
    let (mut of_a, mut of_b) = (vec![None; a.units.len()], vec![None; b.units.len()]);
    let mut count = 0;
    for run in runs(b, a) {
        let there = run.there - run.overlap..run.there + run.len;
        let is_new = of_a[there.clone()].contains(&None);
        let number = if is_new { Some(count) } else { of_a[there.start] };
        count += usize::from(is_new);
        of_a[there].iter_mut().for_each(|mark: &mut Option<usize>| *mark = mark.or(number));
        of_b[run.here..run.here + run.len].fill(number);
    }
    // Passages that the first text repeats.
    for run in runs(a, b) {
        for at in 0..run.len {
            let mark = &mut of_a[run.here + at];
            *mark = mark.or(of_b[run.there + at]);
        }
    }
    (of_a, of_b)
}

/// Renumbers passages in the order of the first text. A passage may have no piece in one text, if it consists
/// only of characters that lowercasing or joining adds; it loses its number in the other text.
fn renumber(a: &mut [TextPiece<'_>], b: &mut [TextPiece<'_>]) {
    let in_b: BTreeSet<usize> = b.iter().filter_map(|piece| piece.passage).collect();
    let mut order = BTreeMap::new();
    for piece in a {
        let next = order.len();
        let known = piece.passage.filter(|number| in_b.contains(number));
        piece.passage = known.map(|number| *order.entry(number).or_insert(next));
    }
    for piece in b {
        piece.passage = piece.passage.and_then(|number| order.get(&number).copied());
    }
}

/// A run of equal units in two texts.
struct CommonRun {
    here: usize,
    there: usize,
    len: usize,
    /// How many units before the run are equal too; they belong to the previous run.
    overlap: usize,
}

/// Runs that cover, in order and without overlap, all units of `here` that are in a window that `there` has
/// too.
fn runs(here: &Units, there: &Units) -> Vec<CommonRun> {
    let (hashes, places) = (hashes(here), sorted(there));
    let (mut found, mut covered, mut expected) = (Vec::new(), 0, 0);
    for (window, &hash) in here.windows.iter().zip(&hashes) {
        if window.end <= covered {
            continue;
        }
        let overlap = covered.saturating_sub(window.start);
        let mut best = CommonRun { here: window.start, there: 0, len: 0, overlap };
        for place in nearest_positions(&places, hash, expected - overlap.min(expected)) {
            let len = common_length(here, window.start, there, place);
            if len > best.len {
                best = CommonRun { there: place, len, ..best };
            }
        }
        if best.len < window.len() {
            continue;
        }
        // Equal units after the last whole window are in no common window.
        let whole = here.windows.partition_point(|other| other.end <= best.here + best.len);
        best.len = here.windows[whole - 1].end - best.here;
        (covered, expected) = (best.here + best.len, best.there + best.len);
        found.push(CommonRun {
            here: best.here + overlap,
            there: best.there + overlap,
            len: best.len - overlap,
            overlap,
        });
    }
    found
}

/// How many units from these two positions on are equal, within one part of each text.
fn common_length(here: &Units, at: usize, there: &Units, place: usize) -> usize {
    let (parts, one) = ((here.units[at].part, there.units[place].part), &here.units[at..]);
    let same = |(x, y): &(&Unit, &Unit)| x.hash == y.hash && (x.part, y.part) == parts;
    one.iter().zip(&there.units[place..]).take_while(same).count()
}

/// The hash of each window: for tokens t1 … tw, `mix(t1 C^(w-1) + ... + tw)` modulo 2^64.
fn hashes(of: &Units) -> Vec<u64> {
    const FACTOR: u64 = hash::PI[5];
    let longest = of.windows.iter().map(Range::len).max().unwrap_or(0);
    let next = |power: &u64| Some(power.wrapping_mul(FACTOR));
    let powers: Vec<u64> = std::iter::successors(Some(1), next).take(longest + 1).collect();
    let mut sums = vec![0_u64];
    for unit in &of.units {
        sums.push(sums[sums.len() - 1].wrapping_mul(FACTOR).wrapping_add(unit.hash));
    }
    let hash = |window: &Range<usize>| {
        let before = sums[window.start].wrapping_mul(powers[window.len()]);
        mix(sums[window.end].wrapping_sub(before))
    };
    of.windows.iter().map(hash).collect()
}

/// The hashes of the windows of a text with their start positions, sorted.
fn sorted(of: &Units) -> Vec<(u64, usize)> {
    let starts = of.windows.iter().map(|window| window.start);
    let mut places: Vec<(u64, usize)> = hashes(of).into_iter().zip(starts).collect();
    places.sort_unstable();
    places
}

/// The positions of a hash that are nearest to the expected one: from there on, then before it.
fn nearest_positions(places: &[(u64, usize)], hash: u64, expected: usize) -> impl Iterator<Item = usize> {
    let (before, after) = places.split_at(places.partition_point(|place| *place < (hash, expected)));
    let of_hash = move |place: &&(u64, usize)| place.0 == hash;
    let after = after.iter().take(PLACES).take_while(of_hash);
    let before = before.iter().rev().take(PLACES).take_while(of_hash);
    after.chain(before).map(|place| place.1)
}

fn pieces<'t>(text: &'t str, units: &[Unit], marks: &PassageNumbers) -> Vec<TextPiece<'t>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut push = |until: usize, passage| {
        if until > at {
            pieces.push(TextPiece { text: &text[at..until], passage });
            at = until;
        }
    };
    let mut first = 0;
    for run in marks.chunk_by(|x, y| x == y) {
        let of_run = &units[first..first + run.len()];
        if let (Some(number), [start, .., end] | [start @ end]) = (run[0], of_run) {
            push(start.bytes.start, None);
            push(end.bytes.end, Some(number));
        }
        first += run.len();
    }
    push(text.len(), None);
    pieces
}

fn share(marks: &PassageNumbers, both_empty: bool) -> f64 {
    if marks.is_empty() {
        return f64::from(u8::from(both_empty));
    }
    marks.iter().flatten().count() as f64 / marks.len() as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::text::{Normalize, Shingle, Spaceless, plain, tokens};

    fn words(size: usize) -> TextRules {
        TextRules { shingle: Shingle::Words(size), ..TextRules::default() }
    }

    /// Both texts with their passages in brackets, after their numbers.
    fn shown(a: &str, b: &str, rules: &TextRules) -> [String; 2] {
        let found = common_passages(a, b, rules);
        let show = |piece: &TextPiece<'_>| match piece.passage {
            Some(number) => format!("{number}[{}]", piece.text),
            None => piece.text.to_owned(),
        };
        [&found.a, &found.b].map(|pieces| pieces.iter().map(show).collect())
    }

    #[test]
    fn by_hand() {
        let of = |a, b| shown(a, b, &words(2));
        assert_eq!(of("", ""), ["", ""]);
        assert_eq!(of("", "a b"), ["", "a b"]);
        assert_eq!(of("a", "A!"), ["0[a]", "0[A]!"], "one shingle of one token");
        assert_eq!(of("a", "a b"), ["a", "a b"], "a shingle of one token is none of two");
        assert_eq!(of("x A, b. y", "(a b) z"), ["x 0[A, b]. y", "(0[a b]) z"]);
        assert_eq!(of("a b x c d", "c d y a b"), ["0[a b] x 1[c d]", "1[c d] y 0[a b]"], "moved");
        assert_eq!(of("a b x b c", "a b c"), ["0[a b] x 1[b c]", "0[a b] 1[c]"], "a token of two passages");
        assert_eq!(of("a b", "a b x a b"), ["0[a b]", "0[a b] x 0[a b]"]);
        assert_eq!(of("a b x a b", "a b"), ["0[a b] x 0[a b]", "0[a b]"]);
        assert_eq!(of("a b x a b", "a b y a b"), ["0[a b] x 1[a b]", "0[a b] y 1[a b]"], "in their order");
    }

    #[test]
    fn characters_and_scripts() {
        let chars = TextRules { shingle: Shingle::Chars(4), ..TextRules::default() };
        assert_eq!(
            shown("Recognise it", "recognize it", &chars),
            ["0[Recogni]s1[e it]", "0[recogni]z1[e it]"]
        );
        assert_eq!(shown("go, on", "no on!", &chars), ["g0[o, on]", "n0[o on]!"]);
        let chinese = shown("我们今天去北京大学", "他们今天去北京了", &words(1));
        assert_eq!(chinese, ["我0[们今天去北京]大学", "他0[们今天去北京]了"]);
        let arabic = shown("\u{202e}مرحبا بالعالم x", "y مرحبا بالعالم", &words(2));
        assert_eq!(arabic, ["\u{202e}0[مرحبا بالعالم] x", "y 0[مرحبا بالعالم]"]);
        let nfkc = TextRules { normalize: Normalize::Nfkc, ..words(2) };
        assert_eq!(shown("ＡＢ ﬁne x", "ab fine y", &nfkc), ["0[ＡＢ ﬁne] x", "0[ab fine] y"]);
    }

    #[test]
    fn shares() {
        let of = |a, b| {
            let found = common_passages(a, b, &words(2));
            (found.shared_a, found.shared_b)
        };
        assert_eq!(of("a b c d", "a b x"), (0.5, 2.0 / 3.0));
        assert_eq!([of("", "!"), of("", "a"), of("a", "")], [(1.0, 1.0), (0.0, 0.0), (0.0, 0.0)]);
    }

    #[test]
    fn shuffled_paragraphs_are_all_in_common() {
        let paragraph = |n: usize| (0..40).map(|i| format!("w{n}x{i} ")).collect::<String>();
        let a: String = (0..50).map(paragraph).collect();
        let b: String = (0..50).map(|n| paragraph(n * 7 % 50)).collect();
        let found = common_passages(&a, &b, &words(3));
        let numbers: BTreeSet<_> = found.b.iter().filter_map(|piece| piece.passage).collect();
        assert_eq!(numbers.len(), 50);
        assert!((found.shared_a - 1.0).abs() < 1e-12 && (found.shared_b - 1.0).abs() < 1e-12);
    }

    /// Whether each token is in a shingle of words that the other text has too: the rule, computed with
    /// strings.
    fn in_common(text: &str, other: &str, rules: &TextRules) -> Vec<bool> {
        let Shingle::Words(size) = rules.shingle else { panic!("shingles of words") };
        let (here, there) = (tokens(text, rules), tokens(other, rules));
        let others: BTreeSet<&[String]> = plain::windows(&there, size, rules.spaceless).collect();
        let mut marked = vec![false; here.len()];
        for window in plain::windows(&here, size, rules.spaceless).filter(|window| others.contains(window)) {
            let first = here.element_offset(&window[0]).unwrap();
            marked[first..first + window.len()].fill(true);
        }
        marked
    }

    fn text() -> impl Strategy<Value = String> {
        let word =
            prop_oneof![8 => "[a-c]", 2 => "[A-C]\\.", 2 => "[近似重]{1,3}", 1 => "[ก-ค]{1,4}", 1 => "\\PC"];
        prop::collection::vec(word, 0..40).prop_map(|words| words.join(" "))
    }

    fn rules() -> impl Strategy<Value = TextRules> {
        let spaceless = prop_oneof![Just(Spaceless::Part), Just(Spaceless::Char), Just(Spaceless::Run)];
        let normalize = prop_oneof![Just(Normalize::None), Just(Normalize::Nfkc)];
        (1_usize..5, spaceless, normalize).prop_map(|(size, spaceless, normalize)| TextRules {
            spaceless,
            normalize,
            ..words(size)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 2000,
            rng_seed: RngSeed::Fixed(1),
            ..ProptestConfig::default()
        })]

        #[test]
        fn tokens_of_common_shingles_are_marked(a in text(), b in text(), rules in rules()) {
            let (of_a, of_b) = passage_numbers(&Units::new(&a, &rules), &Units::new(&b, &rules));
            let marked = |marks: PassageNumbers| -> Vec<bool> { marks.iter().map(Option::is_some).collect() };
            prop_assert_eq!(marked(of_a), in_common(&a, &b, &rules));
            prop_assert_eq!(marked(of_b), in_common(&b, &a, &rules));
        }

        #[test]
        fn pieces_join_to_the_text_and_numbers_are_on_both_sides(
            a in text(),
            b in text(),
            size in 1_usize..6,
            of_chars: bool,
        ) {
            let shingle = if of_chars { Shingle::Chars(size) } else { Shingle::Words(size) };
            let found = common_passages(&a, &b, &TextRules { shingle, ..TextRules::default() });
            for (text, pieces) in [(&a, &found.a), (&b, &found.b)] {
                prop_assert_eq!(&pieces.iter().map(|piece| piece.text).collect::<String>(), text);
                prop_assert!(pieces.iter().all(|piece| !piece.text.is_empty()));
            }
            let numbers = |pieces: &[TextPiece<'_>]| -> BTreeSet<usize> {
                pieces.iter().filter_map(|piece| piece.passage).collect()
            };
            prop_assert_eq!(numbers(&found.a), numbers(&found.b));
            prop_assert!(numbers(&found.a).into_iter().eq(0..numbers(&found.a).len()));
        }
    }
}
