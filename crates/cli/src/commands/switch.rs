//! `weir switch`: runs the switch daemon.
pub(crate) mod document;
mod notify;

use super::control_socket;
use crate::threads::ThreadsArgs;
use crate::tls::TlsArgs;
use anyhow::{Context, anyhow, bail};
use notify::ServiceManager;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_datapath::{DatapathConfig, FailMode, LookupMethod, PacketInLimit, VerdictCacheMode};
use weir_device::ProfileConfig;
use weir_metrics::{MetricsAddress, MetricsServer};
use weir_openflow::Version;
use weir_profile::Profile;
use weir_scenario::{TomlVirtualSwitchReader, parse_slicing};
use weir_slicing::{FabricSpec, VirtualSwitch};
use weir_switch::ctl::{ConfigurationSource, CtlProgram, TableContents};
use weir_switch::privileges::{self, UnixUser};
use weir_switch::system_calls;
use weir_switch::threads::MachineResources;
use weir_switch::{
    ControllerSpec, InBandSettings, ListenTarget, PortArgument, PortConfig, SocketFile, SoftwareSwitch,
    SoftwareSwitchConfig, Spin, SwitchError, SwitchHandle,
};
use weir_units::TimeSpan;

#[derive(clap::Args)]
pub(crate) struct SwitchArgs {
    /// Read settings from a TOML file: the long options' names and values, repeatable ones as lists. Options on the
    /// command line override the file; ports, controllers and listeners on the command line replace the file's
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: SwitchSettings,
}

