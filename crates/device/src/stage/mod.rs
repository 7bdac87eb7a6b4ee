//! Holds commands, barriers, packets and messages of a switch until they are due by its profile: combines the delays of
//! the tables, the data path, its gate and the agents.
mod agents;
mod build;

use crate::commands::{CommandQueue, CommandQueueEvent, CommandStart};
use crate::effect::ExecutedCommand;
use crate::flow_cache::FlowCache;
use crate::lateness::ReleaseLateness;
use crate::level_server::LevelServer;
use crate::record::MAX_RECORDS;
use crate::send_latency::{SendDuration, SendLatency};
use crate::server::FifoServer;
use crate::{CommandRecord, GateQueue, ProfiledTables, TableEffect, TableEffectKind};
use agents::AgentServers;
use std::collections::VecDeque;
use std::time::Duration;
use weir_profile::MatchLayers;
use weir_units::Instant;

/// Kind of a released item: what the caller does with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReleaseKind {
    /// Command (flow-mod or end of a bundle) to be carried out.
    Command,
    /// Command to be refused because the tables are full (`OFPFMFC_TABLE_FULL`).
    Refused,
    /// Bundle to be refused, because the tables are full when its message with this index is reached.
    RefusedBundle(usize),
    /// Barrier to be answered.
    Barrier,
    /// Packet to be sent by its ports.
    Data,
    /// Packet to be sent to the controller.
    PacketIn,
    /// Packet-out to be carried out.
    PacketOut,
    /// Packet to be dropped, because the data path's gate was full. It is counted already.
    Lost,
}

/// Item that is released because it is due.
#[derive(Debug)]
pub struct ReleasedItem<T> {
    /// Kind of the item.
    pub part: ReleaseKind,
    /// Due time: not after the time of the release, or slightly after it. Packets and messages are released early,
    /// because it takes time until they leave ([`TimingStage::handed_out`], [`TimingStage::said()`]).
    pub due: Instant,
    /// Item that was held.
    pub item: T,
}

/// Properties of a packet in the data path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPathPacket {
    /// Table level of the entry that the packet matched, from 0.
    pub level: usize,
    /// Kind of the match of that entry.
    pub kind: MatchLayers,
    /// Length of the packet, in bytes.
    pub bytes: u32,
    /// Number of the packet's flow, for the cache of flows.
    pub flow: u64,
}

/// Counters of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimingCounts {
    /// Number of commands carried out.
    pub commands: u64,
    /// Number of commands refused because all levels were full.
    pub refused: u64,
    /// Number of packets lost because the data path or its gate was full.
    pub lost_data: u64,
    /// Number of packets lost because the queue to or from the controller was full.
    pub lost_control: u64,
    /// Number of records of commands that were discarded before [`TimingStage::take_records`] took them.
    pub records_lost: u64,
}

/// Numbers of waiting items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimingBacklog {
    /// Number of commands, including those in progress.
    pub commands: usize,
    /// Number of barriers that are not answered yet.
    pub barriers: usize,
    /// Number of packets in the data path and at its gate.
    pub packets: usize,
    /// Number of packets on their way to the controller or back.
    pub control: usize,
}

/// Delays of a switch with a profile: holds items (`T`) until they are due.
#[derive(Debug)]
pub struct TimingStage<T> {
    commands: CommandQueue<T>,
    tables: Option<ProfiledTables>,
    /// Tables with the effects of commands that are carried out but do not affect packets yet, and the next unused name
    /// of an entry; `None` if there are no such commands.
    ahead: Option<(ProfiledTables, u64)>,
    /// Servers of the data path, one for each table level.
    lanes: Vec<LevelServer<T>>,
    /// Cache of decisions about flows, if the profile has one, and the time for each of them until changes are seen.
    cache: Option<FlowCache>,
    revalidate: Duration,
    /// Queue behind the data path that releases packets in groups, if the profile has one.
    gate: Option<GateQueue<T>>,
    agents: AgentServers<T>,
    /// Time for which each table write of a command blocks the data path.
    write: Duration,
    /// True if packets from the controller pass the data path again before they are sent.
    passes_again: bool,
    records: VecDeque<CommandRecord>,
    counts: TimingCounts,
    lateness: ReleaseLateness,
    /// Time before their due times at which packets are released.
    packet_latency: SendLatency,
    /// Time before their due times at which messages are released.
    message_latency: SendLatency,
}

