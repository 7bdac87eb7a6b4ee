//! The service is killed before each operation on the store and on switches, and started again.
use super::switches::Fuse;
use super::{Bench, OPERATOR, TestService, at, events, link, settle, state, written};
use std::collections::BTreeMap;
use weir_networks::manager::{LifecycleState, ManagerSettings};
use weir_networks::plan::SliceSpec;
use weir_networks::service::NetworkServiceError;
use weir_units::Instant;

/// Event in the life of the service.
#[derive(Debug, Clone)]
enum Act {
    Request(weir_vnet::service::NetworkServiceRequest),
    Commit(&'static str),
    Release(&'static str),
    Rounds(u64),
}

fn script() -> Vec<Act> {
    let low = "{ minimum = '10Mbit/s', maximum = '80Mbit/s' }";
    let stages = written(
        "name = 'stages'\nlink = [{ ends = ['b1', 'b3'], bandwidth = '10Mbit/s' }]\n\
         stage = [{ start = '10s', link = [{ name = 'b1-b3', bandwidth = '50Mbit/s' }] },\n\
                  { start = '20s', link = [{ name = 'b1-b3', bandwidth = '5Mbit/s' }] }]\n",
    );
    let hub = written(
        "name = 'hub'\nnode = [{ name = 'n', place = 's2' }]\nlink = [\n\
         { ends = ['a2', 'n'], bandwidth = '5Mbit/s' }, { ends = ['n', 'a3'], bandwidth = '5Mbit/s', vlan = 7 }]\n",
    );
    vec![
        Act::Request(link("wide", ["a1", "b2"], low)),
        Act::Commit("wide"),
        Act::Rounds(1),
        // Takes rate from the first, and changes it twice.
        Act::Request(stages),
        Act::Commit("stages"),
        Act::Rounds(2),
        Act::Rounds(13),
        Act::Request(hub),
        Act::Commit("hub"),
        Act::Rounds(14),
        Act::Rounds(25),
        Act::Release("wide"),
        Act::Rounds(26),
        Act::Release("stages"),
        Act::Rounds(27),
    ]
}

/// Does one act. One that was done before the service was killed, and is done again, is no error.
fn act(service: &mut TestService, act: &Act, now: &mut Instant) -> Result<(), NetworkServiceError> {
    let time = *now;
    match act {
        Act::Request(request) => {
            let is_there = service.manager().show(&OPERATOR, &request.name).is_ok();
            if is_there { Ok(()) } else { service.change(|manager| manager.request(&OPERATOR, request, time)) }
        }
        Act::Commit(name) => service.change(|manager| manager.commit(&OPERATOR, name, time)),
        Act::Release(name) => {
            let has_ended = state(service, name).has_ended();
            if has_ended { Ok(()) } else { service.change(|manager| manager.release(&OPERATOR, name, time)) }
        }
        Act::Rounds(seconds) => {
            *now = at(*seconds);
            for _ in 0..20 {
                if service.round(*now)? > *now {
                    return Ok(());
                }
            }
            panic!("no end after 20 rounds: {service:?}");
        }
    }
}

type OnSwitches = BTreeMap<String, BTreeMap<String, SliceSpec>>;

/// Runs the script with a fuse. If it burns down, the service is dropped as it is, opened again, and goes on with the
/// act during which it was killed. Returns what switches have at the end, and true if the fuse has burnt down.
fn run(operations: usize) -> (OnSwitches, bool) {
    let bench = Bench::new();
    let fuse = Fuse::new(operations);
    let mut service = bench.open_with(&fuse, ManagerSettings::default());
    let (mut now, mut was_killed) = (at(0), false);
    for one in script() {
        let mut done = act(&mut service, &one, &mut now);
        if fuse.is_burnt() && !was_killed {
            was_killed = true;
            let before = bench.switches.all();
            drop(service);
            service = bench.open();
            check_restored(&service, &before);
            done = act(&mut service, &one, &mut now);
        }
        done.unwrap_or_else(|error| panic!("killed before operation {operations}, {one:?}: {error}"));
    }
    settle(&mut service, at(28));
    let states = ["wide", "stages", "hub"].map(|name| state(&service, name));
    let expected = [LifecycleState::Released, LifecycleState::Released, LifecycleState::Active];
    assert_eq!(states, expected, "killed before operation {operations}: {:?}", events(service.manager(), "hub"));
    (bench.switches.all(), was_killed)
}

/// Checks what must hold at each moment: all that switches have is known to the store.
fn check_restored(service: &TestService, found: &OnSwitches) {
    let known: Vec<(String, String)> = service
        .manager()
        .slices()
        .into_iter()
        .map(|slice| {
            let slice = &slice.held.design.slices[slice.slice];
            (slice.switch.clone(), slice.name.clone())
        })
        .collect();
    for (switch, slices) in found {
        for name in slices.keys() {
            assert!(known.contains(&(switch.clone(), name.clone())), "{switch} has {name}, which nothing knows of");
        }
    }
}

#[test]
fn killed_before_each_operation_it_goes_on() {
    let (expected, was_killed) = run(usize::MAX);
    assert!(!was_killed && expected["s2"].len() == 1, "{expected:?}");
    let mut kills = 0;
    while run_and_compare(kills, &expected) {
        kills += 1;
    }
    assert!(kills > 60, "found only {kills} operations");
}

fn run_and_compare(operations: usize, expected: &OnSwitches) -> bool {
    let (found, was_killed) = run(operations);
    assert_eq!(found, *expected, "killed before operation {operations}");
    was_killed
}

/// Draws sequences of requests, releases and kills. At the end switches have what the book says, and nothing else.
#[test]
fn drawn_sequences_with_kills_end_in_one_state() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let bench = Bench::new();
        let mut service = bench.open();
        let names = ["n1", "n2", "n3", "n4"];
        for step in 0..25_u64 {
            let name = random.choice(names).unwrap();
            let now = at(step);
            if random.u8(..4) == 0 {
                let fuse = Fuse::new(random.usize(..12));
                drop(service);
                service = bench.open_with(&fuse, ManagerSettings::default());
            }
            // Errors are refusals, or those of a service that is killed.
            _ = match random.u8(..4) {
                0 | 1 => {
                    let ends = [["a1", "a3"], ["b1", "b2"], ["a2", "b3"], ["b2", "a3"]][random.usize(..4)];
                    let request = link(name, ends, &format!("'{}Mbit/s'", random.u32(1..60)));
                    service.change(|manager| manager.request(&OPERATOR, &request, now))
                }
                2 => service.change(|manager| manager.commit(&OPERATOR, name, now)),
                _ => service.change(|manager| manager.release(&OPERATOR, name, now)),
            };
            _ = service.round(now);
        }
        drop(service);
        let mut service = bench.open();
        settle(&mut service, at(200));
        let mut wanted: Vec<String> = Vec::new();
        for slice in service.manager().slices() {
            assert!(slice.is_wanted, "seed {seed}: something is still being released");
            let designed = &slice.held.design.slices[slice.slice];
            wanted.push(format!("{}/{}", designed.switch, designed.name));
        }
        wanted.sort();
        assert_eq!(bench.switches.names(), wanted, "seed {seed}");
        let states: Vec<LifecycleState> = service.manager().networks().map(|network| network.state).collect();
        assert!(!states.contains(&LifecycleState::Provisioning), "seed {seed}: {states:?}");
    }
}
