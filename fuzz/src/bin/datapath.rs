//! Runs entries, groups, meters, packets, links and time on two datapaths: one with adaptive lookup and a verdict
//! cache, and the reference with linear lookup and no cache.
//!
//! Both must send the same frames and messages, reject the same changes, and drop and count the same. If the input is
//! in plain style, both must also agree with the pipeline of `weir_reference`, which shares no code with them.
#![no_main]
use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput, LookupMethod, VerdictCacheMode};
use weir_fuzz::pipeline::{self, Flow, Group, Meter, PORTS, Packet, Style, TABLES};
use weir_openflow::model::group::GroupMod;
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{GroupId, MeterId, PortDesc, PortNo};
use weir_openflow::{Body, Message, Version};
use weir_packet::{Frame, FramePool, MacAddr};
use weir_reference::{BucketChoices, ReferencePipeline};
use weir_units::Instant;

const CONTROLLER: ChannelId = ChannelId(13);
/// Maximum number of packets in a burst, and of operations in an input.
const BURST: usize = 40;
const OPERATIONS: usize = 100;
/// Maximum number of tried paths through select groups; a packet with more is not checked.
const MOST_WAYS: usize = 64;

#[derive(Debug, Arbitrary)]
struct Input {
    style: Style,
    operations: Vec<Operation>,
}

#[derive(Debug)]
enum Operation {
    Flow(Flow),
    Group(Group),
    Meter(Meter),
    Burst { port: u8, repeat: u8, packets: Vec<Packet> },
    Wait { ms: u16 },
    Link { port: u8, up: bool },
}

/// Implemented by hand: one byte chooses the operation (derived code uses four), mostly those that packets depend on.
impl<'a> Arbitrary<'a> for Operation {
    fn arbitrary(from: &mut Unstructured<'a>) -> arbitrary::Result<Operation> {
        Ok(match from.int_in_range(0..=15)? {
            0..=4 => Operation::Flow(from.arbitrary()?),
            5..=6 => Operation::Group(from.arbitrary()?),
            7 => Operation::Meter(from.arbitrary()?),
            8..=12 => {
                Operation::Burst { port: from.arbitrary()?, repeat: from.arbitrary()?, packets: from.arbitrary()? }
            }
            13..=14 => Operation::Wait { ms: from.arbitrary()? },
            _ => Operation::Link { port: from.arbitrary()?, up: from.arbitrary()? },
        })
    }
}

fuzz_target!(|input: Input| {
    let mut all = All::new(input.style);
    input.operations.iter().take(OPERATIONS).for_each(|operation| all.step(operation));
    let [fast, plain] = all.twins.each_mut().map(Twin::counted);
    assert_eq!(fast, plain);
});

/// The compared datapaths.
struct All {
    style: Style,
    twins: [Twin; 2],
    reference: ReferencePipeline,
}

impl All {
    fn new(style: Style) -> All {
        let kinds = [(LookupMethod::Adaptive, VerdictCacheMode::On), (LookupMethod::Linear, VerdictCacheMode::Off)];
        let mut all = All { style, twins: kinds.map(Twin::new), reference: ReferencePipeline::new(PORTS) };
        let (groups, meters) = pipeline::first();
        groups.iter().for_each(|group| all.group(group));
        for meter in meters {
            all.change(Body::MeterMod(meter));
        }
        all
    }

    fn step(&mut self, operation: &Operation) {
        match operation {
            Operation::Flow(flow) => flow.mods(self.style).for_each(|flow| {
                if self.change(Body::FlowMod(flow.clone())) && self.style.plain {
                    self.reference.flow_mod(&flow);
                }
            }),
            Operation::Group(group) => self.group(&group.change(self.style)),
            Operation::Meter(meter) => {
                self.change(Body::MeterMod(meter.change()));
            }
            Operation::Burst { port, repeat, packets } => self.receive(port_of(*port), *repeat, packets),
            Operation::Wait { ms } => {
                let time = Duration::from_millis(u64::from(*ms));
                self.both(|twin| twin.wait(time));
            }
            Operation::Link { port, up } => {
                let port = port_of(*port);
                self.both(|twin| twin.datapath.set_link(twin.now, port, *up, 0, &mut twin.out));
                self.reference.set_link(port, *up);
            }
        }
    }

    /// Runs `what` on both datapaths. Returns their outcome, which must be equal.
    fn both(&mut self, what: impl Fn(&mut Twin)) -> Outcome {
        let [fast, plain] = self.twins.each_mut().map(|twin| {
            what(twin);
            twin.outcome()
        });
        assert_eq!(fast, plain);
        fast
    }

    /// Requests a change from both datapaths. Returns true if they accept it.
    fn change(&mut self, body: Body) -> bool {
        let outcome = self.both(|twin| twin.tell(body.clone()));
        !outcome.messages.iter().any(|(_, message)| matches!(message.body, Body::Error(_)))
    }

    fn group(&mut self, change: &GroupMod) {
        if self.change(Body::GroupMod(change.clone())) && self.style.plain {
            self.reference.group_mod(change);
        }
    }

