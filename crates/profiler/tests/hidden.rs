//! Checks the profiler against switches that emulate a known profile in virtual time: the profile that it measures
//! must equal the emulated one.
use weir_openflow::model::PortNo;
use weir_profile::{Profile, differences};
use weir_profiler::{
    Measurement, MeasurementGrid, MeasurementOptions, MeasurementParts, MeasurementSettings, PriorityOrder,
    ProfileMetadata, ProfilerError, ProgressReporter, RawDataStore, SwitchFaults, VirtualTimeSwitch,
};

const TWO_LEVELS: &str = r#"
name = "two"
device = "Two levels"
origin = "assumed"
source = "A test"
policy = [{ attribute = "priority", evicts = "lowest" }]
batching = { timeout = "2ms", most = 12 }
barrier = { lag = "800us" }
[[level]]
name = "fast"
size = 97
shift = "6us"
search = "300us"
write = "700us"
add = { single = { per_entry = "3us", speedup = [0.9, 0.1, 0.0] }, several = { per_entry = "5us", speedup = [0.95, 0.05, 0.0] } }
modify = { single = { per_entry = "2us" }, several = { per_entry = "4us", speedup = [0.9, 0.1, 0.0] } }
forward = { base_l2 = "4us", base_l3 = "5us", base_l2l3 = "6us", per_byte = "8ns", gap_levels = ["3ms"], per_gap_level = "1us" }
[[level]]
name = "slow"
size = 203
write = "250us"
modify = { single = { per_entry = "1us" } }
forward = { base_l2l3 = "60us", per_byte = "8ns", per_entry = "10ns" }
[timing]
packet_in = { law = "lattice", values = ["4ms", "8ms"], probs = [1, 1] }
packet_out = { law = "gamma", mean = "2ms", scv = 0.2 }
"#;

fn grid() -> MeasurementGrid {
    MeasurementGrid {
        priorities: vec![PriorityOrder::Same, PriorityOrder::Ascending, PriorityOrder::Descending],
        entries: vec![1, 10, 40, 80, 130, 200, 250],
        batches: vec![1, 4, 8],
        deletions: vec![1, 10, 60, 150],
        runs: 3,
        entries_max: 400,
        batch_max: 64,
        spacing_ms: 10,
        messages: 60,
        packets: 20,
        bytes: vec![64, 512, 1500],
        gaps_us: vec![100, 1000, 10_000],
        idle_ms: 33_000,
        trial_ms: 10,
    }
}

fn measured(
    switch: &mut VirtualTimeSwitch,
    grid: MeasurementGrid,
    parts: MeasurementParts,
    store: &mut RawDataStore,
    stop: &mut dyn FnMut() -> bool,
) -> (Measurement, Result<(), ProfilerError>) {
    let mut tell = |_: &weir_profiler::MeasurementProgress<'_>| ();
    let settings = MeasurementSettings {
        finest: std::time::Duration::from_micros(5),
        grace: std::time::Duration::from_millis(2),
        ..MeasurementSettings::default()
    };
    let options = MeasurementOptions {
        settings,
        grid,
        parts,
        ports: Vec::new(),
        stop,
        progress: ProgressReporter::new(&mut tell),
    };
    weir_profiler::measure(switch, options, store)
}

fn about() -> ProfileMetadata {
    ProfileMetadata { name: "found".to_owned(), source: "a test".to_owned(), ..ProfileMetadata::default() }
}

