//! A real datapath that holds entries of a router, without a controller's application.
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput};
use weir_openflow::Message;
use weir_openflow::Version;
use weir_openflow::model::{Body, PacketIn, PortDesc, PortNo};
use weir_packet::{Frame, FramePool, MacAddr};
use weir_units::Instant;
use weir_vrouter::entries::RouterEntry;

const CHANNEL: ChannelId = ChannelId(1);
const NOW: Instant = Instant::from_nanos(1);

/// Result of giving a frame to a switch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Outcome {
    /// Frames that left, with their ports.
    pub(crate) left: Vec<(u32, Vec<u8>)>,
    /// Packets that came to the controller.
    pub(crate) punted: Vec<PacketIn>,
}

pub(crate) struct PlainSwitch(Datapath);

impl PlainSwitch {
    /// Returns a switch with ports 1 to 9 and these entries.
    pub(crate) fn with(entries: &[RouterEntry]) -> PlainSwitch {
        let mut datapath = Datapath::new(DatapathConfig { datapath_id: 1, n_buffers: 0, ..DatapathConfig::default() });
        for port in 1..=9 {
            let desc = PortDesc::new(PortNo(port), MacAddr([2, 0, 0, 0, 0xff, 0]), format!("p{port}"));
            datapath.add_port(NOW, desc, &mut DatapathOutput::default()).unwrap();
        }
        datapath.channel_up(NOW, CHANNEL, Version::V13);
        let mut switch = PlainSwitch(datapath);
        for entry in entries {
            let answers = switch.tell(Body::FlowMod(entry.add()));
            assert_eq!(answers, [], "{entry}");
        }
        switch
    }

    /// Gives the switch a message. Returns its answers.
    pub(crate) fn tell(&mut self, body: Body) -> Vec<Body> {
        let (mut out, mut pool) = (DatapathOutput::default(), FramePool::new(0, 0));
        // What crosses the channel is what the codec can carry.
        let mut bytes = Vec::new();
        weir_openflow::encode(&Message { xid: 1, body }, Version::V13, &mut bytes).unwrap();
        let message = weir_openflow::decode(&bytes).unwrap();
        self.0.handle(NOW, CHANNEL, message, &mut pool, &mut out);
        out.messages.into_iter().map(|(_, message)| message.body).collect()
    }

    pub(crate) fn receive(&mut self, port: u32, frame: &[u8]) -> Outcome {
        let (mut out, mut pool) = (DatapathOutput::default(), FramePool::new(0, 0));
        self.0.process(NOW, PortNo(port), &mut vec![Frame::from_bytes(frame)], &mut pool, &mut out);
        let all = out.frames.into_iter();
        let left = all.flat_map(|(port, frames)| frames.into_iter().map(move |frame| (port.0, frame.bytes().to_vec())));
        let punted = out.messages.into_iter().map(|(_, message)| match message.body {
            Body::PacketIn(packet) => packet,
            other => panic!("{other:?}"),
        });
        Outcome { left: left.collect(), punted: punted.collect() }
    }
}
