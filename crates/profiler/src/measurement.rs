//! Runs a whole measurement of a device: its parts in order, and the fits at the end.
use crate::bench::TestBench;
use crate::control::{self, MeasuredBurst};
use crate::data::{self, LevelDelays};
use crate::device::DeviceUnderTest;
use crate::fit::build::{self, BarrierBehaviour, ProfileMetadata};
use crate::fit::costs::{self, FittedTableCosts};
use crate::flow_cache::{self, MeasuredFlowCache};
use crate::levels::{self, MeasuredLevels};
use crate::single_commands::{self, SingleCommandTime};
use crate::store::{MessageRow, RawDataStore};
use crate::throughput::{self, Throughput};
use crate::{
    MeasurementGrid, MeasurementSettings, ProfilerError, ProgressReporter, RigDelayTable, batching, messages, policy,
};
use std::time::Duration;
use weir_model::switch::batch::CommandBatching;
use weir_model::switch::costs::{PriorityCosts, TableCosts};
use weir_model::switch::device::{SwitchModel, TableLevel};
use weir_model::switch::policy::EvictionPolicy;
use weir_model::switch::speedup::PerEntryCost;
use weir_openflow::Body;
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{PortNo, Version};
use weir_profile::Profile;

/// Share of packets sent late above which [`Measurement::notes`] mentions it.
const LATE_MOST: f64 = 0.002;

/// Idle time after which all flows are surely forgotten, as a multiple of that which was found.
pub(crate) const SURELY_IDLE: f64 = 1.1;

/// Description of a device that has no control channel to ask for one.
const SILENT: &str = "A device without OpenFlow";

/// Selection of the parts of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasurementParts {
    /// True to measure the control plane: the grid of timed commands, and the times of other messages.
    pub control: bool,
    /// True to measure table levels, policy and batches. On switches with a channel, levels and policy are measured in
    /// any case, and batches also if `control` is true.
    pub tables: bool,
    /// True to measure packet delays and throughput.
    pub data: bool,
}

impl MeasurementParts {
    /// All parts together.
    pub const ALL: MeasurementParts = MeasurementParts { control: true, tables: true, data: true };
}

/// Results of a measurement. If it ended early, results that were not obtained are `None` or empty.
#[derive(Debug, Default)]
pub struct Measurement {
    /// Description that the switch gives of itself.
    pub device: String,
    /// OpenFlow version of the channel; `None` if the device has no channel, so that only its data plane was measured.
    pub version: Option<Version>,
    /// For each interface: number of the switch port to which it is connected.
    pub ports: Vec<PortNo>,
    /// Table levels and their sizes.
    pub sizes: Option<MeasuredLevels>,
    /// Policy by which the switch selects entries to move to the next table level.
    pub policy: Option<policy::MeasuredPolicy>,
    /// Rule by which the switch gathers commands in batches.
    pub batching: Option<batching::MeasuredBatching>,
    /// Cache of flows, as packets show it.
    pub flow_cache: Option<MeasuredFlowCache>,
    /// Bursts of commands that were timed for the control plane's grid.
    pub timed: Vec<MeasuredBurst>,
    /// Single commands, if the switch has a cache of flows.
    pub singles: Vec<SingleCommandTime>,
    /// Costs of table changes for each table level, fitted to `timed`.
    pub costs: Option<FittedTableCosts>,
    /// Behaviour of barriers, found from `timed`.
    pub barriers: Option<BarrierBehaviour>,
    /// Times of single packet-ins, packet-outs, echoes and statistics.
    pub messages: Vec<MessageRow>,
    /// Packet delays by level.
    pub(crate) delays: Vec<LevelDelays>,
    /// Highest packet rates without loss.
    pub throughput: Vec<Throughput>,
    /// Share of packets that this machine sent late. If it is large, the times may be the machine's rather than the
    /// switch's.
    pub late_share: f64,
    /// Delay of the measuring equipment itself, which is not the device's. Unknown unless the caller sets it.
    pub rig: RigDelayTable,
}