impl<T> TimingStage<T> {
    /// Returns the model of the device's tables, which the caller updates when entries change; `None` if changes take
    /// no time in the profile.
    pub fn tables(&mut self) -> Option<&mut ProfiledTables> {
        self.tables.as_mut()
    }

    /// Returns the model of the device's tables to read.
    pub(crate) fn present_tables(&self) -> Option<&ProfiledTables> {
        self.tables.as_ref()
    }

    /// Returns true if there is room for another command or barrier; otherwise the caller has to hold it.
    pub fn has_room(&self) -> bool {
        self.commands.has_room()
    }

    /// Returns true if no command and no barrier is in progress.
    pub fn is_idle(&self) -> bool {
        self.commands.is_idle()
    }

    /// Adds a flow-mod or the end of a bundle. It is released as [`ReleaseKind::Command`], [`ReleaseKind::Refused`] or
    /// [`ReleaseKind::RefusedBundle`].
    pub fn command(&mut self, now: Instant, item: T) {
        self.commands.command(now, item);
    }

    /// Adds a barrier. It is released as [`ReleaseKind::Barrier`].
    pub fn barrier(&mut self, now: Instant, item: T) {
        self.commands.barrier(now, item);
    }

    /// Adds a packet for a controller. It is released as [`ReleaseKind::PacketIn`], or returned by this call if
    /// packet-ins take no time in the profile.
    ///
    /// # Errors
    /// The queue is full: the packet is returned, and counted as lost.
    pub fn packet_in(&mut self, now: Instant, bytes: u32, item: T) -> Result<Option<T>, T> {
        self.agent(now, ReleaseKind::PacketIn, bytes, item)
    }

    /// Adds a packet from a controller. It is released as [`ReleaseKind::PacketOut`], or returned by this call if
    /// packet-outs take no time in the profile.
    ///
    /// # Errors
    /// The queue is full: the packet is returned, and counted as lost.
    pub fn packet_out(&mut self, now: Instant, bytes: u32, item: T) -> Result<Option<T>, T> {
        self.agent(now, ReleaseKind::PacketOut, bytes, item)
    }

    fn agent(&mut self, now: Instant, part: ReleaseKind, bytes: u32, item: T) -> Result<Option<T>, T> {
        match self.agents.offer(now, part, bytes, item) {
            Ok(()) => Ok(None),
            Err((false, item)) => Ok(Some(item)),
            Err((true, item)) => {
                self.counts.lost_control += 1;
                Err(item)
            }
        }
    }

    /// Returns true if packets from the controller pass the data path again before they are sent.
    pub fn passes_again(&self) -> bool {
        self.passes_again
    }

    /// Returns true if packets of a flow in the cache take another time than others.
    pub(crate) fn tells_flows(&self) -> bool {
        self.cache.is_some()
    }

    /// Adds a packet for the data path. It is released as [`ReleaseKind::Data`], or as [`ReleaseKind::Lost`] if the
    /// gate behind the data path is full when it arrives there.
    ///
    /// # Errors
    /// The data path is full: the packet is returned, and counted as lost.
    pub fn packet(&mut self, now: Instant, passing: DataPathPacket, item: T) -> Result<(), T> {
        let (level, entries) = self.lane_of(passing);
        let more_ns = self.cache.as_mut().map_or(0.0, |cache| cache.packet_ns(now, passing.flow));
        let offered = self.lanes[level].offer(now, passing.kind, passing.bytes, (entries, more_ns), item);
        offered.inspect_err(|_| self.counts.lost_data += 1)
    }

