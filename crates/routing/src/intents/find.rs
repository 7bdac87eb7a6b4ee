//! Finds the ways of an intent that keep to its constraints.
use super::ends::Ends;
use super::graph::Toward;
use super::lanes::Lane;
use super::plan::PlanInput;
use super::search::Links;
use super::spec::IntentKind;
use super::wanted::Wanted;
use super::way::{DirectedLink, Way};
use crate::map::SwitchPort;
use std::collections::BTreeSet;

/// Ways of an intent.
pub(super) struct FoundWays {
    /// Ways in use: for each pair of ends, and for two hosts in both directions.
    pub(super) ways: Vec<Way>,
    /// Ways kept ready, as `ways`.
    pub(super) spare: Vec<Way>,
    /// Condition that no way was found for.
    pub(super) lacks: Option<String>,
}

/// Search for the ways of an intent.
pub(super) struct WaySearch<'a> {
    pub(super) input: &'a PlanInput<'a>,
    pub(super) wanted: &'a Wanted,
    pub(super) ends: &'a Ends,
    /// Links not to use.
    pub(super) excluded: BTreeSet<DirectedLink>,
    /// True if links need bandwidth left; false to find out what there is not enough of.
    pub(super) with_bandwidth: bool,
}

impl WaySearch<'_> {
    /// Returns the ways, or why there are none.
    pub(super) fn find(&self) -> Result<FoundWays, String> {
        self.check_waypoints()?;
        self.ways().map_err(|[from, to]| self.why_none(from, to))
    }

    fn check_waypoints(&self) -> Result<(), String> {
        let gone = self.wanted.waypoints.iter().find(|dpid| !self.input.map.switches().contains_key(dpid));
        gone.map_or(Ok(()), |dpid| Err(format!("waypoint: switch {dpid:x} is not connected")))
    }

    /// Returns the ways, or two switches between which there is none.
    fn ways(&self) -> Result<FoundWays, [u64; 2]> {
        match self.wanted.kind {
            IntentKind::ManyToOne => self.tree(Toward::Root),
            IntentKind::OneToMany => self.tree(Toward::Leaves),
            IntentKind::HostToHost | IntentKind::PointToPoint => self.pair(),
        }
    }

    /// Returns true if the intent has one way between two ends, or one in each direction, that passes nothing in
    /// particular.
    pub(super) fn has_one_way(&self) -> bool {
        let is_pair = matches!(self.wanted.kind, IntentKind::HostToHost | IntentKind::PointToPoint);
        is_pair && !self.wanted.protected && self.wanted.waypoints.is_empty()
    }

    /// Returns true if the intent may use all links.
    fn may_use_all(&self) -> bool {
        let avoids = !self.wanted.avoided_ports.is_empty() || !self.wanted.avoided_switches.is_empty();
        !avoids && self.excluded.is_empty() && (self.wanted.bandwidth == 0 || !self.with_bandwidth)
    }

    /// Returns true if the intent may use a link in this direction.
    pub(super) fn may_use(&self, directed: &DirectedLink) -> bool {
        let [out, into] = *directed;
        let avoided =
            |at: SwitchPort| self.wanted.avoided_ports.contains(&at) || self.wanted.avoided_switches.contains(&at.dpid);
        let excluded = || {
            let back = self.wanted.kind == IntentKind::HostToHost && self.excluded.contains(&[into, out]);
            self.excluded.contains(directed) || back
        };
        !avoided(out) && !avoided(into) && !excluded() && self.has_bandwidth(out, into)
    }

    fn has_bandwidth(&self, out: SwitchPort, into: SwitchPort) -> bool {
        let asked = self.wanted.bandwidth;
        let has = |from| self.input.lacking(Lane::From(from), asked).is_none();
        let back = || self.wanted.kind != IntentKind::HostToHost || has(into);
        asked == 0 || !self.with_bandwidth || has(out) && back()
    }

    /// Returns the links of a walk past switches in order, without the links in `used` and none twice; otherwise the
    /// switches between which there is no way. The links are added to `used`.
    fn walk(&self, stops: &[u64], used: &mut BTreeSet<DirectedLink>) -> Result<Vec<DirectedLink>, [u64; 2]> {
        let mut walk = Vec::new();
        for (from, to) in stops.iter().zip(stops.iter().skip(1)) {
            let allowed = |directed: &DirectedLink| !used.contains(directed) && self.may_use(directed);
            let all = used.is_empty() && self.may_use_all();
            let links = Links { graph: self.input.graph, allowed: &allowed, all };
            let part = links.shortest(*from, *to).ok_or([*from, *to])?;
            used.extend(part.iter().copied());
            walk.extend(part);
        }
        Ok(walk)
    }

    /// Returns ways between two ends: one, or a protected pair; for hosts in both directions.
    fn pair(&self) -> Result<FoundWays, [u64; 2]> {
        let ([from, ..], [to, ..]) = (self.ends.from.as_slice(), self.ends.to.as_slice()) else {
            return Ok(FoundWays { ways: Vec::new(), spare: Vec::new(), lacks: None });
        };
        let stops = [&[from.at.dpid], self.wanted.waypoints.as_slice(), &[to.at.dpid]].concat();
        let way = |links| Way { from: from.at, links, to: to.at };
        let pair = if self.wanted.protected && self.wanted.waypoints.is_empty() {
            let allowed = |directed: &DirectedLink| self.may_use(directed);
            let links = Links { graph: self.input.graph, allowed: &allowed, all: self.may_use_all() };
            links.pair(from.at.dpid, to.at.dpid)
        } else {
            None
        };
        let (first, mut spare, mut lacks) = match pair {
            Some([first, second]) => (way(first), Some(way(second)), None),
            None => (way(self.walk(&stops, &mut BTreeSet::new())?), None, None),
        };
        if self.wanted.protected && spare.is_none() && !first.links.is_empty() {
            match self.second(&first, &stops) {
                Ok(links) => spare = Some(way(links)),
                Err(reason) => lacks = Some(format!("protection: {reason}")),
            }
        }
        let spare = spare.map(|spare| self.directions(spare)).unwrap_or_default();
        Ok(FoundWays { ways: self.directions(first), spare, lacks })
    }

    /// Returns a way, and for two hosts the way back, too.
    pub(super) fn directions(&self, way: Way) -> Vec<Way> {
        match self.wanted.kind {
            IntentKind::HostToHost => {
                let back = way.reversed();
                vec![way, back]
            }
            _ => vec![way],
        }
    }

    /// Returns the links of a second way that has no link in common with the first.
    fn second(&self, first: &Way, stops: &[u64]) -> Result<Vec<DirectedLink>, String> {
        if first.undirected().len() < first.links.len() {
            return Err("the way past the waypoints passes a link in both directions".to_owned());
        }
        let mut used = first.links.iter().flat_map(|[out, into]| [[*out, *into], [*into, *out]]).collect();
        self.walk(stops, &mut used).map_err(|_| "there is no second way without a link in common".to_owned())
    }

    /// Returns ways between one end, the root, and several others: a tree that ends at the waypoint next to them, and
    /// one walk past the waypoints to the root.
    fn tree(&self, toward: Toward) -> Result<FoundWays, [u64; 2]> {
        let (roots, leaves) = match toward {
            Toward::Root => (&self.ends.to, &self.ends.from),
            Toward::Leaves => (&self.ends.from, &self.ends.to),
        };
        let Some(root) = roots.first() else {
            return Ok(FoundWays { ways: Vec::new(), spare: Vec::new(), lacks: None });
        };
        let waypoints = self.wanted.waypoints.as_slice();
        let stops = match toward {
            Toward::Root => [waypoints, &[root.at.dpid]].concat(),
            Toward::Leaves => [&[root.at.dpid], waypoints].concat(),
        };
        let mut used = BTreeSet::new();
        let trunk = self.walk(&stops, &mut used)?;
        let inner = if toward == Toward::Root { stops.first() } else { stops.last() };
        let inner = inner.copied().unwrap_or(root.at.dpid);
        let allowed = |directed: &DirectedLink| !used.contains(directed) && self.may_use(directed);
        let all = used.is_empty() && self.may_use_all();
        let links = Links { graph: self.input.graph, allowed: &allowed, all };
        let tree = links.tree(inner, toward);
        let way = |leaf: &super::ends::End| {
            let branch = tree.as_ref().and_then(|tree| tree.links(leaf.at.dpid));
            match toward {
                Toward::Root => {
                    let links = [branch.ok_or([leaf.at.dpid, inner])?, trunk.clone()].concat();
                    Ok(Way { from: leaf.at, links, to: root.at })
                }
                Toward::Leaves => {
                    let links = [trunk.clone(), branch.ok_or([inner, leaf.at.dpid])?].concat();
                    Ok(Way { from: root.at, links, to: leaf.at })
                }
            }
        };
        let ways = leaves.iter().map(way).collect::<Result<Vec<_>, [u64; 2]>>()?;
        Ok(FoundWays { ways, spare: Vec::new(), lacks: None })
    }

    /// Returns why there is no way between two switches.
    fn why_none(&self, from: u64, to: u64) -> String {
        let links = Links { graph: self.input.graph, allowed: &|_| true, all: true };
        if links.shortest(from, to).is_none() {
            return format!("no way from switch {from:x} to switch {to:x}");
        }
        let free = WaySearch { with_bandwidth: false, excluded: BTreeSet::new(), ..*self };
        let Ok(found) = free.ways() else {
            return format!("no way from switch {from:x} to switch {to:x} that keeps to waypoints and `avoid`");
        };
        let mut lanes = found.ways.iter().flat_map(|way| &way.links).map(|link| Lane::From(link[0]));
        let lacking = lanes.find_map(|lane| self.input.lacking(lane, self.wanted.bandwidth));
        lacking.unwrap_or_else(|| format!("no way from switch {from:x} to switch {to:x} with enough left"))
    }
}
