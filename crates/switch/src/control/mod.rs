//! The control thread: channels to controllers, the control socket, ports that are waited for. It only ever waits; what it
//! finds goes to the engine through its inbox.
mod auxiliary;
pub(crate) mod backlog;
mod channel;
mod connect;
mod listen;
mod registry;
mod reopen;
mod stamped;
mod turn;
pub(crate) mod virtuals;

use crate::clock::{SwitchClock, machine_clock};
use crate::engine::inbox::EngineClient;
use crate::handle::SwitchError;
use crate::targets::{ControllerSpec, ListenTarget};
pub(crate) use channel::ByteStream;
use channel::Part;
pub(crate) use registry::Registry;
pub(crate) use reopen::Absent;
use stamped::Stamped;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use weir_datapath::Lookup;
use weir_openflow::Version;
use weir_openflow::session::SessionConfig;
use weir_scenario::VirtualSwitch;
use weir_tls::Credentials;

/// Channels at once at most, those being connected included; beyond, a listener refuses.
pub(crate) const MAX_CHANNELS: usize = 256;

/// What all tasks of the control thread share.
#[derive(Clone)]
pub(crate) struct Control {
    pub(crate) engine: EngineClient,
    pub(crate) registry: Arc<Registry>,
    pub(crate) session: SessionConfig,
    /// Versions offered where the switch connects; those of `session` if empty.
    pub(crate) controller_versions: Arc<[Version]>,
    /// What is shown to peers over TLS, and who of them is trusted.
    pub(crate) credentials: Option<Arc<Credentials>>,
    pub(crate) clock: SwitchClock,
    /// Whether it counts when messages came, not when they were read.
    pub(crate) stamps: bool,
    /// Becomes true when the switch stops, or the virtual switch that this is for ends.
    pub(crate) stopping: watch::Receiver<bool>,
    /// What channels say then.
    pub(crate) why_stopped: &'static str,
    /// The virtual switches that there are.
    pub(crate) virtuals: Arc<virtuals::Virtuals>,
    /// How flow entries of virtual switches are found.
    pub(crate) lookup: Lookup,
    /// To the control thread itself.
    pub(crate) orders: mpsc::UnboundedSender<Order>,
}

/// What channels say when the switch stops.
pub(crate) const STOPS: &str = "the switch stops";

impl Control {
    /// Has a virtual switch added.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub(crate) fn add_virtual(&self, spec: VirtualSwitch, said: Said) -> Result<(), SwitchError> {
        self.orders.send(Order::AddVirtual(Box::new(spec), said)).map_err(|_| SwitchError::Stopped)
    }

    /// What bytes are exchanged over by TCP.
    ///
    /// # Errors
    /// The connection has gone already.
    fn tcp(&self, stream: TcpStream) -> io::Result<ByteStream> {
        // Replies are short, and somebody waits for each.
        stream.set_nodelay(true)?;
        if !self.stamps {
            return Ok(ByteStream::new(stream));
        }
        Ok(Stamped::new(stream, machine_clock(self.clock)).map_or_else(
            |(stream, error)| {
                tracing::warn!(
                    "the kernel does not say when messages come: they count from when they are read: {error}"
                );
                ByteStream::new(stream)
            },
            ByteStream::stamped,
        ))
    }

    /// The credentials, which whoever uses TLS has.
    ///
    /// # Errors
    /// There are none: the switch would not have started.
    fn credentials(&self) -> io::Result<&Credentials> {
        self.credentials.as_deref().ok_or_else(|| io::Error::other("no private key and certificate were given"))
    }
}

/// What the control thread is told while it runs.
pub(crate) enum Order {
    /// To make a channel of a stream.
    Stream(ByteStream),
    /// To add a virtual switch, and to say where it listens.
    AddVirtual(Box<VirtualSwitch>, Said),
}

/// Takes the answer to [`Order::AddVirtual`].
pub(crate) type Said = Box<dyn FnOnce(Result<Vec<ListenTarget>, SwitchError>) + Send>;

/// What the control thread starts with.
pub(crate) struct Start {
    pub(crate) controllers: Vec<ControllerSpec>,
    pub(crate) listeners: Vec<listen::Listener>,
    pub(crate) ctl: Option<crate::ctl::server::Server>,
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
    /// The ports waited for.
    pub(crate) absent: Arc<Absent>,
}

/// Opens the listeners; gives them and their addresses, with the TCP ports they got.
///
/// # Errors
/// An address is in use or not this machine's.
pub(crate) fn listen(targets: &[ListenTarget]) -> Result<(Vec<listen::Listener>, Vec<ListenTarget>), SwitchError> {
    targets
        .iter()
        .map(|target| {
            listen::Listener::open(target).map(|listener| {
                let address = listener.target().clone();
                (listener, address)
            })
        })
        .collect()
}

/// Serves a controller in this process, until the stream or the switch ends.
pub(crate) async fn serve_stream(control: Control, stream: ByteStream) {
    let (registry, id) = (Arc::clone(&control.registry), control.registry.next_id(false));
    let info = registry.add("in-process".to_owned());
    let ended = channel::run(control, stream, Arc::clone(&info), id, Part::alone()).await;
    tracing::info!("{}: down: {}", info.target(), ended.reason);
    registry.remove(&info);
}

/// Runs until the switch stops.
pub(crate) async fn run(control: Control, mut start: Start) {
    let mut tasks = tokio::task::JoinSet::new();
    for target in start.controllers {
        tasks.spawn(connect::keep_connected(control.clone(), target));
    }
    for listener in start.listeners {
        tasks.spawn(listen::serve(control.clone(), listener));
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
                Some(Order::Stream(stream)) => drop(tasks.spawn(serve_stream(control.clone(), stream))),
                Some(Order::AddVirtual(spec, said)) => drop(tasks.spawn(virtuals::run(control.clone(), *spec, said))),
                None => break,
            },
            // Collects tasks that ended, so that the set does not grow.
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!("a control task failed: {error}");
                }
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Waits until the switch stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error says that nobody is left to stop it: that is a stop, too.
    let _ = stopping.wait_for(|stop| *stop).await;
}
