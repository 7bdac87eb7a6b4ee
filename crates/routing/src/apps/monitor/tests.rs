//! Tests of the monitor with statistics as switches send them.
use super::*;
use crate::apps::test_bed::{FakeNetwork, port};
use std::time::Duration;
use weir_openflow::model::multipart::FlowStats;
use weir_openflow::model::port::PortStats;
use weir_openflow::model::{FlowFlags, Match};
use weir_packet::Field;

struct Bed {
    monitor: Monitor,
    network: FakeNetwork,
}

impl Bed {
    /// Returns a monitor of two switches with a link from port 2 to port 3.
    fn new() -> Bed {
        let config = toml::from_str("elephant-rate = \"8Mbit/s\"").unwrap();
        let mut bed = Bed { monitor: Monitor::new(config).unwrap(), network: FakeNetwork::of(2) };
        bed.network.link(port(1, 2), port(2, 3));
        bed.network.bring_up(&mut bed.monitor);
        bed
    }

    fn pass(&mut self, seconds: u64) {
        self.network.pass(Duration::from_secs(seconds), &mut self.monitor);
    }

    fn reply(&mut self, dpid: u64, reply: &ReplyBody) {
        self.monitor.handle_reply(dpid, reply, &mut self.network);
    }

    /// Gives the statistics of ports 1 and 2 of switch 1.
    fn sent(&mut self, seconds: u32, bytes: u64) {
        self.reply(1, &ReplyBody::PortStats(vec![port_stats(1, seconds, 99), port_stats(2, seconds, bytes)]));
    }

    fn counter(&self, name: &str) -> u64 {
        self.monitor.counters().iter().find(|(found, _)| *found == name).unwrap().1
    }
}

fn port_stats(number: u32, seconds: u32, bytes: u64) -> PortStats {
    PortStats {
        port_no: PortNo(number),
        rx_packets: 0,
        tx_packets: 0,
        rx_bytes: 0,
        tx_bytes: bytes,
        rx_dropped: 0,
        tx_dropped: 0,
        rx_errors: 0,
        tx_errors: 0,
        rx_frame_err: 0,
        rx_over_err: 0,
        rx_crc_err: 0,
        collisions: 0,
        duration_sec: seconds,
        duration_nsec: 0,
        properties: Vec::new(),
    }
}

fn flow(table: u8, host: u64, seconds: u32, bytes: u64) -> FlowStats {
    FlowStats {
        table: TableId(table),
        duration_sec: seconds,
        duration_nsec: 0,
        priority: 7,
        idle_timeout: 0,
        hard_timeout: 0,
        flags: FlowFlags::default(),
        importance: 0,
        cookie: 0,
        packet_count: 0,
        byte_count: bytes,
        more: Default::default(),
        matching: Match::any().with(Field::EthDst, host),
        instructions: Vec::new(),
    }
}

#[test]
fn loads_of_links_are_rates_of_what_ports_send() {
    let mut bed = Bed::new();
    bed.pass(1);
    let asked = [1, 2].map(|dpid| (dpid, RequestBody::PortStats(PortNo::ANY)));
    assert_eq!(bed.network.asked, asked);
    for (seconds, bytes) in [(10, 0), (11, 1_000_000), (12, 1_000_000), (13, 5), (14, 1_000_005)] {
        bed.sent(seconds, bytes);
    }
    // 8 Mbit/s, then nothing, then a counter that began anew, then 8 Mbit/s.
    assert_eq!(bed.network.loads.iter().collect::<Vec<_>>(), [(&port(1, 2), &6e6)], "port 1 leads to no switch");
    assert_eq!(bed.counter("measurements"), 3);
    let ends = [port(1, 2), port(2, 3)];
    bed.monitor.handle_event(&NetworkEvent::LinkDown { ends }, &mut bed.network);
    bed.sent(15, 2_000_005);
    assert_eq!(bed.counter("measurements"), 3, "the link is new: no earlier reading");
}