/// Options of a measurement.
pub struct MeasurementOptions<'o> {
    /// Precision and time limits.
    pub settings: MeasurementSettings,
    /// Table occupancies, batch sizes, packet lengths and other values to measure at.
    pub grid: MeasurementGrid,
    /// Parts to measure.
    pub parts: MeasurementParts,
    /// Expected switch ports of the interfaces, in order; not checked if empty.
    pub ports: Vec<PortNo>,
    /// Stop request: polled regularly; true ends the measurement.
    pub stop: &'o mut dyn FnMut() -> bool,
    /// Receiver of progress reports.
    pub progress: ProgressReporter<'o>,
}

/// Measures a device. Returns all results obtained, and the error that ended the measurement early, if any.
pub fn measure<'o>(
    device: &'o mut dyn DeviceUnderTest,
    options: MeasurementOptions<'o>,
    store: &mut RawDataStore,
) -> (Measurement, Result<(), ProfilerError>) {
    let MeasurementOptions { settings, grid, parts, ports, stop, progress } = options;
    let mut measurement = Measurement { version: device.version(), ..Measurement::default() };
    let bench = TestBench::new(device, settings, stop);
    let mut run = MeasurementRun { bench, grid, store, progress, made: &mut measurement };
    let ended = run.all(parts, &ports).map_err(|error| error.while_doing(&run.bench.during));
    if ended.is_err() {
        run.bench.leave();
    }
    let ended = ended.and(run.fit());
    run.made.late_share = run.bench.late_share();
    (measurement, ended)
}

struct MeasurementRun<'o, 'r> {
    bench: TestBench<'o>,
    grid: MeasurementGrid,
    store: &'r mut RawDataStore,
    progress: ProgressReporter<'o>,
    made: &'r mut Measurement,
}

impl MeasurementRun<'_, '_> {
    fn all(&mut self, parts: MeasurementParts, ports: &[PortNo]) -> Result<(), ProfilerError> {
        self.grid.check()?;
        if self.bench.device.interfaces() < 2 {
            let found = self.bench.device.interfaces();
            return Err(ProfilerError::wrong(
                "interfaces (--data)",
                found,
                "two at least: where packets go in and come out",
            ));
        }
        self.progress.begin("ports");
        if !self.bench.has_channel() {
            return self.without_channel(parts);
        }
        self.made.device = self.describe()?;
        self.made.ports = self.bench.learn_ports(ports)?;
        self.progress.begin("tables");
        self.tables()?;
        if parts.tables || parts.control {
            self.progress.begin("batches");
            self.batching()?;
        }
        // The places of entries must be known for all further parts.
        self.progress.begin("policy");
        self.policy()?;
        if parts.control || parts.data {
            self.progress.begin("flows");
            self.flow_cache()?;
        }
        if parts.control {
            self.control()?;
        }
        if parts.data {
            self.data()?;
        }
        self.bench.clear()
    }

    /// Measures the data plane of a device without a control channel.
    fn without_channel(&mut self, parts: MeasurementParts) -> Result<(), ProfilerError> {
        if parts.control || parts.tables {
            let expected = "its data plane alone (--only data), or the SWITCH's channel, such as tcp:192.0.2.1:6653";
            return Err(ProfilerError::wrong("a device without a control channel", "more to measure", expected));
        }
        SILENT.clone_into(&mut self.made.device);
        let delay_s = self.bench.find_way()?;
        self.bench.knows_forwarding(&[delay_s], None);
        self.packets(&[None], &[delay_s])
    }

