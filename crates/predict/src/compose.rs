//! From a scenario to its prediction: phase by phase, then flow by flow and device by device.
use crate::answer::{Delays, FlowAnswer, Prediction, Status};
use crate::arrivals::{Unevenness, unevenness};
use crate::devices::Devices;
use crate::graph::{Graph, Hop};
use crate::network::{Flow, Network, Place};
use crate::phase::{MOST_PHASES, Phase, phases};
use crate::sizes::lengths;
use crate::station::Solved;
use crate::tcp::{self, Connection};
use crate::way::{Passage, passage};
use crate::{PredictError, Settings, alternatives, before_entry, choice, streams, virtuals};
use std::rc::Rc;
use std::time::Duration;
use weir_model::mechanism::{Flows, Transfer};
use weir_model::{Distribution, Law, ModelError, Warning};
use weir_scenario::{Expect, Scenario, Traffic, TrafficKind, native};

/// Frames of a ping of 56 bytes, over IPv4 and IPv6.
const PING_BYTES: [f64; 2] = [98.0, 118.0];

/// A scenario's prediction.
///
/// # Errors
/// A device is none that formulas are about, or a model of another name was asked for. What has no steady state is no error but a status.
pub fn predict(scenario: &Scenario, settings: &Settings) -> Result<Prediction, PredictError> {
    let graph = Graph::of(scenario);
    let (phases, apart) = phases(&scenario.traffic);
    let mut items: Vec<Item> = scenario.traffic.iter().map(|item| Item::new(scenario, &graph, item)).collect();
    let mut devices = Devices::default();
    let mut warnings: Vec<Warning> = Vec::new();
    for phase in &phases {
        warnings.extend(solve(scenario, &graph, settings, phase, &mut items, &mut devices)?);
    }
    let items = items.into_iter().enumerate().map(|(at, item)| item.answer(scenario, at));
    let mut flows = items.collect::<Result<Vec<_>, _>>()?;
    flows.extend(streams::answers(scenario)?);
    let bottleneck = devices.bottleneck();
    let devices = devices.answers()?;
    warnings.dedup();
    warnings.extend(devices.iter().filter_map(crate::devices::warning));
    if !apart {
        let text =
            format!("traffic starts and ends more often than {MOST_PHASES} times: all of it is taken as there at once");
        warnings.push(Warning::new("PHASES", text));
    }
    if !scenario.traffic.is_empty() && scenario.switches.iter().any(|switch| !switch.virtual_switches.is_empty()) {
        let text = "traffic between hosts is predicted as if its virtual switches got no more than they are guaranteed: where others leave \
                    some, it is faster";
        warnings.push(Warning::new("VIRTUAL_SWITCHES", text));
    }
    warnings.extend(crate::impaired::warnings(scenario));
    Ok(Prediction {
        scenario: scenario.name.clone(),
        alternatives: alternatives::answers(scenario, settings, &flows)?,
        flows,
        devices,
        models: choice::choices(scenario),
        bottleneck,
        assumptions: assumptions(scenario, settings),
        warnings,
    })
}

fn assumptions(scenario: &Scenario, settings: &Settings) -> Vec<String> {
    let mut all =
        vec!["traffic goes the way over the fewest links; flows arrive independently of each other".to_owned()];
    let unrated = scenario.hosts.iter().map(|host| host.link).chain(scenario.links.iter().map(|link| link.spec));
    if unrated.into_iter().any(|link| link.rate.is_none()) {
        all.push(format!("links without a rate: {}", settings.link_rate));
    }
    if scenario.switches.iter().any(|switch| switch.timing.is_none()) {
        let mut text = format!(
            "switches without timing: {} ns a packet, a table of one entry on one thread (weir bench datapath; bench/ has the records)",
            native::PACKET.as_nanos()
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
            native::TCP_FIRST_BYTES,
            native::TCP_WINDOW_BYTES,
            tcp::SEGMENT_BYTES,
            tcp::FRAME_BYTES
        ));
    }
    if scenario.traffic.iter().any(|item| matches!(item.kind, TrafficKind::Ping { .. })) {
        all.push("pings: after the first, which waits for addresses and for the controller".to_owned());
    }
    all
}

