//! `weir controller --app forwarding`: the options of the controller of a whole network.
use super::state::StateWriter;
use anyhow::Context;
use clap::ValueEnum;
use std::path::PathBuf;
use weir_routing::apps::NetworkFile;
use weir_routing::forwarding::{ForwardingConfig, ForwardingMode};
use weir_routing::settings::{parse_port_buffer, parse_probe_interval};
use weir_routing::{NetworkConfig, NetworkController};
use weir_units::{ByteSize, TimeSpan};

#[derive(clap::Args)]
#[command(next_help_heading = "Options of --app forwarding")]
pub(super) struct NetworkArgs {
    /// Time at which switches get the entries for packets between hosts [default: proactive]
    #[arg(long, value_enum)]
    forward: Option<Forward>,
    /// Spread the flows to a host over all shortest ways (select groups); only with --forward proactive
    #[arg(long)]
    ecmp: bool,
    /// Do not answer ARP requests for known hosts, but pass them to that host
    #[arg(long)]
    no_arp_answers: bool,
    /// Time between two probes of a link; a link without probes for three times this is avoided
    /// [default: 25ms]
    #[arg(long, value_name = "TIME", value_parser = parse_probe_interval)]
    probe_interval: Option<TimeSpan>,
    /// Most hosts that are remembered; further ones are refused [default: 65536]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    max_hosts: Option<usize>,
    /// Most hosts at one port; further ones are refused [default: 1024]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    max_hosts_per_port: Option<usize>,
    /// Most that waits at any port of the switches: bytes such as 64kB, or packets of 1500 bytes such as 100packets.
    /// Intents can then have a bound for the worst case
    #[arg(long, value_name = "SIZE", value_parser = parse_port_buffer)]
    port_buffer: Option<ByteSize>,
    /// File with the applications of the network and their settings: access lists, DHCP, a router, a monitor; as
    /// examples/network/applications.toml
    #[arg(long, value_name = "FILE")]
    network_config: Option<PathBuf>,
    /// Longest time from a switch's answer to a barrier until its changes are in effect, for switches that answer too
    /// early; the 99.9th percentile of `effect` in a profile [default: 0ns]
    #[arg(long, value_name = "TIME")]
    barrier_lag: Option<TimeSpan>,
    /// Find links through switches of others, too, by probes that these forward as broadcasts
    #[arg(long)]
    discover_islands: bool,
    /// File in which applications keep what has to survive a restart, such as leases of DHCP; it is made if it is not
    /// there. While a controller uses it, another one is refused
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Forward {
    /// To all switches as soon as a host is known
    Proactive,
    /// To all switches on the way with the first packet of a pair of hosts
    ReactivePath,
    /// To each switch that asks, with the first packet of a pair of hosts
    ReactiveHop,
}

impl NetworkArgs {
    /// Refuses these options for another application.
    pub(super) fn refuse_unused(&self) -> anyhow::Result<()> {
        let is_given = [
            ("--forward", self.forward.is_some()),
            ("--ecmp", self.ecmp),
            ("--no-arp-answers", self.no_arp_answers),
            ("--probe-interval", self.probe_interval.is_some()),
            ("--max-hosts", self.max_hosts.is_some()),
            ("--max-hosts-per-port", self.max_hosts_per_port.is_some()),
            ("--port-buffer", self.port_buffer.is_some()),
            ("--network-config", self.network_config.is_some()),
            ("--barrier-lag", self.barrier_lag.is_some()),
            ("--discover-islands", self.discover_islands),
            ("--state", self.state.is_some()),
        ];
        match is_given.iter().find(|(_, given)| *given) {
            Some((option, _)) => anyhow::bail!("{option} goes with --app forwarding"),
            None => Ok(()),
        }
    }