    /// Returns the mean time in nanoseconds that the data path takes for a packet that meets no other there, and
    /// whose flow is in the cache. It leaves out the wait for a tick or a batch.
    pub fn lone_packet_ns(&self, passing: DataPathPacket) -> f64 {
        let (level, entries) = self.lane_of(passing);
        self.lanes[level].lone_ns(passing.kind, passing.bytes, entries)
    }

    /// Returns the mean time in nanoseconds that a packet-in of this length takes at an idle agent.
    pub fn lone_packet_in_ns(&self, bytes: u32) -> f64 {
        self.agents.packet_in_ns(bytes)
    }

    /// Returns the lane of a packet, and the number of entries in that level.
    fn lane_of(&self, passing: DataPathPacket) -> (usize, u64) {
        let level = passing.level.min(self.lanes.len() - 1);
        (level, self.tables.as_ref().map_or(0, |tables| tables.entries(level)))
    }

    /// Returns the time at which [`TimingStage::release`] is to be called next; [`Instant::FAR`] if nothing waits.
    pub fn due(&self) -> Instant {
        self.first(|due| self.packet_latency.before(due), |due| self.message_latency.before(due))
    }

    /// Returns the due time of the next item. It is not before [`TimingStage::due`], because packets and messages are
    /// released early ([`TimingStage::handed_out`], [`TimingStage::said()`]).
    pub fn next(&self) -> Instant {
        self.first(|due| due, |due| due)
    }

    fn first(&self, of_packets: impl Fn(Instant) -> Instant, of_messages: impl Fn(Instant) -> Instant) -> Instant {
        let packets = self.packets().map(|(due, _)| due).min().unwrap_or(Instant::FAR);
        let agents = self.messages().map(|(due, _)| due).min().unwrap_or(Instant::FAR);
        of_packets(packets).min(of_messages(agents)).min(self.commands.due(&of_messages))
    }

    /// Returns the due times of items that may leave as packets, with their places.
    fn packets(&self) -> impl Iterator<Item = (Instant, TimingQueue)> {
        let lanes = self.lanes.iter().enumerate().map(|(level, lane)| (lane.server.due(), TimingQueue::Lane(level)));
        let agents = self.agents.due().filter(|(.., leaves)| *leaves);
        let agents = agents.map(|(due, place, _)| (due, TimingQueue::Agent(place)));
        lanes.chain(self.gate.as_ref().map(|gate| (gate.due(), TimingQueue::Gate))).chain(agents)
    }

    /// Returns the due times of items that leave as packet-ins only, with their places.
    fn messages(&self) -> impl Iterator<Item = (Instant, TimingQueue)> {
        let agents = self.agents.due().filter(|(.., leaves)| !leaves);
        agents.map(|(due, place, _)| (due, TimingQueue::Agent(place)))
    }

    /// Records that a packet left at `left`, and how long it took from its release until then. Packets are released
    /// earlier by the typical duration, so that they leave when they are due.
    pub fn handed_out(&mut self, left: Instant, took: SendDuration) {
        self.packet_latency.note(left, took);
    }

    /// Records that a message was written to its channel at `until`, and how long it took from its release until then.
    /// Messages are released earlier by the typical duration.
    pub fn said(&mut self, until: Instant, took: Duration) {
        self.message_latency.note(until, SendDuration::AtMost(took));
    }

    /// Returns the item that is to be released first; `None` if none is to be released by `now`. `describe` returns
    /// what a command changes in the tables, as they are when its turn comes.
    pub fn release(&mut self, now: Instant, describe: &mut dyn FnMut(&T) -> TableEffect) -> Option<ReleasedItem<T>> {
        self.release_until(now, now, describe)
    }

