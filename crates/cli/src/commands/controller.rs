//! `weir controller`: runs a controller until a signal, prints switches that connect and disconnect, then a summary.
mod interface;
mod network;
mod state;
pub(in crate::commands) mod text;

use super::control_socket;
use crate::tls::TlsArgs;
use anyhow::Context;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_controller::apps::chain::AppChain;
use weir_controller::apps::discovery::{DiscoveryConfig, LinkDiscoveries};
use weir_controller::apps::learning::{LearningConfig, LearningSwitches};
use weir_controller::status::ControllerOverview;
use weir_controller::{AppFactory, Controller, ControllerConfig, ListenAddress, MAX_THREADS, Mastership};
use weir_metrics::{MetricsAddress, MetricsServer};
use weir_openflow::Version;
use weir_openflow::model::PortNo;
use weir_openflow::session::SessionConfig;
use weir_routing::NetworkController;
use weir_routing::settings::parse_idle_timeout;
use weir_scenario::EmbeddedApp;
use weir_switch::SocketFile;
use weir_switch::ctl::{self, CtlProgram, CtlReply, CtlRequest};
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
    /// Find links between switches by LLDP, and break loops of them; --app forwarding always finds them
    #[arg(long)]
    discover_links: bool,
    /// Idle timeout of flow entries: an entry without packets for this time is removed; 0s for never. Not for
    /// --app forwarding with --forward proactive, whose entries stay [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = parse_idle_timeout)]
    idle_timeout: Option<TimeSpan>,
    /// Maximum number of stations that --app learning remembers per switch and VLAN [default: 4096]
    #[arg(long, value_name = "N")]
    max_addresses: Option<usize>,
    /// OpenFlow versions offered: 1.5, 1.4, 1.3, 1.0
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',', default_value = "1.3,1.0")]
    versions: Vec<Version>,
    /// Serve the controller's counters over HTTP, at /metrics, for Prometheus; a port alone is one of 127.0.0.1
    #[arg(long, value_name = "[IP:]PORT")]
    metrics: Option<MetricsAddress>,
    /// Name by which `weir ctl controller` finds this controller [default: weir, or weir-2 and so on while another has
    /// it]
    #[arg(long)]
    name: Option<String>,
    /// Path of the socket for `weir ctl controller` [default: NAME.controller in $XDG_RUNTIME_DIR/weir, /run/weir or
    /// /tmp/weir-UID]
    #[arg(long, value_name = "PATH")]
    control_socket: Option<PathBuf>,
    /// Threads, each with its own switches: new ones go to the thread with the fewest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_threads)]
    threads: usize,
    /// Time for which a thread polls for messages before it sleeps; it then uses a processor fully
    #[arg(long, value_name = "TIME", default_value = "0s")]
    spin: TimeSpan,
    /// Print one JSON object per line: the listening addresses, each switch that connects or disconnects, and last
    /// the summary
    #[arg(long)]
    json: bool,
    // Last, because their heading is also that of the options after them.
    #[command(flatten)]
    network: network::NetworkArgs,
    #[command(flatten)]
    interface: interface::InterfaceArgs,
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
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot serve a socket")?;
    runtime.block_on(serve(args))
}

