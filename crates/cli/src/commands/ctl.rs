//! `weir ctl`: sends a request to a running switch or controller through its control socket and prints the answer.
mod configuration;
pub(super) mod controller;
mod csv;
mod perf;
mod port_numbers;
mod profile;
mod queues;
mod reload;
mod save;
mod text;
mod virtuals;
mod watch;

use anyhow::bail;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_openflow::model::PortNo;
use weir_switch::ctl::{
    self, CtlClient, CtlProgram, CtlRequest, FlowVerb, GroupDump, GroupVerb, MeterDump, MeterVerb, TraceReply,
};
use weir_switch::{PortSnapshot, SwitchSnapshot};
use weir_terminal::prose::wrapped;

#[derive(clap::Args)]
pub(crate) struct CtlArgs {
    /// Name of the switch or path of its control socket [default: the only running switch]; for `controller` the same
    /// of a controller
    #[arg(long, visible_alias = "switch", value_name = "NAME|PATH", global = true)]
    socket: Option<String>,
    /// Print the result as JSON
    #[arg(long, global = true, conflicts_with = "csv")]
    json: bool,
    /// Print the tables as CSV, with the names of --json as columns: show, counters, perf, profile, vs show,
    /// meter-stats, controller and all that begin with dump. Where there are several tables, the column `kind` says
    /// which
    #[arg(long, global = true)]
    csv: bool,
    /// Address one of the switch's virtual switches instead of the switch itself
    #[arg(long = "vs", value_name = "NAME", global = true)]
    of: Option<String>,
    #[command(subcommand)]
    command: CtlCommand,
}

