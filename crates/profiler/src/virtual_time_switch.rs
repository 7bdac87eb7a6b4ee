//! Emulates a switch with a profile in virtual time. Measurements are tested against it, because its parameters are
//! known and no machine disturbs it.
//!
//! Times come from [`weir_device::TimingStage`], which the live switch and simulations also use. Packet handling is
//! limited to what measuring needs: one table, output to a port, to the input port or to the controller.
mod flows;

use crate::ProfilerError;
use crate::device::{DeviceEvent, DeviceUnderTest};
use flows::FlowEntriesByMask;
use std::collections::VecDeque;
use weir_device::{CommandRecord, DataPathPacket, ReleaseKind, TimingStage};
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::multipart::{AggregateStats, MultipartReply, ReplyBody, RequestBody, SwitchDesc};
use weir_openflow::model::{
    Body, Bytes, ErrorMessage, FlowMod, Match, Message, PacketIn, PacketInReason, PacketOut, PortDesc, PortNo, TableId,
    Version,
};
use weir_packet::{Field, MacAddr};
use weir_profile::{MatchLayers, Profile};
use weir_units::Instant;

/// Item deferred by the stage.
#[derive(Debug)]
enum DeferredStageItem {
    FlowMod(u32, Box<FlowMod>),
    Barrier(u32),
    /// Frame to be sent to port `out`; with its input port, for packet-ins.
    Frame {
        in_port: PortNo,
        out: PortNo,
        bytes: Vec<u8>,
    },
    PacketOut(Box<PacketOut>),
    /// Packet that matched no entry, or an entry that drops it.
    Nothing,
}

/// Faults to inject into a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SwitchFaults {
    /// Number of messages after which the channel ends.
    pub ends_after: Option<u64>,
    /// Number of messages after which further ones are neither answered nor carried out.
    pub hangs_after: Option<u64>,
    /// True if the interfaces are connected to the ports in reverse order.
    pub crossed: bool,
}

/// Switch in virtual time; see the module documentation above for what it emulates.
#[derive(Debug)]
pub struct VirtualTimeSwitch {
    now: Instant,
    interfaces: usize,
    stage: TimingStage<DeferredStageItem>,
    flows: FlowEntriesByMask,
    last_level: usize,
    came: VecDeque<DeviceEvent>,
    faults: SwitchFaults,
    messages: u64,
}

impl VirtualTimeSwitch {
    /// Creates a switch with a profile; equal seeds give equal times.
    ///
    /// # Errors
    /// The profile takes no time, or has parts that only formulas support.
    pub fn new(profile: &Profile, interfaces: usize, seed: u64) -> Result<VirtualTimeSwitch, ProfilerError> {
        let stage = TimingStage::new(profile, seed)?
            .ok_or_else(|| ProfilerError::wrong("profile", &profile.name, "one that takes time: not a native one"))?;
        Ok(VirtualTimeSwitch {
            now: Instant::ZERO,
            interfaces,
            stage,
            flows: FlowEntriesByMask::default(),
            last_level: profile.levels.len().saturating_sub(1),
            came: VecDeque::new(),
            faults: SwitchFaults::default(),
            messages: 0,
        })
    }

    /// Returns the switch with faults.
    #[must_use]
    pub fn with(self, faults: SwitchFaults) -> VirtualTimeSwitch {
        VirtualTimeSwitch { faults, ..self }
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.flows.len()
    }

    /// Returns the records of commands since the last call: the truth that measurements try to find.
    pub fn take_records(&mut self) -> Vec<CommandRecord> {
        self.stage.take_records()
    }

