//! Checks which profile files are read, and which errors others give.
use std::path::Path;
use weir_model::switch::device::{ResolvedFlowMod, SwitchModelState};
use weir_model::switch::forward::BASE;
use weir_profile::{
    ControlPathTiming, MatchLayers, ParameterValue, Profile, ProfileOrigin, SHIPPED, differences, figures,
};

const MEASURED: &str = r#"
name = "lab"
device = "A switch"
origin = "measured"
source = "The lab"
measured_with = "weir profile"
runs = "runs"
policy = [{ attribute = "traffic", evicts = "lowest" }]
batching = { timeout = "1ms", most = 20 }
barrier = { waits = false, lag = "2ms" }
[[level]]
name = "tcam"
size = { value = 100, interval = [99, 101], samples = 200 }
add = { single = { per_entry = { value = "1us", interval = ["0.9us", "1.1us"], r2 = 0.98, samples = 10 } }, several = { per_entry = "2us", speedup = [0.95, 0.05, 0.0] } }
shift = "4us"
search = "100us"
write = "1ms"
forward = { base_l2 = "3us", per_byte = "8ns", per_entry = "-1ns", gap_levels = ["1ms", "10ms"], per_gap_level = "2us", shortest = "1us" }
[[level]]
name = "software"
"#;

fn parse(text: &str) -> Result<Profile, String> {
    Profile::parse(text, "p.toml").map_err(|error| error.to_string())
}

/// Returns the error when one line is replaced.
fn wrong(line: &str, by: &str) -> String {
    assert!(MEASURED.contains(line), "{line}");
    parse(&MEASURED.replacen(line, by, 1)).expect_err(by)
}

#[test]
fn a_profile_has_values_and_what_they_rest_on() {
    let profile = parse(MEASURED).unwrap();
    let tables = profile.tables.as_ref().unwrap();
    assert_eq!((tables.levels[0].size, tables.levels[1].size, tables.batching.most), (Some(100), None, 20));
    assert_eq!(tables.levels[0].costs.modify.single, weir_model::switch::speedup::PerEntryCost::NONE);
    let parameters = profile.parameters();
    let of = |key: &str| parameters.iter().find(|parameter| parameter.key == key).unwrap();
    let add = of("level1.add.single.per_entry");
    assert_eq!((add.shown(), add.unit), ("1us".to_owned(), "s"));
    let evidence = add.evidence.as_ref().unwrap();
    assert_eq!((evidence.r2, evidence.samples), (Some(0.98), Some(10)));
    assert!(evidence.interval.is_some_and(|[low, high]| (low - 0.9e-6).abs() < 1e-12 && (high - 1.1e-6).abs() < 1e-12));
    assert_eq!(of("policy").value, ParameterValue::Text("evicts lowest traffic".to_owned()));
    assert_eq!(of("barrier.waits").value, ParameterValue::Text("false".to_owned()));
    let forward = profile.forwarding[0].as_ref().unwrap();
    assert!((forward.forward(MatchLayers::L3, BASE).unwrap().delay_s - 3e-6).abs() < 1e-15);
    let data = profile.timing.as_ref().unwrap().data.as_ref().unwrap();
    assert!((data.mean_s(128.0) - 3e-6).abs() < 1e-12, "the data path is that of the first table's packets");
    assert_eq!(figures(&profile).len(), 4);
}

