//! What would happen to a packet, written down instead of done.
use crate::action_set::ActionSet;
use crate::channels::Channel;
use crate::effects::{Effects, Origin};
use crate::group::{self, BucketAt, Group};
use crate::meter::{PUNT_METERS, Verdict};
use crate::normal::Forward;
use crate::packet::Packet;
use crate::ports::Ports;
use crate::shape::EntryId;
use crate::table::FlowEntry;
use crate::validate::Known;
use crate::{Datapath, DropReason, execute, pipeline};
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;
use weir_openflow::model::nicira::ControllerAction;
use weir_openflow::model::{Action, FlowMod, GroupId, Match, MeterId, PacketInReason, PortNo};
use weir_openflow::{Version, text};
use weir_packet::offload::WireSize;
use weir_packet::{Field, FlowKey, FlowMask, Frame, Parsed, key::WORDS};
use weir_units::Instant;

/// What happened to a traced packet; `Display` for people, `Serialize` for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// The packet's fields that are not zero, in the form flow dumps have.
    pub packet: String,
    /// What happened, in order.
    pub steps: Vec<TraceStep>,
    /// Ports that it, or a copy of it, was sent to.
    pub outputs: Vec<PortNo>,
    /// Whether controllers were given it.
    pub to_controller: bool,
    /// Why it, or a copy of it, was dropped.
    pub drops: Vec<DropReason>,
}

/// One thing that happened to a traced packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceStep {
    /// It was looked up in a table and matched an entry.
    Matched {
        /// The table.
        table: u8,
        /// The entry, in the form flow dumps have.
        entry: String,
    },
    /// It was looked up in a table and matched nothing.
    Missed {
        /// The table.
        table: u8,
    },
    /// It was forwarded as in a switch without controller.
    Standalone,
    /// A meter measured it, or a packet for controllers, as it stands at this moment.
    Metered {
        /// The meter.
        meter: MeterId,
        /// What it does with the packet.
        verdict: String,
    },
    /// An action was run.
    Action(String),
    /// It, or a copy, took a bucket of a group.
    Bucket {
        /// The group.
        group: GroupId,
        /// Its type: `all`, `select`, `indirect` or `ff`.
        kind: &'static str,
        /// The bucket's number in the group, from 0.
        bucket: usize,
    },
    /// It goes to a port, through the egress tables.
    Egress {
        /// The port.
        port: PortNo,
    },
    /// It left.
    Sent {
        /// The port.
        port: PortNo,
        /// The port's queue, 0 if none was chosen.
        queue: u32,
        /// Its fields when it left.
        packet: String,
    },
    /// It went to controllers.
    Punted {
        /// Why.
        reason: PacketInReason,
    },
    /// It, or a copy, was dropped.
    Dropped(DropReason),
}

/// See [`Datapath::trace`].
pub(crate) fn trace(datapath: &Datapath, now: Instant, in_port: PortNo, bytes: &[u8]) -> Trace {
    let mut tracer = Tracer::new(datapath, now);
    if let Err(reason) = datapath.plane.ports.may_receive(in_port) {
        tracer.dropped(reason);
        return tracer.trace;
    }
    let mut frame = Frame::from_bytes(bytes);
    let Ok(mut parsed) = Parsed::of(&frame, in_port) else {
        tracer.dropped(DropReason::TooShort);
        return tracer.trace;
    };
    tracer.trace.packet = fields(&parsed.key, |_| true);
    if datapath.drops_fragments && parsed.key.get(Field::IpFrag) != 0 {
        tracer.dropped(DropReason::Fragment);
        return tracer.trace;
    }
    let mut packet = Packet::new(&mut frame, &mut parsed, in_port);
    if datapath.is_standalone() {
        tracer.step(TraceStep::Standalone);
        execute::normal(&mut packet, &mut tracer);
    } else {
        pipeline::run(&datapath.tables, &mut packet, &mut ActionSet::default(), &mut tracer);
    }
    packet.finish(&mut tracer);
    tracer.trace
}