#[test]
fn switches_that_do_not_answer_are_not_asked_again_and_again() {
    let mut bed = Bed::new();
    bed.pass(1);
    bed.sent(10, 0);
    bed.pass(3);
    let asked = |bed: &Bed, dpid: u64| {
        let ports = bed.network.asked.iter().filter(|(_, body)| matches!(body, RequestBody::PortStats(_)));
        ports.filter(|(asked, _)| *asked == dpid).count()
    };
    assert_eq!((asked(&bed, 1), asked(&bed, 2), bed.counter("not_asked")), (2, 1, 2 + 3));
    bed.pass(u64::from(PATIENCE));
    assert_eq!((asked(&bed, 1), asked(&bed, 2)), (3, 2), "asked again after some intervals");
    bed.monitor.handle_event(&NetworkEvent::SwitchUp { dpid: 2 }, &mut bed.network);
    bed.pass(1);
    assert_eq!(asked(&bed, 2), 3, "a new connection");
}

#[test]
fn elephant_flows_begin_and_end_once_in_the_network() {
    let mut bed = Bed::new();
    let mut at = |seconds: u32, bytes: [u64; 2]| {
        bed.pass(5);
        for (dpid, bytes) in [1, 2].into_iter().zip(bytes) {
            let other_table = flow(FORWARDING_TABLE - 1, 5, seconds, u64::from(seconds) * 1_000_000_000);
            bed.reply(dpid, &ReplyBody::Flow(vec![other_table]));
            bed.reply(dpid, &ReplyBody::Flow(vec![flow(FORWARDING_TABLE, 5, seconds, bytes)]));
        }
        bed.network.reports.iter().map(|(kind, text, _)| format!("{kind}: {text}")).collect::<Vec<_>>()
    };
    let begins = "elephant: flow dl_dst=00:00:00:00:00:05 carries 8Mbit/s at switch 1";
    let ends = "elephant-over: flow dl_dst=00:00:00:00:00:05 carries little";
    assert!(at(5, [0, 0]).is_empty());
    assert!(at(10, [4_999_000, 4_999_000]).is_empty(), "just below the rate");
    assert_eq!(at(15, [9_999_000, 9_999_000]), [begins], "told once, not by switch");
    assert_eq!(at(20, [12_600_000, 9_999_000]), [begins], "above a half of the rate at switch 1");
    assert_eq!(at(25, [12_700_000, 9_999_000]), [begins, ends]);
    assert_eq!((bed.counter("flows"), bed.counter("elephants")), (2, 0));
    bed.pass(100);
    assert_eq!(bed.counter("flows"), 0, "entries that are gone are forgotten");
}

#[test]
fn an_elephant_ends_with_its_entry() {
    let mut bed = Bed::new();
    for (seconds, bytes) in [(5, 0), (10, 90_000_000)] {
        bed.pass(5);
        bed.reply(1, &ReplyBody::Flow(vec![flow(FORWARDING_TABLE, 5, seconds, bytes)]));
    }
    assert_eq!(bed.counter("elephants"), 1);
    bed.pass(100);
    assert_eq!((bed.counter("elephants"), bed.network.reports.len()), (0, 2));
}

#[test]
fn flows_are_limited() {
    let mut bed = Bed::new();
    let most = u64::try_from(MAX_FLOWS).unwrap();
    let all =
        |seconds: u32, bytes: u64| (0..most + 10).map(|host| flow(FORWARDING_TABLE, host, seconds, bytes)).collect();
    bed.reply(1, &ReplyBody::Flow(all(1, 0)));
    assert_eq!((bed.counter("flows"), bed.counter("flows_full")), (most, 10));
    bed.reply(1, &ReplyBody::Flow(all(2, 1_000_000)));
    assert_eq!((bed.counter("elephants"), bed.network.reports.len()), (256, MAX_ELEPHANTS));
}

#[test]
fn wrong_settings_are_named() {
    let check = |text: &str| Monitor::new(toml::from_str(text).unwrap()).map(drop).unwrap_err();
    assert!(check("interval = \"1ms\"").contains("`interval`: found 1ms, expected a time from 100ms"));
    assert!(check("weight = 1.5").contains("`weight`: found 1.5"));
    assert!(check("weight = nan").contains("`weight`"));
    assert!(Monitor::new(MonitorConfig::default()).is_ok());
}