#[derive(clap::Subcommand)]
enum CtlCommand {
    /// Show ports, tables, control channels and drops
    Show {
        /// Name of the switch, as for --socket
        #[arg(value_name = "SWITCH")]
        switch: Option<String>,
    },
    /// Open and add a port
    AddPort {
        /// N=KIND:NAME[,option=value...]; without N= the lowest free number
        #[arg(value_name = "N=KIND:NAME")]
        port: String,
    },
    /// Remove and close a port
    DelPort {
        /// The port's number or name
        #[arg(value_name = "N|NAME")]
        port: String,
    },
    /// Add a queue to a port, or change one
    SetQueue {
        /// The port's number or name
        #[arg(value_name = "PORT")]
        port: String,
        /// The queue's number; 0 is the default queue
        #[arg(value_name = "QUEUE")]
        queue: u32,
        /// Settings of the queue: min=RATE, max=RATE, buffer=SIZE, priority=0..7; omitted ones get the defaults of a
        /// new queue
        #[arg(value_name = "SETTING")]
        settings: Vec<String>,
    },
    /// Remove a queue of a port; frames waiting in it move to the default queue
    DelQueue {
        /// The port's number or name
        #[arg(value_name = "PORT")]
        port: String,
        /// The queue's number
        #[arg(value_name = "QUEUE")]
        queue: u32,
    },
    /// Show the ports' queues with their counters
    DumpQueues,
    /// Show flow entries with their counters
    DumpFlows {
        /// Entries to show, such as table=0,ip,nw_dst=10.0.0.0/8; as for ovs-ofctl, the switch's name may come first
        #[arg(num_args = 0..=2, value_names = ["SWITCH", "FILTER"])]
        words: Vec<String>,
    },
    /// Add a flow entry
    AddFlow {
        /// The flow entry, such as priority=10,in_port=1,actions=output:2, with numbers or names of ports; the switch's
        /// name may come first
        #[arg(num_args = 1..=2, required = true, value_names = ["SWITCH", "FLOW"])]
        words: Vec<String>,
    },
    /// Change the actions of flow entries
    ModFlows {
        /// A match that selects the entries, and the new actions; the switch's name may come first
        #[arg(num_args = 1..=2, required = true, value_names = ["SWITCH", "FLOW"])]
        words: Vec<String>,
        /// Change only the entry with exactly this match and priority
        #[arg(long)]
        strict: bool,
    },
    /// Delete flow entries
    DelFlows {
        /// Entries to delete; all if omitted. The switch's name may come first
        #[arg(num_args = 0..=2, value_names = ["SWITCH", "FLOW"])]
        words: Vec<String>,
        /// Delete only the entry with exactly this match and priority
        #[arg(long)]
        strict: bool,
    },
    /// Add a group
    AddGroup {
        /// The group, such as group_id=1,type=select,bucket=weight:2,output:1,bucket=output:2; the switch's name may
        /// come first
        #[arg(num_args = 1..=2, required = true, value_names = ["SWITCH", "GROUP"])]
        words: Vec<String>,
    },
    /// Replace a group's type and buckets
    ModGroup {
        /// The complete new group; the switch's name may come first
        #[arg(num_args = 1..=2, required = true, value_names = ["SWITCH", "GROUP"])]
        words: Vec<String>,
    },
    /// Delete groups, and the flow entries that send packets to them
    DelGroups {
        /// Group to delete, as group_id=1; all if omitted. The switch's name may come first
        #[arg(num_args = 0..=2, value_names = ["SWITCH", "GROUP"])]
        words: Vec<String>,
    },
    /// Show groups with their buckets
    DumpGroups {
        /// Name of the switch, as for --socket
        #[arg(value_name = "SWITCH")]
        switch: Option<String>,
    },
    /// Show groups with their counters
    DumpGroupStats {
        /// The group's number; all if omitted
        group: Option<u32>,
    },
    /// Add a meter
    AddMeter {
        /// The meter, such as meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100
        meter: String,
    },
    /// Change a meter's bands
    ModMeter {
        /// The meter's number and its new bands
        meter: String,
    },
    /// Delete meters, and the flow entries that use them
    DelMeters {
        /// Meter to delete, as meter=1; all if omitted
        #[arg(default_value = "", hide_default_value = true)]
        meter: String,
    },
    /// Show meters with their settings
    DumpMeters {
        /// Meter to show, as meter=1; all if omitted
        #[arg(default_value = "", hide_default_value = true)]
        meter: String,
    },
    /// Show meters with their counters
    MeterStats {
        /// Meter to show, as meter=1; all if omitted
        #[arg(default_value = "", hide_default_value = true)]
        meter: String,
    },
    /// Show the present ports with their counters
    DumpPorts {
        /// Name of the switch, as for --socket
        #[arg(value_name = "SWITCH")]
        switch: Option<String>,
    },
    /// Show drops by reason and the traffic of the control channels
    Counters,
    /// Show how the switch would process a packet, and how long each step takes
    Trace {
        /// The ingress port, by number or name
        in_port: String,
        /// The frame in hexadecimal, or a description such as tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80
        packet: String,
    },
    /// Print asynchronous messages as they come: packet-ins with their packets' headers, port status, flow removed
    ///
    /// The switch treats this as a channel of a tool: it is no controller, and `weir ctl show` lists it.
    Monitor {
        /// The switch's name may come first; watch: also prints changes of flow entries, as for ovs-ofctl, with
        /// settings such as watch:!initial,table=0,tcp
        #[arg(num_args = 0..=2, value_names = ["SWITCH", "watch:[SETTING,...]"])]
        words: Vec<String>,
        #[command(flatten)]
        watch: watch::WatchArgs,
    },
    /// Print every message between the switch and its controllers, in both directions
    Snoop {
        /// Name of the switch, as for --socket
        #[arg(value_name = "SWITCH")]
        switch: Option<String>,
        #[command(flatten)]
        watch: watch::WatchArgs,
    },
    /// Show how the switch's threads spend their time: cycles by stage, bursts, table shapes, drops
    Perf {
        /// Seconds to measure, 20 at most
        #[arg(long, value_name = "N", default_value_t = 1.0)]
        seconds: f64,
    },
    /// Show how exactly the switch keeps its profile's times, what waits, and what its tables' levels hold
    Profile {
        /// Write the durations of controllers' commands to this file, as CSV; only commands since the previous
        /// request
        #[arg(long, value_name = "FILE")]
        commands: Option<PathBuf>,
    },
    /// Add, resize, remove and show virtual switches
    #[command(subcommand)]
    Vs(virtuals::CtlVirtualCommand),
    /// Write the switch's present configuration to its configuration file, or to another
    ///
    /// Ports, queues, meters, groups, flow entries without time-outs and virtual switches are saved as they are now,
    /// the other settings as they were given.
    Save {
        /// File to write [default: the file given by --config when the switch was started]
        file: Option<PathBuf>,
        /// Leave flow entries, groups and meters as the configuration file has them: controllers add them
        #[arg(long)]
        no_entries: bool,
    },
    /// Read the switch's configuration file again, and add, change and remove what differs in it; forwarding goes on
    Reload,
    /// Stop the switch
    Stop,
    /// Show a running controller: its switches and their messages by class, threads, applications, links
    ///
    /// A class is what the controller tells apart for urgency. Messages of a class were handled, wait, or were dropped;
    /// those answered are handled ones upon which the controller sent something. A thread is busy while it does not
    /// wait for switches.
    Controller {
        /// Name of the controller, or path of its control socket [default: the only running controller]
        #[arg(value_name = "NAME|PATH")]
        controller: Option<String>,
    },
}