/// Effects that are written down.
struct Tracer<'a> {
    datapath: &'a Datapath,
    now: Instant,
    trace: Trace,
}

impl<'a> Tracer<'a> {
    fn new(datapath: &'a Datapath, now: Instant) -> Tracer<'a> {
        let trace = Trace {
            packet: String::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
            to_controller: false,
            drops: Vec::new(),
        };
        Tracer { datapath, now, trace }
    }

    fn step(&mut self, step: TraceStep) {
        self.trace.steps.push(step);
    }

    /// Writes down that controllers get a packet, if some of them take it.
    fn offer(
        &mut self,
        packet: &Packet,
        reason: PacketInReason,
        otherwise: DropReason,
        takes: impl Fn(&Channel) -> bool,
    ) -> Result<(), DropReason> {
        let plane = &self.datapath.plane;
        if plane.ports.get(packet.in_port).is_some_and(|port| !port.allows_packet_in()) {
            return Err(DropReason::NoPacketIn);
        }
        if plane.channels.that(|channel| channel.wants_packet_in(reason) && takes(channel)).next().is_none() {
            return Err(otherwise);
        }
        for (meter, reason) in PUNT_METERS.into_iter().filter(|(meter, _)| plane.meters.contains(*meter)) {
            if self.meter(meter, WireSize::of(packet.frame)) == Verdict::Drop {
                return Err(reason);
            }
        }
        self.trace.to_controller = true;
        self.step(TraceStep::Punted { reason });
        Ok(())
    }
}

impl Effects for Tracer<'_> {
    fn ports(&self) -> &Ports {
        &self.datapath.plane.ports
    }

    fn looked_up(&mut self, table: u8, found: Option<(EntryId, &FlowEntry)>, _bytes: usize) {
        self.step(match found {
            Some((_, entry)) => TraceStep::Matched { table, entry: entry_text(entry) },
            None => TraceStep::Missed { table },
        });
    }

    fn first_egress(&self) -> Option<u8> {
        self.datapath.plane.first_egress
    }

    fn egress(&mut self, first: u8, port: PortNo, packet: &mut Packet) {
        self.step(TraceStep::Egress { port });
        pipeline::egress(&self.datapath.tables, first, port, packet, self);
    }

    fn meter(&mut self, meter: MeterId, size: WireSize) -> Verdict {
        let verdict = self.datapath.plane.meters.foresee(self.now, meter, size);
        self.step(TraceStep::Metered { meter, verdict: verdict.to_string() });
        verdict
    }

    fn acting(&mut self, action: &Action) {
        self.step(TraceStep::Action(text::format_actions(std::slice::from_ref(action), Version::V13)));
    }

    fn send_copy(&mut self, port: PortNo, frame: &Frame) {
        let in_frame = |field| field != Field::InPort;
        let packet = Parsed::of(frame, port).map(|parsed| fields(&parsed.key, in_frame)).unwrap_or_default();
        self.trace.outputs.push(port);
        self.step(TraceStep::Sent { port, queue: frame.queue, packet });
    }

    fn send(&mut self, port: PortNo, frame: Frame) {
        self.send_copy(port, &frame);
    }

    fn recycle(&mut self, _frame: Frame) {}

    fn punt(&mut self, packet: &Packet, origin: Origin, _max_len: u16) -> Result<(), DropReason> {
        self.offer(packet, origin.reason, DropReason::NoController, |channel| channel.nicira.id == 0)
    }

    fn punt_miss(&mut self, packet: &Packet, _table: u8) -> Result<(), DropReason> {
        self.offer(packet, PacketInReason::NoMatch, DropReason::TableMiss, |channel| channel.version == Version::V10)
    }

    fn normal(&mut self, packet: &mut Packet) -> Forward {
        self.datapath.plane.learned.forward(self.now, packet.key())
    }

    /// Only packet-outs resubmit; none is traced.
    fn resubmit(&mut self, _packet: &mut Packet) {}

