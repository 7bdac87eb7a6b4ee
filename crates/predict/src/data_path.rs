//! Computes the service of data paths whose profile has levels that forward: by what packets meet in the tables, their
//! lengths, and the times between the packets of a level.
use crate::flow_cache::CachedFlows;
use crate::gaps::{PassingStream, PingPass, SortedGaps};
use crate::graph::{RouteGraph, RouteHop};
use crate::sizes::ServiceDemand;
use crate::traffic_item::PredictedItem;
use crate::{PredictSettings, tcp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use weir_model::switch::forward::PacketConditions;
use weir_model::{Law, ModelError, Warning};
use weir_scenario::{
    FirstPackets, FlowCacheTiming, MetLevel, ReleaseGate, Scenario, ScenarioTables, TrafficKind, defaults,
};

/// Number of times that the time from a request to its reply is computed; it contains services that depend on it.
const ROUNDS: usize = 3;

/// Packets of an item in one direction at a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PassKey {
    pub(crate) item: usize,
    pub(crate) back: bool,
    pub(crate) switch: usize,
}

/// Service of packets at a level of a data path.
#[derive(Debug, Clone)]
pub(crate) struct LevelDemand {
    pub(crate) level: usize,
    pub(crate) work: ServiceDemand,
}

/// Services of all packets of a phase at switches with levels.
#[derive(Debug, Default)]
pub(crate) struct LevelDemands {
    found: HashMap<PassKey, LevelDemand>,
    /// Names of switches with quantities outside of the measured range.
    outside: BTreeMap<String, BTreeSet<&'static str>>,
    /// Flows in the caches, by switch.
    caches: BTreeMap<usize, CachedFlows>,
}

