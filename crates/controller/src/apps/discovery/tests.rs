//! Tests the delays of links, with times that the tests choose.
use super::*;
use crate::apps::learning::LearningConfig;
use crate::outbox::OutboxItem;
use std::collections::BTreeMap;
use weir_openflow::model::{Action, Body, Bytes, Match, PacketIn, PacketInReason, PortDesc, PortNo, TableId};
use weir_packet::{Field, MacAddr};

const VERSION: Version = Version::V13;

fn at_us(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

struct Bed {
    discovery: LinkDiscovery,
    out: ControllerOutbox,
}

impl Bed {
    /// Returns a discovery at switches 1 and 2, each with a port 1.
    fn new() -> Bed {
        let learning = LearningSwitches::new(LearningConfig::default());
        let discoveries = LinkDiscoveries::new(DiscoveryConfig::default(), &learning);
        let mut bed = Bed { discovery: discoveries.make(0, AppWaker::default()), out: ControllerOutbox::default() };
        for dpid in [1, 2] {
            let ports = vec![PortDesc::new(PortNo(1), MacAddr([2; 6]), "p1")];
            let features = FeaturesReply { datapath_id: dpid, ports, ..FeaturesReply::default() };
            bed.discovery.handle_switch_up(at_us(0), ConnectionId(dpid), VERSION, &features, &mut bed.out);
        }
        bed
    }

    /// Lets the discovery send. Returns the frames, by switch and port.
    fn frames(&mut self, now: Instant) -> BTreeMap<(ConnectionId, PortNo), Vec<u8>> {
        self.out = ControllerOutbox::default();
        self.discovery.handle_wake(now, &mut self.out);
        let mut frames = BTreeMap::new();
        self.out.for_each(|item| {
            if let OutboxItem::Message(switch, Message { body: Body::PacketOut(packet), .. }) = item {
                let Action::Output { port, .. } = packet.actions[0] else { panic!("{packet:?}") };
                frames.insert((switch, port), packet.data.0.clone());
            }
        });
        frames
    }

    fn receive(&mut self, now: Instant, switch: u64, port: PortNo, data: Vec<u8>) {
        let body = Body::PacketIn(PacketIn {
            buffer_id: None,
            total_len: 60,
            reason: PacketInReason::Action,
            table: TableId(0),
            cookie: 0,
            matching: Match::any().with(Field::InPort, port.0),
            data: Bytes(data),
        });
        let mut bytes = Vec::new();
        weir_openflow::encode(&Message { xid: 0, body }, VERSION, &mut bytes).unwrap();
        let view = PacketInView::read(&bytes).unwrap().expect("a packet-in");
        let decision = self.discovery.handle_packet_in(now, ConnectionId(switch), &view, &mut self.out);
        assert_eq!(decision, PacketDecision::Taken);
    }

    fn delay_us(&self) -> Option<f64> {
        let links = self.discovery.links(at_us(0)).expect("they are looked for");
        links.first().and_then(|link| link.delay_us)
    }
}

#[test]
fn the_ways_to_and_from_the_switches_are_no_part_of_a_links_delay() {
    let mut bed = Bed::new();
    // The usual interval.
    let round = 5_000_000;
    for (number, (late_us, expected)) in [(0, 1130.0), (0, 500.0), (70, 500.0)].into_iter().enumerate() {
        let us = round * (1 + number as u64);
        let frames = bed.frames(at_us(us));
        assert_eq!(frames.len(), 4, "{frames:?}");
        // 500 us on the link, after 130 us to the first switch and before 500 us from the second.
        let crossed = frames[&(ConnectionId(1), PortNo(1))].clone();
        bed.receive(at_us(us + 1130 + late_us), 2, PortNo(1), crossed);
        assert_eq!(bed.delay_us(), Some(expected), "{number}");
        for (switch, there_and_back_us) in [(1, 260), (2, 1000)] {
            let returned = frames[&(ConnectionId(switch), PortNo::CONTROLLER)].clone();
            bed.receive(at_us(us + there_and_back_us + late_us), switch, PortNo::CONTROLLER, returned);
        }
    }
}