async fn serve(args: ControllerArgs) -> anyhow::Result<ExitCode> {
    // Installed first, so that a signal during the following steps does not leave the socket behind.
    let signals = ControllerSignals::new().context("cannot wait for signals")?;
    let json = args.json;
    let config = ControllerConfig {
        listen: args.listen.clone(),
        tls: args.tls.files()?,
        session: SessionConfig {
            versions: args.versions.clone(),
            echo_interval: args.echo_interval.0,
            ..ControllerConfig::default().session
        },
        mastership: mastership(&args)?,
        threads: args.threads,
        spin: args.spin.0,
        observer: Some(Box::new(move |event| weir_terminal::output::announce(&text::event_line(event, json)))),
        ..ControllerConfig::default()
    };
    // The state's writer is waited for after the controller has ended.
    let (app, state) = application(&args)?;
    let (name, socket) =
        control_socket::bind(CtlProgram::Controller, args.name.as_deref(), args.control_socket.as_deref())?;
    let path = socket.path().to_owned();
    let (controller, network) = match app {
        Application::Learning(make) => (Arc::new(Controller::start_threads(make, config)?), None),
        Application::Network(app) => {
            let events = app.event_signal();
            let controller = Arc::new(Controller::start(app, config)?);
            let network = Arc::new(interface::ControlledNetwork::new(&controller, events));
            (controller, Some(network))
        }
    };
    let metrics = args.metrics.map(|address| serve_metrics(address, &controller, network.clone())).transpose()?;
    let interface = network.map(|network| args.interface.serve(&path, args.tls.files()?, network)).transpose()?;
    let ready = text::ReadyController {
        name: &name,
        listen: controller.addresses().iter().map(ListenAddress::to_string).collect(),
        control: &path,
        metrics: metrics.as_ref().map(MetricsServer::url),
        interface: interface.as_ref().map_or(&[], |interface| &interface.addresses),
    };
    let ready = text::ready_line(&args, &ready);
    weir_terminal::output::announce(&ready);
    tokio::select! {
        () = signals.handle(&controller) => {}
        served = serve_status(socket, name, &controller) => served.context("the control socket")?,
    }
    drop((metrics, interface));
    // The only other user is a request for counters that was not answered in time.
    let end = Arc::try_unwrap(controller).map_or_else(|shared| shared.snapshot(), Controller::stop);
    drop(state);
    weir_terminal::output::announce(&text::summary(&end, json));
    Ok(ExitCode::SUCCESS)
}

/// Answers `weir ctl controller`.
async fn serve_status(socket: SocketFile, name: String, controller: &Arc<Controller>) -> std::io::Result<()> {
    let controller = Arc::downgrade(controller);
    let answer = move |request| {
        let (controller, name) = (controller.clone(), name.clone());
        // The threads are waited for, so another thread than that of the signals does it.
        let asked = tokio::task::spawn_blocking(move || match request {
            CtlRequest::ShowController => {
                let controller = controller.upgrade().ok_or("the controller stops")?;
                let status = ControllerOverview { name, ..controller.status() };
                serde_json::to_value(status).map_err(|error| error.to_string())
            }
            _ => Err("this is a controller, expected a switch; `weir ctl controller` asks a controller".to_owned()),
        });
        async move {
            let answered = asked.await.unwrap_or_else(|error| Err(error.to_string()));
            answered.map_or_else(CtlReply::Error, CtlReply::Ok)
        }
    };
    ctl::serve_requests(socket, answer).await
}

/// Serves the counters of the controller, and of its network if it has one.
fn serve_metrics(
    address: MetricsAddress,
    controller: &Arc<Controller>,
    network: Option<Arc<interface::ControlledNetwork>>,
) -> anyhow::Result<MetricsServer> {
    let controller = Arc::downgrade(controller);
    let read = move || {
        let controller = controller.upgrade().ok_or("the controller stops")?;
        let mut families = weir_metrics::controller::families(&controller.snapshot());
        if let Some(network) = &network {
            families.extend(network.metrics()?);
        }
        Ok(families)
    };
    MetricsServer::start(address, Arc::new(read)).map_err(|error| anyhow::anyhow!("--metrics: {error}"))
}

/// Application of the controller: one for each thread, or one for the whole network.
enum Application {
    Learning(AppFactory),
    Network(Box<NetworkController>),
}

