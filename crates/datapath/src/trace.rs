//! Traces a packet through the pipeline: records the effects instead of performing them, or measures the time of each
//! step.
mod display;
mod time;

pub use time::{ExpectedTimes, TraceCycles, TraceTimes};

use crate::action_set::ActionSet;
use crate::channels::Channel;
use crate::effects::BucketRef;
use crate::effects::MeterVerdict;
use crate::effects::{Effects, PuntOrigin};
use crate::flow_tables::FlowTables;
use crate::group::GroupTable;
use crate::meter::PUNT_METERS;
use crate::normal::NormalDestination;
use crate::packet::PipelinePacket;
use crate::ports::Ports;
use crate::shape::EntryId;
use crate::table::FlowEntry;
use crate::validate::KnownFields;
use crate::{Datapath, DropReason, execute, pipeline};
use serde::Serialize;
use time::TraceStopwatch;
use weir_memory::cycles;
use weir_openflow::model::nicira::ControllerAction;
use weir_openflow::model::{Action, FlowMod, GroupId, Match, MeterId, PacketInReason, PortNo};
use weir_openflow::{Version, text};
use weir_packet::offload::WireSize;
use weir_packet::{Field, FlowKey, FlowMask, Frame, ParsedHeaders, key::WORDS};
use weir_units::Instant;

/// Trace of a packet; `Display` for people, `Serialize` for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PipelineTrace {
    /// The packet's fields that are not zero, in the syntax of flow dumps.
    pub packet: String,
    /// The steps, in order.
    pub steps: Vec<TraceStep>,
    /// Ports that the packet, or a copy of it, was sent to.
    pub outputs: Vec<PortNo>,
    /// True if the packet was punted to controllers.
    pub to_controller: bool,
    /// Reasons why the packet, or a copy of it, was dropped.
    pub drops: Vec<DropReason>,
    /// Times of the steps, if they were measured.
    pub times: Option<TraceTimes>,
    /// Times of the steps by the switch's profile, if it has one that takes time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedTimes>,
}

/// A step of a traced packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceStep {
    /// Lookup in a table that matched an entry.
    Matched {
        /// Number of the table.
        table: u8,
        /// The entry, in the syntax of flow dumps.
        entry: String,
        /// The entry's stamp, as [`Datapath::process_one`] tells it.
        #[serde(skip)]
        stamp: u64,
    },
    /// Lookup in a table without a matching entry.
    Missed {
        /// Number of the table.
        table: u8,
    },
    /// Forwarding as control traffic, past the tables, by the hidden entry with this condition.
    InBand(String),
    /// Forwarding as in a switch without controller.
    Standalone,
    /// Measurement by a meter with its present state, of the packet or of its punt to controllers.
    Metered {
        /// Number of the meter.
        meter: MeterId,
        /// The meter's verdict on the packet.
        verdict: String,
    },
    /// Execution of an action.
    Action(String),
    /// Execution of a group's bucket on the packet or a copy.
    Bucket {
        /// Number of the group.
        group: GroupId,
        /// The group's type: `all`, `select`, `indirect` or `ff`.
        kind: String,
        /// The bucket's number in the group, from 0.
        bucket: usize,
    },
    /// Output to a port through the egress tables.
    Egress {
        /// Number of the port.
        port: PortNo,
    },
    /// Transmission of the packet or a copy.
    Sent {
        /// Number of the port.
        port: PortNo,
        /// The port's queue, 0 if none was chosen.
        queue: u32,
        /// The packet's fields when it left.
        packet: String,
    },
    /// Punt to controllers.
    Punted {
        /// Reason of the packet-in.
        reason: PacketInReason,
    },
    /// Drop of the packet or a copy.
    Dropped(DropReason),
}

/// Traces a frame; see [`Datapath::trace`].
pub(crate) fn trace(datapath: &Datapath, now: Instant, in_port: PortNo, bytes: &[u8]) -> PipelineTrace {
    let mut tracer = TraceEffects::new(datapath, now, None);
    run(&mut tracer, in_port, &mut Frame::from_bytes(bytes));
    tracer.trace
}

/// Measures the steps of a trace; see [`Datapath::time_trace`].
pub(crate) fn time(datapath: &Datapath, now: Instant, in_port: PortNo, bytes: &[u8], budget: u64) -> TraceCycles {
    let end = cycles().saturating_add(budget);
    let mut tracer = TraceEffects::new(datapath, now, Some(TraceStopwatch::new()));
    // The first run fills the processor's caches for the others. It counts only if there is no time for another.
    let mut best = run_timed(&mut tracer, in_port, bytes);
    let mut is_warm = false;
    while cycles() < end {
        let took = run_timed(&mut tracer, in_port, bytes);
        if !std::mem::replace(&mut is_warm, true) || !best.merge(&took) {
            best = took;
        }
    }
    best
}

