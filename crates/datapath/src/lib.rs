//! The datapath of an OpenFlow switch: ports, flow tables, groups, meters, and the agent that changes them. It has no
//! sockets, threads or clock.
//!
//! For switches, simulators and tests. Callers pass in frames, messages and the time `now`. The datapath returns frames
//! to send, messages for channels and the time of the next call it needs. So one datapath runs live and in virtual
//! time.
//!
//! Start with:
//!
//! - [`Datapath`]: [`process`](Datapath::process) for frames, [`handle`](Datapath::handle) for messages of controllers,
//!   [`expire`](Datapath::expire) for time-outs.
//! - [`DatapathConfig`]: identity and limits. Every table and buffer has one.
//! - [`DatapathOutput`]: what the caller has to send.
//! - [`Datapath::trace`]: the way of a frame through the tables, without effect.
//!
//! Not in this crate: devices that frames arrive on (`weir-port`), connections to controllers (`weir-openflow` has
//! their sessions, `weir-switch` their sockets), threads (`weir-switch`).
//!
//! ```
//! use weir_datapath::{Datapath, DatapathConfig, DatapathOutput};
//! use weir_openflow::model::{FlowCommand, PortDesc};
//! use weir_openflow::text::parse_flow;
//! use weir_packet::{Frame, FramePool, MacAddr, PortNo};
//! use weir_units::Instant;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (now, mut pool, mut out) = (Instant::ZERO, FramePool::default(), DatapathOutput::default());
//! let mut datapath = Datapath::new(DatapathConfig::default());
//! for number in [1, 2] {
//!     let address = MacAddr([2, 0, 0, 0, 0, number]);
//!     datapath.add_port(now, PortDesc::new(PortNo(number.into()), address, format!("p{number}")), &mut out)?;
//! }
//! let entry = parse_flow("in_port=1,actions=output:2", FlowCommand::Add)?;
//! datapath.flow_mod(now, &entry).expect("the entry is valid");
//!
//! let mut frames = vec![Frame::from_bytes(&[0; 60])];
//! datapath.process(now, PortNo(1), &mut frames, &mut pool, &mut out);
//! let (port, sent) = &out.frames[0];
//! assert_eq!((*port, sent.len()), (PortNo(2), 1));
//! # Ok(())
//! # }
//! ```
//!
//! Reading order of the source: `pipeline` (how a packet passes the tables), `execute` (actions), `table` and `shape`
//! (flow entries and their lookup), `flow_mod` (changes of flow entries), `agent` (messages). The pipeline acts on the
//! rest of the switch through the trait in `effects`: `engine_effects` performs the effects, `trace` records them.
mod action_set;
mod agent;
mod auxiliary;
mod buffers;
mod bundle;
mod burst;
mod cache;
mod channels;
mod chunked_queue;
mod drops;
mod edits;
mod effects;
mod engine_effects;
mod entries;
mod execute;
mod flow_mod;
mod forward;
mod group;
mod journal;
mod meter;
mod monitor;
mod nicira;
mod normal;
mod packet;
pub mod perf;
mod pipeline;
mod ports;
mod program;
mod program_interner;
mod shape;
mod slab;
mod table;
mod timeouts;
mod timing_hooks;
mod trace;
mod types;
mod validate;
mod worker_effects;

pub use agent::{FlowWalk, LongReply, ReplyProgress};
pub use cache::{CacheCounts, CacheState};
pub use drops::{DropReason, Drops};
pub use flow_mod::FlowModEffect;
pub use forward::Worker;
pub use meter::{MAX_BANDS, MAX_METERS};
pub use ports::MAX_PORTS;
pub use shape::describe::{LookupCost, TableShape};
pub use table::EntryChange;
pub use trace::{PipelineTrace, TraceCycles, TraceStep, TraceTimes};
pub use types::{
    ChannelId, DatapathConfig, DatapathOutput, FailMode, LookupMethod, PacketInLimit, PortCounters, PortQueue,
    PortQueues, VerdictCacheMode,
};