    fn describe(&mut self) -> Result<String, ProfilerError> {
        let request = MultipartRequest { more: false, body: RequestBody::Desc };
        let (_, body) = self.bench.ask(Body::MultipartRequest(request), "description")?;
        let Body::MultipartReply(reply) = body else { return Ok(String::new()) };
        let ReplyBody::Desc(desc) = reply.body else { return Ok(String::new()) };
        let parts = [&desc.mfr_desc, &desc.hw_desc, &desc.sw_desc].map(|part| part.trim().to_owned());
        Ok(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "))
    }

    fn tables(&mut self) -> Result<(), ProfilerError> {
        let sizes = match self.store.kept::<MeasuredLevels>("levels")? {
            Some(sizes) => sizes,
            None => {
                let sizes = levels::measure(&mut self.bench, &self.grid, self.store)?;
                self.store.keep("levels", &sizes)?;
                sizes
            }
        };
        self.bench.knows_forwarding(&sizes.delays_s, sizes.missing_s);
        self.made.sizes = Some(sizes);
        self.know()
    }

    fn batching(&mut self) -> Result<(), ProfilerError> {
        let found = match self.store.kept("batching")? {
            Some(found) => found,
            None => {
                let found = batching::measure(&mut self.bench, &self.grid, self.store)?;
                self.store.keep("batching", &found)?;
                found
            }
        };
        self.made.batching = Some(found);
        self.know()
    }

    fn policy(&mut self) -> Result<(), ProfilerError> {
        let Some(sizes) = self.made.sizes.clone() else { return Ok(()) };
        let found = match self.store.kept("found-policy")? {
            Some(found) => found,
            None => {
                let found = policy::measure(&mut self.bench, &self.grid, &sizes, self.store)?;
                self.store.keep("found-policy", &found)?;
                found
            }
        };
        self.made.policy = Some(found);
        self.know()
    }

    fn flow_cache(&mut self) -> Result<(), ProfilerError> {
        let Some(sizes) = &self.made.sizes else { return Ok(()) };
        let found = flow_cache::measure(&mut self.bench, &self.grid, sizes, self.store)?;
        self.bench.knows_cache(found.timing().as_ref());
        self.made.flow_cache = Some(found);
        Ok(())
    }

    /// Passes the levels, batching and policy found so far to the bench; costs are not known yet.
    fn know(&mut self) -> Result<(), ProfilerError> {
        const NOTHING: PriorityCosts<PerEntryCost> =
            PriorityCosts { single: PerEntryCost::NONE, several: PerEntryCost::NONE };
        let costs =
            TableCosts { add: NOTHING, modify: NOTHING, shift_s: 0.0, search_s: 0.0, write_s: 0.0, delete_s: None };
        let Some(sizes) = &self.made.sizes else { return Ok(()) };
        let levels = sizes.sizes.iter().map(|size| TableLevel { size: *size, costs }).collect();
        let batching = self.made.batching.as_ref().map_or(CommandBatching::NONE, |found| found.batching);
        let policy = self.made.policy.as_ref().map_or(EvictionPolicy::default(), |found| found.policy.clone());
        self.bench.know(SwitchModel { levels, batching, policy })
    }

    fn control(&mut self) -> Result<(), ProfilerError> {
        self.progress.begin("messages");
        self.made.messages = messages::measure(&mut self.bench, &self.grid, self.store, &mut self.progress)?;
        let cache = self.made.flow_cache.as_ref().and_then(MeasuredFlowCache::timing);
        if let Some(idle_s) = cache.and_then(|cache| cache.idle_s) {
            // The first bursts meet an empty cache.
            self.bench.rest(Duration::from_secs_f64(idle_s * SURELY_IDLE))?;
        }
        self.progress.begin("control plane");
        let most = self.made.batching.as_ref().map_or(1, |found| found.batching.most);
        let mut grid = self.grid.clone();
        if most > 1 && most <= grid.batch_max && !grid.batches.contains(&most) {
            // A full batch is carried out without waiting: the law of batches ends at this size.
            grid.batches.push(most);
            grid.batches.sort_unstable();
        }
        let room = self.made.sizes.as_ref().filter(|sizes| sizes.is_full).map(|sizes| sizes.entries);
        let (timed, ended) = control::measure(&mut self.bench, &grid, room, self.store, &mut self.progress);
        self.made.timed = timed;
        ended?;
        if cache.is_some() {
            self.progress.begin("single commands");
            let room = room.unwrap_or(u64::MAX);
            let forgets = cache.and_then(|cache| cache.idle_s).map_or(0.0, |idle_s| idle_s * SURELY_IDLE);
            let forgets = Duration::from_secs_f64(forgets);
            self.made.singles = single_commands::measure(&mut self.bench, &self.grid, room, forgets, self.store)?;
        }
        Ok(())
    }

    fn data(&mut self) -> Result<(), ProfilerError> {
        let Some(sizes) = self.made.sizes.clone() else { return Ok(()) };
        self.packets(&sizes.sizes, &sizes.delays_s)
    }

    /// Measures throughput, and packet delays in table levels with the given sizes and approximate delays.
    fn packets(&mut self, sizes: &[Option<u64>], delays_s: &[f64]) -> Result<(), ProfilerError> {
        self.progress.begin("data plane");
        self.bench.clear()?;
        let (grid, store) = (&self.grid, &mut *self.store);
        let made = &mut self.made.delays;
        data::measure(&mut self.bench, grid, sizes, delays_s, store, &mut self.progress, made)?;
        self.progress.begin("throughput");
        self.made.throughput = throughput::measure(&mut self.bench, grid, store, &mut self.progress)?;
        Ok(())
    }

    /// Fits the costs and the behaviour of barriers to the bursts measured so far, if there are any.
    fn fit(&mut self) -> Result<(), ProfilerError> {
        if self.made.timed.is_empty() {
            return Ok(());
        }
        let levels = self.made.sizes.as_ref().map_or(1, |sizes| sizes.sizes.len());
        let batching = self.made.batching.as_ref().map_or(CommandBatching::NONE, |found| found.batching);
        let mut costs = costs::fit(&self.made.timed, levels, batching);
        costs.use_singles(&self.made.singles);
        self.made.barriers = Some(build::barriers(&self.made.timed, &costs, batching.most)?);
        self.made.costs = Some(costs);
        Ok(())
    }
}

impl Measurement {
    /// Builds a profile from the results.
    ///
    /// # Errors
    /// The fits fail, or the result is not a valid profile.
    pub fn profile(&self, about: &ProfileMetadata) -> Result<Profile, ProfilerError> {
        let device = if about.device.is_empty() { self.device.clone() } else { about.device.clone() };
        build::profile(&ProfileMetadata { device, ..about.clone() }, self)
    }