#[test]
fn a_hidden_profile_is_found_again() {
    let truth = Profile::parse(TWO_LEVELS, "two.toml").unwrap();
    let mut switch = VirtualTimeSwitch::new(&truth, 3, 7).unwrap();
    let (found, ended) = measured(&mut switch, grid(), MeasurementParts::ALL, &mut RawDataStore::none(), &mut || false);
    ended.unwrap();
    let profile = found.profile(&about()).unwrap();
    let apart = differences(&truth, &profile);
    let apart = |key: &str| apart.iter().find(|one| one.key == key).and_then(|one| one.relative).unwrap_or(0.0).abs();
    let (tables, known) = (profile.tables.as_ref().unwrap(), truth.tables.as_ref().unwrap());
    assert_eq!(tables.levels.iter().map(|level| level.size).collect::<Vec<_>>(), [Some(97), Some(203)]);
    assert_eq!((&tables.policy, tables.batching.most), (&known.policy, 12));
    for (key, most) in [
        ("batching.timeout", 0.02),
        ("barrier.lag", 0.01),
        ("level1.shift", 0.03),
        ("level1.search", 0.03),
        ("level1.write", 0.03),
        ("level2.write", 0.03),
        ("level1.add.single.per_entry", 0.05),
        ("level1.add.several.per_entry", 0.05),
        ("level1.modify.single.per_entry", 0.05),
        ("level1.modify.several.per_entry", 0.05),
        // The level forwards in 60 us, which limits the packet rate and so the precision beside 1.5 ms.
        ("level2.modify.single.per_entry", 0.2),
        ("level1.forward.base_l2", 0.01),
        ("level1.forward.base_l3", 0.01),
        ("level1.forward.per_byte", 0.01),
        ("level2.forward.per_byte", 0.01),
        ("level2.forward.per_entry", 0.01),
        ("level1.forward.per_gap_level", 0.02),
        ("timing.packet_in", 0.1),
        ("timing.packet_out", 0.1),
    ] {
        assert!(apart(key) < most, "{key}: {} apart\n{}", apart(key), profile.to_toml());
    }
    let speedup = tables.levels[0].costs.add.several.speedup;
    for batch in [4, 8, 12] {
        assert!((speedup.at(batch).unwrap() / (0.95 + 0.05 * f64::from(batch)) - 1.0).abs() < 0.05);
    }
    assert!(found.notes().is_empty() && profile.effect.is_none(), "{:?}", found.notes());
    assert!(found.throughput.iter().all(|one| one.pps > 10_000.0 && one.packets > 0), "{:?}", found.throughput);
}

#[test]
fn three_levels_without_batches_and_barriers_that_lie() {
    let text = TWO_LEVELS
        .replace(
            "batching = { timeout = \"2ms\", most = 12 }\nbarrier = { lag = \"800us\" }",
            "barrier = { waits = false }",
        )
        .replace(
            "policy = [{ attribute = \"priority\", evicts = \"lowest\" }]",
            "policy = [{ attribute = \"modified\", evicts = \"lowest\" }]",
        )
        .replace("size = 97", "size = 31")
        .replace("size = 203", "size = 64")
        .replace(
            "[timing]",
            "[[level]]\nname = \"last\"\nwrite = \"100us\"\nforward = { base_l2l3 = \"700us\" }\n[timing]",
        );
    let truth = Profile::parse(&text, "three.toml").unwrap();
    let mut switch = VirtualTimeSwitch::new(&truth, 2, 3).unwrap();
    let parts = MeasurementParts { control: true, tables: true, data: false };
    let grid = MeasurementGrid {
        entries: vec![1, 10, 25, 50, 80, 120],
        batches: vec![1, 4],
        deletions: vec![1, 20, 90],
        ..grid()
    };
    let (found, ended) = measured(&mut switch, grid, parts, &mut RawDataStore::none(), &mut || false);
    ended.unwrap();
    let profile = found.profile(&about()).unwrap();
    let tables = profile.tables.as_ref().unwrap();
    assert_eq!(tables.levels.iter().map(|level| level.size).collect::<Vec<_>>(), [Some(31), Some(64), None]);
    assert_eq!((&tables.policy, tables.batching.most), (&truth.tables.as_ref().unwrap().policy, 1));
    assert!(!profile.barrier.waits, "barriers are answered at once");
    assert!(found.notes().iter().any(|note| note.starts_with("barriers: ")), "{:?}", found.notes());
    let apart = |level: usize, write: f64| (tables.levels[level].costs.write_s / write - 1.0).abs();
    assert!(apart(0, 7e-4) < 0.05 && apart(1, 2.5e-4) < 0.05 && apart(2, 1e-4) < 0.1, "{}", profile.to_toml());
}

