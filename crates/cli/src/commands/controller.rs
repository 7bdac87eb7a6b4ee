//! `weir controller`: runs a controller until a signal, prints switches that connect and disconnect, then a summary.
use crate::tls::TlsArgs;
use anyhow::Context;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::{Controller, ControllerConfig, ControllerSnapshot, ListenAddress, Mastership, SwitchEvent};
use weir_openflow::Version;
use weir_openflow::model::PortNo;
use weir_openflow::model::role::Role;
use weir_openflow::session::SessionConfig;
use weir_scenario::EmbeddedApp;
use weir_units::TimeSpan;

#[derive(clap::Args)]
pub(crate) struct ControllerArgs {
    /// Address to listen on for switches: tcp:IP[:PORT], ssl:IP[:PORT] or unix:PATH, or as Open vSwitch writes it,
    /// ptcp:[PORT][:IP], pssl:[PORT][:IP] or punix:PATH; may be repeated. Only ssl: is encrypted
    #[arg(long, value_name = "ADDRESS", default_value = "tcp:127.0.0.1:6653")]
    listen: Vec<ListenAddress>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Time without a message from a switch before the controller sends an echo request; after the same time without
    /// an answer the connection ends; 0s: never
    #[arg(long, value_name = "TIME", default_value = "5s")]
    echo_interval: TimeSpan,
    /// Role requested from the switch (OpenFlow 1.3): equal requests none; master makes the previous master a slave;
    /// slave stays passive until promoted. SIGUSR1 makes the controller master, SIGUSR2 slave
    #[arg(long, value_enum, default_value_t = RoleName::Equal)]
    role: RoleName,
    /// Generation id of the role request; without it, one more than the newest that the switch has seen
    #[arg(long, value_name = "N")]
    generation_id: Option<u64>,
    /// Application that the controller runs
    #[arg(long, value_parser = app_parser(), default_value = "learning")]
    app: EmbeddedApp,
    /// Make a port an untagged access port of a VLAN: it reaches only ports of the same VLAN; all other ports are
    /// trunks and carry tags. DPID is hexadecimal, as in 1:2=100; may be repeated
    #[arg(long, value_name = "DPID:PORT=VLAN", value_parser = parse_access)]
    access: Vec<AccessPortVlan>,
    /// Idle timeout of flow entries: an entry without packets for this time is removed; 0s for never
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_idle_timeout)]
    idle_timeout: TimeSpan,
    /// Maximum number of stations remembered per switch and VLAN
    #[arg(long, value_name = "N", default_value_t = LearningConfig::default().max_addresses)]
    max_addresses: usize,
    /// OpenFlow versions offered: 1.5, 1.4, 1.3, 1.0
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',', default_value = "1.3,1.0")]
    versions: Vec<Version>,
    /// Print one JSON object per line: the listening addresses, each switch that connects or disconnects, and last
    /// the summary
    #[arg(long)]
    json: bool,
}

