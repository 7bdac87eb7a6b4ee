//! Controllers of a measurement: weir's in this process, those of other projects as processes.
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use weir_bench::{PeerController, start_on_core};
use weir_controller::apps::learning::{LearningConfig, LearningSwitches};
use weir_controller::{Controller, ControllerConfig, ListenAddress};
use weir_emulator::CancelHandle;
use weir_network::result::LabMachineInfo;

/// Processor of a controller with one thread; the emulated switches take another one.
const CORE: usize = 0;

/// Controller to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControllerSubject {
    /// weir's learning switch.
    Weir {
        /// Number of its threads.
        threads: usize,
    },
    /// A controller of another project, by the name that `weir bench controller --compare` has for it.
    Peer(&'static str),
}

impl ControllerSubject {
    /// weir's controller as it is by default.
    pub(super) const WEIR: ControllerSubject = ControllerSubject::Weir { threads: 1 };
    /// Controllers of other projects.
    pub(super) const PEERS: [ControllerSubject; 2] =
        [ControllerSubject::Peer("ovs-testcontroller"), ControllerSubject::Peer("os-ken")];

    /// Returns weir's controller and, unless this is a unit test, its peers.
    pub(super) fn all() -> Vec<ControllerSubject> {
        let peers = if cfg!(test) { &[][..] } else { &ControllerSubject::PEERS[..] };
        [ControllerSubject::WEIR].into_iter().chain(peers.iter().copied()).collect()
    }

    pub(super) fn is_peer(self) -> bool {
        matches!(self, ControllerSubject::Peer(_))
    }

    /// Starts the controller. With one thread it has a processor of its own, if there are two.
    ///
    /// # Errors
    /// The program of the controller is missing or does not start.
    pub(super) fn start(self, cancel: &CancelHandle) -> Result<RunningController, String> {
        let core = (LabMachineInfo::this().cores > 1).then_some(CORE);
        match self {
            ControllerSubject::Peer(name) => PeerController::start(name, core, cancel).map(RunningController::Peer),
            ControllerSubject::Weir { threads } => {
                let listen = vec![ListenAddress::Tcp((Ipv4Addr::LOCALHOST, 0).into())];
                let switches =
                    LearningSwitches::new(LearningConfig { entry_sends_packet: true, ..LearningConfig::default() });
                let config = ControllerConfig { listen, threads, max_connections: 8192, ..ControllerConfig::default() };
                let start = || {
                    let make = move |shard, waker| Box::new(switches.make(shard, waker)) as _;
                    Controller::start_threads(Box::new(make), config)
                };
                let started = start_on_core(core.filter(|_| threads == 1), start);
                started.map(RunningController::Weir).map_err(|error| error.to_string())
            }
        }
    }
}

impl fmt::Display for ControllerSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerSubject::Weir { .. } => f.write_str("weir"),
            ControllerSubject::Peer(name) => f.write_str(name),
        }
    }
}

/// A running controller. It ends when dropped.
pub(super) enum RunningController {
    Weir(Controller),
    Peer(PeerController),
}

impl RunningController {
    /// Returns the address on which it listens.
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            RunningController::Peer(peer) => peer.address(),
            RunningController::Weir(controller) => match controller.addresses().first() {
                Some(ListenAddress::Tcp(address)) => *address,
                // It was started with one TCP address.
                _ => (Ipv4Addr::LOCALHOST, 0).into(),
            },
        }
    }
}
