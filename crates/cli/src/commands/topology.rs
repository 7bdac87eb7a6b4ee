//! `weir topology`: shows networks as graphs.
use anyhow::{Context, anyhow};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weir_scenario::{Scenario, expand_topology};
use weir_topology::{Topology, TopologyMeasures, text};
use weir_units::{Bps, TimeSpan};

/// Show networks. FILE is a scenario (`.toml`), or a topology: `.graphml` (Topology Zoo), `.json` (TopoHub), `.xml`
/// (SNDlib), `.intra` (Rocketfuel)
#[derive(clap::Args)]
pub(crate) struct TopologyArgs {
    #[command(subcommand)]
    command: TopologyCommand,
}

#[derive(clap::Subcommand)]
enum TopologyCommand {
    /// Show the measures of a network: nodes, links, degree, diameter, rates, delays, unconnected parts
    Show(TopologyShowArgs),
    /// List a network's nodes and links
    List(TopologyListArgs),
}

#[derive(clap::Args)]
struct TopologyShowArgs {
    #[command(flatten)]
    what: TopologyInputArgs,
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "toml")]
    json: bool,
}

#[derive(clap::Args)]
struct TopologyListArgs {
    #[command(flatten)]
    what: TopologyInputArgs,
}

#[derive(clap::Args)]
struct TopologyInputArgs {
    /// A scenario or a topology
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the network as an ordinary scenario with every switch, host and link, for example as a start for your
    /// own
    #[arg(long)]
    toml: bool,
    /// With --toml: rate of links that have none in the topology file
    #[arg(long, requires = "toml", value_name = "RATE")]
    rate: Option<Bps>,
    /// With --toml: delay of links that have none in the topology file
    #[arg(long, requires = "toml", value_name = "TIME")]
    delay: Option<TimeSpan>,
    /// With --toml: hosts at each switch [default: 1]
    #[arg(long, requires = "toml", value_name = "N")]
    hosts: Option<u32>,
    /// With --toml: treatment of parallel links [default: refuse]
    #[arg(long, requires = "toml", value_parser = ["refuse", "merge", "keep"])]
    duplicates: Option<String>,
    /// With --toml: treatment of parts without a link to the rest [default: refuse]
    #[arg(long, requires = "toml", value_parser = ["refuse", "largest", "keep"])]
    unconnected: Option<String>,
}

pub(crate) fn run(args: TopologyArgs) -> anyhow::Result<ExitCode> {
    let printed = match args.command {
        TopologyCommand::Show(TopologyShowArgs { what, .. }) | TopologyCommand::List(TopologyListArgs { what })
            if what.toml =>
        {
            what.toml()?
        }
        TopologyCommand::Show(TopologyShowArgs { what, json }) => {
            let topology = what.topology()?;
            let measures = TopologyMeasures::of(&topology);
            match json {
                true => format!("{}\n", json!({ "name": topology.name, "measures": measures })),
                false => text::show(&topology, &measures),
            }
        }
        TopologyCommand::List(TopologyListArgs { what }) => text::list(&what.topology()?),
    };
    weir_terminal::output::print(&printed)?;
    Ok(ExitCode::SUCCESS)
}

impl TopologyInputArgs {
    fn is_scenario(&self) -> bool {
        self.file.extension().is_some_and(|ending| ending == "toml")
    }

    fn topology(&self) -> anyhow::Result<Topology> {
        match self.is_scenario() {
            true => Ok(Scenario::read(&self.file).map_err(|error| anyhow!("{error}"))?.topology()),
            false => weir_topology::read(&self.file).map_err(|error| anyhow!("{error}")),
        }
    }

    fn toml(&self) -> anyhow::Result<String> {
        let text = match self.is_scenario() {
            true => weir_units::read_text(&self.file)
                .with_context(|| format!("{}: cannot read the scenario", self.file.display()))?,
            false => self.scenario()?,
        };
        // The scenario refers to the topology file by a path relative to the scenario's folder.
        let file = if self.is_scenario() { self.file.clone() } else { self.file.with_extension("toml") };
        expand_topology(&text, &file.display().to_string()).map_err(|error| anyhow!("{error}"))
    }

    /// Returns the text of a scenario that consists of the topology file only.
    fn scenario(&self) -> anyhow::Result<String> {
        let name = self.file.file_name().unwrap_or_default().to_str();
        let name = name.with_context(|| format!("{}: expected a name of UTF-8", self.file.display()))?;
        let mut topology = toml::Table::new();
        topology.insert("file".to_owned(), name.into());
        let texts = [
            ("rate", self.rate.map(|rate| format!("{}bit/s", rate.0))),
            ("delay", self.delay.map(|delay| delay.to_string())),
            ("duplicates", self.duplicates.clone()),
            ("unconnected", self.unconnected.clone()),
        ];
        topology.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.into()))));
        topology.extend(self.hosts.map(|hosts| ("hosts".to_owned(), i64::from(hosts).into())));
        let stem = self.file.file_stem().unwrap_or(Path::new("topology").as_os_str()).to_string_lossy().into_owned();
        let scenario =
            toml::Table::from_iter([("name".to_owned(), stem.into()), ("topology".to_owned(), topology.into())]);
        toml::to_string(&scenario).context("writing the scenario")
    }
}