/// Returns the parser of an application's name.
fn app_parser() -> impl TypedValueParser<Value = EmbeddedApp> {
    let names = EmbeddedApp::ALL.map(|(_, name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(names).try_map(|found| {
        let known = EmbeddedApp::ALL.into_iter().find(|(_, name, _)| *name == found);
        known.map(|(app, _, _)| app).ok_or(std::fmt::Error)
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RoleName {
    Equal,
    Master,
    Slave,
}

/// An access port (datapath id and port number) and its VLAN.
type AccessPortVlan = ((u64, PortNo), u16);

pub(crate) fn run(args: ControllerArgs) -> anyhow::Result<ExitCode> {
    let json = args.json;
    let config = ControllerConfig {
        listen: args.listen.clone(),
        tls: args.tls.files()?,
        session: SessionConfig {
            versions: args.versions.clone(),
            echo_interval: args.echo_interval.0,
            ..SessionConfig::default()
        },
        mastership: mastership(&args)?,
        observer: Some(Box::new(move |event| weir_terminal::output::announce(&event_line(event, json)))),
        ..ControllerConfig::default()
    };
    let EmbeddedApp::Learning = args.app;
    let app = LearningSwitch::new(learning_config(&args)?);
    let signals =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot wait for signals")?;
    let controller = Controller::start(Box::new(app), config)?;
    weir_terminal::output::announce(&ready_line(&controller, &args.versions, json));
    signals.block_on(handle_signals(&controller))?;
    weir_terminal::output::announce(&summary(&controller.stop(), json));
    Ok(ExitCode::SUCCESS)
}

fn learning_config(args: &ControllerArgs) -> anyhow::Result<LearningConfig> {
    let mut access = HashMap::new();
    for ((dpid, port), vlan) in &args.access {
        let earlier = access.insert((*dpid, *port), *vlan).filter(|earlier| earlier != vlan);
        if let Some(earlier) = earlier {
            anyhow::bail!("--access: port {port} of {dpid:x} is in VLANs {earlier} and {vlan}, expected one");
        }
    }
    let max_addresses = args.max_addresses;
    Ok(LearningConfig { access, idle_timeout: args.idle_timeout.0, max_addresses, ..LearningConfig::default() })
}

fn mastership(args: &ControllerArgs) -> anyhow::Result<Mastership> {
    Ok(match (args.role, args.generation_id) {
        (RoleName::Equal, None) => Mastership::Equal,
        (RoleName::Equal, Some(_)) => anyhow::bail!("--generation-id goes with --role master or --role slave"),
        (RoleName::Master, generation) => Mastership::Master(generation),
        (RoleName::Slave, generation) => Mastership::Slave(generation),
    })
}

/// Requests the role master at SIGUSR1 and slave at SIGUSR2; returns at SIGINT, SIGTERM or SIGHUP.
async fn handle_signals(controller: &Controller) -> anyhow::Result<()> {
    let mut promote = signal(SignalKind::user_defined1())?;
    let mut demote = signal(SignalKind::user_defined2())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = promote.recv() => controller.set_mastership(Mastership::Master(None)),
            _ = demote.recv() => controller.set_mastership(Mastership::Slave(None)),
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            _ = hangup.recv() => return Ok(()),
        }
    }
}

fn ready_line(controller: &Controller, versions: &[Version], json: bool) -> String {
    let addresses: Vec<_> = controller.addresses().iter().map(ListenAddress::to_string).collect();
    if json {
        return serde_json::json!({"event": "ready", "listen": addresses}).to_string();
    }
    let versions: Vec<_> = versions.iter().map(|version| version.name()).collect();
    format!("learning switch for OpenFlow {} listens on {}", versions.join(", "), addresses.join(", "))
}

fn event_line(event: &SwitchEvent, json: bool) -> String {
    if json {
        return serde_json::to_string(event).unwrap_or_else(|error| error.to_string());
    }
    match event {
        SwitchEvent::Up(info) => {
            format!("switch {:016x} up, OpenFlow {}, from {}", info.dpid, info.version.name(), info.peer)
        }
        SwitchEvent::Role { switch, role, generation_id } => {
            let generation = generation_id.map(|id| format!(", generation {id}")).unwrap_or_default();
            format!("switch {:016x}: this controller is {}{generation}", switch.dpid, role_name(*role))
        }
        SwitchEvent::Auxiliary { switch, number } => {
            format!("switch {:016x}: auxiliary connection {number}", switch.dpid)
        }
        SwitchEvent::Down { switch, reason } => format!("switch {:016x} down: {reason}", switch.dpid),
        SwitchEvent::Refused { peer, reason } => format!("connection from {peer} refused: {reason}"),
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Master => "master",
        Role::Slave => "slave",
        Role::Equal | Role::NoChange | Role::Unknown(_) => "equal",
    }
}

fn summary(end: &ControllerSnapshot, json: bool) -> String {
    if json {
        return serde_json::to_string(end).unwrap_or_else(|error| error.to_string());
    }
    let c = &end.counters;
    let mut text = format!(
        "connections: {} ({} refused), packet-ins: {}, flow-mods: {}, packet-outs: {}, errors from switches: {}",
        c.connections, c.refused, c.packet_ins, c.flow_mods, c.packet_outs, c.errors
    );
    let dropped = [
        ("not sent, switch does not read", c.dropped_full),
        ("not sent, switch gone", c.dropped_gone),
        ("not sent, not in its OpenFlow version", c.dropped_unencodable),
    ];
    let counted = end.app.iter().map(|(name, count)| (*name, *count));
    for (name, count) in dropped.into_iter().chain(counted).filter(|(_, count)| *count > 0) {
        let _ = write!(text, "\n  {name}: {count}");
    }
    text
}

fn parse_access(text: &str) -> Result<AccessPortVlan, String> {
    let error = || format!("found `{text}`, expected DPID:PORT=VLAN with a VLAN from 1 to 4094, such as 1:2=100");
    let (place, vlan) = text.split_once('=').ok_or_else(error)?;
    let (dpid, port) = place.split_once(':').ok_or_else(error)?;
    let dpid = u64::from_str_radix(dpid.strip_prefix("0x").unwrap_or(dpid), 16).map_err(|_| error())?;
    let port = port.parse().map_err(|_| error())?;
    let vlan = vlan.parse().ok().filter(|vlan| (1..=4094).contains(vlan)).ok_or_else(error)?;
    Ok(((dpid, port), vlan))
}

fn parse_idle_timeout(text: &str) -> Result<TimeSpan, String> {
    let expected = || format!("found `{text}`, expected whole seconds from 0s to 65535s, such as 60s");
    let span: TimeSpan = text.parse().map_err(|_| expected())?;
    let whole = span.0.subsec_nanos() == 0 && span.0.as_secs() <= u64::from(u16::MAX);
    whole.then_some(span).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_ports_are_read() {
        assert_eq!(parse_access("1:2=100"), Ok(((1, PortNo(2)), 100)));
        assert_eq!(parse_access("0xa5:3=4094"), Ok(((0xa5, PortNo(3)), 4094)));
        for wrong in ["", "1:2", "1=2", "1:2=0", "1:2=4095", "1:x=5", "g:1=5", "1:2=-1"] {
            assert!(parse_access(wrong).unwrap_err().contains("such as 1:2=100"), "{wrong}");
        }
    }

    #[test]
    fn times_and_versions_are_read() {
        assert_eq!(parse_idle_timeout("2min").unwrap().0.as_secs(), 120);
        for wrong in ["60", "0.5s", "65536s", ""] {
            assert!(parse_idle_timeout(wrong).is_err(), "{wrong}");
        }
        assert_eq!("1.3".parse(), Ok(Version::V13));
        assert!("1.2".parse::<Version>().unwrap_err().contains("expected 1.0, 1.3, 1.4 or 1.5"));
    }
}