#[test]
fn changes_have_a_time_until_they_take_effect() {
    let law = "effect = { law = \"gamma\", mean = \"4ms\", scv = 0.5, interval = [\"3.9ms\", \"4.1ms\"], r2 = 0.4, samples = 90 }";
    let with = |effect: &str| parse(&format!("{effect}\n{MEASURED}"));
    let profile = with(law).unwrap();
    assert!(profile.effect.as_ref().is_some_and(|time| (time.mean_s(0.0) - 4e-3).abs() < 1e-12));
    let again = parse(&profile.to_toml()).unwrap();
    assert_eq!((&again.effect, &again.evidence["effect"]), (&profile.effect, &profile.evidence["effect"]));
    assert_eq!(again.evidence["effect"].samples, Some(90));
    let shown = profile.parameters().into_iter().find(|one| one.key == "effect").unwrap();
    assert_eq!((shown.shown(), shown.unit), ("gamma 4ms, scv 0.5000".to_owned(), "s"));
    let found = differences(&parse(MEASURED).unwrap(), &profile);
    assert_eq!(found.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), ["effect"]);
    let found = differences(&profile, &with(&law.replace("4ms\", scv", "4.04ms\", scv")).unwrap());
    assert!((found[0].relative.unwrap() - 0.01).abs() < 1e-9 && found[0].overlap == Some(true), "{found:?}");
    assert!((profile.slowed(3.0).unwrap().effect.unwrap().mean_s(0.0) - 12e-3).abs() < 1e-12);
    assert_eq!(figures(&profile).len(), 5, "one chart more");
    assert_eq!(with("effect = \"0s\"").unwrap().effect, None, "no time is none");
    for (effect, said) in [
        ("effect = { law = \"constant\", mean = \"1ms\", per_byte = \"1ns\" }", "p.toml:1: effect: found per_byte"),
        ("effect = \"-1ms\"", "p.toml:1: "),
        (
            "effect = { law = \"constant\", mean = \"1ms\", interval = [\"2ms\", \"3ms\"] }",
            "effect: found 1ms and the interval",
        ),
    ] {
        let error = with(effect).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    let alone = "name = \"p\"\ndevice = \"d\"\norigin = \"assumed\"\nsource = \"s\"\neffect = \"1ms\"\n";
    assert!(parse(alone).unwrap().takes_time());
    let native = parse(&alone.replace("assumed", "native")).unwrap_err();
    assert!(native.contains("and effect"), "{native}");
}

#[test]
fn deleting_has_a_time_of_its_own_and_fits_say_how_far_they_are_off() {
    let write = "write = { value = \"1ms\", r2 = 0.0, residual = 0.04, samples = 9 }\ndelete = \"2ms\"";
    let profile = parse(&MEASURED.replacen("write = \"1ms\"", write, 1)).unwrap();
    let costs =
        |profile: &Profile| profile.tables.as_ref().unwrap().levels.iter().map(|level| level.costs).collect::<Vec<_>>();
    assert_eq!(costs(&profile)[0].delete_s, Some(2e-3));
    assert_eq!((costs(&profile)[1].delete_s, costs(&profile)[1].deleted_s()), (None, 0.0), "as long as writing");
    let again = parse(&profile.to_toml()).unwrap();
    assert_eq!((costs(&again), &again.evidence), (costs(&profile), &profile.evidence));
    assert_eq!(again.evidence["level1.write"].residual, Some(0.04));
    assert_eq!(profile.parameters().iter().filter(|one| one.key.ends_with(".delete")).count(), 1);
    assert_eq!(costs(&profile.slowed(2.0).unwrap())[0].delete_s, Some(4e-3));
    let error = parse(&MEASURED.replacen("r2 = 0.98", "residual = -0.1", 1)).unwrap_err();
    assert!(error.starts_with("p.toml:14: level1.add.single.per_entry: residual: found -0.1"), "{error}");
}