    /// Returns the number of messages received.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    fn port(&self, interface: usize) -> PortNo {
        let at = if self.faults.crossed { self.interfaces - 1 - interface } else { interface };
        PortNo(u32::try_from(at + 1).unwrap_or(u32::MAX))
    }

    fn interface(&self, port: PortNo) -> Option<usize> {
        (0..self.interfaces).find(|interface| self.port(*interface) == port)
    }

    fn say(&mut self, at: Instant, xid: u32, body: Body) {
        self.came.push_back(DeviceEvent::Message { at, message: Message { xid, body } });
    }

    fn take(&mut self, message: &Message) {
        let (now, xid) = (self.now, message.xid);
        match &message.body {
            Body::FlowMod(flow) => self.stage.command(now, DeferredStageItem::FlowMod(xid, Box::new(flow.clone()))),
            Body::BarrierRequest => self.stage.barrier(now, DeferredStageItem::Barrier(xid)),
            Body::EchoRequest(data) => self.say(now, xid, Body::EchoReply(data.clone())),
            Body::PacketOut(out) => {
                let bytes = u32::try_from(out.data.0.len()).unwrap_or(u32::MAX);
                if let Ok(Some(DeferredStageItem::PacketOut(out))) =
                    self.stage.packet_out(now, bytes, DeferredStageItem::PacketOut(Box::new(out.clone())))
                {
                    self.carry_out(now, *out);
                }
            }
            Body::MultipartRequest(request) => {
                if let Some(body) = self.statistics(&request.body) {
                    self.say(now, xid, Body::MultipartReply(MultipartReply { more: false, body }));
                }
            }
            _ => {}
        }
    }

    fn statistics(&self, request: &RequestBody) -> Option<ReplyBody> {
        match request {
            RequestBody::Desc => {
                let text = |text: &str| text.to_owned();
                Some(ReplyBody::Desc(SwitchDesc {
                    mfr_desc: text("weir"),
                    hw_desc: text("virtual time"),
                    sw_desc: text(env!("CARGO_PKG_VERSION")),
                    serial_num: String::new(),
                    dp_desc: String::new(),
                }))
            }
            RequestBody::PortDesc(_) => {
                let port = |interface| {
                    let number = self.port(interface);
                    PortDesc::new(number, MacAddr([2, 0, 0, 0, 0, number.0.to_be_bytes()[3]]), format!("p{number}"))
                };
                Some(ReplyBody::PortDesc((0..self.interfaces).map(port).collect()))
            }
            RequestBody::Aggregate(_) => Some(ReplyBody::Aggregate(AggregateStats {
                flow_count: u32::try_from(self.flows.len()).unwrap_or(u32::MAX),
                ..AggregateStats::default()
            })),
            RequestBody::Flow(_) => Some(ReplyBody::Flow(Vec::new())),
            _ => None,
        }
    }

    /// Accepts a frame. The matching entry is looked up now, and the output happens when the data path is done. A
    /// frame without an entry has passed all levels.
    fn enter(&mut self, in_port: PortNo, bytes: &[u8]) {
        let found = self.flows.find(in_port, bytes);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let (mut level, mut kind) = (self.last_level, MatchLayers::L2);
        if let Some(found) = &found {
            kind = found.kind;
            level = self.stage.tables().map_or(0, |tables| {
                tables.matched(found.name, length);
                tables.level_of(found.name).unwrap_or(0)
            });
        }
        let passing = DataPathPacket { level, kind, bytes: length, flow: weir_device::flow_of(bytes) };
        let held = found
            .and_then(|found| found.out)
            .map_or(DeferredStageItem::Nothing, |out| DeferredStageItem::Frame { in_port, out, bytes: bytes.to_vec() });
        // A packet without room in the stage's buffer is lost and counted there.
        let _ = self.stage.packet(self.now, passing, held);
    }

    fn carry_out(&mut self, at: Instant, out: PacketOut) {
        for port in flows::outputs(&out.actions) {
            self.leave(at, out.in_port, port, out.data.0.clone());
        }
    }

    fn leave(&mut self, at: Instant, in_port: PortNo, out: PortNo, bytes: Vec<u8>) {
        let port = if out == PortNo::IN_PORT { in_port } else { out };
        if let Some(interface) = self.interface(port) {
            self.came.push_back(DeviceEvent::Frame { at, interface, bytes });
        }
    }

    fn ask_controller(&mut self, at: Instant, in_port: PortNo, bytes: Vec<u8>) {
        let packet = PacketIn {
            buffer_id: None,
            total_len: u16::try_from(bytes.len()).unwrap_or(u16::MAX),
            reason: PacketInReason::Action,
            table: TableId(0),
            cookie: 0,
            matching: Match::any().with(Field::InPort, in_port.0),
            data: Bytes(bytes),
        };
        self.say(at, 0, Body::PacketIn(packet));
    }

    /// Completes the next item that is due. Returns false if there is none.
    fn release(&mut self) -> bool {
        let flows = &self.flows;
        let mut describe = |held: &DeferredStageItem| match held {
            DeferredStageItem::FlowMod(_, flow) => flows.work(flow),
            _ => weir_device::TableEffect::Nothing,
        };
        let Some(released) = self.stage.release(self.now, &mut describe) else { return false };
        let due = released.due;
        match (released.part, released.item) {
            (ReleaseKind::Command, DeferredStageItem::FlowMod(_, flow)) => {
                self.flows.apply(&flow, self.stage.tables());
            }
            (ReleaseKind::Refused, DeferredStageItem::FlowMod(xid, _)) => {
                let error = ErrorMessage { error: FlowModFailed::TableFull.into(), data: Bytes::default() };
                self.say(due, xid, Body::Error(error));
            }
            (ReleaseKind::Barrier, DeferredStageItem::Barrier(xid)) => self.say(due, xid, Body::BarrierReply),
            (ReleaseKind::Data, DeferredStageItem::Frame { in_port, out: PortNo::CONTROLLER, bytes }) => {
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let held = DeferredStageItem::Frame { in_port, out: PortNo::CONTROLLER, bytes };
                if let Ok(Some(DeferredStageItem::Frame { bytes, .. })) = self.stage.packet_in(due, length, held) {
                    self.ask_controller(due, in_port, bytes);
                }
            }
            (ReleaseKind::PacketIn, DeferredStageItem::Frame { in_port, bytes, .. }) => {
                self.ask_controller(due, in_port, bytes)
            }
            (ReleaseKind::Data, DeferredStageItem::Frame { in_port, out, bytes }) => {
                self.leave(due, in_port, out, bytes)
            }
            (ReleaseKind::PacketOut, DeferredStageItem::PacketOut(out)) => self.carry_out(due, *out),
            _ => {}
        }
        true
    }
}

