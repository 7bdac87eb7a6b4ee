//! Compares the stage with the formulas, and checks properties for random input.
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use weir_device::{DataPathPacket, ProfiledTables, ReleaseKind, ReleasedItem, SendDuration, TableEffect, TimingStage};
use weir_model::switch::device::{ResolvedFlowMod, SwitchModel, SwitchModelState};
use weir_model::switch::forward::PacketConditions;
use weir_model::switch::speedup::CommandBatch;
use weir_profile::{MatchLayers, Profile};
use weir_units::Instant;

const TWO_LEVELS: &str = r#"
name = "two"
device = "Two levels"
origin = "assumed"
source = "A test"
policy = [{ attribute = "priority", evicts = "lowest" }]
batching = { timeout = "1ms", most = 4 }
[[level]]
name = "fast"
size = 5
shift = "10us"
search = "30us"
write = "100us"
add = { single = { per_entry = "3us", speedup = [0.9, 0.1, 0.0] }, several = { per_entry = "5us" } }
modify = { single = { per_entry = "2us" }, several = { per_entry = "4us", speedup = [0.8, 0.2, 0.0] } }
forward = { base_l2 = "4us", per_byte = "8ns", gap_levels = ["10ms"], per_gap_level = "1us" }
[[level]]
name = "slow"
size = 9
search = "7us"
write = "20us"
forward = { base_l2 = "60us" }
[timing]
write = "50us"
packet_in = { law = "lattice", values = ["4ms", "8ms"], probs = [1, 1] }
packet_out = "2ms"
buffer = 3
"#;

fn profile(text: &str) -> Profile {
    Profile::parse(text, "test.toml").unwrap()
}

fn stage<T>(text: &str) -> TimingStage<T> {
    TimingStage::new(&profile(text), 7).unwrap().unwrap()
}