#[test]
fn what_timing_rests_on_is_kept_when_a_profile_is_written_out() {
    let seen = "samples = 7, note = \"seen\"";
    let batch = format!(
        "batch = {{ packets = {{ value = 8, {seen} }}, timeout = {{ value = \"20us\", {seen} }}, \
         stages = {{ value = 2, {seen} }} }}"
    );
    let priority = format!(
        "returns = {{ order = {{ value = \"priority\", {seen} }}, buffer = {{ value = 9, {seen} }}, \
         service = {{ law = \"constant\", mean = \"0ns\", per_byte = \"3ns\", {seen} }} }}"
    );
    let fifo = format!("returns = {{ value = \"fifo\", {seen} }}");
    for (returns, parameters) in [(priority, 6), (fifo, 4)] {
        let timing = format!("[timing]\ndata = \"1us\"\npacket_in = \"2us\"\n{batch}\n{returns}\n");
        let profile =
            parse(&format!("name = \"p\"\ndevice = \"d\"\norigin = \"assumed\"\nsource = \"s\"\n{timing}")).unwrap();
        assert_eq!(profile.evidence.len(), parameters, "{:?}", profile.evidence);
        let again = parse(&profile.to_toml()).unwrap();
        assert_eq!((&again.timing, &again.evidence), (&profile.timing, &profile.evidence), "{}", profile.to_toml());
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    for (line, by, said) in [
        ("write = \"1ms\"", "write = \"-1ms\"", "p.toml:17: found `-1ms`, expected a time"),
        ("write = \"1ms\"", "writ = \"1ms\"", "p.toml:17: unknown field `writ`"),
        (
            "value = 100, interval = [99, 101]",
            "value = 100, interval = [101, 102]",
            "p.toml:13: level1.size: found 100 entries and the interval 101",
        ),
        (
            "interval = [99, 101]",
            "interval = [101, 99]",
            "p.toml:13: level1.size: interval: found 101 to 99, expected the lower end first",
        ),
        ("r2 = 0.98", "r2 = 1.1", "p.toml:14: level1.add.single.per_entry: r2: found 1.1, expected at most 1"),
        ("samples = 10", "samples = 0", "p.toml:14: level1.add.single.per_entry: samples: found 0"),
        (
            "name = \"software\"",
            "name = \"software\"\nsize = 50",
            "p.toml:21: level software: size: found 50, expected 100, the size of the level before it,",
        ),
        (
            "size = { value = 100, interval = [99, 101], samples = 200 }",
            "",
            "found no `size`, expected one: only the last",
        ),
        ("speedup = [0.95, 0.05, 0.0]", "speedup = [1.1, -0.1, 0.0]", "level tcam: add.several.speedup: R: found"),
        ("speedup = [0.95, 0.05, 0.0]", "speedup = [2.0, 0.05, 0.0]", "expected 1: its cost over that in a batch"),
        (
            "[\"1ms\", \"10ms\"]",
            "[\"10ms\", \"1ms\"]",
            "p.toml:18: level tcam: forward.gap_levels: found 1ms, expected times above 0 that rise",
        ),
        ("shortest = \"1us\"", "shortest = \"5us\"", "forward.shortest: found more than a base delay"),
        ("most = 20", "most = 0", "p.toml:9: batching: most: found 0, expected 1 to 65536 commands"),
        ("measured_with = \"weir profile\"", "", "p.toml:4: origin: found measured, expected measured_with"),
        ("origin = \"measured\"", "origin = \"guessed\"", "p.toml:4: unknown variant `guessed`"),
        ("origin = \"measured\"", "origin = \"native\"", "p.toml:4: origin: found native with times"),
        (
            "[{ attribute = \"traffic\", evicts = \"lowest\" }]",
            "[{ attribute = \"used\", evicts = \"lowest\" }, { attribute = \"used\", evicts = \"highest\" }]",
            "p.toml:8: policy: found used twice",
        ),
        ("lag = \"2ms\"", "lag = { law = \"gamma\", mean = \"2ms\" }", "p.toml:10: barrier: lag: found no `scv`"),
        (
            "lag = \"2ms\"",
            "lag = { law = \"gamma\", mean = \"2ms\", scv = 1e308 }",
            "p.toml:10: barrier: lag: scv: found 1000",
        ),
        (
            "{ value = 100,",
            "{ value = 100, unit = \"entries\",",
            "p.toml:13: level1.size: found `unit`, expected value, interval",
        ),
    ] {
        let found = wrong(line, by);
        assert!(found.contains(said), "{by}:\n  {found}\nlacks\n  {said}");
    }
}

#[test]
fn what_does_nothing_is_refused() {
    let head = "name = \"p\"\ndevice = \"d\"\norigin = \"assumed\"\nsource = \"s\"\n";
    assert!(parse(head).unwrap_err().contains("found nothing that takes time"));
    let found =
        parse(&format!("{head}batching = {{ timeout = \"1ms\", most = 2 }}\n[timing]\ndata = \"1us\"\n")).unwrap_err();
    assert!(found.contains("batching: found it without [[level]]"), "{found}");
    let found = parse(&format!("{head}[timing]\nbuffer = 3\n")).unwrap_err();
    assert!(found.contains("p.toml:6: timing: found `buffer` without"), "{found}");
    let one = "policy = [{ attribute = \"used\", evicts = \"lowest\" }]\n[[level]]\nname = \"a\"\nwrite = \"1ms\"\n";
    assert!(parse(&format!("{head}{one}")).unwrap_err().contains("policy: found it with one level"));
}

#[test]
fn text_that_is_no_profile_is_refused_and_nothing_else_happens() {
    for text in
        ["", "[", "name = 1", "level = 3", "level = [1, 2]", "\u{0}", "name = { value = { value = { value = 1 } } }"]
    {
        assert!(parse(text).is_err(), "{text}");
    }
    let nested = format!("name = {}1{}", "[".repeat(60), "]".repeat(60));
    assert!(parse(&nested).is_err());
    // Any prefix of a valid file, and any file with a byte changed, is read or refused.
    for end in (0..MEASURED.len()).step_by(7) {
        let _ = parse(&MEASURED[..end]);
        let mut bytes = MEASURED.as_bytes().to_vec();
        bytes[end] = b'=';
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn shipped_profiles_are_right_and_say_that_nobody_measured_them() {
    for (name, text) in SHIPPED {
        let profile = Profile::parse(text, name).unwrap();
        assert_eq!(profile.name, name);
        assert_ne!(profile.origin, ProfileOrigin::Measured);
        assert_eq!(profile.takes_time(), name != "native");
        assert_eq!(Profile::find(name, Path::new("/nowhere")).unwrap(), profile);
    }
    let error = Profile::find("at-x511", Path::new("/nowhere")).unwrap_err().to_string();
    assert!(error.contains("at-x511") && error.contains("at-x510") && error.contains("No such file"), "{error}");
}

/// Compares the shipped profiles with the tables of the publications.
#[test]
fn shipped_profiles_agree_with_what_was_published() {
    let at = |name: &str| Profile::find(name, Path::new("")).unwrap().timing.unwrap();
    let x510 = at("at-x510");
    let data = x510.data.unwrap();
    for (bytes, us) in [(100.0, 4.11), (600.0, 8.04), (1400.0, 14.3)] {
        assert!((data.mean_s(bytes) * 1e6 - us).abs() < 0.3, "{bytes}");
    }
    let ControlPathTiming::Agents { packet_in: Some(up), packet_out: Some(down), buffer: Some(200), .. } = x510.control
    else {
        panic!("the agents' times are known")
    };
    assert!((up.mean_s(0.0) - 5.63625e-3).abs() < 1e-9 && (down.mean_s(0.0) - 5.9275e-3).abs() < 1e-9);
    for (name, bytes, us, sd) in [
        ("ovs-kernel", 64.0, 6.2, 0.53),
        ("ovs-kernel", 1500.0, 6.4, 0.65),
        ("ofsoftswitch13", 64.0, 63.4, 4.9),
        ("ofsoftswitch13", 1500.0, 64.5, 6.8),
    ] {
        let data = at(name).data.unwrap();
        let spread = data.law.as_ref().unwrap().variance().sqrt() * 1e6;
        assert!(
            (data.mean_s(bytes) * 1e6 / us - 1.0).abs() < 0.005 && (spread / sd - 1.0).abs() < 0.3,
            "{name} {bytes}"
        );
    }
}

#[test]
fn the_two_level_switch_behaves_as_described() {
    let profile = Profile::find("two-level-tcam", Path::new("")).unwrap();
    let tables = profile.tables.unwrap();
    let last = |priorities: &dyn Fn(u16) -> u16, entries: u16| {
        let mut device = SwitchModelState::new(&tables).unwrap();
        let add = |at| (f64::from(at), ResolvedFlowMod::Add { priority: priorities(at) });
        device.run(&(0..entries).map(add).collect::<Vec<_>>()).unwrap().last().unwrap().duration_s
    };
    let (same, descending, ascending) = (|_| 500, |at| 60_000 - at, |at| 501 + at);
    assert!(last(&same, 2000) < last(&descending, 2000), "several priorities cost more");
    assert!(last(&descending, 2000) * 3.0 < last(&ascending, 2000), "moving dominates");
    assert!(last(&descending, 4300) * 5.0 < last(&descending, 4200), "software takes less, whatever is there");
}

#[test]
fn differences_say_how_far_and_whether_intervals_overlap() {
    let left = parse(MEASURED).unwrap();
    assert_eq!(differences(&left, &left), []);
    let text = MEASURED
        .replace(
            "value = \"1us\", interval = [\"0.9us\", \"1.1us\"]",
            "value = \"1.5us\", interval = [\"1.4us\", \"1.6us\"]",
        )
        .replace("write = \"1ms\"", "write = \"2ms\"")
        .replace("waits = false, ", "");
    let found = differences(&left, &parse(&text).unwrap());
    let keys: Vec<&str> = found.iter().map(|difference| difference.key.as_str()).collect();
    assert_eq!(keys, ["barrier.waits", "level1.add.single.per_entry", "level1.write"]);
    assert!(found[0].right.is_none() && found[0].relative.is_none());
    assert!(found[1].relative.is_some_and(|share| (share - 0.5).abs() < 1e-9) && found[1].overlap == Some(false));
    assert_eq!((found[2].overlap, found[2].relative.map(f64::round)), (None, Some(1.0)));
}

#[test]
fn a_file_that_is_no_text_is_told_with_its_line() {
    let file = std::env::temp_dir().join(format!("weir-profile-{}.toml", std::process::id()));
    std::fs::write(&file, b"# caf\xe9\n").unwrap();
    let error = Profile::read(&file).unwrap_err().to_string();
    std::fs::remove_file(&file).unwrap();
    assert!(error.contains("cannot read the profile: line 1: found byte 0xe9"), "{error}");
}

#[test]
fn a_cache_of_flows_is_read_and_written() {
    let level = "[[level]]\nname = \"a\"\nforward = { base_l2 = \"40us\", busy = { value = \"9us\", samples = 9 } }\n";
    let head = "name = \"p\"\ndevice = \"d\"\norigin = \"assumed\"\nsource = \"s\"\neffect = \"2ms\"\n";
    let cache = "[cache]\nfirst = { value = \"45us\", interval = [\"44us\", \"46us\"] }\nidle = \"10s\"\nflows = 700\n\
        revalidate = \"2us\"\n";
    let profile = parse(&format!("{head}{cache}{level}")).unwrap();
    let found = profile.cache.unwrap();
    assert_eq!((found.first_s, found.idle_s, found.flows, found.revalidate_s), (45e-6, Some(10.0), Some(700), 2e-6));
    assert_eq!(profile.forwarding[0].as_ref().unwrap().busy_s, Some(9e-6));
    let again = parse(&profile.to_toml()).unwrap();
    assert_eq!((again.cache, &again.evidence), (profile.cache, &profile.evidence));
    let slow = profile.slowed(2.0).unwrap().cache.unwrap();
    assert_eq!((slow.first_s, slow.idle_s, slow.flows, slow.revalidate_s), (90e-6, Some(20.0), Some(700), 4e-6));
    for (wrong, said) in [
        (format!("{head}{cache}"), "found it without [[level]]"),
        (
            format!("{head}{cache}{level}[[level]]\nname = \"b\"\n").replace("\"a\"\n", "\"a\"\nsize = 9\n"),
            "first: found it beside",
        ),
        (format!("{head}{cache}{level}").replace("effect = \"2ms\"", ""), "revalidate: found it without effect"),
        (format!("{head}{cache}{level}").replace("700", "0"), "flows: found 0, expected 1 to"),
        (format!("{head}{cache}{level}").replace("\"10s\"", "\"0s\""), "idle: found 0s"),
        (format!("{head}{cache}{level}").replace("\"9us\"", "\"41us\""), "forward.busy: found more than a base delay"),
    ] {
        let error = parse(&wrong).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}