/// Settings that are accepted on the command line and in the file given by `--config`.
#[derive(clap::Args, Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct SwitchSettings {
    /// Name of the switch and of its control socket [default: weir, or the first of weir-2, weir-3, ... that is free]
    #[arg(long)]
    name: Option<String>,
    /// Datapath id in hexadecimal [default: the Ethernet address of the first port, or a number made of the name if
    /// that port is no interface]
    #[arg(long, value_name = "HEX")]
    dpid: Option<DatapathId>,
    /// A port: N=KIND:NAME[,option=value...], without N= the lowest free number, LOCAL= for the host's own port;
    /// kinds are af_xdp, af_packet, tap, vxlan, vxlan-gpe, gre, pcap, null, memory. Repeatable
    #[arg(long, value_name = "N=KIND:NAME")]
    port: Vec<PortArgument>,
    /// A flow entry present from the start, in the syntax of ovs-ofctl add-flow: in_port=1,actions=output:2.
    /// Repeatable
    #[arg(long, value_name = "FLOW")]
    entry: Vec<String>,
    /// A group present from the start, in the syntax of ovs-ofctl add-group: group_id=1,type=select,bucket=output:2.
    /// Repeatable
    #[arg(long, value_name = "GROUP")]
    group: Vec<String>,
    /// A meter present from the start, in the syntax of ovs-ofctl add-meter: meter=1,kbps,bands=type=drop,rate=1000.
    /// Repeatable
    #[arg(long, value_name = "METER")]
    meter: Vec<String>,
    /// A controller to connect to: tcp:HOST[:PORT], ssl:HOST[:PORT] or unix:PATH, where HOST is an IP address or a name
    /// that is resolved at each attempt; a suffix ,aux=N opens N auxiliary connections for packet-ins,
    /// ,peer-name=NAME accepts only a certificate for that name. Repeatable
    #[arg(long, value_name = "tcp:HOST:PORT")]
    controller: Vec<ControllerSpec>,
    /// Reach the controllers through the switch's own ports: control traffic is forwarded before all flow entries and
    /// without a controller. Needs --port LOCAL=tap:NAME, and controllers by IP address
    #[arg(long)]
    in_band: bool,
    /// Queue of the ports that control traffic waits in with --in-band [default: the default queue]
    #[arg(long, value_name = "N")]
    in_band_queue: Option<u32>,
    /// VLAN whose tag control traffic carries on all ports with --in-band; the local port sends it tagged, too
    /// [default: untagged]
    #[arg(long, value_name = "VLAN")]
    in_band_vlan: Option<u16>,
    /// Address on which controllers and tools such as ovs-ofctl may connect: ptcp:[PORT][:IP] (127.0.0.1 if no IP is
    /// given), pssl:[PORT][:IP] (any address if none is given) or punix:PATH. Repeatable
    #[arg(long, value_name = "ptcp:PORT")]
    listen: Vec<ListenTarget>,
    #[command(flatten)]
    #[serde(skip)]
    tls: TlsArgs,
    // TLS settings of the file. They are repeated here because serde does not check flattened fields for unknown
    // keys.
    #[arg(skip)]
    private_key: Option<PathBuf>,
    #[arg(skip)]
    certificate: Option<PathBuf>,
    #[arg(skip)]
    ca_cert: Option<PathBuf>,
    /// Time without a message from a controller before the switch sends an echo request; after the same time without
    /// an answer the connection ends; 0s: never [default: 5s]
    #[arg(long, value_name = "TIME")]
    echo_interval: Option<TimeSpan>,
    /// Behaviour without a controller: secure (use the tables only) or standalone (forward as a learning bridge)
    /// [default: secure]
    #[arg(long, value_enum)]
    fail_mode: Option<FailModeArg>,
    /// OpenFlow versions offered, separated by commas [default: 1.5,1.4,1.3,1.0; to --controller 1.4,1.3,1.0]
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    versions: Vec<Version>,
    /// Number of flow tables, 1 to 254 [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=254))]
    tables: Option<u8>,
    /// Maximum number of flow entries in each table [default: 1000000]
    #[arg(long, value_name = "N")]
    max_entries: Option<u32>,
    /// Maximum packet-ins per second for each controller; further ones are dropped and counted [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    packet_in_rate: Option<u32>,
    /// Maximum packet-ins in one burst for each controller, after a pause [default: the packet-ins of one second at
    /// the rate]
    #[arg(long, value_name = "N")]
    packet_in_burst: Option<u32>,
    /// How flow entries are looked up: adaptive (by a method that suits each table) or linear (entry by entry, the
    /// slow reference) [default: adaptive]
    #[arg(long, value_enum)]
    lookup: Option<LookupMode>,
    /// Cache results of lookups in several tables for later packets of a flow: auto (while it pays), off, on
    /// [default: auto]
    #[arg(long, value_enum)]
    verdict_cache: Option<VerdictCacheArg>,
    /// Path of the socket for `weir ctl` [default: NAME.sock in $XDG_RUNTIME_DIR/weir, /run/weir or /tmp/weir-UID]
    #[arg(long, value_name = "PATH")]
    control_socket: Option<PathBuf>,
    /// Serve the switch's counters over HTTP, at /metrics, for Prometheus; a port alone is one of 127.0.0.1
    /// [default: none]
    #[arg(long, value_name = "[IP:]PORT")]
    metrics: Option<MetricsAddress>,
    /// Divide the switch into virtual switches by a TOML file: a section `[fabric]` and items `[[virtual]]`, with the
    /// keys of a scenario's `[switch.fabric]` and `[[switch.virtual]]`; `weir ctl vs add` can add more. The file given
    /// by `--config` may have these sections itself
    #[arg(long, value_name = "FILE")]
    r#virtual: Option<VirtualSetting>,
    /// Section `[fabric]` of the file, for virtual switches that the file itself describes.
    #[arg(skip)]
    fabric: Option<toml::Table>,
    /// Delay messages and packets like a measured device: the name of a profile that comes with weir (`weir profile
    /// list`), or a profile file. One thread only, no virtual switches [default: no added delay]
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// User to switch to after the ports are open; the capabilities for adding ports later are kept
    #[arg(long)]
    user: Option<String>,
    /// How long to poll without finding work before sleeping: `auto` (as long as it pays, up to 2ms), a time, or 0; a
    /// longer time costs CPU time, a shorter one costs latency [default: auto]
    #[arg(long, value_name = "auto|TIME|0")]
    spin: Option<Spin>,
    /// Section `[threads]` of a file; on the command line its options are not grouped.
    #[command(flatten)]
    threads: ThreadsArgs,
}

