//! Writes metrics as text, in the OpenMetrics format 1.0.0, which Prometheus reads.
use crate::family::{MetricFamily, MetricKind, MetricSample, SampleValue};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode as encode_registry;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// Content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns metrics as text.
pub fn encode(families: Vec<MetricFamily>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ReadMetrics(families)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode_registry(&mut text, &registry);
    text
}

/// Metrics that were read, for the library's encoder.
#[derive(Debug)]
struct ReadMetrics(Vec<MetricFamily>);

impl Collector for ReadMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let kind = match family.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Info => MetricType::Info,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for sample in &family.samples {
                ReadSample { sample, kind: family.kind }.encode_to(&mut metric)?;
            }
        }
        Ok(())
    }
}

struct ReadSample<'a> {
    sample: &'a MetricSample,
    kind: MetricKind,
}

impl ReadSample<'_> {
    fn encode_to(&self, metric: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let labels = &self.sample.labels;
        if self.kind == MetricKind::Info {
            return metric.encode_info(labels);
        }
        let mut metric = metric.encode_family(labels)?;
        match (self.kind, self.sample.value) {
            (MetricKind::Counter, SampleValue::Count(count)) => {
                metric.encode_counter::<NoLabelSet, _, u64>(&count, None)
            }
            (MetricKind::Counter, SampleValue::Measure(value)) => {
                metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
            }
            (_, SampleValue::Count(count)) => metric.encode_gauge(&count),
            (_, SampleValue::Measure(value)) => metric.encode_gauge(&value),
        }
    }
}

impl EncodeMetric for ReadSample<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_to(&mut encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::FamilyList;

    #[test]
    fn the_text_is_openmetrics() {
        let mut list = FamilyList::new(vec![("switch", "s\"1".to_owned())]);
        list.info("weir_switch", "The switch", &[("version", "1")]);
        list.counter("weir_switch_drops", "Packets dropped", &[("reason", "table miss")], 3);
        list.gauge("weir_switch_uptime_seconds", "Time since the start", &[], 1.5);
        list.counter("weir_switch_drops", "Packets dropped", &[("reason", "no buffer")], u64::MAX);
        let expected = "# HELP weir_switch The switch
# TYPE weir_switch info
weir_switch_info{switch=\"s\\\"1\",version=\"1\"} 1
# HELP weir_switch_drops Packets dropped
# TYPE weir_switch_drops counter
weir_switch_drops_total{switch=\"s\\\"1\",reason=\"table miss\"} 3
weir_switch_drops_total{switch=\"s\\\"1\",reason=\"no buffer\"} 18446744073709551615
# HELP weir_switch_uptime_seconds Time since the start
# TYPE weir_switch_uptime_seconds gauge
weir_switch_uptime_seconds{switch=\"s\\\"1\"} 1.5
# EOF
";
        assert_eq!(encode(list.done()), expected);
    }
}