    /// Returns the measured packet delays of all levels.
    pub fn delays(&self) -> &[crate::store::PacketDelayRow] {
        // The rows of each level include those of the levels before it.
        self.delays.last().map_or(&[], |level| &level.rows)
    }

    /// Returns remarks for the user about the measurement.
    pub fn notes(&self) -> Vec<String> {
        let lists = [
            self.sizes.as_ref().map(|sizes| sizes.notes.clone()),
            self.batching.as_ref().map(|found| found.notes.clone()),
            self.policy.as_ref().map(|found| found.notes.clone()),
            self.costs.as_ref().map(|costs| costs.notes.clone()),
        ];
        let mut notes: Vec<String> = lists.into_iter().flatten().flatten().collect();
        if self.late_share > LATE_MOST {
            let share = self.late_share * 100.0;
            notes.insert(
                0,
                format!("this machine was busy: {share:.1} % of packets were sent late; measure again when it is not"),
            );
        }
        if self.version.is_none() && !self.delays.is_empty() {
            notes.push("control plane: not measured: with this profile commands and messages take no time".to_owned());
        }
        let unknown = self.flow_cache.iter().flat_map(|found| &found.unknown);
        notes.extend(unknown.map(|tier| format!("cache of flows: {}", tier.note())));
        if self.sizes.as_ref().is_some_and(|sizes| !sizes.confirmed) {
            notes.push("levels: a second look at the same entries gave other sizes".to_owned());
        }
        if let Some(BarrierBehaviour { early: [early, all], reordered, .. }) = &self.barriers {
            if *early > 0 {
                notes.push(format!(
                    "barriers: {early} of {all} were answered before packets showed that the commands were carried out"
                ));
            }
            if *reordered > 0 {
                notes.push(format!(
                    "commands of {reordered} bursts were carried out in another order than they were sent"
                ));
            }
        }
        notes
    }
}
