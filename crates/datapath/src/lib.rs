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
//! # Order of calls
//!
//! 1. [`Datapath::add_port`] for each port, and [`Datapath::channel_up`] for each OpenFlow channel that comes up. A
//!    channel that goes down ends with [`Datapath::channel_down`].
//! 2. [`Datapath::begin`] for each message of a channel, then [`Datapath::go_on`] while [`Datapath::is_busy`] returns
//!    true. Frames may be processed in between, but no other message. [`Datapath::handle`] does all of this in one
//!    call. For a message with a [`Datapath::long_reply`], [`Datapath::reply_on`] until the reply is complete instead.
//! 3. [`Datapath::process`] for frames that arrived on a port. On several threads, each with a worker of
//!    [`Datapath::add_worker`]: [`Datapath::forward`] with shared access, then [`Datapath::process_for`] with exclusive
//!    access if frames are left.
//! 4. [`Datapath::expire`] after messages and frames, and at the time that its last call returned.
//!
//! After each call the caller sends the contents of [`DatapathOutput`].
//!
//! # Parts
//!
//! [`Datapath`] has the public methods. Each piece of state is owned by a part, which has the methods that need no
//! other state:
//!
//! | part | state | file |
//! |---|---|---|
//! | `FlowTables` | flow tables, their settings, timers and compiled programs | `flow_tables` |
//! | `GroupTable` | groups and their buckets | `group` |
//! | `PipelineState` | what packets change: the next seven parts, and entries to learn | `engine_effects.rs` |
//! | `Ports` | ports with their descriptions, counters and queues | `ports.rs` |
//! | `GroupCounters` | counters of groups and buckets | `group/counters.rs` |
//! | `MeterTable` | meters | `meter` |
//! | `FilteringDatabase` | addresses learned for NORMAL | `normal.rs` |
//! | `InBand` | hidden entries and paths of control traffic, if the controllers are reached in band | `in_band` |
//! | `PacketInBuffers` | buffered packets | `buffers.rs` |
//! | `DatapathChannels` | channels, their roles and the asynchronous messages that they want | `channels.rs` |
//! | `Drops` | dropped packets by reason | `drops.rs` |
//! | `PendingBundles`, `BundleSchedule` | open bundles; clock and tolerances of scheduled ones | `bundle` |
//! | `FlowMonitors` | flow monitors | `monitor` |
//! | `Journal` | recorded changes, for undoing bundles and for monitors | `journal.rs` |
//! | `IncompleteRequests` | multipart requests without their last part | `agent/incomplete_requests.rs` |
//! | `UnfinishedWork` | the message or bundle that is handled in several steps | `agent/unfinished_work.rs` |
//! | [`Worker`] | memory and counters of a thread that forwards | `forward.rs` |
//!
//! `flow_mod` changes entries through a `TableEditor`, which borrows the parts that it needs. `agent` handles messages
//! and combines the parts.
//!
//! # Reading order of the source
//!
//! `pipeline` (how a packet passes the tables), `execute` (actions), `table` and `shape` (flow entries and their
//! lookup), `flow_mod` (changes of flow entries), `agent` (messages). The pipeline acts on the rest of the switch
//! through the trait in `effects`: `engine_effects` performs the effects, `trace` records them.
mod action_set;
mod agent;
mod auxiliary;
mod buffers;
mod bundle;
mod burst;
mod cache;
mod channels;
mod chunked_queue;
mod counting;
mod direct_output;
mod drops;
mod edits;
mod effects;
mod engine_effects;
mod entry_filter;
mod execute;
mod flow_mod;
mod flow_tables;
mod forward;
mod group;
mod in_band;
mod journal;
mod meter;
mod monitor;
mod nicira;
mod normal;
mod packet;
mod packet_limits;
pub mod perf;
mod pipeline;
mod ports;
mod program;
mod program_interner;
mod shape;
mod slab;
mod stations;
mod table;
mod timeouts;
mod trace;
mod types;
mod validate;
mod verdict;
mod version_semantics;
mod worker_effects;

