//! Plans of intents: the ways that they take, with what is reserved on them, and the packets that take them.
use super::bounded::BoundedLanes;
use super::claims::Claims;
use super::classes::{Class, classes, demand};
use super::config::IntentConfig;
use super::delay_ways::DelayWays;
use super::ends::{Ends, ends};
use super::find::{FoundWays, WaySearch};
use super::graph::{KeptGraph, nanos};
use super::intent::{Intent, IntentNo};
use super::lanes::{Demand, Reservations};
use super::wanted::Wanted;
use super::way::{DirectedLink, Way, link};
use crate::map::{NetworkMap, SwitchPort};
use std::collections::{BTreeMap, BTreeSet};
use weir_openflow::model::Match;

/// Most searches for one plan: each leaves out links that had not enough of something in the one before.
const MOST_SEARCHES: usize = 16;

/// Network and conditions for which a plan is made.
pub(super) struct PlanInput<'a> {
    pub(super) map: &'a NetworkMap,
    pub(super) config: &'a IntentConfig,
    /// Bandwidth that the other intents have reserved.
    pub(super) reserved: &'a Reservations,
    /// Measured load by sending port, in bit/s.
    pub(super) loads: &'a BTreeMap<SwitchPort, f64>,
    /// Packets that other intents have claimed.
    pub(super) claims: &'a Claims,
    /// Number of this intent.
    pub(super) own: IntentNo,
    /// All intents.
    pub(super) intents: &'a BTreeMap<IntentNo, Intent>,
    /// Lanes of intents with a bound of their delay, which has to hold with this one, too.
    pub(super) bounded: &'a BoundedLanes,
    /// Links of the map.
    pub(super) graph: &'a KeptGraph,
}

/// How an intent is carried out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) ends: Ends,
    /// Ways in use.
    pub(super) ways: Vec<Way>,
    /// Ways kept ready.
    pub(super) spare: Vec<Way>,
    pub(super) classes: Vec<Class>,
    /// Bandwidth to reserve.
    pub(super) demand: Demand,
    /// Condition that is not met.
    pub(super) lacks: Option<String>,
    /// Delay of the worst way in seconds, if a bound was asked for.
    pub(super) delay_s: Option<f64>,
}

impl PlanInput<'_> {
    /// Makes a plan. `before` is where the ends were.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn plan(&self, wanted: &Wanted, before: Option<&Ends>) -> Result<Plan, String> {
        let ends = ends(self.map, wanted, before)?;
        let mut search =
            WaySearch { input: self, wanted, ends: &ends, excluded: BTreeSet::new(), with_bandwidth: true };
        let mut first_reason = None;
        for _ in 0..MOST_SEARCHES {
            let found = match search.find() {
                Ok(found) => found,
                Err(reason) => return Err(first_reason.unwrap_or(reason)),
            };
            let demand = demand(wanted, &found);
            match self.check(wanted, &found, &demand) {
                Ok(delay_s) => return self.finished(wanted, &ends, found, demand, delay_s),
                Err(shortage) if shortage.is_delay && search.has_one_way() => {
                    return self.plan_by_delay(&search, shortage.reason);
                }
                Err(shortage) => {
                    let reason = first_reason.get_or_insert(shortage.reason);
                    if shortage.links.is_empty() {
                        return Err(reason.clone());
                    }
                    search.excluded.extend(shortage.links);
                }
            }
        }
        Err(first_reason.unwrap_or_default())
    }

    /// Makes a plan with one of the ways of least expected delay, because the shortest way exceeds the bound of delay
    /// for the reason given.
    fn plan_by_delay(&self, search: &WaySearch<'_>, reason: String) -> Result<Plan, String> {
        let (wanted, ends) = (search.wanted, search.ends);
        let mut least = None;
        for found in DelayWays::of(search).found() {
            let demand = demand(wanted, &found);
            match self.check(wanted, &found, &demand) {
                Ok(delay_s) => return self.finished(wanted, ends, found, demand, delay_s),
                Err(shortage) => _ = least.get_or_insert(shortage.reason),
            }
        }
        Err(least.unwrap_or(reason))
    }

    fn finished(
        &self,
        wanted: &Wanted,
        ends: &Ends,
        found: FoundWays,
        demand: Demand,
        delay_s: Option<f64>,
    ) -> Result<Plan, String> {
        let classes = classes(wanted, ends, &found);
        for class in &classes {
            for way in &class.ways {
                let other = self.claims.other(way.from, wanted.priority(), self.own, &class.matching);
                if let Some(other) = other {
                    return Err(format!(
                        "traffic: intent `{}` has packets in common at port {} and equal priority",
                        self.key_of(other),
                        way.from
                    ));
                }
            }
        }
        let FoundWays { ways, spare, lacks } = found;
        Ok(Plan { ends: ends.clone(), ways, spare, classes, demand, lacks, delay_s })
    }

    /// Returns the key of an intent.
    pub(super) fn key_of(&self, number: IntentNo) -> &str {
        self.intents.get(&number).map_or("", |intent| intent.spec.key.as_str())
    }
}

impl Plan {
    /// Returns true if the ends are where they were and all ways can still carry packets.
    pub(super) fn is_intact(&self, map: &NetworkMap, wanted: &Wanted) -> bool {
        let there = ends(map, wanted, Some(&self.ends)).is_ok_and(|ends| ends == self.ends);
        there && self.ways.iter().chain(&self.spare).all(|way| way.is_intact(map))
    }

    /// Returns the length of all ways in use, in nanoseconds: delays of links and switches.
    pub(super) fn length(&self, map: &NetworkMap, config: &IntentConfig) -> u64 {
        let hop = nanos(config.switch_delay);
        let of = |[out, _]: &DirectedLink| {
            let delay = link(map, *out).and_then(|link| link.delay).unwrap_or(config.assumed_link_delay);
            nanos(delay).saturating_add(hop)
        };
        self.ways.iter().flat_map(|way| &way.links).map(of).fold(0, u64::saturating_add)
    }

    /// Returns the number of links of all ways in use.
    pub(super) fn n_links(&self) -> usize {
        self.ways.iter().map(|way| way.links.len()).sum()
    }

    /// Returns the ports at which packets of a class come in.
    pub(super) fn entrances(&self) -> impl Iterator<Item = (SwitchPort, &Match)> + '_ {
        self.classes.iter().flat_map(|class| class.ways.iter().map(move |way| (way.from, &class.matching)))
    }
}
