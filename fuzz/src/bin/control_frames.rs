//! Frames of control protocols (ARP, neighbour discovery, ping, LLDP), received by a host of a lab and by the
//! learning controller.
//!
//! The first byte chooses the receiver. Operations follow: a byte that chooses, a byte of length, and as many bytes.
//! No program of the project parses DHCP; its frames are ordinary UDP datagrams.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::{ConnectionId, ControllerApp, ControllerOutbox};
use weir_fuzz::bounded_by;
use weir_network::StackHost;
use weir_openflow::model::{Body, Bytes, FeaturesReply, Match, PacketIn, PacketInReason, PortDesc, PortNo, TableId};
use weir_openflow::{Message, Version, decode, encode};
use weir_packet::{Field, Frame, FramePool, MacAddr, checksum, parse};
use weir_port::{FrameCounters, LinkState, Port, PortInfo, PortResult};
use weir_scenario::Scenario;
use weir_units::Instant;

/// Memory limit of either receiver in bytes: stations, neighbours and waiting frames are limited.
const MEMORY: usize = 64 << 20;
/// Rounds of a host without waiting, after which it counts as stuck.
const MAX_ROUNDS: usize = 1000;
const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

static SCENARIO: LazyLock<Scenario> = LazyLock::new(|| {
    let text = "
        [[switch]]
        name = 's1'
        [[host]]
        name = 'h1'
        switch = 's1'
        ip = ['10.0.0.1/24', 'fd00::1/64']
        [[host]]
        name = 'h2'
        switch = 's1'
        ip = ['10.0.0.2/24', 'fd00::2/64']
        [[traffic]]
        kind = 'ping'
        from = 'h1'
        to = 'h2'
        count = 3
        [[traffic]]
        kind = 'udp'
        from = 'h2'
        to = 'h1'
        rate = '1Mbit/s'
        duration = '1s'
        [[traffic]]
        kind = 'tcp'
        from = 'h2'
        to = 'h1'
        duration = '1s'
    ";
    Scenario::parse(text, "fuzz.toml").expect("a scenario")
});

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    LazyLock::force(&SCENARIO);
    bounded_by(MEMORY, || if choice & 1 == 0 { host(operations(rest)) } else { controller(choice, operations(rest)) });
});

/// Splits an input into operations.
fn operations(mut rest: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [choice, length, more @ ..] = rest else { return None };
        let (bytes, more) = more.split_at(usize::from(*length).min(more.len()));
        rest = more;
        Some((*choice, bytes))
    })
}

/// A port that receives frames from the input and keeps the frames sent.
struct Wire {
    info: PortInfo,
    incoming: Arc<Mutex<VecDeque<Frame>>>,
    sent: Arc<Mutex<Vec<Frame>>>,
}

impl Port for Wire {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, _: Instant, _: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let mut incoming = self.incoming.lock().unwrap();
        let count = incoming.len().min(max);
        batch.extend(incoming.drain(..count));
        Ok(())
    }

    fn transmit(&mut self, _: Instant, _: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.sent.lock().unwrap().append(frames);
        Ok(())
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: None }
    }

    fn counters(&self) -> FrameCounters {
        FrameCounters::default()
    }
}

/// Runs a host that receives frames while time passes: it must not spin, and must send only frames with its own
/// address.
fn host<'a>(operations: impl Iterator<Item = (u8, &'a [u8])>) {
    let (incoming, sent) = (Arc::<Mutex<VecDeque<Frame>>>::default(), Arc::<Mutex<Vec<Frame>>>::default());
    let info = PortInfo { spec: "fuzz".into(), name: "fuzz".into(), mac: HOST, mtu: 1500 };
    let port = Wire { info, incoming: incoming.clone(), sent: sent.clone() };
    let mut host = StackHost::new(Box::new(port), HOST, &SCENARIO.hosts[0].ip, 1);
    let (mut now, mut done) = (Instant::from_nanos(1), Vec::new());
    host.start(&SCENARIO, 0, now);
    for (choice, bytes) in operations {
        if choice & 0x80 != 0 {
            now += Duration::from_millis(u64::from(choice & 0x7f) * 20);
        } else {
            incoming.lock().unwrap().push_back(frame_of(choice, bytes));
        }
        for round in 0.. {
            assert!(round < MAX_ROUNDS, "the host asks to be called at once again and again");
            host.receive(now);
            now += Duration::from_nanos(1);
            if host.poll(now, &mut done) > now {
                break;
            }
        }
        for frame in sent.lock().unwrap().drain(..) {
            let parsed = parse(frame.bytes(), PortNo(1)).expect("a whole frame");
            assert_eq!(parsed.key.get(Field::EthSrc), u128::from(HOST.to_bits()));
            assert!(frame.len() <= 1514 && checksum::verify(frame.bytes()).is_ok());
        }
    }
    host.finish();
}

