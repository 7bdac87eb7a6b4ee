//! All of a switch's timing together.
use crate::commands::{Commands, Step};
use crate::lane::Lane;
use crate::lateness::Lateness;
use crate::record::MAX_RECORDS;
use crate::server::{Drawn, Server};
use crate::{GateQueue, Record, Tables, TimingError, Work, WorkKind};
use std::collections::VecDeque;
use std::time::Duration;
use stream_number::{LAG, LANES, PACKET_IN, PACKET_OUT, TICK};
use weir_model::switch::batch::Batching;
use weir_profile::{ControlPath, Gate, MatchKind, Profile, Returns, ServiceTime, SwitchTiming};
use weir_traffic::Stream;
use weir_units::Instant;

/// What was held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// A command, now to be carried out.
    Command,
    /// A command that is to be refused: the tables are full (`OFPFMFC_TABLE_FULL`).
    Refused,
    /// A barrier, now to be answered.
    Barrier,
    /// A packet, now to leave.
    Data,
    /// A packet on its way to the controller.
    PacketIn,
    /// A packet from the controller, now to be carried out.
    PacketOut,
    /// A packet that found no room at the data path's gate: lost, and counted.
    Lost,
}

/// Something whose time has come.
#[derive(Debug)]
pub struct Released<T> {
    /// What it is.
    pub part: Part,
    /// When its time came: not after `now`.
    pub due: Instant,
    /// The thing itself.
    pub item: T,
}

/// A packet on its way through the data path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passing {
    /// The level that holds the entry it met, from 0.
    pub level: usize,
    /// What that entry looks at.
    pub kind: MatchKind,
    /// Its length.
    pub bytes: u32,
}

/// What went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Commands that were carried out.
    pub commands: u64,
    /// Commands that were refused since all levels were full.
    pub refused: u64,
    /// Packets that found no room in the data path or at its gate.
    pub lost_data: u64,
    /// Packets that found no room on their way to the controller, or back.
    pub lost_control: u64,
    /// Records that nobody took.
    pub records_lost: u64,
}

/// What a switch with a profile holds back, until when.
#[derive(Debug)]
pub struct Stage<T> {
    commands: Commands<T>,
    tables: Option<Tables>,
    lanes: Vec<Lane<T>>,
    gate: Option<GateQueue<T>>,
    agents: Agents<T>,
    /// How long a command seizes the data path.
    write: Duration,
    /// Packets that come back from the controller pass the data path again.
    passes_again: bool,
    records: VecDeque<Record>,
    counts: Counts,
    lateness: Lateness,
}

/// What carries packets to the controller and back.
#[derive(Debug)]
struct Agents<T> {
    servers: [Option<Server<(Part, T)>>; 2],
    services: [Drawn; 2],
    /// The first server does both jobs.
    shared: bool,
}

impl<T> Agents<T> {
    fn place(&self, part: Part) -> usize {
        usize::from(part == Part::PacketOut && !self.shared)
    }

    /// Given back with what it is if there is no agent, or no room.
    fn offer(&mut self, now: Instant, part: Part, bytes: u32, item: T) -> Result<(), (bool, T)> {
        let place = self.place(part);
        let service_ns = self.services[usize::from(part == Part::PacketOut)].draw_ns(bytes);
        match &mut self.servers[place] {
            Some(server) => server.offer(now, service_ns, (part, item)).map_err(|(_, item)| (true, item)),
            None => Err((false, item)),
        }
    }
}

/// Numbers of the streams of random numbers.
mod stream_number {
    pub(super) const LAG: u64 = 0;
    pub(super) const PACKET_IN: u64 = 1;
    pub(super) const PACKET_OUT: u64 = 2;
    pub(super) const TICK: u64 = 3;
    /// And those after it.
    pub(super) const LANES: u64 = 4;
}