/// Virtual switches of a configuration: a file that describes them, or items `[[virtual]]` of the configuration file.
#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "expected the name of a file, or items [[virtual]]")]
enum VirtualSetting {
    File(PathBuf),
    Items(Vec<toml::Table>),
}

impl FromStr for VirtualSetting {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(VirtualSetting::File(text.into()))
    }
}

#[derive(Clone, Copy, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FailModeArg {
    Secure,
    Standalone,
}

#[derive(Clone, Copy, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LookupMode {
    Adaptive,
    Linear,
}

#[derive(Clone, Copy, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum VerdictCacheArg {
    Auto,
    Off,
    On,
}

/// A datapath id as users write it: hexadecimal, with or without `0x`.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct DatapathId(u64);

impl FromStr for DatapathId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let found = u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
        found.map(DatapathId).ok_or_else(|| format!("found `{text}`, expected up to 16 hexadecimal digits"))
    }
}

impl TryFrom<String> for DatapathId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Runs a switch until it is told to stop. `matches` are the arguments as they were given.
pub(crate) fn run(args: SwitchArgs, matches: Option<&clap::ArgMatches>) -> anyhow::Result<ExitCode> {
    let command_line = matches.map(document::command_line).unwrap_or_default().to_string();
    let mut source = ConfigurationSource { command_line, ..ConfigurationSource::default() };
    let settings = match &args.config {
        Some(path) => {
            // Kept as an absolute path: `weir ctl` runs in other folders.
            let file = std::path::absolute(path).with_context(|| format!("{}: cannot be found", path.display()))?;
            source.text = read_settings(path)?;
            let settings = SwitchSettings::parse(&source.text, path)?;
            source.file = Some(file);
            args.settings.over(settings)
        }
        None => args.settings,
    };
    settings.check()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(settings, source))
}

async fn serve(settings: SwitchSettings, source: ConfigurationSource) -> anyhow::Result<ExitCode> {
    let manager = ServiceManager::find();
    // Installed first, so that a signal during the following steps is not lost.
    let mut signals = SwitchStopSignals::new()?;
    let user = settings.user.as_deref().map(UnixUser::find).transpose().map_err(said)?;
    let ports = open_ports(&settings.port)?;
    privileges::reduce(user).map_err(said)?;
    if let Err(error) = system_calls::restrict() {
        tracing::warn!("no system call is refused to this process: {error}");
    }
    let (name, socket) = settings.control_socket().map_err(said)?;
    let path = socket.path().to_owned();
    let virtual_tables = settings.virtual_tables();
    let metrics = settings.metrics;
    let config = settings.into_config(name, ports, socket, source)?;
    let controllers = config.controllers.clone();
    let dpid = config.datapath.datapath_id;
    let switch = Arc::new(SoftwareSwitch::start(config).map_err(said)?);
    for (name, tables) in virtual_tables {
        switch.install_virtual(&name, tables).map_err(|error| anyhow!("virtual switch {name}: {error}"))?;
    }
    let metrics = metrics.map(|address| serve_metrics(address, &switch)).transpose()?;
    say_ready(&switch, dpid, &controllers, &path, metrics.as_ref())?;
    // Only what stays true while the switch runs: `systemctl status` shows it.
    manager.ready(&format!("switch {} forwards, dpid {dpid:#018x}", switch.name()));
    let reason = tokio::select! {
        name = signals.next() => name,
        () = switch.stop_requested() => "weir ctl stop",
        () = switch.failed() => bail!("the switch's engine failed; its message is above"),
    };
    tracing::info!("{}: stopping: {reason}", switch.name());
    manager.stopping(reason);
    drop(metrics);
    drop(switch);
    Ok(ExitCode::SUCCESS)
}

/// Reads the text of a configuration file.
///
/// # Errors
/// The file cannot be read, or is not text.
pub(crate) fn read_settings(path: &Path) -> anyhow::Result<String> {
    weir_units::read_text(path).with_context(|| format!("{}: cannot read the settings", path.display()))
}

/// Converts an error whose message already contains its causes.
fn said(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("{error}")
}

