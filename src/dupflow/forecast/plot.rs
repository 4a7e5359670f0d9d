//! Draws the S-curve with text characters.

use std::fmt::{self, Display, Formatter, Write as _};

/// Columns, each a range of similarities.
const WIDTH: usize = 60;
/// Rows, each a range of probabilities.
const HEIGHT: usize = 12;
/// An eighth, two eighths, ... of a cell.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Pairs that are compared and not reported.
const SHADE: char = '░';

/// Prints a probability with four decimals, or as an order of magnitude if they would all be 0. A value below
/// 1 is never printed as 1.
pub(super) struct Probability(pub(super) f64);

impl Display for Probability {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            p if (0.9999..1.0).contains(&p) => "0.9999".to_owned(),
            p if p >= 0.0005 => format!("{p:.4}"),
            p if p >= 1e-12 => format!("{p:.0e}"),
            _ => "0".to_owned(),
        };
        f.pad(&text)
    }
}

/// Prints a similarity as typed; a derived one with more than six decimals gets four.
pub(super) struct TypedSimilarity(pub(super) f64);

impl Display for TypedSimilarity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        f.pad(&if text.len() > 8 { format!("{:.4}", self.0) } else { text })
    }
}

/// The similarities at the centres of the columns.
pub(super) fn similarities() -> impl Iterator<Item = f64> {
    (0..WIDTH).map(|column| (column as f64 + 0.5) / WIDTH as f64)
}

/// Draws two probabilities per column, the greater one as shade and the smaller one as a bar, and marks the
/// threshold.
pub(super) fn plot(threshold: f64, columns: impl IntoIterator<Item = (f64, f64)>) -> String {
    let rows = |(shade, bar): (f64, f64)| (shade * HEIGHT as f64, bar * HEIGHT as f64);
    let columns: Vec<(f64, f64)> = columns.into_iter().map(rows).collect();
    let mut out = String::new();
    for row in (0..HEIGHT).rev() {
        let label = match row {
            _ if row + 1 == HEIGHT => "1.0 ┤",
            _ if row == HEIGHT / 2 => "0.5 ┤",
            _ => "    │",
        };
        let cells: String =
            columns.iter().map(|(upper, lower)| cell(upper - row as f64, lower - row as f64)).collect();
        let _ = writeln!(out, "  {label}{}", cells.trim_end());
    }
    let at = mark(threshold);
    let axis: String = (0..WIDTH).map(|column| if column == at { '┴' } else { '─' }).collect();
    let _ = writeln!(out, "  0.0 └{axis}");
    let mut labels = vec![' '; WIDTH + 4];
    let (label, place) = (format!("T={}", TypedSimilarity(threshold)), at);
    for (other, beside) in [("0.0", 0), ("0.5", WIDTH / 2 - 1), ("1.0", WIDTH - 2)] {
        // Only if it leaves a space to the threshold's label.
        if beside + other.len() < place || place + label.len() < beside {
            put(&mut labels, beside, other);
        }
    }
    put(&mut labels, place, &label);
    let _ = writeln!(out, "       {}", labels.iter().collect::<String>().trim_end());
    out
}

/// One cell; `shade` and `bar` are in rows above its lower edge.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 8")]
fn cell(shade: f64, bar: f64) -> char {
    match (bar.clamp(0.0, 1.0) * 8.0).round() as usize {
        0 if shade >= 0.5 => SHADE,
        eighths => EIGHTHS[eighths],
    }
}

/// The column of a similarity.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a similarity is in 0..=1")]
fn mark(similarity: f64) -> usize {
    ((similarity * WIDTH as f64) as usize).min(WIDTH - 1)
}

fn put(line: &mut Vec<char>, place: usize, label: &str) {
    let end = place + label.chars().count();
    line.resize(line.len().max(end), ' ');
    line.splice(place..end, label.chars());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_shade_and_mark() {
        let column = |s| (f64::from(u8::from(s > 0.5)), if s > 0.8 { 0.5 } else { 0.0 });
        let plot = plot(0.8, similarities().map(column));
        let lines: Vec<&str> = plot.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 2);
        assert_eq!(lines[0], format!("  1.0 ┤{}{}", " ".repeat(30), "░".repeat(30)));
        assert_eq!(
            lines[11],
            format!("    │{}{}{}", " ".repeat(30), "░".repeat(18), "█".repeat(12)).replacen(
                "    │",
                "      │",
                1
            )
        );
        assert_eq!(lines[12], format!("  0.0 └{}┴{}", "─".repeat(48), "─".repeat(11)));
        assert_eq!(
            lines[13].trim_end(),
            format!("       0.0{}0.5{}T=0.8     1.0", " ".repeat(26), " ".repeat(16))
        );
    }

    #[test]
    fn the_label_of_the_threshold_replaces_another() {
        let labels = |threshold: f64| {
            let plot = plot(threshold, [(0.0, 0.0); WIDTH]);
            plot.lines().last().unwrap().trim_start().to_owned()
        };
        assert!(labels(0.9).ends_with(" T=0.9"), "{}", labels(0.9));
        assert!(labels(0.98918).ends_with(" T=0.98918"), "{}", labels(0.98918));
        assert!(labels(0.9891765).ends_with(" T=0.9892"), "{}", labels(0.9891765));
        assert!(!labels(0.5).contains(" 0.5") && labels(0.5).ends_with(" 1.0"), "{}", labels(0.5));
    }

    #[test]
    fn part_of_a_cell_is_drawn_in_eighths() {
        assert_eq!(cell(1.0, 0.5), '▄');
        assert_eq!(cell(1.0, 2.0), '█');
        assert_eq!(cell(0.5, 0.0), '░');
        assert_eq!(cell(0.4, -1.0), ' ');
    }
}
