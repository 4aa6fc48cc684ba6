//! Latency of answers.

use std::time::Duration;

use hdrhistogram::Histogram;

/// A histogram of latencies, precise to a microsecond or to three digits, whichever is coarser.
#[derive(Debug)]
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three digits are within what a histogram keeps"))
    }
}

impl Latency {
    /// Adds the latency of one answer.
    pub fn record(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(micros);
    }

    /// Returns a quantile, such as 0.99, in microseconds.
    #[must_use]
    pub fn micros(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// Formats a quantile for people.
    #[must_use]
    pub fn text(&self, quantile: f64) -> String {
        format_micros(self.micros(quantile))
    }
}

/// Formats microseconds with a suitable unit.
#[must_use]
pub fn format_micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}