use action_set::ActionSet;
use agent::{IncompleteRequests, SweepJob};
use buffers::PacketInBuffers;
use bundle::{BundleCommit, BundleSchedule, PendingBundles};
use channels::DatapathChannels;
use engine_effects::PipelineState;
use flow_mod::{EntrySweep, FlowModSemantics, TableEditor};
use group::{GroupCounters, GroupTable};
use journal::Journal;
use meter::MeterTable;
use monitor::FlowMonitors;
use normal::FilteringDatabase;
use ports::Ports;
use program_interner::ProgramInterner;
use std::time::Duration;
use table::{FlowRemovedNotice, FlowTable, TableSettings};
use timeouts::TimeoutWheel;
use weir_openflow::model::group::GroupMod;
use weir_openflow::model::port::{PortStatus, PortStatusReason, bits};
use weir_openflow::model::role::Role;
use weir_openflow::model::{Body, ErrorType, FlowMod, NxMessage, PortDesc, PortNo, TableId};
use weir_openflow::{Message, Version};
use weir_packet::FramePool;
use weir_units::Instant;

/// A switch's ports, flow tables, groups, meters and channels, with the pipeline and the OpenFlow agent.
#[derive(Debug)]
pub struct Datapath {
    config: DatapathConfig,
    tables: Vec<FlowTable>,
    groups: GroupTable,
    timers: TimeoutWheel,
    programs: ProgramInterner,
    /// Settings of each table, indexed by table number.
    settings: Vec<TableSettings>,
    /// True if at least one table has vacancy events switched on.
    watches_vacancy: bool,
    journal: Journal,
    incomplete: IncompleteRequests,
    bundles: PendingBundles,
    /// The bundle being committed.
    commit: Option<Box<BundleCommit>>,
    /// Remaining part of a change of many flow entries that the current message began.
    begun: Option<Box<EntrySweep<'static>>>,
    /// Remaining work for the current message, if it needs several steps.
    job: Option<Box<SweepJob>>,
    monitors: FlowMonitors,
    schedule: BundleSchedule,
    plane: PipelineState,
    /// Action set of the packet being processed; kept to reuse its memory.
    set: ActionSet,
    /// The engine's own worker, created at the first use.
    engine: Option<Box<Worker>>,
    /// Number of workers that forward on threads other than the engine's.
    n_workers: usize,
    /// Incremented whenever the tables may have changed.
    generation: u64,
    fail_mode: FailMode,
    /// True if IP fragments are dropped (`OFPC_FRAG_DROP`).
    drops_fragments: bool,
}

/// Minimum time between two steps of pending work on a table's index in [`Datapath::expire`]. A step takes some tens
/// of microseconds.
const SETTLE_EVERY: Duration = Duration::from_micros(250);

/// Maximum number of flow entries, and of learned addresses, that one call of [`Datapath::expire`] examines: about
/// ten microseconds.
const EXPIRE_MOST: usize = 32;

impl Datapath {
    /// Returns a datapath without ports and entries. `n_tables` is clamped to `1..=254`.
    pub fn new(config: DatapathConfig) -> Datapath {
        let config = DatapathConfig { n_tables: config.n_tables.clamp(1, 254), ..config };
        let plane = PipelineState {
            ports: Ports::new(),
            groups: GroupCounters::default(),
            drops: Drops::default(),
            learned: FilteringDatabase::new(config.max_learned),
            buffers: PacketInBuffers::new(config.n_buffers),
            channels: DatapathChannels::new(config.packet_in_limit),
            to_learn: Vec::new(),
            learn_failures: 0,
            meters: MeterTable::new(),
            first_egress: None,
        };
        let limits = group::GroupLimits {
            groups: config.max_groups as usize,
            buckets: config.max_buckets as usize,
            buckets_in_all: config.max_buckets_in_all as usize,
        };
        Datapath {
            groups: GroupTable::new(limits, config.datapath_id),
            tables: (0..config.n_tables).map(|_| FlowTable::new(config.lookup)).collect(),
            timers: TimeoutWheel::default(),
            programs: ProgramInterner::default(),
            settings: (0..config.n_tables)
                .map(|table| TableSettings::new(TableId(table), config.max_entries))
                .collect(),
            watches_vacancy: false,
            journal: Journal::default(),
            incomplete: IncompleteRequests::default(),
            bundles: PendingBundles::default(),
            commit: None,
            begun: None,
            job: None,
            monitors: FlowMonitors::default(),
            schedule: BundleSchedule::default(),
            plane,
            set: ActionSet::default(),
            engine: None,
            n_workers: 0,
            generation: 0,
            fail_mode: FailMode::Secure,
            drops_fragments: false,
            config,
        }
    }