impl<T> Stage<T> {
    /// The stage of a switch with this profile; none if it takes no time. The same seed gives the same times.
    ///
    /// # Errors
    /// The profile has parts that only formulas and simulations know what to do with, named.
    pub fn new(profile: &Profile, seed: u64) -> Result<Option<Stage<T>>, TimingError> {
        if !profile.takes_time() {
            return Ok(None);
        }
        let stream = |number| Stream::new(seed, 0, number);
        let timing = profile.timing.as_ref();
        if let Some(timing) = timing {
            refuse(profile, timing)?;
        }
        let batching = profile.tables.as_ref().map_or(Batching::NONE, |tables| tables.batching);
        let lag = Drawn::new(profile.barrier.lag.as_ref(), stream(LAG))?;
        let gate = timing.and_then(|timing| timing.gate).map(|gate| {
            // Where its ticks lie has nothing to do with when anything else happens.
            let every = match gate {
                Gate::Tick { every, .. } | Gate::Batch { timeout: every, .. } => every,
            };
            let first = stream(TICK).below(u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1));
            GateQueue::new(gate, Instant::from_nanos(first))
        });
        Ok(Some(Stage {
            commands: Commands::new(batching, profile.barrier.waits, lag),
            tables: profile.tables.clone().map(Tables::new),
            lanes: lanes(profile, seed)?,
            gate,
            agents: agents(timing, seed)?,
            write: timing.map_or(Duration::ZERO, |timing| timing.write),
            passes_again: timing.is_some_and(|timing| timing.returns == Returns::Fifo),
            records: VecDeque::new(),
            counts: Counts::default(),
            lateness: Lateness::default(),
        }))
    }

    /// The tables as the profile sees them, to be told what happens to entries; none if changes take no time.
    pub fn tables(&mut self) -> Option<&mut Tables> {
        self.tables.as_mut()
    }

    /// Whether another command or barrier may come; those that there is no room for have to wait outside.
    pub fn has_room(&self) -> bool {
        self.commands.has_room()
    }

    /// Whether no command and no barrier is under way.
    pub fn is_idle(&self) -> bool {
        self.commands.is_idle()
    }

    /// A flow-mod came. It is given back as [`Part::Command`] or [`Part::Refused`].
    pub fn command(&mut self, now: Instant, item: T) {
        self.commands.command(now, item);
    }

    /// A barrier came. It is given back as [`Part::Barrier`].
    pub fn barrier(&mut self, now: Instant, item: T) {
        self.commands.barrier(now, item);
    }

    /// A packet is on its way to a controller. It is given back as [`Part::PacketIn`]; or at once, by this very call, if that takes no time.
    ///
    /// # Errors
    /// There is no room: the packet is lost, and counted.
    pub fn packet_in(&mut self, now: Instant, bytes: u32, item: T) -> Result<Option<T>, T> {
        self.agent(now, Part::PacketIn, bytes, item)
    }

    /// A packet came from a controller. It is given back as [`Part::PacketOut`]; or at once, by this very call, if that takes no time.
    ///
    /// # Errors
    /// There is no room: the packet is lost, and counted.
    pub fn packet_out(&mut self, now: Instant, bytes: u32, item: T) -> Result<Option<T>, T> {
        self.agent(now, Part::PacketOut, bytes, item)
    }

    fn agent(&mut self, now: Instant, part: Part, bytes: u32, item: T) -> Result<Option<T>, T> {
        match self.agents.offer(now, part, bytes, item) {
            Ok(()) => Ok(None),
            Err((false, item)) => Ok(Some(item)),
            Err((true, item)) => {
                self.counts.lost_control += 1;
                Err(item)
            }
        }
    }

    /// Whether packets that come back from the controller pass the data path again.
    pub fn passes_again(&self) -> bool {
        self.passes_again
    }

    /// A packet passes the data path. It is given back as [`Part::Data`].
    ///
    /// # Errors
    /// There is no room: the packet is lost, and counted.
    pub fn packet(&mut self, now: Instant, passing: Passing, item: T) -> Result<(), T> {
        let level = passing.level.min(self.lanes.len() - 1);
        let entries = self.tables.as_ref().map_or(0, |tables| tables.entries(level));
        let offered = self.lanes[level].offer(now, passing.kind, passing.bytes, entries, item);
        offered.inspect_err(|_| self.counts.lost_data += 1)
    }

    /// When there is something to do next; [`Instant::FAR`] if nothing waits.
    pub fn due(&self) -> Instant {
        let lanes = self.lanes.iter().map(|lane| lane.server.due());
        let agents = self.agents.servers.iter().flatten().map(Server::due);
        let gate = self.gate.as_ref().map(GateQueue::due);
        lanes.chain(agents).chain(gate).fold(self.commands.due(), Instant::min)
    }

    /// The next thing whose time has come, the earliest first; none: look again at [`Stage::due`]. `describe` says what a command is about as the tables
    /// are, when its turn comes.
    pub fn release(&mut self, now: Instant, describe: &mut dyn FnMut(&T) -> Work) -> Option<Released<T>> {
        loop {
            let released = match self.earliest(now)? {
                Place::Commands => self.step_commands(now, describe),
                Place::Lane(level) => self.leave_lane(now, level),
                Place::Agent(place) => {
                    let (due, (part, item)) = self.agents.servers[place].as_mut()?.take(now)?;
                    Some(Released { part, due, item })
                }
                Place::Gate => {
                    let (due, item) = self.gate.as_mut()?.take(now)?;
                    Some(Released { part: Part::Data, due, item })
                }
            };
            if let Some(released) = released {
                self.lateness.note(now.since(released.due));
                return Some(released);
            }
        }
    }

    fn earliest(&self, now: Instant) -> Option<Place> {
        let lanes = self.lanes.iter().enumerate().map(|(level, lane)| (lane.server.due(), Place::Lane(level)));
        let agents = self.agents.servers.iter().enumerate();
        let agents = agents.filter_map(|(place, server)| Some((server.as_ref()?.due(), Place::Agent(place))));
        let gate = self.gate.as_ref().map(|gate| (gate.due(), Place::Gate));
        let commands = [(self.commands.due(), Place::Commands)];
        let all = commands.into_iter().chain(agents).chain(lanes).chain(gate);
        all.min_by_key(|(due, _)| *due).filter(|(due, _)| *due <= now).map(|(_, place)| place)
    }

    fn step_commands(&mut self, now: Instant, describe: &mut dyn FnMut(&T) -> Work) -> Option<Released<T>> {
        let tables = self.tables.as_ref();
        let mut charge = |item: &T, batch| {
            let work = tables.map_or(Work::Nothing, |_| describe(item));
            let kind = match work {
                Work::Add { .. } => WorkKind::Add,
                Work::Modify { .. } => WorkKind::Modify,
                Work::Delete { .. } => WorkKind::Delete,
                Work::Nothing => WorkKind::Nothing,
            };
            let charge = tables.and_then(|tables| tables.charge(&work, batch).ok()).unwrap_or_default();
            (kind, charge)
        };
        match self.commands.step(now, &mut charge)? {
            Step::Begun { at } => {
                if !self.write.is_zero() {
                    self.lanes.iter_mut().for_each(|lane| lane.server.seize(at, self.write));
                }
                None
            }
            Step::Answer { item, due } => Some(Released { part: Part::Barrier, due, item }),
            Step::Done { item, record } => {
                self.note(record);
                let part = if record.full { Part::Refused } else { Part::Command };
                Some(Released { part, due: record.ended, item })
            }
        }
    }

    fn note(&mut self, record: Record) {
        self.counts.commands += u64::from(!record.full);
        self.counts.refused += u64::from(record.full);
        if self.records.len() >= MAX_RECORDS {
            self.records.pop_front();
            self.counts.records_lost += 1;
        }
        self.records.push_back(record);
    }

    /// A packet was served: it leaves, or goes to the gate.
    fn leave_lane(&mut self, now: Instant, level: usize) -> Option<Released<T>> {
        let (due, item) = self.lanes[level].server.take(now)?;
        let Some(gate) = &mut self.gate else { return Some(Released { part: Part::Data, due, item }) };
        let item = gate.offer(due, item).err()?;
        self.counts.lost_data += 1;
        Some(Released { part: Part::Lost, due, item })
    }

    /// What was noted of commands since this was last called, oldest first.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.records.drain(..).collect()
    }

    /// What went through so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How late things were released: the error of the delays.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }
}

