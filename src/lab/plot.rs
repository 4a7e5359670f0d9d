//! Line plots as SVG.
//!
//! A series is a line through its points. Over an axis of bands each value is a step as wide as its band, and
//! a band without a value is a gap: a line between values would suggest some in between. The legend is beside
//! the axes, never on them.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::{
    ChartBuilder, Circle, DrawingArea, IntoDrawingArea, IntoLogRange, LineSeries, Palette, Palette99,
    PathElement, SVGBackend, Text,
};
use plotters::style::{Color, RGBAColor, WHITE};

use super::EvaluateError;

/// Width and height of the axes with their labels, in pixels.
const SIZE: (u32, u32) = (760, 460);

/// Maximum distance of two lines of the legend, in pixels.
const LEGEND_LINE: u32 = 20;

/// The margin around the axes, and around the legend.
const MARGIN: u32 = 12;

/// Some series over two axes.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The file name, without extension.
    pub name: String,
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// An axis; it covers all points.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The label, with the unit.
    pub label: String,
    /// Whether it is logarithmic; values not above 0 are then omitted.
    pub log: bool,
    /// The starts of its bands, ascending; empty for an axis without bands. A point at the start of a band
    /// represents the whole band. The last band is a single value.
    pub bands: Vec<f64>,
    /// Whether its values are fractions; it then covers 0 to 1.
    pub shares: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), log: false, bands: Vec::new(), shares: false }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Self {
        Self { label: label.to_owned(), log: true, bands: Vec::new(), shares: false }
    }

    /// A linear axis whose values represent bands.
    pub fn of_bands(label: &str, bands: &[f64]) -> Self {
        Self { label: label.to_owned(), log: false, bands: bands.to_owned(), shares: false }
    }

    /// An axis from 0 to 1.
    pub fn of_shares(label: &str) -> Self {
        Self { shares: true, ..Self::linear(label) }
    }

    /// The end of the band that begins at a value; the value itself without bands and for the last one.
    fn end(&self, value: f64) -> f64 {
        let next = self.bands.partition_point(|begin| *begin <= value);
        self.bands.get(next).copied().unwrap_or(value)
    }

    fn holds(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }
}

/// Points joined by a line.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// Ascending in x.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A series of this name through these points.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }
}

