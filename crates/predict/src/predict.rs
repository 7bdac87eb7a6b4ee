//! Computes the prediction of a scenario: phase by phase, then flow by flow and device by device.
use crate::answer::{FlowPrediction, PredictedDelay, PredictedPromise, Prediction};
use crate::data_path::{self, LevelDemands, switches};
use crate::devices::DevicePeaks;
use crate::graph::{RouteGraph, RouteHop};
use crate::network::{QueueLocation, QueueingNetwork, UnidirectionalFlow};
use crate::phase::{MAX_PHASES, TrafficPhase, phases};
use crate::tcp::{self, TcpConnection};
use crate::traffic_item::{DeliveryResult, PhaseResult, PredictedItem, kind, phase_result};
use crate::{PredictError, PredictSettings, alternatives, choice, flow_setup, streams, trace_rates};
use std::rc::Rc;
use std::time::Duration;
use weir_model::mechanism::TcpBulkResult;
use weir_model::{Law, Warning};
use weir_scenario::{Scenario, ScenarioTables, TrafficKind, defaults};

/// Predicts a scenario.
///
/// # Errors
/// A device has parameters outside the formulas' domain, or an unknown model was requested. A queue without a steady
/// state is no error but a status.
pub fn predict(scenario: &Scenario, settings: &PredictSettings) -> Result<Prediction, PredictError> {
    let scenario = &*trace_rates::as_played(scenario);
    let graph = RouteGraph::of(scenario);
    let (phases, apart) = phases(&scenario.traffic);
    let mut items: Vec<PredictedItem> =
        scenario.traffic.iter().map(|item| PredictedItem::new(scenario, &graph, item)).collect();
    let mut devices = DevicePeaks::default();
    let mut warnings: Vec<Warning> = Vec::new();
    let passed: Vec<Vec<usize>> = items
        .iter()
        .map(|item| item.routes.as_ref().map_or_else(|_| Vec::new(), |routes| switches(&routes[0]).collect()))
        .collect();
    let tables = ScenarioTables::new(scenario, &passed);
    for phase in &phases {
        let levels = LevelDemands::new(scenario, &graph, settings, &tables, (&items, &phase.items))
            .map_err(|error| PredictError::at("data path", error))?;
        for warning in levels.warnings() {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let network = QueueingNetwork::new(scenario, &graph, settings, levels);
        warnings.extend(solve(scenario, &graph, network, phase, &mut items, &mut devices)?);
    }
    let items = items.into_iter().enumerate().map(|(at, item)| item.answer(scenario, at));
    let mut flows = items.collect::<Result<Vec<_>, _>>()?;
    flows.extend(streams::answers(scenario)?);
    keep_to_bounds(scenario, &mut flows);
    let bottleneck = devices.bottleneck();
    let devices = devices.answers()?;
    warnings.dedup();
    warnings.extend(devices.iter().filter_map(crate::devices::warning));
    if !apart {
        let text =
            format!("traffic starts and ends more often than {MAX_PHASES} times: all of it is taken as there at once");
        warnings.push(Warning::new("PHASES", text));
    }
    if !scenario.traffic.is_empty() && scenario.switches.iter().any(|switch| !switch.virtual_switches.is_empty()) {
        let text = "traffic between hosts is predicted as if its virtual switches got no more than they are guaranteed: where others leave \
                    some, it is faster";
        warnings.push(Warning::new("VIRTUAL_SWITCHES", text));
    }
    warnings.extend(crate::virtuals::warnings(scenario));
    warnings.extend(crate::link_impairments::warnings(scenario));
    warnings.extend(not_predicted(scenario));
    warnings.extend(data_path::unused(scenario));
    Ok(Prediction {
        scenario: scenario.name.clone(),
        alternatives: alternatives::answers(scenario, settings, &flows)?,
        promises: promised(scenario, &flows),
        flows,
        devices,
        models: choice::choices(scenario),
        bottleneck,
        assumptions: assumptions(scenario, settings),
        warnings,
    })
}

/// Limits the delays of traffic in profile of a virtual network to the bound of the network, and its loss to none: the
/// formulas know nothing of promises, and may expect more.
fn keep_to_bounds(scenario: &Scenario, flows: &mut [FlowPrediction]) {
    for promise in weir_scenario::networks::promises(scenario) {
        let flow = flows.iter_mut().find(|flow| flow.item == Some(promise.item));
        let (Some(flow), Some(bound), None) = (flow, promise.bound, &promise.out_of_profile) else { continue };
        // The bound begins when the first switch has the packet.
        let most = (bound + promise.access).as_secs_f64();
        let Some(delay) = &mut flow.delay else { continue };
        if delay.p99_s > most || flow.loss.is_some_and(|loss| loss > 0.0) {
            let PredictedDelay { mean_s, p50_s, p95_s, p99_s } = delay;
            [mean_s, p50_s, p95_s, p99_s].into_iter().for_each(|time| *time = time.min(most));
            flow.loss = Some(0.0);
            flow.distribution = None;
            flow.notes.push(format!(
                "the formulas expect more than network {} has in profile: limited to its bound, without loss",
                promise.network
            ));
        }
    }
}

/// Returns the promises of virtual networks beside the percentiles of the formulas.
fn promised(scenario: &Scenario, flows: &[FlowPrediction]) -> Vec<PredictedPromise> {
    let promises = weir_scenario::networks::promises(scenario).into_iter();
    let promised = promises.filter_map(|promise| {
        let flow = flows.iter().find(|flow| flow.item == Some(promise.item))?;
        Some(PredictedPromise {
            network: promise.network,
            from: flow.from.clone(),
            to: flow.to.clone(),
            guaranteed_bps: promise.guaranteed.0,
            promised_s: promise.promised.map(|delay| delay.as_secs_f64()),
            bound_s: promise.bound.map(|delay| delay.as_secs_f64()),
            p99_s: flow.delay.map(|delay| delay.p99_s),
            out_of_profile: promise.out_of_profile,
        })
    });
    promised.collect()
}

/// Returns warnings about what the scenario has, but the formulas do not.
fn not_predicted(scenario: &Scenario) -> Vec<Warning> {
    let mut found = Vec::new();
    if let Some(problem) = scenario.flood_loop() {
        found.push(Warning::new("LOOP", format!("{problem}. Answered as if each packet took a shortest path")));
    }
    found.extend(network_control(scenario));
    let queues = scenario.hosts.iter().map(|host| &host.queues).chain(scenario.links.iter().map(|link| &link.queues));
    if queues.into_iter().any(|queues| !queues.is_empty()) && !scenario.traffic.is_empty() {
        let text =
            "links have queues: answered as if all packets waited in the default queue, with the link's whole rate";
        found.push(Warning::new("QUEUES", text));
    }
    found
}

/// Returns a warning if the controller of the network has applications, intents or ways that the formulas leave out.
fn network_control(scenario: &Scenario) -> Option<Warning> {
    let control = &scenario.network_control;
    let names = control.application_names();
    let applications = (!names.is_empty()).then(|| format!("applications ({})", names.join(", ")));
    let count = control.intents.len();
    let intents = (count > 0).then(|| weir_units::counted(count, "intent", "intents"));
    let spread = control.ecmp.then(|| "flows spread over several ways (ecmp)".to_owned());
    let left_out: Vec<String> = [applications, intents, spread].into_iter().flatten().collect();
    let text = || {
        format!(
            "of the controller of the network, {} left out: answered as if nothing was denied or routed, and each packet \
             took a way over the fewest links",
            left_out.join(" and ") + if left_out.len() == 1 && count == 1 { " is" } else { " are" }
        )
    };
    (!left_out.is_empty()).then(|| Warning::new("NETWORK_CONTROL", text()))
}

fn assumptions(scenario: &Scenario, settings: &PredictSettings) -> Vec<String> {
    let mut all =
        vec!["traffic goes the way over the fewest links; flows arrive independently of each other".to_owned()];
    let unrated = scenario.hosts.iter().map(|host| host.link).chain(scenario.links.iter().map(|link| link.spec));
    if unrated.into_iter().any(|link| link.rate.is_none()) {
        all.push(format!("links without a rate: {}", settings.link_rate));
    }
    if scenario.switches.iter().any(|switch| switch.timing.is_none()) {
        let mut text = format!(
            "switches without timing: {} ns a packet, a table of one entry on one thread (weir bench datapath; bench/ has the records)",
            defaults::PACKET_TIME.as_nanos()
        );
        if settings.wake_up.is_zero() {
            text += "; no time to wake threads up (--wake-up)";
        } else {
            text += &format!("; {:.1} us to wake a thread up that sleeps", settings.wake_up.as_secs_f64() * 1e6);
        }
        all.push(text);
    }
    if scenario.traffic.iter().any(|item| matches!(item.kind, TrafficKind::Tcp { .. })) {
        all.push(format!(
            "TCP: from its first {} bytes on, Reno as hosts in this process have it; what others leave of the narrowest place, at most {} bytes in a \
             round trip; {} of {} bytes of a frame are payload",
            defaults::TCP_INITIAL_WINDOW_BYTES,
            defaults::TCP_WINDOW_BYTES,
            tcp::SEGMENT_BYTES,
            tcp::FRAME_BYTES
        ));
    }
    if scenario.traffic.iter().any(|item| matches!(item.kind, TrafficKind::Ping { .. })) {
        all.push("pings: after the first, which waits for addresses and for the controller".to_owned());
    }
    all
}

/// Solves one phase: first TCP, which takes what others leave, then everything together.
fn solve(
    scenario: &Scenario,
    graph: &RouteGraph,
    mut network: QueueingNetwork<'_>,
    phase: &TrafficPhase,
    items: &mut [PredictedItem<'_>],
    devices: &mut DevicePeaks,
) -> Result<Option<Warning>, PredictError> {
    let mut flows: Vec<UnidirectionalFlow> = Vec::new();
    let mut connections: Vec<TcpConnection> = Vec::new();
    // Index of each item, with the indices of its flows in both directions.
    let mut of_item: Vec<(usize, Vec<usize>)> = Vec::new();
    for at in &phase.items {
        let item = &items[*at];
        let Ok(routes) = &item.routes else { continue };
        let name = || format!("{} {}", kind(item.traffic), scenario.hosts[item.traffic.from].name);
        let flow = |network: &mut QueueingNetwork<'_>,
                    (route, back): (&[RouteHop], bool),
                    lengths: Law,
                    rate|
         -> Result<UnidirectionalFlow, PredictError> {
            let steps = network
                .steps(route, (*at, back), &lengths, item.new_flows())
                .map_err(|error| PredictError::at(&name(), error))?;
            let (asks, flows) = (item.new_flows(), item.flows());
            Ok(UnidirectionalFlow {
                steps: Rc::new(steps),
                rate,
                scv: item.variability.scv,
                modulation: item.variability.modulation.clone(),
                lengths,
                asking_share: asks,
                flows,
            })
        };
        let lengths = item.lengths().map_err(|error| PredictError::at(&name(), error))?;
        let there = flow(&mut network, (&routes[0], false), lengths.clone(), item.rate)?;
        match &item.traffic.kind {
            TrafficKind::Udp { .. } => {
                of_item.push((*at, vec![flows.len()]));
                flows.push(there);
            }
            TrafficKind::Ping { .. } => {
                let back = flow(&mut network, (&routes[1], true), lengths, item.rate)?;
                of_item.push((*at, vec![flows.len(), flows.len() + 1]));
                flows.extend([there, back]);
            }
            TrafficKind::Tcp { duration } => {
                connections.push(TcpConnection::new(*at, routes[0].clone(), there, *duration));
            }
        }
    }
    tcp::share_capacity(&mut connections, &flows, &network, graph);
    let wrong = |error| PredictError::at("tcp", error);
    for (station, queue) in tcp::compute_courses(&mut connections, graph, &network).map_err(wrong)? {
        network.stations[station].tcp_waiting = Some(queue);
    }
    for one in &connections {
        flows.push(one.flow.clone());
        let Ok(routes) = &items[one.item].routes else { continue };
        let law = Law::constant(tcp::ACKNOWLEDGEMENT_BYTES).map_err(wrong)?;
        let steps = network.steps(&routes[1], (one.item, true), &law, 0.0).map_err(wrong)?;
        let rate = one.flow.rate / 2.0;
        flows.push(UnidirectionalFlow {
            steps: Rc::new(steps),
            rate,
            scv: 1.0,
            modulation: None,
            lengths: law,
            asking_share: 0.0,
            flows: None,
        });
    }
    let (solved, warning) = flow_setup::solve(&mut network, &mut flows)?;
    devices.add(&network, &solved, phase);
    for (at, numbers) in of_item {
        let fared = phase_result(&network, &solved, phase, numbers.iter().map(|number| (*number, &flows[*number])))?;
        items[at].phase_results.push(fared);
    }
    for one in connections {
        let name = |place: QueueLocation| network.find(place).map(|station| network.stations[station].name.clone());
        let held = one.limited_by.and_then(name);
        let mut notes = vec![
            held.as_ref().map_or_else(|| "its window holds it back".to_owned(), |name| format!("{name} holds it back")),
        ];
        notes.extend(one.transfer.as_ref().and_then(|transfer| waits(transfer, one.duration)));
        items[one.item].phase_results.push(PhaseResult {
            seconds: phase.length.as_secs_f64(),
            rate: one.flow.rate,
            data: DeliveryResult {
                arrives: 1.0,
                delay: Err((String::new(), 0.0)),
                longest: held.map(|name| (name, 0.0)),
                doubts: Vec::new(),
            },
            control: None,
            goodput_bps: Some(one.transfer.map_or(0.0, |transfer| transfer.payload_rate * 8.0)),
            notes,
        });
    }
    Ok(warning)
}

/// Returns the reason why a connection gets less than the available rate, if it does.
fn waits(transfer: &TcpBulkResult, duration: Duration) -> Option<String> {
    let TcpBulkResult { timeouts, lost, .. } = transfer;
    if transfer.payload_bytes == 0.0 {
        return Some("it ends before its first bytes can arrive".to_owned());
    }
    (*timeouts > 0).then(|| {
        format!(
            "loses {lost:.0} frames to a full buffer in its {:.1} s, and waits {timeouts} {} for its timer, {:.1} s at least",
            duration.as_secs_f64(),
            if *timeouts == 1 { "time" } else { "times" },
            defaults::TCP_MIN_RTO.as_secs_f64()
        )
    })
}