/// Where something is due.
enum Place {
    Commands,
    Lane(usize),
    Agent(usize),
    Gate,
}

fn refuse(profile: &Profile, timing: &SwitchTiming) -> Result<(), TimingError> {
    let unsuitable = |found, expected| Err(TimingError::Unsuitable { profile: profile.name.clone(), found, expected });
    match timing {
        SwitchTiming { control: ControlPath::Measured { .. }, .. } => unsuitable(
            "timing.control, which has the controller in it",
            "packet_in and packet_out: the controller is a real one",
        ),
        SwitchTiming { returns: Returns::Priority { .. }, .. } => {
            unsuitable("timing.returns in order of priority", "direct or fifo: others are for formulas and stations")
        }
        SwitchTiming { gate: Some(Gate::Batch { stages: 2.., .. }), .. } => {
            unsuitable("timing.batch with two stages", "one: others are for formulas and stations")
        }
        _ => Ok(()),
    }
}

/// A lane for each level; one for all if there are none.
fn lanes<T>(profile: &Profile, seed: u64) -> Result<Vec<Lane<T>>, TimingError> {
    let timing = profile.timing.as_ref();
    let (data, limit) = (timing.and_then(|timing| timing.data.as_ref()), timing.and_then(|timing| timing.data_buffer));
    let lane = |(number, forwarding): (u64, Option<&weir_profile::LevelForwarding>)| {
        Ok(Lane::new(Drawn::new(data, Stream::new(seed, 0, LANES + number))?, forwarding, limit))
    };
    if profile.forwarding.is_empty() {
        return Ok(vec![lane((0, None))?]);
    }
    (0..).zip(profile.forwarding.iter().map(Option::as_ref)).map(lane).collect()
}

fn agents<T>(timing: Option<&SwitchTiming>, seed: u64) -> Result<Agents<T>, TimingError> {
    let (mut packet_in, mut packet_out, mut both, mut limit): (Option<&ServiceTime>, Option<&ServiceTime>, _, _) =
        (None, None, false, None);
    if let Some(ControlPath::Agents { packet_in: up, packet_out: down, shared, buffer }) =
        timing.map(|timing| &timing.control)
    {
        (packet_in, packet_out, both, limit) = (up.as_ref(), down.as_ref(), *shared, *buffer);
    }
    let shared = both && (packet_in.is_some() || packet_out.is_some());
    let server = |is_there: bool| is_there.then(|| Server::new(limit));
    Ok(Agents {
        servers: [server(packet_in.is_some() || shared), server(packet_out.is_some() && !shared)],
        services: [
            Drawn::new(packet_in, Stream::new(seed, 0, PACKET_IN))?,
            Drawn::new(packet_out, Stream::new(seed, 0, PACKET_OUT))?,
        ],
        shared,
    })
}
