//! Tests what survives a restart of the controller.
use crate::applications::{FILE, chain, join};
use crate::bed::Bed;
use crate::forwarding::config;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use weir_packet::MacAddr;
use weir_routing::apps::NetworkFile;
use weir_routing::forwarding::ForwardingMode;
use weir_routing::{HAND_OUT_INTERVAL, KeptState, NetworkController};
use weir_units::Instant;

const MS: Duration = Duration::from_millis(1);

/// Returns a controller that hands out what its applications keep, with what another one has handed out a minute ago.
fn keeping(now: Instant, state: Option<KeptState>) -> (NetworkController, Receiver<KeptState>) {
    let apps = NetworkFile::parse("network.toml", FILE).unwrap().apps().unwrap();
    let mut network = NetworkController::new(config(ForwardingMode::Proactive), apps);
    if let Some(state) = state {
        network.restore(now, Duration::from_secs(60), state).unwrap();
    }
    let (sender, receiver) = channel();
    network.keep_state(Box::new(move |state| _ = sender.send(state)));
    (network, receiver)
}

fn start_anew(bed: &mut Bed, network: NetworkController) {
    bed.replace_controller(network);
    bed.connect_all();
    bed.run(200 * MS);
}

#[test]
fn leases_survive_a_restart_of_the_controller() {
    let mut bed = chain(ForwardingMode::Proactive);
    let (network, states) = keeping(bed.now, None);
    start_anew(&mut bed, network);
    assert_eq!(states.try_iter().count(), 1, "the state at the start");
    let first = join(&mut bed, 0);
    assert_eq!(states.try_iter().count(), 1, "a change is handed out at once");
    let second = join(&mut bed, 1);
    assert_eq!(states.try_iter().count(), 0, "further ones wait");
    bed.run(HAND_OUT_INTERVAL);
    let state = states.try_iter().last().expect("both leases");
    // A host that the next controller has not heard of keeps its address.
    let newcomer = bed.host(2);
    let (network, states) = keeping(bed.now, Some(state.clone()));
    start_anew(&mut bed, network);
    let third = join(&mut bed, newcomer);
    assert!(first != second && ![first, second].contains(&third), "{first} {second} {third}");
    // The end of the controller hands out what waits.
    states.try_iter().last();
    bed.restart_controller(config(ForwardingMode::Proactive), Vec::new());
    assert_eq!(states.try_iter().count(), 0, "it was handed out before");
    let damaged = KeptState([("dhcp".to_owned(), "leases".into())].into());
    let (mut network, _states) = keeping(bed.now, None);
    let problem = network.restore(bed.now, Duration::ZERO, damaged).unwrap_err();
    assert!(problem.starts_with("dhcp: "), "{problem}");
    // Without the state the same address is given twice.
    let (network, _states) = keeping(bed.now, None);
    start_anew(&mut bed, network);
    bed.hosts[newcomer].resolved.clear();
    bed.hosts[newcomer].mac = MacAddr([2, 0, 0, 0, 0, 9]);
    assert_eq!(join(&mut bed, newcomer), first);
}
