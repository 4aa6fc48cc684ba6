//! Line and bar charts as SVG, readable on light and on dark pages.

use std::fmt::Write;

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

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// The plotting area: left, top, right, bottom.
const AREA: (f64, f64, f64, f64) = (76.0, 52.0, 650.0, 344.0);

/// Colours that differ in lightness too, for people who cannot tell them apart by hue.
const STYLE: &str = "\
<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .note { font-size: 11px; fill: #57606a; }
  .axis { stroke: #57606a; } .grid { stroke: #d8dee4; }
  path { fill: none; stroke-width: 2; }
  .s0 { stroke: #0969da; fill: #0969da; } .s1 { stroke: #24292f; fill: #24292f; }
  .s2 { stroke: #bc4c00; fill: #bc4c00; } .s3 { stroke: #1a7f37; fill: #1a7f37; }
  .s4 { stroke: #8250df; fill: #8250df; } .s5 { stroke: #bf3989; fill: #bf3989; }
  path.s0, path.s1, path.s2, path.s3, path.s4, path.s5 { fill: none; } path.s0 { stroke-width: 3; }
  text.s0, text.s1, text.s2, text.s3, text.s4, text.s5 { stroke: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .note { fill: #9198a1; }
    .axis { stroke: #9198a1; } .grid { stroke: #3d444d; }
    .s0 { stroke: #58a6ff; fill: #58a6ff; } .s1 { stroke: #e6edf3; fill: #e6edf3; }
    .s2 { stroke: #f0883e; fill: #f0883e; } .s3 { stroke: #3fb950; fill: #3fb950; }
    .s4 { stroke: #bc8cff; fill: #bc8cff; } .s5 { stroke: #ff7bc0; fill: #ff7bc0; }
  }
</style>
";

impl Chart {
    /// Draws the chart.
    pub(super) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let xs = Scale::logarithmic(points().map(|point| point.0), (AREA.0, AREA.2));
        let values = points().map(|point| point.1);
        let upwards = (AREA.3, AREA.1);
        let ys = if self.logarithmic {
            Scale::logarithmic(values, upwards)
        } else {
            Scale::linear(values, upwards)
        };
        let mut svg = head(self.title);
        for (value, at) in xs.ticks() {
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{at:.1}\" y1=\"{}\" x2=\"{at:.1}\" y2=\"{}\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                AREA.1,
                AREA.3,
                AREA.3 + 18.0,
                short(value)
            );
        }
        for (value, at) in ys.ticks() {
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{}\" y1=\"{at:.1}\" x2=\"{}\" y2=\"{at:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                AREA.0,
                AREA.2,
                AREA.0 - 8.0,
                at + 4.0,
                short(value)
            );
        }
        svg.push_str(&axes(self.x, self.y));
        let mut labels: Vec<(usize, f64)> = Vec::new();
        for (number, series) in self.series.iter().enumerate() {
            let places = series
                .points
                .iter()
                .map(|(x, y)| (xs.place(*x), ys.place(*y)));
            let places: Vec<(f64, f64)> = places.collect();
            let mut path = String::new();
            for (at, (x, y)) in places.iter().enumerate() {
                let verb = if at == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{verb}{x:.1} {y:.1}");
                let _ = writeln!(
                    svg,
                    "<circle class=\"s{number}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
                );
            }
            let _ = writeln!(svg, "<path class=\"s{number}\" d=\"{path}\"/>");
            if let Some((_, y)) = places.last() {
                labels.push((number, *y));
            }
        }
        for (number, y) in apart(labels) {
            let _ = writeln!(
                svg,
                "<text class=\"s{number}\" x=\"{}\" y=\"{:.1}\">{}</text>",
                AREA.2 + 12.0,
                y + 4.0,
                escaped(&self.series[number].name)
            );
        }
        svg + &foot(&self.note)
    }
}

impl Bars {
    /// Draws the chart.
    pub(super) fn svg(&self) -> String {
        let scale = Scale::linear(self.bars.iter().map(|bar| bar.1), (AREA.0 + 20.0, AREA.2));
        let mut svg = head(self.title);
        let step = (AREA.3 - AREA.1) / self.bars.len().max(1) as f64;
        let left = scale.place(0.0);
        for (number, (name, value)) in self.bars.iter().enumerate() {
            let top = AREA.1 + step * number as f64;
            let middle = top + step * 0.4 + 4.0;
            let right = scale.place(*value);
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>\
                 <rect class=\"s{number}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" \
                 height=\"{:.1}\"/><text x=\"{:.1}\" y=\"{middle:.1}\">{value:.0} {}</text>",
                left - 8.0,
                escaped(name),
                right - left,
                step * 0.8,
                right + 8.0,
                self.unit
            );
        }
        svg + &foot(&self.note)
    }
}

/// A mapping from values to positions.
struct Scale {
    values: (f64, f64),
    places: (f64, f64),
    logarithmic: bool,
}

impl Scale {
    /// Returns a scale of whole powers of ten around the values.
    fn logarithmic(values: impl Iterator<Item = f64>, places: (f64, f64)) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| *value > 0.0) {
            low = low.min(value.log10().floor());
            high = high.max(value.log10().ceil());
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        Self {
            values: (low, high.max(low + 1.0)),
            places,
            logarithmic: true,
        }
    }

    /// Returns a scale from zero to a round number above the values.
    fn linear(values: impl Iterator<Item = f64>, places: (f64, f64)) -> Self {
        let most = values.fold(0.0_f64, f64::max).max(1e-9);
        let step = round_step(most);
        Self {
            values: (0.0, (most / step).ceil() * step),
            places,
            logarithmic: false,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let value = if self.logarithmic {
            value.log10()
        } else {
            value
        };
        let part = (value - self.values.0) / (self.values.1 - self.values.0);
        self.places.0 + part * (self.places.1 - self.places.0)
    }

    fn ticks(&self) -> Vec<(f64, f64)> {
        let step = if self.logarithmic {
            1.0
        } else {
            round_step(self.values.1)
        };
        let mut values = vec![self.values.0];
        while let Some(last) = values.last()
            && *last + step / 2.0 < self.values.1
        {
            values.push(last + step);
        }
        values
            .into_iter()
            .map(|value| {
                if self.logarithmic {
                    10_f64.powf(value)
                } else {
                    value
                }
            })
            .map(|value| (value, self.place(value)))
            .collect()
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten, with four to ten steps up to `most`.
fn round_step(most: f64) -> f64 {
    let power = 10_f64.powf((most / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| most / step <= 8.0)
        .unwrap_or(10.0 * power)
}

/// Moves the labels at the ends of lines so that none covers another.
fn apart(mut labels: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    labels.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut free = f64::NEG_INFINITY;
    for (_, y) in &mut labels {
        *y = y.max(free);
        free = *y + 16.0;
    }
    labels
}

fn head(title: &str) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n{STYLE}\
         <text class=\"title\" x=\"{}\" y=\"28\">{title}</text>\n",
        AREA.0
    )
}

fn axes(x: &str, y: &str) -> String {
    let (left, top, right, bottom) = AREA;
    format!(
        "<line class=\"axis\" x1=\"{left}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/>\n\
         <line class=\"axis\" x1=\"{left}\" y1=\"{top}\" x2=\"{left}\" y2=\"{bottom}\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text x=\"20\" y=\"{}\" text-anchor=\"middle\" \
         transform=\"rotate(-90 20 {})\">{}</text>\n",
        f64::midpoint(left, right),
        bottom + 40.0,
        escaped(x),
        f64::midpoint(top, bottom),
        f64::midpoint(top, bottom),
        escaped(y),
    )
}

fn foot(note: &str) -> String {
    let y = HEIGHT - 12.0;
    let note = escaped(note);
    format!(
        "<text class=\"note\" x=\"{}\" y=\"{y}\">{note}</text>\n</svg>\n",
        AREA.0
    )
}

/// Formats 1000 as 1k and 1000000 as 1M.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        millions if millions >= 999_999.5 => (millions / 1e6, "M"),
        thousands if thousands >= 999.5 => (thousands / 1e3, "k"),
        few => (few, ""),
    };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [(0.5, "0.5"), (10.0, "10"), (2500.0, "2.5k"), (1e6, "1M")] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn scales_begin_and_end_with_round_numbers() {
        let scale = Scale::linear([3.0, 37.0].into_iter(), (0.0, 100.0));
        let ticks: Vec<f64> = scale.ticks().into_iter().map(|tick| tick.0).collect();
        assert_eq!(ticks, [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]);
        let scale = Scale::logarithmic([10.0, 1e6].into_iter(), (0.0, 100.0));
        assert_eq!(scale.ticks().len(), 6);
        assert!((scale.place(1e6) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let placed = apart(vec![(0, 100.0), (1, 98.0), (2, 101.0)]);
        assert_eq!(placed, [(1, 98.0), (0, 114.0), (2, 130.0)]);
    }
}
