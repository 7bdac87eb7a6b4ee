//! Tests `[topology]`: networks by rule and from files become ordinary scenarios, and errors have their line.
use std::collections::HashSet;
use std::time::Duration;
use weir_scenario::{JitterLaw, LinkLoss, Scenario, expand_topology};
use weir_topology::TopologyMeasures;
use weir_units::Bps;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "t.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn error(text: &str) -> String {
    Scenario::parse(text, "t.toml").expect_err("it is wrong").to_string()
}

/// Returns the numbers of switches, hosts and links, and the diameter.
fn size(scenario: &Scenario) -> (usize, usize, usize, usize) {
    let measures = TopologyMeasures::of(&scenario.topology());
    assert_eq!(measures.parts, 1);
    (scenario.switches.len(), scenario.hosts.len(), scenario.links.len(), measures.diameter)
}

#[test]
fn each_kind_becomes_switches_hosts_and_links() {
    for (topology, expected) in [
        ("kind = 'single'\nhosts = 5", (1, 5, 0, 0)),
        ("kind = 'linear'\nswitches = 4", (4, 4, 3, 3)),
        ("kind = 'linear'\nswitches = 4\nhosts = 2", (4, 8, 3, 3)),
        ("kind = 'tree'\ndepth = 2\nfanout = 3", (4, 9, 3, 2)),
        ("kind = 'ring'\nswitches = 6\nhosts = 1", (6, 6, 6, 3)),
        ("kind = 'fat-tree'\nk = 4", (20, 16, 32, 4)),
        ("kind = 'fat-tree'\nk = 4\nhosts = 0", (20, 0, 32, 4)),
    ] {
        assert_eq!(size(&parse(&format!("[topology]\n{topology}"))), expected, "{topology}");
    }
}

