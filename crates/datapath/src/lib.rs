//! The datapath: ports, flow tables and the OpenFlow agent in front of them, without sockets, threads or clock.
//!
//! It is given frames, messages and `now`; it returns frames to send, messages for controllers and when to wake it.
//!
//! Reading order: `pipeline` (a packet's way), `execute` (what actions do), `table` and `shape` (entries, and how one is found),
//! `flow_mod` (how entries change), `agent` (messages). What the pipeline does to the world goes through `effects`: `live` does it,
//! `trace` writes it down.
mod action_set;
mod agent;
mod auxiliary;
mod beside;
mod buffers;
mod bundle;
mod burst;
mod cache;
mod channels;
mod chunks;
mod drops;
mod edits;
mod effects;
mod entries;
mod execute;
mod flow_mod;
mod forward;
mod group;
mod journal;
mod live;
mod meter;
mod monitor;
mod nicira;
mod normal;
mod packet;
pub mod perf;
mod pipeline;
mod ports;
mod program;
mod programs;
mod shape;
mod slab;
mod table;
mod timeouts;
mod trace;
mod types;
mod validate;
mod watched;

pub use agent::{FlowWalk, LongReply, ReplyProgress};
pub use cache::{CacheCounts, CacheState};
pub use drops::{DropReason, Drops};
pub use flow_mod::Subject;
pub use forward::Worker;
pub use meter::{MAX_BANDS, MAX_METERS};
pub use ports::MAX_PORTS;
pub use shape::describe::{Probes, TableShape};
pub use table::EntryChange;
pub use trace::{Trace, TraceCycles, TraceStep, TraceTimes};
pub use types::{
    ChannelId, DatapathConfig, FailMode, Lookup, Output, PacketInLimit, PortCounters, PortQueue, PortQueues,
    VerdictCache,
};

use action_set::ActionSet;
use agent::{Job, Parts};
use buffers::Buffers;
use bundle::{Bundles, Commit, Schedule};
use channels::Channels;
use flow_mod::{Manner, Sweep, Tables};
use group::{GroupCounters, Groups};
use journal::Journal;
use live::Plane;
use meter::Meters;
use monitor::Monitors;
use normal::Learned;
use ports::Ports;
use programs::Programs;
use std::time::Duration;
use table::{FlowTable, Gone, TableSettings};
use timeouts::Timers;
use weir_openflow::model::group::GroupMod;
use weir_openflow::model::port::{PortStatus, PortStatusReason, bits};
use weir_openflow::model::role::Role;
use weir_openflow::model::{Body, ErrorType, FlowMod, NxMessage, PortDesc, PortNo, TableId};
use weir_openflow::{Message, Version};
use weir_packet::FramePool;
use weir_units::Instant;

/// See the crate's page.
#[derive(Debug)]
pub struct Datapath {
    config: DatapathConfig,
    tables: Vec<FlowTable>,
    groups: Groups,
    timers: Timers,
    programs: Programs,
    /// By table.
    settings: Vec<TableSettings>,
    /// Whether some table's vacancy is told.
    watches_vacancy: bool,
    journal: Journal,
    parts: Parts,
    bundles: Bundles,
    /// The bundle that is being carried out.
    commit: Option<Box<Commit>>,
    /// What the message that is being handled leaves to be done.
    begun: Option<Box<Sweep<'static>>>,
    /// The message that is being carried out.
    job: Option<Box<Job>>,
    monitors: Monitors,
    schedule: Schedule,
    plane: Plane,
    /// Memory for action sets.
    set: ActionSet,
    /// The engine's own worker, made when it is first needed.
    engine: Option<Box<Worker>>,
    /// Workers beside the engine's thread.
    n_workers: usize,
    /// Counts what may have changed the tables.
    generation: u64,
    fail_mode: FailMode,
    /// Whether IP fragments are dropped (`OFPC_FRAG_DROP`).
    drops_fragments: bool,
}

/// How long [`Datapath::expire`] may wait before it goes on with a table's index: a step takes some tens of microseconds.
const SETTLE_EVERY: Duration = Duration::from_micros(250);

/// Entries, and addresses, that one call of [`Datapath::expire`] looks at: some ten microseconds.
const EXPIRE_MOST: usize = 32;

