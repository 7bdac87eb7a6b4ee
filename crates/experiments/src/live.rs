//! Runs a live switch, with or without a profile, and a controller that returns every packet at once, so that only
//! the switch takes time.
use crate::ExperimentError;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use weir_controller::{ConnectionId, Controller, ControllerApp, ControllerConfig, ControllerOutbox, ListenAddress};
use weir_device::ProfileConfig;
use weir_emulator::CancelHandle;
use weir_openflow::model::{Action, FeaturesReply, FlowMod, Instruction, Match, PacketOut, PortNo};
use weir_openflow::{Body, Message, Version};
use weir_packet::Field;
use weir_packet::field::{eth_type, ip_proto};
use weir_port::Port;
use weir_profile::Profile;
use weir_switch::{
    ControllerTarget, ListenTarget, PortConfig, SoftwareSwitch, SoftwareSwitchConfig, Spin, SwitchHandle,
};
use weir_units::{Clock, SystemClock};

/// Input port and output port of packets.
pub(crate) const PORTS: [PortNo; 2] = [PortNo(1), PortNo(2)];
/// UDP port of packets that go to the controller.
pub(crate) const ASKING: u16 = 99;
/// Polling of switches whose own times are measured: long enough that they do not sleep, because the machine's time
/// to wake a thread is not part of the switch.
pub(crate) const AWAKE: Spin = Spin::For(Duration::from_secs(1));
/// Time to wait for the connection of switch and controller.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Connection between a switch and its controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlChannelKind {
    /// Controller in this process.
    Within,
    /// TCP on the loopback interface, where a tap can observe it.
    Tcp,
    /// No controller yet: the switch listens on the loopback interface.
    Listens,
}

/// A running switch and its controller. On drop, the switch stops before the controller.
pub(crate) struct SwitchWithController {
    switch: SwitchHandle,
    _controller: Option<Controller>,
}

impl SwitchWithController {
    /// Starts a switch with these ports, numbered from 1, and waits until its controller is connected.
    pub(crate) fn start(
        profile: Option<&Profile>,
        ports: Vec<Box<dyn Port>>,
        channel: ControlChannelKind,
        (spin, seed): (Spin, u64),
        cancel: &CancelHandle,
    ) -> Result<SwitchWithController, ExperimentError> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let controller = match channel {
            ControlChannelKind::Listens => None,
            ControlChannelKind::Within => Some(controller(Vec::new())?),
            ControlChannelKind::Tcp => Some(controller(vec![ListenAddress::Tcp(any)])?),
        };
        let address = controller.as_ref().and_then(|controller| controller.addresses().first());
        let controllers = match address {
            Some(ListenAddress::Tcp(address)) => vec![ControllerTarget::Tcp((*address).into()).into()],
            _ => Vec::new(),
        };
        let ports = (1..).zip(ports).map(|(number, port)| PortConfig::new(PortNo(number), port)).collect();
        let profile = profile.map(|profile| ProfileConfig { profile: Box::new(profile.clone()), seed });
        let listeners = if channel == ControlChannelKind::Listens { vec![ListenTarget::Tcp(any)] } else { Vec::new() };
        let switch = SoftwareSwitch::start(SoftwareSwitchConfig {
            ports,
            controllers,
            listeners,
            profile,
            spin,
            ..SoftwareSwitchConfig::default()
        })?;
        if let (ControlChannelKind::Within, Some(controller)) = (channel, &controller) {
            switch.connect_stream(controller.connect())?;
        }
        let started = SwitchWithController { switch, _controller: controller };
        if channel != ControlChannelKind::Listens {
            started.await_control(cancel)?;
        }
        Ok(started)
    }

    fn await_control(&self, cancel: &CancelHandle) -> Result<(), ExperimentError> {
        let clock = SystemClock::start();
        let deadline = clock.now() + PATIENCE;
        while self.switch.snapshot()?.channels_up() == 0 && !cancel.wait(LOOK_EVERY) {
            if clock.now() >= deadline {
                return Err(ExperimentError::Case(format!("switch and controller did not meet within {PATIENCE:?}")));
            }
        }
        Ok(())
    }

    /// Installs entries: packets to UDP port [`ASKING`] go to the controller, others from the first port to the
    /// second.
    pub(crate) fn forward(&self) -> Result<(), ExperimentError> {
        let [from, to] = PORTS;
        let asking = Match::any()
            .with(Field::InPort, from.0)
            .with(Field::EthType, eth_type::IPV4)
            .with(Field::IpProto, ip_proto::UDP)
            .with(Field::UdpDst, ASKING);
        self.install(vec![entry(20, asking, Action::to_controller()), passing(from, to)])
    }

    /// Installs entries that forward from one port to another, for each pair.
    pub(crate) fn pass(&self, ways: &[(PortNo, PortNo)]) -> Result<(), ExperimentError> {
        self.install(ways.iter().map(|(from, to)| passing(*from, *to)).collect())
    }

    fn install(&self, flows: Vec<FlowMod>) -> Result<(), ExperimentError> {
        Ok(self.switch.flow_mods(flows)?)
    }

    /// Returns the address on which the switch listens, in the profiler's syntax.
    pub(crate) fn target(&self) -> String {
        match self.switch.listeners().first() {
            Some(ListenTarget::Tcp(address)) => format!("tcp:{address}"),
            _ => String::new(),
        }
    }

    /// Returns how late the profile's delayed messages and packets were released, median and 99th percentile, in
    /// microseconds; `None` without a profile.
    pub(crate) fn lateness_us(&self) -> Result<Option<[f64; 2]>, ExperimentError> {
        let timing = self.switch.snapshot()?.timing;
        Ok(timing.map(|timing| [timing.lateness.p50_s * 1e6, timing.lateness.p99_s * 1e6]))
    }
}

