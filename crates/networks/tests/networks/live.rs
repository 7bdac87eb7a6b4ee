//! Running switches, which are told over their control sockets.
use super::{Bench, OPERATOR, at, book, events, link, store};
use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_networks::manager::{LifecycleState, ManagerSettings};
use weir_networks::plan::PlanStep;
use weir_networks::service::NetworkService;
use weir_networks::store::NetworkStore;
use weir_networks::switches::{LiveSwitches, SwitchAccess};
use weir_openflow::model::PortNo;
use weir_port::memory::{MemoryPort, pair};
use weir_scenario::TomlVirtualSwitchReader;
use weir_switch::{PortConfig, SocketFile, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle};
use weir_units::Instant;

type LiveService = NetworkService<NetworkStore, LiveSwitches>;

/// Running switch with four ports, and the other ends of these.
struct Running {
    handle: SwitchHandle,
    _ends: Vec<MemoryPort>,
}

fn socket(bench: &Bench, switch: &str) -> PathBuf {
    bench.folder.path().join(format!("{switch}.sock"))
}

fn started(bench: &Bench, switch: &str) -> Running {
    let (ports, ends): (Vec<_>, Vec<_>) = (1..=4)
        .map(|number| {
            let (inside, outside) = pair(64).unwrap();
            (PortConfig::new(PortNo(number), Box::new(inside.named(&format!("p{number}")))), outside)
        })
        .unzip();
    let config = SoftwareSwitchConfig {
        ports,
        control_socket: Some(SocketFile::bind(&socket(bench, switch)).unwrap()),
        fabric: Some(super::fabric()),
        virtual_switch_reader: Some(&TomlVirtualSwitchReader),
        ..SoftwareSwitchConfig::default()
    };
    Running { handle: SoftwareSwitch::start(config).unwrap(), _ends: ends }
}

fn live(bench: &Bench) -> LiveSwitches {
    let sockets: BTreeMap<String, PathBuf> =
        ["s1", "s2", "s3"].map(|switch| (switch.to_owned(), socket(bench, switch))).into();
    LiveSwitches::new(sockets)
}

fn opened(bench: &Bench) -> LiveService {
    let (store, switches) = (store(&bench.file()), live(bench));
    NetworkService::open(book(), ManagerSettings::default(), store, switches, Box::new(super::virtual_switch)).unwrap()
}

fn settle(service: &mut LiveService, now: Instant) {
    let is_done = (0..20).any(|_| service.round(now).unwrap() > now);
    assert!(is_done, "no end after 20 rounds: {service:?}");
}

fn state(service: &LiveService, name: &str) -> (LifecycleState, Option<String>) {
    let record = service.manager().show(&OPERATOR, name).unwrap();
    (record.state, record.problem.clone())
}

fn names(switch: &Running) -> Vec<String> {
    switch.handle.snapshot().unwrap().virtual_switches.into_iter().map(|one| one.name).collect()
}

#[test]
fn running_switches_have_what_was_asked_for() {
    let bench = Bench::new();
    let (one, two, three) = (started(&bench, "s1"), started(&bench, "s2"), started(&bench, "s3"));
    let mut service = opened(&bench);
    let commit = |service: &mut LiveService, request: &weir_vnet::service::NetworkServiceRequest, now| {
        service.change(|manager| manager.request(&OPERATOR, request, now)).unwrap();
        service.change(|manager| manager.commit(&OPERATOR, &request.name, now)).unwrap();
        settle(service, now);
        assert_eq!(state(service, &request.name), (LifecycleState::Active, None));
    };
    let range = "{ minimum = '10Mbit/s', maximum = '80Mbit/s' }";
    commit(&mut service, &link("wide", ["a1", "b3"], range), at(0));
    // Takes rate from the first, which is resized.
    commit(&mut service, &link("gold", ["b1", "a3"], "'60Mbit/s'"), at(1));
    assert_eq!(state(&service, "wide"), (LifecycleState::Active, None));
    assert!(events(service.manager(), "wide").last().unwrap().starts_with("Resized"));
    assert_eq!(names(&two), ["wide-a1-b3-2", "gold-b1-a3-2"]);
    // A switch is started again, and has nothing.
    drop(two);
    settle(&mut service, at(10));
    let (degraded, problem) = state(&service, "gold");
    assert_eq!(degraded, LifecycleState::Degraded);
    assert!(problem.unwrap().contains("switch s2 does not answer: no switch answers at"));
    let two = started(&bench, "s2");
    settle(&mut service, at(100));
    assert_eq!([state(&service, "wide").0, state(&service, "gold").0], [LifecycleState::Active; 2]);
    assert_eq!(names(&two).len(), 2);
    // The service is started again, and has nothing to do.
    drop(service);
    let mut service = opened(&bench);
    let count = service.manager().events(&OPERATOR, 0, usize::MAX).len();
    settle(&mut service, at(101));
    assert_eq!(service.manager().events(&OPERATOR, 0, usize::MAX).len(), count);
    service.change(|manager| manager.release(&OPERATOR, "gold", at(102))).unwrap();
    settle(&mut service, at(102));
    assert_eq!(state(&service, "gold").0, LifecycleState::Released);
    assert_eq!([names(&one), names(&two), names(&three)].concat().len(), 3);
}

#[test]
fn steps_may_be_repeated() {
    let bench = Bench::new();
    let one = started(&bench, "s1");
    let mut book = book();
    book.request(&link("gold", ["a1", "b1"], "'60Mbit/s'"), at(0)).unwrap();
    let switch = super::virtual_switch(&book, book.network("gold").unwrap(), 0);
    let (network, spec) = ("gold".to_owned(), weir_networks::plan::SliceSpec::from(&switch));
    let add = PlanStep::AddSlice { network, switch: "s1".to_owned(), spec: spec.clone() };
    let mut switches = live(&bench);
    for _ in 0..2 {
        switches.carry_out(&add).unwrap();
        assert_eq!(switches.read("s1").unwrap(), std::slice::from_ref(&spec));
    }
    for _ in 0..2 {
        switches.carry_out(&add.undo()).unwrap();
        assert!(names(&one).is_empty());
    }
}
