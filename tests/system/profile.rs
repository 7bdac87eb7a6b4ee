//! Tests `weir profile`, and scenarios that name a profile.
use crate::bed::{B4, Bed, run_weir, stderr, stdout, weir};
use std::process::Command;
use weir_units::{Clock as _, SystemClock};

#[test]
fn shipped_profiles_are_listed_shown_and_right() {
    let list: serde_json::Value = serde_json::from_slice(&run_weir(&["profile", "list", "--json"]).stdout).unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|profile| profile["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["native", "at-x510", "two-level-tcam", "ovs-kernel", "ofsoftswitch13"]);
    let valid = run_weir(&[&["profile", "validate"], &names[..]].concat());
    assert!(valid.status.success(), "{}", stderr(&valid));
    let text = stdout(&run_weir(&["profile", "show", "at-x510"]));
    assert!(text.contains("not calibrated") && text.contains("3.34us + 7.96ns a byte"), "{text}");
    let shown: serde_json::Value =
        serde_json::from_slice(&run_weir(&["profile", "show", "at-x510", "--json"]).stdout).unwrap();
    let buffer = shown["parameters"].as_array().unwrap().iter().find(|one| one["key"] == "timing.buffer").unwrap();
    assert_eq!((buffer["unit"].as_str(), buffer["value"].as_f64()), (Some("packets"), Some(200.0)));
}

#[test]
fn profiles_are_compared_and_drawn() {
    let alike = run_weir(&["profile", "diff", "ovs-kernel", "ovs-kernel"]);
    assert_eq!((alike.status.code(), stdout(&alike).as_str()), (Some(0), "ovs-kernel and ovs-kernel are alike\n"));
    let apart = run_weir(&["profile", "diff", "ovs-kernel", "ofsoftswitch13"]);
    assert_eq!(apart.status.code(), Some(1));
    assert!(stdout(&apart).contains("intervals apart"), "{}", stdout(&apart));
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let drawn = run_weir(&["profile", "plot", "two-level-tcam", "--out", page.to_str().unwrap()]);
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<figure>").count(), 4);
    assert!(page.contains("level1.shift") && !page.contains("NaN"));
}

#[test]
fn answers_name_what_they_cannot_use() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let head = "name = 'p'\ndevice = 'd'\norigin = 'assumed'\nsource = 's'\n";
    write(
        "p.toml",
        &format!(
            "{head}effect = '1ms'\n[timing]\nslow = '9ms'\n[[level]]\nname = 'l'\nforward = {{ base_l2 = '9us' }}\n"
        ),
    );
    let scenario = write(
        "s.toml",
        "[topology]\nkind = 'single'\nprofile = 'p.toml'\n[[traffic]]\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = 100\n\
         payload = '100B'\nduration = '200ms'\n[simulate]\nduration = '1s'\nreplications = 2\n",
    );
    let verbs = [
        (&["predict"][..], "effect, timing.slow"),
        (&["simulate"], "effect"),
        (&["simulate", "--level", "packets"], "timing.slow"),
        (&["run"], "timing.slow"),
    ];
    for (verb, keys) in verbs {
        for form in [&[][..], &["--json"], &["--csv"]] {
            let answer = stdout(&run_weir(&[verb, &[&scenario], form].concat()));
            let names = format!("no effect here: {keys}");
            let named = answer.lines().filter_map(|line| line.split_once(&names)).map(|(_, rest)| rest);
            let named: Vec<&str> = named.collect();
            assert!(
                !named.is_empty() && named.iter().all(|rest| !rest.starts_with(", ")),
                "{verb:?} {form:?}: {answer}"
            );
        }
    }
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let text = stdout(&run_weir(&["profile", "show", "two-level-tcam", "--toml"]));
    std::fs::write(&file, text.replace("value = \"500us\"", "value = \"-500us\"")).unwrap();
    let output = run_weir(&["profile", "validate", "native", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("mine.toml:") && stderr(&output).contains("found `-500us`"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).starts_with("native: 0 parameters"), "the others are checked all the same");
}

#[test]
fn formulas_and_stations_read_a_profile_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let profile = stdout(&run_weir(&["profile", "show", "at-x510", "--toml"]));
    std::fs::write(folder.path().join("mine.toml"), profile).unwrap();
    let file = folder.path().join("scenario.toml");
    let scenario = "duration = '20s'\n[controller]\nservice = '7.49ms'\n[[switch]]\nname = 's1'\nprofile = 'mine.toml'\n\
        [[host]]\nname = 'h1'\nswitch = 's1'\nip = '10.0.0.1/24'\n[[host]]\nname = 'h2'\nswitch = 's1'\nip = '10.0.0.2/24'\n\
        [[traffic]]\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = 40\npayload = '558B'\narrival = 'poisson'\nnew_flows = 0.25\n";
    std::fs::write(&file, scenario).unwrap();
    for verb in ["predict", "simulate"] {
        let output = run_weir(&[verb, file.to_str().unwrap()]);
        assert!(output.status.success(), "{verb}: {}", stderr(&output));
        assert!(stdout(&output).contains("s1"), "{}", stdout(&output));
    }
    std::fs::remove_file(folder.path().join("mine.toml")).unwrap();
    let output = run_weir(&["predict", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("scenario.toml:6: switch s1: profile: found no profile") && said.contains("at-x510"),
        "{said}"
    );
}

/// Two levels of ten entries; each flow-mod takes 10 ms, packets take 2 ms or 5 ms.
const SLOW: &str = r#"
name = "slow"
device = "A slow one"
origin = "assumed"
source = "A test"
policy = [{ attribute = "priority", evicts = "lowest" }]
[[level]]
name = "fast"
size = 10
write = "10ms"
forward = { base_l2 = "2ms" }
[[level]]
name = "slow"
size = 10
write = "10ms"
forward = { base_l2 = "5ms" }
"#;

/// Tests a switch with [`SLOW`] as its profile, driven by `ovs-ofctl`.
#[test]
fn a_switch_with_a_profile_takes_its_time_and_says_so() {
    if !weir_testing::root() || !weir_testing::programs(&["ovs-ofctl", "ping", "ip"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("slow.toml"), SLOW).unwrap();
    // The last entry has the lowest priority and finds no room.
    let flows: String =
        (0..21).map(|number| format!("priority={},ip,nw_dst=10.1.0.{number},actions=drop\n", 100 - number)).collect();
    std::fs::write(file("flows"), flows).unwrap();
    let bed = Bed::new();
    let (socket, profile) = (file("ctl.sock"), file("slow.toml"));
    let ports = ["--port", "1=af_packet:pa", "--port", "2=af_packet:pb", "--listen", "ptcp:6654"];
    let switch = bed.switch(&[&ports[..], &["--control-socket", &socket, "--profile", &profile]].concat());
    let ctl = |words: &[&str]| weir_testing::run(Command::new(weir()).args(["ctl", "--socket", &socket]).args(words));
    let ofctl = |words: &[&str]| {
        let mut command = bed.switches.command("ovs-ofctl");
        let output = command.args(["-O", "OpenFlow13"]).args(words).output().expect("ovs-ofctl starts");
        stdout(&output) + &stderr(&output)
    };
    let clock = SystemClock::start();
    let said = ofctl(&["add-flows", "tcp:127.0.0.1:6654", &file("flows")]);
    // At least twenty times 10 ms, because the barrier is answered after all flow-mods. A machine may be slower.
    assert!(clock.now().as_secs_f64() >= 0.2, "{said}");
    assert!(said.contains("OFPFMFC_TABLE_FULL"), "{said}");
    let shown: serde_json::Value =
        serde_json::from_str(&ctl(&["profile", "--commands", &file("csv"), "--json"])).unwrap();
    let entries: Vec<_> = shown["levels"].as_array().unwrap().iter().map(|level| level["entries"].as_u64()).collect();
    assert_eq!(entries, [Some(10), Some(10)], "{shown}");
    assert_eq!((shown["commands"].as_u64(), shown["refused"].as_u64()), (Some(20), Some(1)), "{shown}");
    let csv = std::fs::read_to_string(file("csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (22, "kind,came_s,start_s,delay_s,batch,moved,full,effect_s"));
    assert!(lines[1..21].iter().all(|line| line.starts_with("add,") && line.contains(",false,")), "{csv}");
    let text = ctl(&["profile"]);
    assert!(text.contains("20 carried out, 1 refused") && text.contains("packets lost: none"), "{text}");
    assert!(ctl(&["show"]).contains("profile slow: "));
    ofctl(&["del-flows", "tcp:127.0.0.1:6654"]);
    ofctl(&["add-flow", "tcp:127.0.0.1:6654", "priority=1,actions=normal"]);
    assert!(bed.reaches(B4, 20));
    let pinged = bed.a.command("ping").args(["-q", "-i", "0.05", "-c", "5", B4]).output().expect("ping starts");
    let pinged = stdout(&pinged);
    // The line `rtt min/avg/max/mdev = 4.1/...`: through the first level there and back.
    let least = pinged.split("mdev = ").nth(1).and_then(|rtt| rtt.split('/').next()?.parse::<f64>().ok());
    assert!(least.is_some_and(|least| least >= 4.0), "{pinged}");
    switch.stop();
}

/// Simulates a network with the profile packet by packet in virtual time.
#[test]
fn virtual_time_takes_a_profiles_time_packet_by_packet() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    std::fs::write(folder.path().join("slow.toml"), SLOW).unwrap();
    let scenario = |switch: &str| {
        format!(
            "duration = '1s'\n[controller]\nconnect = 'none'\n[[switch]]\nname = 's1'\nentries = ['priority=1,actions=normal']\n{switch}\n\
             [[host]]\nname = 'h1'\nswitch = 's1'\nip = '10.0.0.1/24'\n[[host]]\nname = 'h2'\nswitch = 's1'\nip = '10.0.0.2/24'\n\
             [[traffic]]\nkind = 'ping'\nfrom = 'h1'\nto = 'h2'\ncount = 10\ninterval = '20ms'\n"
        )
    };
    std::fs::write(&file, scenario("profile = 'slow.toml'")).unwrap();
    let simulate = || run_weir(&["simulate", "--level", "packets", "--json", file.to_str().unwrap()]);
    let output = simulate();
    assert!(output.status.success(), "{}", stderr(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let median = result["traffic"][0]["rtt"]["p50_us"].as_f64();
    assert!(median.is_some_and(|median| (4000.0..4200.0).contains(&median)), "{result}");
    std::fs::write(&file, scenario("[switch.timing]\ncontrol = { delay = '20ms', capacity = 70 }")).unwrap();
    let output = simulate();
    assert!(!output.status.success() && stderr(&output).contains("found timing.control"), "{}", stderr(&output));
}
