//! Starts, controls and stops a running switch.
mod virtuals;

use crate::clock::switch_clock;
use crate::config::{PortConfig, SoftwareSwitchConfig};
use crate::control::virtuals::VirtualSwitchRegistry;
use crate::control::{
    self, AbsentPorts, ByteStream, ChannelRegistry, ControlContext, ControlThreadCommand, ControlThreadSetup,
};
use crate::ctl::TableContents;
use crate::ctl::server::CtlServer;
use crate::engine::inbox::{EngineClient, inbox};
use crate::engine::{Engine, ServedSwitch};
use crate::snapshot::SwitchSnapshot;
use crate::targets::ListenTarget;
use crate::threads::{ThreadingMode, ThreadsConfig, ThreadsError};
use crate::turns::{SystemThreadLauncher, ThreadLauncher};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use weir_datapath::{Datapath, PipelineTrace};
use weir_device::ProfileConfig;
use weir_openflow::model::group::GroupCommand;
use weir_openflow::model::meter::MeterCommand;
use weir_openflow::model::multipart::{FlowRequest, FlowStats};
use weir_openflow::model::{ErrorType, FlowMod, PortNo};
use weir_openflow::text::{self, PortNames};
use weir_packet::Frame;
use weir_port::PortError;
use weir_slicing::VirtualSwitch;
use weir_tls::Credentials;
use weir_units::StallLog;

/// Errors of starting and controlling a switch.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SwitchError {
    #[error("{tried}: {error}{advice}")]
    System { tried: String, error: io::Error, advice: String },
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("port {number}: {problem}")]
    PortNumber { number: PortNo, problem: String },
    #[error("no port `{found}`; there are: {ports}")]
    NoPort { found: String, ports: String },
    #[error(
        "socket {path}: a switch or controller that is running uses it; stop that one, or choose another --name or \
         --control-socket"
    )]
    SocketInUse { path: String },
    #[error("the switch refuses the flow entry: {}", weir_openflow::text::error_name(*.0))]
    FlowMod(ErrorType),
    #[error("the switch refuses the group: {}", weir_openflow::text::error_name(*.0))]
    GroupMod(ErrorType),
    #[error("the switch refuses the meter: {}", weir_openflow::text::error_name(*.0))]
    MeterMod(ErrorType),
    #[error("{0}")]
    Request(String),
    #[error("virtual switch {name}: {problem}")]
    Virtual { name: String, problem: String },
    #[error(transparent)]
    Timing(#[from] weir_device::TimingError),
    #[error("profile {profile}: {problem}")]
    Profile { profile: String, problem: &'static str },
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    #[error(transparent)]
    Tls(#[from] weir_tls::CredentialError),
    #[error(
        "{target}: TLS needs a private key, a certificate and the CA of the peers (--private-key, --certificate, --ca-cert)"
    )]
    NoCredentials { target: String },
    #[error("too many requests wait; try again")]
    Busy,
    #[error("the virtual switch was removed")]
    Ended,
    #[error("the switch has stopped")]
    Stopped,
}

/// Processor time slice requested for the control thread. It does little at each turn; with the default slice,
/// engines that spin would keep it off the processor for milliseconds.
const CONTROL_SLICE: Duration = Duration::from_micros(100);
/// Longest wait for the control thread's helper threads when the switch stops.
const SHUTDOWN_TIME: Duration = Duration::from_secs(1);
/// Flow-mods that the engine carries out in one call: some tens of microseconds.
const FLOW_MODS_AT_ONCE: usize = 64;

/// Entry point: [`SoftwareSwitch::start`] starts a switch.
pub struct SoftwareSwitch;

impl SoftwareSwitch {
    /// Starts a switch. On return its ports forward, and its listeners and control socket accept connections.
    ///
    /// # Errors
    /// Fails if a port number is taken, a listener's address is in use, or the system has no thread left. Everything
    /// that was opened is closed again.
    pub fn start(mut config: SoftwareSwitchConfig) -> Result<SwitchHandle, SwitchError> {
        // Virtual switches are added by the control thread, so it must run. After an error, drops undo everything.
        let virtual_switches = std::mem::take(&mut config.virtual_switches);
        let assembled = AssembledSwitch::new(config, !virtual_switches.is_empty(), &mut SystemThreadLauncher)?;
        let handle = assembled.start()?;
        for spec in virtual_switches {
            handle.add_virtual(spec)?;
        }
        Ok(handle)
    }
}

