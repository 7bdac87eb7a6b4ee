//! Control thread: runs the channels to controllers, serves the control socket and reopens absent ports. It waits for
//! events and passes them to the engine through the engine's inbox.
mod auxiliary;
pub(crate) mod backlog;
mod byte_budget;
mod channel;
mod connect;
mod in_band;
mod listen;
mod peers;
mod registry;
mod reopen;
pub(crate) mod snoop;
mod timestamped_stream;
pub(crate) mod virtuals;

use crate::clock::{SwitchClock, machine_clock};
use crate::engine::inbox::EngineClient;
use crate::handle::SwitchError;
use crate::targets::{ControllerSpec, ListenTarget};
pub(crate) use channel::ByteStream;
use channel::ChannelConnectionKind;
pub(crate) use peers::PeerChange;
use peers::{ControlPeers, PeerEnd};
pub(crate) use registry::ChannelRegistry;
pub(crate) use reopen::AbsentPorts;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use timestamped_stream::TimestampedStream;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use weir_datapath::LookupMethod;
use weir_openflow::Version;
use weir_openflow::session::SessionConfig;
use weir_slicing::{VirtualSwitch, VirtualSwitchReader};
use weir_tls::Credentials;

/// Maximum number of concurrent channels, including those being connected; a listener refuses further ones.
pub(crate) const MAX_CHANNELS: usize = 256;

/// State shared by all tasks of the control thread.
#[derive(Clone)]
pub(crate) struct ControlContext {
    pub(crate) engine: EngineClient,
    pub(crate) registry: Arc<ChannelRegistry>,
    pub(crate) session: SessionConfig,
    /// Versions offered to controllers that the switch connects to; those of `session` if empty.
    pub(crate) controller_versions: Arc<[Version]>,
    /// Own certificate and key for TLS, and the trusted CA.
    pub(crate) credentials: Option<Arc<Credentials>>,
    pub(crate) clock: SwitchClock,
    /// True if messages count from their arrival time, not from the time at which they were read.
    pub(crate) stamps: bool,
    /// Becomes true when the switch stops, or when the virtual switch that this serves ends.
    pub(crate) stopping: watch::Receiver<bool>,
    /// Reason that channels give when `stopping` becomes true.
    pub(crate) why_stopped: &'static str,
    /// Virtual switches by name.
    pub(crate) virtuals: Arc<virtuals::VirtualSwitchRegistry>,
    /// Reader of virtual switches that requests describe, if the program gave one.
    pub(crate) virtual_switch_reader: Option<&'static dyn VirtualSwitchReader>,
    /// Lookup method for flow entries of virtual switches.
    pub(crate) lookup: LookupMethod,
    /// Sends orders to the control thread itself.
    pub(crate) orders: mpsc::UnboundedSender<ControlThreadCommand>,
}

/// Longest wait for channels that were ended, before a request that ended them is answered.
pub(crate) const CHANNELS_END: Duration = Duration::from_secs(5);

/// Reason that channels give when the switch stops.
pub(crate) const STOPS: &str = "the switch stops";

impl ControlContext {
    /// Orders the addition of a virtual switch; `said` receives the result.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub(crate) fn add_virtual(&self, spec: VirtualSwitch, said: AddVirtualCallback) -> Result<(), SwitchError> {
        self.orders.send(ControlThreadCommand::AddVirtual(Box::new(spec), said)).map_err(|_| SwitchError::Stopped)
    }

    /// Orders a change of a virtual switch; `said` receives the result.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub(crate) fn resize_virtual(&self, spec: VirtualSwitch, said: ResizeVirtualCallback) -> Result<(), SwitchError> {
        self.orders.send(ControlThreadCommand::ResizeVirtual(Box::new(spec), said)).map_err(|_| SwitchError::Stopped)
    }

    /// Orders a change of controllers or listeners, and waits until it is made and what it ends has ended.
    ///
    /// # Errors
    /// The change is refused; the switch stops.
    pub(crate) async fn change_peers(&self, change: PeerChange) -> Result<(), SwitchError> {
        let (said, answer) = oneshot::channel();
        let order = ControlThreadCommand::ChangePeers(change, said);
        self.orders.send(order).map_err(|_| SwitchError::Stopped)?;
        answer.await.map_err(|_| SwitchError::Stopped)?
    }

    /// Prepares a TCP stream for a channel.
    ///
    /// # Errors
    /// Fails if the connection has ended already.
    fn tcp(&self, stream: TcpStream) -> io::Result<ByteStream> {
        // Replies are short and awaited, so they are not to be delayed.
        stream.set_nodelay(true)?;
        if !self.stamps {
            return Ok(ByteStream::new(stream));
        }
        Ok(TimestampedStream::new(stream, machine_clock(self.clock)).map_or_else(
            |(stream, error)| {
                tracing::warn!(
                    "the kernel does not say when messages come: they count from when they are read: {error}"
                );
                ByteStream::new(stream)
            },
            ByteStream::stamped,
        ))
    }

    /// Returns the TLS credentials.
    ///
    /// # Errors
    /// Fails if there are none; a switch that uses TLS does not start without them.
    fn credentials(&self) -> io::Result<&Credentials> {
        self.credentials.as_deref().ok_or_else(|| io::Error::other("no private key and certificate were given"))
    }
}