/// Checks that levels with slow forwarding are measured. Packets that match no entry pass all levels and queue up if
/// the last one is slow; later requests must not wait behind them.
#[test]
fn a_level_that_is_far_slower_than_packets_come_is_found() {
    for slow in ["4ms", "16ms", "40ms"] {
        let text = TWO_LEVELS
            .replace("size = 97", "size = 24")
            .replace("size = 203", "size = 60")
            .replace("base_l2l3 = \"60us\"", &format!("base_l2l3 = \"{slow}\""));
        let truth = Profile::parse(&text, "slow.toml").unwrap();
        let mut switch = VirtualTimeSwitch::new(&truth, 2, 5).unwrap();
        let parts = MeasurementParts { control: false, tables: true, data: false };
        let (found, ended) = measured(&mut switch, grid(), parts, &mut RawDataStore::none(), &mut || false);
        ended.unwrap_or_else(|error| panic!("{slow}: {error}"));
        let sizes = found.sizes.as_ref().unwrap();
        assert_eq!((&sizes.sizes[..], sizes.confirmed), (&[Some(24), Some(60)][..], true), "{slow}: {sizes:?}");
        let forward = truth.forwarding[1].as_ref().unwrap().base_s[2].unwrap();
        for delay in [sizes.delays_s[1], sizes.missing_s.unwrap()] {
            assert!((delay / forward - 1.0).abs() < 0.02, "{slow}: {sizes:?}");
        }
        let (found, known) = (found.profile(&about()).unwrap().tables.unwrap(), truth.tables.unwrap());
        assert_eq!(found.policy, known.policy, "{slow}");
        // A time-out of 2 ms does not show with packets of 16 ms.
        if slow == "4ms" {
            assert_eq!(found.batching.most, known.batching.most);
            assert!((found.batching.timeout_s / known.batching.timeout_s - 1.0).abs() < 0.05, "{:?}", found.batching);
        }
    }
}

#[test]
fn a_time_out_of_nearly_a_second_is_found() {
    let text = TWO_LEVELS
        .replace("timeout = \"2ms\"", "timeout = \"900ms\"")
        .replace("size = 97", "size = 24")
        .replace("size = 203", "size = 60");
    let truth = Profile::parse(&text, "patient.toml").unwrap();
    let mut switch = VirtualTimeSwitch::new(&truth, 2, 5).unwrap();
    let parts = MeasurementParts { control: false, tables: true, data: false };
    let (found, ended) = measured(&mut switch, grid(), parts, &mut RawDataStore::none(), &mut || false);
    ended.unwrap();
    let (found, known) = (found.profile(&about()).unwrap().tables.unwrap(), truth.tables.unwrap());
    assert_eq!(found.batching.most, known.batching.most);
    assert!((found.batching.timeout_s / known.batching.timeout_s - 1.0).abs() < 0.02, "{:?}", found.batching);
}

/// Checks that costs are found although the policy of the switch considers packets: the packets that check whether
/// commands were carried out then move entries between levels.
#[test]
fn packets_that_decide_who_goes_do_not_spoil_what_commands_cost() {
    for policy in [
        "{ attribute = \"used\", evicts = \"highest\" }",
        "{ attribute = \"priority\", evicts = \"highest\" }, { attribute = \"traffic\", evicts = \"highest\" }",
    ] {
        let text = TWO_LEVELS
            .replace("{ attribute = \"priority\", evicts = \"lowest\" }", policy)
            .replace("size = 97", "size = 61")
            .replace("write = \"250us\"", "write = \"250us\"\ndelete = \"600us\"");
        let truth = Profile::parse(&text, "packets.toml").unwrap();
        let mut switch = VirtualTimeSwitch::new(&truth, 3, 9).unwrap();
        let parts = MeasurementParts { control: true, tables: true, data: false };
        let grid = MeasurementGrid { entries: vec![1, 10, 40, 80, 130], ..grid() };
        let (found, ended) = measured(&mut switch, grid, parts, &mut RawDataStore::none(), &mut || false);
        ended.unwrap();
        let profile = found.profile(&about()).unwrap();
        let (tables, known) = (profile.tables.as_ref().unwrap(), truth.tables.as_ref().unwrap());
        assert_eq!(tables.policy, known.policy);
        for (found, truth) in tables.levels.iter().zip(&known.levels) {
            let near = |found: f64, truth: f64| (found / truth - 1.0).abs() < 0.03;
            assert!(near(found.costs.write_s, truth.costs.write_s), "{policy}\n{}", profile.to_toml());
            assert!(near(found.costs.deleted_s(), truth.costs.deleted_s()), "{policy}\n{}", profile.to_toml());
        }
        assert_eq!(tables.levels[0].costs.delete_s, None, "as long as writing: not said twice");
        assert!(profile.evidence["level2.delete"].residual.is_some_and(|share| share < 0.02));
    }
}