/// Returns a frame for the host. Bits of `choice` set the destination to the host, and correct the checksum.
fn frame_of(choice: u8, bytes: &[u8]) -> Frame {
    let mut bytes = bytes.to_vec();
    if choice & 1 != 0 && bytes.len() >= 6 {
        bytes[..6].copy_from_slice(&HOST.0);
    }
    if choice & 2 != 0 && bytes.len() >= 58 && bytes[12..14] == [0x86, 0xdd] {
        // ICMPv6 after an IPv6 header, as in neighbour discovery.
        let length = u16::try_from(bytes.len() - 54).expect("a short frame");
        bytes[18..20].copy_from_slice(&length.to_be_bytes());
        bytes[20] = 58;
        bytes[56..58].fill(0);
        let pseudo = [0, 0, length.to_be_bytes()[0], length.to_be_bytes()[1], 0, 0, 0, 58];
        let sum = checksum::internet(&[&bytes[22..54], &pseudo, &bytes[54..]]);
        bytes[56..58].copy_from_slice(&sum.to_be_bytes());
    }
    Frame::from_bytes(&bytes)
}

/// Runs the learning controller on packets and other messages: every answer can be encoded, and every packet is sent
/// or counted.
fn controller<'a>(choice: u8, operations: impl Iterator<Item = (u8, &'a [u8])>) {
    let version = Version::ALL[usize::from(choice >> 1) % Version::ALL.len()];
    let mut config = LearningConfig { max_addresses: 8, ..LearningConfig::default() };
    if choice & 0x40 != 0 {
        config.access = [((1, PortNo(1)), 5), ((1, PortNo(2)), 5), ((1, PortNo(3)), 6)].into();
    }
    if choice & 0x80 != 0 {
        config.links = vec![[(1, PortNo(4)), (2, PortNo(4))], [(1, PortNo(3)), (2, PortNo(3))]];
    }
    let mut app = LearningSwitch::new(config);
    let ports =
        |n| (1..=n).map(|port| PortDesc::new(PortNo(port), MacAddr([2, 1, 0, 0, 0, 9]), format!("p{port}"))).collect();
    let (mut now, mut out) = (Instant::from_nanos(1), ControllerOutbox::default());
    for dpid in 1..=2 {
        let features =
            FeaturesReply { datapath_id: dpid, n_buffers: 4, n_tables: 4, ports: ports(4), ..FeaturesReply::default() };
        app.handle_switch_up(now, ConnectionId(dpid), version, &features, &mut out);
        sendable(&mut out, version);
    }
    for (choice, bytes) in operations {
        let switch = ConnectionId(1 + u64::from(choice >> 6 & 1));
        match choice & 3 {
            0 => now += Duration::from_secs(u64::from(choice >> 2 & 0xf) * 10),
            1 => {
                // Bytes of any message that a switch may send.
                if let Ok(message) = decode(bytes) {
                    app.handle_message(now, switch, message, &mut out);
                }
            }
            _ => {
                let port = PortNo(u32::from(choice >> 2 & 7));
                let message = Message { xid: 0, body: Body::PacketIn(packet_in(port, choice >> 5 & 1 != 0, bytes)) };
                let before = app.count();
                app.handle_message(now, switch, message, &mut out);
                let counted = app.count() != before;
                assert!(counted || !out.is_empty(), "a packet came to nothing");
            }
        }
        sendable(&mut out, version);
    }
}

fn packet_in(port: PortNo, is_cut: bool, bytes: &[u8]) -> PacketIn {
    PacketIn {
        buffer_id: None,
        total_len: u16::try_from(bytes.len()).expect("short") + u16::from(is_cut),
        reason: PacketInReason::NoMatch,
        table: TableId(0),
        cookie: u64::MAX,
        matching: Match::any().with(Field::InPort, port.0),
        data: Bytes(bytes.to_vec()),
    }
}

fn sendable(out: &mut ControllerOutbox, version: Version) {
    for (_, message) in out.take() {
        let encoded = encode(&message, version, &mut Vec::new());
        assert!(encoded.is_ok(), "{encoded:?}: {message:?}");
    }
}
