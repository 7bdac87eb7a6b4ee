//! Routes of a plan: those that carry its packets, and those that catch confirmation packets at the last switches.
use super::classes::Class;
use super::hops::{Hops, labelled, place, plain, protected};
use super::plan::Plan;
use super::probe::marked;
use super::way::Way;
use crate::map::SwitchPort;
use crate::tables::{Hop, HopKind, HopOutput, Route};
use std::collections::BTreeSet;
use weir_openflow::model::{Match, PortNo};
use weir_packet::Field;
use weir_packet::field::VLAN_PRESENT;

/// Routes of a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Layout {
    /// Routes that take the packets where they come in; whole ones for packets without a label.
    pub(super) mains: Vec<Route>,
    /// Routes of packets with a label, which are there before packets get it.
    pub(super) carriers: Vec<Route>,
    /// Routes that catch confirmation packets.
    pub(super) captures: Vec<Route>,
    pub(super) probes: Vec<ProbePlan>,
    /// Why there is no confirmation packet for some of the packets.
    pub(super) unproven: Option<String>,
}

/// A confirmation packet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProbePlan {
    /// Port by which it comes in.
    pub(super) at: SwitchPort,
    /// Port by which it reaches the switch that catches it.
    pub(super) end: SwitchPort,
    /// Fields that it has.
    pub(super) matching: Match,
}

impl Layout {
    /// Returns the routes of a plan. `priority` is that of its entries, `label` the VLAN id of packets that need one.
    pub(super) fn of(plan: &Plan, priority: u16, label: u16) -> Layout {
        let mut layout = Layout::default();
        for class in &plan.classes {
            layout.add(class, priority, label);
        }
        layout
    }

    fn add(&mut self, class: &Class, priority: u16, label: u16) {
        let hops = match (class.ways.as_slice(), &class.spare) {
            ([first], Some(second)) => protected(first, second),
            (ways, _) => plain(ways),
        };
        let (first, further) = if class.labelled {
            labelled(hops, &class.ways.iter().map(|way| way.from).collect(), label)
        } else {
            (hops, Hops::new())
        };
        self.add_probes(class, &[&first, &further], priority + 1, label);
        self.mains.push(route(priority, class.matching.clone(), first));
        if class.labelled {
            self.carriers.push(route(priority, tag(label), further));
        }
    }

    fn add_probes(&mut self, class: &Class, hops: &[&Hops; 2], priority: u16, label: u16) {
        let Some(matching) = marked(&class.matching) else {
            self.unproven = Some("confirmation: no value of the traffic is free to mark packets".to_owned());
            return;
        };
        let mut tagged = tag(label);
        tagged.fields.extend(matching.fields.iter().cloned());
        let (mut ends, mut tagged_ends) = (BTreeSet::new(), BTreeSet::new());
        let is_tagged = |way: &Way| class.labelled && !way.links.is_empty();
        for way in &class.ways {
            let end = way.last().at;
            let ends = if is_tagged(way) { &mut tagged_ends } else { &mut ends };
            ends.insert(end);
            self.probes.push(ProbePlan { at: way.from, end, matching: matching.clone() });
        }
        if let Some(spare) = &class.spare
            && let Some([_, second]) = spare.links.first()
        {
            // Packets go over the second way only when the first has failed, so this one begins behind the first
            // switch.
            let (end, matching) = (spare.last().at, if class.labelled { &tagged } else { &matching });
            let ends = if class.labelled { &mut tagged_ends } else { &mut ends };
            ends.insert(end);
            self.probes.push(ProbePlan { at: *second, end, matching: matching.clone() });
        }
        for (matching, ends) in [(matching, ends), (tagged, tagged_ends)] {
            if !ends.is_empty() {
                let there = |at: SwitchPort| hops.iter().find_map(|hops| hops.get(&place(at)));
                let hops = ends.into_iter().map(|at| (place(at), capture(there(at)))).collect();
                self.captures.push(route(priority, matching, hops));
            }
        }
    }
}

/// Returns the hop that catches packets at the end of a way. Those that other ways take further go on, too.
fn capture(hop: Option<&Hop>) -> Hop {
    let further = hop.into_iter().flat_map(|hop| &hop.outputs).filter(|output| output.next.is_some());
    let outputs = std::iter::once(HopOutput::new(PortNo::CONTROLLER, None)).chain(further.cloned());
    Hop { kind: HopKind::All, outputs: outputs.collect() }
}

fn route(priority: u16, matching: Match, hops: Hops) -> Route {
    Route { priority, matching, idle_timeout: 0, hops }
}

/// Returns the match of packets with a label.
fn tag(label: u16) -> Match {
    Match::any().with(Field::VlanVid, VLAN_PRESENT | label)
}
