//! Tests of the application without a network: a record of what it asks for stands in for one.
use super::*;
use weir_openflow::model::PortNo;
use weir_openflow::model::multipart::RequestBody;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;
use weir_routing::map::MapSwitch;
use weir_routing::tables::EntryKey;
use weir_routing::{NetworkMap, SwitchPort};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const AT: SwitchPort = SwitchPort::new(1, PortNo(3));

/// Network that records entries and events.
#[derive(Default)]
struct Record {
    now: Instant,
    map: NetworkMap,
    entries: Vec<DesiredEntry>,
    events: Vec<String>,
}

impl Network for Record {
    fn now(&self) -> Instant {
        self.now
    }

    fn map(&self) -> &NetworkMap {
        &self.map
    }

    fn set_entry(&mut self, _dpid: u64, entry: DesiredEntry) {
        self.entries.push(entry);
    }

    fn remove_entry(&mut self, _dpid: u64, key: &EntryKey) {
        self.entries.retain(|entry| entry.key != *key);
    }

    fn send(&mut self, _to: SwitchPort, _data: Vec<u8>) {}

    fn send_to_hosts(&mut self, _except: Option<SwitchPort>, _data: Vec<u8>) {}

    fn forward(&mut self, _at: SwitchPort, _data: Vec<u8>) {}

    fn ask(&mut self, _dpid: u64, _request: RequestBody) {}

    fn name_host(&mut self, _mac: MacAddr, _name: &str) {}

    fn set_load(&mut self, _from: SwitchPort, _bps: f64) {}

    fn report(&mut self, _kind: &'static str, text: String, _alarm: bool) {
        self.events.push(text);
    }
}

fn app() -> PortKnocking {
    PortKnocking::new(KnockingConfig { server: SERVER, port: 22, knocks: vec![7, 8, 9], open_s: 60 })
}

/// Lets a host send a packet to a UDP port of the server.
fn knock(app: &mut PortKnocking, network: &mut Record, host: Ipv4Addr, port: u16) -> PacketDecision {
    let (server, client) = (MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    let frame = FrameBuilder::ethernet(server, client).ipv4(host, SERVER).udp(40_000, port).build();
    app.handle_packet(&HostPacket { at: AT, from_trunk: false, data: &frame }, network)
}

fn host(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a01_0000 + number)
}

#[test]
fn a_switch_gets_the_closed_port_and_the_knocks() {
    let (mut app, mut network) = (app(), Record::default());
    app.handle_event(&NetworkEvent::SwitchUp { dpid: 1 }, &mut network);
    let priorities: Vec<u16> = network.entries.iter().map(|entry| entry.key.priority).collect();
    assert_eq!(priorities, [CLOSED, KNOCK, KNOCK, KNOCK]);
    // A switch refuses a match without its prerequisites; find out here.
    assert!(network.entries.iter().all(|entry| entry.key.matching.key_and_mask().is_ok()));
}

#[test]
fn the_right_knocks_in_order_open_the_port() {
    let (mut app, mut network) = (app(), Record::default());
    network.map.add_switch(1, MapSwitch { ports: BTreeMap::new(), n_tables: 254 });
    for port in [7, 8, 9] {
        assert!(network.events.is_empty());
        assert_eq!(knock(&mut app, &mut network, host(1), port), PacketDecision::Taken);
    }
    let [entry] = &network.entries[..] else { panic!("one entry for one switch") };
    assert_eq!((entry.key.priority, entry.hard_timeout), (OPEN, 60));
    assert_eq!(entry.key.matching.get(Field::Ipv4Src).map(|(ip, _)| ip), Some(host(1).to_bits().into()));
    assert_eq!(network.events, ["port 22 of 10.0.0.2 is open for 10.1.0.1 for 60 s"]);
    assert_eq!(knock(&mut app, &mut network, host(1), 53), PacketDecision::PassedOn, "no knock");
}

#[test]
fn wrong_and_late_knocks_do_not() {
    let (mut app, mut network) = (app(), Record::default());
    for port in [7, 9, 8, 9] {
        knock(&mut app, &mut network, host(1), port);
    }
    knock(&mut app, &mut network, host(1), 7);
    network.now += PATIENCE;
    knock(&mut app, &mut network, host(1), 8);
    knock(&mut app, &mut network, host(1), 9);
    assert_eq!((network.events.len(), app.wrong), (0, 5));
}

#[test]
fn hosts_that_never_finish_are_limited() {
    let (mut app, mut network) = (app(), Record::default());
    for number in (0..).take(MAX_KNOCKING + 5) {
        knock(&mut app, &mut network, host(number), 7);
    }
    assert_eq!((app.knocking.len(), app.counters()[2]), (MAX_KNOCKING, ("knocks_full", 5)));
    network.now += PATIENCE;
    knock(&mut app, &mut network, host(9999), 7);
    assert_eq!(app.knocking.len(), 1, "there is room again");
}
