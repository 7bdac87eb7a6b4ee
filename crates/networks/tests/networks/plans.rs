//! Orders of steps, and their undoing.
use serde_json::json;
use std::collections::BTreeMap;
use weir_networks::plan::{PlanStep, PlannedSlice, SliceSpec, plan};

/// Returns a virtual switch with two ports of these ceilings.
fn spec(name: &str, dpid: u64, ceilings: [Option<&str>; 2]) -> SliceSpec {
    let ports = (1_u32..)
        .zip(ceilings)
        .map(|(number, ceiling)| json!({ "number": number, "rate_out": "1Mbit/s", "ceiling": ceiling }));
    let ports: Vec<_> = ports.collect();
    let select = json!([{ "port": 1, "vlan": dpid }]);
    SliceSpec::from_value(json!({ "name": name, "dpid": dpid, "select": select, "ports": ports })).unwrap()
}

fn planned(switch: &str, spec: SliceSpec, is_end: bool, is_wanted: bool) -> PlannedSlice {
    let network = spec.name().split('-').next().unwrap().to_owned();
    PlannedSlice { network, switch: switch.to_owned(), spec, is_end, is_wanted, is_new: false }
}

fn texts(steps: &[PlanStep]) -> Vec<String> {
    steps.iter().map(PlanStep::to_string).collect()
}

type OnSwitches = BTreeMap<String, Vec<SliceSpec>>;

fn carried_out(mut switches: OnSwitches, step: &PlanStep) -> OnSwitches {
    let found = switches.get_mut(step.switch()).unwrap();
    match step {
        PlanStep::AddSlice { spec, .. } => found.push(spec.clone()),
        PlanStep::ResizeSlice { from, to, .. } => {
            let at = found.iter().position(|one| one == from).unwrap();
            found[at] = to.clone();
        }
        PlanStep::RemoveSlice { spec, .. } => found.retain(|one| one != spec),
    }
    found.sort_by_key(SliceSpec::dpid);
    switches
}

/// Returns slices of all kinds of changes at once, and what switches have.
fn mixed() -> (Vec<PlannedSlice>, OnSwitches) {
    let (low, high) = ([Some("10Mbit/s"), Some("5Mbit/s")], [Some("20Mbit/s"), None]);
    let crossed = [Some("20Mbit/s"), Some("2Mbit/s")];
    let slices = vec![
        planned("s1", spec("new-end", 1, low), true, true),
        planned("s2", spec("new-inner", 2, low), false, true),
        planned("s1", spec("up-end", 3, high), true, true),
        planned("s2", spec("down-inner", 4, low), false, true),
        planned("s2", spec("old-inner", 5, low), false, false),
        planned("s1", spec("old-end", 6, low), true, false),
        planned("s2", spec("both-inner", 7, crossed), false, true),
        planned("s1", spec("same-end", 8, low), true, true),
        planned("s1", spec("gone-end", 9, low), true, false),
    ];
    let found = [
        ("s1", vec![spec("up-end", 3, low), spec("old-end", 6, low), spec("same-end", 8, low), spec("other", 99, low)]),
        ("s2", vec![spec("down-inner", 4, high), spec("old-inner", 5, low), spec("both-inner", 7, low)]),
    ];
    (slices, found.map(|(name, found)| (name.to_owned(), found)).into())
}

#[test]
fn steps_are_ordered_so_that_packets_in_profile_pass() {
    let (slices, found) = mixed();
    let made = plan(&slices, &found);
    assert!(made.conflicts.is_empty(), "{:?}", made.conflicts);
    let expected = [
        "remove virtual switch old-end from s1",
        "remove virtual switch old-inner from s2",
        "resize virtual switch down-inner on s2",
        "resize virtual switch both-inner on s2",
        "add virtual switch new-inner to s2",
        "add virtual switch new-end to s1",
        "resize virtual switch up-end on s1",
        "resize virtual switch both-inner on s2",
    ];
    assert_eq!(texts(&made.steps), expected);
    let PlanStep::ResizeSlice { to, .. } = &made.steps[3] else { panic!("{:?}", made.steps[3]) };
    assert_eq!(*to, spec("both-inner", 7, [Some("10Mbit/s"), Some("2Mbit/s")]), "what falls falls first");
}

#[test]
fn a_plan_leads_to_what_is_wanted_and_back() {
    let (slices, found) = mixed();
    let made = plan(&slices, &found);
    let mut states = vec![found];
    for step in &made.steps {
        let next = carried_out(states.last().unwrap().clone(), step);
        states.push(next);
    }
    // From each state in between, the rest is planned.
    for (done, state) in states.iter().enumerate() {
        assert_eq!(plan(&slices, state).steps, made.steps[done..], "after {done} steps");
    }
    let mut state = states.last().unwrap().clone();
    for step in made.steps.iter().rev() {
        state = carried_out(state, &step.undo());
    }
    assert_eq!(state, states[0]);
}

#[test]
fn a_new_network_waits_for_a_switch_that_does_not_answer() {
    let mut slices = [
        planned("s1", spec("new-end", 1, [None; 2]), true, true),
        planned("s2", spec("new-inner", 2, [None; 2]), false, true),
    ];
    slices.iter_mut().for_each(|slice| slice.is_new = true);
    let found: OnSwitches = [("s1".to_owned(), Vec::new())].into();
    assert!(plan(&slices, &found).steps.is_empty());
    slices.iter_mut().for_each(|slice| slice.is_new = false);
    assert_eq!(
        texts(&plan(&slices, &found).steps),
        ["add virtual switch new-end to s1"],
        "what was active is repaired"
    );
}
