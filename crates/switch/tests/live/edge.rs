//! Virtual switches whose ports are VLANs on the physical ports.
use crate::bed::{Controller, Host, punt, switch, until};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::net::TcpStream;
use weir_openflow::Body;
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PacketOut, PortNo};
use weir_packet::Frame;
use weir_scenario::{parse_slicing, parse_virtual_switch};
use weir_slicing::FabricSpec;
use weir_switch::{ListenTarget, SoftwareSwitchConfig, SwitchHandle};

/// Port 1 is a trunk with the VLANs of both tenants. Port 2 belongs to gold, untagged; port 3 to tin, with another
/// VLAN.
const TENANTS: [&str; 2] = [
    "name = 'gold'\ndpid = 0x101\nbuffer = '64kB'\nlisten = 'ptcp:0'\nports = [{ port = 1, rate = '400Mbit/s', vlan = 10 }, \
     { port = 2, rate = '400Mbit/s' }]\n",
    "name = 'tin'\ndpid = 0x102\nbuffer = '64kB'\nlisten = 'ptcp:0'\nports = [{ port = 1, rate = '400Mbit/s', vlan = 20 }, \
     { port = 3, number = 7, rate = '400Mbit/s', vlan = 30 }]\n",
];

fn fabric() -> FabricSpec {
    let ports: BTreeMap<u32, _> = (1..=3).map(|port| (port, None)).collect();
    parse_slicing("[fabric]\nrate = '1Gbit/s'\n", "test", "s", ports).unwrap().0
}

fn tenants() -> (SwitchHandle, Vec<Host>, Vec<ListenTarget>) {
    let config = SoftwareSwitchConfig { fabric: Some(fabric()), ..SoftwareSwitchConfig::default() };
    let (switch, hosts) = switch(3, config);
    let listeners = TENANTS.iter().map(|text| {
        let cut = parse_virtual_switch(text, "test", &fabric()).unwrap();
        switch.add_virtual(cut).unwrap().remove(0)
    });
    let listeners = listeners.collect();
    (switch, hosts, listeners)
}

async fn connect(at: &ListenTarget) -> Controller<TcpStream> {
    let ListenTarget::Tcp(address) = at else { panic!("{at}") };
    let mut controller = Controller::up(TcpStream::connect(address).await.unwrap()).await;
    // A connected tool receives packet-ins only after it has asked for them.
    let config = weir_openflow::model::SwitchConfig { flags: 0, miss_send_len: 0xffff };
    controller.send(Body::SetConfig(config)).await;
    controller
}

async fn install(controller: &mut Controller<TcpStream>, entry: FlowMod) {
    controller.send(Body::FlowMod(entry)).await;
    controller.barrier().await;
}

fn flood() -> FlowMod {
    FlowMod::add(10, Match::any(), vec![Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)])])
}

/// Returns the outermost tag's type and content; none if the frame is untagged.
fn tag(frame: &Frame) -> Option<[u8; 4]> {
    let bytes: [u8; 4] = frame.bytes()[12..16].try_into().unwrap();
    (bytes[..2] == [0x81, 0]).then_some(bytes)
}

fn received(host: &mut Host) -> Option<Option<[u8; 4]>> {
    host.next(Duration::from_secs(10)).map(|frame| tag(&frame))
}

#[tokio::test]
async fn tags_are_the_edges_alone() {
    let (switch, mut hosts, at) = tenants();
    for at in &at {
        install(&mut connect(at).await, flood()).await;
    }
    let [trunk, gold, tin] = &mut hosts[..] else { unreachable!() };
    trunk.broadcast(Some((10, 5)));
    assert_eq!(received(gold), Some(None));
    trunk.broadcast(Some((20, 0)));
    assert_eq!(received(tin), Some(Some([0x81, 0, 0, 30])));
    gold.broadcast(None);
    assert_eq!(received(trunk), Some(Some([0x81, 0, 0, 10])));
    tin.broadcast(Some((30, 7)));
    assert_eq!(received(trunk), Some(Some([0x81, 0, 0, 20])));
    // Gold owns port 2 entirely, so tags there are gold's own and stay behind the trunk's tag.
    gold.broadcast(Some((20, 0)));
    let frame = trunk.next(Duration::from_secs(10)).unwrap();
    assert_eq!(frame.bytes()[12..20], [0x81, 0, 0, 10, 0x81, 0, 0, 20]);
    // Frames in other VLANs, or untagged ones, belong to no virtual switch.
    for nobodys in [None, Some((30, 0)), Some((0, 3))] {
        trunk.broadcast(nobodys);
    }
    tin.broadcast(None);
    trunk.broadcast(Some((10, 0)));
    assert_eq!(received(gold), Some(None));
    let ports = |name: &str| {
        let all = switch.snapshot().unwrap().virtual_switches;
        let cut = all.into_iter().find(|cut| cut.name == name).unwrap();
        cut.ports.iter().map(|port| (port.vlan, port.rx_packets, port.tx_packets)).collect::<Vec<_>>()
    };
    until(|| ports("gold")[1].2 == 2).await;
    assert_eq!(ports("gold"), [(Some(10), 2, 2), (None, 2, 2)]);
    assert_eq!(ports("tin"), [(Some(20), 1, 1), (Some(30), 1, 1)]);
    let gold = switch.snapshot().unwrap().virtual_switches.remove(0);
    // Ports count bytes on the wire: 42 of headers, 3 of payload, 4 for each outer tag.
    assert_eq!((gold.ports[0].rx_bytes, gold.ports[1].tx_bytes), (2 * 49, 2 * 45));
}

#[tokio::test]
async fn controllers_see_no_tags() {
    let (_switch, mut hosts, at) = tenants();
    let mut controller = connect(&at[1]).await;
    install(&mut controller, punt()).await;
    let [trunk, _, tin] = &mut hosts[..] else { unreachable!() };
    trunk.broadcast(Some((20, 4)));
    let packet_in = controller
        .expect(|message| match message.body {
            Body::PacketIn(packet_in) => Some(packet_in),
            _ => None,
        })
        .await;
    assert_eq!((packet_in.in_port(), &packet_in.data.0[12..14]), (Some(PortNo(1)), &[8, 0][..]));
    for port in [7, 1] {
        let actions = vec![Action::output(PortNo(port))];
        let data = packet_in.data.clone();
        let out = PacketOut { buffer_id: None, in_port: PortNo::CONTROLLER, matching: Match::any(), actions, data };
        controller.send(Body::PacketOut(out)).await;
    }
    assert_eq!(received(tin), Some(Some([0x81, 0, 0, 30])));
    assert_eq!(received(trunk), Some(Some([0x81, 0, 0, 20])));
}

#[tokio::test]
async fn super_frames_are_cut_and_each_packet_has_its_tag() {
    let (_switch, mut hosts, at) = tenants();
    let forwards = FlowMod::add(10, Match::any(), vec![Instruction::ApplyActions(vec![Action::output(PortNo(1))])]);
    install(&mut connect(&at[0]).await, forwards).await;
    let [trunk, gold, _] = &mut hosts[..] else { unreachable!() };
    gold.send_segments(&[0x5a; 3000], 1000);
    for _ in 0..3 {
        let frame = trunk.next(Duration::from_secs(10)).unwrap();
        assert_eq!((tag(&frame), frame.len()), (Some([0x81, 0, 0, 10]), 14 + 4 + 20 + 8 + 1000));
        assert!(frame.offload.is_none());
    }
}
