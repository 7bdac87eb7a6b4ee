//! Selects the best model for what is known about a device.
use crate::registry::{RegisteredModel, find};

/// Knowledge about a switch, its controller and their traffic.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelCriteria {
    /// True if the latency of the idle control path and its capacity without loss were measured.
    pub calibrated: bool,
    /// True if mean and variation are known for each stage: data path, packet-in, controller, packet-out.
    pub stages: bool,
    /// True if the switch is software that polls, and collects packets in batches.
    pub polls: bool,
    /// True if packets from the controller pass the data path once more, with priority, or if the data path's buffers
    /// are small.
    pub returns_first: bool,
    /// True if packets from the controller pass the data path once more, in order of arrival.
    pub returns: bool,
    /// True if the controller, or its queue in the switch, has limited room.
    pub limited: bool,
    /// Mean number of packets in a new flow, if known.
    pub packets_per_flow: Option<f64>,
    /// Share of packets that begin a flow.
    pub new_flows: f64,
}

/// Selected model and the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedModel {
    /// Model that computes the share of packets for the controller first; none if it is the share of new flows.
    pub before: Option<&'static str>,
    /// Model of the additional delay by batches in the data path; none without batches.
    pub beside: Option<&'static str>,
    /// Name of the model in the registry.
    pub model: &'static str,
    /// Reason in words.
    pub reason: String,
}

impl SelectedModel {
    /// Returns the model's description, with its assumptions and validity, which belong to every answer.
    pub fn about(&self) -> Option<&'static RegisteredModel> {
        find(self.model).ok()
    }
}

/// Selects the model for a device.
pub fn choose(known: &ModelCriteria) -> SelectedModel {
    let (model, reason) = model(known);
    let several = known.packets_per_flow.is_some_and(|packets| packets > 1.0) && known.new_flows > 0.0;
    let mut reasons = vec![reason];
    if several {
        reasons.push("several packets of a flow can come before its entry is there: the share that asks is larger than that of new flows");
    }
    if known.polls {
        reasons.push("packets wait for batches on the data path");
    }
    SelectedModel {
        before: several.then_some("udp_burst"),
        beside: known.polls.then_some("batch_stage"),
        model,
        reason: reasons.join("; "),
    }
}

fn model(known: &ModelCriteria) -> (&'static str, &'static str) {
    match known {
        ModelCriteria { new_flows, .. } if *new_flows <= 0.0 => {
            ("mg1", "no packet asks the controller: the data path is all there is")
        }
        ModelCriteria { calibrated: true, .. } => {
            ("lcs", "the control path's latency and capacity were measured: nothing else is needed")
        }
        ModelCriteria { returns_first: true, .. } => {
            ("goto", "packets come back from the controller to a queue of their own, or to small buffers")
        }
        ModelCriteria { returns: true, limited: true, .. } => {
            ("jarschel", "packets come back to the data path's queue, from a controller of limited room")
        }
        ModelCriteria { returns: true, .. } => ("mahmood", "packets come back to the data path's queue"),
        ModelCriteria { stages: true, .. } => {
            ("sdn4q", "mean and variation are known for each stage of the control path")
        }
        _ => ("mahmood", "only rates are known: quick bounds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_preferred_to_what_is_assumed() {
        let known = ModelCriteria { new_flows: 0.25, ..ModelCriteria::default() };
        let chosen = |known: ModelCriteria| choose(&known).model;
        assert_eq!(chosen(known), "mahmood");
        assert_eq!(chosen(ModelCriteria { stages: true, ..known }), "sdn4q");
        assert_eq!(chosen(ModelCriteria { stages: true, returns_first: true, ..known }), "goto");
        assert_eq!(chosen(ModelCriteria { returns: true, limited: true, ..known }), "jarschel");
        assert_eq!(chosen(ModelCriteria { calibrated: true, stages: true, returns_first: true, ..known }), "lcs");
        assert_eq!(chosen(ModelCriteria { calibrated: true, new_flows: 0.0, ..known }), "mg1");
    }

    #[test]
    fn what_comes_before_and_beside_is_named_and_all_are_there() {
        let known =
            ModelCriteria { polls: true, packets_per_flow: Some(10.0), new_flows: 0.1, ..ModelCriteria::default() };
        let choice = choose(&known);
        assert_eq!((choice.before, choice.beside), (Some("udp_burst"), Some("batch_stage")));
        assert!(choice.about().is_some() && choice.reason.contains("; "));
        for name in
            [choice.before, choice.beside].into_iter().flatten().chain(["mg1", "lcs", "goto", "jarschel", "sdn4q"])
        {
            assert!(find(name).is_ok(), "{name}");
        }
        assert_eq!(choose(&ModelCriteria { packets_per_flow: Some(1.0), ..known }).before, None);
    }
}
