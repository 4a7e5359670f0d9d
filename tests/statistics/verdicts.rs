//! Verdicts of the papers' items are computed from measurements: none is constant.
//!
//! Every fourth section is asked, from one that `DUPFLOW_SEED` chooses (all of them with
//! `DUPFLOW_VERDICTS=all`), at a small part of its size, at three seeds. Each claim, of each seed and of the
//! three together, is perturbed: the samples of one measured number after the other are moved until their
//! interval lies just beyond an end of its range, and then all numbers into their ranges. The verdict must
//! follow.

use std::path::PathBuf;

use dupflow::core::time::SystemClock;
use dupflow::lab::paper::{
    Basis, ClaimVerdict, Effort, ItemLine, Matters, PaperSource, PrintedClaim, SectionAnswers,
    SectionContext, UnjudgedReason,
};
use dupflow::lab::{EvaluateError, StudyContext};

const SEEDS: [u64; 3] = [1, 2, 3];

/// The answers of a source at a small part of its size: for each section those of each seed.
fn answers(source: PaperSource) -> Result<Vec<(Effort, Vec<SectionAnswers>)>, EvaluateError> {
    let clock = SystemClock::start();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dupflow"));
    let planner = dupflow::cli::evaluate::Planned::default();
    let ask = |section: &dupflow::lab::paper::Section| {
        let seeds = &SEEDS[..section.effort.seeds(SEEDS.len())];
        let at = |seed: &u64| {
            let bench =
                StudyContext { clock: &clock, threads: 2, seed: *seed, planner: &planner, progress: &|_| {} };
            (section.make)(&SectionContext { bench: &bench, program: &program, scale: 1e-9, labelled: None })
        };
        Ok((section.effort, seeds.iter().map(at).collect::<Result<Vec<_>, EvaluateError>>()?))
    };
    let (first, step) = sampled();
    source.sections().iter().skip(first).step_by(step).map(ask).collect()
}

/// The first section that is asked, and how many follow up to the next.
fn sampled() -> (usize, usize) {
    if std::env::var("DUPFLOW_VERDICTS").is_ok_and(|asked| asked == "all") {
        return (0, 1);
    }
    (usize::try_from(crate::papers::sample_seed() % 4).unwrap_or(0), 4)
}

/// The greatest share of a printed number that the least difference that matters may be; with a larger one a
/// claim says little.
const LOOSEST: f64 = 0.55;

fn is_loose(claim: &PrintedClaim) -> bool {
    claim.numbers().iter().any(|number| {
        let (middle, half) = (f64::midpoint(number.low, number.high), 0.5 * (number.high - number.low));
        half.is_finite() && middle.abs() > 1e-9 && half > LOOSEST * middle.abs()
    })
}

#[test]
fn every_verdict_changes_with_its_measurement() {
    // A thread for each source: each computes for seconds.
    let turned: usize = std::thread::scope(|scope| {
        let each = PaperSource::ALL.map(|source| scope.spawn(move || turned(source)));
        each.map(|one| one.join().expect("its verdicts change")).iter().sum()
    });
    let least = 1000 / sampled().1 / 2;
    assert!(turned > least, "only {turned} measurements");
}

/// Checks the verdicts of a source; returns the number of changed measurements.
fn turned(source: PaperSource) -> usize {
    let mut count = 0;
    for (effort, seeds) in answers(source).unwrap() {
        let mut pooled = seeds[0].clone();
        seeds[1..].iter().for_each(|more| pooled.pool(more));
        for line in pooled.lines.iter().filter(|line| matches!(line.basis, Basis::Measured(_))) {
            let numbers = line.basis.claim().map(PrintedClaim::numbers).unwrap_or_default();
            assert!(
                numbers.iter().all(|number| number.samples.len() == seeds.len()),
                "{}: {line:?}",
                line.item
            );
        }
        for line in seeds.iter().chain([&pooled]).flat_map(|answers| &answers.lines) {
            let needs_seeds = match line.basis {
                Basis::Measured(_) => effort.seeds(2) == 1,
                Basis::Defined(_) => effort == Effort::Once,
                _ => false,
            };
            assert!(!needs_seeds, "{}: judged by one seed", line.item);
            count += follows(line);
        }
    }
    count
}

/// Perturbs the claim of a line; returns the number of changed measurements.
fn follows(line: &ItemLine) -> usize {
    let of = format!("{}, {}", line.item, line.of);
    let Some(claim) = line.basis.claim() else {
        let is_unjudged = matches!(line.verdict(), ClaimVerdict::Unjudged(_));
        assert!(is_unjudged, "{of}: a verdict without a claim");
        return 0;
    };
    assert!(!claim.numbers().is_empty(), "{of}: nothing is compared");
    assert!(!is_loose(claim), "{of}: {claim:?}");
    let verdict = |moved: PrintedClaim| line.basis.with(moved).verdict();
    let refuted = [ClaimVerdict::Differs, ClaimVerdict::Misprint];
    let within = verdict(claim.within());
    assert!(within == ClaimVerdict::Agrees || matches!(within, ClaimVerdict::Unjudged(_)), "{of}: {claim:?}");
    let beyond = claim.beyond();
    for other in &beyond {
        let turned = verdict(other.clone());
        assert!(refuted.contains(&turned), "{of}: {claim:?} became {other:?}");
    }
    beyond.len()
}

/// One seed in five that measures otherwise does not turn a verdict into its opposite.
#[test]
fn one_seed_alone_turns_no_verdict() {
    let claim = |counts: [f64; 5]| {
        let mut claims = counts.map(|count| PrintedClaim::at_most(0.5, &[count])).into_iter();
        let first = claims.next().unwrap();
        Basis::Measured(claims.fold(first, |mut all, more| {
            all.pool(&more);
            all
        }))
    };
    assert_eq!(claim([0.0; 5]).verdict(), ClaimVerdict::Agrees);
    assert_eq!(claim([1.0, 0.0, 0.0, 0.0, 0.0]).verdict(), ClaimVerdict::Undecided);
    assert_eq!(claim([1.0, 1.0, 1.0, 1.0, 0.0]).verdict(), ClaimVerdict::Undecided);
    assert_eq!(claim([1.0; 5]).verdict(), ClaimVerdict::Differs);
    let arithmetic = Basis::Computed(PrintedClaim::equal(1.0, 1.0, Matters::Any));
    assert_eq!(arithmetic.verdict(), ClaimVerdict::Unjudged(UnjudgedReason::Arithmetic));
}