    /// Returns the datapath id.
    pub fn datapath_id(&self) -> u64 {
        self.config.datapath_id
    }

    /// Adds a port and sends a port-status message to the channels.
    ///
    /// # Errors
    /// The number is neither an ordinary port number nor LOCAL, the number is taken, or there are already
    /// [`MAX_PORTS`] ports.
    pub fn add_port(&mut self, now: Instant, desc: PortDesc, out: &mut DatapathOutput) -> Result<(), String> {
        let number = desc.port_no;
        self.plane.ports.add(now, desc)?;
        if let Some(desc) = self.plane.ports.get(number).map(|port| port.desc.clone()) {
            self.port_changed(PortStatusReason::Add, desc, out);
        }
        Ok(())
    }

    /// Allows (`any` is true) or forbids to send packets without an Ethernet header to a port. Some tunnels carry such
    /// packets. They are forbidden at a new port.
    pub fn take_any_packet_type(&mut self, port: PortNo, any: bool) {
        self.plane.ports.take_any_packet_type(port, any);
    }

    /// Removes a port and sends a port-status message to the channels. Returns true if the port existed.
    pub fn remove_port(&mut self, _now: Instant, port: PortNo, out: &mut DatapathOutput) -> bool {
        let Some(desc) = self.plane.ports.remove(port) else { return false };
        self.plane.learned.forget_port(port);
        // Drops the port's empty list. Otherwise ports that are added and removed would leave lists behind for ever.
        out.frames.retain(|(listed, frames)| *listed != port || !frames.is_empty());
        self.port_changed(PortStatusReason::Delete, desc, out);
        true
    }

    /// Sets a port's link state (`up`) and rate in kbit/s. Sends a port-status message to the channels if either
    /// changed.
    pub fn set_link(&mut self, _now: Instant, port: PortNo, up: bool, speed_kbps: u32, out: &mut DatapathOutput) {
        let changed = self.plane.ports.change(port, |desc| {
            desc.state = desc.state & !bits::LINK_DOWN | if up { 0 } else { bits::LINK_DOWN };
            desc.curr_speed = speed_kbps;
            desc.max_speed = desc.max_speed.max(speed_kbps);
        });
        if let Some(desc) = changed {
            if !up {
                self.plane.learned.forget_port(port);
            }
            self.port_changed(PortStatusReason::Modify, desc, out);
        }
    }

    /// Returns the ports as controllers see them, ascending by number.
    pub fn ports(&self) -> Vec<PortDesc> {
        self.plane.ports.iter().map(|port| port.desc.clone()).collect()
    }

    /// Registers a channel that is up and speaks `version`.
    pub fn channel_up(&mut self, now: Instant, channel: ChannelId, version: Version) {
        self.plane.channels.up(now, channel, version);
    }

    /// Registers an auxiliary connection with the given non-zero `number` of the channel `main`. Returns true if
    /// `main` is up; if not, the caller must close the connection.
    pub fn auxiliary_up(&mut self, _now: Instant, connection: ChannelId, main: ChannelId, number: u8) -> bool {
        self.plane.channels.auxiliary_up(connection, main, number)
    }

