//! The weighted truth computed by the oracle, against the recorded one, which was computed by another
//! program.

use std::collections::BTreeMap;

use dupflow::core::doc::DocId;
use dupflow::core::oracle;
use dupflow::core::pair::Pair;
use dupflow::core::text::measures::Measure;

use crate::corpus::featurizer;
use crate::data;

const FLOOR: f64 = 0.8;

#[test]
fn counts_of_a_recorded_corpus() {
    let Some(folder) = data::folder("the weighted similarities of a recorded corpus") else { return };
    let mut featurizer = featurizer();
    let documents = data::feed(&folder.join("static_10k_shared.jsonl.zst")).map(|(id, text)| {
        let terms = featurizer.terms(&text.unwrap_or_default()).to_owned();
        (
            id,
            (
                terms.ids.into_vec(),
                terms.counts.iter().map(|&count| f64::from(u32::try_from(count).unwrap())).collect(),
            ),
        )
    });
    let found: BTreeMap<Pair<DocId>, f64> =
        oracle::weighted_pairs(documents, Measure::WeightedJaccard, FLOOR).into_iter().collect();

    let recorded = data::lines(&folder.join("static_10k_shared.tf_pairs_0.5.tsv.zst"));
    let expected: BTreeMap<Pair<DocId>, f64> = recorded
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [a, b] = [fields[0], fields[1]].map(|id| DocId::new(id).unwrap());
            let similarity: f64 = fields[2].parse().unwrap();
            (similarity >= FLOOR).then(|| (Pair::new(a, b).unwrap(), similarity))
        })
        .collect();
    assert!(found.keys().eq(expected.keys()), "{} found, {} expected", found.len(), expected.len());
    for (pair, similarity) in found {
        // Recorded with nine decimals.
        assert!((similarity - expected[&pair]).abs() <= 5.1e-10, "{pair:?}: {similarity}");
    }
}