/// Serves the switch's counters.
fn serve_metrics(address: MetricsAddress, switch: &Arc<SwitchHandle>) -> anyhow::Result<MetricsServer> {
    let switch = Arc::downgrade(switch);
    let read = move || {
        let switch = switch.upgrade().ok_or("the switch stops")?;
        Ok(weir_metrics::switch::families(&switch.snapshot().map_err(|error| error.to_string())?))
    };
    MetricsServer::start(address, Arc::new(read)).map_err(|error| anyhow!("--metrics: {error}"))
}

/// Prints the ready line, which users read and programs wait for.
fn say_ready(
    switch: &SwitchHandle,
    dpid: u64,
    controllers: &[ControllerSpec],
    socket: &Path,
    metrics: Option<&MetricsServer>,
) -> anyhow::Result<()> {
    let snapshot = switch.snapshot()?;
    let ports = snapshot.ports.iter().map(|port| format!("{}={}", port.number, port.spec));
    let mut line = format!("weir switch {} is ready: dpid={dpid:#018x} ports={}", switch.name(), list(ports));
    if !switch.listeners().is_empty() {
        line += &format!(" listen={}", list(switch.listeners().iter().map(ToString::to_string)));
    }
    if !controllers.is_empty() {
        line += &format!(" controllers={}", list(controllers.iter().map(ToString::to_string)));
    }
    line += &format!(" control={}", socket.display());
    if let Some(metrics) = metrics {
        line += &format!(" metrics={}", metrics.url());
    }
    weir_terminal::output::announce(&line);
    Ok(())
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(",") }
}

fn open_ports(ports: &[PortArgument]) -> anyhow::Result<Vec<PortConfig>> {
    // Ports with numbers are opened first; the others get the numbers that are left.
    let mut ports = ports.to_vec();
    ports.sort_by_key(|port| port.number.is_none());
    ports.into_iter().map(|port| PortConfig::open(port).map_err(said)).collect()
}

