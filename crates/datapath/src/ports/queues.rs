//! Replies with the configuration and statistics of port queues (OpenFlow 1.3.5, 7.3.6 and 7.3.5.8).
//!
//! The engine owns the queues and sets their state in the datapath right before a request for it is handled.
use super::{PortState, Ports};
use crate::PortQueue;
use weir_openflow::Version;
use weir_openflow::model::error::QueueOpFailed;
use weir_openflow::model::queue::{ALL_QUEUES, QueueConfig, QueueConfigReply, QueueProperty, QueueStats};
use weir_openflow::model::{ErrorType, PortNo};
use weir_units::{Bps, Instant};

/// A queue's share that equals the whole rate, in tenths of a percent.
const WHOLE: u16 = 1000;

impl Ports {
    /// Returns the queues of a port, or of all ports (except in 1.0, which must name one).
    pub(crate) fn queue_config(&self, port: PortNo, version: Version) -> Result<QueueConfigReply, ErrorType> {
        if port == PortNo::ANY && version == Version::V10 {
            return Err(QueueOpFailed::BadPort.into());
        }
        let mut queues = self.queue_desc(port, ALL_QUEUES)?;
        if version == Version::V10 {
            // 1.0 has no maximum rate (OpenFlow 1.0.0, 5.2.2), and os-ken cannot decode one there.
            let is_known = |property: &QueueProperty| !matches!(property, QueueProperty::MaxRate(_));
            queues.iter_mut().for_each(|queue| queue.properties.retain(is_known));
        }
        Ok(QueueConfigReply { port, queues })
    }

    /// Returns the configuration of one queue or all queues, of one port or all ports.
    pub(crate) fn queue_desc(&self, port: PortNo, queue: u32) -> Result<Vec<QueueConfig>, ErrorType> {
        self.queues_asked(port, queue, |port, queue| QueueConfig {
            queue: queue.id,
            port: port.desc.port_no,
            properties: properties(queue, port.queues().rate),
        })
    }

    /// Returns the statistics of one queue or all queues, of one port or all ports.
    pub(crate) fn queue_stats(&self, now: Instant, port: PortNo, queue: u32) -> Result<Vec<QueueStats>, ErrorType> {
        self.queues_asked(port, queue, |port, queue| stats_of(now, port, queue))
    }

    fn queues_asked<T>(
        &self,
        port: PortNo,
        queue: u32,
        say: impl Fn(&PortState, &PortQueue) -> T,
    ) -> Result<Vec<T>, ErrorType> {
        let mut said = Vec::new();
        for port in self.ports_asked(port)? {
            let wanted = port.queues().queues.iter().filter(|found| queue == ALL_QUEUES || found.id == queue);
            said.extend(wanted.map(|queue| say(port, queue)));
        }
        if said.is_empty() && queue != ALL_QUEUES { Err(QueueOpFailed::BadQueue.into()) } else { Ok(said) }
    }

    fn ports_asked(&self, port: PortNo) -> Result<Vec<&PortState>, ErrorType> {
        if port == PortNo::ANY {
            return Ok(self.iter().collect());
        }
        Ok(vec![self.get(port).ok_or(QueueOpFailed::BadPort)?])
    }
}

fn properties(queue: &PortQueue, rate: Option<Bps>) -> Vec<QueueProperty> {
    // Shares cannot be stated for a port without a rate.
    let Some(rate) = rate else { return Vec::new() };
    let min = queue.min.map(|min| QueueProperty::MinRate(part_of(min, rate)));
    let max = queue.max.map(|max| QueueProperty::MaxRate(part_of(max, rate)));
    min.into_iter().chain(max).collect()
}

/// Returns a rate in tenths of a percent of another, rounded to the nearest, and at least 1, because 0 would mean
/// none.
fn part_of(rate: Bps, whole: Bps) -> u16 {
    let (rate, whole) = (u128::from(rate.0), u128::from(whole.0).max(1));
    let tenths = (rate * u128::from(WHOLE) + whole / 2) / whole;
    u16::try_from(tenths).unwrap_or(WHOLE).clamp(1, WHOLE)
}

fn stats_of(now: Instant, port: &PortState, queue: &PortQueue) -> QueueStats {
    let (duration_sec, duration_nsec) = crate::types::duration(now, queue.since.max(port.added()));
    QueueStats {
        port: port.desc.port_no,
        queue: queue.id,
        tx_bytes: queue.tx_bytes,
        tx_packets: queue.tx_packets,
        tx_errors: queue.tx_dropped,
        duration_sec,
        duration_nsec,
        properties: Vec::new(),
    }
}