impl LevelDemands {
    /// Computes the services of the items with these indices, which are there together.
    pub(crate) fn new(
        scenario: &Scenario,
        graph: &RouteGraph,
        settings: &PredictSettings,
        tables: &ScenarioTables<'_>,
        (items, there): (&[PredictedItem<'_>], &[usize]),
    ) -> Result<LevelDemands, ModelError> {
        let mut passes: BTreeMap<PassKey, MetLevel> = BTreeMap::new();
        for item in there {
            let Ok(routes) = &items[*item].routes else { continue };
            let is_one_way = matches!(items[*item].traffic.kind, TrafficKind::Udp { .. });
            for (back, route) in [false, true].into_iter().zip(routes).take(if is_one_way { 1 } else { 2 }) {
                for switch in switches(route).filter(|switch| has_levels(scenario, *switch)) {
                    let met = tables.met(switch, items[*item].traffic, back);
                    passes.insert(PassKey { item: *item, back, switch }, met);
                }
            }
        }
        let mut demands = LevelDemands::default();
        if passes.is_empty() {
            return Ok(demands);
        }
        let sources: HashMap<usize, Option<Rc<SortedGaps>>> =
            there.iter().map(|item| (*item, SortedGaps::of_source(items[*item].traffic))).collect();
        for (key, _) in passes.iter().filter(|(key, _)| cache_of(scenario, key.switch).is_some()) {
            let item = &items[key.item];
            let one_way = PingPass { reply_s: 0.0, back: key.back, is_pair: false };
            let rate = stream_rate(item, graph, settings);
            let stream = PassingStream::new(item.traffic, rate, sources[&key.item].as_ref(), one_way);
            demands.caches.entry(key.switch).or_default().add(hosts(item, key.back), *key, stream);
        }
        for _ in 0..ROUNDS {
            // Streams by switch and level.
            let mut groups: BTreeMap<(usize, usize), Vec<(PassKey, PassingStream)>> = BTreeMap::new();
            for (key, met) in &passes {
                let item = &items[key.item];
                let reply_s = demands.reply_s(scenario, graph, settings, item, *key)?;
                let other = passes.get(&PassKey { back: !key.back, ..*key });
                let is_pair = other.is_some_and(|other| other.level == met.level);
                let ping = PingPass { reply_s, back: key.back, is_pair };
                let rate = stream_rate(item, graph, settings);
                let stream = PassingStream::new(item.traffic, rate, sources[&key.item].as_ref(), ping);
                groups.entry((key.switch, met.level)).or_default().push((*key, stream));
            }
            let mut next = LevelDemands { caches: demands.caches, ..LevelDemands::default() };
            for streams in groups.values() {
                for (key, stream) in streams {
                    // Requests and replies of one ping are one stream.
                    let counts = |(other, of): &&(PassKey, PassingStream)| {
                        if other.item == key.item {
                            other.back != key.back && !of.has_both()
                        } else {
                            !other.back || !of.has_both()
                        }
                    };
                    let others: Vec<&PassingStream> = streams.iter().filter(counts).map(|(_, stream)| stream).collect();
                    next.add(scenario, &items[key.item], (*key, passes[key]), stream, &others)?;
                }
            }
            demands = next;
        }
        Ok(demands)
    }

    fn add(
        &mut self,
        scenario: &Scenario,
        item: &PredictedItem<'_>,
        (key, met): (PassKey, MetLevel),
        stream: &PassingStream,
        others: &[&PassingStream],
    ) -> Result<(), ModelError> {
        let switch = &scenario.switches[key.switch];
        let work = match met.forwarding(switch) {
            Some(law) => {
                let come_after =
                    |t: f64| stream.at_least(t) * others.iter().map(|one| one.none_within(t)).product::<f64>();
                let lengths = pass_lengths(item, key.back)?;
                let rate = stream.rate() + others.iter().map(|one| one.rate()).sum::<f64>();
                let at = PacketConditions { gap_s: 1.0 / rate, entries: met.entries as f64, bytes: lengths.mean() };
                let mut outside = law.forward(met.kind, at)?.outside;
                // Few scenarios have as many entries as measurements: that matters only where delays depend on them.
                outside.retain(|what| *what != "entries" || law.slopes.per_entry_s != 0.0);
                if !outside.is_empty() {
                    self.outside.entry(switch.name.clone()).or_default().extend(outside);
                }
                let first = cache_of(scenario, key.switch).map_or(FirstPackets::default(), |cache| {
                    let flows = self.caches.get(&key.switch);
                    let share = flows.map_or(0.0, |flows| flows.first_share(hosts(item, key.back), key, cache));
                    FirstPackets { share, more_s: cache.first_s }
                });
                ServiceDemand::of(Some(&law.service(met.kind, met.entries as f64, &lengths, come_after, first)?))
            }
            None => ServiceDemand::of(switch.timing.as_ref().and_then(|timing| timing.data.as_ref())),
        };
        self.found.insert(key, LevelDemand { level: met.level, work });
        Ok(())
    }

    /// Returns the service at a switch; none if its profile has no levels that forward.
    pub(crate) fn get(&self, key: PassKey) -> Option<&LevelDemand> {
        self.found.get(&key)
    }

    /// Returns the time from a request's arrival at a switch until its reply arrives there.
    fn reply_s(
        &self,
        scenario: &Scenario,
        graph: &RouteGraph,
        settings: &PredictSettings,
        item: &PredictedItem<'_>,
        key: PassKey,
    ) -> Result<f64, ModelError> {
        let (TrafficKind::Ping { .. }, Ok([there, back])) = (&item.traffic.kind, &item.routes) else { return Ok(0.0) };
        let bytes = item.lengths()?.mean();
        let is_it = |hop: &RouteHop| *hop == RouteHop::Switch(key.switch);
        let behind = there.iter().skip_while(|hop| !is_it(hop)).map(|hop| (hop, false));
        let before = back.iter().take_while(|hop| !is_it(hop)).map(|hop| (hop, true));
        let takes = |(hop, back): (&RouteHop, bool)| match hop {
            RouteHop::Line(line) => {
                let spec = graph.lines[*line].spec;
                spec.delay.as_secs_f64() + bytes * 8.0 / spec.rate.unwrap_or(settings.link_rate).0 as f64
            }
            RouteHop::Switch(switch) => {
                let timing = scenario.switches[*switch].timing.as_ref();
                let gate = match timing.and_then(|timing| timing.gate) {
                    Some(ReleaseGate::Tick { every, .. }) => every.as_secs_f64() / 2.0,
                    Some(ReleaseGate::Batch { timeout, stages, .. }) => timeout.as_secs_f64() / 2.0 * f64::from(stages),
                    None => 0.0,
                };
                let own = self.get(PassKey { back, switch: *switch, ..key });
                gate + match (own, timing) {
                    (Some(demand), _) => demand.work.mean_s(bytes),
                    (None, Some(timing)) => timing.data.as_ref().map_or(0.0, |data| data.mean_s(bytes)),
                    (None, None) => defaults::PACKET_TIME.as_secs_f64(),
                }
            }
            RouteHop::Output(_) => 0.0,
        };
        Ok(behind.chain(before).map(takes).sum())
    }

    /// Returns warnings about switches whose delays are extrapolated.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> {
        self.outside.iter().map(|(switch, outside)| {
            let what = outside.iter().copied().collect::<Vec<_>>().join(", ");
            Warning::new(
                "EXTRAPOLATED",
                format!("{switch}: {what} outside of `range`, in which its profile was measured"),
            )
        })
    }
}

/// Returns the switches of a route.
pub(crate) fn switches(route: &[RouteHop]) -> impl Iterator<Item = usize> {
    route.iter().filter_map(|hop| if let RouteHop::Switch(switch) = hop { Some(*switch) } else { None })
}

fn has_levels(scenario: &Scenario, switch: usize) -> bool {
    let profile = scenario.switches[switch].profile.as_ref();
    profile.is_some_and(|profile| profile.forwarding.iter().any(Option::is_some))
}

/// Returns the cache of a switch whose first packets take longer.
fn cache_of(scenario: &Scenario, switch: usize) -> Option<&FlowCacheTiming> {
    scenario.switches[switch].profile.as_ref()?.cache.as_ref().filter(|cache| cache.first_s > 0.0)
}

/// Returns the hosts from which and to which an item's packets go in one direction.
fn hosts(item: &PredictedItem<'_>, back: bool) -> [usize; 2] {
    if back { [item.traffic.to, item.traffic.from] } else { [item.traffic.from, item.traffic.to] }
}

/// Returns the law of an item's lengths in one direction.
fn pass_lengths(item: &PredictedItem<'_>, back: bool) -> Result<Law, ModelError> {
    match item.traffic.kind {
        TrafficKind::Tcp { .. } if back => Law::constant(tcp::ACKNOWLEDGEMENT_BYTES),
        _ => item.lengths(),
    }
}

/// Returns the packets a second of an item. TCP sends as fast as the slowest line of its route.
fn stream_rate(item: &PredictedItem<'_>, graph: &RouteGraph, settings: &PredictSettings) -> f64 {
    let (TrafficKind::Tcp { .. }, Ok([there, _])) = (&item.traffic.kind, &item.routes) else { return item.rate };
    let rates = there.iter().filter_map(|hop| match hop {
        RouteHop::Line(line) => Some(graph.lines[*line].spec.rate.unwrap_or(settings.link_rate).0),
        _ => None,
    });
    rates.min().unwrap_or(settings.link_rate.0) as f64 / 8.0 / tcp::FRAME_BYTES
}

/// Returns warnings about parameters of profiles that have no effect on a prediction.
pub(crate) fn unused(scenario: &Scenario) -> Vec<Warning> {
    let used = weir_scenario::ProfileUse::Formulas;
    let one = |text: String| Warning::new("PROFILE_UNUSED", text);
    let mut found: Vec<Warning> = weir_scenario::unused_parameters(scenario, used).into_iter().map(one).collect();
    let asks = |kind: &TrafficKind| matches!(kind, TrafficKind::Udp { new_flows, .. } if *new_flows > 0.0);
    let several = |profile: &weir_scenario::Profile| profile.forwarding.len() > 1;
    let names: Vec<&str> = scenario
        .switches
        .iter()
        .filter(|switch| switch.profile.as_deref().is_some_and(several))
        .map(|switch| switch.name.as_str())
        .collect();
    if !names.is_empty() && scenario.traffic.iter().any(|item| asks(&item.kind)) {
        let text = format!(
            "{}: packets that ask the controller are predicted in the level of others, not in the last",
            names.join(", ")
        );
        found.push(Warning::new("LAST_LEVEL", text));
    }
    found
}
