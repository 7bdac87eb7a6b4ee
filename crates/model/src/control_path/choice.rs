//! Which model answers best, from what is known about a device.
use crate::registry::{Model, find};

/// What is known about a switch, its controller and their traffic.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Knowledge {
    /// What the idle control path takes, and what it carries without loss, were measured.
    pub calibrated: bool,
    /// Mean and variation are known for each stage: data path, packet-in, controller, packet-out.
    pub stages: bool,
    /// The switch is software that polls, and collects packets in batches.
    pub polls: bool,
    /// Packets that come back from the controller pass the data path once more, before all others, or the data path's buffers are small.
    pub returns_first: bool,
    /// Packets that come back from the controller pass the data path once more, in turn.
    pub returns: bool,
    /// The controller, or its queue in the switch, has room for a limited number.
    pub limited: bool,
    /// Mean packets of a flow that begins, if several come.
    pub packets_per_flow: Option<f64>,
    /// Share of packets that begin a flow.
    pub new_flows: f64,
}

/// A model, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// What gives the share of packets that ask the controller, before the model is asked; nothing if it is the share of new flows.
    pub before: Option<&'static str>,
    /// What gives delay that the data path adds by batches, beside the model.
    pub beside: Option<&'static str>,
    /// The model's name in the registry.
    pub model: &'static str,
    /// Why, in words.
    pub reason: String,
}

impl Choice {
    /// The model, with what it assumes and where it holds: to be said with every answer.
    pub fn about(&self) -> Option<&'static Model> {
        find(self.model).ok()
    }
}

/// The model to ask.
pub fn choose(known: &Knowledge) -> Choice {
    let (model, reason) = model(known);
    let several = known.packets_per_flow.is_some_and(|packets| packets > 1.0) && known.new_flows > 0.0;
    let mut reasons = vec![reason];
    if several {
        reasons.push("several packets of a flow can come before its entry is there: the share that asks is larger than that of new flows");
    }
    if known.polls {
        reasons.push("packets wait for batches on the data path");
    }
    Choice {
        before: several.then_some("udp_burst"),
        beside: known.polls.then_some("batch_stage"),
        model,
        reason: reasons.join("; "),
    }
}

fn model(known: &Knowledge) -> (&'static str, &'static str) {
    match known {
        Knowledge { new_flows, .. } if *new_flows <= 0.0 => {
            ("mg1", "no packet asks the controller: the data path is all there is")
        }
        Knowledge { calibrated: true, .. } => {
            ("lcs", "the control path's latency and capacity were measured: nothing else is needed")
        }
        Knowledge { returns_first: true, .. } => {
            ("goto", "packets come back from the controller to a queue of their own, or to small buffers")
        }
        Knowledge { returns: true, limited: true, .. } => {
            ("jarschel", "packets come back to the data path's queue, from a controller of limited room")
        }
        Knowledge { returns: true, .. } => ("mahmood", "packets come back to the data path's queue"),
        Knowledge { stages: true, .. } => ("sdn4q", "mean and variation are known for each stage of the control path"),
        _ => ("mahmood", "only rates are known: quick bounds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_preferred_to_what_is_assumed() {
        let known = Knowledge { new_flows: 0.25, ..Knowledge::default() };
        let chosen = |known: Knowledge| choose(&known).model;
        assert_eq!(chosen(known), "mahmood");
        assert_eq!(chosen(Knowledge { stages: true, ..known }), "sdn4q");
        assert_eq!(chosen(Knowledge { stages: true, returns_first: true, ..known }), "goto");
        assert_eq!(chosen(Knowledge { returns: true, limited: true, ..known }), "jarschel");
        assert_eq!(chosen(Knowledge { calibrated: true, stages: true, returns_first: true, ..known }), "lcs");
        assert_eq!(chosen(Knowledge { calibrated: true, new_flows: 0.0, ..known }), "mg1");
    }

    #[test]
    fn what_comes_before_and_beside_is_named_and_all_are_there() {
        let known = Knowledge { polls: true, packets_per_flow: Some(10.0), new_flows: 0.1, ..Knowledge::default() };
        let choice = choose(&known);
        assert_eq!((choice.before, choice.beside), (Some("udp_burst"), Some("batch_stage")));
        assert!(choice.about().is_some() && choice.reason.contains("; "));
        for name in
            [choice.before, choice.beside].into_iter().flatten().chain(["mg1", "lcs", "goto", "jarschel", "sdn4q"])
        {
            assert!(find(name).is_ok(), "{name}");
        }
        assert_eq!(choose(&Knowledge { packets_per_flow: Some(1.0), ..known }).before, None);
    }
}
