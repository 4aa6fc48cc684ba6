//! A plot of latency by quantile, as SVG.

use std::fmt::Write as _;

use strowger_pfcp_node::LoadStats;

use crate::latency;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
/// Margins for the axes: left, top, right, bottom.
const MARGIN: [f64; 4] = [90.0, 50.0, 30.0, 60.0];
/// Number of nines of the last quantile: 99.999 %.
const NINES: f64 = 5.0;

/// Draws latency by quantile: quantiles on the x axis, where each further nine has the same width,
/// and latency on a logarithmic y axis.
pub(super) fn svg(stats: &LoadStats, title: &str) -> String {
    let micros = |nines: f64| {
        let nanoseconds = stats.latency.value_at_quantile(1.0 - 10f64.powf(-nines));
        (f64::from(u32::try_from(nanoseconds / 10).unwrap_or(u32::MAX)) / 100.0).max(1.0)
    };
    let (low, high) = (micros(0.0).log10().floor(), micros(NINES).log10().ceil());
    let high = high.max(low + 1.0);
    let x = |nines: f64| MARGIN[0] + nines / NINES * (WIDTH - MARGIN[0] - MARGIN[2]);
    let y = |micros: f64| {
        let share = (micros.log10() - low) / (high - low);
        HEIGHT - MARGIN[3] - share * (HEIGHT - MARGIN[1] - MARGIN[3])
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n\
         <style>text {{ font: 13px system-ui, sans-serif; fill: #24292f; }} \
         .title {{ font-size: 15px; font-weight: 600; }} \
         .grid {{ stroke: #d0d7de; }} \
         .line {{ fill: none; stroke: #0969da; stroke-width: 2; }}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text class=\"title\" x=\"{}\" y=\"28\">{}</text>\n",
        MARGIN[0],
        escape(title),
    );
    let mut level = low;
    while level <= high {
        let (at, text) = (
            y(10f64.powf(level)),
            latency::format_micros(whole(10f64.powf(level))),
        );
        _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{:.1}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            x(0.0),
            x(NINES),
            MARGIN[0] - 8.0,
            at + 4.0,
        );
        level += 1.0;
    }
    for (nines, name) in QUANTILES {
        _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{2:.1}\"/>\
             <text x=\"{0:.1}\" y=\"{3:.1}\" text-anchor=\"middle\">{name}</text>",
            x(nines),
            MARGIN[1],
            HEIGHT - MARGIN[3],
            HEIGHT - MARGIN[3] + 22.0,
        );
    }
    let points = (0..=100u32).map(|step| {
        let nines = NINES * f64::from(step) / 100.0;
        format!("{:.1},{:.1}", x(nines), y(micros(nines)))
    });
    let points: Vec<_> = points.collect();
    _ = writeln!(
        svg,
        "<polyline class=\"line\" points=\"{}\"/>",
        points.join(" ")
    );
    svg.push_str("</svg>\n");
    svg
}

/// Position of each quantile on the x axis, in nines.
const QUANTILES: [(f64, &str); 6] = [
    (0.301, "p50"),
    (1.0, "p90"),
    (2.0, "p99"),
    (3.0, "p99.9"),
    (4.0, "p99.99"),
    (5.0, "p99.999"),
];

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a power of ten between a microsecond and two minutes"
)]
fn whole(micros: f64) -> u64 {
    micros.round() as u64
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