/// A switch whose engine and control threads are not started yet.
pub(crate) struct AssembledSwitch {
    identity: SwitchIdentity,
    addresses: Vec<ListenTarget>,
    pub(crate) engine: Engine,
    pub(crate) control: ControlContext,
    pub(crate) start: ControlThreadSetup,
    pub(crate) stopping: watch::Sender<bool>,
    stop_requests: watch::Receiver<bool>,
}

impl AssembledSwitch {
    /// Opens and prepares everything that a switch needs. Worker threads are started through `threads`, the engine's
    /// thread is not.
    ///
    /// # Errors
    /// Fails for the reasons of [`SoftwareSwitch::start`].
    pub(crate) fn new(
        config: SoftwareSwitchConfig,
        has_virtuals: bool,
        threads: &mut dyn ThreadLauncher,
    ) -> Result<Self, SwitchError> {
        config.threads.check(&threads.machine())?;
        let in_band = crate::in_band::config(&config, has_virtuals)?;
        let buffers = config.threads.prepare_buffers()?;
        let credentials = credentials(&config)?;
        let listeners = control::listen(config.listeners.iter().cloned())?;
        let addresses = control::addresses(&listeners);
        let identity = SwitchIdentity { name: config.datapath.name.clone(), datapath_id: config.datapath.datapath_id };
        let (stop_requested, stop_requests) = watch::channel(false);
        let ctl =
            config.control_socket.map(|socket| CtlServer::new(socket, identity.clone(), stop_requested, config.source));
        let (client, inbox, messages) = inbox().map_err(system("making the engine's wake-up"))?;
        let (clock, absent) = (switch_clock(config.clock), Arc::<AbsentPorts>::default());
        let lookup = config.datapath.lookup;
        let datapath = Datapath::new(config.datapath);
        let mut engine =
            Engine::new(datapath, config.fail_mode, config.spin, clock, inbox, messages, Arc::clone(&absent));
        if config.notes_stops {
            engine.note_stops();
        }
        let is_in_band = in_band.is_some();
        if let Some(in_band) = in_band {
            engine.start_in_band(in_band);
        }
        for port in config.ports {
            engine.add_port(port)?;
        }
        if let Some(profile) = &config.profile {
            refuse_profile_conflicts(profile, &config.threads)?;
            engine.start_profile(profile)?;
        }
        install_meters(&mut engine.physical(), &config.meters)?;
        install_groups(&mut engine.physical(), &config.groups)?;
        engine.physical().install(&config.entries)?;
        if let Some(fabric) = config.fabric {
            engine.set_fabric(fabric);
        }
        engine.start_workers(&config.threads, &identity.name, buffers, threads)?;
        let (stopping, stop) = watch::channel(false);
        let (orders, orders_in) = mpsc::unbounded_channel();
        let control = ControlContext {
            engine: client,
            registry: Arc::default(),
            session: config.session,
            controller_versions: config.controller_versions.into(),
            credentials,
            clock,
            stamps: config.profile.is_some(),
            stopping: stop,
            why_stopped: control::STOPS,
            virtuals: Arc::default(),
            virtual_switch_reader: config.virtual_switch_reader,
            lookup,
            orders,
        };
        let start = ControlThreadSetup {
            controllers: config.controllers,
            is_in_band,
            listeners,
            ctl,
            orders: orders_in,
            absent,
        };
        Ok(AssembledSwitch { identity, addresses, engine, control, start, stopping, stop_requests })
    }

    /// Starts the engine thread and the control thread.
    fn start(self) -> Result<SwitchHandle, SwitchError> {
        let AssembledSwitch { identity, addresses, engine, control, start, stopping, stop_requests } = self;
        let engine_client = control.engine.clone();
        let threads = SwitchThreads {
            name: identity.name.clone(),
            engine_client: engine_client.clone(),
            stopping,
            engine: None,
            control: None,
        };
        let (alive, lives) = watch::channel(());
        let (registry, orders) = (Arc::clone(&control.registry), control.orders.clone());
        let virtuals = Arc::clone(&control.virtuals);
        let mut handle = SwitchHandle {
            identity,
            addresses,
            engine: engine_client,
            registry,
            orders,
            virtuals,
            stop_requests,
            alive,
            threads,
        };
        handle.threads.start(engine, lives, control, start)?;
        Ok(handle)
    }
}

