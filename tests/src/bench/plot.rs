//! Curves, drawn as SVG.

use crate::figure::Wrong;
use plotters::prelude::{
    BLACK, ChartBuilder, Circle, Color as _, IntoDrawingArea as _, LineSeries, PathElement,
    RGBColor, SVGBackend, SeriesLabelPosition, WHITE,
};
use std::fmt::Write as _;
use std::path::Path;

const SIZE: (u32, u32) = (720, 400);

/// The colours of the curves. Each is readable on white, and they differ for
/// readers who do not distinguish red from green.
const COLORS: [RGBColor; 4] = [
    RGBColor(0, 95, 158),
    RGBColor(178, 72, 0),
    RGBColor(90, 90, 90),
    RGBColor(122, 30, 122),
];

/// A named line of points.
#[derive(Debug)]
pub(crate) struct Curve {
    name: &'static str,
    points: Vec<(f64, f64)>,
}

impl Curve {
    pub(crate) const fn new(name: &'static str) -> Self {
        let points = Vec::new();
        Self { name, points }
    }

    pub(crate) fn add(&mut self, x: f64, y: f64) {
        self.points.push((x, y));
    }
}

/// Curves over the same points.
#[derive(Debug)]
pub(crate) struct Plot {
    /// The name of the file, without its ending.
    pub(crate) file: &'static str,
    pub(crate) title: String,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    pub(crate) curves: Vec<Curve>,
}

impl Plot {
    /// Draws it into a file of a folder. Both axes begin at zero.
    pub(crate) fn draw(&self, folder: &Path) -> Result<(), Wrong> {
        self.drawn(&folder.join(self.file).with_extension("svg"))
            .map_err(|error| Wrong::because(error.to_string()))
    }

    fn drawn(&self, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let x_max = points().map(|point| point.0).fold(0.0, f64::max);
        let y_max = points().map(|point| point.1).fold(0.0, f64::max);
        let area = SVGBackend::new(file, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..x_max * 1.05, 0.0..y_max * 1.1)?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .light_line_style(WHITE)
            .draw()?;
        for (curve, color) in self.curves.iter().zip(COLORS.iter().cycle()) {
            let color = color.to_rgba();
            let line = curve.points.iter().copied();
            chart
                .draw_series(LineSeries::new(line.clone(), color.stroke_width(2)))?
                .label(curve.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2))
                });
            chart.draw_series(line.map(|point| Circle::new(point, 3, color.filled())))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperMiddle)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.2))
            .draw()?;
        Ok(area.present()?)
    }

    /// Returns it as a section of a page, with its points as a table.
    pub(crate) fn section(&self) -> String {
        let mut text = format!(
            "\n### {}\n\n![{}]({}.svg)\n\n",
            self.title, self.y, self.file
        );
        let names = self.curves.iter().map(|curve| curve.name);
        let names: Vec<&str> = names.collect();
        let _ = writeln!(text, "| {} | {} |", self.x, names.join(" | "));
        let _ = writeln!(text, "|---:|{}", "---:|".repeat(names.len()));
        let rows = self.curves.first().map_or(0, |curve| curve.points.len());
        for row in 0..rows {
            let points = self.curves.iter().filter_map(|curve| curve.points.get(row));
            let points: Vec<_> = points.collect();
            let x = points.first().map_or(f64::NAN, |point| point.0);
            let cells = points.iter().map(|point| crate::figure::time(point.1));
            let cells: Vec<String> = cells.collect();
            let _ = writeln!(text, "| {x} | {} |", cells.join(" | "));
        }
        text
    }
}