#[test]
fn what_the_topology_says_goes_for_all_and_tables_override_and_add() {
    let scenario = parse(
        "[topology]\nkind = 'linear'\nswitches = 3\nrate = '10Mbit/s'\ndelay = '2ms'\njitter = '1ms'\nloss = '1%'\nloss_burst = 3\n\
         host_rate = '1Mbit/s'\nip = '192.168.7.0/24'\nfail_mode = 'standalone'\n[topology.timing]\ndata = '9us'\n\
         [[switch]]\nname = 's2'\ntables = 3\nfail_mode = 'secure'\n[switch.timing]\ndata = '1us'\n[[switch]]\nname = 'extra'\n\
         [[host]]\nname = 'h3'\nrate = '5Mbit/s'\n[[host]]\nname = 'other'\nswitch = 'extra'\nip = '192.168.7.200/24'\n\
         [[link]]\nends = ['s3', 's2']\ndelay = '7ms'\n[[link]]\nends = ['s3', 'extra']\n",
    );
    let names: Vec<&str> = scenario.switches.iter().map(|switch| switch.name.as_str()).collect();
    assert_eq!(names, ["s1", "s2", "s3", "extra"]);
    let data = |at: usize| {
        scenario.switches[at].timing.as_ref().and_then(|timing| timing.data.as_ref()).map(|data| data.mean_s(0.0))
    };
    assert_eq!(
        [0, 1, 2, 3].map(data).map(|mean| mean.map(|s| (s * 1e9).round())),
        [Some(9e3), Some(1e3), Some(9e3), None]
    );
    assert_eq!(scenario.switches[1].tables, 3);
    let modes: Vec<String> = scenario.switches.iter().map(|switch| format!("{:?}", switch.fail_mode)).collect();
    assert_eq!(modes, ["Standalone", "Secure", "Standalone", "Secure"]);
    let hosts: Vec<(&str, String, Option<Bps>)> =
        scenario.hosts.iter().map(|host| (host.name.as_str(), host.ip[0].to_string(), host.link.rate)).collect();
    let mbit = |rate: u64| Some(Bps(rate * 1_000_000));
    assert_eq!(
        hosts,
        [
            ("h1", "192.168.7.1/24".to_owned(), mbit(1)),
            ("h2", "192.168.7.2/24".to_owned(), mbit(1)),
            ("h3", "192.168.7.3/24".to_owned(), mbit(5)),
            ("other", "192.168.7.200/24".to_owned(), None),
        ]
    );
    let spec = scenario.links[0].spec;
    assert_eq!((spec.rate, spec.delay), (mbit(10), Duration::from_millis(2)));
    let jitter = spec.jitter.unwrap();
    assert_eq!((jitter.size, jitter.law, jitter.reorder), (Duration::from_millis(1), JitterLaw::Uniform, false));
    assert_eq!(spec.loss, Some(LinkLoss { share: 0.01, burst: Some(3.0) }));
    assert_eq!((scenario.links[1].spec.delay, scenario.links[1].spec.rate), (Duration::from_millis(7), mbit(10)));
    assert_eq!((scenario.links.len(), scenario.links[2].spec.rate), (3, None));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, problem) in [
        ("[topology]\nk = 4", "t.toml:1: topology: expected either `kind` or `file`: kind = \"single\", "),
        ("[topology]\nkind = 'ring'\nswitches = 2", "t.toml:1: topology: switches: found 2, expected 3 to 10000"),
        ("[topology]\nkind = 'ring'", "t.toml:1: topology: kind = \"ring\": found no `switches`, expected it"),
        (
            "[topology]\nkind = 'ring'\nswitches = 5\nk = 4",
            "t.toml:4: topology: found `k` with kind = \"ring\", expected of such numbers: switches",
        ),
        (
            "[topology]\nkind = 'mesh'",
            "t.toml:2: unknown variant `mesh`, expected one of `single`, `linear`, `tree`, `ring`, `fat-tree`",
        ),
        (
            "[topology]\nkind = 'linear'\nswitches = 1001",
            "t.toml:1: topology: found 1001 switches, expected at most 1000",
        ),
        ("[topology]\nkind = 'single'\nhosts = 1001", "t.toml:1: topology: found 1001 hosts, expected at most 1000"),
        (
            "[topology]\nkind = 'single'\nhosts = 7\nip = '10.0.0.0/29'",
            "t.toml:1: topology: ip: found 10.0.0.0/29, expected room for 7 addresses",
        ),
        (
            "[topology]\nfile = 'none.graphml'\nrate = '1Mbit/s'",
            "t.toml:2: topology: none.graphml: cannot read the topology: No such file",
        ),
        ("[topology]\nkind = 'single'\nfile = 'a.json'", "t.toml:1: topology: expected either `kind` or `file`"),
        (
            "[topology]\nkind = 'linear'\nswitches = 2\njitter = '1ms'",
            "t.toml:4: jitter: found 1ms, expected at most 0ns, the delay",
        ),
        (
            "[topology]\nkind = 'linear'\nswitches = 2\nloss = '101%'",
            "t.toml:4: loss: found 1.01, expected a share from 0 to 1",
        ),
        (
            "[topology]\nkind = 'linear'\nswitches = 2\nloss = '1'",
            "t.toml:4: found `1`, expected a share such as 0.015 or `1.5%`",
        ),
        (
            "[topology]\nkind = 'linear'\nswitches = 2\n[[host]]\nname = 'h9'",
            "t.toml:5: host h9: found no `switch`, expected the name of its switch",
        ),
        (
            "[topology]\nkind = 'linear'\nswitches = 2\n[[link]]\nends = ['s1', 's9']",
            "t.toml:5: link: ends: found `s9`, expected one of s1, s2",
        ),
    ] {
        let found = error(text);
        assert!(found.starts_with(problem), "{text}\n{found}\n{problem}");
    }
}

/// Makes a folder with a topology's file, and parses a scenario that names the file.
fn with_file(name: &str, content: &str, settings: &str) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    let file = folder.path().join("t.toml").display().to_string();
    let text = format!("[topology]\nfile = '{name}'\n{settings}");
    Scenario::parse(&text, &file)
        .map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

const THREE: &str = r#"{"nodes": [{"id": 1, "name": "New York", "pos": [-74.0, 40.7]}, {"id": 2, "name": "Göteborg", "pos": [11.97, 57.7]}, {"id": 3}],
    "edges": [{"source": 1, "target": 2}, {"source": 2, "target": 1, "dist": 10000.0}, {"source": 2, "target": 3}]}"#;

