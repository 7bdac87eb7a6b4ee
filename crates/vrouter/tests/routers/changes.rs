//! Drawn changes of running routers: no packet that old and new configuration treat alike is treated otherwise
//! meanwhile.
use crate::drawn::{DrawnPacket, filter, prefix, router};
use crate::switch::PlainSwitch;
use fastrand::Rng;
use proptest::prelude::*;
use weir_openflow::model::Body;
use weir_vrouter::change::{EntryChanges, by_key};
use weir_vrouter::config::{RouteTarget, StaticRoute, VirtualRouterConfig};
use weir_vrouter::entries::{Neighbours, RouterPlacement, entries};
use weir_vrouter::forwarding::decide;

/// Changes one thing of a configuration, which stays right.
fn change(random: &mut Rng, config: &mut VirtualRouterConfig) {
    let former = config.clone();
    match random.u8(..6) {
        0 if !config.filters.is_empty() => drop(config.filters.remove(random.usize(..config.filters.len()))),
        1 => config.filters.insert(random.usize(..=config.filters.len()), filter(random, &former.ports)),
        2 if !config.routes.is_empty() => drop(config.routes.remove(random.usize(..config.routes.len()))),
        3 => {
            let is_ipv4 = random.bool();
            let hops: Vec<_> = former.ports.iter().flat_map(|port| &port.neighbours).collect();
            let hop = random.choice(hops).map_or(RouteTarget::Blackhole, |hop| RouteTarget::NextHop(hop.address));
            config.routes.push(StaticRoute { prefix: prefix(random, is_ipv4), via: hop });
        }
        4 if !config.translations.is_empty() => {
            config.translations.remove(random.usize(..config.translations.len()));
        }
        _ => {
            let port = random.choice(&mut config.ports).unwrap();
            port.neighbours.pop();
        }
    }
    if config.check().is_err() {
        *config = former;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    #[test]
    fn packets_in_profile_are_not_disturbed(seed: u64) {
        let mut random = Rng::with_seed(seed);
        let old = router(&mut random);
        let mut new = old.clone();
        (0..random.u8(1..5)).for_each(|_| change(&mut random, &mut new));
        let packets: Vec<DrawnPacket> = (0..40).map(|_| DrawnPacket::draw(&mut random, &old)).collect();
        for placement in [RouterPlacement::whole_switch(), RouterPlacement::confined(7, 0, 1)] {
            let of = |config| entries(config, &Neighbours::new(), &placement).unwrap();
            let (before, after) = (of(&old), of(&new));
            let mut switch = PlainSwitch::with(&before);
            let mut afterwards = PlainSwitch::with(&after);
            let changes = EntryChanges::between(&by_key(before), &by_key(after));
            let send = |switch: &mut PlainSwitch, packet: &DrawnPacket| {
                switch.receive(packet.fields.input.number.0, &packet.frame(packet.fields.input.vlan))
            };
            let mut steady = Vec::new();
            for packet in &packets {
                let outcomes = [send(&mut switch, packet), send(&mut afterwards, packet)];
                if decide(&old, &packet.fields) == decide(&new, &packet.fields) && outcomes[0].left == outcomes[1].left {
                    steady.push((packet, outcomes[0].left.clone()));
                }
            }
            let added = changes.added.iter().map(|entry| entry.add());
            for flow_mod in added.chain(changes.deleted.iter().map(|entry| entry.delete())) {
                prop_assert_eq!(switch.tell(Body::FlowMod(flow_mod.clone())), vec![]);
                for (packet, left) in &steady {
                    let got = send(&mut switch, packet).left;
                    prop_assert_eq!(&got, left, "{:?}\nold {:#?}\nnew {:#?}\n{:?}", flow_mod, old, new, packet);
                }
            }
        }
    }
}