impl SwitchSettings {
    /// Reads the text of a configuration file. `path` names it in errors.
    ///
    /// # Errors
    /// The text is no TOML, or has unknown keys or values; the message has the line.
    fn parse(text: &str, path: &Path) -> anyhow::Result<SwitchSettings> {
        let settings: SwitchSettings = toml::from_str(text).map_err(|error| {
            if document::is_scenario(text) {
                let file = path.display();
                return anyhow!("{file}: found a scenario, expected the settings of one switch: use `weir run {file}`");
            }
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            anyhow!("{}:{line}: {}", path.display(), weir_units::reworded(error.message(), &[]))
        })?;
        if let Some(VirtualSetting::Items(items)) = &settings.r#virtual {
            document::check_names(items).with_context(|| path.display().to_string())?;
        }
        Ok(settings)
    }

    /// Returns the settings with the file's TLS settings where those of the command line belong.
    fn with_tls_of_file(self) -> SwitchSettings {
        SwitchSettings::default().over(self)
    }

    /// Returns the meters, groups and entries of the virtual switches that the file itself describes with meters or
    /// groups.
    fn virtual_tables(&self) -> Vec<(String, TableContents)> {
        let Some(VirtualSetting::Items(items)) = &self.r#virtual else { return Vec::new() };
        let tables = items.iter().filter(|item| document::has_groups_or_meters(item)).map(|item| {
            let name = item.get("name").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
            let texts = |key: &str| document::texts(item, key);
            let (meters, groups, entries) = (texts("meters"), texts("groups"), texts("entries"));
            (name, TableContents { meters, groups, entries, temporary_entries: 0 })
        });
        tables.collect()
    }

    /// Returns these settings, with unset ones taken from `file`.
    fn over(self, file: SwitchSettings) -> SwitchSettings {
        fn list<T>(here: Vec<T>, file: Vec<T>) -> Vec<T> {
            if here.is_empty() { file } else { here }
        }
        let TlsArgs { private_key, certificate, ca_cert } = self.tls;
        SwitchSettings {
            tls: TlsArgs {
                private_key: private_key.or(file.private_key),
                certificate: certificate.or(file.certificate),
                ca_cert: ca_cert.or(file.ca_cert),
            },
            private_key: None,
            certificate: None,
            ca_cert: None,
            name: self.name.or(file.name),
            dpid: self.dpid.or(file.dpid),
            port: list(self.port, file.port),
            entry: list(self.entry, file.entry),
            group: list(self.group, file.group),
            meter: list(self.meter, file.meter),
            controller: list(self.controller, file.controller),
            in_band: self.in_band || file.in_band,
            in_band_queue: self.in_band_queue.or(file.in_band_queue),
            in_band_vlan: self.in_band_vlan.or(file.in_band_vlan),
            listen: list(self.listen, file.listen),
            echo_interval: self.echo_interval.or(file.echo_interval),
            fail_mode: self.fail_mode.or(file.fail_mode),
            versions: list(self.versions, file.versions),
            tables: self.tables.or(file.tables),
            max_entries: self.max_entries.or(file.max_entries),
            packet_in_rate: self.packet_in_rate.or(file.packet_in_rate),
            packet_in_burst: self.packet_in_burst.or(file.packet_in_burst),
            lookup: self.lookup.or(file.lookup),
            verdict_cache: self.verdict_cache.or(file.verdict_cache),
            control_socket: self.control_socket.or(file.control_socket),
            metrics: self.metrics.or(file.metrics),
            r#virtual: self.r#virtual.or(file.r#virtual),
            fabric: self.fabric.or(file.fabric),
            profile: self.profile.or(file.profile),
            user: self.user.or(file.user),
            spin: self.spin.or(file.spin),
            threads: self.threads.over(file.threads),
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.tables.is_some_and(|tables| !(1..=254).contains(&tables)) {
            bail!("tables: found {}, expected 1 to 254", self.tables.unwrap_or_default());
        }
        self.tls.files()?;
        self.threads.config().check(&MachineResources::here()).map_err(said)?;
        if self.packet_in_rate == Some(0) {
            bail!("packet-in-rate: found 0, expected 1 or more; leave it out for no limit");
        }
        if self.packet_in_burst.is_some() && self.packet_in_rate.is_none() {
            bail!("packet-in-burst: without packet-in-rate there is no limit; give a rate, too");
        }
        for (key, value) in [("queue", self.in_band_queue), ("vlan", self.in_band_vlan.map(u32::from))] {
            if value.is_some() && !self.in_band {
                bail!("in-band-{key}: without in-band there is no control traffic in band; give in-band, too");
            }
        }
        let mut numbers: Vec<_> = self.port.iter().filter_map(|port| port.number).collect();
        numbers.sort();
        match numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => bail!("port number {} is given twice", pair[0]),
            None => Ok(()),
        }
    }

    /// Returns the switch's name and its bound control socket.
    fn control_socket(&self) -> Result<(String, SocketFile), SwitchError> {
        control_socket::bind(CtlProgram::Switch, self.name.as_deref(), self.control_socket.as_deref())
    }

    /// Returns the text that divides the switch into virtual switches, and the name of its file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn slicing(&self, source: &ConfigurationSource) -> anyhow::Result<Option<(String, PathBuf)>> {
        let items = match &self.r#virtual {
            Some(VirtualSetting::File(path)) if self.fabric.is_some() => {
                bail!("fabric: found beside virtual = {path:?}, which has its own; leave one out")
            }
            Some(VirtualSetting::File(path)) => {
                let text = weir_units::read_text(path);
                let text = text.with_context(|| format!("{}: cannot read the virtual switches", path.display()))?;
                return Ok(Some((text, path.clone())));
            }
            Some(VirtualSetting::Items(items)) => items.as_slice(),
            None if self.fabric.is_none() => return Ok(None),
            None => &[],
        };
        let mut wanted = toml::Table::new();
        if let Some(fabric) = &self.fabric {
            wanted.insert("fabric".to_owned(), toml::Value::Table(fabric.clone()));
        }
        if !items.is_empty() {
            let mut items = items.to_vec();
            // These are added once the virtual switches run, the entries last: they may send to groups.
            for item in items.iter_mut().filter(|item| document::has_groups_or_meters(item)) {
                ["meters", "groups", "entries"].iter().for_each(|key| drop(item.remove(*key)));
            }
            let items = items.into_iter().map(toml::Value::Table).collect();
            wanted.insert("virtual".to_owned(), toml::Value::Array(items));
        }
        let file = source.file.clone().unwrap_or_else(|| "configuration".into());
        Ok(Some((document::slicing_text(&source.text, &wanted)?, file)))
    }

    fn into_config(
        self,
        name: String,
        mut ports: Vec<PortConfig>,
        socket: SocketFile,
        mut source: ConfigurationSource,
    ) -> anyhow::Result<SoftwareSwitchConfig> {
        let (fabric, virtual_switches) = match self.slicing(&source)? {
            Some((text, file)) => {
                let (fabric, cuts) = cut(&text, &file, &name, &mut ports)?;
                let section = text.parse::<toml::Table>().ok().and_then(|mut file| file.remove("fabric"));
                source.fabric = section.map(|section| section.to_string()).unwrap_or_default();
                (Some(fabric), cuts)
            }
            None => (None, Vec::new()),
        };
        let profile =
            self.profile.as_deref().map(|name| Profile::find(name, Path::new(""))).transpose().map_err(said)?;
        let defaults = (DatapathConfig::default(), SoftwareSwitchConfig::default());
        let dpid = self.dpid.map_or_else(|| default_dpid(&name, &ports), |dpid| dpid.0);
        let mut session = defaults.1.session;
        // Controllers in use may fail with 1.5 (Open vSwitch's test controller crashes), so outgoing connections
        // offer it only when it is asked for.
        let mut controller_versions = vec![Version::V14, Version::V13, Version::V10];
        if !self.versions.is_empty() {
            (session.versions, controller_versions) = (self.versions, Vec::new());
        }
        if let Some(interval) = self.echo_interval {
            session.echo_interval = interval.0;
        }
        Ok(SoftwareSwitchConfig {
            datapath: DatapathConfig {
                datapath_id: dpid,
                name,
                n_tables: self.tables.unwrap_or(defaults.0.n_tables),
                packet_in_limit: self
                    .packet_in_rate
                    .map(|per_second| PacketInLimit { per_second, burst: self.packet_in_burst }),
                max_entries: self.max_entries.unwrap_or(defaults.0.max_entries),
                lookup: match self.lookup {
                    Some(LookupMode::Linear) => LookupMethod::Linear,
                    Some(LookupMode::Adaptive) | None => LookupMethod::Adaptive,
                },
                verdict_cache: match self.verdict_cache {
                    Some(VerdictCacheArg::Off) => VerdictCacheMode::Off,
                    Some(VerdictCacheArg::On) => VerdictCacheMode::On,
                    Some(VerdictCacheArg::Auto) | None => VerdictCacheMode::Auto,
                },
                ..defaults.0
            },
            fail_mode: match self.fail_mode {
                Some(FailModeArg::Standalone) => FailMode::Standalone,
                Some(FailModeArg::Secure) | None => FailMode::Secure,
            },
            threads: self.threads.config(),
            ports,
            controllers: self.controller,
            in_band: self.in_band.then_some(InBandSettings { queue: self.in_band_queue, vlan: self.in_band_vlan }),
            listeners: self.listen,
            tls: self.tls.files()?,
            control_socket: Some(socket),
            fabric,
            entries: self.entry,
            groups: self.group,
            meters: self.meter,
            source,
            virtual_switches,
            virtual_switch_reader: Some(&TomlVirtualSwitchReader),
            session,
            controller_versions,
            spin: self.spin.unwrap_or(defaults.1.spin),
            // Seeded by datapath id: switches of one network draw different times, one switch draws the same times in
            // every run.
            profile: profile.map(|profile| ProfileConfig { profile: Box::new(profile), seed: dpid }),
            notes_stops: false,
            clock: weir_units::SystemClock::start(),
        })
    }
}