#[test]
fn files_give_names_delays_and_what_the_scenario_has_to_say() {
    let found = with_file("x.json", THREE, "rate = '1Gbit/s'\ndelay = '3ms'\nduplicates = 'merge'").unwrap();
    let names: Vec<&str> = found.switches.iter().map(|switch| switch.name.as_str()).collect();
    assert_eq!(names, ["new-york", "goeteborg", "3"]);
    let hosts: Vec<&str> = found.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(hosts, ["h-new-york", "h-goeteborg", "h-3"]);
    assert!(found.links[0].spec.delay.abs_diff(Duration::from_micros(29_600)) < Duration::from_millis(1));
    assert_eq!((found.links.len(), found.links[1].spec.delay), (2, Duration::from_millis(3)));
    let more = with_file("x.json", THREE, "rate = '1Gbit/s'\ndelay = '3ms'\nduplicates = 'keep'\nhosts = 12").unwrap();
    assert_eq!((more.links.len(), more.hosts.len(), more.hosts[12].name.as_str()), (3, 36, "h1-goeteborg"));
}

#[test]
fn files_that_lack_something_are_refused() {
    let lonely = r#"{"nodes": [{"id": 1}, {"id": 2}, {"id": 3}], "edges": [{"source": 1, "target": 2}]}"#;
    for (content, settings, problem) in [
        (
            THREE,
            "rate = '1Gbit/s'\ndelay = '1ms'",
            "t.toml:2: topology: x.json: link Göteborg - New York: found it beside another one, expected one: duplicates",
        ),
        (
            THREE,
            "duplicates = 'merge'\nrate = '1Gbit/s'",
            "t.toml:2: topology: x.json: link Göteborg - 3: found no delay, expected `delay` in [topology]",
        ),
        (
            THREE,
            "duplicates = 'merge'\ndelay = '1ms'",
            "t.toml:2: topology: x.json: link New York - Göteborg: found no rate, expected `rate`",
        ),
        (
            lonely,
            "rate = '1Gbit/s'\ndelay = '1ms'",
            "t.toml:2: topology: x.json: found 2 parts that nothing joins, the largest of 2 of 3 nodes",
        ),
        ("{", "", "t.toml:2: topology: x.json:1: found no topology as JSON"),
    ] {
        let found = with_file("x.json", content, settings).unwrap_err();
        assert!(found.starts_with(problem), "{found}\n{problem}");
    }
    let settings = "rate = '1Gbit/s'\ndelay = '1ms'\nunconnected = ";
    assert_eq!(with_file("x.json", lonely, &format!("{settings}'largest'")).unwrap().switches.len(), 2);
    assert_eq!(with_file("x.json", lonely, &format!("{settings}'keep'")).unwrap().switches.len(), 3);
}

#[test]
fn real_networks_become_scenarios() {
    let Some(folder) = weir_testing::shared("data/external/topologies") else { return };
    for (file, switches) in [
        ("zoo-graphml/Abilene.graphml", 11),
        ("zoo-graphml/Garr201201.graphml", 61),
        ("zoo-graphml/Kdl.graphml", 754),
        ("topohub/sndlib/germany50.json", 50),
        ("topohub/topozoo/Garr201109.json", 47),
        ("topohub/backbone/africa.json", 403),
        ("rocketfuel/3257.latencies.intra", 161),
    ] {
        let path = folder.join(file);
        let text = format!(
            "[topology]\nfile = '{}'\nrate = '1Gbit/s'\ndelay = '1ms'\nduplicates = 'merge'\nunconnected = 'largest'",
            path.display()
        );
        let found = parse(&text);
        assert_eq!(found.switches.len(), switches, "{file}");
        assert_eq!(found.hosts.len(), switches);
        let names: HashSet<&str> = found.switches.iter().map(|switch| switch.name.as_str()).collect();
        assert_eq!(names.len(), switches);
        let tree = found.used_links().iter().filter(|used| **used).count();
        assert_eq!(tree, switches - 1);
    }
    let large = format!("[topology]\nfile = '{}'", folder.join("topohub/backbone/eurasia.json").display());
    assert!(error(&large).contains("switches, expected at most 1000") || error(&large).contains("found no rate"));
}

