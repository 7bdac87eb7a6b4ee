//! Packets of an intent by the ways that they take, and the bandwidth that they need on them.
use super::ends::Ends;
use super::find::FoundWays;
use super::lanes::{Demand, Lane, lanes};
use super::spec::IntentKind;
use super::traffic::mirrored;
use super::wanted::Wanted;
use super::way::Way;
use std::collections::BTreeSet;
use weir_openflow::model::{Match, MatchField};
use weir_packet::Field;

/// Packets that take the same ways.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Class {
    pub(super) matching: Match,
    pub(super) ways: Vec<Way>,
    pub(super) spare: Option<Way>,
    /// True if switches between the ends can tell the packets only by a label.
    pub(super) labelled: bool,
}

/// Returns the bandwidth to reserve. A way and the one kept ready for it never carry packets at the same time; where
/// ways of one source part, each packet passes their common beginning once.
pub(super) fn demand(wanted: &Wanted, found: &FoundWays) -> Demand {
    let mut demand = Demand::new();
    if wanted.bandwidth == 0 {
        return demand;
    }
    let groups: Vec<Vec<&Way>> = match wanted.kind {
        IntentKind::OneToMany => vec![found.ways.iter().collect()],
        _ => {
            let spare = |index: usize| found.spare.get(index);
            found.ways.iter().enumerate().map(|(index, way)| [way].into_iter().chain(spare(index)).collect()).collect()
        }
    };
    for group in groups {
        let used: BTreeSet<Lane> = group.into_iter().flat_map(lanes).collect();
        for lane in used {
            let sum = demand.entry(lane).or_default();
            *sum = sum.saturating_add(wanted.bandwidth);
        }
    }
    demand
}

/// Returns the packets of an intent, apart by what they are told by.
pub(super) fn classes(wanted: &Wanted, ends: &Ends, found: &FoundWays) -> Vec<Class> {
    let destination = match wanted.kind {
        IntentKind::OneToMany => None,
        _ => ends.to.first().and_then(|end| end.mac),
    };
    let class = |traffic: &Match, from: Option<weir_packet::MacAddr>, to, ways: Vec<Way>, spare: Option<&Way>| {
        let hosts = [(Field::EthSrc, from), (Field::EthDst, to)];
        let hosts = hosts.into_iter().filter_map(|(field, mac): (Field, Option<weir_packet::MacAddr>)| {
            Some(MatchField::Known { field, value: mac?.to_bits().into(), mask: None })
        });
        let matching = Match { fields: hosts.chain(traffic.fields.iter().cloned()).collect() };
        let labelled = from.is_none() && ways.iter().any(|way| !way.links.is_empty());
        Class { matching, ways, spare: spare.cloned(), labelled }
    };
    let source = ends.from.first().and_then(|end| end.mac);
    let spare = |index: usize| found.spare.get(index);
    let way = |index: usize| found.ways.get(index).cloned().into_iter().collect::<Vec<_>>();
    match wanted.kind {
        IntentKind::HostToHost => {
            let back = class(&mirrored(&wanted.traffic), destination, source, way(1), spare(1));
            vec![class(&wanted.traffic, source, destination, way(0), spare(0)), back]
        }
        IntentKind::PointToPoint => vec![class(&wanted.traffic, source, destination, way(0), spare(0))],
        IntentKind::OneToMany => vec![class(&wanted.traffic, source, None, found.ways.clone(), None)],
        IntentKind::ManyToOne => {
            let mut ports = Vec::new();
            let mut classes = Vec::new();
            for (end, way) in ends.from.iter().zip(&found.ways) {
                let has_port = ends.from.iter().any(|other| other.mac.is_none() && other.at == end.at);
                match end.mac {
                    None => ports.push(way.clone()),
                    // All packets of the port are meant already.
                    Some(_) if has_port => {}
                    mac => classes.push(class(&wanted.traffic, mac, destination, vec![way.clone()], None)),
                }
            }
            if !ports.is_empty() {
                classes.push(class(&wanted.traffic, None, destination, ports, None));
            }
            classes
        }
    }
}