pub use agent::{LongReply, ReplyProgress};
pub use cache::{CacheCounts, CacheState};
pub use drops::{DropReason, Drops};
pub use flow_mod::FlowModEffect;
pub use flow_tables::FlowWalk;
pub use forward::Worker;
pub use in_band::{HiddenEntry, InBandConfig, InBandCounters, InBandState, MAX_IN_BAND_CONTROLLERS};
pub use meter::{MAX_BANDS, MAX_METERS};
pub use ports::MAX_PORTS;
pub use shape::describe::{LookupCost, TableShape};
pub use table::EntryChange;
pub use trace::{ExpectedTimes, PipelineTrace, TraceCycles, TraceStep, TraceTimes};
pub use types::{
    ChannelId, DatapathConfig, DatapathOutput, FailMode, LookupMethod, PacketInLimit, PortCounters, PortQueue,
    PortQueues, VerdictCacheMode,
};

use action_set::ActionSet;
use agent::{IncompleteRequests, ReplySource, UnfinishedWork};
use buffers::PacketInBuffers;
use bundle::{BundleSchedule, PendingBundles};
use channels::DatapathChannels;
use engine_effects::PipelineState;
use flow_mod::TableEditor;
use flow_tables::FlowTables;
use forward::IngressBatch;
use group::{GroupCounters, GroupTable};
use in_band::InBand;
use journal::Journal;
use meter::MeterTable;
use monitor::FlowMonitors;
use normal::FilteringDatabase;
use perf::Stopwatch;
use ports::Ports;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use table::EthTypeReading;
use version_semantics::FlowModSemantics;
use weir_openflow::model::bundle::BundleControl;
use weir_openflow::model::group::GroupMod;
use weir_openflow::model::meter::{MeterConfig, MeterMod, MeterStats};
use weir_openflow::model::monitor::FlowUpdate;
use weir_openflow::model::multipart::{FlowRequest, FlowStats};
use weir_openflow::model::port::{PortStatusReason, bits};
use weir_openflow::model::role::Role;
use weir_openflow::model::{Body, ErrorType, FlowCommand, FlowMod, MeterId, PortDesc, PortNo};
use weir_openflow::{Message, Version, text};
use weir_packet::{FlowKey, Frame, FramePool};
use weir_units::Instant;

