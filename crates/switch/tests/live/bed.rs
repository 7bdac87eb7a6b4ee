//! Hosts on memory ports, and controllers driven by a test.
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use weir_openflow::model::flow::FlowMod;
use weir_openflow::model::{Action, FeaturesReply, Instruction, Match, MultipartRequest, PortNo};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Body, Message, Version};
use weir_packet::frame::{PartialChecksum, Segmentation, SegmentationKind};
use weir_packet::{Field, Frame, FramePool, MacAddr, craft::FrameBuilder};
use weir_port::event::wait_readable;
use weir_port::memory::{MemoryPort, pair};
use weir_port::{Port, ReceiveReadiness};
use weir_switch::{PortConfig, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle};
use weir_units::{Clock, Instant, SystemClock};

/// Time limit for anything in a test: many times the usual duration, because other tests and programs use the machine
/// as well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a switch with hosts on ports 1, 2, ...
pub(crate) fn switch(hosts: u32, config: SoftwareSwitchConfig) -> (SwitchHandle, Vec<Host>) {
    let (ports, hosts): (Vec<_>, Vec<_>) = (1..=hosts).map(port).unzip();
    (SoftwareSwitch::start(SoftwareSwitchConfig { ports, threads: crate::threads(), ..config }).unwrap(), hosts)
}

/// Makes a port, and the host at its other end.
pub(crate) fn port(number: u32) -> (PortConfig, Host) {
    let (inside, outside) = pair(4096).unwrap();
    let name = format!("p{number}");
    let host = Host { number, port: outside, pool: FramePool::default(), received: Vec::new() };
    (PortConfig::new(PortNo(number), Box::new(inside.named(&name))), host)
}

/// Host at the other end of a switch's port.
pub(crate) struct Host {
    pub(crate) number: u32,
    port: MemoryPort,
    pool: FramePool,
    received: Vec<Frame>,
}

impl Host {
    pub(crate) fn mac(&self) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, u8::try_from(self.number).unwrap()])
    }

    /// Sends a datagram with `tag` in its payload.
    pub(crate) fn send(&mut self, to: &Host, tag: u64) {
        self.send_flow(to, 2, tag);
    }

    /// Sends a datagram with `tag` to UDP port `port`: each port is a flow of its own.
    pub(crate) fn send_flow(&mut self, to: &Host, port: u16, tag: u64) {
        let frame = FrameBuilder::ethernet(to.mac(), self.mac())
            .ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
            .udp(1, port)
            .payload(&tag.to_be_bytes())
            .frame();
        self.port.transmit(Instant::ZERO, &mut self.pool, &mut vec![frame]).unwrap();
    }

    /// Returns true if the switch's end is still open.
    #[allow(dead_code, reason = "not every kind of switch is asked")]
    pub(crate) fn is_connected(&mut self) -> bool {
        self.port.link().up
    }

    /// Sends a broadcast in a VLAN with a priority, or untagged.
    #[allow(dead_code, reason = "not every kind of switch is asked")]
    pub(crate) fn broadcast(&mut self, tag: Option<(u16, u8)>) {
        let craft = FrameBuilder::ethernet(MacAddr([0xff; 6]), self.mac());
        let craft = tag.into_iter().fold(craft, |craft, (vlan, priority)| craft.vlan(0x8100, vlan, priority));
        let frame = craft.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 255].into()).udp(1, 2).payload(b"all").frame();
        self.port.transmit(Instant::ZERO, &mut self.pool, &mut vec![frame]).unwrap();
    }

    /// Sends a datagram that is to be segmented into several, with `segment_bytes` bytes of payload each.
    #[allow(dead_code, reason = "not every kind of switch is asked")]
    pub(crate) fn send_segments(&mut self, payload: &[u8], segment_bytes: u16) {
        let craft = FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 9]), self.mac());
        let mut frame = craft.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2).payload(payload).frame();
        let kind = SegmentationKind::Udp;
        frame.offload.checksum = Some(PartialChecksum { start: 34, offset: 6 });
        frame.offload.segmentation = Some(Segmentation { kind, segment_bytes, header_bytes: 42 });
        self.port.transmit(Instant::ZERO, &mut self.pool, &mut vec![frame]).unwrap();
    }

    /// Returns the tag of the next frame received.
    pub(crate) fn tag(&mut self) -> u64 {
        let frame = self.next(PATIENCE).expect("a frame arrives");
        u64::from_be_bytes(frame.bytes()[42..50].try_into().unwrap())
    }

    /// Returns the next frame received within `limit`.
    pub(crate) fn next(&mut self, limit: Duration) -> Option<Frame> {
        let clock = SystemClock::start();
        loop {
            if self.received.is_empty() {
                self.port.receive(Instant::ZERO, &mut self.pool, &mut self.received, 64).unwrap();
            }
            if !self.received.is_empty() {
                return Some(self.received.remove(0));
            }
            let left = limit.saturating_sub(clock.now().since(Instant::ZERO));
            if left.is_zero() {
                return None;
            }
            if self.port.arm() == ReceiveReadiness::OnDescriptor {
                wait_readable(self.port.fd().unwrap(), u32::try_from(left.as_millis()).unwrap().max(1));
            }
        }
    }
}