/// A traffic item with what its phases gave.
struct Item<'a> {
    traffic: &'a Traffic,
    /// The way there and the way back; or why there is none.
    routes: Result<[Vec<Hop>; 2], (Status, String)>,
    unevenness: Unevenness,
    rate: f64,
    fared: Vec<Fared>,
}

/// How an item fared in a phase.
struct Fared {
    seconds: f64,
    rate: f64,
    data: Outcome,
    control: Option<(f64, Outcome)>,
    goodput_bps: Option<f64>,
    notes: Vec<String>,
}

/// Packets of a kind: share that arrives, delay or the name and the load of what has no steady state, and where they wait longest.
struct Outcome {
    arrives: f64,
    delay: Result<Distribution, (String, f64)>,
    longest: Option<(String, f64)>,
}

impl<'a> Item<'a> {
    fn new(scenario: &Scenario, graph: &Graph, traffic: &'a Traffic) -> Item<'a> {
        let (unevenness, rate) = match &traffic.kind {
            TrafficKind::Udp { offered, .. } => (unevenness(offered), offered.per_second()),
            TrafficKind::Ping { interval, .. } => {
                (Unevenness { scv: 0.0, doubt: None }, 1.0 / interval.as_secs_f64().max(1e-9))
            }
            TrafficKind::Tcp { .. } => (Unevenness { scv: 1.0, doubt: None }, 0.0),
        };
        Item { traffic, routes: routes(scenario, graph, traffic), unevenness, rate, fared: Vec::new() }
    }

    fn lengths(&self) -> Result<Law, ModelError> {
        match &self.traffic.kind {
            TrafficKind::Udp { offered, .. } => lengths(offered),
            TrafficKind::Ping { .. } => Law::constant(PING_BYTES[usize::from(self.traffic.address.is_ipv6())]),
            TrafficKind::Tcp { .. } => Law::constant(tcp::FRAME_BYTES),
        }
    }

    fn new_flows(&self) -> f64 {
        if let TrafficKind::Udp { new_flows, .. } = self.traffic.kind { new_flows } else { 0.0 }
    }

    fn flows(&self) -> Option<Flows> {
        let TrafficKind::Udp { new_flows, flows: Some(flows), .. } = self.traffic.kind else { return None };
        Some(Flows { rate: self.rate * new_flows, packets: 1.0 / new_flows, packet_rate: self.rate / f64::from(flows) })
    }

    fn answer(self, scenario: &Scenario, at: usize) -> Result<FlowAnswer, PredictError> {
        let (from, to) = (&scenario.hosts[self.traffic.from].name, &scenario.hosts[self.traffic.to].name);
        let name = format!("{} {from} -> {to}", kind(self.traffic));
        let mut answer = FlowAnswer {
            item: Some(at),
            streams: Vec::new(),
            expected: None,
            kind: kind(self.traffic),
            from: from.clone(),
            to: to.clone(),
            status: Status::Ok,
            packets_per_s: self.rate,
            delay: None,
            data: None,
            control: None,
            asks: None,
            loss: None,
            goodput_bps: None,
            bottleneck: None,
            notes: self.unevenness.doubt.map(str::to_owned).into_iter().collect(),
            distribution: None,
        };
        match &self.routes {
            Err((status, why)) => {
                answer.status = status.clone();
                answer.notes = vec![why.clone()];
                answer.loss = Some(1.0);
            }
            Ok(_) => gather(&mut answer, &self.fared).map_err(|error| PredictError::at(&name, error))?,
        }
        if let (Some(of), Some(share)) = (self.flows(), answer.asks) {
            let (percent, packets) = (share * 100.0, share * of.packets);
            answer.notes.push(format!(
                "{percent:.1} % of the packets ask the controller: {packets:.2} of a flow's {}",
                of.packets
            ));
        }
        Ok(answer)
    }
}

fn kind(traffic: &Traffic) -> &'static str {
    match traffic.kind {
        TrafficKind::Ping { .. } => "ping",
        TrafficKind::Tcp { .. } => "tcp",
        TrafficKind::Udp { .. } => "udp",
    }
}

