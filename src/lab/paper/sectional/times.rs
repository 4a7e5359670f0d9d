//! Figure 5: hashing time by the number of sections.

use std::hint::black_box;

use super::super::{ItemLine, SectionAnswers, SectionContext, UnjudgedReason};
use super::error::name;
use super::model::BASES;
use super::printed::SECTIONS;
use crate::EvaluateError;
use crate::plot::{Axis, Plot, Series};
use crate::table::{ResultTable, row};
use dupflow_core::hash::mix;
use dupflow_core::sketch::{MinHash, Sampler, SectionMode, Sectional};
use dupflow_core::text::Features;

/// Number of components, and of shingles of a text.
const SHAPE: (usize, usize) = (500, 1_000);

pub(super) fn hashing(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let (size, features) = SHAPE;
    let seed = work.bench.seed;
    let ids: Vec<u64> = (0..features as u64).map(|x| mix(seed ^ mix(x))).collect();
    let mut forms: Vec<(String, Box<dyn Sampler>)> =
        vec![("MinHash".to_owned(), Box::new(MinHash::new(size, seed)))];
    for (base, sections) in BASES.into_iter().flat_map(|base| SECTIONS.map(|sections| (base, sections))) {
        let sampler = Sectional::new(size, sections, SectionMode::Attach, base, seed);
        forms.push((format!("s = {sections}, over {}", base.name()), Box::new(sampler)));
    }
    let mut out = vec![0; size];
    let times = work.bench.times(forms.len(), 1, |form, _| {
        forms[form].1.components(black_box(Features::set(&ids)), &mut out);
        black_box(&out);
    });
    let mut table = ResultTable::new(
        "004_f5",
        "Figure 5: hashing time, k = 500, 1,000 shingles",
        "One thread, shingles to components; the least of rounds in which every form has its turn.",
        "sketch | time, µs/text | of MinHash's time",
    );
    for ((of, _), seconds) in forms.iter().zip(&times) {
        table.push(row![of.as_str(), seconds * 1e6, seconds / times[0]]);
    }
    let line = |base: usize| {
        Series::new(
            format!("over {}", BASES[base].name()),
            SECTIONS.iter().zip(&times[1 + base * SECTIONS.len()..]).map(|(s, t)| (*s as f64, t / times[0])),
        )
    };
    let plot = Plot::new(
        "004_f5",
        "Hashing time as a multiple of MinHash's, k = 500",
        Axis::linear("s, sections"),
        Axis::log("multiple"),
        vec![line(0), line(1)],
    );
    let lines = vec![
        ItemLine::new("004-F5", "time of s = 2 over MinHash's", "about 1.05")
            .measured(format!("{:.2}", times[2] / times[0]))
            .judged(UnjudgedReason::Timed)
            .because(
                "the seconds are lost; each section is sketched by itself, which adds little to a hash for \
                    each shingle and component",
            ),
        ItemLine::new("004-F5", format!("time of {} to {} over MinHash's", name(2), name(5)), "linear in s")
            .measured((2..=5).map(|s| format!("{:.2}", times[s] / times[0])).collect::<Vec<_>>().join(", "))
            .judged(UnjudgedReason::Timed)
            .because("hashes are those of MinHash whatever s is; only comparing sections grows with it"),
        ItemLine::new("004-F5", "the same over fss", "-")
            .measured((7..=10).map(|s| format!("{:.4}", times[s] / times[0])).collect::<Vec<_>>().join(", "))
            .judged(UnjudgedReason::Timed)
            .because("the default base; linear in s, since every section fills all components"),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: vec![plot] })
}