/// A controller's end of a channel.
pub(crate) struct Controller<S> {
    stream: S,
    session: Session,
    clock: SystemClock,
    /// Features reply of the switch.
    pub(crate) features: FeaturesReply,
}

impl Controller<tokio::io::DuplexStream> {
    /// Connects a controller in this process and waits until its channel is up. At most `buffer` bytes are in transit
    /// in either direction.
    pub(crate) async fn embedded(switch: &SwitchHandle, buffer: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(buffer);
        switch.connect_stream(theirs).unwrap();
        Controller::up(ours).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Controller<S> {
    /// Completes the handshake on `stream`.
    pub(crate) async fn up(stream: S) -> Self {
        let clock = SystemClock::start();
        let config = SessionConfig { versions: vec![Version::V13, Version::V10], ..SessionConfig::default() };
        let session = Session::controller(config, clock.now());
        let mut controller = Controller { stream, session, clock, features: FeaturesReply::default() };
        match controller.event().await {
            SessionEvent::Up { features: Some(features), .. } => controller.features = features,
            other => panic!("{other:?}"),
        }
        controller
    }

    /// Sends a message and waits until the stream has accepted it. Returns its transaction id.
    pub(crate) async fn send(&mut self, body: Body) -> u32 {
        let xid = self.session.allocate_xid();
        self.session.send(&Message { xid, body }).unwrap();
        self.flush().await;
        xid
    }

    /// Returns the next message of any kind.
    pub(crate) async fn message(&mut self) -> Message {
        match self.event().await {
            SessionEvent::Message(message) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the next message that `wanted` accepts; earlier ones are skipped.
    pub(crate) async fn expect<T>(&mut self, wanted: impl Fn(Message) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.message().await) {
                return found;
            }
        }
    }

    /// Waits until everything sent before has been carried out.
    pub(crate) async fn barrier(&mut self) {
        let xid = self.send(Body::BarrierRequest).await;
        self.expect(|message| (message.xid == xid && message.body == Body::BarrierReply).then_some(())).await;
    }

    /// Waits until the switch ends the channel.
    pub(crate) async fn closed(&mut self) {
        loop {
            let mut piece = [0; 4096];
            match tokio::time::timeout(PATIENCE, self.stream.read(&mut piece)).await.expect("in time") {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Sends bytes encoded by hand.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    async fn event(&mut self) -> SessionEvent {
        loop {
            if let Some(event) = self.session.take_event() {
                return event;
            }
            self.flush().await;
            let mut piece = [0; 16 * 1024];
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut piece)).await.expect("in time").unwrap();
            assert!(read > 0, "the switch closed the channel");
            self.session.receive(self.clock.now(), &piece[..read]);
        }
    }

    async fn flush(&mut self) {
        let bytes = std::mem::take(self.session.output());
        tokio::time::timeout(PATIENCE, self.stream.write_all(&bytes)).await.expect("in time").unwrap();
    }
}

/// Returns a flow-mod that forwards frames from one port to another.
pub(crate) fn forward(from: u32, to: u32) -> FlowMod {
    let matching = Match::any().with(Field::InPort, from);
    FlowMod::add(10, matching, vec![Instruction::ApplyActions(vec![Action::output(PortNo(to))])])
}

/// Returns a flow-mod that sends table misses to the controller.
pub(crate) fn punt() -> FlowMod {
    FlowMod::add(0, Match::any(), vec![Instruction::ApplyActions(vec![Action::to_controller()])])
}

pub(crate) fn multipart(body: weir_openflow::model::multipart::RequestBody) -> Body {
    Body::MultipartRequest(MultipartRequest { more: false, body })
}

/// Polls until `condition` is true, yielding in between.
///
/// # Panics
/// Panics after [`PATIENCE`].
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    let clock = SystemClock::start();
    while !condition() {
        assert!(clock.now().since(Instant::ZERO) < PATIENCE, "it did not come true within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