fn us(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

/// Releases everything, by a caller that looks exactly when something is due.
fn run<T>(stage: &mut TimingStage<T>, describe: &mut dyn FnMut(&T) -> TableEffect) -> Vec<ReleasedItem<T>> {
    let mut all = Vec::new();
    while stage.due() != Instant::FAR {
        let now = stage.due();
        while let Some(released) = stage.release(now, describe) {
            assert!(released.due <= now);
            all.push(released);
        }
    }
    all
}

#[derive(Debug, Clone)]
enum Op {
    Add(u16),
    Modify(Vec<usize>),
    Delete(Vec<usize>),
}

fn op() -> impl Strategy<Value = Op> {
    let some = || prop::collection::btree_set(0usize..40, 0..4).prop_map(|set| set.into_iter().collect::<Vec<_>>());
    prop_oneof![4 => (500u16..506).prop_map(Op::Add), 1 => some().prop_map(Op::Modify), 1 => some().prop_map(Op::Delete)]
}

proptest! {
    /// Costs of commands and levels of entries equal the formulas. (If all levels are full, the formulas lose an
    /// entry, and the switch refuses.)
    #[test]
    fn costs_and_levels_are_those_of_the_model(ops in prop::collection::vec(op(), 1..60), policy in 0usize..4) {
        let mut model: SwitchModel = profile(TWO_LEVELS).tables.unwrap();
        use weir_model::switch::policy::{EvictionAttribute, EvictedEnd, EvictionPolicy, EvictionCriterion};
        model.policy = EvictionPolicy(match policy {
            0 => vec![],
            1 => vec![EvictionCriterion { attribute: EvictionAttribute::Priority, evicts: EvictedEnd::Lowest }],
            2 => vec![EvictionCriterion { attribute: EvictionAttribute::Modified, evicts: EvictedEnd::Lowest }],
            _ => vec![EvictionCriterion { attribute: EvictionAttribute::Priority, evicts: EvictedEnd::Highest }],
        });
        model.levels[1].costs.delete_s = Some(6e-5);
        let mut device = SwitchModelState::new(&model).unwrap();
        let mut tables = ProfiledTables::new(model.clone());
        let mut added = 0usize;
        for (at, op) in ops.into_iter().enumerate() {
            let batch = CommandBatch { commands: 1 + u32::try_from(at % 5).unwrap(), most: model.batching.most };
            let names = |numbers: &[usize]| numbers.iter().map(|number| *number as u64).collect::<Vec<_>>();
            let (work, command) = match &op {
                Op::Add(priority) => (TableEffect::Add { priority: *priority }, ResolvedFlowMod::Add { priority: *priority }),
                Op::Modify(numbers) => (TableEffect::Modify { entries: names(numbers) }, ResolvedFlowMod::Modify { matching: numbers.clone() }),
                Op::Delete(numbers) => (TableEffect::Delete { entries: names(numbers) }, ResolvedFlowMod::Delete { matching: numbers.clone() }),
            };
            let charge = tables.charge(&work, batch).unwrap();
            if charge.full {
                prop_assert_eq!(tables.occupancy(), vec![5, 9]);
                continue;
            }
            let expected = device.apply(&command, batch).unwrap();
            prop_assert!((charge.duration_s - expected.duration_s).abs() < 1e-12, "{:?}: {:?} {:?}", op, charge, expected);
            prop_assert_eq!(charge.moved, expected.moved);
            match op {
                Op::Add(priority) => {
                    tables.added(added as u64, priority);
                    added += 1;
                }
                Op::Modify(numbers) => tables.modified(&names(&numbers)),
                Op::Delete(numbers) => numbers.iter().for_each(|number| tables.removed(*number as u64)),
            }
            for number in 0..added {
                prop_assert_eq!(tables.level_of(number as u64), device.level_of(number));
            }
        }
        prop_assert_eq!(tables.beyond(), 0);
    }

    /// A bundle takes as long as its messages one after the other, in batches of the switch's largest size, and does
    /// not change the tables.
    #[test]
    fn a_bundle_takes_what_its_messages_take(before in prop::collection::vec(500u16..506, 0..9), ops in prop::collection::vec(op(), 1..20)) {
        let model: SwitchModel = profile(TWO_LEVELS).tables.unwrap();
        let most = model.batching.most;
        let mut tables = ProfiledTables::new(model);
        (0..).zip(&before).for_each(|(name, priority)| tables.added(name, *priority));
        let mut after = tables.clone();
        let (mut members, mut sum, mut full) = (Vec::new(), 0.0, None);
        for (number, op) in ops.iter().enumerate() {
            let names = |numbers: &[usize]| numbers.iter().map(|number| *number as u64).collect::<Vec<_>>();
            let work = match op {
                Op::Add(priority) => TableEffect::Add { priority: *priority },
                Op::Modify(numbers) => TableEffect::Modify { entries: names(numbers) },
                Op::Delete(numbers) => TableEffect::Delete { entries: names(numbers) },
            };
            members.push(work.clone());
            if full.is_some() {
                continue;
            }
            let of_batch = ops.chunks(most as usize).nth(number / most as usize).map_or(0, <[Op]>::len);
            let batch = CommandBatch { commands: u32::try_from(of_batch).unwrap(), most };
            let charge = after.charge(&work, batch).unwrap();
            if charge.full {
                full = Some(number);
                continue;
            }
            sum += charge.duration_s;
            match op {
                Op::Add(priority) => after.added(1000 + number as u64, *priority),
                Op::Modify(numbers) => after.modified(&names(numbers)),
                Op::Delete(numbers) => numbers.iter().for_each(|number| after.removed(*number as u64)),
            }
        }
        let occupancy = tables.occupancy();
        let alone = CommandBatch { commands: 1, most };
        let charge = tables.charge(&TableEffect::Bundle { members: members.clone(), more: 0 }, alone).unwrap();
        prop_assert!((charge.duration_s - sum).abs() < 1e-12, "{:?}, expected {}", charge, sum);
        prop_assert_eq!((charge.full, charge.member), (full.is_some(), full));
        prop_assert_eq!(tables.occupancy(), occupancy);
        if full.is_none() {
            let longer = tables.charge(&TableEffect::Bundle { more: members.len(), members }, alone).unwrap();
            prop_assert!(longer.duration_s >= charge.duration_s);
        }
    }

    /// Commands are carried out in order, each once, one after the other, in the model's batches; barriers follow the
    /// commands before them and precede those after.
    #[test]
    fn commands_keep_their_order_and_their_batches(gaps in prop::collection::vec((0u64..1500, prop::bool::weighted(0.2)), 1..60)) {
        let mut stage: TimingStage<usize> = stage(TWO_LEVELS);
        let (mut now, mut times, mut is_barrier) = (us(0), Vec::new(), Vec::new());
        let mut released = Vec::new();
        let mut describe = |_: &usize| TableEffect::Modify { entries: vec![] };
        for (at, (gap, barrier)) in gaps.iter().enumerate() {
            // No sum of gaps equals the time-out, which two notations of times may round differently.
            now += std::time::Duration::from_nanos(*gap * 1000 + 7);
            released.extend(std::iter::from_fn(|| stage.release(now, &mut describe)));
            is_barrier.push(*barrier);
            if *barrier {
                stage.barrier(now, at);
            } else {
                times.push(now.as_secs_f64());
                stage.command(now, at);
            }
        }
        released.extend(run(&mut stage, &mut describe));
        prop_assert!(stage.is_idle());
        let order: Vec<usize> = released.iter().map(|one| one.item).collect();
        prop_assert_eq!(order, (0..gaps.len()).collect::<Vec<_>>());
        prop_assert!(released.is_sorted_by_key(|one| one.due));
        for one in &released {
            prop_assert_eq!(one.part == ReleaseKind::Barrier, is_barrier[one.item]);
        }
        let batches = profile(TWO_LEVELS).tables.unwrap().batching.batches(&times).unwrap();
        let expected: Vec<u32> = batches.iter().flat_map(|range| vec![u32::try_from(range.len()).unwrap(); range.len()]).collect();
        let records = stage.take_records();
        prop_assert_eq!(records.iter().map(|record| record.batch).collect::<Vec<_>>(), expected);
        prop_assert!(records.windows(2).all(|pair| pair[0].ended <= pair[1].began));
        prop_assert!(records.iter().all(|record| record.came <= record.began));
    }

    /// Packets of a level leave in order, none is lost or added, and equal seeds give equal times.
    #[test]
    fn packets_keep_their_order_and_runs_repeat(packets in prop::collection::vec((0u64..200, 0usize..2, 64u32..1500), 1..80)) {
        let once = || {
            let mut stage: TimingStage<usize> = stage(TWO_LEVELS);
            let (mut now, mut came) = (us(0), Vec::new());
            for (at, (gap, level, bytes)) in packets.iter().enumerate() {
                now += std::time::Duration::from_micros(*gap);
                came.push(now);
                stage.packet(now, DataPathPacket { level: *level, kind: MatchLayers::L2, bytes: *bytes, flow: 0 }, at).unwrap();
                if at % 9 == 4 {
                    stage.command(now, usize::MAX);
                }
                let _ = stage.packet_in(now, *bytes, at);
            }
            let all = run(&mut stage, &mut |_| TableEffect::Nothing);
            let lost = stage.counts().lost_control;
            (all, came, lost)
        };
        let ((all, came, lost), again) = (once(), once());
        let show = |all: &[ReleasedItem<usize>]| all.iter().map(|one| (one.part, one.item, one.due)).collect::<Vec<_>>();
        prop_assert_eq!(show(&all), show(&again.0));
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        let data: Vec<_> = all.iter().filter(|one| one.part == ReleaseKind::Data).collect();
        prop_assert_eq!(data.len(), packets.len());
        for one in data {
            prop_assert!(one.due > came[one.item]);
            let before = last.insert(packets[one.item].1, one.item);
            prop_assert!(before.is_none_or(|before| before < one.item));
        }
        let asked = all.iter().filter(|one| one.part == ReleaseKind::PacketIn).count() as u64;
        prop_assert_eq!(asked + lost, packets.len() as u64);
    }
}

#[test]
fn a_lone_packet_takes_what_the_law_says() {
    let profile = profile(TWO_LEVELS);
    let mut stage: TimingStage<()> = stage(TWO_LEVELS);
    let law = profile.forwarding[0].as_ref().unwrap();
    stage.packet(us(0), DataPathPacket { level: 0, kind: MatchLayers::L2, bytes: 128, flow: 0 }, ()).unwrap();
    let first = run(&mut stage, &mut |()| TableEffect::Nothing);
    stage.packet(us(5000), DataPathPacket { level: 0, kind: MatchLayers::L2, bytes: 1000, flow: 0 }, ()).unwrap();
    let second = run(&mut stage, &mut |()| TableEffect::Nothing);
    let law =
        |gap_s, bytes| law.forward(MatchLayers::L2, PacketConditions { gap_s, bytes, entries: 0.0 }).unwrap().delay_s;
    assert!((first[0].due.as_secs_f64() - law(1.0, 128.0)).abs() < 2e-9, "a first packet follows the longest gap");
    assert!((second[0].due.since(us(5000)).as_secs_f64() - law(0.005, 1000.0)).abs() < 2e-9);
    assert_eq!(stage.lateness().sum().count, 2);
}

#[test]
fn a_table_write_holds_packets_up() {
    let mut stage: TimingStage<u8> = stage(&TWO_LEVELS.replace("batching = { timeout = \"1ms\", most = 4 }\n", ""));
    stage.command(us(100), 0);
    let begun = stage.release(us(100), &mut |_| TableEffect::Add { priority: 1 });
    assert!(begun.is_none(), "it takes 100 us");
    stage.packet(us(110), DataPathPacket { level: 1, kind: MatchLayers::L2, bytes: 128, flow: 0 }, 1).unwrap();
    let all = run(&mut stage, &mut |_| TableEffect::Nothing);
    assert_eq!(all.iter().map(|one| (one.item, one.due)).collect::<Vec<_>>(), [(0, us(200)), (1, us(210))]);
}

#[test]
fn full_tables_refuse() {
    let mut stage: TimingStage<u64> = stage(TWO_LEVELS);
    for entry in 0..14 {
        stage.tables().unwrap().added(entry, 500);
    }
    assert_eq!(stage.tables().unwrap().occupancy(), [5, 9]);
    stage.command(us(0), 14);
    let all = run(&mut stage, &mut |_| TableEffect::Add { priority: 600 });
    assert_eq!(all[0].part, ReleaseKind::Refused);
    assert_eq!((stage.counts().refused, stage.counts().commands), (1, 0));
    stage.tables().unwrap().added(99, 1);
    assert_eq!(stage.tables().unwrap().beyond(), 1, "others are not asked");
}

#[test]
fn agents_have_a_beat_and_finite_room() {
    let mut stage: TimingStage<u32> = stage(TWO_LEVELS);
    let given: Vec<bool> = (0..5).map(|at| stage.packet_in(us(at), 100, 0).is_ok()).collect();
    assert_eq!(given, [true, true, true, false, false]);
    assert_eq!(stage.counts().lost_control, 2);
    let all = run(&mut stage, &mut |_| TableEffect::Nothing);
    assert!(all.iter().all(|one| one.due.as_nanos() % 4_000_000 == 0), "{all:?}");
}

#[test]
fn barriers_that_do_not_wait_overtake() {
    let text = TWO_LEVELS.replace(
        "[[level]]\nname = \"fast\"",
        "barrier = { waits = false, lag = \"10us\" }\n[[level]]\nname = \"fast\"",
    );
    let mut stage: TimingStage<&str> = stage(&text);
    stage.command(us(0), "command");
    stage.barrier(us(1), "barrier");
    let all = run(&mut stage, &mut |_| TableEffect::Delete { entries: vec![] });
    assert_eq!(all.iter().map(|one| one.item).collect::<Vec<_>>(), ["barrier", "command"]);
    assert_eq!(all[0].due, us(11));
}

#[test]
fn what_only_formulas_know_is_refused_and_native_has_no_stage() {
    let new = |name: &str| TimingStage::<()>::new(&Profile::find(name, Path::new("")).unwrap(), 1);
    assert!(new("native").unwrap().is_none());
    for name in ["at-x510", "two-level-tcam", "ovs-kernel", "ofsoftswitch13"] {
        assert!(new(name).unwrap().is_some(), "{name}");
    }
    let text = "name = \"p\"\ndevice = \"d\"\norigin = \"assumed\"\nsource = \"s\"\n[timing]\ncontrol = { delay = \"20ms\", capacity = 70 }\n";
    let error = TimingStage::<()>::new(&profile(text), 1).unwrap_err().to_string();
    assert!(error.starts_with("profile p: found timing.control"), "{error}");
}

#[test]
fn records_are_lines() {
    let mut stage: TimingStage<()> = stage(TWO_LEVELS);
    stage.command(us(0), ());
    run(&mut stage, &mut |()| TableEffect::Add { priority: 9 });
    let record = stage.take_records().remove(0);
    assert_eq!(record.csv(), "add,0.000000000,0.001000000,0.001100000,1,0,false,0.000000000");
    assert_eq!(weir_device::CSV_HEAD.split(',').count(), record.csv().split(',').count());
}

#[test]
fn taking_entries_out_takes_its_own_time() {
    let text = TWO_LEVELS.replace("write = \"20us\"", "write = \"20us\"\ndelete = \"3us\"");
    let mut tables = ProfiledTables::new(profile(&text).tables.unwrap());
    (0..7).for_each(|name| tables.added(name, 500));
    assert_eq!(tables.occupancy(), [5, 2]);
    let all = || (0..7).collect::<Vec<u64>>();
    let us = |work: TableEffect| tables.charge(&work, CommandBatch::ALONE).unwrap().duration_s * 1e6;
    let deleted = us(TableEffect::Delete { entries: all() });
    assert!((deleted - (30.0 + 7.0 + 5.0 * 100.0 + 2.0 * 3.0)).abs() < 1e-6, "{deleted}");
    let modified = us(TableEffect::Modify { entries: all() });
    assert!((modified - (30.0 + 7.0 + 5.0 * 100.0 + 2.0 * 20.0 + 5.0 * 2.0)).abs() < 1e-6, "{modified}");
}

/// Carries out released items like a switch. Returns all items with their times.
fn carried_out(stage: &mut TimingStage<TableEffect>) -> Vec<(ReleaseKind, u64)> {
    let (mut all, mut named) = (Vec::new(), 100);
    while stage.due() != Instant::FAR {
        let now = stage.due();
        while let Some(ReleasedItem { part, due, item }) = stage.release(now, &mut TableEffect::clone) {
            all.push((part, due.as_nanos() / 1000));
            if let (ReleaseKind::Command, TableEffect::Add { priority }) = (part, item) {
                named += 1;
                stage.tables().unwrap().added(named, priority);
            }
        }
    }
    all
}

fn with_effect(law: &str) -> String {
    format!("effect = {law}\n{TWO_LEVELS}").replace("batching = { timeout = \"1ms\", most = 4 }\n", "")
}

#[test]
fn what_a_burst_changed_takes_effect_together() {
    let mut stage: TimingStage<TableEffect> = stage(&with_effect("\"5ms\""));
    (0..3).for_each(|_| stage.command(us(0), TableEffect::Modify { entries: vec![] }));
    stage.barrier(us(0), TableEffect::Nothing);
    assert_eq!(stage.due(), us(0));
    let all = carried_out(&mut stage);
    // Searching both levels without a match takes 37 us.
    assert_eq!(
        all,
        [
            (ReleaseKind::Barrier, 111),
            (ReleaseKind::Command, 5111),
            (ReleaseKind::Command, 5111),
            (ReleaseKind::Command, 5111)
        ]
    );
    let records = stage.take_records();
    assert_eq!(records.iter().map(|one| one.ended).collect::<Vec<_>>(), [us(37), us(74), us(111)]);
    assert!(records.iter().all(|one| one.shown == us(5111)));
    assert!(records[1].csv().ends_with(",0.000037000,0.000074000,1,0,false,0.005037000"), "{}", records[1].csv());
    assert!(stage.is_idle());
}

#[test]
fn a_round_shows_what_was_done_before_it_began() {
    let mut stage: TimingStage<TableEffect> =
        stage(&with_effect("{ law = \"lattice\", values = [\"5ms\", \"1ms\"], probs = [1, 1] }"));
    let mut came = Vec::new();
    for at in 0..60 {
        came.push(us(1000 * at));
        while stage.release(us(1000 * at), &mut TableEffect::clone).is_some() {}
        stage.command(us(1000 * at), TableEffect::Modify { entries: vec![] });
    }
    carried_out(&mut stage);
    let records = stage.take_records();
    assert_eq!(records.len(), 60);
    assert!(records.is_sorted_by_key(|one| one.shown), "in their order");
    let took: Vec<u128> = records.iter().map(|one| one.shown.since(one.ended).as_micros()).collect();
    assert!(took.iter().all(|us| *us <= 5000 && *us >= 1000 && us % 1000 == 0), "{took:?}");
    let sooner = records.windows(2).filter(|two| two[0].shown == two[1].shown).count();
    assert!(sooner > 10 && took.contains(&1000), "one that is quick shows those before it: {took:?}");
}

#[test]
fn a_switch_that_is_never_done_shows_changes_all_the_same() {
    let mut stage: TimingStage<TableEffect> = stage(&with_effect("\"2ms\""));
    (0..1000).for_each(|_| stage.command(us(0), TableEffect::Modify { entries: vec![] }));
    carried_out(&mut stage);
    let longest = stage.take_records().iter().map(|one| one.shown.since(one.ended)).max();
    assert!(longest.is_some_and(|longest| longest.as_micros() <= 4040), "{longest:?}");
}

#[test]
fn changes_on_their_way_take_their_place() {
    let mut stage: TimingStage<TableEffect> = stage(&with_effect("\"5ms\""));
    (0..16).for_each(|_| stage.command(us(0), TableEffect::Add { priority: 600 }));
    stage.barrier(us(0), TableEffect::Nothing);
    let all = carried_out(&mut stage);
    let of = |part: ReleaseKind| all.iter().filter(|one| one.0 == part).count();
    assert_eq!((of(ReleaseKind::Command), of(ReleaseKind::Refused)), (14, 2), "as many as there is room for");
    let at = |part: ReleaseKind| all.iter().find(|one| one.0 == part).unwrap().1;
    assert!(
        at(ReleaseKind::Refused) <= at(ReleaseKind::Barrier)
            && at(ReleaseKind::Barrier) + 4900 < at(ReleaseKind::Command),
        "{all:?}"
    );
    assert_eq!(stage.tables().unwrap().occupancy(), [5, 9]);
    assert_eq!(stage.tables().unwrap().beyond(), 0);
    // The costs equal those without an effect's delay: each command finds those before it.
    let mut without = TimingStage::new(&profile(&with_effect("\"0s\"")), 7).unwrap().unwrap();
    (0..16).for_each(|_| without.command(us(0), TableEffect::Add { priority: 600 }));
    carried_out(&mut without);
    let ended = |stage: &mut TimingStage<TableEffect>| stage.take_records().iter().map(|one| one.ended).max();
    assert_eq!(ended(&mut stage), ended(&mut without));
}

#[test]
fn barriers_wait_for_what_may_yet_be_refused() {
    let mut stage: TimingStage<TableEffect> = stage(&with_effect("\"5ms\""));
    stage.command(us(0), TableEffect::Nothing);
    let first = stage.release(us(0), &mut TableEffect::clone).or_else(|| stage.release(us(0), &mut TableEffect::clone));
    assert!(first.is_some_and(|one| one.part == ReleaseKind::Command), "nothing is on its way: at once");
    for work in [TableEffect::Modify { entries: vec![] }, TableEffect::Nothing, TableEffect::Modify { entries: vec![] }]
    {
        stage.command(us(10), work);
    }
    stage.barrier(us(10), TableEffect::Nothing);
    let parts: Vec<ReleaseKind> = carried_out(&mut stage).into_iter().map(|one| one.0).collect();
    assert_eq!(
        parts.iter().position(|part| *part == ReleaseKind::Barrier),
        Some(3),
        "its error comes before: {parts:?}"
    );
}

#[test]
fn batches_take_effect_one_by_one() {
    let mut stage: TimingStage<TableEffect> = stage(&format!("effect = \"3ms\"\n{TWO_LEVELS}"));
    (0..8).for_each(|_| stage.command(us(0), TableEffect::Modify { entries: vec![] }));
    let times: Vec<u64> = carried_out(&mut stage).into_iter().map(|one| one.1).collect();
    assert_eq!(times, [3148, 3148, 3148, 3148, 3296, 3296, 3296, 3296]);
}

const SLOW_SPEAKER: &str = r#"
name = "speaker"
device = "A slow one"
origin = "assumed"
source = "A test"
barrier = { lag = "1ms" }
[[level]]
name = "only"
size = 30
write = "1ms"
forward = { base_l2 = "1ms" }
[timing]
packet_in = "1ms"
packet_out = "1ms"
"#;

#[test]
fn what_handing_out_takes_is_taken_off_of_what_leaves() {
    let (packets, messages) = (us(5), us(50));
    let due = |offer: &dyn Fn(&mut TimingStage<u32>)| {
        let mut stage = stage(SLOW_SPEAKER);
        for at in [us(9_000), us(10_000)] {
            stage.handed_out(at, SendDuration::Exactly(packets.since(Instant::ZERO)));
            stage.said(at, messages.since(Instant::ZERO));
        }
        offer(&mut stage);
        let due = stage.due();
        let describe = &mut |_: &u32| TableEffect::Add { priority: 1 };
        assert!(stage.release(Instant::from_nanos(due.as_nanos() - 1), describe).is_none(), "not before");
        let released = stage.release(due, describe).expect("it is due");
        (released.part, due, released.due)
    };
    let now = us(10_000);
    let passing = DataPathPacket { level: 0, kind: MatchLayers::L2, bytes: 64, flow: 0 };
    assert_eq!(due(&|stage| stage.packet(now, passing, 1).unwrap()), (ReleaseKind::Data, us(10_995), us(11_000)));
    assert_eq!(
        due(&|stage| _ = stage.packet_out(now, 64, 1).unwrap()),
        (ReleaseKind::PacketOut, us(10_995), us(11_000))
    );
    assert_eq!(due(&|stage| _ = stage.packet_in(now, 64, 1).unwrap()), (ReleaseKind::PacketIn, us(10_950), us(11_000)));
    assert_eq!(due(&|stage| stage.barrier(now, 1)), (ReleaseKind::Barrier, us(10_950), us(11_000)));
    // If one server does both jobs, packet-ins get the lead of packet-outs, not that of messages.
    let mut both: TimingStage<u32> =
        stage(&SLOW_SPEAKER.replace("packet_out = ", "agents = \"shared\"\npacket_out = "));
    for at in [us(9_000), now] {
        both.handed_out(at, SendDuration::Exactly(packets.since(Instant::ZERO)));
        both.said(at, messages.since(Instant::ZERO));
    }
    both.packet_in(now, 64, 1).unwrap();
    assert_eq!(both.due(), us(10_995));
    assert!(both.release(us(10_995), &mut |_| TableEffect::Nothing).is_some());
    assert!(both.lateness().sum().most < packets.since(Instant::ZERO), "{:?}", both.lateness().sum());
    // A command is carried out when it is due, and the barrier behind it waits for that.
    let mut stage = stage(SLOW_SPEAKER);
    [us(8_000), now].into_iter().for_each(|at| stage.said(at, messages.since(Instant::ZERO)));
    stage.command(now, 1);
    stage.barrier(now, 2);
    let all: Vec<_> = std::iter::from_fn(|| {
        let now = Some(stage.due()).filter(|due| *due != Instant::FAR)?;
        Some((
            now,
            stage.release(now, &mut |_| TableEffect::Add { priority: 1 }).map(|released| (released.part, released.due)),
        ))
    })
    .collect();
    let released: Vec<_> = all.into_iter().filter_map(|(now, released)| Some((now, released?))).collect();
    assert_eq!(
        released,
        [(us(11_000), (ReleaseKind::Command, us(11_000))), (us(11_950), (ReleaseKind::Barrier, us(12_000)))]
    );
}
