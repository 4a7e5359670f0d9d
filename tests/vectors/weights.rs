//! Golden vectors of weights, and of the similarities computed from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dupflow::core::text::measures::{cosine, weighted_jaccard};
use dupflow::core::text::{
    Features, Featurizer, Idf, IdfForm, IdfTable, Shingle, Spaceless, Terms, TextRules, Weigher, Weights,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Weight {
    count: u32,
    tf: f64,
    tfidf_paper_clipped: f64,
    tfidf_smooth: f64,
}

#[derive(Deserialize)]
struct Corpus {
    docs: Vec<String>,
    df: BTreeMap<String, u32>,
    /// For each document, the weights by token.
    weights: Vec<BTreeMap<String, Weight>>,
    pairwise_weighted_jaccard_smooth: Vec<Vec<f64>>,
    pairwise_cosine_smooth: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct File<T> {
    cases: Vec<T>,
}

/// Features are single tokens.
fn featurizer() -> Featurizer {
    Featurizer::new(TextRules {
        shingle: Shingle::Words(1),
        spaceless: Spaceless::Run,
        ..TextRules::default()
    })
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-12
}

/// A feature's weight; 0 if it is absent.
fn weight(features: Features<'_>, feature: u64) -> f64 {
    features.ids.binary_search(&feature).map_or(0.0, |at| features.weights[at])
}

#[test]
fn frequencies_and_weights() {
    let file: File<Corpus> = serde_json::from_str(include_str!("tfidf.json")).unwrap();
    let mut featurizer = featurizer();
    assert!(!file.cases.is_empty());
    for Corpus { docs, df, weights, pairwise_weighted_jaccard_smooth, pairwise_cosine_smooth } in file.cases {
        let terms: Vec<Terms> = docs.iter().map(|text| featurizer.terms(text).to_owned()).collect();
        let table = Arc::new(IdfTable::count(terms.iter().map(|terms| &terms.ids)));
        assert_eq!((table.documents(), table.len()), (docs.len() as u64, df.len()));
        for (token, holders) in df {
            assert_eq!(table.holders(featurizer.features(&token)[0]), holders, "{token}");
        }

        let frozen = |form| Weights::TfIdf(Idf::Frozen(Arc::clone(&table)), form);
        let rules = [Weights::Count, Weights::Tf, frozen(IdfForm::Paper), frozen(IdfForm::Smooth)];
        for (text, by_token) in terms.iter().zip(weights) {
            assert_eq!(text.ids.len(), by_token.len());
            for (token, Weight { count, tf, tfidf_paper_clipped, tfidf_smooth }) in by_token {
                let feature = featurizer.features(&token)[0];
                let by_rule = [f64::from(count), tf, tfidf_paper_clipped, tfidf_smooth];
                for (rule, expected) in rules.iter().zip(by_rule) {
                    let found = weight(Weigher::new().weigh(text.view(), rule), feature);
                    assert!(near(found, expected), "{token}: {rule:?} {found} {expected}");
                }
            }
        }

        for (a, (jaccards, cosines)) in
            pairwise_weighted_jaccard_smooth.iter().zip(pairwise_cosine_smooth).enumerate()
        {
            for (b, (jaccard, cos)) in jaccards.iter().zip(cosines).enumerate() {
                let (mut one, mut other) = (Weigher::new(), Weigher::new());
                let x = one.tf_idf(terms[a].view(), &table, IdfForm::Smooth);
                let y = other.tf_idf(terms[b].view(), &table, IdfForm::Smooth);
                assert!(near(weighted_jaccard(x, y), *jaccard), "{a} {b}");
                assert!(near(cosine(x, y), cos), "{a} {b}");
            }
        }
    }
}

#[derive(Deserialize)]
struct Pair {
    a: String,
    b: String,
    jaccard_tokens: f64,
    weighted_jaccard_tf: f64,
    cosine_tf: f64,
    weighted_jaccard_relative_tf: f64,
}

#[test]
fn similarities_of_counts() {
    use dupflow::core::text::measures::{containment, jaccard};

    let file: File<Pair> = serde_json::from_str(include_str!("pair_similarities.json")).unwrap();
    let mut featurizer = featurizer();
    assert!(!file.cases.is_empty());
    for case in file.cases {
        let (a, b) = (featurizer.terms(&case.a).to_owned(), featurizer.terms(&case.b).to_owned());
        let similarity = |measure: fn(Features<'_>, Features<'_>) -> f64, rule: Weights| {
            let (mut one, mut other) = (Weigher::new(), Weigher::new());
            measure(one.weigh(a.view(), &rule), other.weigh(b.view(), &rule))
        };
        for (found, expected) in [
            (similarity(jaccard, Weights::Count), case.jaccard_tokens),
            (similarity(jaccard, Weights::Unit), case.jaccard_tokens),
            (similarity(weighted_jaccard, Weights::Unit), case.jaccard_tokens),
            (similarity(weighted_jaccard, Weights::Count), case.weighted_jaccard_tf),
            (similarity(weighted_jaccard, Weights::Tf), case.weighted_jaccard_relative_tf),
            (similarity(cosine, Weights::Count), case.cosine_tf),
            (similarity(cosine, Weights::Tf), case.cosine_tf),
        ] {
            assert!(near(found, expected), "{:?} {:?}: {found} {expected}", case.a, case.b);
        }
        // C = J (1 + |B| / |A|) / (1 + J)
        if !a.ids.is_empty() {
            let (j, sizes) = (case.jaccard_tokens, b.ids.len() as f64 / a.ids.len() as f64);
            assert!(near(similarity(containment, Weights::Unit), j * (1.0 + sizes) / (1.0 + j)));
        }
    }
}