/// Returns the datapath id of a switch that is given none: the Ethernet address of its first port. If that is no
/// interface, an address made of the switch's name, because ports such as `null:` have the same address everywhere.
fn default_dpid(name: &str, ports: &[PortConfig]) -> u64 {
    let interface = ports
        .first()
        .map(|port| port.port.info())
        .filter(|info| info.kind().is_some_and(weir_port::spec::PortKind::is_interface));
    interface.map_or_else(|| weir_port::synthetic_mac(&format!("switch:{name}")), |info| info.mac).to_bits()
}

/// Reads the text that divides the switch into virtual switches; `file` names it in errors.
fn cut(
    text: &str,
    file: &Path,
    name: &str,
    ports: &mut [PortConfig],
) -> anyhow::Result<(FabricSpec, Vec<VirtualSwitch>)> {
    let mut numbers: Vec<u32> = ports.iter().filter_map(|port| port.number).map(|number| number.0).collect();
    let mut rates = BTreeMap::new();
    for port in ports {
        // Ports are numbered as the switch numbers them: each port without a number gets the lowest free one. Ports
        // with numbers are first in the list.
        let free = || (1..).find(|free| !numbers.contains(free)).unwrap_or_default();
        let number = port.number.map_or_else(free, |number| number.0);
        numbers.push(number);
        rates.insert(number, port.port.link().speed);
    }
    parse_slicing(text, &file.display().to_string(), name, rates).map_err(said)
}

