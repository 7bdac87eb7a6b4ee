//! A whole measurement: what is measured in which order, and what came of it.
use crate::bench::Bench;
use crate::control::{self, Timed};
use crate::data::{self, LevelDelays};
use crate::device::Device;
use crate::fit::build::{self, About, Barriers};
use crate::fit::costs::{self, Costs};
use crate::levels::{self, Sizes};
use crate::store::{MessageRow, Store};
use crate::throughput::{self, Throughput};
use crate::{Grid, ProfilerError, Progress, Rig, Settings, batching, messages, policy};
use weir_model::switch::batch::Batching;
use weir_model::switch::costs::{ByPriorities, TableCosts};
use weir_model::switch::device::{Level, SwitchModel};
use weir_model::switch::policy::Policy;
use weir_model::switch::speedup::Overhead;
use weir_openflow::Body;
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{PortNo, Version};
use weir_profile::Profile;

/// The share of packets that may be late without anyone being told.
const LATE_MOST: f64 = 0.002;

/// What a device says of itself that says nothing.
const SILENT: &str = "A device without OpenFlow";

/// What is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The control plane's grid, and messages.
    pub control: bool,
    /// Levels of tables, policies and batches. Levels and policies are looked for in any case, batches where the control plane is measured.
    pub tables: bool,
    /// Delays of packets, and throughput.
    pub data: bool,
}

impl Parts {
    /// Everything.
    pub const ALL: Parts = Parts { control: true, tables: true, data: true };
}

/// What was measured, all of it or up to where it was stopped.
#[derive(Debug, Default)]
pub struct Measurement {
    /// What the switch says it is.
    pub device: String,
    /// The version that its channel speaks; none: it has no channel, so its data plane alone was measured.
    pub version: Option<Version>,
    /// Its ports behind the interfaces.
    pub ports: Vec<PortNo>,
    /// Levels of its tables.
    pub sizes: Option<Sizes>,
    /// Which entries go to the next level.
    pub policy: Option<policy::Found>,
    /// Which commands are carried out together.
    pub batching: Option<batching::Found>,
    /// Bursts of the grid.
    pub timed: Vec<Timed>,
    /// What they cost.
    pub costs: Option<Costs>,
    /// How barriers are answered.
    pub barriers: Option<Barriers>,
    /// Messages.
    pub messages: Vec<MessageRow>,
    /// Delays of packets, by level.
    pub(crate) delays: Vec<LevelDelays>,
    /// The highest rates without loss.
    pub throughput: Vec<Throughput>,
    /// The share of packets that this machine sent late: it had other things to do, and times may be its own rather than the switch's.
    pub late_share: f64,
    /// The rig's own delay, which is no part of the device's: nothing is known of it unless someone says it.
    pub rig: Rig,
}

/// How it is measured.
pub struct Options<'o> {
    /// How finely, how patiently.
    pub settings: Settings,
    /// At which sizes.
    pub grid: Grid,
    /// What.
    pub parts: Parts,
    /// The ports behind the interfaces, as someone thinks they are; found out if empty.
    pub ports: Vec<PortNo>,
    /// Asked now and then whether to stop.
    pub stop: &'o mut dyn FnMut() -> bool,
    /// Told how far it is.
    pub progress: Progress<'o>,
}

/// Measures a switch. What was measured comes back whatever happens, with what ended it if it is not all.
pub fn measure<'o>(
    device: &'o mut dyn Device,
    options: Options<'o>,
    store: &mut Store,
) -> (Measurement, Result<(), ProfilerError>) {
    let Options { settings, grid, parts, ports, stop, progress } = options;
    let mut measurement = Measurement { version: device.version(), ..Measurement::default() };
    let bench = Bench::new(device, settings, stop);
    let mut run = Run { bench, grid, store, progress, made: &mut measurement };
    let ended = run.all(parts, &ports).map_err(|error| error.while_doing(&run.bench.during));
    if ended.is_err() {
        run.bench.leave();
    }
    let ended = ended.and(run.fit());
    run.made.late_share = run.bench.late_share();
    (measurement, ended)
}

struct Run<'o, 'r> {
    bench: Bench<'o>,
    grid: Grid,
    store: &'r mut Store,
    progress: Progress<'o>,
    made: &'r mut Measurement,
}

