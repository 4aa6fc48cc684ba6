//! Line and bar charts as SVG, readable on light and on dark pages.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// A line chart with a logarithmic x axis.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    /// `true` if the y axis is logarithmic too.
    pub(super) logarithmic: bool,
    pub(super) series: Vec<Series>,
    pub(super) note: String,
}

/// A bar chart.
pub(super) struct Bars {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) bars: Vec<(String, f64)>,
    pub(super) note: String,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawResult = Result<(), Box<dyn std::error::Error>>;

const SIZE: (u32, u32) = (760, 420);
/// Height of the title above a chart.
const TITLE_HEIGHT: i32 = 36;
/// Height of the line below a chart that names the origin of its figures.
const NOTE_HEIGHT: u32 = 28;
/// Width of the column at the right of a chart that names its lines.
const NAMES_WIDTH: u32 = 110;
const FONT: &str = "system-ui, sans-serif";

const TEXT: RGBColor = RGBColor(0x24, 0x29, 0x2f);
const FAINT_TEXT: RGBColor = RGBColor(0x57, 0x60, 0x6a);
const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
/// Colours that differ in lightness too, for readers who cannot distinguish the hues.
const LINES: [RGBColor; 6] = [
    RGBColor(0x09, 0x69, 0xda),
    TEXT,
    RGBColor(0xbc, 0x4c, 0x00),
    RGBColor(0x1a, 0x7f, 0x37),
    RGBColor(0x82, 0x50, 0xdf),
    RGBColor(0xbf, 0x39, 0x89),
];
/// The colour that replaces each colour on a dark page.
const DARK_COLOURS: [(RGBColor, &str); 8] = [
    (FAINT_TEXT, "#9198a1"),
    (GRID, "#3d444d"),
    (LINES[0], "#58a6ff"),
    (LINES[1], "#e6edf3"),
    (LINES[2], "#f0883e"),
    (LINES[3], "#3fb950"),
    (LINES[4], "#bc8cff"),
    (LINES[5], "#ff7bc0"),
];

