//! Tests `weir ctl controller`: what an operator sees of a running controller, and what is said when there is none.
use crate::bed::{B4, Bed, ping, stderr, stdout, weir};
use std::path::Path;
use std::process::Output;
use std::time::Duration;
use weir_testing::{CertificateAuthority, Signal, wait_until};

const PATIENCE: Duration = Duration::from_secs(30);

fn asked(bed: &Bed, arguments: &[&str]) -> Output {
    bed.switches.command(weir()).arg("ctl").args(arguments).output().expect("weir starts")
}

fn json(bed: &Bed, socket: &str) -> serde_json::Value {
    let output = asked(bed, &["controller", socket, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn an_operator_sees_switches_messages_threads_applications_and_links() {
    if !weir_testing::root() || !weir_testing::programs(&["ip", "ping"]) {
        return;
    }
    let bed = Bed::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [socket, first, second] = ["c", "s1", "s2"].map(path);
    let authority = CertificateAuthority::new();
    let tls = |name: &str| {
        let party = authority.sign(name);
        let files =
            [("private-key", party.private_key), ("certificate", party.certificate), ("ca-cert", authority.ca_cert())];
        files.map(|(flag, file)| format!("--{flag}={}", file.display()))
    };
    let (ours, theirs) = (tls("c.test"), tls("s2.test"));
    let listen = ["--listen", "tcp:127.0.0.1:6653", "--listen", "ssl:127.0.0.1:6654", "--control-socket", &socket];
    let mut arguments = [&listen[..], &["--name", "c1", "--discover-links", "--threads", "2"]].concat();
    arguments.extend(ours.iter().map(String::as_str));
    let controller = bed.controller(&arguments);
    bed.trunk("t1", "t2");
    let switch = |dpid: &str, ports: [&str; 2], socket: &str, controller: &str, tls: &[String]| {
        let base = ["--dpid", dpid, "--port", ports[0], "--port", ports[1], "--control-socket", socket];
        let mut arguments = [&base[..], &["--controller", controller]].concat();
        arguments.extend(tls.iter().map(String::as_str));
        bed.switch(&arguments)
    };
    let ports = [["1=af_packet:pa", "9=af_packet:t1"], ["1=af_packet:pb", "9=af_packet:t2"]];
    let _first = switch("5", ports[0], &first, "tcp:127.0.0.1:6653,aux=2", &[]);
    let _second = switch("6", ports[1], &second, "ssl:127.0.0.1:6654", &theirs);
    assert!(bed.reaches(B4, 30) && ping(&bed.a, B4, 3));
    let has_all = || {
        let status = json(&bed, &socket);
        status["links"].as_array().is_some_and(|links| !links.is_empty())
            && status["switches"][0]["auxiliary"].as_array().is_some_and(|all| all.len() == 2)
    };
    assert!(wait_until(PATIENCE, has_all), "{:#}", json(&bed, &socket));
    let status = json(&bed, &socket);
    assert_eq!((&status["name"], &status["listen"][1]), (&"c1".into(), &"ssl:127.0.0.1:6654".into()));
    let switches = status["switches"].as_array().expect("switches");
    let of = |key: &str| switches.iter().map(|switch| switch[key].clone()).collect::<Vec<_>>();
    assert_eq!((of("dpid"), of("tls")), (vec![5.into(), 6.into()], vec![false.into(), true.into()]));
    assert_eq!((of("role"), of("version")), (vec!["equal".into(); 2], vec!["1.3".into(); 2]));
    for switch in switches {
        let classes = switch["classes"].as_array().expect("classes");
        let of = |class: &str| classes.iter().find(|found| found["class"] == class).expect("the class");
        // Hosts ask for addresses, probes find the link, and the switch has answered when it was set up.
        for class in ["control", "discovery", "resolution"] {
            let counts = of(class);
            assert!(counts["received"].as_u64() > Some(0), "{class}: {counts}");
            let sum: u64 = ["handled", "waiting", "dropped_overload", "dropped_port_down"]
                .map(|key| counts[key].as_u64())
                .into_iter()
                .flatten()
                .sum();
            assert_eq!(Some(sum), counts["received"].as_u64(), "{class}: {counts}");
        }
        assert!(of("resolution")["answered"].as_u64() > Some(0), "{switch:#}");
    }
    assert_eq!((&status["links"][0]["from"], &status["links"][0]["to_port"]), (&5.into(), &9.into()));
    let threads: Vec<u64> = [0, 1].into_iter().filter_map(|at| status["threads"][at]["switches"].as_u64()).collect();
    assert_eq!(threads.iter().sum::<u64>(), 2, "{:#}", status["threads"]);
    let names = [0, 1].map(|at| status["applications"][at]["name"].as_str());
    assert_eq!(names, [Some("link discovery"), Some("learning switch")]);
    assert!(status["applications"][1]["counters"]["learned"].as_u64() >= Some(2));
    let text = stdout(&asked(&bed, &["controller", "--socket", &socket]));
    for wanted in ["controller c1, up ", " 2 switches, ", "0000000000000005", "1 2", "learned ", "in use"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let csv = stdout(&asked(&bed, &["controller", &socket, "--csv"]));
    assert!(csv.starts_with("kind,dpid,peer,tls,") && csv.contains("\nclass,5,"), "{csv}");
    // A switch and a controller say so if they are taken for each other.
    let said = stderr(&asked(&bed, &["controller", &first]));
    assert!(said.contains("this is a switch, expected a controller; `weir ctl show` asks a switch"), "{said}");
    let said = stderr(&asked(&bed, &["show", &socket]));
    assert!(said.contains("this is a controller, expected a switch; `weir ctl controller` asks"), "{said}");
    let said = stderr(&asked(&bed, &["controller", &socket, "--vs", "gold"]));
    assert!(said.contains("found --vs with a controller"), "{said}");
    controller.stop();
    assert!(!Path::new(&socket).exists(), "SIGTERM removes the socket");
}

#[test]
fn without_a_controller_the_reason_is_told() {
    if !weir_testing::root() || !weir_testing::programs(&["ip"]) {
        return;
    }
    let bed = Bed::new();
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("c").display().to_string();
    let asked = || asked(&bed, &["controller", &socket]);
    let output = asked();
    let expected = format!("weir: no controller answers at {socket}: No such file or directory");
    assert!(!output.status.success() && stderr(&output).starts_with(&expected), "{}", stderr(&output));
    let arguments = ["--listen", "tcp:127.0.0.1:0", "--control-socket", &socket];
    let mut killed = bed.controller(&arguments);
    // A second one does not take it.
    let mut second = bed.switches.command(weir());
    let said = stderr(&second.arg("controller").args(arguments).output().expect("weir starts"));
    assert!(said.contains(&format!("socket {socket}: a switch or controller that is running uses it")), "{said}");
    assert!(asked().status.success());
    killed.signal(Signal::KILL);
    assert!(wait_until(PATIENCE, || killed.exited().is_some()) && Path::new(&socket).exists());
    let said = stderr(&asked());
    assert!(said.contains("Connection refused") && said.contains("; is it running?"), "{said}");
    let next = bed.controller(&arguments);
    assert!(asked().status.success(), "a dead one's socket is replaced");
    next.stop();
    assert!(!Path::new(&socket).exists());
}