impl Run<'_, '_> {
    fn all(&mut self, parts: Parts, ports: &[PortNo]) -> Result<(), ProfilerError> {
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
        // Where entries are is to be known for everything else.
        self.progress.begin("policy");
        self.policy()?;
        if parts.control {
            self.control()?;
        }
        if parts.data {
            self.data()?;
        }
        self.bench.clear()
    }

    /// The data plane of a device that has nothing else.
    fn without_channel(&mut self, parts: Parts) -> Result<(), ProfilerError> {
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
        let sizes = match self.store.kept::<Sizes>("levels")? {
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

    /// Tells the bench what is known of the switch so far; what it costs is not known yet.
    fn know(&mut self) -> Result<(), ProfilerError> {
        const NOTHING: ByPriorities<Overhead> = ByPriorities { single: Overhead::NONE, several: Overhead::NONE };
        let costs =
            TableCosts { add: NOTHING, modify: NOTHING, shift_s: 0.0, search_s: 0.0, write_s: 0.0, delete_s: None };
        let Some(sizes) = &self.made.sizes else { return Ok(()) };
        let levels = sizes.sizes.iter().map(|size| Level { size: *size, costs }).collect();
        let batching = self.made.batching.as_ref().map_or(Batching::NONE, |found| found.batching);
        let policy = self.made.policy.as_ref().map_or(Policy::default(), |found| found.policy.clone());
        self.bench.know(SwitchModel { levels, batching, policy })
    }

    fn control(&mut self) -> Result<(), ProfilerError> {
        self.progress.begin("messages");
        self.made.messages = messages::measure(&mut self.bench, &self.grid, self.store, &mut self.progress)?;
        self.progress.begin("control plane");
        let most = self.made.batching.as_ref().map_or(1, |found| found.batching.most);
        let mut grid = self.grid.clone();
        if most > 1 && most <= grid.batch_max && !grid.batches.contains(&most) {
            // A batch that is full is not waited for: that is where the law of batches ends.
            grid.batches.push(most);
            grid.batches.sort_unstable();
        }
        let room = self.made.sizes.as_ref().filter(|sizes| sizes.is_full).map(|sizes| sizes.entries);
        let (timed, ended) = control::measure(&mut self.bench, &grid, room, self.store, &mut self.progress);
        self.made.timed = timed;
        ended
    }

    fn data(&mut self) -> Result<(), ProfilerError> {
        let Some(sizes) = self.made.sizes.clone() else { return Ok(()) };
        self.packets(&sizes.sizes, &sizes.delays_s)
    }

    /// Delays of packets in levels of these sizes, and throughput.
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

    /// What can be said with what there is.
    fn fit(&mut self) -> Result<(), ProfilerError> {
        if self.made.timed.is_empty() {
            return Ok(());
        }
        let levels = self.made.sizes.as_ref().map_or(1, |sizes| sizes.sizes.len());
        let batching = self.made.batching.as_ref().map_or(Batching::NONE, |found| found.batching);
        let costs = costs::fit(&self.made.timed, levels, batching);
        self.made.barriers = Some(build::barriers(&self.made.timed, &costs, batching.most)?);
        self.made.costs = Some(costs);
        Ok(())
    }
}

impl Measurement {
    /// The profile that it adds up to.
    ///
    /// # Errors
    /// Too little was measured for one.
    pub fn profile(&self, about: &About) -> Result<Profile, ProfilerError> {
        let device = if about.device.is_empty() { self.device.clone() } else { about.device.clone() };
        build::profile(&About { device, ..about.clone() }, self)
    }

    /// Packets whose delays were measured, of all levels.
    pub fn delays(&self) -> &[crate::store::DelayRow] {
        // Those of a level are gathered beside those of the levels before.
        self.delays.last().map_or(&[], |level| &level.rows)
    }

    /// What to know about it.
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
        if self.sizes.as_ref().is_some_and(|sizes| !sizes.confirmed) {
            notes.push("levels: a second look at the same entries gave other sizes".to_owned());
        }
        if let Some(Barriers { early: [early, all], reordered, .. }) = &self.barriers {
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
