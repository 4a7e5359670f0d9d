//! The built-in pipelines.

use crate::config::{BUILT_IN, BlockingPlan, Plan};
use dupflow_core::block::HotRule;
use dupflow_core::block::banding::Curve;
use dupflow_core::sketch::agreement::Agreement;
use dupflow_core::sketch::estimate::standard_error;

#[test]
fn pipelines_by_name_and_by_path() {
    for (name, _) in BUILT_IN {
        assert_eq!(Plan::load(name, &[]).unwrap().name, *name);
    }
    let error = Plan::load("minhsh", &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "no pipeline \"minhsh\", did you mean \"minhash\"?; built in: minhash, exact, simhash, sectional, \
        weighted, onebit, assured, contained, decontaminate, fingerprint, paper, tour; a file is named with \
         a \"/\" or ends in \".toml\""
    );
    let unreadable = Plan::load("no/such.toml", &[]).unwrap_err();
    assert_eq!(unreadable.to_string(), "cannot read \"no/such.toml\"");
}

#[test]
fn the_default_pipeline_keeps_its_promises() {
    let plan = Plan::load(BUILT_IN[0].0, &[]).unwrap();
    let BlockingPlan::Banding { design, rule } = &plan.blocking else { panic!("{plan:?}") };
    assert_eq!(design.curve, Curve { bands: 18, rows: 7, agreement: Agreement::Bits(4) });
    assert_eq!(*rule, HotRule { cap: 96, leaders: 2, ..HotRule::NEVER });
    assert!(design.recall >= 0.99);
    assert!(standard_error(plan.threshold, plan.scheme.sketch.size, plan.scheme.sketch.bits) <= 0.02);
    // No shipped pipeline sets bands or rows itself.
    for (name, text) in BUILT_IN {
        let lines = text.lines().filter(|line| line.starts_with("bands =") || line.starts_with("rows ="));
        assert_eq!(lines.count(), 0, "{name}");
    }
    let banding = |name: &str, settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|&set| set.to_owned()).collect();
        let loaded = Plan::load(name, &settings).unwrap();
        let BlockingPlan::Banding { design: bands, .. } = loaded.blocking else { panic!("{name}") };
        (bands.curve.bands, bands.curve.rows)
    };
    let shipped =
        ["minhash", "exact", "sectional", "weighted", "paper", "tour"].map(|name| banding(name, &[]));
    assert_eq!(shipped, [(18, 7), (26, 7), (32, 6), (18, 7), (16, 6), (16, 2)]);
    // At another threshold, or for more documents, bands and rows differ.
    assert_eq!(banding("minhash", &["threshold=0.5"]), (57, 4));
    assert_eq!(banding("exact", &["threshold=0.6"]), (70, 5));
    assert_eq!(banding("minhash", &["blocking.documents=10000"]), (14, 6));
    // `exact` has another filter and more bands: it misses fewer of the pairs that it then decides exactly.
    let exact = Plan::load("exact", &[]).unwrap();
    assert_eq!(dupflow_core::sketch::Scheme { exact: false, ..exact.scheme }, plan.scheme);
    let BlockingPlan::Banding { design: of_exact, .. } = &exact.blocking else {
        panic!("{:?}", exact.blocking)
    };
    assert!(of_exact.recall > design.recall, "{of_exact:?}");
}
