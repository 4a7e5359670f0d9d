//! Quotes in larger texts: how often their sketches share a block and pass the filter, against the plan.

use dupflow::config::Plan;
use dupflow::core::hash::mix;
use dupflow::core::sketch::SketchMaker;
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