    /// Returns the item that is to be released first, as [`TimingStage::release`] does; `None` if none is to be
    /// released by `until`. `until` is not after `now`: it is the time up to which all arrived packets have been added.
    /// Items that are due later must wait for packets that arrived before their due times. `now` only counts for the
    /// lateness.
    pub fn release_until(
        &mut self,
        now: Instant,
        until: Instant,
        describe: &mut dyn FnMut(&T) -> TableEffect,
    ) -> Option<ReleasedItem<T>> {
        loop {
            let (due, place) = self.earliest(until)?;
            let released = match place {
                TimingQueue::Commands => self.step_commands(until, describe),
                TimingQueue::Lane(level) => self.leave_lane(due, level),
                TimingQueue::Agent(place) => {
                    let (due, (part, item)) = self.agents.servers[place].as_mut()?.take(due)?;
                    Some(ReleasedItem { part, due, item })
                }
                TimingQueue::Gate => {
                    let (due, item) = self.gate.as_mut()?.take(due)?;
                    Some(ReleasedItem { part: ReleaseKind::Data, due, item })
                }
            };
            if let Some(released) = released {
                let lead = match (place, &released.part) {
                    (TimingQueue::Commands, ReleaseKind::Barrier) => self.message_latency.time(released.due),
                    (TimingQueue::Commands, _) => Duration::ZERO,
                    (TimingQueue::Agent(place), _) if !self.agents.sends(place) => {
                        self.message_latency.time(released.due)
                    }
                    _ => self.packet_latency.time(released.due),
                };
                self.lateness.note((now + lead).since(released.due));
                return Some(released);
            }
        }
    }

    /// Returns due time and place of the item to be released first, if that is by `now`. Packets and messages are
    /// released before their due times.
    fn earliest(&self, now: Instant) -> Option<(Instant, TimingQueue)> {
        let packet = self.packets().min_by_key(|(due, _)| *due);
        let packet = packet.map(|(due, place)| (self.packet_latency.before(due), (due, place)));
        let message = self.messages().min_by_key(|(due, _)| *due);
        let message = message.map(|(due, place)| (self.message_latency.before(due), (due, place)));
        let command = self.commands.due(&|due| self.message_latency.before(due));
        let all = [(command, (command, TimingQueue::Commands))].into_iter().chain(message).chain(packet);
        all.min_by_key(|(release, _)| *release).filter(|(release, _)| *release <= now).map(|(_, first)| first)
    }

    fn step_commands(&mut self, now: Instant, describe: &mut dyn FnMut(&T) -> TableEffect) -> Option<ReleasedItem<T>> {
        if let Some(cache) = self.cache.as_mut().filter(|_| !self.revalidate.is_zero()) {
            let flows = u32::try_from(cache.flows(now)).unwrap_or(u32::MAX);
            self.commands.lengthen_rounds(self.revalidate.saturating_mul(flows));
        }
        let (tables, ahead) = (self.tables.as_ref(), &mut self.ahead);
        let is_asked = tables.is_some() || self.commands.has_effect();
        let mut charge = |item: &T, batch, unseen: &VecDeque<ExecutedCommand<T>>| {
            let work = if is_asked { describe(item) } else { TableEffect::Nothing };
            let kind = match work {
                TableEffect::Add { .. } => TableEffectKind::Add,
                TableEffect::Modify { .. } => TableEffectKind::Modify,
                TableEffect::Delete { .. } => TableEffectKind::Delete,
                TableEffect::Bundle { .. } => TableEffectKind::Bundle,
                TableEffect::Nothing => TableEffectKind::Nothing,
            };
            let found = tables.map(|tables| if unseen.is_empty() { tables } else { foreseen(ahead, tables, unseen) });
            let charge = found.and_then(|tables| tables.charge(&work, batch).ok()).unwrap_or_default();
            CommandStart { kind, writes: work.writes(), charge, work }
        };
        match self.commands.step(now, &|due| self.message_latency.before(due), &mut charge)? {
            CommandQueueEvent::Begun { at, writes } => {
                if !self.write.is_zero() {
                    let held = self.write.saturating_mul(writes);
                    self.lanes.iter_mut().for_each(|lane| lane.server.seize(at, held));
                }
                None
            }
            CommandQueueEvent::Unseen => {
                if let (Some((ahead, name)), Some(last)) = (&mut self.ahead, self.commands.unseen().back()) {
                    ahead.foresee(&last.work, name);
                }
                None
            }
            CommandQueueEvent::Answer { item, due } => Some(ReleasedItem { part: ReleaseKind::Barrier, due, item }),
            CommandQueueEvent::Done { item, record, member } => {
                if !record.full && member.is_none() {
                    // The caller carries out the command, so the anticipated tables are obsolete.
                    self.ahead = None;
                }
                self.note(record);
                let part = match member {
                    Some(member) => ReleaseKind::RefusedBundle(member),
                    None if record.full => ReleaseKind::Refused,
                    None => ReleaseKind::Command,
                };
                Some(ReleasedItem { part, due: record.shown, item })
            }
        }
    }

