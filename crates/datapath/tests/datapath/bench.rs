//! A test bench: a datapath with four ports, driven in virtual time.
use std::time::Duration;
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput};
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{Action, ErrorType, FlowMod, Instruction, Match, PacketIn, PortDesc, PortNo};
use weir_openflow::{Body, Message, Version};
use weir_packet::craft::FrameBuilder;
use weir_packet::{Field, Frame, FramePool, MacAddr};
use weir_units::Instant;

/// A datapath with a frame pool, an output and the virtual time.
pub(crate) struct Bench {
    pub(crate) datapath: Datapath,
    pub(crate) pool: FramePool,
    pub(crate) out: DatapathOutput,
    pub(crate) now: Instant,
}

/// Number of ports, numbered from 1.
pub(crate) const PORTS: u32 = 4;
/// A channel that speaks 1.3.
pub(crate) const CONTROLLER: ChannelId = ChannelId(13);
/// A channel that speaks 1.0.
pub(crate) const OLD_CONTROLLER: ChannelId = ChannelId(10);

impl Bench {
    /// Returns a bench without channels.
    pub(crate) fn new() -> Bench {
        Bench::with(DatapathConfig::default())
    }

    pub(crate) fn with(config: DatapathConfig) -> Bench {
        let mut bench = Bench {
            datapath: Datapath::new(config),
            pool: FramePool::default(),
            out: DatapathOutput::default(),
            now: Instant::from_nanos(1_000_000_000),
        };
        for number in 1..=PORTS {
            bench.datapath.add_port(bench.now, port(number), &mut bench.out).unwrap();
        }
        bench
    }

    /// Returns a bench with a channel of version 1.3.
    pub(crate) fn controlled() -> Bench {
        let mut bench = Bench::new();
        bench.datapath.channel_up(bench.now, CONTROLLER, Version::V13);
        bench
    }

    /// Returns a bench with a channel of version 1.0.
    pub(crate) fn controlled_v10() -> Bench {
        let mut bench = Bench::new();
        bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
        bench
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    pub(crate) fn flow_mod(&mut self, flow: &FlowMod) -> Result<(), ErrorType> {
        self.datapath.flow_mod(self.now, flow)
    }

    /// Adds an entry to table 0.
    pub(crate) fn add(&mut self, priority: u16, matching: Match, actions: Vec<Action>) {
        self.flow_mod(&FlowMod::add(priority, matching, apply(actions))).unwrap();
    }

    /// Receives a frame. Returns the frames that leave, in order.
    pub(crate) fn receive(&mut self, in_port: u32, frame: &[u8]) -> Vec<(PortNo, Vec<u8>)> {
        let mut frames = vec![Frame::from_bytes(frame)];
        self.datapath.process(self.now, PortNo(in_port), &mut frames, &mut self.pool, &mut self.out);
        assert!(frames.is_empty());
        self.sent()
    }

    /// Receives a frame. Returns the ports it leaves by, ascending.
    pub(crate) fn ports_of(&mut self, in_port: u32, frame: &[u8]) -> Vec<u32> {
        let mut ports: Vec<u32> = self.receive(in_port, frame).into_iter().map(|(port, _)| port.0).collect();
        ports.sort_unstable();
        ports
    }

    /// Takes the frames to be sent.
    pub(crate) fn sent(&mut self) -> Vec<(PortNo, Vec<u8>)> {
        let lists = self.out.frames.drain(..);
        lists.flat_map(|(port, frames)| frames.into_iter().map(move |f| (port, f.bytes().to_vec()))).collect()
    }

    /// Sends a message. Returns the messages to its channel, which include the answers.
    pub(crate) fn ask(&mut self, channel: ChannelId, body: Body) -> Vec<Body> {
        let message = Message { xid: 77, body };
        self.datapath.handle(self.now, channel, message, &mut self.pool, &mut self.out);
        self.told(channel)
    }

    /// Sends a multipart request. Returns the bodies of the reply's parts.
    pub(crate) fn multipart(&mut self, channel: ChannelId, body: RequestBody) -> Result<Vec<ReplyBody>, ErrorType> {
        let mut parts = Vec::new();
        let answers = self.ask(channel, Body::MultipartRequest(MultipartRequest { more: false, body }));
        let count = answers.len();
        for (number, answer) in answers.into_iter().enumerate() {
            match answer {
                Body::MultipartReply(reply) => {
                    assert_eq!(reply.more, number + 1 < count);
                    parts.push(reply.body);
                }
                Body::Error(error) => return Err(error.error),
                other => panic!("{other:?}"),
            }
        }
        Ok(parts)
    }

    /// Sends a message. Returns the error that answers it, if there is one.
    pub(crate) fn error_of(&mut self, channel: ChannelId, body: Body) -> Option<ErrorType> {
        self.ask(channel, body).into_iter().find_map(|body| match body {
            Body::Error(error) => Some(error.error),
            _ => None,
        })
    }

    /// Takes the messages to a channel.
    pub(crate) fn told(&mut self, wanted: ChannelId) -> Vec<Body> {
        let messages = std::mem::take(&mut self.out.messages);
        let (ours, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(|(channel, _)| *channel == wanted);
        self.out.messages = others;
        ours.into_iter().map(|(_, message)| message.body).collect()
    }

    /// Takes the packet-ins to a channel, and drops its other messages.
    pub(crate) fn packet_ins(&mut self, channel: ChannelId) -> Vec<PacketIn> {
        let told = self.told(channel).into_iter();
        told.filter_map(|body| if let Body::PacketIn(packet) = body { Some(packet) } else { None }).collect()
    }
}

/// Returns the description of a port.
pub(crate) fn port(number: u32) -> PortDesc {
    PortDesc::new(PortNo(number), mac(0xf0 + u64::from(number)), format!("p{number}"))
}

/// Returns a frame of 214 bytes that is not an IP packet.
pub(crate) fn frame() -> Vec<u8> {
    FrameBuilder::ethernet(mac(2), mac(1)).payload(&[5; 200]).build()
}

/// Returns a local unicast address.
pub(crate) fn mac(number: u64) -> MacAddr {
    MacAddr::from_bits(0x0200_0000_0000 | number)
}

/// Returns a list of one apply-actions instruction.
pub(crate) fn apply(actions: Vec<Action>) -> Vec<Instruction> {
    vec![Instruction::ApplyActions(actions)]
}

/// Returns a list of one output.
pub(crate) fn output(port: u32) -> Vec<Action> {
    vec![Action::output(PortNo(port))]
}

/// Returns a match on the input port.
pub(crate) fn from_port(port: u32) -> Match {
    Match::any().with(Field::InPort, port)
}