impl Chart {
    /// Draws the chart.
    pub(super) fn svg(&self) -> Result<String, String> {
        svg(self.title, &self.note, |area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> DrawResult {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let xs = decades(points().map(|point| point.0));
        let values = points().map(|point| point.1);
        let ys = if self.logarithmic {
            decades(values)
        } else {
            0.0..values.fold(0.0, f64::max) * 1.05
        };
        let place = |&(x, y): &(f64, f64)| {
            let y = if self.logarithmic { y.log10() } else { y };
            (x.log10(), y)
        };
        // One label for each power of ten.
        let x_labels = labels(&xs);
        let y_labels = if self.logarithmic { labels(&ys) } else { 10 };
        let mut chart = ChartBuilder::on(area)
            .margin_top(12)
            .margin_right(NAMES_WIDTH)
            .margin_left(12)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(xs, ys)?;
        let label = |value: &f64| shorten(*value);
        let power = |value: &f64| shorten(10_f64.powf(*value));
        chart
            .configure_mesh()
            .max_light_lines(0)
            .x_labels(x_labels)
            .y_labels(y_labels)
            .bold_line_style(GRID)
            .axis_style(FAINT_TEXT)
            .label_style((FONT, 13, &TEXT))
            .x_label_formatter(&power)
            .y_label_formatter(if self.logarithmic { &power } else { &label })
            .x_desc(self.x)
            .y_desc(self.y)
            .draw()?;
        let mut names = Vec::new();
        for (number, series) in self.series.iter().enumerate() {
            let colour = LINES[number % LINES.len()];
            let width = if number == 0 { 3 } else { 2 };
            let places: Vec<(f64, f64)> = series.points.iter().map(place).collect();
            let line = LineSeries::new(places.iter().copied(), colour.filled().stroke_width(width));
            chart.draw_series(line.point_size(3))?;
            if let Some(end) = places.last() {
                // Relative to the area, as text is drawn.
                names.push((number, chart.backend_coord(end).1 - TITLE_HEIGHT));
            }
        }
        let (right, _) = area.dim_in_pixel();
        let left = i32::try_from(right - NAMES_WIDTH)? + 10;
        for (number, y) in spread_labels(names) {
            let style = style(13, &LINES[number % LINES.len()], HPos::Left);
            area.draw_text(&self.series[number].name, &style, (left, y))?;
        }
        Ok(())
    }
}

impl Bars {
    /// Draws the chart.
    pub(super) fn svg(&self) -> Result<String, String> {
        svg(self.title, &self.note, |area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> DrawResult {
        let longest = self.bars.iter().map(|bar| bar.1).fold(0.0, f64::max);
        let chart = ChartBuilder::on(area)
            .margin_left(NAMES_WIDTH)
            .margin_right(NAMES_WIDTH)
            .margin_top(12)
            .build_cartesian_2d(0.0..longest, 0.0..self.bars.len() as f64)?;
        let plot = chart.plotting_area();
        for (number, (name, value)) in self.bars.iter().enumerate() {
            let top = (self.bars.len() - number) as f64;
            let colour = LINES[number % LINES.len()];
            plot.draw(&Rectangle::new(
                [(0.0, top), (*value, top - 0.8)],
                colour.filled(),
            ))?;
            let (left, y) = chart.backend_coord(&(0.0, top - 0.4));
            let y = y - TITLE_HEIGHT;
            area.draw_text(name, &style(13, &TEXT, HPos::Right), (left - 8, y))?;
            let (right, _) = chart.backend_coord(&(*value, top));
            let figure = format!("{value:.0} {}", self.unit);
            area.draw_text(&figure, &style(13, &TEXT, HPos::Left), (right + 8, y))?;
        }
        Ok(())
    }
}

/// Draws a chart between its title and the origin of its figures.
fn svg(title: &str, note: &str, draw: impl Fn(&Area<'_>) -> DrawResult) -> Result<String, String> {
    let mut svg = String::new();
    let mut drawn = || -> DrawResult {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let chart = root.margin(TITLE_HEIGHT, NOTE_HEIGHT, 0, 0);
        let bold = FontDesc::new(FontFamily::Name(FONT), 15.0, FontStyle::Bold);
        root.draw_text(title, &bold.color(&TEXT), (20, 14))?;
        draw(&chart)?;
        let y = i32::try_from(SIZE.1)? - 14;
        root.draw_text(note, &style(11, &FAINT_TEXT, HPos::Left), (20, y))?;
        root.present()?;
        Ok(())
    };
    drawn().map_err(|error| format!("cannot draw `{title}`: {error}"))?;
    Ok(svg.replacen(
        '>',
        &format!(" role=\"img\" aria-label=\"{title}\">\n{}", dark_style()),
        1,
    ))
}

/// Returns a style sheet that replaces the colours on dark pages.
fn dark_style() -> String {
    let rules = DARK_COLOURS.map(|(RGBColor(r, g, b), dark)| {
        let light = format!("#{r:02X}{g:02X}{b:02X}");
        format!(
            "  [fill=\"{light}\"] {{ fill: {dark} }} [stroke=\"{light}\"] {{ stroke: {dark} }}\n"
        )
    });
    format!(
        "<style>@media (prefers-color-scheme: dark) {{\n{}}}</style>",
        rules.concat()
    )
}

fn style(size: u32, colour: &RGBColor, side: HPos) -> TextStyle<'_> {
    let style = TextStyle::from((FONT, size).into_font()).color(colour);
    style.pos(Pos::new(side, VPos::Center))
}

/// Returns the exponents of the powers of ten around the values.
fn decades(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .map(f64::log10)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value.floor()), high.max(value.ceil()))
        });
    if low > high {
        return 0.0..1.0;
    }
    low..high.max(low + 1.0)
}

/// Returns the number of powers of ten whose exponents are in a range.
fn labels(decades: &Range<f64>) -> usize {
    let is_inside = |step: &u32| decades.start + f64::from(*step) <= decades.end;
    (0..).take_while(is_inside).count()
}

/// Moves the labels at the ends of lines so that none covers another.
fn spread_labels(mut labels: Vec<(usize, i32)>) -> Vec<(usize, i32)> {
    labels.sort_by_key(|label| label.1);
    let mut free = i32::MIN;
    for (_, y) in &mut labels {
        *y = (*y).max(free);
        free = *y + 16;
    }
    labels
}

/// Formats 1000 as 1k and 1000000 as 1M.
fn shorten(value: f64) -> String {
    let (value, unit) = match value {
        millions if millions >= 999_999.5 => (millions / 1e6, "M"),
        thousands if thousands >= 999.5 => (thousands / 1e3, "k"),
        few => (few, ""),
    };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortened() {
        for (value, text) in [(0.5, "0.5"), (10.0, "10"), (2500.0, "2.5k"), (1e6, "1M")] {
            assert_eq!(shorten(value), text);
        }
    }

    #[test]
    fn labels_do_not_overlap() {
        let placed = spread_labels(vec![(0, 100), (1, 98), (2, 101)]);
        assert_eq!(placed, [(1, 98), (0, 114), (2, 130)]);
    }
}
