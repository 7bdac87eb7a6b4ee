//! Metrics as they are read at one moment, before they are written as text.

/// Metric with all its samples: one for each set of labels.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricFamily {
    /// Name with its unit, without the suffix `_total` of counters.
    pub name: &'static str,
    /// Meaning, in words, without a full stop.
    pub help: &'static str,
    /// Kind of the metric.
    pub kind: MetricKind,
    /// Samples.
    pub samples: Vec<MetricSample>,
}

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Grows from 0 at the start.
    Counter,
    /// Takes any value.
    Gauge,
    /// Always 1; its labels say what is there.
    Info,
}

/// Value of a metric for one set of labels.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSample {
    /// Names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
    /// Value.
    pub value: SampleValue,
}

/// Value of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SampleValue {
    /// Number of events or objects.
    Count(u64),
    /// Measure, such as a number of seconds.
    Measure(f64),
}

impl From<u64> for SampleValue {
    fn from(count: u64) -> SampleValue {
        SampleValue::Count(count)
    }
}

impl From<bool> for SampleValue {
    fn from(is_so: bool) -> SampleValue {
        SampleValue::Count(u64::from(is_so))
    }
}

impl From<f64> for SampleValue {
    fn from(measure: f64) -> SampleValue {
        SampleValue::Measure(measure)
    }
}

/// Families in the order in which their first sample was added.
#[derive(Debug, Default)]
pub(crate) struct FamilyList {
    families: Vec<MetricFamily>,
    /// Labels of all further samples.
    common: Vec<(&'static str, String)>,
}

impl FamilyList {
    /// Returns an empty list. `common` are labels of every sample.
    pub(crate) fn new(common: Vec<(&'static str, String)>) -> FamilyList {
        FamilyList { families: Vec::new(), common }
    }

    /// Adds a sample of a counter.
    pub(crate) fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        count: u64,
    ) {
        self.add(name, help, MetricKind::Counter, labels, count.into());
    }

    /// Adds a sample of a gauge.
    pub(crate) fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: impl Into<SampleValue>,
    ) {
        self.add(name, help, MetricKind::Gauge, labels, value.into());
    }

    /// Adds labels that say what is there.
    pub(crate) fn info(&mut self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)]) {
        self.add(name, help, MetricKind::Info, labels, SampleValue::Count(1));
    }

    fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        kind: MetricKind,
        labels: &[(&'static str, &str)],
        value: SampleValue,
    ) {
        let given = labels.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let sample = MetricSample { labels: self.common.iter().cloned().chain(given).collect(), value };
        match self.families.iter_mut().find(|family| family.name == name) {
            Some(family) => family.samples.push(sample),
            None => self.families.push(MetricFamily { name, help, kind, samples: vec![sample] }),
        }
    }

    pub(crate) fn done(self) -> Vec<MetricFamily> {
        self.families
    }
}