fn routes(scenario: &Scenario, graph: &Graph, item: &Traffic) -> Result<[Vec<Hop>; 2], (Status, String)> {
    let (from, to) = (&scenario.hosts[item.from], &scenario.hosts[item.to]);
    if item.expect == Expect::Isolated || from.tenant != to.tenant {
        return Err((Status::Isolated, "the hosts are not to reach each other: nothing is delivered".into()));
    }
    let Some(there) = graph.route(scenario, item.from, item.to) else {
        return Err((Status::NoPath, format!("no links lead from {} to {}", from.name, to.name)));
    };
    for hop in &there {
        if let Hop::Switch(switch) = hop
            && !virtuals::forwards(scenario, *switch)
        {
            let name = &scenario.switches[*switch].name;
            return Err((
                Status::NoPath,
                format!("{name} has neither a controller nor entries, and is not standalone: it forwards nothing"),
            ));
        }
    }
    let back = graph.route(scenario, item.to, item.from).unwrap_or_default();
    let cut = |ends, route| virtuals::through(scenario, graph, item, ends, route).map_err(|why| (Status::NoPath, why));
    Ok([cut([item.from, item.to], there)?, cut([item.to, item.from], back)?])
}

/// Solves one phase: TCP first, which takes what the others leave, then everything together.
fn solve(
    scenario: &Scenario,
    graph: &Graph,
    settings: &Settings,
    phase: &Phase,
    items: &mut [Item<'_>],
    devices: &mut Devices,
) -> Result<Option<Warning>, PredictError> {
    let mut network = Network::new(scenario, graph, settings);
    let mut flows: Vec<Flow> = Vec::new();
    let mut connections: Vec<Connection> = Vec::new();
    // By item: its flows there and back.
    let mut of_item: Vec<(usize, Vec<usize>)> = Vec::new();
    for at in &phase.items {
        let item = &items[*at];
        let Ok(routes) = &item.routes else { continue };
        let name = || format!("{} {}", kind(item.traffic), scenario.hosts[item.traffic.from].name);
        let flow = |network: &mut Network<'_>, route: &[Hop], lengths: Law, rate| -> Result<Flow, PredictError> {
            let steps =
                network.steps(route, &lengths, item.new_flows()).map_err(|error| PredictError::at(&name(), error))?;
            let (asks, flows) = (item.new_flows(), item.flows());
            Ok(Flow { steps: Rc::new(steps), rate, scv: item.unevenness.scv, lengths, asks, flows })
        };
        let lengths = item.lengths().map_err(|error| PredictError::at(&name(), error))?;
        let there = flow(&mut network, &routes[0], lengths.clone(), item.rate)?;
        match &item.traffic.kind {
            TrafficKind::Udp { .. } => {
                of_item.push((*at, vec![flows.len()]));
                flows.push(there);
            }
            TrafficKind::Ping { .. } => {
                let back = flow(&mut network, &routes[1], lengths, item.rate)?;
                of_item.push((*at, vec![flows.len(), flows.len() + 1]));
                flows.extend([there, back]);
            }
            TrafficKind::Tcp { duration } => {
                connections.push(Connection::new(*at, routes[0].clone(), there, *duration));
            }
        }
    }
    tcp::share(&mut connections, &flows, &network, graph);
    let wrong = |error| PredictError::at("tcp", error);
    for (station, queue) in tcp::follow(&mut connections, graph, &network).map_err(wrong)? {
        network.stations[station].standing = Some(queue);
    }
    for one in &connections {
        flows.push(one.flow.clone());
        let Ok(routes) = &items[one.item].routes else { continue };
        let law = Law::constant(tcp::ACKNOWLEDGEMENT_BYTES).map_err(wrong)?;
        let steps = network.steps(&routes[1], &law, 0.0).map_err(wrong)?;
        let rate = one.flow.rate / 2.0;
        flows.push(Flow { steps: Rc::new(steps), rate, scv: 1.0, lengths: law, asks: 0.0, flows: None });
    }
    let (solved, warning) = before_entry::solve(&mut network, &mut flows)?;
    devices.add(&network, &solved, phase);
    for (at, numbers) in of_item {
        let fared = fared(&network, &solved, phase, numbers.iter().map(|number| &flows[*number]))?;
        items[at].fared.push(fared);
    }
    for one in connections {
        let name = |place: Place| network.find(place).map(|station| network.stations[station].name.clone());
        let held = one.held_by.and_then(name);
        let mut notes = vec![
            held.as_ref().map_or_else(|| "its window holds it back".to_owned(), |name| format!("{name} holds it back")),
        ];
        notes.extend(one.transfer.as_ref().and_then(|transfer| waits(transfer, one.duration)));
        items[one.item].fared.push(Fared {
            seconds: phase.length.as_secs_f64(),
            rate: one.flow.rate,
            data: Outcome { arrives: 1.0, delay: Err((String::new(), 0.0)), longest: held.map(|name| (name, 0.0)) },
            control: None,
            goodput_bps: Some(one.transfer.map_or(0.0, |transfer| transfer.payload_rate * 8.0)),
            notes,
        });
    }
    Ok(warning)
}