/// A switch's ports, flow tables, groups, meters and channels, with the pipeline and the OpenFlow agent.
#[derive(Debug)]
pub struct Datapath {
    config: DatapathConfig,
    tables: FlowTables,
    groups: GroupTable,
    journal: Journal,
    incomplete: IncompleteRequests,
    bundles: PendingBundles,
    /// The bundle being committed, or the message being handled in several steps.
    work: UnfinishedWork,
    monitors: FlowMonitors,
    schedule: BundleSchedule,
    plane: PipelineState,
    /// Action set of the packet being processed; kept to reuse its memory.
    set: ActionSet,
    /// The engine's own worker, created at the first use.
    engine: Option<Box<Worker>>,
    /// Number of workers that forward on threads other than the engine's.
    n_workers: usize,
    /// In-band control; `None` if it is off.
    in_band: Option<Box<InBand>>,
    fail_mode: FailMode,
    /// True if IP fragments are dropped (`OFPC_FRAG_DROP`).
    drops_fragments: bool,
}

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
        };
        let limits = group::GroupLimits {
            groups: config.max_groups as usize,
            buckets: config.max_buckets as usize,
            buckets_in_all: config.max_buckets_in_all as usize,
        };
        Datapath {
            groups: GroupTable::new(limits, config.datapath_id),
            tables: FlowTables::new(config.n_tables, config.max_entries, config.lookup),
            journal: Journal::default(),
            incomplete: IncompleteRequests::default(),
            bundles: PendingBundles::default(),
            work: UnfinishedWork::None,
            monitors: FlowMonitors::default(),
            schedule: BundleSchedule::default(),
            plane,
            set: ActionSet::default(),
            engine: None,
            n_workers: 0,
            in_band: None,
            fail_mode: FailMode::Secure,
            drops_fragments: false,
            config,
        }
    }

    // Getters.

    /// Returns the datapath id.
    pub fn datapath_id(&self) -> u64 {
        self.config.datapath_id
    }

    /// Returns the ports as controllers see them, ascending by number.
    pub fn ports(&self) -> Vec<PortDesc> {
        self.plane.ports.descs()
    }

    /// Returns the role of a channel, if the channel is up.
    pub fn role(&self, channel: ChannelId) -> Option<Role> {
        self.plane.channels.get(channel).map(|channel| channel.role)
    }

    /// Returns true while a bundle is being committed or a message about many entries is unfinished. Then the caller
    /// must call [`Datapath::go_on`] until it is done, and pass no other controller requests to the datapath.
    pub fn is_busy(&self) -> bool {
        self.work.is_some()
    }

    /// Returns a number that is incremented whenever flow entries may have changed. While it stays equal,
    /// [`Datapath::entry_changes`] returns no new changes.
    pub fn generation(&self) -> u64 {
        self.tables.generation()
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

    // Events: ports.

    /// Adds a port and sends a port-status message to the channels.
    ///
    /// # Errors
    /// The number is neither an ordinary port number nor LOCAL, the number is taken, or there are already
    /// [`MAX_PORTS`] ports.
    pub fn add_port(&mut self, now: Instant, desc: PortDesc, out: &mut DatapathOutput) -> Result<(), String> {
        let number = desc.port_no;
        self.plane.ports.add(now, desc)?;
        self.tell_in_band_local();
        if let Some(desc) = self.plane.ports.get(number).map(|port| port.desc.clone()) {
            self.port_changed(PortStatusReason::Add, desc, out);
        }
        Ok(())
    }

    /// Removes a port and sends a port-status message to the channels. Returns true if the port existed.
    pub fn remove_port(&mut self, _now: Instant, port: PortNo, out: &mut DatapathOutput) -> bool {
        let Some(desc) = self.plane.ports.remove(port) else { return false };
        self.forget_stations(port, out);
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
                self.forget_stations(port, out);
            }
            self.port_changed(PortStatusReason::Modify, desc, out);
        }
    }

    /// Allows (`any` is true) or forbids to send packets without an Ethernet header to a port. Some tunnels carry such
    /// packets. They are forbidden at a new port.
    pub fn take_any_packet_type(&mut self, port: PortNo, any: bool) {
        self.plane.ports.take_any_packet_type(port, any);
    }

    /// Sets a port's counters. The engine calls this right before the counters are read.
    pub fn set_port_counters(&mut self, port: PortNo, counters: PortCounters) {
        self.plane.ports.set_counters(port, counters);
    }

    /// Sets a port's queues. The engine calls this right before the queues are read.
    pub fn set_port_queues(&mut self, port: PortNo, queues: PortQueues) {
        self.plane.ports.set_queues(port, queues);
    }

    // Events: channels.

    /// Registers a channel that is up and speaks `version`.
    pub fn channel_up(&mut self, now: Instant, channel: ChannelId, version: Version) {
        self.plane.channels.up(now, channel, version);
    }

    /// Registers an auxiliary connection with the given non-zero `number` of the channel `main`. Returns true if
    /// `main` is up; if not, the caller must close the connection.
    pub fn auxiliary_up(&mut self, _now: Instant, connection: ChannelId, main: ChannelId, number: u8) -> bool {
        self.plane.channels.auxiliary_up(connection, main, number)
    }

    /// Sends the other controllers the status of a channel that came up or is about to go down. Must be called right
    /// after [`Datapath::channel_up`] and right before [`Datapath::channel_down`]. Does nothing for auxiliary
    /// connections.
    pub fn tell_channel(&self, of: ChannelId, is_up: bool, out: &mut DatapathOutput) {
        self.plane.channels.tell_channel(of, is_up, out);
    }

    /// Pauses updates for a channel that does not read its messages, until [`Datapath::resume_monitors`], and sends it
    /// a notice of the pause. Updates for removed entries are still sent.
    pub fn pause_monitors(&mut self, channel: ChannelId, out: &mut DatapathOutput) {
        let since = self.tables.stamp();
        if self.monitors.pause(channel, since) {
            self.plane.channels.send_updates(channel, vec![FlowUpdate::Paused], out);
        }
    }

    /// Ends a pause. Sends the channel updates for the entries that were added or changed during the pause, in their
    /// present state, and a notice of the end of the pause.
    pub fn resume_monitors(&mut self, channel: ChannelId, out: &mut DatapathOutput) {
        let Some(since) = self.monitors.resume(channel) else { return };
        let mut updates = self.monitors.missed(&self.tables, channel, since);
        updates.push(FlowUpdate::Resumed);
        self.plane.channels.send_updates(channel, updates, out);
    }

    /// Removes a channel together with its auxiliary connections, or a single auxiliary connection.
    pub fn channel_down(&mut self, _now: Instant, channel: ChannelId) {
        self.plane.channels.down(channel);
        self.incomplete.forget(channel);
        self.bundles.forget(channel);
        self.monitors.forget(channel);
        self.journal.watch(!self.monitors.is_empty());
    }

    // Events: messages.

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
        self.finish_work(now, pool, out);
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
        self.finish_work(now, pool, out);
        self.tables.start_generation();
        agent::handle(self, now, channel, message, pool, out);
    }

    /// Continues the unfinished bundle or message for about ten microseconds. An atomic bundle that changes more than
    /// flow entries is committed in a single call.
    pub fn go_on(&mut self, now: Instant, pool: &mut FramePool, out: &mut DatapathOutput) {
        self.tables.start_generation();
        std::mem::take(&mut self.work).go_on(self, now, pool, out);
    }

    /// Answers a channel's message with an error instead of handling it.
    pub fn refuse_message(&self, channel: ChannelId, message: &Message, error: ErrorType, out: &mut DatapathOutput) {
        self.plane.channels.refuse(channel, message, error, out);
    }

    /// Begins the reply to a channel's message if the reply may be long; returns `None` for any other message. The
    /// caller must then call [`Datapath::reply_on`] or [`Datapath::encode_on`] until the reply is complete, and keep
    /// the channel's later messages waiting. Other messages go to [`Datapath::handle`].
    pub fn long_reply(&self, channel: ChannelId, message: &Message) -> Option<LongReply> {
        let version = self.plane.channels.version(channel)?;
        let Body::MultipartRequest(request) = &message.body else { return None };
        LongReply::begin(&self.tables, channel, version, message.xid, &request.body)?.ok()
    }

    /// Continues a reply over at most `most` places of entries, or about as many buckets of groups, and appends its
    /// messages to `out`. Returns true if parts remain.
    pub fn reply_on(&self, now: Instant, reply: &mut LongReply, most: usize, out: &mut DatapathOutput) -> bool {
        reply.go_on(self.reply_source(), now, most, out)
    }

    /// Continues a reply like [`Datapath::reply_on`], but appends the encoded messages to `bytes`.
    pub fn encode_on(&self, now: Instant, reply: &mut LongReply, most: usize, bytes: &mut Vec<u8>) -> ReplyProgress {
        reply.encode(self.reply_source(), now, most, bytes)
    }

    // Changes by the caller itself.

    /// Sets the behaviour without a controller. A new datapath is fail-secure.
    pub fn set_fail_mode(&mut self, mode: FailMode) {
        self.fail_mode = mode;
    }

    /// Turns in-band control on. Frames of control traffic then pass by the flow tables. The local port may be added
    /// before or after.
    pub fn start_in_band(&mut self, config: InBandConfig) {
        self.in_band = Some(Box::new(InBand::new(config)));
        self.tell_in_band_local();
    }

    /// Replaces the controllers that in-band control lets through. Does nothing while it is off.
    pub fn set_in_band_controllers(&mut self, controllers: &[SocketAddr]) {
        if let Some(in_band) = &mut self.in_band {
            in_band.set_controllers(controllers);
        }
    }

    /// Replaces the routers through which controllers are reached. Does nothing while in-band control is off.
    pub fn set_in_band_next_hops(&mut self, next_hops: &[IpAddr]) {
        if let Some(in_band) = &mut self.in_band {
            in_band.set_next_hops(next_hops);
        }
    }

    /// Returns the state of in-band control; `None` if it is off.
    pub fn in_band(&self, now: Instant) -> Option<InBandState> {
        self.in_band.as_ref().map(|in_band| in_band.state(now))
    }

    /// Adds flow entries, such as `in_port=1,actions=output:2`, from configuration. Ports may be given by their names,
    /// and then must exist already; those given by number should.
    ///
    /// # Errors
    /// The message names the first entry that cannot be parsed or is refused, and the reason. Entries before it have
    /// been added.
    pub fn add_entries(&mut self, now: Instant, entries: &[String]) -> Result<(), String> {
        for entry in entries {
            let wrong = |problem: String| format!("entries: `{entry}`: {problem}");
            let names = text::PortNames::find(entry);
            let numbered = names.replaced(entry.clone(), |name| self.plane.ports.named(name)).map_err(wrong)?;
            let flow = text::parse_flow(&numbered, FlowCommand::Add).map_err(|error| wrong(error.to_string()))?;
            let added = self.flow_mod(now, &flow);
            added.map_err(|error| wrong(format!("the switch refuses it: {}", text::error_name(error))))?;
        }
        Ok(())
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
        let rest = self.change_groups(now, change, Version::V13, out)?;
        self.finish_sweep(now, rest, out);
        Ok(())
    }

    /// Adds, modifies or deletes meters. Channels get flow-removed messages for flow entries removed together with a
    /// meter.
    ///
    /// # Errors
    /// The error that the agent would reply with; nothing has changed.
    pub fn meter_mod(&mut self, now: Instant, change: &MeterMod, out: &mut DatapathOutput) -> Result<(), ErrorType> {
        let rest = self.change_meters(now, change, out)?;
        self.finish_sweep(now, rest, out);
        Ok(())
    }

    // Messages that the caller delays.

    /// Returns what a channel's flow-mod would do to the present entries: [`FlowModEffect::Nothing`] if `body` is no
    /// flow-mod or would be refused.
    pub fn subject(&mut self, channel: ChannelId, body: &Body) -> FlowModEffect {
        agent::subject(self, channel, body)
    }

    /// Keeps a bundle whose commit has arrived but is delayed, however long the controller stays silent.
    pub fn hold_bundle(&mut self, channel: ChannelId, commit: &BundleControl) {
        self.bundles.hold(channel, commit.bundle, commit.flags);
    }

    /// Returns what each of the first `most` messages of a bundle would do to the entries, and the number of messages
    /// after them; `None` if the bundle does not exist. Each is judged by the entries before the bundle, except that
    /// an entry deleted by an earlier message of the bundle counts as absent when it is added again.
    pub fn bundle_subjects(
        &mut self,
        channel: ChannelId,
        commit: &BundleControl,
        most: usize,
    ) -> Option<(Vec<FlowModEffect>, usize)> {
        agent::bundle_subjects(self, channel, commit, most)
    }

    /// Answers a commit as if the message with the index `member` in its bundle had failed: nothing has changed, and
    /// the bundle is discarded.
    pub fn refuse_bundle(
        &mut self,
        channel: ChannelId,
        commit: &Message,
        member: usize,
        error: ErrorType,
        out: &mut DatapathOutput,
    ) {
        agent::refuse_bundle(self, channel, commit, member, error, out);
    }

    // Frames.

    /// Adds a worker that forwards on a thread other than the engine's.
    pub fn add_worker(&mut self) -> Worker {
        self.n_workers += 1;
        self.tables.add_worker();
        self.plane.groups.add_worker();
        Worker::new(counting::WorkerNo(self.n_workers), self.config.verdict_cache)
    }

    /// Runs a burst through the pipeline as far as that is possible with shared access to the datapath. Sending
    /// packet-ins and learning need exclusive access. Returns true if the burst is done and `frames` is empty.
    /// Otherwise the caller must call [`Datapath::process_for`] next, with `frames` as this call left them (possibly
    /// empty).
    pub fn forward(
        &self,
        worker: &mut Worker,
        now: Instant,
        in_port: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) -> bool {
        forward::forward(self, worker, IngressBatch { now, in_port, frames, pool, out })
    }

    /// Runs frames that arrived on one port through the pipeline for a worker: the frames that [`Datapath::forward`]
    /// left, or any others. Afterwards `frames` is empty.
    pub fn process_for(
        &mut self,
        worker: &mut Worker,
        now: Instant,
        in_port: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        forward::process(self, worker, IngressBatch { now, in_port, frames, pool, out });
    }

    /// Runs frames that arrived on one port through the pipeline on the engine's own worker. Afterwards `frames` is
    /// empty, and the buffers of dropped frames are in `pool`.
    pub fn process(
        &mut self,
        now: Instant,
        in_port: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        // The worker is moved out meanwhile, because processing borrows the whole datapath.
        let mut engine = self.engine.take().unwrap_or_else(|| Worker::engine(self.config.verdict_cache));
        self.process_for(&mut engine, now, in_port, frames, pool, out);
        self.engine = Some(engine);
    }

    /// Runs one frame that arrived on a port through the pipeline. Appends to `met` the stamps of the entries it
    /// matched, in order.
    pub fn process_one(
        &mut self,
        now: Instant,
        in_port: PortNo,
        frame: Frame,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
        met: &mut Vec<u64>,
    ) {
        forward::process_one(self, now, in_port, frame, pool, out, met);
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

    // Time.

    /// Sets the time of day, as the time since the beginning of 1970. Scheduled bundles use it and are refused until
    /// it is set.
    pub fn set_time_of_day(&mut self, now: Instant, time_of_day: Duration) {
        self.schedule.set_clock(now, time_of_day);
    }

    /// Removes expired state (flow entries, buffered packets, learned addresses, unfinished multipart requests and
    /// bundles), a bounded number of items per call, and continues pending work on the tables' indexes. Returns the
    /// latest time for the next call, which is `now` if there may be more to do; `None` if nothing is pending.
    pub fn expire(&mut self, now: Instant, out: &mut DatapathOutput) -> Option<Instant> {
        let mut gone = Vec::new();
        // While a bundle is being committed no entry expires, because undoing the bundle may restore it.
        let mut entries =
            if self.is_busy() { Some(now) } else { self.edit_tables().expire(now, EXPIRE_MOST, &mut gone) };
        if !self.tables.give_back() {
            entries = Some(now);
        }
        self.plane.channels.tell_removed(gone, out);
        let buffers = self.plane.buffers.expire(now);
        let learned = self.plane.learned.expire(now, EXPIRE_MOST);
        let in_band = self.in_band.as_mut().and_then(|in_band| in_band.expire(now));
        let parts = self.incomplete.expire(now, &self.plane.channels, out);
        let bundles = self.expire_bundles(now, out);
        let shapes = self.tables.settle(now);
        self.monitors.tell(&mut self.journal, &self.plane.channels, out);
        self.tables.tell_vacancy(&self.plane.channels, out);
        [entries, buffers, learned, in_band, parts, bundles, shapes].into_iter().flatten().min()
    }

    // Statistics.

    /// Begins a walk over the flow entries that a request selects.
    ///
    /// # Errors
    /// The error to reply with: the table does not exist, or the match is invalid.
    pub fn flow_walk(&self, asked: &FlowRequest) -> Result<FlowWalk, ErrorType> {
        self.tables.flow_walk(asked, EthTypeReading::BehindAllTags)
    }

    /// Continues a walk over at most `most` places and appends the entries found to `found`. Returns true if places
    /// remain.
    pub fn walk_flows(&self, now: Instant, walk: &mut FlowWalk, most: usize, found: &mut Vec<FlowStats>) -> bool {
        self.tables.flow_stats(now, Version::V13, walk, most, found)
    }

    /// Returns the statistics of one meter, or of all meters in the order of their numbers.
    ///
    /// # Errors
    /// The error that the agent would reply with: the meter does not exist.
    pub fn meter_stats(&self, now: Instant, wanted: MeterId) -> Result<Vec<MeterStats>, ErrorType> {
        Ok(self.plane.meters.stats(now, wanted, |meter| self.tables.entries_of_meter(meter))?)
    }

    /// Returns the configuration of one meter, or of all meters in the order of their numbers.
    ///
    /// # Errors
    /// The error that the agent would reply with: the meter does not exist.
    pub fn meter_configs(&self, wanted: MeterId) -> Result<Vec<MeterConfig>, ErrorType> {
        Ok(self.plane.meters.configs(wanted)?)
    }

    /// Starts recording changes of flow entries, with an addition for each present entry. The caller must then call
    /// [`Datapath::entry_changes`] now and then, because the record grows.
    pub fn watch_entries(&mut self) {
        self.tables.watch();
    }

    /// Appends the changes of flow entries since the last call, table by table.
    pub fn entry_changes(&mut self, into: &mut Vec<EntryChange>) {
        self.tables.take_changes(into);
    }

    /// Describes the tables that hold entries or had lookups: the classifier, and the cost of looking up the packets
    /// in `samples`.
    pub fn table_shapes(&self, samples: &[FlowKey]) -> Vec<TableShape> {
        self.tables.shapes(samples)
    }

    /// Returns the stopwatch of the engine's own worker, which measures [`Datapath::process`].
    pub fn watch_mut(&mut self) -> &mut Stopwatch {
        self.engine.get_or_insert_with(|| Worker::engine(self.config.verdict_cache)).watch_mut()
    }
}