    /// Returns the application, and the writer of its state if that is kept.
    ///
    /// # Errors
    /// Options that exclude each other; a file that cannot be read or is wrong, with the line.
    pub(super) fn make(
        &self,
        idle_timeout: Option<TimeSpan>,
    ) -> anyhow::Result<(NetworkController, Option<StateWriter>)> {
        let mode = match self.forward {
            None | Some(Forward::Proactive) => ForwardingMode::Proactive,
            Some(Forward::ReactivePath) => ForwardingMode::ReactivePath,
            Some(Forward::ReactiveHop) => ForwardingMode::ReactiveHop,
        };
        if self.ecmp && mode != ForwardingMode::Proactive {
            anyhow::bail!("--ecmp goes with --forward proactive: a reactive entry has one way");
        }
        if idle_timeout.is_some() && mode == ForwardingMode::Proactive {
            anyhow::bail!(
                "--idle-timeout goes with --app learning, or with --forward reactive-path or reactive-hop: entries of \
                 --forward proactive stay"
            );
        }
        let default = ForwardingConfig::default();
        let (ecmp, answer_arp) = (self.ecmp, !self.no_arp_answers);
        let idle_timeout = idle_timeout.map_or(default.idle_timeout, |time| time.0);
        let forwarding = ForwardingConfig { mode, ecmp, answer_arp, idle_timeout, ..default };
        let mut config = NetworkConfig { forwarding, ..NetworkConfig::default() };
        let (discovery, hosts) = (&mut config.discovery, &mut config.hosts);
        discovery.interval = self.probe_interval.map_or(discovery.interval, |time| time.0);
        discovery.broadcast = self.discover_islands;
        hosts.max_hosts = self.max_hosts.unwrap_or(hosts.max_hosts);
        hosts.max_hosts_per_port = self.max_hosts_per_port.unwrap_or(hosts.max_hosts_per_port);
        config.tables.barrier_lag = self.barrier_lag.map_or(config.tables.barrier_lag, |time| time.0);
        config.intents.port_buffer = self.port_buffer;
        let apps = match &self.network_config {
            None => Vec::new(),
            Some(path) => {
                let name = path.display().to_string();
                let text = weir_units::read_text(path).with_context(|| format!("--network-config: {name}"))?;
                let file = NetworkFile::parse(&name, &text)?;
                file.apps().map_err(|problem| anyhow::anyhow!("{name}: {problem}"))?
            }
        };
        let mut network = NetworkController::new(config, apps);
        let state = self.state.as_deref().map(|path| StateWriter::attach(path, &mut network)).transpose()?;
        Ok((network, state))
    }
}

fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=10_000_000).contains(count));
    count.ok_or_else(|| format!("found `{text}`, expected a number from 1 to 10000000"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use weir_routing::hosts::HostConfig;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        network: NetworkArgs,
    }

    #[test]
    fn each_option_is_refused_for_another_application_whatever_its_value() {
        let refused = |flags: &[&str]| {
            let flags = Flags::try_parse_from([&["x"], flags].concat()).unwrap_or_else(|error| panic!("{error}"));
            flags.network.refuse_unused().map_err(|error| error.to_string())
        };
        assert_eq!(refused(&[]), Ok(()));
        for flags in [
            ["--forward", "proactive"],
            ["--probe-interval", "25ms"],
            ["--max-hosts", "65536"],
            ["--max-hosts-per-port", "1024"],
            ["--barrier-lag", "0ns"],
        ] {
            assert_eq!(refused(&flags), Err(format!("{} goes with --app forwarding", flags[0])));
        }
    }

    #[test]
    fn defaults_are_those_of_the_help() {
        let (config, hosts) = (NetworkConfig::default(), HostConfig::default());
        let help = <Flags as clap::CommandFactory>::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let defaults = [
            TimeSpan(config.discovery.interval).to_string(),
            hosts.max_hosts.to_string(),
            hosts.max_hosts_per_port.to_string(),
            TimeSpan(config.tables.barrier_lag).to_string(),
        ];
        for default in defaults {
            assert!(help.contains(&format!("[default: {default}]")), "{default}: {help}");
        }
    }
}