#[test]
fn what_was_measured_is_kept_and_gone_on_with() {
    let truth = Profile::parse(TWO_LEVELS, "two.toml").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let grid = MeasurementGrid {
        entries: vec![1, 40],
        batches: vec![1, 4],
        deletions: vec![1, 10],
        priorities: vec![PriorityOrder::Same],
        ..grid()
    };
    let parts = MeasurementParts { control: true, tables: false, data: false };
    let mut store = RawDataStore::folder(folder.path(), &grid).unwrap();
    // The channel ends somewhere in the grid.
    let mut counted = VirtualTimeSwitch::new(&truth, 2, 7).unwrap();
    measured(&mut counted, grid.clone(), parts, &mut RawDataStore::none(), &mut || false).1.unwrap();
    let faults = SwitchFaults { ends_after: Some(counted.messages() - 100), ..SwitchFaults::default() };
    let mut ending = VirtualTimeSwitch::new(&truth, 2, 7).unwrap().with(faults);
    let (first, ended) = measured(&mut ending, grid.clone(), parts, &mut store, &mut || false);
    assert!(matches!(ended, Err(ProfilerError::Ended { .. })), "{ended:?}");
    assert!(!first.timed.is_empty());
    assert!(first.profile(&about()).is_ok(), "what there is makes a profile");
    drop(store);
    let mut store = RawDataStore::folder(folder.path(), &grid).unwrap();
    let mut whole = VirtualTimeSwitch::new(&truth, 2, 8).unwrap();
    let (second, ended) = measured(&mut whole, grid.clone(), parts, &mut store, &mut || false);
    ended.unwrap();
    assert_eq!(second.timed[..first.timed.len()], first.timed[..], "what was there is not measured again");
    assert!(second.timed.len() > first.timed.len());
    let other = MeasurementGrid { runs: 9, ..grid };
    let error = RawDataStore::folder(folder.path(), &other).unwrap_err().to_string();
    assert!(error.contains("another grid"), "{error}");
}

#[test]
fn switches_that_hang_and_people_who_stop_are_told_apart() {
    let truth = Profile::parse(TWO_LEVELS, "two.toml").unwrap();
    let mut hanging = VirtualTimeSwitch::new(&truth, 2, 7)
        .unwrap()
        .with(SwitchFaults { hangs_after: Some(500), ..SwitchFaults::default() });
    let (_, ended) = measured(&mut hanging, grid(), MeasurementParts::ALL, &mut RawDataStore::none(), &mut || false);
    let said = ended.unwrap_err().to_string();
    assert!(said.starts_with("no ") && said.contains("--patience"), "{said}");
    let mut asked = 0;
    let mut stop = || {
        asked += 1;
        asked > 40
    };
    let mut switch = VirtualTimeSwitch::new(&truth, 2, 7).unwrap();
    let (_, ended) = measured(&mut switch, grid(), MeasurementParts::ALL, &mut RawDataStore::none(), &mut stop);
    assert!(matches!(ended, Err(ProfilerError::Stopped)), "{ended:?}");
}

#[test]
fn interfaces_are_told_by_packets() {
    let truth = Profile::parse(TWO_LEVELS, "two.toml").unwrap();
    let crossed = || {
        VirtualTimeSwitch::new(&truth, 2, 7).unwrap().with(SwitchFaults { crossed: true, ..SwitchFaults::default() })
    };
    let parts = MeasurementParts { control: false, tables: false, data: false };
    let grid = MeasurementGrid { entries_max: 32, ..grid() };
    let (found, ended) = measured(&mut crossed(), grid.clone(), parts, &mut RawDataStore::none(), &mut || false);
    ended.unwrap();
    assert_eq!(found.ports, [PortNo(2), PortNo(1)], "the other way round");
    let mut tell = |_: &weir_profiler::MeasurementProgress<'_>| ();
    let mut stop = || false;
    let options = MeasurementOptions {
        settings: MeasurementSettings::default(),
        grid: grid.clone(),
        parts,
        ports: vec![PortNo(1), PortNo(2)],
        stop: &mut stop,
        progress: ProgressReporter::new(&mut tell),
    };
    let error = weir_profiler::measure(&mut crossed(), options, &mut RawDataStore::none()).1.unwrap_err().to_string();
    assert_eq!(
        error,
        "port behind interface 1 of --data: found 2, expected 1 (--ports): are two cables the wrong way round?"
    );
    let mut one = VirtualTimeSwitch::new(&truth, 1, 7).unwrap();
    let error = measured(&mut one, grid, parts, &mut RawDataStore::none(), &mut || false).1.unwrap_err().to_string();
    assert!(error.starts_with("interfaces (--data): found 1"), "{error}");
}

