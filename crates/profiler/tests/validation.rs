//! Measures random commands and packets on switches in virtual time with known parameters.
use std::time::Duration;
use weir_profile::{MatchLayers, Profile};
use weir_profiler::validation::{
    CommandCompletion, CommandSeries, CommandSeriesParams, KnownSwitchTiming, PacketSeries, ReplayedPacket, commands,
    packets,
};
use weir_profiler::{MeasurementSettings, ProfilerError, RigDelayTable, SwitchFaults, VirtualTimeSwitch};
use weir_traffic::RandomStream;

const TWO_LEVELS: &str = r#"
name = "two"
device = "Two levels"
origin = "assumed"
source = "A test"
policy = [{ attribute = "priority", evicts = "lowest" }]
batching = { timeout = "2ms", most = 6 }
[[level]]
name = "fast"
size = 50
shift = "6us"
search = "300us"
write = "700us"
add = { several = { per_entry = "5us" } }
modify = { several = { per_entry = "4us" } }
forward = { base_l2 = "4us", base_l3 = "5us", base_l2l3 = "6us", per_byte = "8ns" }
[[level]]
name = "slow"
size = 80
write = "250us"
forward = { base_l2l3 = "60us", per_byte = "8ns" }
"#;

const ENTRIES: CommandSeriesParams =
    CommandSeriesParams { count: 400, per_second: 100.0, entries: 80, entries_most: 120 };

fn settings() -> MeasurementSettings {
    MeasurementSettings {
        finest: Duration::from_micros(10),
        grace: Duration::from_millis(2),
        ..MeasurementSettings::default()
    }
}

fn two() -> (Profile, KnownSwitchTiming) {
    let truth = Profile::parse(TWO_LEVELS, "two.toml").unwrap();
    let known = KnownSwitchTiming::of(&truth, vec![6e-6, 60e-6]);
    (truth, known)
}

#[test]
fn packets_show_when_each_command_was_carried_out() {
    let (truth, known) = two();
    let series = CommandSeries::draw(&ENTRIES, &mut RandomStream::new(4, 0, 0)).unwrap();
    let mut switch = VirtualTimeSwitch::new(&truth, 3, 1).unwrap();
    let became = commands(&mut switch, &known, settings(), &series, &mut || false).unwrap();
    // The last command deletes all entries.
    let records = switch.take_records();
    let records = &records[..records.len() - 1];
    let records = &records[records.len() - became.len()..];
    for (at, (one, record)) in became.iter().zip(records).enumerate() {
        let CommandCompletion::Done { low_s, high_s } = *one else { panic!("command {at}: {one:?}") };
        let took_s = record.ended.since(record.came).as_secs_f64();
        assert!(
            low_s <= took_s && took_s <= high_s,
            "command {at}: {took_s} is not in {low_s} to {high_s}, {record:?}"
        );
        // Packets to an entry of the second level limit the precision while other entries are watched, too.
        assert!(high_s - low_s < 0.1 * took_s + 2e-3, "command {at}: {low_s} to {high_s}");
    }
    let mean = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>() / became.len() as f64;
    let found = mean(&mut became.iter().filter_map(CommandCompletion::seconds));
    let true_s = mean(&mut records.iter().map(|record| record.ended.since(record.came).as_secs_f64()));
    assert!((found / true_s - 1.0).abs() < 0.01, "{found} is not {true_s}");
    assert_eq!(switch.entries(), 0);
}

#[test]
fn what_has_no_room_is_told() {
    let (truth, known) = two();
    let all = CommandSeriesParams { entries: 130, entries_most: 200, ..ENTRIES };
    let mut switch = VirtualTimeSwitch::new(&truth, 3, 1).unwrap();
    let series = CommandSeries::draw(&all, &mut RandomStream::new(4, 0, 0)).unwrap();
    let became = commands(&mut switch, &known, settings(), &series, &mut || false).unwrap();
    let refused = became.iter().filter(|one| **one == CommandCompletion::Refused).count();
    assert!(refused > 10 && refused < became.len() / 2, "{refused}");
    let more = CommandSeriesParams { entries: 131, ..all };
    let series = CommandSeries::draw(&more, &mut RandomStream::new(4, 0, 0)).unwrap();
    let error = commands(&mut switch, &known, settings(), &series, &mut || false).unwrap_err().to_string();
    assert!(error.contains("found 130 of 131"), "{error}");
}

#[test]
fn packets_take_what_their_level_takes() {
    let (truth, known) = two();
    let packet = |destination| ReplayedPacket { gap: Duration::from_millis(1), bytes: 128 + destination, destination };
    let trace: Vec<ReplayedPacket> = (0..200).map(|at| packet(at % 50)).collect();
    let series = PacketSeries::draw(&trace, 130, &MatchLayers::ALL, &mut RandomStream::new(2, 0, 0)).unwrap();
    let mut switch = VirtualTimeSwitch::new(&truth, 3, 1).unwrap();
    let times = packets(&mut switch, &known, &RigDelayTable::default(), settings(), &series, &mut || false).unwrap();
    assert_eq!((times.sent.len(), times.in_stops), (200, 0));
    let delays = times.delays_s;
    assert!(delays.iter().all(Option::is_some));
    let slow = delays.iter().flatten().filter(|delay| **delay > 30e-6).count();
    assert!(slow > 60 && slow < 180, "80 of 130 entries are in the second level: {slow} of 200");
    assert!(delays.iter().flatten().all(|delay| (3e-6..70e-6).contains(delay)));
}

#[test]
fn who_stops_gets_nothing_half_done() {
    let (truth, known) = two();
    let series = CommandSeries::draw(&ENTRIES, &mut RandomStream::new(4, 0, 0)).unwrap();
    let mut switch = VirtualTimeSwitch::new(&truth, 3, 1).unwrap();
    let mut asked = 0;
    let mut stop = || {
        asked += 1;
        asked > 500
    };
    let ended = commands(&mut switch, &known, settings(), &series, &mut stop);
    assert!(matches!(ended, Err(ProfilerError::Stopped)), "{ended:?}");
    let mut one = VirtualTimeSwitch::new(&truth, 1, 1).unwrap();
    let error = commands(&mut one, &known, settings(), &series, &mut || false).unwrap_err().to_string();
    assert!(error.contains("--data"), "{error}");
}

#[test]
fn a_switch_that_hangs_is_told() {
    let (truth, known) = two();
    let series = CommandSeries::draw(&ENTRIES, &mut RandomStream::new(4, 0, 0)).unwrap();
    let faults = SwitchFaults { hangs_after: Some(300), ..SwitchFaults::default() };
    let mut switch = VirtualTimeSwitch::new(&truth, 3, 1).unwrap().with(faults);
    let short = MeasurementSettings { patience: Duration::from_secs(2), ..settings() };
    let ended = commands(&mut switch, &known, short, &series, &mut || false);
    assert!(matches!(ended, Err(ProfilerError::Silent { .. })), "{ended:?}");
}
