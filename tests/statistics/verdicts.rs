//! Verdicts of the papers' items are computed from measurements: none is constant.
//!
//! Every section is run at a small part of its size. Then each claim is perturbed: one measured number after
//! the other is moved just beyond its tolerance, in the direction that the relation forbids. If the claim
//! fails, all numbers are moved to where it holds. Each time the verdict must change.

use std::path::PathBuf;

use dupflow::core::time::SystemClock;
use dupflow::lab::paper::{Basis, ClaimVerdict, ItemLine, PaperSource, PrintedClaim, SectionContext};
use dupflow::lab::{EvaluateError, StudyContext};

/// The lines of a source at a small part of its size.
fn lines(source: PaperSource, seed: u64) -> Result<Vec<ItemLine>, EvaluateError> {
    let clock = SystemClock::start();
    let bench = StudyContext {
        clock: &clock,
        threads: 2,
        seed,
        planner: &dupflow::cli::evaluate::Planned::default(),
        progress: &|_| {},
    };
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dupflow"));
    let work = SectionContext { bench: &bench, program: &program, scale: 1e-9, labelled: None };
    let mut all = Vec::new();
    for section in source.sections() {
        all.extend((section.make)(&work)?.lines);
    }
    Ok(all)
}

/// The greatest share of a printed number that a tolerance may be; a claim with a larger tolerance says
/// little.
const LOOSEST: f64 = 0.55;

fn is_loose(claim: &PrintedClaim) -> bool {
    match claim {
        PrintedClaim::Equal { all, .. } => {
            all.iter().any(|near| near.printed.abs() > 0.0 && near.slack > LOOSEST * near.printed.abs())
        }
        PrintedClaim::All(claims) => claims.iter().any(is_loose),
        _ => false,
    }
}

/// At full size tolerances are narrower than in this test, which has few trials. Tolerances that do not
/// depend on trials are checked here.
fn hold(line: &ItemLine) {
    if let Basis::Exact(claim) | Basis::Measured(claim) = &line.basis {
        let is_statistical =
            claim.to_string().contains("deviations") || line.item == "004-T1" || line.item == "004-X1";
        assert!(is_statistical || !is_loose(claim), "{}, {}: {claim:?}", line.item, line.of);
    }
}

#[test]
fn every_verdict_changes_with_its_measurement() {
    // A thread for each source: each computes for seconds.
    let turned: usize = std::thread::scope(|scope| {
        let each = PaperSource::ALL.map(|source| scope.spawn(move || turned(source)));
        each.map(|one| one.join().expect("its verdicts change")).iter().sum()
    });
    assert!(turned > 300, "only {turned} measurements");
}

/// Checks the verdicts of a source; returns the number of changed measurements.
fn turned(source: PaperSource) -> usize {
    let mut turned = 0;
    for line in lines(source, 1).unwrap() {
        let of = format!("{}, {}", line.item, line.of);
        hold(&line);
        let Some(claim) = line.basis.claim() else {
            let is_unjudged = matches!(line.verdict(), ClaimVerdict::Unjudged(_));
            assert!(is_unjudged, "{of}: a verdict without a claim");
            continue;
        };
        assert!(!claim.is_empty(), "{of}: nothing is compared");
        for other in claim.perturbed() {
            let basis = line.basis.with(other.clone());
            assert_ne!(basis.verdict(), line.verdict(), "{of}: {claim:?} became {other:?}");
            turned += 1;
        }
    }
    turned
}
