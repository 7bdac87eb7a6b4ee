//! A running switch, as its owner sees it.
use crate::clock::switch_clock;
use crate::config::{PortConfig, ProfileConfig, SwitchConfig};
use crate::control::{self, Absent, ByteStream, Control, Order, Registry, Start};
use crate::ctl::server::Server;
use crate::engine::Engine;
use crate::engine::inbox::{EngineClient, inbox};
use crate::snapshot::Snapshot;
use crate::targets::ListenTarget;
use crate::threads::{Mode, ThreadsConfig, ThreadsError};
use crate::turns::{Launch, SystemThreads};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use weir_datapath::{Datapath, Trace};
use weir_openflow::model::multipart::{FlowRequest, FlowStats};
use weir_openflow::model::{ErrorType, FlowMod, PortNo};
use weir_packet::Frame;
use weir_port::PortError;
use weir_scenario::VirtualSwitch;
use weir_tls::Credentials;
use weir_units::Stops;

/// Why a switch could not do what it was asked to.
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
        "socket {path}: a switch that is running uses it; stop that one, or choose another --name or --control-socket"
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
    Timing(#[from] weir_timing::TimingError),
    #[error("profile {profile}: {problem}")]
    Profile { profile: String, problem: &'static str },
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    #[error(transparent)]
    Tls(#[from] weir_tls::FileError),
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

/// What the control thread runs for at once: it has little to do each time, and engines that wait awake keep it from the processor for milliseconds else.
const CONTROL_SLICE: Duration = Duration::from_micros(100);
/// Flow-mods that the engine carries out in one call: some tens of microseconds.
const FLOW_MODS_AT_ONCE: usize = 64;

/// See [`Switch::start`].
pub struct Switch;

impl Switch {
    /// Starts a switch; on return its ports forward, and its listeners and control socket accept.
    ///
    /// # Errors
    /// A port number is taken, a listener's address is in use, the system has no thread left; nothing stays behind.
    pub fn start(mut config: SwitchConfig) -> Result<SwitchHandle, SwitchError> {
        // Everything that can fail comes before the threads; what was made by then is unmade by its drop.
        let virtual_switches = std::mem::take(&mut config.virtual_switches);
        let assembled = Assembled::new(config, !virtual_switches.is_empty(), &mut SystemThreads)?;
        let handle = assembled.start()?;
        for spec in virtual_switches {
            handle.add_virtual(spec)?;
        }
        Ok(handle)
    }
}

/// A switch whose engine and control have no thread yet.
pub(crate) struct Assembled {
    identity: Identity,
    addresses: Vec<ListenTarget>,
    pub(crate) engine: Engine,
    pub(crate) control: Control,
    pub(crate) start: Start,
    pub(crate) stopping: watch::Sender<bool>,
    stop_requests: watch::Receiver<bool>,
}

impl Assembled {
    /// Opens and prepares all that a switch has; the threads beside the engine's are started by `threads`.
    ///
    /// # Errors
    /// As [`Switch::start`].
    pub(crate) fn new(config: SwitchConfig, has_virtuals: bool, threads: &mut dyn Launch) -> Result<Self, SwitchError> {
        config.threads.check(&threads.machine())?;
        let buffers = config.threads.prepare_buffers()?;
        let credentials = credentials(&config)?;
        let (listeners, addresses) = control::listen(&config.listeners)?;
        let identity = Identity { name: config.datapath.name.clone(), datapath_id: config.datapath.datapath_id };
        let (stop_requested, stop_requests) = watch::channel(false);
        let ctl = config.control_socket.map(|socket| Server::new(socket, identity.clone(), stop_requested));
        let (client, inbox, messages) = inbox().map_err(system("making the engine's wake-up"))?;
        let (clock, absent) = (switch_clock(config.clock), Arc::<Absent>::default());
        let lookup = config.datapath.lookup;
        let datapath = Datapath::new(config.datapath);
        let mut engine =
            Engine::new(datapath, config.fail_mode, config.spin, clock, inbox, messages, Arc::clone(&absent));
        if config.notes_stops {
            engine.note_stops();
        }
        for port in config.ports {
            engine.add_port(port)?;
        }
        if let Some(profile) = &config.profile {
            refuse_beside(profile, &config.threads, !has_virtuals)?;
            engine.start_profile(profile)?;
        }
        engine.install(&config.entries)?;
        if let Some(fabric) = config.fabric {
            engine.set_fabric(fabric);
        }
        engine.start_workers(&config.threads, &identity.name, buffers, threads)?;
        let (stopping, stop) = watch::channel(false);
        let (orders, orders_in) = mpsc::unbounded_channel();
        let control = Control {
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
            lookup,
            orders,
        };
        let start = Start { controllers: config.controllers, listeners, ctl, orders: orders_in, absent };
        Ok(Assembled { identity, addresses, engine, control, start, stopping, stop_requests })
    }

    /// Starts the engine's and the control thread.
    fn start(self) -> Result<SwitchHandle, SwitchError> {
        let Assembled { identity, addresses, engine, control, start, stopping, stop_requests } = self;
        let engine_client = control.engine.clone();
        let threads = Threads {
            name: identity.name.clone(),
            engine_client: engine_client.clone(),
            stopping,
            engine: None,
            control: None,
        };
        let (alive, lives) = watch::channel(());
        let (registry, orders) = (Arc::clone(&control.registry), control.orders.clone());
        let mut handle = SwitchHandle {
            identity,
            addresses,
            engine: engine_client,
            registry,
            orders,
            stop_requests,
            alive,
            threads,
        };
        handle.threads.start(engine, lives, control, start)?;
        Ok(handle)
    }
}

/// A profile is of one switch on one thread: its data path is a queue, which several would have to share.
fn refuse_beside(config: &ProfileConfig, threads: &ThreadsConfig, is_whole: bool) -> Result<(), SwitchError> {
    let wrong = |problem| Err(SwitchError::Profile { profile: config.profile.name.clone(), problem });
    if !config.profile.takes_time() {
        return Ok(());
    }
    if threads.mode != Mode::RunToCompletion || threads.workers != 1 {
        return wrong(
            "found several threads, expected --mode rtc and --workers 1: the device's data path is one queue",
        );
    }
    if !is_whole {
        return wrong("found virtual switches, expected none: a profile is of one switch");
    }
    Ok(())
}

/// What TLS needs, if anything uses it.
fn credentials(config: &SwitchConfig) -> Result<Option<Arc<Credentials>>, SwitchError> {
    let controllers = config.controllers.iter().filter(|spec| spec.target.is_tls()).map(ToString::to_string);
    let listeners = config.listeners.iter().filter(|target| target.is_tls()).map(ToString::to_string);
    match (&config.tls, controllers.chain(listeners).next()) {
        (Some(files), _) => Ok(Some(Arc::new(Credentials::load(files.clone())?))),
        (None, Some(target)) => Err(SwitchError::NoCredentials { target }),
        (None, None) => Ok(None),
    }
}

/// What a switch is called.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) datapath_id: u64,
}

/// A running switch. Its methods wait for the engine (microseconds) and may be called from any thread; when it is dropped
/// the switch stops.
pub struct SwitchHandle {
    identity: Identity,
    addresses: Vec<ListenTarget>,
    engine: EngineClient,
    registry: Arc<Registry>,
    orders: mpsc::UnboundedSender<Order>,
    stop_requests: watch::Receiver<bool>,
    /// Its receiver lives on the engine's thread.
    alive: watch::Sender<()>,
    threads: Threads,
}

impl SwitchHandle {
    /// The switch's name.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// Where it listens, with the TCP ports it got.
    pub fn listeners(&self) -> &[ListenTarget] {
        &self.addresses
    }

    /// Adds a port and tells controllers; gives its number.
    ///
    /// # Errors
    /// The number is taken or not that of an ordinary port.
    pub fn add_port(&self, port: PortConfig) -> Result<PortNo, SwitchError> {
        self.engine.call(|engine| engine.add_port(port))?
    }

    /// Removes a port, closes it and tells controllers.
    ///
    /// # Errors
    /// There is no such port.
    pub fn remove_port(&self, number: PortNo) -> Result<(), SwitchError> {
        // What was there is dropped here: closing a device may take the kernel a while.
        self.engine.call(move |engine| engine.remove_port(number).ok_or_else(|| engine.no_port(number)))?.map(drop)
    }

    /// Asks all ports for their links, and tells controllers what changed: for whoever changed them, since a switch finds some changes out
    /// only half a second later.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn look_at_links(&self) -> Result<(), SwitchError> {
        self.engine.call(Engine::look_at_links)
    }

    /// Adds a virtual switch; gives where it listens, with the TCP ports it got.
    ///
    /// # Errors
    /// Its name, number or an address is taken, or there is not enough left of a port or a buffer: with what is short and by how
    /// much. Nothing has changed then.
    pub fn add_virtual(&self, spec: VirtualSwitch) -> Result<Vec<ListenTarget>, SwitchError> {
        let (answer, answered) = crossbeam_channel::bounded(1);
        let order = Order::AddVirtual(Box::new(spec), Box::new(move |result| drop(answer.send(result))));
        self.orders.send(order).map_err(|_| SwitchError::Stopped)?;
        answered.recv().map_err(|_| SwitchError::Stopped)?
    }

    /// Changes a virtual switch's ports, rates, buffers, disciplines or selectors while it forwards.
    ///
    /// # Errors
    /// As [`SwitchHandle::add_virtual`]; there is none of that name, or something is to change that cannot.
    pub fn resize_virtual(&self, spec: VirtualSwitch) -> Result<(), SwitchError> {
        self.engine.call(move |engine| engine.resize_virtual(spec))?
    }

    /// Removes a virtual switch; its channels are closed, what waits in its queues is dropped, the others go on.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove_virtual(&self, name: &str) -> Result<(), SwitchError> {
        let name = name.to_owned();
        self.engine.call(move |engine| engine.remove_virtual(&name))?
    }

    /// Adds, modifies or deletes flow entries of a virtual switch.
    ///
    /// # Errors
    /// There is none of that name; what a controller would be answered.
    pub fn virtual_flow_mod(&self, name: &str, flow: FlowMod) -> Result<(), SwitchError> {
        let name = name.to_owned();
        self.engine.call(move |engine| engine.serve_named(&name, |engine| engine.flow_mod(&flow))?)?
    }

    /// Makes a control channel of a stream to a controller, in this process (`tokio::io::duplex`) or anywhere. It ends with
    /// the stream.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn connect_stream<S>(&self, stream: S) -> Result<(), SwitchError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        self.orders.send(Order::Stream(ByteStream::new(stream))).map_err(|_| SwitchError::Stopped)
    }

    /// When its engine was stopped by the machine or by other threads, by the switch's clock; none: it was not to note that (`SwitchConfig::notes_stops`).
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn stops(&self) -> Result<Option<Stops>, SwitchError> {
        self.engine.call(|engine| engine.stops())
    }

    /// The switch as it is now.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn snapshot(&self) -> Result<Snapshot, SwitchError> {
        let engine = self.engine.call(Engine::snapshot)?;
        Ok(Snapshot::new(&self.identity, engine, &self.registry))
    }

    /// Flow entries with their counters. Forwarding goes on meanwhile: an entry that is there all the time is in the answer
    /// once, one that comes or goes may be.
    ///
    /// # Errors
    /// There is no such table; [`SwitchError::Stopped`].
    pub fn flows(&self, request: FlowRequest) -> Result<Vec<FlowStats>, SwitchError> {
        let mut next = Some(self.engine.call(move |engine| engine.flow_walk(&request))??);
        let mut flows = Vec::new();
        while let Some(walk) = next {
            let (found, more) = self.engine.call(|engine| engine.walk(walk))?;
            flows.extend(found);
            next = more;
        }
        Ok(flows)
    }

    /// Adds, modifies or deletes flow entries.
    ///
    /// # Errors
    /// What a controller would be answered.
    pub fn flow_mod(&self, flow: FlowMod) -> Result<(), SwitchError> {
        self.engine.call(move |engine| engine.flow_mod(&flow))?
    }

    /// As [`SwitchHandle::flow_mod`], for many at once; those before one that is refused are carried out.
    ///
    /// # Errors
    /// What a controller would be answered to the first that is refused.
    pub fn flow_mods(&self, flows: Vec<FlowMod>) -> Result<(), SwitchError> {
        let mut rest = flows.into_iter().peekable();
        while rest.peek().is_some() {
            // Forwarding goes on between the parts.
            let part: Vec<FlowMod> = rest.by_ref().take(FLOW_MODS_AT_ONCE).collect();
            self.engine.call(move |engine| part.iter().try_for_each(|flow| engine.flow_mod(flow)))??;
        }
        Ok(())
    }

    /// What would happen to a frame that came in on a port; changes nothing.
    ///
    /// # Errors
    /// There is no such port.
    pub fn trace(&self, in_port: PortNo, frame: &[u8]) -> Result<Trace, SwitchError> {
        let frame = Frame::from_bytes(frame);
        self.engine.call(move |engine| engine.trace(in_port, &frame))?
    }

    /// Waits until somebody asks the switch to stop through its control socket.
    pub async fn stop_requested(&self) {
        let mut requests = self.stop_requests.clone();
        if requests.wait_for(|stop| *stop).await.is_err() {
            // There is no control socket: nobody can ask.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the engine has ended by itself, which it does only by panicking.
    pub async fn failed(&self) {
        self.alive.closed().await;
    }

    /// Stops the switch: closes channels, closes ports (which restores their devices), removes sockets, joins its threads.
    pub fn stop(self) {}
}

/// The switch's threads; dropped, they end.
struct Threads {
    name: String,
    engine_client: EngineClient,
    stopping: watch::Sender<bool>,
    engine: Option<JoinHandle<()>>,
    control: Option<JoinHandle<()>>,
}

impl Threads {
    fn start(
        &mut self,
        worker: Engine,
        lives: watch::Receiver<()>,
        control: Control,
        start: Start,
    ) -> Result<(), SwitchError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(system("starting the control thread's runtime"))?;
        self.engine = Some(spawn(format!("{}-engine", self.name), move || {
            let _lives = lives;
            worker.run();
        })?);
        let run = move || {
            // A refusal costs only that.
            let _ = weir_port::ask_for_slices_of(CONTROL_SLICE);
            runtime.block_on(control::run(control, start));
        };
        self.control = Some(spawn(format!("{}-control", self.name), run)?);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The engine goes on until the channels have ended: their last messages count.
        let _ = self.stopping.send(true);
        join(self.control.take(), &self.name);
        if let Some(engine) = self.engine.take() {
            // Fails when the engine has ended by itself, which the join reports.
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
