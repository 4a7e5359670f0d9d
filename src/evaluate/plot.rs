//! Plots: lines over two axes, drawn as SVG.

use std::ops::Range;

use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::{
    ChartBuilder, Circle, IntoDrawingArea, IntoLogRange, LineSeries, Palette, Palette99, PathElement,
    SVGBackend, SeriesLabelPosition,
};
use plotters::style::{BLACK, Color, WHITE};

use super::EvaluateError;

/// Lines of a legend that is as high as half of the plot.
const MANY: usize = 8;

/// Width and height, in pixels.
const SIZE: (u32, u32) = (760, 460);

/// Some series over two axes.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its file name, without the ending.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// An axis; it reaches over all points.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: String,
    /// Whether it is logarithmic: then what is not above 0 is left out.
    pub log: bool,
}

impl Axis {
    /// In equal steps.
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), log: false }
    }

    /// In powers of ten.
    pub fn log(label: &str) -> Self {
        Self { label: label.to_owned(), log: true }
    }

    fn holds(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }
}

/// Points joined by a line.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

impl Plot {
    /// The plot as an SVG document.
    ///
    /// # Errors
    /// What the plotting library says.
    pub fn svg(&self) -> Result<String, EvaluateError> {
        let (across, up) = (self.range(|point| point.0), self.range(|point| point.1));
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

    /// Where lines that fall or rise leave room; many lines that fall leave it on the left.
    fn legend(&self) -> SeriesLabelPosition {
        let ends =
            self.series.first().and_then(|series| Some((series.points.first()?.1, series.points.last()?.1)));
        match ends {
            Some((left, right)) if left < right => SeriesLabelPosition::LowerRight,
            _ if self.series.len() > MANY => SeriesLabelPosition::LowerLeft,
            _ => SeriesLabelPosition::UpperRight,
        }
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
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(|error| error.to_string())?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
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
            let points: Vec<_> = self.points(series).collect();
            chart
                .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))
                .map_err(|error| error.to_string())?
                .label(&series.name)
                .legend(move |(left, height)| {
                    PathElement::new([(left, height), (left + 18, height)], color.stroke_width(2))
                });
            chart
                .draw_series(points.into_iter().map(|point| Circle::new(point, 3, color.filled())))
                .map_err(|error| error.to_string())?;
        }
        chart
            .configure_series_labels()
            .position(self.legend())
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(|error| error.to_string())?;
        drop(chart);
        area.present().map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// A number at an axis: short.
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
        let axis = |label: &str| Axis { label: label.to_owned(), log };
        let series = Series { name: "s & t".to_owned(), points: points.to_vec() };
        let (x, y) = (axis("across <x>"), axis("up"));
        Plot { name: "p".to_owned(), title: "Title".to_owned(), x, y, series: vec![series] }
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
}