/// Checks that the time until changes take effect is distinguished from the commands' costs. The changes of a burst
/// take effect together, some time after they were carried out.
#[test]
fn changes_that_take_effect_later_are_told_from_what_commands_cost() {
    for (effect, batching) in
        [("\"3ms\"", true), ("\"3ms\"", false), ("{ law = \"uniform\", from = \"2.8ms\", to = \"3.2ms\" }", true)]
    {
        let text = format!("effect = {effect}\n{TWO_LEVELS}");
        let text = if batching { text } else { text.replace("batching = { timeout = \"2ms\", most = 12 }\n", "") };
        let truth = Profile::parse(&text, "later.toml").unwrap();
        let mut switch = VirtualTimeSwitch::new(&truth, 3, 7).unwrap();
        let parts = MeasurementParts { control: true, tables: true, data: false };
        let (found, ended) = measured(&mut switch, grid(), parts, &mut RawDataStore::none(), &mut || false);
        ended.unwrap();
        let profile = found.profile(&about()).unwrap();
        let (tables, known) = (profile.tables.as_ref().unwrap(), truth.tables.as_ref().unwrap());
        assert_eq!(tables.levels.iter().map(|level| level.size).collect::<Vec<_>>(), [Some(97), Some(203)]);
        assert_eq!((&tables.policy, tables.batching.most), (&known.policy, known.batching.most), "{effect}");
        let is_constant = effect.starts_with('"');
        let apart = differences(&truth, &profile);
        for (key, most) in [
            ("effect", 0.03),
            ("level1.write", 0.03),
            ("level1.shift", 0.05),
            ("level2.write", 0.03),
            ("barrier.lag", 0.1),
        ] {
            let apart = apart.iter().find(|one| one.key == key).and_then(|one| one.relative).unwrap_or(0.0).abs();
            let most = if is_constant { most } else { 3.0 * most };
            assert!(
                apart < most,
                "{effect} {batching} {key}: {apart}\n{}\n{}",
                profile.to_toml(),
                found.summary().text()
            );
        }
        let law = profile.effect.as_ref().and_then(|effect| effect.law.as_ref()).unwrap();
        let scv = truth.effect.as_ref().and_then(|effect| effect.law.as_ref()).unwrap().scv();
        assert!((law.scv() - scv).abs() < 0.02, "{law:?}");
        let summary = found.summary();
        assert!(summary.effect.is_some_and(|effect| effect.criterion > 100.0) && summary.text().contains("effect "));
        assert!(
            profile.barrier.waits && summary.barrier_lag_s.is_some_and(|lag| lag < 0.0),
            "answered before packets show"
        );
    }
}

/// Measures a switch like Open vSwitch: the costs of commands are small compared with the random time until they take
/// effect.
#[test]
fn an_effect_that_chance_rules_is_found_without_batches_that_are_none() {
    let text = "name = \"soft\"\ndevice = \"In software\"\norigin = \"assumed\"\nsource = \"A test\"\n\
        effect = { law = \"gamma\", mean = \"4ms\", scv = 0.8 }\nbarrier = { lag = \"300us\" }\n\
        [[level]]\nname = \"table\"\nwrite = \"60us\"\nforward = { base_l2l3 = \"4us\" }\n";
    let truth = Profile::parse(text, "soft.toml").unwrap();
    let grid = MeasurementGrid { runs: 10, entries: vec![1, 40, 200], batches: vec![1, 5, 20, 50], ..grid() };
    let parts = MeasurementParts { control: true, tables: false, data: false };
    let find = |truth: &Profile, seed| {
        let mut switch = VirtualTimeSwitch::new(truth, 3, seed).unwrap();
        let (found, ended) = measured(&mut switch, grid.clone(), parts, &mut RawDataStore::none(), &mut || false);
        ended.unwrap();
        (found.profile(&about()).unwrap(), found)
    };
    let (first, found) = find(&truth, 5);
    let said = found.summary().text();
    assert_eq!(first.tables.as_ref().unwrap().batching.most, 1, "{said}");
    assert!(found.notes().iter().all(|note| !note.starts_with("commands: half")), "chance is in the law: {said}");
    let law = |profile: &Profile| profile.effect.clone().and_then(|effect| effect.law).unwrap();
    assert!((law(&first).mean() / 4e-3 - 1.0).abs() < 0.08 && (law(&first).scv() - 0.8).abs() < 0.2, "{said}");
    assert!((first.tables.as_ref().unwrap().levels[0].costs.write_s / 60e-6 - 1.0).abs() < 0.2, "{}", first.to_toml());
    let evidence = &first.evidence["effect"];
    assert!(
        evidence.r2.is_some_and(|r2| r2 > 0.97) && evidence.samples.is_some_and(|samples| samples > 500),
        "{evidence:?}"
    );
    // Measuring the found profile gives the same profile, within the precision of that many bursts.
    let (forwarding, timing) = (truth.forwarding.clone(), truth.timing.clone());
    let (second, _) = find(&Profile { forwarding, timing, ..first.clone() }, 8);
    let apart = differences(&first, &second).into_iter().find(|one| one.key == "effect");
    assert!(apart.as_ref().is_none_or(|apart| apart.overlap == Some(true)), "{apart:?}\n{}", second.to_toml());
}