impl Plot {
    /// A plot with this file name and title.
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        series: Vec<Series>,
    ) -> Self {
        Self { name: name.into(), title: title.into(), x, y, series }
    }

    /// The plot as an SVG document.
    ///
    /// # Errors
    /// If the plotting library fails.
    pub fn svg(&self) -> Result<String, EvaluateError> {
        let (mut across, mut up) = (self.range(|point| point.0), self.range(|point| point.1));
        if self.y.shares {
            up = 0.0..1.0;
        }
        across.end = across.end.max(self.x.end(across.end));
        match (self.x.log, self.y.log) {
            (false, false) => self.draw(across, up),
            (true, false) => self.draw(across.log_scale(), up),
            (false, true) => self.draw(across, up.log_scale()),
            (true, true) => self.draw(across.log_scale(), up.log_scale()),
        }
    }

    /// The points that both axes can show.
    fn points<'s>(&'s self, series: &'s Series) -> impl Iterator<Item = (f64, f64)> + 's {
        series.points.iter().copied().filter(|(x, y)| self.x.holds(*x) && self.y.holds(*y))
    }

    /// From the least to the greatest value; never empty.
    fn range(&self, of: impl Fn((f64, f64)) -> f64) -> Range<f64> {
        let values = self.series.iter().flat_map(|series| self.points(series)).map(of);
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        match () {
            () if low > high => 0.5..1.0,
            () if low < high => low..high,
            () => low / 2.0..high.max(0.5) * 2.0,
        }
    }

    fn draw<X, Y>(
        &self,
        x: impl plotters::coord::ranged1d::AsRangedCoord<CoordDescType = X, Value = f64>,
        y: impl plotters::coord::ranged1d::AsRangedCoord<CoordDescType = Y, Value = f64>,
    ) -> Result<String, EvaluateError>
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut svg = String::new();
        self.draw_into(&mut svg, x, y)
            .map_err(|error| EvaluateError::Plot { name: self.name.clone(), message: error.to_string() })?;
        Ok(svg)
    }

    fn draw_into<X, Y>(
        &self,
        svg: &mut String,
        x: impl plotters::coord::ranged1d::AsRangedCoord<CoordDescType = X, Value = f64>,
        y: impl plotters::coord::ranged1d::AsRangedCoord<CoordDescType = Y, Value = f64>,
    ) -> Result<(), Box<dyn std::error::Error + '_>>
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let whole = SVGBackend::with_string(svg, (SIZE.0 + self.legend_width(), SIZE.1)).into_drawing_area();
        whole.fill(&WHITE).map_err(|error| error.to_string())?;
        let (area, beside) = whole.split_horizontally(SIZE.0);
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(MARGIN)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)
            .map_err(|error| error.to_string())?;
        chart
            .configure_mesh()
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .light_line_style(WHITE)
            .x_label_formatter(&|value| tick(*value))
            .y_label_formatter(&|value| tick(*value))
            .draw()
            .map_err(|error| error.to_string())?;
        for (place, series) in self.series.iter().enumerate() {
            let color = Palette99::pick(place).to_rgba();
            for line in self.lines(series) {
                chart
                    .draw_series(LineSeries::new(line, color.stroke_width(2)))
                    .map_err(|error| error.to_string())?;
            }
            let dots = self.points(series).filter(|point| self.x.end(point.0) <= point.0);
            chart
                .draw_series(dots.map(|point| Circle::new(point, 3, color.filled())))
                .map_err(|error| error.to_string())?;
        }
        self.draw_legend(&beside).map_err(|error| error.to_string())?;
        drop(chart);
        whole.present().map_err(|error| error.to_string())?;
        Ok(())
    }

    /// The lines of a series: one through all points, or steps, joined where bands are adjacent.
    fn lines(&self, series: &Series) -> Vec<Vec<(f64, f64)>> {
        let mut lines: Vec<Vec<(f64, f64)>> = Vec::new();
        for (x, y) in self.points(series) {
            let end = self.x.end(x);
            let follows = |line: &&mut Vec<(f64, f64)>| {
                self.x.bands.is_empty() || line.last().is_some_and(|last| last.0.total_cmp(&x).is_eq())
            };
            match lines.last_mut().filter(follows) {
                Some(line) => line.extend([(x, y), (end, y)]),
                None => lines.push(vec![(x, y), (end, y)]),
            }
        }
        lines
    }

    /// The width of the longest name.
    fn legend_width(&self) -> u32 {
        let longest = self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
        // A character of this font is seven pixels wide on average.
        40 + 7 * u32::try_from(longest).unwrap_or(0)
    }

    fn draw_legend(&self, beside: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String> {
        let lines = u32::try_from(self.series.len()).unwrap_or(u32::MAX).max(1);
        let apart = LEGEND_LINE.min((SIZE.1 - 4 * MARGIN) / lines).cast_signed();
        let mut height = (3 * MARGIN).cast_signed();
        for (place, series) in self.series.iter().enumerate() {
            let color: RGBAColor = Palette99::pick(place).to_rgba();
            let line = PathElement::new([(0, height), (18, height)], color.stroke_width(2));
            let name = Text::new(series.name.as_str(), (26, height - 6), ("sans-serif", 13));
            beside.draw(&line).map_err(|error| error.to_string())?;
            beside.draw(&name).map_err(|error| error.to_string())?;
            height += apart;
        }
        Ok(())
    }
}

