//! An emulated switch: weir's datapath between ports, and the ends of its control channels.
use std::collections::HashSet;
use std::time::Duration;
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::PortDesc;
use weir_openflow::model::port::{bits, feature};
use weir_openflow::session::{Session, SessionConfig};
use weir_packet::{MacAddr, PortNo};
use weir_units::Instant;

/// Tables of a switch: controllers with a pipeline use a few.
const TABLES: u8 = 8;
/// Packets that a switch keeps for the controller.
const BUFFERS: u32 = 1024;
/// Rate of the ports in kbit/s.
const PORT_KBPS: u32 = 10_000_000;
/// Time that the controller has for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(20);

/// An emulated switch.
pub(super) struct TestNode {
    pub(super) datapath: Datapath,
    /// Time of the next call of [`Datapath::expire`].
    pub(super) expire_at: Instant,
}

impl TestNode {
    /// Returns the switch with a number and so many ports, which are up. Datapath ids count from 1.
    pub(super) fn new(node: usize, ports: usize, out: &mut DatapathOutput) -> TestNode {
        let datapath_id = node as u64 + 1;
        let name = format!("s{datapath_id}");
        let config =
            DatapathConfig { datapath_id, name, n_tables: TABLES, n_buffers: BUFFERS, ..DatapathConfig::default() };
        let mut datapath = Datapath::new(config);
        let [.., high, low] = datapath_id.to_be_bytes();
        for number in (1..).take(ports) {
            let address = MacAddr([0x0e, 0, high, low, 0, u8::try_from(number % 256).unwrap_or(0)]);
            let desc = PortDesc {
                state: bits::LIVE,
                curr: feature::FD_10GB,
                curr_speed: PORT_KBPS,
                max_speed: PORT_KBPS,
                ..PortDesc::new(PortNo(number), address, format!("s{datapath_id}-p{number}"))
            };
            datapath.add_port(Instant::ZERO, desc, out).expect("a new datapath has room for its ports");
        }
        TestNode { datapath, expire_at: Instant::ZERO }
    }

    /// Brings a port's link up or down, which channels are told.
    pub(super) fn set_link(&mut self, now: Instant, port: u32, is_up: bool, out: &mut DatapathOutput) {
        self.datapath.set_link(now, PortNo(port), is_up, PORT_KBPS, out);
    }
}

/// Progress of a control channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestChannelStage {
    /// Hello is sent.
    Connecting,
    /// The controller has asked for the switch's features.
    SetUp,
    /// The connection has ended.
    Ended,
}

/// End of a control channel.
pub(super) struct TestChannel {
    pub(super) node: usize,
    pub(super) session: Session,
    pub(super) stage: TestChannelStage,
    /// Reason of the end; empty before.
    pub(super) reason: String,
    /// True for the channel to the standby controller.
    pub(super) is_standby: bool,
    /// True once another channel took the place of this one after its end.
    pub(super) is_replaced: bool,
}

impl TestChannel {
    /// Returns a channel that has just connected.
    pub(super) fn new(node: usize, version: Version, now: Instant, is_standby: bool) -> TestChannel {
        // Echo requests would add to what is measured.
        let config = SessionConfig {
            versions: vec![version],
            echo_interval: Duration::ZERO,
            handshake_timeout: HANDSHAKE,
            max_output_bytes: 16 << 20,
        };
        TestChannel {
            node,
            session: Session::switch(config, now),
            stage: TestChannelStage::Connecting,
            reason: String::new(),
            is_standby,
            is_replaced: false,
        }
    }
}

/// Returns the datapath's number of a channel.
pub(super) fn channel_id(number: usize) -> ChannelId {
    ChannelId(u32::try_from(number).map_or(u32::MAX >> 1, |number| number + 1))
}

/// Returns the channel with a datapath's number; `None` for the datapath's own.
pub(super) fn channel_number(id: ChannelId) -> Option<usize> {
    usize::try_from(id.0).ok()?.checked_sub(1)
}

/// Channels that may have output, each once.
#[derive(Debug, Default)]
pub(super) struct TouchedChannels {
    order: Vec<usize>,
    known: HashSet<usize>,
}

impl TouchedChannels {
    /// Notes a channel.
    pub(super) fn add(&mut self, number: usize) {
        if self.known.insert(number) {
            self.order.push(number);
        }
    }

    /// Returns the channels, and forgets them.
    pub(super) fn take(&mut self) -> Vec<usize> {
        self.known.clear();
        std::mem::take(&mut self.order)
    }
}