    fn receive(&mut self, in_port: PortNo, repeat: u8, packets: &[Packet]) {
        let frames: Vec<Vec<u8>> = packets.iter().take(BURST).map(|packet| packet.frame()).collect();
        let count = (frames.len() * (1 + usize::from(repeat % 4))).min(BURST);
        let burst: Vec<&[u8]> = frames.iter().cycle().take(count).map(Vec::as_slice).collect();
        if !self.style.plain {
            self.both(|twin| twin.receive(in_port, &burst));
            return;
        }
        for frame in burst {
            let before = self.twins[0].datapath.drops().total();
            let outcome = self.both(|twin| twin.receive(in_port, &[frame]));
            let drops = outcome.drops - before;
            let listed = outcome.frames.into_iter();
            let mut sent: Vec<(PortNo, Vec<u8>)> =
                listed.flat_map(|(port, frames)| frames.into_iter().map(move |frame| (port, frame))).collect();
            sent.sort();
            self.judge(in_port, frame, &(sent, drops));
        }
    }

    /// Checks a packet's outcome against the reference, for any choice of buckets in select groups.
    fn judge(&self, in_port: PortNo, frame: &[u8], found: &(Vec<(PortNo, Vec<u8>)>, u64)) {
        let (mut choices, mut expected) = (BucketChoices::default(), Vec::new());
        for _ in 0..MOST_WAYS {
            let (mut sent, drops) = self.reference.process(in_port.0, frame, &mut choices);
            sent.sort();
            expected.push((sent, drops));
            if expected.last() == Some(found) {
                return;
            }
            if !choices.another() {
                panic!("{found:?}, not one of {expected:?}");
            }
        }
    }
}

fn port_of(number: u8) -> PortNo {
    PortNo(1 + u32::from(number) % PORTS)
}

/// A compared datapath, with its buffers and clock.
struct Twin {
    datapath: Datapath,
    pool: FramePool,
    out: DatapathOutput,
    now: Instant,
}

/// Outcome of an operation: frames by port, messages, packets dropped.
#[derive(Debug, PartialEq)]
struct Outcome {
    frames: Vec<(PortNo, Vec<Vec<u8>>)>,
    messages: Vec<(ChannelId, Message)>,
    drops: u64,
}

impl Twin {
    fn new((lookup, verdict_cache): (LookupMethod, VerdictCacheMode)) -> Twin {
        let config = DatapathConfig { n_tables: TABLES, lookup, verdict_cache, ..DatapathConfig::default() };
        let mut twin = Twin {
            datapath: Datapath::new(config),
            pool: FramePool::default(),
            out: DatapathOutput::default(),
            now: Instant::from_nanos(1_000_000_000),
        };
        for number in 1..=PORTS {
            let address = MacAddr::from_bits(0x0200_0000_00f0 | u64::from(number));
            let desc = PortDesc::new(PortNo(number), address, format!("p{number}"));
            twin.datapath.add_port(twin.now, desc, &mut twin.out).expect("an ordinary number");
        }
        twin.datapath.channel_up(twin.now, CONTROLLER, Version::V13);
        twin
    }

    fn receive(&mut self, in_port: PortNo, burst: &[&[u8]]) {
        let mut burst: Vec<Frame> = burst.iter().map(|bytes| Frame::from_bytes(bytes)).collect();
        self.datapath.process(self.now, in_port, &mut burst, &mut self.pool, &mut self.out);
        assert!(burst.is_empty());
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        while self.datapath.expire(self.now, &mut self.out).is_some_and(|again| again <= self.now) {}
    }

    fn tell(&mut self, body: Body) {
        self.datapath.handle(self.now, CONTROLLER, Message { xid: 7, body }, &mut self.pool, &mut self.out);
    }

    fn outcome(&mut self) -> Outcome {
        let lists = self.out.frames.iter_mut().filter(|(_, frames)| !frames.is_empty());
        let bytes = |frames: &mut Vec<Frame>| frames.drain(..).map(|frame| frame.bytes().to_vec()).collect();
        let mut frames: Vec<(PortNo, Vec<Vec<u8>>)> = lists.map(|(port, frames)| (*port, bytes(frames))).collect();
        frames.sort_unstable_by_key(|(port, _)| *port);
        let mut messages = std::mem::take(&mut self.out.messages);
        // Entries that expire together may be reported in any order.
        messages.sort_by_key(|(_, message)| match &message.body {
            Body::FlowRemoved(entry) => Some((entry.table, entry.priority)),
            _ => None,
        });
        Outcome { frames, messages, drops: self.datapath.drops().total() }
    }

    /// Returns all counters; entries are sorted, because their places may differ.
    fn counted(&mut self) -> Vec<ReplyBody> {
        let asked = [
            RequestBody::Flow(FlowRequest::all()),
            RequestBody::Table,
            RequestBody::Group(GroupId::ALL),
            RequestBody::GroupDesc(GroupId::ALL),
            RequestBody::Meter(MeterId::ALL),
            RequestBody::MeterConfig(MeterId::ALL),
        ];
        asked.into_iter().flat_map(|body| self.ask(body)).collect()
    }

    fn ask(&mut self, body: RequestBody) -> Vec<ReplyBody> {
        self.tell(Body::MultipartRequest(MultipartRequest { more: false, body }));
        let parts = std::mem::take(&mut self.out.messages).into_iter().map(|(_, message)| match message.body {
            Body::MultipartReply(reply) => sorted(reply.body),
            other => panic!("{other:?} is no reply"),
        });
        parts.collect()
    }
}

fn sorted(mut reply: ReplyBody) -> ReplyBody {
    if let ReplyBody::Flow(flows) = &mut reply {
        flows.sort_by_key(|flow| (flow.table, flow.priority));
    }
    reply
}
