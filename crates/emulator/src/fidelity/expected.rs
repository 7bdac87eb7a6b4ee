//! Says by formulas what share of its packets a scenario itself loses, so that other losses are known as the machine's.
use weir_network::traffic::length;
use weir_predict::{PredictSettings, PredictionStatus, predict};
use weir_scenario::{Scenario, TrafficItem, TrafficKind};
use weir_traffic::{ArrivalProcess, OfferedPackets};

/// Returns the share of packets that each item of traffic loses at the scenario's queues and links; `None` where
/// formulas do not know it well enough to blame the machine: beside TCP, which fills queues until they lose, behind a
/// queue that is full, or if traffic comes in bursts.
pub(super) fn expected_losses(scenario: &Scenario) -> Vec<Option<f64>> {
    let mut losses = vec![None; scenario.traffic.len()];
    let is_smooth = scenario.traffic.iter().all(|item| is_smooth(&item.kind));
    let prediction = predict(scenario, &PredictSettings::default()).ok().filter(|_| is_smooth);
    for flow in prediction.iter().flat_map(|prediction| &prediction.flows) {
        let known = flow.item.filter(|_| flow.status == PredictionStatus::Ok);
        if let Some(item) = known.filter(|item| !is_beside_tcp(&scenario.traffic, *item)) {
            losses[item] = flow.loss;
        }
    }
    losses
}

/// Returns true if a TCP transfer lasts while this item does.
fn is_beside_tcp(items: &[TrafficItem], place: usize) -> bool {
    let end = |item: &TrafficItem| item.start + length(item);
    let own = &items[place];
    let is_at_once = |other: &&TrafficItem| other.start < end(own) && own.start < end(other);
    items.iter().filter(is_at_once).any(|other| matches!(other.kind, TrafficKind::Tcp { .. }))
}

/// Returns true if an item of traffic fills no queue by bursts of its own.
fn is_smooth(kind: &TrafficKind) -> bool {
    match kind {
        TrafficKind::Udp { offered: OfferedPackets::Rule { arrival, .. }, .. } => {
            matches!(arrival, ArrivalProcess::Constant | ArrivalProcess::Poisson)
        }
        TrafficKind::Udp { offered: OfferedPackets::Trace(_), .. } => false,
        TrafficKind::Ping { .. } | TrafficKind::Tcp { .. } => true,
    }
}