    /// Removes a channel together with its auxiliary connections, or a single auxiliary connection.
    pub fn channel_down(&mut self, _now: Instant, channel: ChannelId) {
        self.plane.channels.down(channel);
        self.incomplete.forget(channel);
        self.bundles.forget(channel);
        self.monitors.forget(channel);
        self.journal.watch(!self.monitors.is_empty());
    }

    /// Sets the time of day, as the time since the beginning of 1970. Scheduled bundles use it and are refused until
    /// it is set.
    pub fn set_time_of_day(&mut self, now: Instant, time_of_day: Duration) {
        self.schedule.set_clock(now, time_of_day);
    }

    /// Returns the role of a channel, if the channel is up.
    pub fn role(&self, channel: ChannelId) -> Option<Role> {
        self.plane.channels.get(channel).map(|channel| channel.role)
    }

    /// Sets the behaviour without a controller. A new datapath is fail-secure.
    pub fn set_fail_mode(&mut self, mode: FailMode) {
        self.fail_mode = mode;
    }

    /// Handles a controller's message completely, including a bundle's commit and changes of many entries. Replies and
    /// errors are appended to `out`.
    pub fn handle(
        &mut self,
        now: Instant,
        channel: ChannelId,
        message: Message,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        self.begin(now, channel, message, pool, out);
        self.finish_commit(now, pool, out);
    }

    /// Begins to handle a controller's message. Unlike [`Datapath::handle`], this only starts a bundle's commit or a
    /// message about many entries. The caller must continue with [`Datapath::go_on`] as long as [`Datapath::is_busy`]
    /// returns true.
    pub fn begin(
        &mut self,
        now: Instant,
        channel: ChannelId,
        message: Message,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        // Finish earlier work first, because messages take effect in order.
        self.finish_commit(now, pool, out);
        self.generation += 1;
        agent::handle(self, now, channel, message, pool, out);
    }

    /// Applies a flow-mod from configuration or tests, interpreted as in version 1.3. Sends no flow-removed messages
    /// for the entries it removes, and ignores its buffer id.
    ///
    /// # Errors
    /// The error that the agent would reply with.
    pub fn flow_mod(&mut self, now: Instant, flow: &FlowMod) -> Result<(), ErrorType> {
        self.edit_tables().apply_whole(now, flow, FlowModSemantics::of(flow, Version::V13), &mut Vec::new())
    }

    /// Applies a group-mod from configuration or tests, interpreted as in version 1.3. Channels get flow-removed
    /// messages for flow entries removed together with their group.
    ///
    /// # Errors
    /// The error that the agent would reply with.
    pub fn group_mod(&mut self, now: Instant, change: &GroupMod, out: &mut DatapathOutput) -> Result<(), ErrorType> {
        self.change_groups(now, change, Version::V13, out)?;
        self.finish_sweep(now, out);
        Ok(())
    }

    /// Removes expired state (flow entries, buffered packets, learned addresses, unfinished multipart requests and
    /// bundles), a bounded number of items per call, and continues pending work on the tables' indexes. Returns the
    /// latest time for the next call, which is `now` if there may be more to do; `None` if nothing is pending.
    pub fn expire(&mut self, now: Instant, out: &mut DatapathOutput) -> Option<Instant> {
        let mut gone = Vec::new();
        // While a bundle is being committed no entry expires, because undoing the bundle may restore it.
        let mut entries =
            if self.is_busy() { Some(now) } else { self.edit_tables().expire(now, EXPIRE_MOST, &mut gone) };
        let all = self.tables.iter_mut().fold(self.timers.give_back(), |all, table| table.give_back() & all);
        if !all {
            entries = Some(now);
        }
        self.tell_removed(gone, out);
        let buffers = self.plane.buffers.expire(now);
        let learned = self.plane.learned.expire(now, EXPIRE_MOST);
        let parts = self.expire_parts(now, out);
        let bundles = self.expire_bundles(now, out);
        let shapes = self.settle_tables(now);
        self.tell_monitors(out);
        self.tell_vacancy(out);
        [entries, buffers, learned, parts, bundles, shapes].into_iter().flatten().min()
    }

