//! Metrics in the text format of Prometheus.
//!
//! [`MetricsRecorder`] collects metrics from the `metrics` facade; [`MetricsPage`] writes them,
//! together with values that are read at the time of a scrape.

mod recorder;

use std::fmt::Write;

pub use recorder::MetricsRecorder;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// A value that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// A count and a sum.
    Summary,
}

impl MetricKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
        }
    }
}

/// A page of metrics in the text format of Prometheus, version 0.0.4.
///
/// ```
/// use strowger_gateway::metrics::{MetricKind, MetricsPage};
///
/// let mut page = MetricsPage::default();
/// let mut calls = page.family("calls_total", MetricKind::Counter, "Calls, by how they ended.");
/// calls.sample(&[("end", "busy")], 3.0);
/// assert_eq!(
///     page.as_str(),
///     "# HELP calls_total Calls, by how they ended.\n# TYPE calls_total counter\n\
///      calls_total{end=\"busy\"} 3\n",
/// );
/// ```
#[derive(Debug, Clone, Default)]
pub struct MetricsPage {
    text: String,
}

/// A metric of a page, to which samples are added.
#[derive(Debug)]
pub struct MetricFamily<'a> {
    name: &'a str,
    text: &'a mut String,
}

impl MetricsPage {
    /// Starts a metric. A name may appear only once on a page; characters that are not allowed in
    /// names become underscores.
    pub fn family<'a>(
        &'a mut self,
        name: &'a str,
        kind: MetricKind,
        help: &str,
    ) -> MetricFamily<'a> {
        let text = &mut self.text;
        for (word, rest) in [("HELP", help), ("TYPE", kind.as_str())] {
            text.push_str("# ");
            text.push_str(word);
            text.push(' ');
            push_name(text, name);
            text.push(' ');
            push_escaped(text, rest, false);
            text.push('\n');
        }
        MetricFamily { name, text }
    }

    /// Writes a metric with a single sample, without labels.
    pub fn single(&mut self, name: &str, kind: MetricKind, help: &str, value: f64) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// Returns the text of the page.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }
}

impl MetricFamily<'_> {
    /// Writes a sample with these labels.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.sample_with_suffix("", labels, value)
    }

    /// Writes a sample of a summary, such as its `_sum` or `_count`.
    pub(crate) fn sample_with_suffix(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        value: f64,
    ) -> &mut Self {
        let text = &mut *self.text;
        push_name(text, self.name);
        text.push_str(suffix);
        for (at, (name, value)) in labels.iter().enumerate() {
            text.push(if at == 0 { '{' } else { ',' });
            push_name(text, name);
            text.push_str("=\"");
            push_escaped(text, value, true);
            text.push('"');
        }
        if !labels.is_empty() {
            text.push('}');
        }
        text.push(' ');
        push_value(text, value);
        text.push('\n');
        self
    }
}

fn push_name(text: &mut String, name: &str) {
    for (at, letter) in name.chars().enumerate() {
        let fits = letter.is_ascii_alphabetic() || letter == '_' || letter == ':';
        let fits = fits || at > 0 && letter.is_ascii_digit();
        text.push(if fits { letter } else { '_' });
    }
}

fn push_escaped(text: &mut String, raw: &str, quoted: bool) {
    for letter in raw.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if quoted => text.push_str("\\\""),
            letter => text.push(letter),
        }
    }
}

fn push_value(text: &mut String, value: f64) {
    let written = if value.is_nan() {
        text.push_str("NaN");
        Ok(())
    } else if value.is_infinite() {
        text.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
        Ok(())
    } else {
        write!(text, "{value}")
    };
    debug_assert!(written.is_ok(), "writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        let mut page = MetricsPage::default();
        page.family("a.b-c", MetricKind::Gauge, "back\\slash\nline \"quote\"")
            .sample(&[("7l", "x\"y\\z\n")], f64::NEG_INFINITY)
            .sample(&[], 1e21);
        let lines: Vec<&str> = page.as_str().lines().collect();
        assert_eq!(
            lines,
            [
                "# HELP a_b_c back\\\\slash\\nline \"quote\"",
                "# TYPE a_b_c gauge",
                "a_b_c{_l=\"x\\\"y\\\\z\\n\"} -Inf",
                "a_b_c 1000000000000000000000",
            ]
        );
    }
}