/// Order to the control thread.
pub(crate) enum ControlThreadCommand {
    /// Make a channel of a stream.
    Stream(ByteStream),
    /// Add a virtual switch, and report the addresses on which it listens.
    AddVirtual(Box<VirtualSwitch>, AddVirtualCallback),
    /// Change a virtual switch that runs, and report whether that was possible.
    ResizeVirtual(Box<VirtualSwitch>, ResizeVirtualCallback),
    /// Change controllers or listeners, and report whether that was possible.
    ChangePeers(PeerChange, oneshot::Sender<Result<(), SwitchError>>),
}

/// Receives the result of [`ControlThreadCommand::AddVirtual`].
pub(crate) type AddVirtualCallback = Box<dyn FnOnce(Result<Vec<ListenTarget>, SwitchError>) + Send>;

/// Receives the result of [`ControlThreadCommand::ResizeVirtual`].
pub(crate) type ResizeVirtualCallback = Box<dyn FnOnce(Result<(), SwitchError>) + Send>;

/// Initial work of the control thread.
pub(crate) struct ControlThreadSetup {
    pub(crate) controllers: Vec<ControllerSpec>,
    /// True if the controllers are reached through the switch's own ports.
    pub(crate) is_in_band: bool,
    /// Listeners, with the addresses that were asked for.
    pub(crate) listeners: Vec<(ListenTarget, listen::ChannelListener)>,
    pub(crate) ctl: Option<crate::ctl::server::CtlServer>,
    pub(crate) orders: mpsc::UnboundedReceiver<ControlThreadCommand>,
    /// Ports whose device vanished.
    pub(crate) absent: Arc<AbsentPorts>,
}

/// Opens listeners. Returns them with the addresses that were asked for.
///
/// # Errors
/// Fails if an address is in use or does not belong to this machine.
pub(crate) fn listen(
    targets: impl IntoIterator<Item = ListenTarget>,
) -> Result<Vec<(ListenTarget, listen::ChannelListener)>, SwitchError> {
    let open = |target: ListenTarget| listen::ChannelListener::open(&target).map(|listener| (target, listener));
    targets.into_iter().map(open).collect()
}

/// Returns the addresses of listeners, with the TCP ports that the system assigned.
pub(crate) fn addresses(listeners: &[(ListenTarget, listen::ChannelListener)]) -> Vec<ListenTarget> {
    listeners.iter().map(|(_, listener)| listener.target().clone()).collect()
}

/// Serves a controller in this process until the stream or the switch ends.
pub(crate) async fn serve_stream(control: ControlContext, stream: ByteStream) {
    let (registry, id) = (Arc::clone(&control.registry), control.registry.next_id(false));
    let info = registry.add("in-process".to_owned());
    let ended = channel::run(control, stream, Arc::clone(&info), id, ChannelConnectionKind::main_only()).await;
    tracing::info!("{}: down: {}", info.target(), ended.reason);
    registry.remove(&info);
}

/// Serves a tool that connected through the control socket until its stream or the switch ends.
pub(crate) async fn serve_tool(control: ControlContext, stream: ByteStream, name: &str) {
    let registry = Arc::clone(&control.registry);
    let info = registry.add_passive(name.to_owned());
    let id = registry.next_id(true);
    let serve = channel::run(control, stream, Arc::clone(&info), id, ChannelConnectionKind::main_only());
    tokio::select! {
        biased;
        () = info.chosen_to_go() => {}
        ended = serve => tracing::debug!("{name}: down: {}", ended.reason),
    }
    registry.remove(&info);
}

/// Runs the control thread until the switch stops.
pub(crate) async fn run(control: ControlContext, mut start: ControlThreadSetup) {
    let mut tasks = tokio::task::JoinSet::new();
    let mut peers = ControlPeers::default();
    for target in start.controllers {
        peers.add_controller(&control, target, &mut tasks);
    }
    if start.is_in_band {
        peers.start_in_band(&control, &mut tasks);
    }
    for (asked, listener) in start.listeners {
        peers.add_listener(&control, asked, listener, &mut tasks);
    }
    if let Some(server) = start.ctl {
        tasks.spawn(server.serve(control.clone()));
    }
    tasks.spawn(reopen::watch(control.clone(), start.absent));
    let mut stopping = control.stopping.clone();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stopping) => break,
            order = start.orders.recv() => match order {
                Some(ControlThreadCommand::Stream(stream)) => drop(tasks.spawn(serve_stream(control.clone(), stream))),
                Some(ControlThreadCommand::AddVirtual(spec, said)) => drop(tasks.spawn(virtuals::run(control.clone(), *spec, said))),
                Some(ControlThreadCommand::ResizeVirtual(spec, said)) => drop(tasks.spawn(virtuals::resize(control.clone(), *spec, said))),
                Some(ControlThreadCommand::ChangePeers(change, said)) => {
                    let changed = peers.change(&control, change, &mut tasks);
                    tasks.spawn(report(changed, said));
                }
                None => break,
            },
            // Collects ended tasks, so that the set does not grow.
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!("a control task failed: {error}");
                }
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Reports the result of a change of controllers or listeners, once what it ended has ended.
async fn report(changed: Result<Option<PeerEnd>, SwitchError>, said: oneshot::Sender<Result<(), SwitchError>>) {
    let changed = match changed {
        Ok(Some(ending)) => {
            // The limit matters only if a channel hangs; it then ends later by itself.
            let _ = tokio::time::timeout(CHANNELS_END, ending.wait()).await;
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    // Without a receiver the client is gone.
    let _ = said.send(changed);
}

/// Waits until the switch stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the sender is dropped, which is a stop as well.
    let _ = stopping.wait_for(|stop| *stop).await;
}
