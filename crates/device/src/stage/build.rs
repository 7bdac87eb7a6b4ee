//! Builds a stage from a profile.
use super::agents::AgentServers;
use super::{TimingCounts, TimingStage};
use crate::commands::CommandQueue;
use crate::effect::VisibilityQueue;
use crate::flow_cache::FlowCache;
use crate::lateness::ReleaseLateness;
use crate::level_server::LevelServer;
use crate::send_latency::SendLatency;
use crate::server::ServiceTimeSampler;
use crate::{GateQueue, ProfiledTables, TimingError};
use std::collections::VecDeque;
use std::time::Duration;
use stream_number::{EFFECT, LAG, LANES, TICK};
use weir_model::switch::batch::CommandBatching;
use weir_profile::{ControlPathTiming, Profile, ReleaseGate, ReturnDiscipline, SwitchTiming};
use weir_traffic::RandomStream;
use weir_units::Instant;

/// Stream numbers for random numbers.
pub(super) mod stream_number {
    pub(in crate::stage) const LAG: u64 = 0;
    pub(in crate::stage) const PACKET_IN: u64 = 1;
    pub(in crate::stage) const PACKET_OUT: u64 = 2;
    pub(in crate::stage) const TICK: u64 = 3;
    /// First of the streams for lanes.
    pub(in crate::stage) const LANES: u64 = 4;
    /// Above the streams of all lanes.
    pub(in crate::stage) const EFFECT: u64 = 1 << 32;
}

impl<T> TimingStage<T> {
    /// Creates the stage of a switch with this profile; none if the profile takes no time. Equal seeds give equal
    /// times.
    ///
    /// # Errors
    /// The profile has parts that only formulas and simulations support; the error names them.
    pub fn new(profile: &Profile, seed: u64) -> Result<Option<TimingStage<T>>, TimingError> {
        if !profile.takes_time() {
            return Ok(None);
        }
        let stream = |number| RandomStream::new(seed, 0, number);
        let timing = profile.timing.as_ref();
        if let Some(timing) = timing {
            refuse(profile, timing)?;
        }
        let batching = profile.tables.as_ref().map_or(CommandBatching::NONE, |tables| tables.batching);
        let lag = ServiceTimeSampler::new(profile.barrier.lag.as_ref(), stream(LAG))?;
        let effect =
            profile.effect.as_ref().map(|time| ServiceTimeSampler::new(Some(time), stream(EFFECT))).transpose()?;
        let mean_s = profile.effect.as_ref().map_or(0.0, |time| time.mean_s(0.0));
        let effect = VisibilityQueue::new(effect, Duration::try_from_secs_f64(mean_s).unwrap_or_default());
        let gate = timing.and_then(|timing| timing.gate).map(|gate| {
            // The phase of ticks is independent of all other events.
            let first = stream(TICK).below(GateQueue::<T>::every_ns(gate));
            GateQueue::new(gate, Instant::from_nanos(first))
        });
        Ok(Some(TimingStage {
            commands: CommandQueue::new(batching, profile.barrier.waits, lag, effect),
            tables: profile.tables.clone().map(ProfiledTables::new),
            ahead: None,
            lanes: lanes(profile, seed)?,
            cache: profile.cache.as_ref().map(FlowCache::new),
            revalidate: Duration::try_from_secs_f64(profile.cache.map_or(0.0, |cache| cache.revalidate_s))
                .unwrap_or_default(),
            gate,
            agents: AgentServers::new(timing, seed)?,
            write: timing.map_or(Duration::ZERO, |timing| timing.write),
            passes_again: timing.is_some_and(|timing| timing.returns == ReturnDiscipline::Fifo),
            records: VecDeque::new(),
            counts: TimingCounts::default(),
            lateness: ReleaseLateness::default(),
            packet_latency: SendLatency::of_packets(),
            message_latency: SendLatency::of_messages(),
        }))
    }
}

fn refuse(profile: &Profile, timing: &SwitchTiming) -> Result<(), TimingError> {
    let unsuitable = |found, expected| Err(TimingError::Unsuitable { profile: profile.name.clone(), found, expected });
    match timing {
        SwitchTiming { control: ControlPathTiming::Measured { .. }, .. } => unsuitable(
            "timing.control, which has the controller in it",
            "packet_in and packet_out: the controller is a real one",
        ),
        SwitchTiming { returns: ReturnDiscipline::Priority { .. }, .. } => {
            unsuitable("timing.returns in order of priority", "direct or fifo: others are for formulas and stations")
        }
        SwitchTiming { gate: Some(ReleaseGate::Batch { stages: 2.., .. }), .. } => {
            unsuitable("timing.batch with two stages", "one: others are for formulas and stations")
        }
        _ => Ok(()),
    }
}

/// Creates a lane for each level, or a single one if there are no levels.
fn lanes<T>(profile: &Profile, seed: u64) -> Result<Vec<LevelServer<T>>, TimingError> {
    let timing = profile.timing.as_ref();
    let (data, limit) = (timing.and_then(|timing| timing.data.as_ref()), timing.and_then(|timing| timing.data_buffer));
    let lane = |(number, forwarding): (u64, Option<&weir_profile::LevelForwarding>)| {
        Ok(LevelServer::new(
            ServiceTimeSampler::new(data, RandomStream::new(seed, 0, LANES + number))?,
            forwarding,
            limit,
        ))
    };
    if profile.forwarding.is_empty() {
        return Ok(vec![lane((0, None))?]);
    }
    (0..).zip(profile.forwarding.iter().map(Option::as_ref)).map(lane).collect()
}