    fn note(&mut self, record: CommandRecord) {
        self.counts.commands += u64::from(!record.full);
        self.counts.refused += u64::from(record.full);
        if self.records.len() >= MAX_RECORDS {
            self.records.pop_front();
            self.counts.records_lost += 1;
        }
        self.records.push_back(record);
    }

    /// Takes a served packet from a lane. Returns it if there is no gate, or if the gate is full; otherwise moves it to
    /// the gate.
    fn leave_lane(&mut self, now: Instant, level: usize) -> Option<ReleasedItem<T>> {
        let (due, item) = self.lanes[level].server.take(now)?;
        let Some(gate) = &mut self.gate else { return Some(ReleasedItem { part: ReleaseKind::Data, due, item }) };
        let item = gate.offer(due, item).err()?;
        self.counts.lost_data += 1;
        Some(ReleasedItem { part: ReleaseKind::Lost, due, item })
    }

    /// Returns the records of the commands that were carried out or refused since the last call, oldest first.
    pub fn take_records(&mut self) -> Vec<CommandRecord> {
        self.records.drain(..).collect()
    }

    /// Returns the numbers of waiting items.
    pub fn waiting(&self) -> TimingBacklog {
        let (commands, barriers) = self.commands.waiting();
        let lanes: usize = self.lanes.iter().map(|lane| lane.server.len()).sum();
        let packets = lanes + self.gate.as_ref().map_or(0, GateQueue::len);
        let control = self.agents.servers.iter().flatten().map(FifoServer::len).sum();
        TimingBacklog { commands, barriers, packets, control }
    }

    /// Returns the counters.
    pub fn counts(&self) -> TimingCounts {
        self.counts
    }

    /// Returns how late items were released, which is the error of their delays.
    pub fn lateness(&self) -> &ReleaseLateness {
        &self.lateness
    }
}

/// Returns the tables with the effects of all commands that are carried out, including those that do not affect packets
/// yet (`unseen`).
fn foreseen<'a, T>(
    ahead: &'a mut Option<(ProfiledTables, u64)>,
    tables: &ProfiledTables,
    unseen: &VecDeque<ExecutedCommand<T>>,
) -> &'a ProfiledTables {
    let made = ahead.get_or_insert_with(|| {
        // Names are numbers. These count down from the middle, because the messages of a bundle have names from the
        // maximum down, and other entries have names from 1 up.
        let (mut made, mut name) = (tables.clone(), u64::MAX / 2);
        unseen.iter().for_each(|done| made.foresee(&done.work, &mut name));
        (made, name)
    });
    &made.0
}

/// Queue that holds an item.
#[derive(Debug, Clone, Copy)]
enum TimingQueue {
    Commands,
    Lane(usize),
    Agent(usize),
    Gate,
}