/// Signals that stop the switch.
struct SwitchStopSignals([(Signal, &'static str); 3]);

impl SwitchStopSignals {
    fn new() -> std::io::Result<SwitchStopSignals> {
        Ok(SwitchStopSignals([
            (signal(SignalKind::terminate())?, "SIGTERM"),
            (signal(SignalKind::interrupt())?, "SIGINT"),
            (signal(SignalKind::hangup())?, "SIGHUP"),
        ]))
    }

    async fn next(&mut self) -> &'static str {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.0.recv() => terminate.1,
            _ = interrupt.0.recv() => interrupt.1,
            _ = hangup.0.recv() => hangup.1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use weir_switch::threads::{ReceivePolicy, ThreadingMode as ThreadMode};

    #[test]
    fn the_example_is_right() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/switch/switch.toml");
        let settings = SwitchSettings::parse(&read_settings(&file).unwrap(), &file).unwrap();
        settings.check().unwrap();
        assert_eq!((settings.name.as_deref(), settings.port.len()), (Some("s1"), 2));
    }

    fn settings(text: &str) -> anyhow::Result<SwitchSettings> {
        SwitchSettings::parse(text, Path::new("switch.toml"))
    }

    #[test]
    fn a_file_says_what_flags_say_and_flags_win() {
        let file = "name = 's1'\ndpid = '0x2a'\nport = ['1=null:a', 'null:b']\ncontroller = ['tcp:127.0.0.1:6653']\n\
                    listen = ['ptcp:6654']\nprivate-key = 'a'\ncertificate = 'b'\nca-cert = 'c'\necho-interval = '1s'\nfail-mode = 'standalone'\ntables = 8\nspin = '50us'\n";
        let tls = TlsArgs { private_key: None, certificate: Some("other".into()), ca_cert: None };
        let flags = SwitchSettings { dpid: Some(DatapathId(7)), tls, tables: Some(9), ..SwitchSettings::default() };
        let merged = flags.over(settings(file).unwrap());
        assert_eq!((merged.name.as_deref(), merged.dpid.unwrap().0, merged.tables), (Some("s1"), 7, Some(9)));
        assert_eq!((merged.port.len(), merged.controller.len(), merged.listen.len()), (2, 1, 1));
        assert!(matches!(merged.fail_mode, Some(FailModeArg::Standalone)));
        let files = merged.tls.files().unwrap().unwrap();
        assert_eq!(files.certificate, PathBuf::from("other"), "the flag wins");
        assert_eq!((files.private_key, files.ca_cert), (PathBuf::from("a"), PathBuf::from("c")));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named_with_its_line() {
        for (text, line, problem) in [
            ("name = 's1'\ntabels = 3\n", ":2:", "unknown field `tabels`"),
            ("\n\nport = ['1=nul:a']\n", ":3:", "nul"),
            ("listen = ['6654']\n", ":1:", "expected ptcp:"),
            ("dpid = 'xyz'\n", ":1:", "hexadecimal"),
            ("versions = ['1.2']\n", ":1:", "expected one of `1.0`, `1.3`, `1.4`, `1.5`"),
            ("fail-mode = 'open'\n", ":1:", "standalone"),
            ("[threads]\nmode = 'all'\n", ":2:", "expected `rtc` or `pipeline`"),
            ("[threads]\nworker = 2\n", ":2:", "unknown field `worker`"),
            ("[threads]\nbursts = '1,2'\n", ":2:", "A,B,C,D,E,F"),
            ("[threads]\n\nclass = ['udp']\n", ":3:", "MATCH=>WORKER"),
            ("[threads]\ncpus = 'a'\n", ":2:", "0,2-4"),
            ("name = \n", ":1:", ""),
        ] {
            let error = settings(text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(line) && error.contains(problem), "{text}: {error}");
        }
        let scenario = settings("name = 'x'\n[[switch]]\nname = 's1'\n[[host]]\nname = 'h1'\n").err().unwrap();
        assert!(
            scenario
                .to_string()
                .ends_with("found a scenario, expected the settings of one switch: use `weir run switch.toml`")
        );
    }

    #[test]
    fn switches_without_interfaces_have_ids_of_their_own() {
        let dpid = |name: &str| default_dpid(name, &[PortConfig::open("1=null:".parse().unwrap()).unwrap()]);
        assert_eq!(dpid("s1"), dpid("s1"));
        assert_ne!(dpid("s1"), dpid("s2"));
        // Like an Ethernet address that is locally administered.
        assert_eq!(dpid("s1") >> 40, 2);
    }

    #[test]
    fn threads_are_a_section_and_flags_win() {
        let file = "[threads]\nmode = 'pipeline'\nworkers = 1\nbursts = '1,2,3,4,5,6'\nio-loop-count = 7\n\
                    worker-loop-count = 8\nflush-time = '9us'\nring-size = 64\npolicy = 'mac'\nclass = ['icmp=>0']\n";
        let here: SwitchArgs =
            Flags::parse_from(["x", "--ring-size", "128", "--class", "udp,tp_dst=53=>0", "--policy", "port"]).args;
        let merged = here.settings.over(settings(file).unwrap());
        merged.check().unwrap();
        let threads = merged.threads.config();
        assert_eq!((threads.mode, threads.bursts.tx_write, threads.io_loop_count), (ThreadMode::Pipeline, 6, 7));
        assert_eq!((threads.worker_loop_count, threads.flush_time.as_micros()), (8, 9));
        assert_eq!((threads.ring_size, threads.policy, threads.classes.len()), (128, ReceivePolicy::Port, 1));
        assert_eq!(threads.classes[0].to_string(), "udp,tp_dst=53=>0");
        let zero = settings("[threads]\nio-loop-count = 0").unwrap().check().unwrap_err().to_string();
        assert!(zero.contains("io-loop-count: found 0, expected 1 or more"), "{zero}");
    }

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        args: SwitchArgs,
    }

    #[test]
    fn impossible_settings_are_refused() {
        let twice = "port = ['1=null:a', '1=null:b']";
        assert!(settings(twice).unwrap().check().unwrap_err().to_string().contains("given twice"));
        let half = settings("private-key = 'a'").unwrap();
        let half = SwitchSettings::default().over(half).check().unwrap_err().to_string();
        assert!(half.contains("--certificate is not given"), "{half}");
        assert!(settings("tables = 255").unwrap().check().is_err());
        let no_rate = settings("packet-in-burst = 5").unwrap().check().unwrap_err().to_string();
        assert!(no_rate.contains("give a rate"), "{no_rate}");
        let not_in_band = settings("in-band-queue = 1").unwrap().check().unwrap_err().to_string();
        assert!(not_in_band.contains("give in-band"), "{not_in_band}");
        assert!(settings("in-band-vlan = 1").unwrap().check().is_err());
        settings("in-band = true\nin-band-queue = 1\nin-band-vlan = 7").unwrap().check().unwrap();
        assert!(settings("packet-in-rate = 0").unwrap().check().is_err());
    }
}