/// Refuses a profile that takes time on several threads: the device's data path is one queue, which several threads
/// would have to share.
fn refuse_profile_conflicts(config: &ProfileConfig, threads: &ThreadsConfig) -> Result<(), SwitchError> {
    let wrong = |problem| Err(SwitchError::Profile { profile: config.profile.name.clone(), problem });
    if !config.profile.takes_time() {
        return Ok(());
    }
    if threads.mode != ThreadingMode::RunToCompletion || threads.workers != 1 {
        return wrong(
            "found several threads, expected --mode rtc and --workers 1: the device's data path is one queue",
        );
    }
    Ok(())
}

/// Adds the meters that the switch starts with.
fn install_meters(served: &mut ServedSwitch<'_>, meters: &[String]) -> Result<(), SwitchError> {
    meters.iter().try_for_each(|text| {
        let change = text::parse_meter(text, MeterCommand::Add).map_err(|error| error.to_string());
        let added = change.and_then(|change| served.meter_mod(&change).map_err(|error| error.to_string()));
        added.map_err(|problem| SwitchError::Request(format!("meter `{text}`: {problem}")))
    })
}

/// Adds the groups that the switch starts with. A group may send to one that is later in the list: groups that are
/// refused are tried again as long as others are accepted.
fn install_groups(served: &mut ServedSwitch<'_>, groups: &[String]) -> Result<(), SwitchError> {
    let wrong =
        |text: &str, problem: &dyn std::fmt::Display| SwitchError::Request(format!("group `{text}`: {problem}"));
    let parsed = groups.iter().map(|text| {
        let names = PortNames::find(text);
        let numbered = names.replaced(text.clone(), |name| served.find_port(name));
        let numbered = numbered.map_err(|error| wrong(text, &error))?;
        let change = text::parse_group(&numbered, GroupCommand::Add).map_err(|error| wrong(text, &error))?;
        Ok((text, change))
    });
    let mut waiting = parsed.collect::<Result<Vec<_>, SwitchError>>()?;
    while !waiting.is_empty() {
        let (before, mut refusal) = (waiting.len(), None);
        waiting.retain(|(text, change)| match served.group_mod(change) {
            Ok(()) => false,
            Err(error) => {
                refusal.get_or_insert_with(|| wrong(text, &error));
                true
            }
        });
        if let Some(refusal) = refusal.filter(|_| waiting.len() == before) {
            return Err(refusal);
        }
    }
    Ok(())
}

/// Loads the TLS credentials, if files are given. Fails if a controller or listener uses TLS and no files are given.
fn credentials(config: &SoftwareSwitchConfig) -> Result<Option<Arc<Credentials>>, SwitchError> {
    let controllers = config.controllers.iter().filter(|spec| spec.target.is_tls()).map(ToString::to_string);
    let listeners = config.listeners.iter().filter(|target| target.is_tls()).map(ToString::to_string);
    match (&config.tls, controllers.chain(listeners).next()) {
        (Some(files), _) => Ok(Some(Arc::new(Credentials::load(files.clone())?))),
        (None, Some(target)) => Err(SwitchError::NoCredentials { target }),
        (None, None) => Ok(None),
    }
}

/// Name and datapath id of a switch.
#[derive(Debug, Clone)]
pub(crate) struct SwitchIdentity {
    pub(crate) name: String,
    pub(crate) datapath_id: u64,
}

/// A running switch. Its methods wait for the engine (microseconds) and may be called from any thread. Dropping the
/// handle stops the switch.
pub struct SwitchHandle {
    identity: SwitchIdentity,
    addresses: Vec<ListenTarget>,
    engine: EngineClient,
    registry: Arc<ChannelRegistry>,
    orders: mpsc::UnboundedSender<ControlThreadCommand>,
    /// Virtual switches by name.
    virtuals: Arc<VirtualSwitchRegistry>,
    stop_requests: watch::Receiver<bool>,
    /// Closed when the engine ends: the receiver is owned by the engine's thread.
    alive: watch::Sender<()>,
    threads: SwitchThreads,
}

impl SwitchHandle {
    /// Returns the switch's name.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// Returns the addresses on which the switch listens, with the TCP ports that the system assigned.
    pub fn listeners(&self) -> &[ListenTarget] {
        &self.addresses
    }

    /// Adds a port, tells controllers and returns its number.
    ///
    /// # Errors
    /// Fails if the number is taken or is not that of an ordinary port.
    pub fn add_port(&self, port: PortConfig) -> Result<PortNo, SwitchError> {
        self.engine.call(|engine| engine.add_port(port))?
    }

