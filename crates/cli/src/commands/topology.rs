//! `weir topology`: shows networks as graphs.
use super::csv::{self, CsvRows};
use anyhow::{Context, anyhow};
use serde_json::{Value, json};
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
    #[arg(long, conflicts_with_all = ["toml", "csv"])]
    json: bool,
    /// Print the result as CSV, with one line
    #[arg(long, conflicts_with = "toml")]
    csv: bool,
}

#[derive(clap::Args)]
struct TopologyListArgs {
    #[command(flatten)]
    what: TopologyInputArgs,
    /// Print the result as CSV, a line for each node and each link
    #[arg(long, conflicts_with = "toml")]
    csv: bool,
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
        TopologyCommand::Show(TopologyShowArgs { what, .. }) | TopologyCommand::List(TopologyListArgs { what, .. })
            if what.toml =>
        {
            what.toml()?
        }
        TopologyCommand::Show(TopologyShowArgs { what, json, csv }) => {
            let topology = what.topology()?;
            let measures = TopologyMeasures::of(&topology);
            let document = json!({ "name": topology.name, "measures": measures });
            match (json, csv) {
                (true, _) => format!("{document}\n"),
                (_, true) => csv_of_measures(&document),
                _ => text::show(&topology, &measures),
            }
        }
        TopologyCommand::List(TopologyListArgs { what, csv: true }) => csv_of_graph(&what.topology()?),
        TopologyCommand::List(TopologyListArgs { what, csv: false }) => text::list(&what.topology()?),
    };
    weir_terminal::output::print(&printed)?;
    Ok(ExitCode::SUCCESS)
}

/// Formats the measures of a network as one line, with the names that JSON has; ranges have two columns.
fn csv_of_measures(document: &Value) -> String {
    const COLUMNS: &[&str] = &[
        "name",
        "measures.nodes",
        "measures.links",
        "measures.degree_min",
        "measures.degree_mean",
        "measures.degree_max",
        "measures.diameter",
        "measures.hops_mean",
        "measures.parts",
        "measures.largest_part",
        "measures.duplicates",
        "rate_min_bps",
        "rate_max_bps",
        "measures.without_rate",
        "delay_min_s",
        "delay_max_s",
        "measures.without_delay",
    ];
    let mut row = document.clone();
    let measures = &document["measures"];
    for (name, list, at) in [
        ("rate_min_bps", "rates_bps", 0),
        ("rate_max_bps", "rates_bps", 1),
        ("delay_min_s", "delays_s", 0),
        ("delay_max_s", "delays_s", 1),
    ] {
        row[name] = measures[list][at].clone();
    }
    CsvRows { kind: "", columns: COLUMNS, rows: vec![row] }.table()
}

/// Formats the nodes and links of a network.
fn csv_of_graph(topology: &Topology) -> String {
    let nodes = topology.nodes.iter().zip(topology.neighbours()).map(|(node, next)| {
        let place = node.place.map(|place| (place.latitude, place.longitude)).unzip();
        json!({"name": node.name, "links": next.len(), "latitude": place.0, "longitude": place.1})
    });
    let links = topology.links.iter().map(|link| {
        let [from, to] = link.ends.map(|end| topology.nodes[end].name.clone());
        let (rate, delay) = (link.rate.map(|rate| rate.0), link.delay.map(|delay| delay.as_secs_f64()));
        json!({"from": from, "to": to, "rate_bps": rate, "delay_s": delay})
    });
    csv::kinds(&[
        CsvRows { kind: "node", columns: &["name", "links", "latitude", "longitude"], rows: nodes.collect() },
        CsvRows { kind: "link", columns: &["from", "to", "rate_bps", "delay_s"], rows: links.collect() },
    ])
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wan() -> Topology {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wan.toml");
        Scenario::read(&file).unwrap().topology()
    }

    #[test]
    fn nodes_and_links_are_lines() {
        let expected = "kind,name,links,latitude,longitude,from,to,rate_bps,delay_s\nnode,west,1,,,,,,\n\
                        node,east,1,,,,,,\nlink,,,,,west,east,20000000,0.01\n";
        assert_eq!(csv_of_graph(&wan()), expected);
    }

    #[test]
    fn measures_are_a_line_with_ranges_as_two_columns() {
        let topology = wan();
        let csv = csv_of_measures(&json!({ "name": topology.name, "measures": TopologyMeasures::of(&topology) }));
        let lines: Vec<&str> = csv.lines().collect();
        assert!(
            lines[0].starts_with("name,nodes,links,degree_min,") && lines[0].contains(",rate_min_bps,rate_max_bps,")
        );
        assert!(lines[1].starts_with("wan,2,1,1,") && lines[1].contains(",20000000,20000000,0,0.01,0.01,0"), "{csv}");
    }
}