fn run_timed(tracer: &mut TraceEffects<'_>, in_port: PortNo, bytes: &[u8]) -> TraceCycles {
    let Some(mut frame) = tracer.marks.as_mut().map(|marks| marks.begin(bytes)) else { return TraceCycles::default() };
    run(tracer, in_port, &mut frame);
    tracer.marks.as_mut().map_or_else(TraceCycles::default, |marks| marks.end(frame))
}

fn run(tracer: &mut TraceEffects<'_>, in_port: PortNo, frame: &mut Frame) {
    let datapath = tracer.datapath;
    if let Err(reason) = datapath.plane.ports.may_receive(in_port) {
        return tracer.dropped(reason);
    }
    let Ok(mut parsed) = ParsedHeaders::of(frame, in_port) else { return tracer.dropped(DropReason::TooShort) };
    if tracer.marks.is_none() {
        tracer.trace.packet = fields(&parsed.key, |_| true);
    }
    let hidden = datapath.in_band.as_ref().and_then(|in_band| in_band.entry_of(in_port, frame.bytes()));
    if let Some(entry) = hidden {
        return tracer.step(|| TraceStep::InBand(entry.to_string()));
    }
    if datapath.drops_fragments && parsed.key.get(Field::IpFrag) != 0 {
        return tracer.dropped(DropReason::Fragment);
    }
    let mut packet = PipelinePacket::new(frame, &mut parsed, in_port);
    if datapath.is_standalone() {
        tracer.step(|| TraceStep::Standalone);
        execute::normal(&mut packet, tracer);
    } else {
        pipeline::run(datapath.tables.all(), &mut packet, &mut ActionSet::default(), tracer);
    }
    packet.finish(tracer);
}

/// Effects that are recorded, or timed.
struct TraceEffects<'a> {
    datapath: &'a Datapath,
    now: Instant,
    trace: PipelineTrace,
    /// The stopwatch, if steps are timed instead of recorded.
    marks: Option<TraceStopwatch>,
}

impl<'a> TraceEffects<'a> {
    fn new(datapath: &'a Datapath, now: Instant, marks: Option<TraceStopwatch>) -> TraceEffects<'a> {
        let trace = PipelineTrace {
            packet: String::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
            to_controller: false,
            drops: Vec::new(),
            times: None,
            expected: None,
        };
        TraceEffects { datapath, now, trace, marks }
    }

    /// Records or times the beginning of a step.
    fn step(&mut self, step: impl FnOnce() -> TraceStep) {
        match &mut self.marks {
            Some(marks) => marks.step(),
            None => self.trace.steps.push(step()),
        }
    }

    /// Records a punt if a controller takes the packet, else returns the drop reason.
    fn offer(
        &mut self,
        packet: &PipelinePacket,
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
            if self.meter(meter, WireSize::of(packet.frame)) == MeterVerdict::Drop {
                return Err(reason);
            }
        }
        self.trace.to_controller = true;
        self.step(|| TraceStep::Punted { reason });
        Ok(())
    }
}

impl<'a> Effects for TraceEffects<'a> {
    type Groups = &'a GroupTable;
    type Tables = &'a FlowTables;

