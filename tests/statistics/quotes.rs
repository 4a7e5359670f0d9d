//! Quotes in larger texts: how often their sketches share a block and pass the filter, against the plan.

use dupflow::config::Plan;
use dupflow::core::hash::mix;
use dupflow::core::sketch::SketchMaker;
use dupflow::core::sketch::scaled::words_of;
use dupflow::forecast::PlanReport;

use crate::bounds;

const TRIALS: usize = 300;

/// A text of different words; a quote of its first ones, of which each is replaced with a probability in
/// percent.
fn quoted(words: usize, edits: u64, ratio: usize, trial: u64) -> [String; 2] {
    let seed = mix(trial ^ (words as u64) << 32 ^ edits << 48 ^ (ratio as u64) << 56);
    let text: Vec<String> = (0..words * ratio).map(|at| format!("w{seed:x}x{at}")).collect();
    let quote = text[..words].iter().enumerate().map(|(at, word)| {
        let is_replaced = mix(seed ^ at as u64) % 100 < edits;
        if is_replaced { format!("{word}y") } else { word.clone() }
    });
    [quote.collect::<Vec<_>>().join(" "), text.join(" ")]
}

/// The share of quotes of which the pair is found.
fn found(plan: &Plan, of: impl Fn(u64) -> [String; 2]) -> f64 {
    let (blocking, filter) = (plan.blocking(), plan.filter());
    let mut maker = SketchMaker::new(&plan.scheme);
    let is_found = |trial: &u64| {
        let [a, b] = of(*trial).map(|text| maker.sketch(&text).expect("it has words").1);
        let [mut of_a, mut of_b] = [Vec::new(), Vec::new()];
        blocking.keys(a.view(), &mut of_a);
        blocking.keys(b.view(), &mut of_b);
        of_a.iter().any(|key| of_b.contains(key)) && filter.decide(a.view(), b.view()).accepted.is_some()
    };
    (0..TRIALS as u64).filter(is_found).count() as f64 / TRIALS as f64
}

/// No block is hot here, so the plan's upper bound is the recall.
#[test]
fn quotes_are_found_as_planned() {
    for (settings, sizes) in [
        (&[][..], &[50, 100][..]),
        (&["sketch.scale=32", "sketch.least=4", "threshold=0.5"], &[50, 100]),
        (&["filter.verify=sketch"], &[300]),
    ] {
        let settings: Vec<String> = settings.iter().map(|one| (*one).to_owned()).collect();
        let plan = Plan::load("contained", &settings).unwrap_or_else(|error| panic!("{error}"));
        let report = serde_json::to_value(PlanReport::new(&plan, 1000, 1, None)).expect("it is JSON");
        let rows = report["quotes"].as_array().expect("a plan of containment has quotes");
        for row in rows {
            let of = |key: &str| row[key].as_u64().expect("a number");
            let (words, edits, ratio) = (of("words"), of("edits"), of("ratio"));
            let [words, ratio] = [words, ratio].map(|n| usize::try_from(n).expect("it is small"));
            if !sizes.contains(&words) || ratio > 2 {
                continue;
            }
            let planned = row["found_at_most"].as_f64().expect("a probability");
            let share = found(&plan, |trial| quoted(words, edits, ratio, trial));
            println!("{settings:?} {words} words, {edits} %: {share:.4}, planned {planned:.4}");
            let slack = bounds::of_share(TRIALS, planned);
            assert!((share - planned).abs() <= slack, "{settings:?} {row}: {share}");
        }
    }
}

/// A generator of words, with what is between them.
struct Language {
    name: &'static str,
    /// Letters of which a word is made, in turn.
    letters: &'static [(&'static str, std::ops::RangeInclusive<u64>)],
    between: &'static str,
}

/// Letters and lengths of words of seven languages. The mean is 4.5 letters in English, 9 in German, 3
/// syllables in Korean, 2 characters in Chinese, 2.5 in Japanese, and 5.5 letters in Thai and Lao. Marks
/// are left out, and grammar is not modelled.
const LANGUAGES: [Language; 7] = [
    Language { name: "English", letters: &[("abcdefghijklmnoprstuvwy", 2..=7)], between: " " },
    Language { name: "German", letters: &[("abdefghiklmnoprstuwzäöü", 3..=15)], between: " " },
    Language { name: "Korean", letters: &[(HANGUL, 2..=4)], between: " " },
    Language { name: "Chinese", letters: &[(HAN, 1..=2), (HAN, 0..=1)], between: "" },
    Language { name: "Japanese", letters: &[(HAN, 0..=2), (KANA, 0..=3)], between: "" },
    Language {
        name: "Thai", letters: &[("กขคงจชซดตถทนบปพฟมยรลวสหอะาเแโ", 3..=8)], between: ""
    },
    Language {
        name: "Lao", letters: &[("ກຂຄງຈສຊຍດຕຖທນບປຜຝພຟມຢຣລວຫອຮະາ", 3..=8)], between: ""
    },
];
const HAN: &str = "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能\
    对着事其里所去行过家十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从";
