//! A recorder for the `metrics` facade.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{
    Counter, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, SetRecorderError,
    SharedString, Unit,
};
use parking_lot::{Mutex, RwLock};

use super::{MetricKind, MetricsPage};

/// A recorder that stores metrics from the `metrics` facade, for [`MetricsPage`].
///
/// Stores at most 4096 series of each type; each combination of label values is a series. Values of
/// further series are lost, and refusals are counted in a metric.
#[derive(Clone, Default)]
pub struct MetricsRecorder(Arc<RecordedSeries>);

#[derive(Default)]
struct RecordedSeries {
    described: Mutex<BTreeMap<String, (MetricKind, String)>>,
    counters: RwLock<HashMap<Key, Arc<AtomicU64>>>,
    gauges: RwLock<HashMap<Key, Arc<AtomicU64>>>,
    summaries: RwLock<HashMap<Key, Arc<SummaryValue>>>,
    refused: AtomicU64,
}

const MAX_SERIES: usize = 4096;

#[derive(Default)]
struct SummaryValue {
    count: AtomicU64,
    /// The bits of a float, as the facade stores gauges.
    sum: AtomicU64,
}

impl HistogramFn for SummaryValue {
    fn record(&self, value: f64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        GaugeFn::increment(&self.sum, value);
    }
}

impl MetricsRecorder {
    /// Creates a recorder and installs it as the global recorder of the process.
    ///
    /// # Errors
    /// Returns an error if the process already has a recorder.
    pub fn install() -> Result<Self, SetRecorderError<Self>> {
        let recorder = Self::default();
        metrics::set_global_recorder(recorder.clone())?;
        Ok(recorder)
    }

    /// Writes all metrics that were described or recorded.
    pub fn write(&self, page: &mut MetricsPage) {
        let series = &self.0;
        let described = series.described.lock().clone();
        let mut families: BTreeMap<String, (MetricKind, String, Vec<SeriesRow>)> = described
            .into_iter()
            .map(|(name, (kind, help))| (name, (kind, help, Vec::new())))
            .collect();
        let mut add = |key: &Key, kind: MetricKind, values: SampleValues| {
            let family = families.entry(key.name().to_owned());
            let family = family.or_insert_with(|| (kind, String::new(), Vec::new()));
            let labels = key.labels();
            let labels = labels.map(|label| (label.key().to_owned(), label.value().to_owned()));
            family.2.push((labels.collect(), values));
        };
        for (key, counter) in series.counters.read().iter() {
            let value = counter.load(Ordering::Relaxed) as f64;
            add(key, MetricKind::Counter, SampleValues::One(value));
        }
        for (key, gauge) in series.gauges.read().iter() {
            add(key, MetricKind::Gauge, SampleValues::One(load_f64(gauge)));
        }
        for (key, summary) in series.summaries.read().iter() {
            let count = summary.count.load(Ordering::Relaxed) as f64;
            let values = SampleValues::Summary(load_f64(&summary.sum), count);
            add(key, MetricKind::Summary, values);
        }
        for (name, (kind, help, mut rows)) in families {
            rows.sort_by(|(one, _), (other, _)| one.cmp(other));
            let mut family = page.family(&name, kind, &help);
            for (labels, values) in rows {
                let labels: Vec<(&str, &str)> = labels.iter().map(|(k, v)| (&**k, &**v)).collect();
                match values {
                    SampleValues::One(value) => family.sample(&labels, value),
                    SampleValues::Summary(sum, count) => family
                        .sample_with_suffix("_sum", &labels, sum)
                        .sample_with_suffix("_count", &labels, count),
                };
            }
        }
        page.single(
            "strowger_metrics_refused_total",
            MetricKind::Counter,
            "Series dropped because the limit of series was reached.",
            series.refused.load(Ordering::Relaxed) as f64,
        );
    }

    fn describe(&self, name: &KeyName, kind: MetricKind, help: &SharedString) {
        let mut described = self.0.described.lock();
        if described.len() < MAX_SERIES {
            described.insert(name.as_str().to_owned(), (kind, help.to_string()));
        }
    }

    /// Returns the series with this key, which is created if there is room.
    fn series<T: Default>(&self, map: &RwLock<HashMap<Key, Arc<T>>>, key: &Key) -> Option<Arc<T>> {
        if let Some(found) = map.read().get(key) {
            return Some(Arc::clone(found));
        }
        let mut map = map.write();
        if map.len() >= MAX_SERIES && !map.contains_key(key) {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Arc::clone(map.entry(key.clone()).or_default()))
    }
}

type SeriesRow = (Vec<(String, String)>, SampleValues);

enum SampleValues {
    One(f64),
    Summary(f64, f64),
}

impl metrics::Recorder for MetricsRecorder {
    fn describe_counter(&self, key: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&key, MetricKind::Counter, &help);
    }

    fn describe_gauge(&self, key: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&key, MetricKind::Gauge, &help);
    }

    fn describe_histogram(&self, key: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&key, MetricKind::Summary, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let series = self.series(&self.0.counters, key);
        series.map_or_else(Counter::noop, Counter::from_arc)
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let series = self.series(&self.0.gauges, key);
        series.map_or_else(Gauge::noop, Gauge::from_arc)
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let series = self.series(&self.0.summaries, key);
        series.map_or_else(Histogram::noop, Histogram::from_arc)
    }
}

impl fmt::Debug for MetricsRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsRecorder").finish_non_exhaustive()
    }
}

fn load_f64(bits: &AtomicU64) -> f64 {
    f64::from_bits(bits.load(Ordering::Relaxed))
}