    /// Removes a port, closes it and tells controllers.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub fn remove_port(&self, number: PortNo) -> Result<(), SwitchError> {
        // The port is dropped on the calling thread: closing a device may take the kernel a while.
        self.engine.call(move |engine| engine.remove_port(number).ok_or_else(|| engine.no_port(number)))?.map(drop)
    }

    /// Reads the link state of all ports and tells controllers what changed. For callers that changed links
    /// themselves: the switch discovers some changes only half a second later.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn look_at_links(&self) -> Result<(), SwitchError> {
        self.engine.call(Engine::look_at_links)
    }

    /// Adds a virtual switch and returns the addresses on which it listens, with the TCP ports that the system
    /// assigned.
    ///
    /// # Errors
    /// Fails if its name, number or an address is taken, or if a port or a buffer has too little capacity left; the
    /// error names what is short and by how much. In all these cases nothing has changed.
    pub fn add_virtual(&self, spec: VirtualSwitch) -> Result<Vec<ListenTarget>, SwitchError> {
        let (answer, answered) = crossbeam_channel::bounded(1);
        let order = ControlThreadCommand::AddVirtual(Box::new(spec), Box::new(move |result| drop(answer.send(result))));
        self.orders.send(order).map_err(|_| SwitchError::Stopped)?;
        answered.recv().map_err(|_| SwitchError::Stopped)?
    }

    /// Changes a virtual switch's ports, rates, buffers, disciplines, selectors, controllers, listeners or fail mode
    /// while it forwards. Listeners and controllers that stay keep their channels.
    ///
    /// # Errors
    /// Fails for the reasons of [`SwitchHandle::add_virtual`]. Also fails if there is no virtual switch of that name or
    /// if something else differs.
    pub fn resize_virtual(&self, spec: VirtualSwitch) -> Result<(), SwitchError> {
        let (answer, answered) = crossbeam_channel::bounded(1);
        let said = Box::new(move |result| drop(answer.send(result)));
        let order = ControlThreadCommand::ResizeVirtual(Box::new(spec), said);
        self.orders.send(order).map_err(|_| SwitchError::Stopped)?;
        answered.recv().map_err(|_| SwitchError::Stopped)?
    }

    /// Removes a virtual switch: closes its channels and drops the packets in its queues. Other virtual switches are
    /// not affected.
    ///
    /// # Errors
    /// Fails if there is no virtual switch of that name.
    pub fn remove_virtual(&self, name: &str) -> Result<(), SwitchError> {
        let name = name.to_owned();
        self.engine.call(move |engine| engine.remove_virtual(&name))?
    }

    /// Adds, modifies or deletes flow entries of a virtual switch.
    ///
    /// # Errors
    /// Fails if there is no virtual switch of that name, or with the error that a controller would receive.
    pub fn virtual_flow_mod(&self, name: &str, flow: FlowMod) -> Result<(), SwitchError> {
        let name = name.to_owned();
        self.engine.call(move |engine| engine.served_named(&name)?.flow_mod(&flow))?
    }

    /// Adds meters, groups and flow entries to a virtual switch, in the syntax of `ovs-ofctl`.
    ///
    /// # Errors
    /// Fails if there is no virtual switch of that name, a text cannot be parsed, or one is refused; those before it
    /// stay.
    pub fn install_virtual(&self, name: &str, what: TableContents) -> Result<(), SwitchError> {
        let name = name.to_owned();
        self.engine.call(move |engine| {
            let mut served = engine.served_named(&name)?;
            install_meters(&mut served, &what.meters)?;
            install_groups(&mut served, &what.groups)?;
            served.install(&what.entries)
        })?
    }

    /// Opens a control channel on a stream to a controller, in this process (`tokio::io::duplex`) or elsewhere. The
    /// channel ends with the stream.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn connect_stream<S>(&self, stream: S) -> Result<(), SwitchError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        self.orders.send(ControlThreadCommand::Stream(ByteStream::new(stream))).map_err(|_| SwitchError::Stopped)
    }

    /// Returns when the machine or other threads stopped the engine, by the switch's clock; `None` without
    /// `SoftwareSwitchConfig::notes_stops`.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn stops(&self) -> Result<Option<StallLog>, SwitchError> {
        self.engine.call(|engine| engine.stops())
    }

    /// Returns the present state of the switch.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn snapshot(&self) -> Result<SwitchSnapshot, SwitchError> {
        let engine = self.engine.call(|engine| engine.snapshot(None))?.ok_or(SwitchError::Ended)?;
        Ok(SwitchSnapshot::new(&self.identity, engine, &self.registry))
    }

    /// Returns the requested flow entries with their counters. Forwarding continues meanwhile: an entry that exists
    /// all the time is returned once; one that is added or removed meanwhile may be returned or not.
    ///
    /// # Errors
    /// Fails if there is no such table; [`SwitchError::Stopped`].
    pub fn flows(&self, request: FlowRequest) -> Result<Vec<FlowStats>, SwitchError> {
        let mut next = Some(self.engine.call_served(move |served| served.flow_walk(&request))??);
        let mut flows = Vec::new();
        while let Some(walk) = next {
            let (found, more) = self.engine.call_served(|served| served.walk(walk))?;
            flows.extend(found);
            next = more;
        }
        Ok(flows)
    }

    /// Adds, modifies or deletes flow entries.
    ///
    /// # Errors
    /// The error that a controller would receive.
    pub fn flow_mod(&self, flow: FlowMod) -> Result<(), SwitchError> {
        self.engine.call_served(move |served| served.flow_mod(&flow))?
    }

    /// Carries out many flow-mods in order, as [`SwitchHandle::flow_mod`] does one. Those before a refused one stay
    /// in effect.
    ///
    /// # Errors
    /// The error that a controller would receive for the first refused flow-mod.
    pub fn flow_mods(&self, flows: Vec<FlowMod>) -> Result<(), SwitchError> {
        let mut rest = flows.into_iter().peekable();
        while rest.peek().is_some() {
            // Forwarding continues between the parts.
            let part: Vec<FlowMod> = rest.by_ref().take(FLOW_MODS_AT_ONCE).collect();
            self.engine.call_served(move |served| part.iter().try_for_each(|flow| served.flow_mod(flow)))??;
        }
        Ok(())
    }

    /// Returns what would happen to a frame received on `in_port`; changes nothing.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub fn trace(&self, in_port: PortNo, frame: &[u8]) -> Result<PipelineTrace, SwitchError> {
        let frame = Frame::from_bytes(frame);
        self.engine.call_served(move |served| served.trace(in_port, &frame))?
    }

    /// Waits until a request to stop arrives on the control socket; for ever if there is no control socket.
    pub async fn stop_requested(&self) {
        let mut requests = self.stop_requests.clone();
        if requests.wait_for(|stop| *stop).await.is_err() {
            // Without a control socket no request can arrive.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the engine has ended by itself, which happens only if it panics.
    pub async fn failed(&self) {
        self.alive.closed().await;
    }

    /// Stops the switch: closes channels and ports (closing a port restores its device), removes sockets, joins the
    /// threads.
    pub fn stop(self) {}
}

/// The engine and control threads; dropping this stops and joins them.
struct SwitchThreads {
    name: String,
    engine_client: EngineClient,
    stopping: watch::Sender<bool>,
    engine: Option<JoinHandle<()>>,
    control: Option<JoinHandle<()>>,
}

impl SwitchThreads {
    fn start(
        &mut self,
        worker: Engine,
        lives: watch::Receiver<()>,
        control: ControlContext,
        start: ControlThreadSetup,
    ) -> Result<(), SwitchError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(system("starting the control thread's runtime"))?;
        self.engine = Some(spawn(format!("{}-engine", self.name), move || {
            let _lives = lives;
            worker.run();
        })?);
        let run = move || {
            // A refusal only costs the shorter slice.
            let _ = weir_port::ask_for_slices_of(CONTROL_SLICE);
            runtime.block_on(control::run(control, start));
            // A look-up of a controller's name may go on for longer than anyone wants to wait.
            runtime.shutdown_timeout(SHUTDOWN_TIME);
        };
        self.control = Some(spawn(format!("{}-control", self.name), run)?);
        Ok(())
    }
}

impl Drop for SwitchThreads {
    fn drop(&mut self) {
        // Channels end first, while the engine still runs, so that their last messages are carried out.
        let _ = self.stopping.send(true);
        join(self.control.take(), &self.name);
        if let Some(engine) = self.engine.take() {
            // The call fails if the engine has ended by itself; the join reports that.
            let _ = self.engine_client.call(Engine::stop);
            join(Some(engine), &self.name);
        }
    }
}

fn join(thread: Option<JoinHandle<()>>, name: &str) {
    if thread.is_some_and(|thread| thread.join().is_err()) {
        tracing::error!("{name}: a thread of the switch panicked; its message is above");
    }
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, SwitchError> {
    std::thread::Builder::new().name(name).spawn(run).map_err(system("starting a thread"))
}

fn system(tried: &str) -> impl Fn(io::Error) -> SwitchError + use<> {
    let tried = tried.to_owned();
    move |error| SwitchError::System { tried: tried.clone(), error, advice: String::new() }
}
