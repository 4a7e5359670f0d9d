//! Golden vectors of blocking and of the filters. Each file states its content and its tolerance. The vectors
//! write bounds as "reject if <= m" with -1 for never; this program has "reject below m + 1".

use dupflow::core::block::BlockingParams;
use dupflow::core::block::banding::{Curve, areas, design};
use dupflow::core::filter::{Schedule, Target};
use dupflow::core::probability::Binomial;
use dupflow::core::sketch::agreement::{Agreement, Shape};
use dupflow::core::sketch::estimate::match_probability;
use dupflow::core::sketch::kernel::Kernel;
use serde_json::Value;

use crate::read::{absolute, cases, count, counts, number, relative};

/// The bounds of the vectors in this program's form.
fn below(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(one_below).collect()
}

fn one_below(value: &Value) -> usize {
    usize::try_from(value.as_i64().unwrap() + 1).unwrap()
}

#[test]
fn binomial_thresholds() {
    for case in cases("binomial_thresholds") {
        let tails = Binomial::new(count(&case["k"]), number(&case["T"]));
        let (reject, accept) =
            (tails.reject_below(number(&case["e"])), tails.accept_from(number(&case["e"])));
        assert_eq!(
            (reject, accept),
            (one_below(&case["reject_if_le"]), count(&case["accept_if_ge"])),
            "{case}"
        );
        if !case["tail_at_reject"].is_null() {
            relative(tails.below(reject), &case["tail_at_reject"], 1e-9);
        }
        if !case["tail_at_accept"].is_null() {
            relative(tails.at_least(accept), &case["tail_at_accept"], 1e-9);
        }
    }
}

#[test]
fn bbit_thresholds() {
    for case in cases("bbit_thresholds") {
        let p = match_probability(number(&case["T"]), count(&case["b"]));
        absolute(p, &case["T_b_float"], 1e-15);
        let tails = Binomial::new(count(&case["k"]), p);
        let (reject, accept) =
            (tails.reject_below(number(&case["e"])), tails.accept_from(number(&case["e"])));
        assert_eq!(
            (reject, accept),
            (one_below(&case["reject_if_le"]), count(&case["accept_if_ge"])),
            "{case}"
        );
    }
}

#[test]
fn table_of_tails_of_the_staged_cws_paper() {
    let tails = Binomial::new(100, 0.8);
    for case in cases("paper_table1") {
        let m = count(&case["m"]);
        relative(tails.below(m + 1), &case["true_P_X_le_m"], 1e-9);
        relative(tails.at_least(m + 1), &case["true_P_X_gt_m"], 1e-9);
        relative(tails.below(m), &case["true_P_X_lt_m"], 1e-9);
        relative(tails.at_least(m), &case["true_P_X_ge_m"], 1e-9);
    }
}

#[test]
fn bayeslsh_is_a_binomial_tail_of_one_more_trial() {
    for case in cases("bayeslsh") {
        let tails = Binomial::new(count(&case["n"]) + 1, number(&case["T"]));
        relative(tails.below(count(&case["m"]) + 1), &case["posterior_R_ge_T_uniform_prior"], 1e-9);
    }
}

/// Full width in the vectors is 64 bits here.
fn target(case: &Value) -> Target {
    let bits = if case["b"].is_null() { 64 } else { count(&case["b"]) };
    Target::new(number(&case["T"]), count(&case["K"]), bits).unwrap()
}

fn schedule(case: &Value) -> Schedule {
    let (target, looks) = (target(case), counts(&case["looks"]));
    match case["rule"].as_str().unwrap() {
        "fixed" => Schedule::per_look(target, &looks, number(&case["e"])),
        "sketch" => Schedule::sequential(target, &looks, false, number(&case["delta"])),
        rule => panic!("rule {rule}"),
    }
}

#[test]
fn schedules() {
    // Rule "true" with accept bounds has no filter here; without them it is `verify`.
    for case in cases("filter_schedules").iter().filter(|case| case["rule"] != "true") {
        let schedule = schedule(case);
        let (name, target) = (&case["name"], schedule.target());
        absolute(target.probability(), &case["T_b"], 1e-15);
        assert_eq!(target.least_matches(), count(&case["M0"]), "{name}");
        let reject: Vec<usize> = schedule.looks().iter().map(|look| look.reject_below as usize).collect();
        let accept: Vec<usize> = schedule.looks().iter().map(|look| look.accept_from as usize).collect();
        assert_eq!(reject, below(&case["reject_if_le"]), "{name}");
        assert_eq!(accept, counts(&case["accept_if_ge"]), "{name}");
        if case["rule"] == "sketch" {
            absolute(schedule.spent().reject, &case["delta_spent_drop"], 1e-12);
            absolute(schedule.spent().accept, &case["delta_spent_accept"], 1e-12);
        }
        for at in case["expected_comparisons"].as_array().unwrap() {
            let operation = schedule.operation(number(&at["R"]));
            relative(operation.components, &at["E_comparisons"], 1e-7);
            absolute(operation.rejected, &at["P_final_reject"], 1e-9);
            absolute(operation.accepted, &at["P_final_accept"], 1e-9);
        }
    }
}