/// Why a connection gets less than there is.
fn waits(transfer: &Transfer, duration: Duration) -> Option<String> {
    let Transfer { timeouts, lost, .. } = transfer;
    (*timeouts > 0).then(|| {
        format!(
            "loses {lost:.0} frames to a full buffer in its {:.1} s, and waits {timeouts} {} for its timer, {:.1} s at least",
            duration.as_secs_f64(),
            if *timeouts == 1 { "time" } else { "times" },
            native::TCP_TIMEOUT.as_secs_f64()
        )
    })
}

/// How the packets of an item fared, there or there and back.
fn fared<'f>(
    network: &Network<'_>,
    solved: &[Option<Solved>],
    phase: &Phase,
    flows: impl Iterator<Item = &'f Flow>,
) -> Result<Fared, PredictError> {
    let wrong = |error| PredictError::at("a flow's delay", error);
    let outcome = |ways: Vec<Passage>| {
        let longest = ways.iter().filter_map(|way| way.longest).max_by(|a, b| a.1.total_cmp(&b.1));
        let delay = ways.iter().map(|way| way.delay.clone()).collect::<Result<Vec<_>, usize>>();
        Outcome {
            arrives: ways.iter().map(|way| way.arrives).product(),
            delay: delay.map(|delays| Distribution::sum(&delays)).map_err(|station| {
                let station = &network.stations[station];
                (station.name.clone(), station.state.offered)
            }),
            longest: longest.map(|(station, seconds)| (network.stations[station].name.clone(), seconds)),
        }
    };
    let flows: Vec<&Flow> = flows.collect();
    let share = flows.first().map_or(0.0, |flow| flow.asks);
    let ways = |asks| flows.iter().map(|flow| passage(network, solved, flow, asks)).collect::<Result<Vec<_>, _>>();
    let control = if share > 0.0 { Some((share, outcome(ways(true).map_err(wrong)?))) } else { None };
    Ok(Fared {
        seconds: phase.length.as_secs_f64(),
        rate: flows.first().map_or(0.0, |flow| flow.rate),
        data: outcome(ways(false).map_err(wrong)?),
        control,
        goodput_bps: None,
        notes: Vec::new(),
    })
}