fn application(args: &ControllerArgs) -> anyhow::Result<(Application, Option<state::StateWriter>)> {
    match args.app {
        EmbeddedApp::Learning => {
            args.interface.refuse_unused()?;
            args.network.refuse_unused()?;
            let switches = LearningSwitches::new(learning_config(args)?);
            Ok((Application::Learning(app_factory(switches, args.discover_links)), None))
        }
        EmbeddedApp::Forwarding => {
            if args.threads > 1 {
                anyhow::bail!("--threads: one thread has the whole network with --app forwarding, expected 1");
            }
            if !args.access.is_empty() {
                anyhow::bail!("--access goes with --app learning: --app forwarding does not keep VLANs apart");
            }
            if args.max_addresses.is_some() {
                anyhow::bail!(
                    "--max-addresses goes with --app learning; --app forwarding has --max-hosts and \
                     --max-hosts-per-port"
                );
            }
            let (app, state) = args.network.make(args.idle_timeout)?;
            Ok((Application::Network(Box::new(app)), state))
        }
    }
}

/// Returns what makes the applications of a thread: a learning switch, with discovery of links in front if wanted.
fn app_factory(switches: LearningSwitches, discovers_links: bool) -> AppFactory {
    let discoveries = discovers_links.then(|| LinkDiscoveries::new(DiscoveryConfig::default(), &switches));
    Box::new(move |shard, waker| {
        let learning = Box::new(switches.make(shard, waker.clone()));
        match &discoveries {
            Some(discoveries) => Box::new(AppChain::new(vec![Box::new(discoveries.make(shard, waker)), learning])),
            None => learning,
        }
    })
}

fn learning_config(args: &ControllerArgs) -> anyhow::Result<LearningConfig> {
    let mut access = HashMap::new();
    for ((dpid, port), vlan) in &args.access {
        let earlier = access.insert((*dpid, *port), *vlan).filter(|earlier| earlier != vlan);
        if let Some(earlier) = earlier {
            anyhow::bail!("--access: port {port} of {dpid:x} is in VLANs {earlier} and {vlan}, expected one");
        }
    }
    let default = LearningConfig::default();
    let max_addresses = args.max_addresses.unwrap_or(default.max_addresses);
    let idle_timeout = args.idle_timeout.map_or(default.idle_timeout, |time| time.0);
    Ok(LearningConfig { access, idle_timeout, max_addresses, entry_sends_packet: true, ..default })
}

fn mastership(args: &ControllerArgs) -> anyhow::Result<Mastership> {
    Ok(match (args.role, args.generation_id) {
        (RoleName::Equal, None) => Mastership::Equal,
        (RoleName::Equal, Some(_)) => anyhow::bail!("--generation-id goes with --role master or --role slave"),
        (RoleName::Master, generation) => Mastership::Master(generation),
        (RoleName::Slave, generation) => Mastership::Slave(generation),
    })
}

/// Signals that the controller follows.
struct ControllerSignals {
    promote: Signal,
    demote: Signal,
    stop: [Signal; 3],
}

impl ControllerSignals {
    fn new() -> std::io::Result<ControllerSignals> {
        let stop = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let [terminate, hangup, interrupt] = stop.map(signal);
        Ok(ControllerSignals {
            promote: signal(SignalKind::user_defined1())?,
            demote: signal(SignalKind::user_defined2())?,
            stop: [terminate?, hangup?, interrupt?],
        })
    }

    /// Requests the role master at SIGUSR1 and slave at SIGUSR2; returns at SIGINT, SIGTERM or SIGHUP.
    async fn handle(self, controller: &Controller) {
        let ControllerSignals { mut promote, mut demote, stop: [mut terminate, mut hangup, mut interrupt] } = self;
        loop {
            tokio::select! {
                _ = promote.recv() => controller.set_mastership(Mastership::Master(None)),
                _ = demote.recv() => controller.set_mastership(Mastership::Slave(None)),
                _ = interrupt.recv() => return,
                _ = terminate.recv() => return,
                _ = hangup.recv() => return,
            }
        }
    }
}

fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=MAX_THREADS).contains(threads));
    threads.ok_or_else(|| format!("found `{text}`, expected a number from 1 to {MAX_THREADS}"))
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
    fn versions_are_read() {
        assert_eq!("1.3".parse(), Ok(Version::V13));
        assert!("1.2".parse::<Version>().unwrap_err().contains("expected 1.0, 1.3, 1.4 or 1.5"));
    }
}
