//! Hops of ways: what each switch does with the packets of an intent.
//!
//! Every hop is for packets from one input port, so a way may pass a switch more than once.
//!
//! A protected way has a second one that shares no link with it. The first switch sends packets over the second way as
//! soon as its own link of the first way is down. A link further along fails unseen by the first switch. So each switch
//! before such a link sends packets back to where they came from, the switches before it pass them back to the first
//! switch, and that one sends them over the second way (crankback; van Adrichem et al., Fast Recovery in
//! Software-Defined Networks, 2014). Packets come to no place twice: places of the first way are passed in order, then
//! places of the way back, then those of the second way.
use super::way::{Pass, Way};
use crate::map::SwitchPort;
use crate::tables::{Hop, HopKind, HopOutput, HopPlace};
use std::collections::{BTreeMap, BTreeSet};
use weir_openflow::model::{Action, PortNo};
use weir_packet::Field;
use weir_packet::field::{VLAN_PRESENT, eth_type};

/// Hops by their places.
pub(super) type Hops = BTreeMap<HopPlace, Hop>;

/// Returns the hops of ways that belong to the same packets. Where ways part, packets leave by all outputs.
pub(super) fn plain(ways: &[Way]) -> Hops {
    let mut hops = Hops::new();
    for pass in ways.iter().flat_map(Way::passes) {
        let hop = hops.entry(place(pass.at)).or_insert(Hop { kind: HopKind::All, outputs: Vec::new() });
        let output = output(pass);
        if !hop.outputs.contains(&output) {
            hop.outputs.push(output);
        }
    }
    hops
}

/// Returns the hops of a way and of a second one, with the same ends, that takes over when a link of the first fails.
/// No link is in both ways, and none is in the first one in both directions.
pub(super) fn protected(first: &Way, second: &Way) -> Hops {
    let mut hops = plain(std::slice::from_ref(second));
    hops.extend(plain(std::slice::from_ref(first)));
    let Some(start) = second.passes().next() else { return hops };
    let passes: Vec<Pass> = first.passes().collect();
    for (index, pass) in passes.iter().enumerate().filter(|(_, pass)| pass.next.is_some()) {
        let before = index.checked_sub(1).and_then(|before| passes.get(before));
        let sent_back = SwitchPort::new(pass.at.dpid, pass.out);
        let (otherwise, back) = match before {
            None => (output(start), output(start)),
            Some(before) => {
                let next = Some(before.at.dpid);
                let back = HopOutput { watch: Some(pass.at.port), ..HopOutput::new(PortNo::IN_PORT, next) };
                (back, HopOutput::new(pass.at.port, next))
            }
        };
        let outputs = vec![output(*pass), otherwise];
        hops.insert(place(pass.at), Hop { kind: HopKind::FastFailover, outputs });
        hops.insert(place(sent_back), Hop { kind: HopKind::All, outputs: vec![back] });
    }
    hops
}

/// Splits the hops of packets that are marked with a VLAN id between the switches of their ends: into hops where they
/// come in, which push the tag, and the others, which know packets by the tag and pop it where they leave.
pub(super) fn labelled(hops: Hops, ingress: &BTreeSet<SwitchPort>, label: u16) -> (Hops, Hops) {
    let push = [
        Action::PushVlan(eth_type::VLAN),
        Action::SetField { field: Field::VlanVid, value: u128::from(VLAN_PRESENT | label) },
    ];
    let (mut first, mut further) = (Hops::new(), Hops::new());
    for (place, mut hop) in hops {
        let at = place.in_port.map(|port| SwitchPort::new(place.dpid, port));
        let is_ingress = at.is_some_and(|at| ingress.contains(&at));
        for output in &mut hop.outputs {
            match (is_ingress, output.next) {
                (true, Some(_)) => output.actions = push.to_vec(),
                (false, None) => output.actions = vec![Action::PopVlan],
                _ => {}
            }
        }
        if hop.kind == HopKind::All {
            // Outputs without actions come first, so that they send the packet as it came. The others have the same
            // actions; those of the first stay in effect.
            hop.outputs.sort_by_key(|output| !output.actions.is_empty());
            let changed = hop.outputs.iter_mut().filter(|output| !output.actions.is_empty());
            changed.skip(1).for_each(|output| output.actions.clear());
        }
        let side = if is_ingress { &mut first } else { &mut further };
        side.insert(place, hop);
    }
    (first, further)
}

/// Returns the place of packets that come by a port.
pub(super) const fn place(at: SwitchPort) -> HopPlace {
    HopPlace { dpid: at.dpid, in_port: Some(at.port) }
}

/// Returns the output of a pass. A packet that leaves by the port by which it came needs the reserved port.
fn output(pass: Pass) -> HopOutput {
    let port = if pass.out == pass.at.port { PortNo::IN_PORT } else { pass.out };
    HopOutput::new(port, pass.next)
}
