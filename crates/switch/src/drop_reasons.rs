//! Names the reasons for which a switch drops packets, besides those of its tables and actions.
use crate::snapshot::{SwitchSnapshot, VirtualSwitchSnapshot};
use weir_datapath::Drops;
use weir_device::DelayedDatapath;

/// Queues of workers that were full: at their input, at their output, and that of packet-ins.
pub(crate) const WORKERS: [&str; 3] = ["worker_ring_full", "transmit_ring_full", "packet_in_queue_full"];
/// A port was removed while packets for it were on their way.
pub(crate) const PORT_GONE: &str = "port_gone";
/// Virtual switches: packets of the physical switch behind theirs, and packets that got no turn.
pub(crate) const VIRTUALS: [&str; 2] = ["behind_virtual_switches", "virtual_switch_without_turn"];

impl SwitchSnapshot {
    /// Returns the packets dropped for each reason that this switch may have, also for reasons without packets.
    pub fn drops_by_reason(&self) -> Vec<(&str, u64)> {
        let profile = self.timing.iter().flat_map(|_| DelayedDatapath::DROP_REASONS);
        let virtuals = VIRTUALS.into_iter().filter(|_| !self.virtual_switches.is_empty());
        let known = Drops::NAMES.iter().copied().chain(WORKERS).chain([PORT_GONE]).chain(profile).chain(virtuals);
        with_zeros(known, self.drops.iter().map(|(reason, count)| (reason.as_str(), *count)).collect())
    }
}

impl VirtualSwitchSnapshot {
    /// Returns the packets that tables and actions dropped for each reason, also for reasons without packets.
    pub fn drops_by_reason(&self) -> Vec<(&str, u64)> {
        let counted = self.drops.iter().map(|(reason, count)| (reason.as_str(), *count));
        with_zeros(Drops::NAMES.iter().copied(), counted.collect())
    }
}

/// Returns counts with 0 for known reasons that have none.
fn with_zeros(known: impl Iterator<Item = &'static str>, counted: Vec<(&str, u64)>) -> Vec<(&str, u64)> {
    let mut all = counted;
    for reason in known {
        if !all.iter().any(|(other, _)| *other == reason) {
            all.push((reason, 0));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn snapshot(virtuals: bool) -> SwitchSnapshot {
        let tenant =
            json!({"name": "v", "datapath_id": 2, "ports": [], "crosspoints": [], "spec": {}, "drops": {"meter": 3}});
        let tenants = if virtuals { vec![tenant] } else { Vec::new() };
        serde_json::from_value(json!({
            "name": "s", "datapath_id": 1, "uptime_s": 1.0, "ports": [], "tables": [], "channels": [],
            "drops": [["no_action", 2]], "virtual_switches": tenants,
            "packet_ins": 0, "packet_ins_dropped": 0, "packet_ins_limited": 0,
        }))
        .unwrap()
    }

    #[test]
    fn reasons_without_packets_are_zero() {
        let (plain, shared) = (snapshot(false), snapshot(true));
        let drops = plain.drops_by_reason();
        for (reason, count) in [("no_action", 2), ("table_miss", 0), ("worker_ring_full", 0), ("port_gone", 0)] {
            assert!(drops.contains(&(reason, count)), "{reason}: {drops:?}");
        }
        assert!(!drops.iter().any(|(reason, _)| reason.starts_with("profile_") || *reason == VIRTUALS[0]), "{drops:?}");
        assert!(shared.drops_by_reason().contains(&(VIRTUALS[0], 0)));
        let tenant = shared.virtual_switches[0].drops_by_reason();
        assert!(tenant.contains(&("meter", 3)) && tenant.contains(&("table_miss", 0)), "{tenant:?}");
    }

    #[test]
    fn the_guide_lists_the_reasons() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/metrics.md");
        let page = std::fs::read_to_string(page).unwrap();
        let more = WORKERS.into_iter().chain([PORT_GONE]).chain(VIRTUALS).chain(DelayedDatapath::DROP_REASONS);
        for reason in Drops::NAMES.iter().copied().chain(more) {
            assert!(page.contains(&format!("| `{reason}` |")), "{reason}");
        }
    }
}
