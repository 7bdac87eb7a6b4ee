//! `weir net`: shows and changes a network under a controller, through the controller's interface.
mod connection;
mod intent;
mod many;
mod outcomes;
mod rows;
pub(in crate::commands) mod text;
mod watch;

use anyhow::Context as _;
use connection::{ConnectionArgs, NetClient};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use weir_api::client::encoded;
use weir_routing::SwitchPort;
use weir_routing::intents::{IntentStatus, WhatIf, WhatIfAnswer};
use weir_routing::request::PathState;
use weir_routing::state::NetworkState;
use weir_terminal::output;

#[derive(clap::Args)]
pub(crate) struct NetArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Print the result as JSON; watch prints an object per line
    #[arg(long, global = true, conflicts_with = "csv")]
    json: bool,
    /// Print the tables as CSV, with the names of --json as columns. Where there are several tables, the column `kind`
    /// says which
    #[arg(long, global = true)]
    csv: bool,
    #[command(subcommand)]
    command: NetCommand,
}

#[derive(clap::Subcommand)]
enum NetCommand {
    /// Show the whole network
    Show,
    /// Show the switches and their ports
    Switches,
    /// Show the links between switches, with delay and load
    Links,
    /// Show the hosts, and where they are
    Hosts,
    /// Show ways between two hosts or ports
    Path {
        /// Source: host (Ethernet address, IP address or name) or port (DPID:PORT)
        from: String,
        /// Destination, as FROM
        to: String,
        /// Most ways to show
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=64))]
        most: u8,
    },
    /// Add, show and remove intents: packets that the network has to carry, and how
    Intent {
        #[command(subcommand)]
        command: intent::NetIntentCommand,
    },
    /// Show what an intent or a failure would do, before it happens
    WhatIf {
        #[command(subcommand)]
        case: NetCase,
    },
    /// Print events as they happen, until Ctrl-C
    Watch(watch::NetWatchArgs),
    /// Print the switches and links as node-link JSON, which networkx and `weir topology` read
    Topology {
        /// File to write instead
        #[arg(long, value_name = "FILE")]
        save: Option<PathBuf>,
    },
}

#[derive(clap::Subcommand)]
enum NetCase {
    /// A link fails
    Link {
        /// End of the link, as DPID:PORT
        at: SwitchPort,
    },
    /// A switch fails
    Switch {
        /// Datapath id in hexadecimal
        dpid: String,
    },
    /// An intent is added
    Intent(intent::IntentArgs),
}

pub(crate) fn run(args: NetArgs) -> anyhow::Result<ExitCode> {
    let client = args.connection.client()?;
    let form = OutputForm { json: args.json, csv: args.csv };
    match args.command {
        NetCommand::Show => {
            form.print(&client.get("/network")?, rows::network, |state: &NetworkState| text::network(state))?
        }
        NetCommand::Switches => {
            form.print(&client.get("/switches")?, rows::ports, |all: &Vec<_>| text::switches(all))?
        }
        NetCommand::Links => form.print(&client.get("/links")?, rows::links, |all: &Vec<_>| text::links(all))?,
        NetCommand::Hosts => form.print(&client.get("/hosts")?, rows::hosts, |all: &Vec<_>| text::hosts(all))?,
        NetCommand::Path { from, to, most } => {
            let path = format!("/paths?from={}&to={}&most={most}", encoded(&from), encoded(&to));
            form.print(&client.get(&path)?, rows::paths, |all: &Vec<PathState>| text::paths(all))?;
        }
        NetCommand::Intent { command } => return command.run(&client, form),
        NetCommand::WhatIf { case } => {
            let case = case.case()?;
            let effect = client.send("POST", "/what-if", Some(&json!(case)))?;
            form.print(&effect, rows::effect, |effect: &WhatIfAnswer| text::effect(effect))?;
        }
        NetCommand::Watch(watching) => watch::run(&client, &watching, form)?,
        NetCommand::Topology { save } => topology(&client, save)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl NetCase {
    fn case(self) -> anyhow::Result<WhatIf> {
        Ok(match self {
            NetCase::Link { at } => WhatIf::LinkFails { at },
            NetCase::Switch { dpid } => WhatIf::SwitchFails { dpid },
            NetCase::Intent(args) => WhatIf::Intent { intent: args.intent()? },
        })
    }
}

fn topology(client: &NetClient, save: Option<PathBuf>) -> anyhow::Result<()> {
    let text = format!("{:#}\n", client.get("/topology")?);
    match save {
        Some(path) => output::write_file(&path, &text).with_context(|| format!("cannot write {}", path.display())),
        None => output::print(&text),
    }
}

/// Form in which answers are printed.
#[derive(Debug, Clone, Copy)]
struct OutputForm {
    json: bool,
    csv: bool,
}

impl OutputForm {
    /// Prints an answer as JSON, by `rows` as CSV, or by `text`.
    fn print<T: serde::de::DeserializeOwned>(
        self,
        answer: &Value,
        rows: impl Fn(&Value) -> String,
        text: impl Fn(&T) -> String,
    ) -> anyhow::Result<()> {
        output::print(&match (self.json, self.csv) {
            (true, _) => format!("{answer:#}\n"),
            (_, true) => rows(answer),
            _ => text(&read(answer)?),
        })
    }
}

/// Reads what a server has answered.
fn read<T: serde::de::DeserializeOwned>(answer: &Value) -> anyhow::Result<T> {
    T::deserialize(answer).context("the controller's answer is not as expected; is it another version of weir?")
}

/// Prints intents.
fn print_intents(form: OutputForm, answer: &Value) -> anyhow::Result<()> {
    form.print(answer, rows::intents, |all: &Vec<IntentStatus>| text::intents(all))
}