pub(crate) fn run(args: CtlArgs) -> anyhow::Result<ExitCode> {
    let (first, _) = args.command.words();
    anyhow::ensure!(
        first.is_none() || args.socket.is_none(),
        "found the {} twice, as {} and as --socket {}: expected it once",
        if args.command.program() == CtlProgram::Controller { "controller" } else { "switch" },
        first.unwrap_or_default(),
        args.socket.as_deref().unwrap_or_default()
    );
    anyhow::ensure!(
        !args.csv || csv::has_tables(&args.command),
        "found --csv, but this command prints no table; expected --csv with show, counters, perf, profile, vs show, \
         meter-stats, controller or one that begins with dump"
    );
    let program = args.command.program();
    anyhow::ensure!(
        program == CtlProgram::Switch || args.of.is_none(),
        "found --vs with a controller: only switches have virtual switches"
    );
    let path = ctl::find(program, args.socket.as_deref().or(first)).map_err(anyhow::Error::msg)?;
    if let CtlCommand::Save { .. } | CtlCommand::Reload = args.command {
        if args.of.is_some() {
            bail!("this is for the switch itself; ask it without --vs");
        }
        let mut client = CtlClient::connect(&path)?;
        let (text, json) = match args.command {
            CtlCommand::Save { file, no_entries } => save::run(&mut client, file.as_deref(), !no_entries)?,
            _ => reload::run(&mut client)?,
        };
        weir_terminal::output::print(&if args.json { format!("{json:#}\n") } else { wrapped(&text) })?;
        return Ok(ExitCode::SUCCESS);
    }
    let request = match args.of {
        Some(name) => CtlRequest::Of { name, what: Box::new(args.command.request()?) },
        None => args.command.request()?,
    };
    let mut client = CtlClient::connect_to(program, &path)?;
    match &args.command {
        CtlCommand::Snoop { watch, .. } => {
            watch::snoop(&mut client, &request, watch, args.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        CtlCommand::Monitor { words, watch } => {
            let (_, entries) = monitor_words(words)?;
            watch::monitor(client, &request, entries, watch, args.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let answer = client.ask(&request)?;
    let text = match (args.json, args.csv) {
        (true, _) => format!("{:#}\n", args.command.json(answer)?),
        (_, true) => csv::csv(&args.command, answer)?,
        _ => args.command.text(answer)?,
    };
    weir_terminal::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl CtlCommand {
    /// Returns the kind of program that the command asks.
    fn program(&self) -> CtlProgram {
        match self {
            CtlCommand::Controller { .. } => CtlProgram::Controller,
            _ => CtlProgram::Switch,
        }
    }

    /// Returns the name of the switch, if it stands before the other words as for `ovs-ofctl`, and the text after it.
    fn words(&self) -> (Option<&str>, &str) {
        match self {
            CtlCommand::Monitor { words, .. } => (monitor_words(words).ok().and_then(|(switch, _)| switch), ""),
            CtlCommand::Snoop { switch, .. }
            | CtlCommand::Show { switch }
            | CtlCommand::DumpPorts { switch }
            | CtlCommand::DumpGroups { switch } => (switch.as_deref(), ""),
            CtlCommand::Controller { controller } => (controller.as_deref(), ""),
            CtlCommand::AddFlow { words }
            | CtlCommand::ModFlows { words, .. }
            | CtlCommand::AddGroup { words }
            | CtlCommand::ModGroup { words } => switch_and_text(words, |_| false),
            CtlCommand::DumpFlows { words } | CtlCommand::DelFlows { words, .. } | CtlCommand::DelGroups { words } => {
                switch_and_text(words, runs)
            }
            _ => (None, ""),
        }
    }

    fn request(&self) -> anyhow::Result<CtlRequest> {
        let (_, text) = self.words();
        Ok(match self {
            CtlCommand::Show { .. } | CtlCommand::DumpPorts { .. } | CtlCommand::DumpQueues | CtlCommand::Counters => {
                CtlRequest::Show
            }
            CtlCommand::AddPort { port } => CtlRequest::AddPort { port: port.clone() },
            CtlCommand::DelPort { port } => CtlRequest::DelPort { port: port.clone() },
            CtlCommand::SetQueue { port, queue, settings } => {
                let settings = settings.iter().map(|setting| format!(":{setting}"));
                CtlRequest::SetQueue { port: port.clone(), queue: format!("{queue}{}", settings.collect::<String>()) }
            }
            CtlCommand::DelQueue { port, queue } => CtlRequest::DelQueue { port: port.clone(), queue: *queue },
            CtlCommand::DumpFlows { .. } => CtlRequest::DumpFlows { filter: text.to_owned() },
            CtlCommand::AddFlow { .. } => flow_mod(FlowVerb::Add, text),
            CtlCommand::ModFlows { strict: false, .. } => flow_mod(FlowVerb::Modify, text),
            CtlCommand::ModFlows { strict: true, .. } => flow_mod(FlowVerb::ModifyStrict, text),
            CtlCommand::DelFlows { strict: false, .. } => flow_mod(FlowVerb::Delete, text),
            CtlCommand::DelFlows { strict: true, .. } => flow_mod(FlowVerb::DeleteStrict, text),
            CtlCommand::AddGroup { .. } => group_mod(GroupVerb::Add, text),
            CtlCommand::ModGroup { .. } => group_mod(GroupVerb::Modify, text),
            CtlCommand::DelGroups { .. } => group_mod(GroupVerb::Delete, text),
            CtlCommand::DumpGroups { .. } => CtlRequest::DumpGroups,
            CtlCommand::DumpGroupStats { group } => CtlRequest::DumpGroupStats { group: *group },
            CtlCommand::AddMeter { meter } => meter_mod(MeterVerb::Add, meter),
            CtlCommand::ModMeter { meter } => meter_mod(MeterVerb::Modify, meter),
            CtlCommand::DelMeters { meter } => meter_mod(MeterVerb::Delete, meter),
            CtlCommand::DumpMeters { meter } => CtlRequest::DumpMeters { meter: meter.clone() },
            CtlCommand::MeterStats { meter } => CtlRequest::MeterStats { meter: meter.clone() },
            CtlCommand::Trace { in_port, packet } => {
                CtlRequest::Trace { in_port: in_port.clone(), packet: packet.clone() }
            }
            CtlCommand::Profile { commands } => CtlRequest::Profile { commands: commands.is_some() },
            CtlCommand::Snoop { .. } => CtlRequest::Snoop,
            CtlCommand::Monitor { .. } => CtlRequest::Monitor,
            CtlCommand::Perf { seconds } => CtlRequest::Perf { seconds: *seconds },
            CtlCommand::Vs(command) => command.request()?,
            CtlCommand::Save { .. } | CtlCommand::Reload => CtlRequest::Configuration,
            CtlCommand::Stop => CtlRequest::Stop,
            CtlCommand::Controller { .. } => CtlRequest::ShowController,
        })
    }

    /// Converts the answer to the JSON document that is printed with `--json`.
    fn json(&self, answer: Value) -> anyhow::Result<Value> {
        Ok(match self {
            CtlCommand::DumpPorts { .. } => serde_json::json!(present(&read::<SwitchSnapshot>(answer)?)),
            CtlCommand::DumpQueues => queues::json(&read(answer)?),
            CtlCommand::Counters => counters_json(&read(answer)?),
            CtlCommand::Profile { commands } => profile::json(&read(answer)?, commands.as_deref())?,
            _ => answer,
        })
    }

    /// Converts the answer to text for a terminal.
    fn text(&self, mut answer: Value) -> anyhow::Result<String> {
        Ok(match self {
            CtlCommand::Show { .. } => wrapped(&text::show(&read(answer)?)),
            CtlCommand::DumpPorts { .. } => text::port_counters(&present(&read::<SwitchSnapshot>(answer)?)),
            CtlCommand::DumpQueues => queues::text(&read(answer)?),
            CtlCommand::Counters => wrapped(&text::counters(&read(answer)?)),
            CtlCommand::Perf { .. } => wrapped(&perf::text(&read(answer)?)),
            CtlCommand::Profile { commands } => wrapped(&profile::text(&read(answer)?, commands.as_deref())?),
            CtlCommand::DumpFlows { .. } => text::flows(&read(answer)?),
            CtlCommand::DumpGroups { .. } | CtlCommand::DumpGroupStats { .. } => {
                read::<GroupDump>(answer)?.groups.iter().map(|group| format!("{}\n", group.text)).collect()
            }
            CtlCommand::AddGroup { .. } | CtlCommand::ModGroup { .. } | CtlCommand::DelGroups { .. } => String::new(),
            CtlCommand::DumpMeters { .. } | CtlCommand::MeterStats { .. } => {
                read::<MeterDump>(answer)?.meters.into_iter().map(|meter| meter.text).collect()
            }
            CtlCommand::AddMeter { .. } | CtlCommand::ModMeter { .. } | CtlCommand::DelMeters { .. } => String::new(),
            CtlCommand::Trace { .. } => format!("{}\n", read::<TraceReply>(answer)?.text.trim_end()),
            CtlCommand::AddPort { .. } => format!("port {} is added\n", read::<PortNo>(answer["added"].take())?),
            CtlCommand::DelPort { .. } => format!("port {} is removed\n", read::<PortNo>(answer["removed"].take())?),
            CtlCommand::Vs(command) => command.text(answer)?,
            CtlCommand::Stop => "the switch stops\n".to_owned(),
            CtlCommand::Controller { .. } => wrapped(&controller::text(&read(answer)?)),
            // These print as they go.
            CtlCommand::Monitor { .. } | CtlCommand::Snoop { .. } => String::new(),
            CtlCommand::AddFlow { .. }
            | CtlCommand::ModFlows { .. }
            | CtlCommand::DelFlows { .. }
            | CtlCommand::SetQueue { .. }
            | CtlCommand::Save { .. }
            | CtlCommand::Reload
            | CtlCommand::DelQueue { .. } => String::new(),
        })
    }
}

/// Splits the words of `monitor` into the name of a switch and `watch:...`.
fn monitor_words(words: &[String]) -> anyhow::Result<(Option<&str>, Option<&str>)> {
    match words {
        [] => Ok((None, None)),
        [one] if one.starts_with("watch:") => Ok((None, Some(one))),
        [switch] => Ok((Some(switch), None)),
        [switch, watch] if watch.starts_with("watch:") => Ok((Some(switch), Some(watch))),
        [_, other, ..] => bail!("found `{other}`, expected watch: or watch:SETTING,..."),
    }
}

/// Splits words into the name of a switch and a text. One word alone is the switch if `runs` says that a switch of this
/// name runs.
fn switch_and_text(words: &[String], runs: impl Fn(&str) -> bool) -> (Option<&str>, &str) {
    match words {
        [] => (None, ""),
        [one] if runs(one) => (Some(one), ""),
        [one] => (None, one),
        [switch, text, ..] => (Some(switch), text),
    }
}

/// Returns true if a word is the name of a running switch and cannot be part of a flow entry's or group's text.
fn runs(word: &str) -> bool {
    !word.contains(['=', ',']) && ctl::find(CtlProgram::Switch, Some(word)).is_ok_and(|socket| socket.exists())
}

fn flow_mod(command: FlowVerb, flow: &str) -> CtlRequest {
    CtlRequest::FlowMod { command, flow: flow.to_owned() }
}

fn group_mod(command: GroupVerb, group: &str) -> CtlRequest {
    CtlRequest::GroupMod { command, group: group.to_owned() }
}

fn meter_mod(command: MeterVerb, meter: &str) -> CtlRequest {
    CtlRequest::MeterMod { command, meter: meter.to_owned() }
}

fn read<T: DeserializeOwned>(answer: Value) -> anyhow::Result<T> {
    Ok(serde_json::from_value(answer)?)
}

/// Returns the ports whose devices are present.
fn present(snapshot: &SwitchSnapshot) -> Vec<&PortSnapshot> {
    snapshot.ports.iter().filter(|port| port.present).collect()
}

fn counters_json(switch: &SwitchSnapshot) -> Value {
    serde_json::json!({
        "ports": present(switch),
        "tables": switch.tables,
        "channels": switch.channels,
        "drops": switch.drops.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "virtual_switches": switch.virtual_switches.iter().map(|cut| (&cut.name, virtuals::dropped(cut)))
            .collect::<std::collections::BTreeMap<_, _>>(),
        "packet_ins": switch.packet_ins,
        "packet_ins_dropped": switch.packet_ins_dropped,
        "packet_ins_limited": switch.packet_ins_limited,
    })
}

#[cfg(test)]
mod tests {
    use super::text::{counters, show};
    use super::*;

    /// A switch without ports, with one virtual switch that has dropped packets at a crosspoint.
    pub(super) fn with_virtual_switch() -> SwitchSnapshot {
        let port = |number: u32, dropped: u64| {
            serde_json::json!({
                "number": number, "port": number, "rate_in": "1Mbit/s", "rate_out": "1Mbit/s", "ceiling": null,
                "rx_packets": 10, "rx_bytes": 640, "tx_packets": 4, "tx_bytes": 256, "dropped": dropped,
                "queued_bytes": 64,
            })
        };
        let gold = serde_json::json!({
            "name": "gold", "datapath_id": 0x101, "ends_in_s": null, "ports": [port(1, 0), port(2, 845_001)],
            "crosspoints": [{
                "from": 1, "to": 2, "packets": 8, "bytes": 512, "queued_bytes": 128, "peak_bytes": 9000,
                "dropped": {"buffer_full": 845_000},
            }],
            "spec": null,
        });
        let switch = serde_json::json!({
            "name": "s1", "datapath_id": 1, "uptime_s": 1.0, "ports": [], "virtual_switches": [gold], "tables": [],
            "channels": [], "drops": [], "packet_ins": 0, "packet_ins_dropped": 0, "packet_ins_limited": 0,
        });
        serde_json::from_value(switch).unwrap()
    }

    #[test]
    fn the_switch_may_stand_before_the_text() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let split = |line: &str| {
            let words = words(line);
            let (switch, text) = switch_and_text(&words, |word| word == "s1");
            (switch.map(str::to_owned), text.to_owned())
        };
        let some = |switch: &str, text: &str| (Some(switch.to_owned()), text.to_owned());
        assert_eq!(split(""), (None, String::new()));
        assert_eq!(split("ip"), (None, "ip".to_owned()));
        assert_eq!(split("s1"), some("s1", ""));
        assert_eq!(split("s1 ip,in_port=1"), some("s1", "ip,in_port=1"));
        assert_eq!(split("s2 actions=drop"), some("s2", "actions=drop"));
    }

    #[test]
    fn without_a_table_there_is_no_csv() {
        let args = CtlArgs { socket: None, json: false, csv: true, of: None, command: CtlCommand::Stop };
        let error = run(args).unwrap_err().to_string();
        assert!(
            error.starts_with("found --csv, but this command prints no table; expected --csv with show,"),
            "{error}"
        );
    }

    #[test]
    fn a_switch_shows_its_virtual_switches_and_their_drops() {
        let switch = with_virtual_switch();
        let shown = show(&switch);
        let line = shown.lines().find(|line| line.trim_start().starts_with("gold")).expect("a line for gold");
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["gold", "0x0000000000000101", "2", "20", "8", "128B", "845001"], "{shown}");
        let dropped = "\ndropped: virtual switch gold buffer full 845000, virtual switch gold untagged 1\n";
        assert!(shown.ends_with(dropped), "{shown}");
        assert!(counters(&switch).ends_with(dropped));
        assert_eq!(counters_json(&switch)["virtual_switches"]["gold"]["buffer_full"], 845_000);
        let without = SwitchSnapshot { virtual_switches: Vec::new(), ..switch };
        assert!(show(&without).ends_with("\nno drops\n"));
    }
}