    fn tables(&self) -> &'a FlowTables {
        &self.datapath.tables
    }

    fn groups(&self) -> &'a GroupTable {
        &self.datapath.groups
    }

    fn ports(&self) -> &Ports {
        &self.datapath.plane.ports
    }

    fn looking_up(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.lap();
        }
    }

    fn looked_up(&mut self, table: u8, found: Option<(EntryId, &FlowEntry)>, _bytes: usize) {
        match &mut self.marks {
            Some(marks) => marks.step_done(),
            None => self.trace.steps.push(match found {
                Some((_, entry)) => TraceStep::Matched { table, entry: entry_text(entry), stamp: entry.stamp },
                None => TraceStep::Missed { table },
            }),
        }
    }

    fn leaving(&mut self, port: PortNo) {
        self.step(|| TraceStep::Egress { port });
    }

    fn meter(&mut self, meter: MeterId, size: WireSize) -> MeterVerdict {
        let verdict = self.datapath.plane.meters.foresee(self.now, meter, size);
        self.step(|| TraceStep::Metered { meter, verdict: verdict.to_string() });
        verdict
    }

    fn acting(&mut self, action: &Action) {
        self.step(|| TraceStep::Action(text::format_actions(std::slice::from_ref(action), Version::V13)));
    }

    fn send_copy(&mut self, port: PortNo, frame: &Frame) {
        self.step(|| {
            let in_frame = |field| field != Field::InPort;
            let packet = ParsedHeaders::of(frame, port).map(|parsed| fields(&parsed.key, in_frame)).unwrap_or_default();
            TraceStep::Sent { port, queue: frame.queue, packet }
        });
        if self.marks.is_none() {
            self.trace.outputs.push(port);
        }
    }

    fn send(&mut self, port: PortNo, frame: Frame) {
        self.send_copy(port, &frame);
        self.recycle(frame);
    }

    fn recycle(&mut self, frame: Frame) {
        if let Some(marks) = &mut self.marks {
            marks.recycle(frame);
        }
    }

    fn punt(&mut self, packet: &PipelinePacket, origin: PuntOrigin, _max_len: u16) -> Result<(), DropReason> {
        self.offer(packet, origin.reason, DropReason::NoController, |channel| channel.nicira.id == 0)
    }

    fn punt_miss(&mut self, packet: &PipelinePacket, _table: u8) -> Result<(), DropReason> {
        self.offer(packet, PacketInReason::NoMatch, DropReason::TableMiss, Channel::takes_misses)
    }

    fn normal(&mut self, packet: &mut PipelinePacket) -> NormalDestination {
        self.datapath.plane.learned.forward(self.now, packet.key())
    }

    /// Ignored, because only packet-outs may output to TABLE, and a packet-out is not traced.
    fn resubmit(&mut self, _packet: &mut PipelinePacket) {}

    fn punt_to(
        &mut self,
        packet: &PipelinePacket,
        origin: PuntOrigin,
        action: &ControllerAction,
    ) -> Result<(), DropReason> {
        self.offer(packet, origin.reason, DropReason::NoController, |channel| channel.nicira.id == action.id)
    }

    fn send_start(&mut self, port: PortNo, frame: &Frame, bytes: usize) {
        let mut start = frame.clone();
        start.truncate(bytes.min(frame.len()));
        self.send_copy(port, &start);
    }

    /// Ignored, because the step of the action already shows it.
    fn learn(&mut self, _flow: FlowMod) {}

    fn grouped(&mut self, _slot: usize, _bytes: usize) {}

    fn bucket_taken(&mut self, group: GroupId, bucket: BucketRef, _bytes: usize) {
        let kind = self.datapath.groups.find(group).map_or_else(String::new, |(_, group)| group.kind.to_string());
        self.step(|| TraceStep::Bucket { group, kind, bucket: bucket.bucket() });
    }

    /// False, so that the steps of a bucket follow the action that led to it.
    fn defers(&self) -> bool {
        false
    }

    fn copy(&mut self, frame: &Frame) -> Frame {
        match &mut self.marks {
            Some(marks) => marks.copy(frame),
            None => frame.clone(),
        }
    }

    fn dropped(&mut self, reason: DropReason) {
        if self.marks.is_none() {
            self.trace.drops.push(reason);
        }
        self.step(|| TraceStep::Dropped(reason));
    }
}

/// Formats the fields of a packet that are not zero. Of fields that share their bits it takes the one that the packet
/// has.
fn fields(key: &FlowKey, wanted: impl Fn(Field) -> bool) -> String {
    let known = KnownFields::new(*key, FlowMask { words: [u64::MAX; WORDS] });
    let has = |field: &Field| {
        *field != Field::InPhyPort && !field.is_alias() && known.has(field.prerequisite()) && key.get(*field) != 0
    };
    let there = Field::ALL.into_iter().filter(has).filter(|field| wanted(*field));
    text::format_match(&there.fold(Match::any(), |fields, field| fields.with(field, key.get(field))))
}

/// Formats an entry in the syntax of flow dumps.
fn entry_text(entry: &FlowEntry) -> String {
    let matching = text::format_match(&entry.matching.to_match());
    let comma = if matching.is_empty() { "" } else { "," };
    let instructions = text::format_instructions(&entry.program.instructions(), Version::V13);
    format!("cookie={:#x}, priority={}{comma}{matching} actions={instructions}", entry.cookie, entry.priority)
}
