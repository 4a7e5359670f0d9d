//! The text format of Prometheus, version 0.0.4: lines of samples below what they are.

use std::fmt::{Display, Write};

use super::histogram::Buckets;

/// Begins a family: its name, its type, what it is.
pub(super) fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    line(out, format_args!("# HELP {name} {help}"));
    line(out, format_args!("# TYPE {name} {kind}"));
}

/// Takes the samples of one family.
pub(super) struct Samples<'t> {
    pub(super) out: &'t mut String,
    pub(super) name: &'t str,
}

impl Samples<'_> {
    /// The only sample.
    pub(super) fn one(&mut self, value: impl Display) {
        line(self.out, format_args!("{} {value}", self.name));
    }

    /// One of several, told apart by a label.
    pub(super) fn labelled(&mut self, label: &str, is: &str, value: impl Display) {
        line(self.out, format_args!("{}{{{label}=\"{}\"}} {value}", self.name, escaped(is)));
    }

    /// A histogram in seconds.
    pub(super) fn histogram(&mut self, buckets: &Buckets) {
        let name = self.name;
        let mut count = 0;
        for (bound, up_to) in &buckets.up_to {
            let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
            line(self.out, format_args!("{name}_bucket{{le=\"{bound}\"}} {up_to}"));
            count = *up_to;
        }
        line(self.out, format_args!("{name}_sum {}", buckets.sum));
        line(self.out, format_args!("{name}_count {count}"));
    }
}

fn line(out: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(out, "{what}").expect("a string takes what is written to it");
}

/// The value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_format() {
        let mut out = String::new();
        family(&mut out, "x_total", "counter", "Of \"a\\b\"\nand c.");
        let mut samples = Samples { out: &mut out, name: "x_total" };
        samples.labelled("reason", "a\\b \"c\"\nd", 7);
        samples.one(0.25);
        samples.histogram(&Buckets { up_to: vec![(0.5, 1), (f64::INFINITY, 3)], sum: 2.0 });
        let expected = r#"# HELP x_total Of "a\\b"\nand c.
# TYPE x_total counter
x_total{reason="a\\b \"c\"\nd"} 7
x_total 0.25
x_total_bucket{le="0.5"} 1
x_total_bucket{le="+Inf"} 3
x_total_sum 2
x_total_count 3
"#;
        assert_eq!(out, expected);
    }
}
