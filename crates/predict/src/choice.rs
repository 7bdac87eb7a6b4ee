//! Reports which model is used for which switch, and why.
use crate::ModelChoice;
use weir_scenario::{
    ControlPathTiming, ReleaseGate, ReturnDiscipline, Scenario, ScenarioSwitch, SwitchTiming, TrafficKind,
};

/// Returns the models of all switches; switches with equal choices share an element.
pub(crate) fn choices(scenario: &Scenario) -> Vec<ModelChoice> {
    let asks =
        scenario.traffic.iter().any(|item| matches!(item.kind, TrafficKind::Udp { new_flows, .. } if new_flows > 0.0));
    let mut choices: Vec<ModelChoice> = Vec::new();
    for switch in &scenario.switches {
        let (model, why, validity) = choice(scenario, switch, asks);
        match choices.iter_mut().find(|known| known.model == model && known.why == why && known.validity == validity) {
            Some(known) => known.switches.push(switch.name.clone()),
            None => choices.push(ModelChoice { switches: vec![switch.name.clone()], model, why, validity }),
        }
    }
    choices
}

fn choice(scenario: &Scenario, switch: &ScenarioSwitch, asks: bool) -> (&'static str, String, String) {
    let Some(timing) = &switch.timing else {
        return (
            "native",
            "the file does not say how long it takes: weir's own packet path, one thread".into(),
            "below what the thread can do; live, threads that sleep between packets are woken first, which is not counted".into(),
        );
    };
    let known = !timing.control.is_unknown() || scenario.controller.service.is_some();
    let (model, why, validity) = match &timing.control {
        _ if !asks || !known => (
            "mg1",
            "no packet asks the controller: the data path alone",
            "exact for Poisson arrivals at the first queue; behind others and for other arrivals by variances, means within a few percent",
        ),
        ControlPathTiming::Measured { .. } => (
            "lcs",
            "its control path is known as a whole, by delay and capacity",
            "exact for Poisson arrivals; delay and capacity are those of packets that are alone and of saturation",
        ),
        ControlPathTiming::Agents { .. } => (
            "sdn4q",
            "its stages are known one by one",
            "stages as if independent: means within 5 %, small losses within a third, in simulations up to utilisation 1.1",
        ),
    };
    (model, why.into(), format!("{validity}{}", further_approximations(timing)))
}

/// Returns further approximations of the switch's model.
fn further_approximations(timing: &SwitchTiming) -> String {
    let mut more = String::new();
    if !timing.write.is_zero() {
        more += "; writes come as if at random: an upper estimate of what they delay";
    }
    match &timing.returns {
        ReturnDiscipline::Direct => {}
        ReturnDiscipline::Fifo => more += "; packets that come back are taken as independent of their first visit",
        ReturnDiscipline::Priority { .. } => {
            more += "; who goes first has waiting times by Cobham, buffers of its own are not looked at (model goto has them)"
        }
    }
    match timing.gate {
        None => {}
        Some(ReleaseGate::Tick { .. }) => more += "; ticks come independently of packets",
        Some(ReleaseGate::Batch { .. }) => more += "; batches fill by Poisson arrivals",
    }
    more
}