/// A short number at an axis.
fn tick(value: f64) -> String {
    if value.abs() >= 1e-3 || value.abs() < 1e-300 {
        format!("{}", (value * 1e6).round() / 1e6)
    } else {
        format!("{value:.0e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(log: bool, points: &[(f64, f64)]) -> Plot {
        let axis = |label: &str| Axis { label: label.to_owned(), log, bands: Vec::new(), shares: false };
        let series = Series::new("s & t", points.to_vec());
        let (x, y) = (axis("across <x>"), axis("up"));
        Plot::new("p", "Title", x, y, vec![series])
    }

    #[test]
    fn a_plot_is_an_svg_with_what_it_says() {
        for log in [false, true] {
            let svg = plot(log, &[(1.0, 10.0), (100.0, 0.1)]).svg().unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
            for text in ["Title", "across &lt;x&gt;", "s &amp; t"] {
                assert!(svg.contains(text), "{text} is not in {svg}");
            }
            assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        }
    }

    #[test]
    fn what_an_axis_cannot_show_is_left_out() {
        let some = plot(true, &[(0.0, 1.0), (1.0, 0.0), (1.0, f64::NAN), (2.0, 2.0)]).svg().unwrap();
        assert_eq!(some.matches("<circle").count(), 1, "{some}");
        assert!(plot(true, &[]).svg().is_ok() && plot(false, &[(0.0, 0.0)]).svg().is_ok());
    }

    /// Bands from 0.5 to 0.8 with a gap, and 1: a value covers exactly its band.
    #[test]
    fn values_of_bands_are_steps() {
        let points = [(0.5, 0.1), (0.6, 0.4), (0.8, 0.9), (1.0, 1.0)];
        let mut steps = plot(false, &points);
        steps.x = Axis::of_bands("x", &[0.5, 0.6, 0.7, 0.8, 0.9, 1.0]);
        let lines = steps.lines(&steps.series[0]);
        assert_eq!(
            lines,
            [
                vec![(0.5, 0.1), (0.6, 0.1), (0.6, 0.4), (0.7, 0.4)],
                vec![(0.8, 0.9), (0.9, 0.9)],
                vec![(1.0, 1.0), (1.0, 1.0)],
            ]
        );
        let svg = steps.svg().unwrap();
        assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
    }

    /// All values are 1: the axis shows no fraction above 1.
    #[test]
    fn shares_are_from_0_to_1() {
        let ticks = |y: Axis| {
            let mut plot = plot(false, &[(10.0, 1.0), (11.0, 1.0)]);
            plot.y = y;
            let svg = plot.svg().unwrap();
            ["\n0.2\n", "\n1.8\n"].map(|tick| svg.contains(tick))
        };
        assert_eq!(ticks(Axis::of_shares("share")), [true, false]);
        assert_eq!(ticks(Axis::linear("share")), [false, true]);
    }

    /// Every name is to the right of the axes, for any slope of the lines.
    #[test]
    fn the_legend_is_beside_the_axes() {
        for points in [[(0.0, 0.0), (1.0, 1.0)], [(0.0, 1.0), (1.0, 0.0)], [(0.0, 1.0), (1.0, 1.0)]] {
            let mut plot = plot(false, &points);
            plot.series = (0..30).map(|n| Series::new(format!("name {n}"), points.to_vec())).collect();
            let svg = plot.svg().unwrap();
            let names: Vec<&str> = svg.split("<text ").filter(|text| text.contains("\nname ")).collect();
            assert_eq!(names.len(), 30, "{svg}");
            for name in names {
                let number = |key: &str| -> u32 {
                    let value = name
                        .split(&format!(" {key}=\""))
                        .nth(1)
                        .or_else(|| name.strip_prefix(&format!("{key}=\"")));
                    value.unwrap().split('"').next().unwrap().parse().unwrap()
                };
                assert!(number("x") >= SIZE.0 && number("y") < SIZE.1, "{name}");
            }
        }
    }
}