impl Datapath {
    /// An empty datapath without ports or entries. `n_tables` beyond its limits is brought within them.
    pub fn new(config: DatapathConfig) -> Datapath {
        let config = DatapathConfig { n_tables: config.n_tables.clamp(1, 254), ..config };
        let plane = Plane {
            ports: Ports::new(),
            groups: GroupCounters::default(),
            drops: Drops::default(),
            learned: Learned::new(config.max_learned),
            buffers: Buffers::new(config.n_buffers),
            channels: Channels::new(config.packet_in_limit),
            to_learn: Vec::new(),
            learn_failures: 0,
            meters: Meters::new(),
            first_egress: None,
        };
        let limits = group::Limits {
            groups: config.max_groups as usize,
            buckets: config.max_buckets as usize,
            buckets_in_all: config.max_buckets_in_all as usize,
        };
        Datapath {
            groups: Groups::new(limits, config.datapath_id),
            tables: (0..config.n_tables).map(|_| FlowTable::new(config.lookup)).collect(),
            timers: Timers::default(),
            programs: Programs::default(),
            settings: (0..config.n_tables)
                .map(|table| TableSettings::new(TableId(table), config.max_entries))
                .collect(),
            watches_vacancy: false,
            journal: Journal::default(),
            parts: Parts::default(),
            bundles: Bundles::default(),
            commit: None,
            begun: None,
            job: None,
            monitors: Monitors::default(),
            schedule: Schedule::default(),
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

    /// Its number.
    pub fn datapath_id(&self) -> u64 {
        self.config.datapath_id
    }

    /// Adds a port; tells channels.
    ///
    /// # Errors
    /// The number is not ordinary (or LOCAL) or is taken, or there are [`MAX_PORTS`] ports.
    pub fn add_port(&mut self, now: Instant, desc: PortDesc, out: &mut Output) -> Result<(), String> {
        let number = desc.port_no;
        self.plane.ports.add(now, desc)?;
        if let Some(desc) = self.plane.ports.get(number).map(|port| port.desc.clone()) {
            self.port_changed(PortStatusReason::Add, desc, out);
        }
        Ok(())
    }

    /// States whether packets without Ethernet header may be sent to a port, as some tunnels carry; not so unless stated.
    pub fn take_any_packet_type(&mut self, port: PortNo, any: bool) {
        self.plane.ports.take_any_packet_type(port, any);
    }

    /// Removes a port; tells channels. Whether it was there.
    pub fn remove_port(&mut self, _now: Instant, port: PortNo, out: &mut Output) -> bool {
        let Some(desc) = self.plane.ports.remove(port) else { return false };
        self.plane.learned.forget_port(port);
        // Ports that come and go must not leave lists behind for ever.
        out.frames.retain(|(listed, frames)| *listed != port || !frames.is_empty());
        self.port_changed(PortStatusReason::Delete, desc, out);
        true
    }

    /// States whether a port has link, and at what rate (kbit/s); tells channels on change.
    pub fn set_link(&mut self, _now: Instant, port: PortNo, up: bool, speed_kbps: u32, out: &mut Output) {
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

    /// The ports, as controllers see them, in order of their numbers.
    pub fn ports(&self) -> Vec<PortDesc> {
        self.plane.ports.iter().map(|port| port.desc.clone()).collect()
    }

    /// A channel is up and speaks `version`.
    pub fn channel_up(&mut self, now: Instant, channel: ChannelId, version: Version) {
        self.plane.channels.up(now, channel, version);
    }

    /// An auxiliary connection of the channel `main` is up, with a number other than zero. Whether `main` is up: if not, the
    /// connection is to be closed.
    pub fn auxiliary_up(&mut self, _now: Instant, connection: ChannelId, main: ChannelId, number: u8) -> bool {
        self.plane.channels.auxiliary_up(connection, main, number)
    }

    /// A channel ended, and with it its auxiliary connections; or one of those.
    pub fn channel_down(&mut self, _now: Instant, channel: ChannelId) {
        self.plane.channels.down(channel);
        self.parts.forget(channel);
        self.bundles.forget(channel);
        self.monitors.forget(channel);
        self.journal.watch(!self.monitors.is_empty());
    }

    /// What time of day it is, since the beginning of 1970: bundles that are to be carried out at a time go by it. Without it
    /// they are refused.
    pub fn set_time_of_day(&mut self, now: Instant, time_of_day: Duration) {
        self.schedule.set_clock(now, time_of_day);
    }

    /// The role of a channel that is up.
    pub fn role(&self, channel: ChannelId) -> Option<Role> {
        self.plane.channels.get(channel).map(|channel| channel.role)
    }

    /// What to do with no channel; secure until said otherwise.
    pub fn set_fail_mode(&mut self, mode: FailMode) {
        self.fail_mode = mode;
    }

    /// Handles a controller's message; replies and errors go to `out`.
    pub fn handle(
        &mut self,
        now: Instant,
        channel: ChannelId,
        message: Message,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        self.begin(now, channel, message, pool, out);
        self.finish_commit(now, pool, out);
    }

    /// The same; a bundle, or a message that is about many entries, is only begun to be carried out ([`Datapath::is_busy`]).
    pub fn begin(
        &mut self,
        now: Instant,
        channel: ChannelId,
        message: Message,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        // What is begun comes first.
        self.finish_commit(now, pool, out);
        self.generation += 1;
        agent::handle(self, now, channel, message, pool, out);
    }

    /// Applies a flow-mod from configuration or tests, in the manner of 1.3. Nobody is told of entries it removes, and its
    /// buffer is not looked at.
    ///
    /// # Errors
    /// As the agent would answer.
    pub fn flow_mod(&mut self, now: Instant, flow: &FlowMod) -> Result<(), ErrorType> {
        self.tables().apply_whole(now, flow, Manner::of(flow, Version::V13), &mut Vec::new())
    }

    /// Applies a group-mod from configuration or tests, in the manner of 1.3; channels are told of flow entries that go with
    /// their group.
    ///
    /// # Errors
    /// As the agent would answer.
    pub fn group_mod(&mut self, now: Instant, change: &GroupMod, out: &mut Output) -> Result<(), ErrorType> {
        self.change_groups(now, change, Version::V13, out)?;
        self.finish_sweep(now, out);
        Ok(())
    }

    /// Removes entries whose time is up, at most a bounded number per call, and goes on with what makes lookups fast; says when to
    /// call again at the latest (at once, if there may be more).
    pub fn expire(&mut self, now: Instant, out: &mut Output) -> Option<Instant> {
        let mut gone = Vec::new();
        // Entries that a bundle may yet bring back do not end meanwhile.
        let mut entries = if self.is_busy() { Some(now) } else { self.tables().expire(now, EXPIRE_MOST, &mut gone) };
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

    /// Goes on with what makes lookups fast, in one table; says when to call again, if there is more to do.
    fn settle_tables(&mut self, now: Instant) -> Option<Instant> {
        let mut next = None::<Instant>;
        for at in self.tables.iter_mut().filter_map(|table| table.settle(now)) {
            next = Some(next.map_or(at, |next| next.min(at)));
            if at <= now {
                break;
            }
        }
        // Not at once: packets come first.
        next.map(|at| at.max(now + SETTLE_EVERY))
    }

    /// Counters of a port, from the engine's, right before they are asked for.
    pub fn set_port_counters(&mut self, port: PortNo, counters: PortCounters) {
        self.plane.ports.set_counters(port, counters);
    }

    /// The queues of a port, from the engine's, right before they are asked for.
    pub fn set_port_queues(&mut self, port: PortNo, queues: PortQueues) {
        self.plane.ports.set_queues(port, queues);
    }

    /// Flow entries that the action `learn` could not add since the start: their table was full, or is not there.
    pub fn learn_failures(&self) -> u64 {
        self.plane.learn_failures
    }

    /// Drops by reason since the start.
    pub fn drops(&self) -> Drops {
        self.plane.drops
    }

    /// What would happen to a packet: tables, entries, actions, outputs; changes nothing (no counters, no learning).
    pub fn trace(&self, now: Instant, in_port: PortNo, frame: &[u8]) -> Trace {
        trace::trace(self, now, in_port, frame)
    }

    /// How long the steps of [`Datapath::trace`] take, repeated until `budget` cycles of [`weir_memory::cycles`] are used up, at least
    /// once; changes nothing.
    pub fn time_trace(&self, now: Instant, in_port: PortNo, frame: &[u8], budget: u64) -> TraceCycles {
        trace::time(self, now, in_port, frame, budget)
    }

    fn is_standalone(&self) -> bool {
        self.fail_mode == FailMode::Standalone && !self.plane.channels.have_controller()
    }

    fn tables(&mut self) -> Tables<'_> {
        self.generation += 1;
        Tables {
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

    /// Sends a message of the switch's own accord to channels.
    fn tell<'a>(channels: impl Iterator<Item = &'a channels::Channel>, body: &Body, out: &mut Output) {
        out.messages.extend(channels.map(|channel| (channel.id, Message { xid: 0, body: body.clone() })));
    }

    /// What hangs on a port follows its change, and channels are told.
    fn port_changed(&mut self, reason: PortStatusReason, desc: PortDesc, out: &mut Output) {
        self.groups.follow(&self.plane.ports);
        let channels = self.plane.channels.that(|channel| channel.wants_port_status(reason as u32));
        Self::tell(channels, &Body::PortStatus(PortStatus { reason, desc }), out);
    }

    fn tell_removed(&self, gone: Vec<Gone>, out: &mut Output) {
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