/// Puts what the phases gave together: each counts by the packets that it has.
fn gather(answer: &mut FlowAnswer, fared: &[Fared]) -> Result<(), ModelError> {
    let (mut data, mut control) = (Vec::new(), Vec::new());
    let (mut sent, mut arrived, mut asking) = (0.0, 0.0, 0.0);
    let seconds: f64 = fared.iter().map(|one| one.seconds).sum();
    for one in fared {
        let packets = one.rate * one.seconds;
        let share = one.control.as_ref().map_or(0.0, |(share, _)| *share);
        sent += packets;
        asking += packets * share;
        for (weight, outcome, into) in std::iter::once((1.0 - share, Some(&one.data), &mut data)).chain([(
            share,
            one.control.as_ref().map(|(_, outcome)| outcome),
            &mut control,
        )]) {
            let Some(outcome) = outcome.filter(|_| weight > 0.0) else { continue };
            arrived += packets * weight * outcome.arrives;
            match &outcome.delay {
                Ok(delay) => into.push((packets * weight * outcome.arrives, delay.clone())),
                Err((place, offered)) if !place.is_empty() => {
                    answer.status = Status::Unstable;
                    answer.notes.push(format!("utilisation {offered:.3} at {place}: no steady state"));
                }
                Err(_) => {}
            }
        }
        answer.notes.extend(one.notes.iter().cloned());
    }
    answer.notes.dedup();
    answer.bottleneck = bottleneck(fared);
    if let Some(goodput) =
        fared.iter().map(|one| Some(one.goodput_bps? * one.seconds)).sum::<Option<f64>>().filter(|_| seconds > 0.0)
    {
        answer.goodput_bps = Some(goodput / seconds);
        answer.packets_per_s = sent / seconds;
        answer.loss = Some(0.0);
        return Ok(());
    }
    // Without a steady state what is sent and does not arrive is not lost: it waits, ever longer.
    answer.asks = (asking > 0.0).then(|| asking / sent);
    let steady = answer.status == Status::Ok && sent > 0.0;
    answer.loss = steady.then(|| (1.0 - arrived / sent).clamp(0.0, 1.0));
    let both = !control.is_empty();
    let data_only = mixed(&data)?;
    let control_only = mixed(&control)?;
    if both || answer.status == Status::Unstable {
        answer.data = data_only.as_ref().map(Delays::of).transpose()?;
        answer.control = control_only.as_ref().map(Delays::of).transpose()?;
    }
    if answer.status == Status::Ok {
        data.extend(control);
        answer.distribution = mixed(&data)?;
        answer.delay = answer.distribution.as_ref().map(Delays::of).transpose()?;
    }
    Ok(())
}

fn bottleneck(fared: &[Fared]) -> Option<String> {
    let outcomes =
        fared.iter().flat_map(|one| std::iter::once(&one.data).chain(one.control.as_ref().map(|(_, outcome)| outcome)));
    let outcomes: Vec<&Outcome> = outcomes.collect();
    let unstable = outcomes
        .iter()
        .find_map(|one| one.delay.as_ref().err().map(|(place, _)| place.clone()).filter(|place| !place.is_empty()));
    let longest = || outcomes.iter().filter_map(|one| one.longest.as_ref()).max_by(|a, b| a.1.total_cmp(&b.1));
    unstable.or_else(|| longest().map(|(name, _)| name.clone()))
}

fn mixed(parts: &[(f64, Distribution)]) -> Result<Option<Distribution>, ModelError> {
    let sum: f64 = parts.iter().map(|(weight, _)| weight).sum();
    if sum <= 0.0 {
        return Ok(None);
    }
    let shares: Vec<(f64, Distribution)> =
        parts.iter().map(|(weight, delay)| ((weight / sum).min(1.0), delay.clone())).collect();
    Distribution::mixture(&shares).map(Some)
}
