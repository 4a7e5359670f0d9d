//! A strict parser of the part of the OpenMetrics 1.0 text format that is used; it panics on any violation.

use std::collections::BTreeMap;

/// The samples of one metric.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    /// By the rest of the line's name, such as `_bucket{le="1"}`.
    pub(crate) samples: BTreeMap<String, f64>,
}

/// Families by name.
pub(crate) fn read(text: &str) -> BTreeMap<String, Family> {
    let text = text.strip_suffix("# EOF\n").expect("the end is said");
    assert!(text.ends_with('\n'), "the last line ends");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut name = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(declared) = line.strip_prefix("# HELP ") {
            let (new, help) = declared.split_once(' ').unwrap();
            let kind = lines.next().and_then(|next| next.strip_prefix("# TYPE ")).unwrap();
            let (again, kind) = kind.split_once(' ').unwrap();
            assert_eq!(new, again, "HELP and TYPE stand together");
            assert!(is_name(new), "{new}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}: {kind}");
            assert!(!new.ends_with("_total"), "{new} is a {kind}");
            // Named like its samples.
            let new = if kind == "counter" { format!("{new}_total") } else { new.to_owned() };
            let family = Family { kind: kind.to_owned(), help: help.to_owned(), ..Family::default() };
            assert!(families.insert(new.clone(), family).is_none(), "{new} comes twice");
            name = new;
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value in {line:?}"));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number in {line:?}"));
        let family = families.get_mut(&name).unwrap_or_else(|| panic!("{line:?} belongs to no family"));
        let rest = sample.strip_prefix(&*name).unwrap_or_else(|| panic!("{sample} stands below {name}"));
        let suffix = rest.split('{').next().unwrap();
        let suffixes: &[&str] =
            if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "{sample} stands below {name}, a {}", family.kind);
        if let Some(labels) = rest[suffix.len()..].strip_prefix('{') {
            check_labels(labels.strip_suffix('}').unwrap_or_else(|| panic!("{sample}")));
        }
        assert!(value >= 0.0 && value.is_finite(), "{line}");
        assert!(family.samples.insert(rest.to_owned(), value).is_none(), "{sample} comes twice");
    }
    families
        .iter()
        .filter(|(_, family)| family.kind == "histogram")
        .for_each(|(histogram, family)| buckets(histogram, family));
    families
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain)
}

/// A label `name="value"` with quotes, backslashes and newlines escaped.
fn check_labels(label: &str) {
    let (name, value) = label.split_once("=\"").unwrap_or_else(|| panic!("{label}"));
    assert!(is_name(name), "{label}");
    let mut value = value.strip_suffix('"').unwrap_or_else(|| panic!("{label}")).chars();
    while let Some(c) = value.next() {
        assert_ne!(c, '"', "{label}");
        if c == '\\' {
            assert!(matches!(value.next(), Some('\\' | '"' | 'n')), "{label}");
        }
    }
}

/// Bounds ascend to infinity, counts do not decrease, the last count is the total.
fn buckets(name: &str, family: &Family) {
    let bound = |key: &str| key.strip_prefix("_bucket{le=\"")?.strip_suffix("\"}")?.parse::<f64>().ok();
    let mut buckets: Vec<(f64, f64)> =
        family.samples.iter().filter_map(|(key, n)| Some((bound(key)?, *n))).collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name}: {buckets:?}");
    let (last, all) = *buckets.last().unwrap();
    assert!(last.is_infinite(), "{name}: {buckets:?}");
    assert_eq!(Some(&all), family.samples.get("_count"), "{name}");
    assert!(family.samples.contains_key("_sum"), "{name}");
}

#[test]
fn what_is_wrong_is_seen() {
    let fine = "# HELP a A.\n# TYPE a counter\na_total{b=\"c\\\"\"} 1\n# EOF\n";
    assert_eq!(read(fine)["a_total"].samples["{b=\"c\\\"\"}"].to_bits(), 1f64.to_bits());
    for (from, to) in [
        ("a_total{", "b_total{"),
        ("\\\"", "\""),
        (" 1\n", " one\n"),
        (" 1\n", " 1"),
        (" 1\n", " -1\n"),
        ("counter", "gauge"),
        ("# TYPE a counter\n", ""),
        ("# HELP a A.\n", ""),
        ("# EOF\n", ""),
    ] {
        let wrong = fine.replace(from, to);
        assert!(std::panic::catch_unwind(|| read(&wrong)).is_err(), "{wrong}");
    }
}