/// Checks that barriers that do not wait for commands are recognised even if changes take effect later, so that all
/// barrier replies precede the packets.
#[test]
fn barriers_that_lie_are_told_where_changes_take_effect_later() {
    let text = format!("effect = \"3ms\"\n{TWO_LEVELS}").replace("lag = \"800us\"", "waits = false");
    let truth = Profile::parse(&text, "lies.toml").unwrap();
    let mut switch = VirtualTimeSwitch::new(&truth, 3, 7).unwrap();
    let parts = MeasurementParts { control: true, tables: false, data: false };
    let (found, ended) = measured(&mut switch, grid(), parts, &mut RawDataStore::none(), &mut || false);
    ended.unwrap();
    let profile = found.profile(&about()).unwrap();
    assert!(!profile.barrier.waits, "{}", profile.to_toml());
    assert!(
        (profile.effect.as_ref().unwrap().mean_s(0.0) / 3e-3 - 1.0).abs() < 0.03,
        "{}\n{}",
        profile.to_toml(),
        found.summary().text()
    );
}

/// Only a file that is not there means that nothing is stored.
#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = RawDataStore::folder(folder.path(), &grid()).unwrap();
    assert_eq!(store.rig().unwrap(), None);
    std::fs::create_dir(folder.path().join("rig.json")).unwrap();
    let error = store.rig().unwrap_err().to_string();
    assert!(error.contains("rig.json") && error.contains("reading it"), "{error}");
}

/// Measures a switch like Open vSwitch: decisions about flows are cached, changes have to pass the cache, and packets
/// behind others take less time.
#[test]
fn a_cache_of_flows_is_found() {
    let text = "name = \"cached\"\ndevice = \"Caches\"\norigin = \"assumed\"\nsource = \"A test\"\n\
        effect = { law = \"gamma\", mean = \"500us\", scv = 0.2 }\nbarrier = { lag = \"300us\" }\n\
        [cache]\nfirst = \"47us\"\nidle = \"10.2s\"\nrevalidate = \"2us\"\n\
        [[level]]\nname = \"table\"\nwrite = \"9us\"\n\
        forward = { base_l2 = \"40us\", base_l3 = \"40us\", base_l2l3 = \"42us\", busy = \"12us\", \
        gap_levels = [\"800us\", \"5ms\"], per_gap_level = \"50us\" }\n";
    let grid = MeasurementGrid { runs: 10, entries: vec![1, 40, 200, 1000], entries_max: 1500, ..grid() };
    for (flows, parts) in
        [("", MeasurementParts::ALL), ("flows = 700\n", MeasurementParts { data: false, ..MeasurementParts::ALL })]
    {
        let text = text.replace("[cache]\n", &format!("[cache]\n{flows}"));
        let truth = Profile::parse(&text, "cached.toml").unwrap();
        let mut switch = VirtualTimeSwitch::new(&truth, 3, 7).unwrap();
        let (found, ended) = measured(&mut switch, grid.clone(), parts, &mut RawDataStore::none(), &mut || false);
        ended.unwrap();
        let profile = found.profile(&about()).unwrap();
        let said = format!("{}\n{}", profile.to_toml(), found.summary().text());
        let (known, cache) = (truth.cache.unwrap(), profile.cache.unwrap());
        let near =
            |found: f64, truth: f64, within: f64| assert!((found / truth - 1.0).abs() < within, "{found}\n{said}");
        near(cache.idle_s.unwrap(), known.idle_s.unwrap(), 0.03);
        near(cache.revalidate_s, known.revalidate_s, 0.1);
        near(profile.effect.as_ref().unwrap().mean_s(0.0), 500e-6, 0.1);
        assert_eq!(cache.flows, known.flows, "{said}");
        if parts.data {
            near(cache.first_s, known.first_s, 0.02);
            near(profile.forwarding[0].as_ref().unwrap().busy_s.unwrap(), 12e-6, 0.02);
        } else {
            assert_eq!(cache.first_s, 0.0, "no part of forwarding is known");
        }
    }
}