impl DeviceUnderTest for VirtualTimeSwitch {
    fn now(&self) -> Instant {
        self.now
    }

    fn interfaces(&self) -> usize {
        self.interfaces
    }

    fn version(&self) -> Option<Version> {
        Some(Version::V13)
    }

    fn send(&mut self, messages: &[Message]) -> Result<(), ProfilerError> {
        for message in messages {
            self.messages += 1;
            if self.faults.ends_after.is_some_and(|most| self.messages > most) {
                let reason = "the switch closed the connection".to_owned();
                return Err(ProfilerError::Ended { during: "sending messages".to_owned(), reason });
            }
            if self.faults.hangs_after.is_none_or(|most| self.messages <= most) {
                self.take(message);
            }
        }
        Ok(())
    }

    fn transmit(&mut self, interface: usize, frame: &[u8]) -> Result<Option<Instant>, ProfilerError> {
        // Items due before the frame arrives are completed first.
        while self.release() {}
        self.enter(self.port(interface), frame);
        Ok(Some(self.now))
    }

    fn wait(&mut self, until: Instant) -> Result<Option<DeviceEvent>, ProfilerError> {
        loop {
            if let Some(seen) = self.came.pop_front() {
                return Ok(Some(seen));
            }
            let due = self.stage.due();
            if due > until {
                self.now = self.now.max(until);
                return Ok(None);
            }
            self.now = self.now.max(due);
            self.release();
        }
    }
}
