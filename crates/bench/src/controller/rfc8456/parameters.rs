//! Test configuration parameters and controller settings that every report has (RFC 8456, section 4.8).
use super::args::Rfc8456Args;
use super::subject::TestSubject;
use super::testbed::DiscoveryState;
use crate::machine::BenchMachineInfo;

/// Returns names and values, in the order of section 4.8.
pub(super) fn of(subject: &TestSubject, args: &Rfc8456Args, machine: &BenchMachineInfo) -> Vec<(String, String)> {
    let settings = subject.settings;
    let info = args.controller_info.join("; ");
    let northbound = [&settings.topology_command, &settings.provision_command, &settings.flows_command];
    let northbound: Vec<&str> = northbound.into_iter().flatten().map(String::as_str).collect();
    let sizes: Vec<String> = settings.frame_sizes.iter().map(usize::to_string).collect();
    let is_local = subject.address.ip().is_loopback();
    let not_given = "not known, because OpenFlow does not tell it: give it with --controller-info";
    let version = subject.program.and_then(|program| program.version()).map(|version| format!("version {version}"));
    let version = version.unwrap_or_else(|| format!("version {not_given}"));
    let rediscovery = match (subject.found.discovery, subject.found.rediscovery_s) {
        (Some(DiscoveryState::None), _) => "no discovery".to_owned(),
        (_, Some(period)) => format!("{period:.2} s between two discovery messages to a port, as observed"),
        _ => "not observed".to_owned(),
    };
    let settings_in_words = subject.program.and_then(|program| program.settings(settings.version));
    let redundancy = match (subject.program, subject.standby) {
        (None, _) => "standalone",
        _ if settings.connects_to_both => "standalone; in test 5.4.1 a cluster of two, connected to both",
        _ => "standalone; in test 5.4.1 a cluster of two, active-standby",
    };
    let rows = [
        ("controller name and version", format!("{} at {}; {}", subject.name, subject.address, or(&info, &version))),
        ("northbound protocols", or(&northbound.join("; "), "none")),
        ("southbound protocols", format!("OpenFlow {}", settings.version.name())),
        ("controller redundancy mode", redundancy.to_owned()),
        ("connection setup", "unencrypted (TCP), same protocol version".to_owned()),
        ("network device type", "emulated".to_owned()),
        ("number of nodes", format!("{} ({})", settings.plan.nodes, settings.plan.name)),
        ("number of links", settings.plan.links.len().to_string()),
        (
            "data-plane test traffic",
            format!("UDP over IPv4; frames of {} bytes with their frame check sequence", sizes.join(", ")),
        ),
        (
            "controller system",
            if is_local { format!("this machine: {}", machine.summary()) } else { or(&info, not_given) },
        ),
        ("reference test setup", "section 3.1; of test 5.4.1 section 3.2".to_owned()),
        ("measurement points", "sockets of the emulated switches, ports of TP1 and TP2 (section 4.5)".to_owned()),
        ("topology rediscovery timeout", rediscovery),
        ("controller state persistence", or(&info, not_given)),
        ("controller settings", or(&settings_in_words.unwrap_or_default(), not_given)),
        ("trials, Td", format!("{}, {} s", settings.trials, settings.trial_s)),
    ];
    rows.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

fn or(text: &str, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text.to_owned() }
}