const KANA: &str = "のにはをたがでてとしれさいらなもるこかりうくそつまけせおあめわすきンスルトリア";
const HANGUL: &str =
    "이다는을가에의고하지로한은도나를기사대자시어아서리인정수부해일전그있으보만주제들게성라과여면";

impl Language {
    /// A word of the language, the same for the same number.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place below the length")]
    fn word(&self, number: u64) -> String {
        let mut word = String::new();
        for (part, (letters, lengths)) in self.letters.iter().enumerate() {
            let letters: Vec<char> = letters.chars().collect();
            let seed = mix(number << 8 | part as u64);
            let length = lengths.start() + seed % (1 + lengths.end() - lengths.start());
            for at in 0..length {
                // The first letters are more frequent.
                let place = letters.len() as f64 * unit(mix(seed ^ at << 40)).powi(2);
                word.push(letters[place as usize]);
            }
        }
        if word.is_empty() { self.word(mix(number)) } else { word }
    }

    /// Words by Zipf's law of 5,000.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 5,000")]
    fn words(&self, count: usize, seed: u64) -> Vec<String> {
        let number = |at: usize| 5001_f64.powf(unit(mix(seed ^ (at as u64) << 32))) as u64;
        (0..count).map(|at| self.word(number(at))).collect()
    }

    fn text(&self, words: &[String]) -> String {
        words.join(self.between)
    }

    /// A text and a quote of it, from its middle, of which each word is replaced with a probability in
    /// percent.
    fn quoted(&self, words: usize, edits: u64, ratio: usize, trial: u64) -> [String; 2] {
        let seed = mix(trial ^ (words as u64) << 32 ^ edits << 48 ^ (ratio as u64) << 56);
        let text = self.words(words * ratio, seed);
        let others = self.words(words, mix(seed));
        let start = words * (ratio - 1) / 2;
        let edited = |(at, word): (usize, &String)| {
            let is_replaced = mix(seed ^ at as u64) % 100 < edits;
            if is_replaced { others[at].clone() } else { word.clone() }
        };
        let quote: Vec<String> = text[start..start + words].iter().enumerate().map(edited).collect();
        [self.text(&quote), self.text(&text)]
    }
}

/// A number from 0 to 1, exclusive.
fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// In every script as many quotes are found as planned, with as many keys for each word, and a word counts as
/// one.
#[test]
fn quotes_are_found_in_every_script() {
    let plan_of =
        |settings: &[String]| Plan::load("contained", settings).unwrap_or_else(|error| panic!("{error}"));
    let plan = plan_of(&[]);
    let reports = [plan.clone(), plan_of(&["text.shingle=words:6".to_owned()])]
        .map(|plan| serde_json::to_value(PlanReport::new(&plan, 1000, 1, None)).expect("it is JSON"));
    let planned = |report: &serde_json::Value, (words, edits, ratio): (usize, u64, usize)| -> f64 {
        let rows = report["quotes"].as_array().expect("a plan of containment has quotes");
        let is_row = |row: &&serde_json::Value| {
            row["words"] == words && row["edits"] == edits && row["ratio"] == ratio
        };
        rows.iter().find(is_row).and_then(|row| row["found_at_most"].as_f64()).expect("a row")
    };
    let mut english = None;
    for language in &LANGUAGES {
        let (mut keys, mut values, mut counted, mut all) = (0, 0, 0, 0);
        let (blocking, mut maker) = (plan.blocking(), SketchMaker::new(&plan.scheme));
        for trial in 0..60 {
            let (_, sketch) =
                maker.sketch(&language.text(&language.words(1000, trial))).expect("it has words");
            let mut of_text = Vec::new();
            blocking.keys(sketch.view(), &mut of_text);
            (keys, values) = (keys + of_text.len(), values + sketch.features.len());
            (counted, all) = (counted + words_of(sketch.words[0]), all + 1000);
        }
        let [keys, values, counted] = [keys, values, counted].map(|sum| sum as f64 / f64::from(all));
        println!(
            "{}: a word has {values:.3} shingles, {keys:.4} keys, and is {counted:.3} words",
            language.name
        );
        for quote @ (words, edits, ratio) in
            [(50, 0, 2), (50, 0, 10), (50, 5, 2), (50, 5, 10), (100, 0, 10), (100, 5, 10), (100, 10, 10)]
        {
            let share = found(&plan, |trial| language.quoted(words, edits, ratio, trial));
            let [most, least] = reports.each_ref().map(|report| planned(report, quote));
            println!("  {words} words, {edits} % replaced, 1 of {ratio}: {share:.4}, planned {most:.4}");
            // Without spaces a shingle begins within a word, so that it has parts of six.
            let least = if language.between.is_empty() { least } else { most };
            let slack = [least, most].map(|expected| bounds::of_share(TRIALS, expected));
            let range = least - slack[0]..=most + slack[1];
            assert!(range.contains(&share), "{}, {quote:?}: {share}, expected {range:?}", language.name);
        }
        let of_english = *english.get_or_insert(keys);
        assert!((2.0 / 3.0..1.5).contains(&(keys / of_english)), "{}: {keys} keys a word", language.name);
        assert!((0.9..1.1).contains(&counted), "{}: a word counts as {counted}", language.name);
    }
}