    /// Continues pending work on the tables' indexes, until one table has more work to do at once. Returns the time of
    /// the next call if work is left.
    fn settle_tables(&mut self, now: Instant) -> Option<Instant> {
        let mut next = None::<Instant>;
        for at in self.tables.iter_mut().filter_map(|table| table.settle(now)) {
            next = Some(next.map_or(at, |next| next.min(at)));
            if at <= now {
                break;
            }
        }
        // Not at once, because packets have priority.
        next.map(|at| at.max(now + SETTLE_EVERY))
    }

    /// Sets a port's counters. The engine calls this right before the counters are read.
    pub fn set_port_counters(&mut self, port: PortNo, counters: PortCounters) {
        self.plane.ports.set_counters(port, counters);
    }

    /// Sets a port's queues. The engine calls this right before the queues are read.
    pub fn set_port_queues(&mut self, port: PortNo, queues: PortQueues) {
        self.plane.ports.set_queues(port, queues);
    }

    /// Returns the number of flow entries since the start that `learn` actions could not add, because their table was
    /// full or did not exist.
    pub fn learn_failures(&self) -> u64 {
        self.plane.learn_failures
    }

    /// Returns the dropped packets since the start, by reason. Packets dropped in [`Datapath::forward`] count in
    /// [`Worker::drops`].
    pub fn drops(&self) -> Drops {
        self.plane.drops
    }

    /// Traces a frame that arrives on `in_port` through the pipeline: tables, entries, actions and outputs. Changes
    /// nothing: no counters, no learning.
    pub fn trace(&self, now: Instant, in_port: PortNo, frame: &[u8]) -> PipelineTrace {
        trace::trace(self, now, in_port, frame)
    }

    /// Measures the steps of [`Datapath::trace`]. Repeats the trace until `budget` cycles of [`weir_memory::cycles`]
    /// have passed, at least once. Changes nothing.
    pub fn time_trace(&self, now: Instant, in_port: PortNo, frame: &[u8], budget: u64) -> TraceCycles {
        trace::time(self, now, in_port, frame, budget)
    }

    fn is_standalone(&self) -> bool {
        self.fail_mode == FailMode::Standalone && !self.plane.channels.have_controller()
    }

    fn edit_tables(&mut self) -> TableEditor<'_> {
        self.generation += 1;
        TableEditor {
            tables: &mut self.tables,
            meters: &self.plane.meters,
            timers: &mut self.timers,
            programs: &mut self.programs,
            settings: &self.settings,
            first_egress: self.plane.first_egress,
            groups: &self.groups,
            journal: &mut self.journal,
        }
    }

    /// Appends an asynchronous message for each of the channels.
    fn tell<'a>(channels: impl Iterator<Item = &'a channels::Channel>, body: &Body, out: &mut DatapathOutput) {
        out.messages.extend(channels.map(|channel| (channel.id, Message { xid: 0, body: body.clone() })));
    }

    /// Updates the groups that watch a port after its change, and sends a port-status message to the channels.
    fn port_changed(&mut self, reason: PortStatusReason, desc: PortDesc, out: &mut DatapathOutput) {
        self.groups.follow(&self.plane.ports);
        let channels = self.plane.channels.that(|channel| channel.wants_port_status(reason as u32));
        Self::tell(channels, &Body::PortStatus(PortStatus { reason, desc }), out);
    }

    fn tell_removed(&self, gone: Vec<FlowRemovedNotice>, out: &mut DatapathOutput) {
        for removed in gone {
            let channels = self.plane.channels.that(|channel| channel.wants_flow_removed(removed.reason() as u32));
            for channel in channels {
                let message = removed.message(channel.version);
                let body = match channel.nicira.has_nxm && channel.version == Version::V10 {
                    true => Body::Nx(Box::new(NxMessage::FlowRemoved(message))),
                    false => Body::FlowRemoved(message),
                };
                out.messages.push((channel.id, Message { xid: 0, body }));
            }
        }
    }
}
