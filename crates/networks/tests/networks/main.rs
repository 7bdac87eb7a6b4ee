//! The service of virtual networks with its store and switches in memory.
mod kills;
mod lifecycle;
mod live;
mod plans;
mod stores;
mod switches;
mod trouble;

use std::path::{Path, PathBuf};
use std::time::Duration;
use switches::{Fuse, FusedStore, MemorySwitches};
use weir_networks::manager::{Caller, LifecycleState, ManagerSettings, NetworkManager};
use weir_networks::service::NetworkService;
use weir_networks::store::NetworkStore;
use weir_scenario::networks;
use weir_slicing::{FabricSpec, VirtualSwitch};
use weir_units::{Bps, Instant};
use weir_vnet::allocation::SharingRule;
use weir_vnet::service::{
    AttachedHost, HeldNetwork, Line, NetworkBook, NetworkServiceRequest, NetworkSubstrate, PortName, ShareSettings,
    SubstrateCable, SwitchLimits,
};

type TestService = NetworkService<FusedStore, MemorySwitches>;

const OPERATOR: Caller = Caller::Operator;

/// Returns a time that machines have today, plus some seconds.
fn at(seconds: u64) -> Instant {
    Instant::from_nanos(1_700_000_000_000_000_000) + Duration::from_secs(seconds)
}

/// Returns a book over a row of three switches. Each has hosts: `a1`, `b1` at ports 1 and 2 of `s1`, and so on. Port 3
/// leads to the switch before, port 4 to the next one. Lines have 100 Mbit/s.
fn book() -> NetworkBook {
    let line = Line { capacity: Bps(100_000_000), propagation: Duration::from_micros(50) };
    let name = |number: usize| format!("s{number}");
    let cables = (1..3).map(|number| SubstrateCable {
        ends: [PortName::new(name(number), 4), PortName::new(name(number + 1), 3)],
        line,
    });
    let hosts = (1..=3).flat_map(|number| {
        [("a", 1), ("b", 2)].map(|(letter, port)| AttachedHost {
            name: format!("{letter}{number}"),
            port: PortName::new(name(number), port),
            line,
        })
    });
    let substrate = NetworkSubstrate::new((1..=3).map(name).collect(), cables.collect(), hosts.collect()).unwrap();
    NetworkBook::new(substrate, ShareSettings::default(), SwitchLimits::default(), SharingRule::MaximumSum).unwrap()
}

/// Returns the fabric of each switch.
fn fabric() -> FabricSpec {
    let ports = (1..=4).map(|port| (port, Bps(100_000_000)));
    networks::fabric(ports, ShareSettings::default().longest_packet, SwitchLimits::default().crosspoint)
}

/// Returns the virtual switch of a slice.
fn virtual_switch(book: &NetworkBook, held: &HeldNetwork, slice: usize) -> VirtualSwitch {
    networks::virtual_switch(book, held, slice, &fabric())
}

/// Store in a folder of its own, and switches that outlive services.
struct Bench {
    folder: tempfile::TempDir,
    switches: MemorySwitches,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap(), switches: MemorySwitches::new(&["s1", "s2", "s3"]) }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("networks.store")
    }

    fn open(&self) -> TestService {
        self.open_with(&Fuse::endless(), ManagerSettings::default())
    }

    /// Opens a service of which switches and store fail once the fuse has burnt down.
    fn open_with(&self, fuse: &Fuse, settings: ManagerSettings) -> TestService {
        let store = FusedStore { store: store(&self.file()), fuse: fuse.clone() };
        let switches = self.switches.with_fuse(fuse);
        NetworkService::open(book(), settings, store, switches, Box::new(virtual_switch)).unwrap()
    }
}

fn store(path: &Path) -> NetworkStore {
    NetworkStore::open(path).unwrap_or_else(|error| panic!("{error}"))
}

fn written(text: &str) -> NetworkServiceRequest {
    toml::from_str(text).unwrap()
}

/// Returns a request of one link.
fn link(name: &str, ends: [&str; 2], bandwidth: &str) -> NetworkServiceRequest {
    let [a, b] = ends;
    written(&format!("name = '{name}'\nlink = [{{ ends = ['{a}', '{b}'], bandwidth = {bandwidth} }}]\n"))
}

/// Requests and commits a network, and carries it out.
fn active(service: &mut TestService, request: &NetworkServiceRequest, now: Instant) {
    service.change(|manager| manager.request(&OPERATOR, request, now)).unwrap_or_else(|error| panic!("{error}"));
    service.change(|manager| manager.commit(&OPERATOR, &request.name, now)).unwrap();
    settle(service, now);
    assert_eq!(
        state(service, &request.name),
        LifecycleState::Active,
        "{:?}",
        service.manager().show(&OPERATOR, &request.name)
    );
}

/// Carries out rounds until nothing is left to be done at `now`.
fn settle(service: &mut TestService, now: Instant) {
    for _ in 0..20 {
        if service.round(now).unwrap() > now {
            return;
        }
    }
    panic!("no end after 20 rounds: {service:?}");
}

fn state(service: &TestService, name: &str) -> LifecycleState {
    service.manager().show(&OPERATOR, name).unwrap().state
}

/// Returns the texts of all events of a network.
fn events(manager: &NetworkManager, name: &str) -> Vec<String> {
    let events = manager.events(&OPERATOR, 0, usize::MAX);
    let own = events.into_iter().filter(|event| event.network.as_deref() == Some(name));
    own.map(|event| format!("{:?}: {}", event.kind, event.text)).collect()
}