fn controller(listen: Vec<ListenAddress>) -> Result<Controller, ExperimentError> {
    let failed = |error: std::io::Error| ExperimentError::Case(format!("starting a controller: {error}"));
    Controller::start(Box::new(PacketInReflector), ControllerConfig { listen, ..ControllerConfig::default() })
        .map_err(failed)
}

fn entry(priority: u16, matching: Match, action: Action) -> FlowMod {
    FlowMod::add(priority, matching, vec![Instruction::ApplyActions(vec![action])])
}

fn passing(from: PortNo, to: PortNo) -> FlowMod {
    entry(10, Match::any().with(Field::InPort, from.0), Action::output(to))
}

/// Application of the controller: returns every packet-in as a packet-out.
struct PacketInReflector;

impl ControllerApp for PacketInReflector {
    fn handle_switch_up(
        &mut self,
        _now: weir_units::Instant,
        _switch: ConnectionId,
        _version: Version,
        _features: &FeaturesReply,
        _out: &mut ControllerOutbox,
    ) {
    }

    fn handle_message(
        &mut self,
        _now: weir_units::Instant,
        switch: ConnectionId,
        message: Message,
        out: &mut ControllerOutbox,
    ) {
        let Body::PacketIn(packet) = message.body else { return };
        out.push((switch, Message { xid: 0, body: Body::PacketOut(sent_on(packet.data.0, PORTS[1])) }));
    }

    fn handle_switch_down(&mut self, _now: weir_units::Instant, _switch: ConnectionId) {}
}

/// Returns a packet-out of a packet by a port.
pub(crate) fn sent_on(packet: Vec<u8>, port: PortNo) -> PacketOut {
    PacketOut {
        buffer_id: None,
        in_port: PortNo::ANY,
        matching: Match::any(),
        actions: vec![Action::output(port)],
        data: weir_openflow::model::Bytes(packet),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_generator::{FrameSpec, TrafficRun, TrafficRunConfig, TrafficSenderConfig};
    use weir_port::memory;
    use weir_traffic::{ArrivalProcess, FlowMix, OfferedPackets, OfferedTraffic, PacketSizeLaw};

    #[test]
    fn packets_take_either_way() {
        let ([near, inlet], [outlet, far]) = (pair(), pair());
        let spin = (Spin::Auto, 1);
        let switch = SwitchWithController::start(
            None,
            vec![Box::new(inlet), Box::new(outlet)],
            ControlChannelKind::Within,
            spin,
            &CancelHandle::new(),
        )
        .unwrap();
        switch.forward().unwrap();
        let offered = OfferedPackets::Rule {
            arrival: ArrivalProcess::Constant,
            per_second: 500.0,
            size: PacketSizeLaw::Fixed(100),
        };
        let offer = OfferedTraffic::Packets { offered, flows: FlowMix { new: 0.5, ..FlowMix::default() } };
        let frames = FrameSpec { new_flow_port: Some(ASKING), ..FrameSpec::default() };
        let source = TrafficSenderConfig { offer, replay: None, frames, seed: 1 };
        let config = TrafficRunConfig { duration: Some(Duration::from_millis(200)), ..TrafficRunConfig::default() };
        let rig = TrafficRun::new(config, Some((source, Box::new(near))), Some(Box::new(far)), Vec::new()).unwrap();
        let report = rig.run(&mut || false, &mut |_| ()).unwrap();
        let (sent, received) = (report.sent.unwrap(), report.received.unwrap());
        // On a busy machine the sender may not reach its rate. Half of the packets go to the controller, by chance.
        assert_eq!((received.received, received.lost), (sent.sent, 0));
        assert!(received.new_flows.unwrap().samples * 5 > sent.sent && sent.sent > 0, "of {}", sent.sent);
        assert_eq!(switch.lateness_us().unwrap(), None, "it has no profile");
    }

    fn pair() -> [memory::MemoryPort; 2] {
        memory::pair(1024).unwrap().into()
    }
}