    fn resubmit_to(&mut self, table: u8, port: PortNo, packet: &mut Packet, set: &mut ActionSet) -> ControlFlow<()> {
        pipeline::resubmit(&self.datapath.tables, table, port, packet, set, self)
    }

    fn punt_to(&mut self, packet: &Packet, origin: Origin, action: &ControllerAction) -> Result<(), DropReason> {
        self.offer(packet, origin.reason, DropReason::NoController, |channel| channel.nicira.id == action.id)
    }

    fn send_start(&mut self, port: PortNo, frame: &Frame, bytes: usize) {
        let mut start = frame.clone();
        start.truncate(bytes.min(frame.len()));
        self.send_copy(port, &start);
    }

    /// The action says it.
    fn learn(&mut self, _flow: FlowMod) {}

    fn group(&mut self, group: GroupId, packet: &mut Packet, origin: Origin) {
        group::run(&self.datapath.groups, group, packet, origin, self);
    }

    fn run_bucket(&mut self, bucket: BucketAt, packet: &mut Packet, origin: Origin) {
        group::run_bucket(&self.datapath.groups, bucket, packet, origin, self);
    }

    fn grouped(&mut self, _slot: usize, _bytes: usize) {}

    fn bucket_taken(&mut self, group: &Group, bucket: BucketAt, _bytes: usize) {
        self.step(TraceStep::Bucket { group: group.id, kind: group.kind.name(), bucket: bucket.bucket() });
    }

    /// What a bucket does is to be read behind the action that led to it.
    fn defers(&self) -> bool {
        false
    }

    fn copy(&mut self, frame: &Frame) -> Frame {
        frame.clone()
    }

    fn dropped(&mut self, reason: DropReason) {
        self.trace.drops.push(reason);
        self.step(TraceStep::Dropped(reason));
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "packet: {}", self.packet)?;
        for step in &self.steps {
            match step {
                TraceStep::Matched { table, entry } => writeln!(f, "table {table}: {entry}")?,
                TraceStep::Missed { table } => writeln!(f, "table {table}: no entry matches")?,
                TraceStep::Standalone => writeln!(f, "no controller: forwarded as by NORMAL")?,
                TraceStep::Egress { port } => writeln!(f, "  to port {port} through the egress tables")?,
                TraceStep::Metered { meter, verdict } => writeln!(f, "  meter {meter}: {verdict}")?,
                TraceStep::Action(action) => writeln!(f, "  {action}")?,
                TraceStep::Bucket { group, kind, bucket } => {
                    writeln!(f, "  group {} ({kind}): bucket {bucket}", group.0)?;
                }
                TraceStep::Sent { port, queue: 0, packet } => writeln!(f, "  -> port {port}: {packet}")?,
                TraceStep::Sent { port, queue, packet } => writeln!(f, "  -> port {port} queue {queue}: {packet}")?,
                TraceStep::Punted { reason } => writeln!(f, "  -> controller: {}", reason.name())?,
                TraceStep::Dropped(reason) => writeln!(f, "  dropped: {reason}")?,
            }
        }
        Ok(())
    }
}

/// The fields of a packet that are not zero, where several share their bits the one that the packet has.
fn fields(key: &FlowKey, wanted: impl Fn(Field) -> bool) -> String {
    let known = Known::new(*key, FlowMask { words: [u64::MAX; WORDS] });
    let has = |field: &Field| {
        *field != Field::InPhyPort && !field.is_alias() && known.has(field.prerequisite()) && key.get(*field) != 0
    };
    let there = Field::ALL.into_iter().filter(has).filter(|field| wanted(*field));
    text::format_match(&there.fold(Match::any(), |fields, field| fields.with(field, key.get(field))))
}

/// An entry in the form flow dumps have.
fn entry_text(entry: &FlowEntry) -> String {
    let matching = text::format_match(&entry.matching);
    let comma = if matching.is_empty() { "" } else { "," };
    let instructions = text::format_instructions(&entry.program.instructions(), Version::V13);
    format!("cookie={:#x}, priority={}{comma}{matching} actions={instructions}", entry.cookie, entry.priority)
}