#[test]
fn written_out_it_is_the_same_network() {
    let text = "name = 'x'\nseed = 7\n[topology]\nkind = 'ring'\nswitches = 4\nhosts = 2\nrate = '9953280kbit/s'\ndelay = '2ms'\njitter = '500us'\n\
                jitter_law = 'pareto'\nreorder = true\nloss = 0.01\n[topology.timing]\ndata = '9us'\n\
                [[switch]]\nname = 's2'\ntables = 3\n[[switch]]\nname = 'own'\n[[link]]\nends = ['s2', 'own']\n[[link]]\nends = ['s2', 's1']\ndelay = '9ms'\n\
                [[host]]\nname = 'h2'\nmac = '02:00:00:00:99:99'\n[[traffic]]\nkind = 'ping'\nfrom = 'h1'\nto = 'h8'\n";
    let written = expand_topology(text, "t.toml").unwrap();
    assert!(!written.contains("[topology"), "{written}");
    assert_eq!(parse(text), parse(&written), "{written}");
    let profiled = expand_topology(
        "[topology]\nkind = 'linear'\nswitches = 2\nprofile = 'at-x510'\n[[switch]]\nname = 'z'",
        "t.toml",
    )
    .unwrap();
    assert_eq!(profiled.matches("profile = \"at-x510\"").count(), 2, "{profiled}");
}

#[test]
fn under_the_own_controller_packets_keep_to_a_tree() {
    let ring = |control: &str| parse(&format!("{control}[topology]\nkind = 'ring'\nswitches = 4\n")).used_links();
    assert_eq!(ring("").iter().filter(|used| **used).count(), 3);
    assert!(ring("[controller]\nconnect = 'tcp:127.0.0.1:6653'\n").iter().all(|used| *used));
    let fat = parse("[topology]\nkind = 'fat-tree'\nk = 4\n");
    assert_eq!(fat.used_links().iter().filter(|used| **used).count(), 19);
}

/// A topology file may name datapath ids and ports; the scenario's own come first.
#[test]
fn datapath_ids_and_ports_of_a_file_are_used() {
    let content = r#"{"nodes": [{"id": 1, "name": "a", "dpid": "00000000000000ff"}, {"id": 2, "name": "b", "dpid": 300}],
        "edges": [{"source": 1, "target": 2, "ports": [7, 9], "rate_bps": 1000000007, "delay_ns": 1234567}]}"#;
    let ports = |scenario: &Scenario| scenario.links[0].ends.map(|end| (end.switch, end.port));
    let found = with_file("x.json", content, "").unwrap();
    assert_eq!(found.switches.iter().map(|switch| switch.dpid).collect::<Vec<_>>(), [0xff, 300]);
    assert_eq!(ports(&found), [(0, 7), (1, 9)]);
    let link = &found.links[0].spec;
    assert_eq!((link.rate, link.delay), (Some(Bps(1_000_000_007)), Duration::from_nanos(1_234_567)));
    assert!(found.hosts.iter().all(|host| host.port == 1), "the lowest that are free");
    let nodes = found.topology().nodes;
    assert_eq!((nodes[0].dpid, found.topology().links[0].ports), (Some(0xff), Some([7, 9])));

    let folder = tempfile::tempdir().unwrap();
    let expanded = |content: &str| {
        std::fs::write(folder.path().join("x.json"), content).unwrap();
        let file = folder.path().join("t.toml").display().to_string();
        expand_topology("[topology]\nfile = 'x.json'", &file).map_err(|error| error.to_string())
    };
    let written = parse(&expanded(content).unwrap());
    assert_eq!((written.switches[0].dpid, written.switches[1].dpid, ports(&written)), (0xff, 300, ports(&found)));
    let error = expanded(&content.replace("00000000000000ff", "ff00000000000000")).unwrap_err();
    assert!(error.contains("switch a: found dpid 0xff00000000000000, expected at most 0x7fff"), "{error}");

    let turned = with_file("x.json", content, "[[link]]\nends = ['b', 'a']\nloss = '1%'").unwrap();
    assert_eq!(ports(&turned), [(1, 9), (0, 7)], "each end has its port");
    let own = "[[switch]]\nname = 'b'\ndpid = 5\n[[link]]\nends = ['a', 'b']\nports = [3, 4]";
    let own = with_file("x.json", content, own).unwrap();
    assert_eq!((own.switches[1].dpid, ports(&own)), (5, [(0, 3), (1, 4)]));

    for (from, to, problem) in [
        ("300", "255", "t.toml:1: found dpid 0xff twice, expected each once"),
        ("[7, 9]", "[7, 4294967295]", "t.toml:1: port: found 4294967295, expected 1 to"),
    ] {
        let error = with_file("x.json", &content.replace(from, to), "").unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}