impl Datapath {
    /// Finishes the unfinished bundle or message.
    fn finish_work(&mut self, now: Instant, pool: &mut FramePool, out: &mut DatapathOutput) {
        while self.is_busy() {
            self.go_on(now, pool, out);
        }
    }

    /// Tells in-band control the address of the local port, if there is one.
    fn tell_in_band_local(&mut self) {
        if let (Some(in_band), Some(local)) = (&mut self.in_band, self.plane.ports.get(PortNo::LOCAL)) {
            in_band.set_local(local.desc.hw_addr);
        }
    }

    /// Forgets the stations learned on a port that lost its link or was removed.
    fn forget_stations(&mut self, port: PortNo, out: &mut DatapathOutput) {
        self.plane.learned.forget_port(port);
        if let Some(in_band) = &mut self.in_band {
            in_band::forget_port(in_band, &self.plane.ports, port, out);
        }
    }

    fn is_standalone(&self) -> bool {
        self.fail_mode == FailMode::Standalone && !self.plane.channels.have_controller()
    }

    /// Returns an editor of the flow tables.
    fn edit_tables(&mut self) -> TableEditor<'_> {
        self.tables.edit(&self.groups, &self.plane.meters, &mut self.journal)
    }

    fn reply_source(&self) -> ReplySource<'_> {
        ReplySource { tables: &self.tables, groups: &self.groups, counters: &self.plane.groups }
    }

    /// Updates the groups that watch a port after its change, and sends a port-status message to the channels.
    fn port_changed(&mut self, reason: PortStatusReason, desc: PortDesc, out: &mut DatapathOutput) {
        self.groups.follow(&self.plane.ports);
        self.plane.channels.tell_port_status(reason, desc, out);
    }
}