#[test]
fn verify_mode() {
    for case in cases("filter_verify_mode") {
        let schedule =
            Schedule::verify(target(&case), &counts(&case["looks"]), false, number(&case["delta"]));
        let reject: Vec<usize> = schedule.looks().iter().map(|look| look.reject_below as usize).collect();
        assert_eq!(reject, below(&case["reject_if_le"]), "{case}");
        absolute(schedule.spent().reject, &case["delta_spent"], 1e-12);
        for at in case["operating"].as_array().unwrap() {
            let operation = schedule.operation(number(&at["R"]));
            relative(operation.components, &at["E_comparisons"], 1e-6);
            absolute(operation.accepted, &at["P_verify"], 1e-12);
        }
    }
}

#[test]
fn traces() {
    let schedules: Vec<(String, usize, Schedule)> = cases("filter_schedules")
        .iter()
        .filter(|case| case["rule"] != "true")
        .map(|case| (case["name"].as_str().unwrap().to_owned(), count(&case["K"]), schedule(case)))
        .collect();
    let mut seen = 0;
    for case in cases("filter_traces") {
        let Some((name, size, schedule)) = schedules.iter().find(|(name, ..)| case["schedule"] == **name)
        else {
            continue;
        };
        seen += 1;
        // One sketch is all zeros; the other has ones where they differ. One bit is enough.
        let zeros = vec![0; size.div_ceil(64)];
        let mut other = zeros.clone();
        for (j, bit) in case["match_bits"].as_str().unwrap().bytes().enumerate() {
            other[j / 64] |= u64::from(bit == b'0') << (j % 64);
        }
        let stop = schedule.walk(&Kernel::new(*size, 1), &zeros, &other);
        assert_eq!(stop.rejected, case["decision"] == "reject", "{name}");
        assert_eq!(stop.components as usize, count(&case["k_stop"]), "{name}");
        assert_eq!(stop.matches as usize, count(&case["matches_at_stop"]), "{name}");
        let all = size - Kernel::new(*size, 1).differing(&zeros, &other, 0, *size) as usize;
        assert_eq!(all, count(&case["full_count"]), "{name}");
    }
    assert!(seen > 90, "{seen} traces");
}

#[test]
fn s_curve() {
    for case in cases("s_curve") {
        let agreement = Agreement::Bits(64);
        let curve = Curve { bands: count(&case["b"]), rows: count(&case["r"]), agreement };
        let (found, expected) = (curve.probability(number(&case["s"])), number(&case["P"]));
        // Components of 64 bits may still agree by accident, with probability 2^-64.
        assert!((found - expected).abs() <= 1e-12 * expected + 1e-17, "{case}: {found}");
        relative(curve.half_point(1.0), &case["half_point"], 1e-12);
    }
}

#[test]
fn banding_of_most_rows() {
    for case in cases("banding_optimum").iter().filter(|case| case["objective"] == "min_recall_at_T") {
        let of = |rows| {
            let recall = case["min_recall"].as_f64();
            let params = BlockingParams { rows: Some(rows), recall, ..BlockingParams::default() };
            design(Shape::components(count(&case["K"]), 64), number(&case["T"]), &params)
        };
        let chosen = of(count(&case["r"])).unwrap();
        assert_eq!(chosen.curve.bands, count(&case["b"]), "{case}");
        relative(chosen.recall, &case["P_at_T"], 1e-12);
        of(count(&case["r"]) + 1).unwrap_err();
    }
}

#[test]
fn banding_of_least_area() {
    for case in cases("banding_optimum").iter().filter(|case| case["objective"] == "weighted_area") {
        let (size, threshold) = (count(&case["K"]), number(&case["T"]));
        let cost = |(bands, rows)| {
            let (accepted, missed) = areas(bands, rows, threshold);
            number(&case["w_fp"]) * accepted + number(&case["w_fn"]) * missed
        };
        let best = (count(&case["b"]), count(&case["r"]));
        let (accepted, missed) = areas(best.0, best.1, threshold);
        absolute(accepted, &case["fp_area"], 1e-6);
        absolute(missed, &case["fn_area"], 1e-6);
        absolute(cost(best), &case["cost"], 1e-6);
        let least = (1..=size)
            .flat_map(|rows| (1..=size / rows).map(move |bands| (bands, rows)))
            .map(cost)
            .fold(f64::INFINITY, f64::min);
        assert!(cost(best) - least <= 1e-9, "{case}: {least}");
    }
}
