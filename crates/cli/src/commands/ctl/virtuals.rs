//! `weir ctl vs`: adds, resizes, removes and shows virtual switches.
use super::read;
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use weir_switch::ctl::CtlRequest;
use weir_switch::{CpuShareSnapshot, SwitchSnapshot, VirtualPortSnapshot, VirtualSwitchSnapshot};
use weir_terminal::table::ReportTable;
use weir_units::{Bps, ByteSize};

#[derive(clap::Subcommand)]
pub(super) enum CtlVirtualCommand {
    /// Add a virtual switch
    Add {
        /// A TOML file with the keys of a scenario's [[switch.virtual]], or these keys themselves: name=gold
        /// dpid=0x101 'ports=[{port=1,rate="100Mbit/s"},{port=2,rate="100Mbit/s"}]' buffer=24kB
        #[arg(value_name = "FILE|KEY=VALUE", required = true)]
        what: Vec<String>,
    },
    /// Change a virtual switch while it forwards: its ports, rates, buffers, disciplines, selectors,
    /// lifetime, controllers, listeners, fail mode
    Resize {
        /// Name of the virtual switch
        name: String,
        /// A file or keys, as for `add`; omitted keys keep their value
        #[arg(value_name = "FILE|KEY=VALUE", required = true)]
        what: Vec<String>,
    },
    /// Remove a virtual switch: its channels are closed and frames in its queues are dropped
    Remove {
        /// Name of the virtual switch
        name: String,
    },
    /// Show ports, crosspoints and counters of virtual switches
    Show {
        /// Name of the virtual switch; all if omitted
        name: Option<String>,
    },
}

impl CtlVirtualCommand {
    /// Returns the request for the switch.
    ///
    /// # Errors
    /// A file cannot be read, or an argument is neither a file nor a key with a value.
    pub(super) fn request(&self) -> anyhow::Result<CtlRequest> {
        Ok(match self {
            CtlVirtualCommand::Add { what } => {
                let (text, file) = described(what)?;
                CtlRequest::AddVirtual { text, file }
            }
            CtlVirtualCommand::Resize { name, what } => {
                let (text, file) = described(what)?;
                CtlRequest::ResizeVirtual { name: name.clone(), text, file }
            }
            CtlVirtualCommand::Remove { name } => CtlRequest::RemoveVirtual { name: name.clone() },
            CtlVirtualCommand::Show { name } => CtlRequest::ShowVirtual { name: name.clone() },
        })
    }

    /// Converts the answer to text for a terminal.
    pub(super) fn text(&self, answer: Value) -> anyhow::Result<String> {
        Ok(match self {
            CtlVirtualCommand::Add { .. } => added(&answer),
            CtlVirtualCommand::Resize { name, .. } => format!("virtual switch {name} is resized\n"),
            CtlVirtualCommand::Remove { name } => format!("virtual switch {name} is removed\n"),
            CtlVirtualCommand::Show { .. } => show(&read::<Vec<VirtualSwitchSnapshot>>(answer)?),
        })
    }
}

/// Returns the TOML text that describes a virtual switch, and its source: a file name or `arguments`.
fn described(what: &[String]) -> anyhow::Result<(String, String)> {
    if let [file] = what
        && !file.contains('=')
    {
        let text = weir_units::read_text(Path::new(file)).with_context(|| format!("{file}: cannot read it"))?;
        return Ok((text, file.clone()));
    }
    let mut text = String::new();
    for argument in what {
        let Some((key, value)) = argument.split_once('=') else {
            bail!("found `{argument}`, expected one file, or KEY=VALUE such as buffer=24kB");
        };
        // Text that is no TOML value is a string without quotes, such as 24kB.
        let is_value = toml::from_str::<toml::Table>(&format!("value = {value}")).is_ok();
        let value = if is_value { value.to_owned() } else { toml::Value::from(value).to_string() };
        let _ = writeln!(text, "{key} = {value}");
    }
    Ok((text, "arguments".to_owned()))
}

fn added(answer: &Value) -> String {
    let listeners: Vec<&str> = answer["listen"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let name = answer["added"].as_str().unwrap_or_default();
    let listens = if listeners.is_empty() { String::new() } else { format!(", listens on {}", listeners.join(", ")) };
    format!("virtual switch {name} is added{listens}\n")
}

/// Lists the virtual switches of a switch, one line for each; empty without any.
pub(super) fn list(switch: &SwitchSnapshot) -> String {
    if switch.virtual_switches.is_empty() {
        return String::new();
    }
    let header = ["virtual switch", "dpid", "ports", "rx packets", "tx packets", "waiting", "dropped"];
    let mut rows = ReportTable::new(header).numbers(2..7);
    for cut in &switch.virtual_switches {
        rows.row([
            cut.name.clone(),
            format!("{:#018x}", cut.datapath_id),
            cut.ports.len().to_string(),
            sum(cut, |port| port.rx_packets).to_string(),
            sum(cut, |port| port.tx_packets).to_string(),
            ByteSize(sum(cut, |port| port.queued_bytes)).to_string(),
            all_dropped(cut).to_string(),
        ]);
    }
    format!("\n{rows}\n")
}

/// Returns the sum of a figure over a virtual switch's ports.
pub(super) fn sum(cut: &VirtualSwitchSnapshot, of: fn(&VirtualPortSnapshot) -> u64) -> u64 {
    cut.ports.iter().map(of).sum()
}

/// Returns the number of all packets that a virtual switch dropped.
pub(super) fn all_dropped(cut: &VirtualSwitchSnapshot) -> u64 {
    dropped(cut).values().sum::<u64>() + cut.time.dropped
}

/// Returns the packets dropped by the tables and in the queues of a virtual switch, by reason. Packets that waited too
/// long for its turn are not included: the switch's own drops have them.
pub(super) fn dropped(cut: &VirtualSwitchSnapshot) -> BTreeMap<String, u64> {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, count) in cut.crosspoints.iter().flat_map(|point| &point.dropped) {
        *reasons.entry(reason.clone()).or_default() += count;
    }
    let in_queues: u64 = reasons.values().sum();
    // What ports dropped and no crosspoint did is frames whose VLAN tag could not be put on.
    let untagged = cut.ports.iter().map(|port| port.dropped).sum::<u64>().saturating_sub(in_queues);
    if untagged > 0 {
        reasons.insert("untagged".to_owned(), untagged);
    }
    for (reason, count) in &cut.drops {
        *reasons.entry(reason.clone()).or_default() += count;
    }
    reasons
}

/// Lists the packets that virtual switches dropped, one text for each virtual switch and reason.
pub(super) fn drops(switch: &SwitchSnapshot) -> impl Iterator<Item = String> {
    switch.virtual_switches.iter().flat_map(|cut| {
        let text = |(reason, count): (String, u64)| {
            format!("virtual switch {} {} {count}", cut.name, reason.replace('_', " "))
        };
        dropped(cut).into_iter().map(text)
    })
}

fn show(all: &[VirtualSwitchSnapshot]) -> String {
    if all.is_empty() {
        return "no virtual switches\n".to_owned();
    }
    all.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(cut: &VirtualSwitchSnapshot) -> String {
    let ends = cut.ends_in_s.map_or_else(String::new, |s| format!(", ends in {s:.0} s"));
    let mut text = format!("virtual switch {}, dpid {:#018x}{ends}\n\n", cut.name, cut.datapath_id);
    let header = [
        "port",
        "of port",
        "vlan",
        "rate in",
        "rate out",
        "ceiling",
        "received",
        "sent",
        "bytes sent",
        "dropped",
        "waiting",
    ];
    let mut ports = ReportTable::new(header).groups([6]).numbers(0..3).numbers(6..11);
    for port in &cut.ports {
        ports.row([
            port.number.to_string(),
            port.port.to_string(),
            port.vlan.map_or_else(|| "-".to_owned(), |vlan| vlan.to_string()),
            port.rate_in.to_string(),
            port.rate_out.to_string(),
            port.ceiling.map_or_else(|| "-".to_owned(), |ceiling: Bps| ceiling.to_string()),
            port.rx_packets.to_string(),
            port.tx_packets.to_string(),
            port.tx_bytes.to_string(),
            port.dropped.to_string(),
            ByteSize(port.queued_bytes).to_string(),
        ]);
    }
    let _ = writeln!(text, "{ports}");
    let _ = write!(text, "{}", time(&cut.time));
    if cut.crosspoints.is_empty() {
        return text;
    }
    let header = ["from", "to", "packets", "bytes", "waiting", "most waiting", "dropped"];
    let mut points = ReportTable::new(header).keys(2).numbers(0..6);
    for at in &cut.crosspoints {
        let dropped: Vec<String> =
            at.dropped.iter().map(|(reason, count)| format!("{} {count}", reason.replace('_', " "))).collect();
        points.row([
            at.from.to_string(),
            at.to.to_string(),
            at.packets.to_string(),
            at.bytes.to_string(),
            ByteSize(at.queued_bytes).to_string(),
            ByteSize(at.peak_bytes).to_string(),
            if dropped.is_empty() { "-".to_owned() } else { dropped.join(", ") },
        ]);
    }
    let _ = writeln!(text, "\n{points}");
    text
}

/// Describes the virtual switch's share of the engine's time; empty if the engine was never overloaded.
fn time(time: &CpuShareSnapshot) -> String {
    if time.used_s == 0.0 {
        return String::new();
    }
    let CpuShareSnapshot { weight, part, used_s, waiting, dropped } = time;
    let part = part * 100.0;
    format!(
        "\nengine under load: {part:.1}% of the time ({used_s:.3} s), weight {weight}, {waiting} packets wait, {dropped} dropped\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_once_it_was_short() {
        assert_eq!(time(&CpuShareSnapshot::default()), "");
        let had = CpuShareSnapshot { weight: 15.0, part: 0.253, used_s: 1.25, waiting: 3, dropped: 7 };
        let expected = "\nengine under load: 25.3% of the time (1.250 s), weight 15, 3 packets wait, 7 dropped\n";
        assert_eq!(time(&had), expected);
    }

    #[test]
    fn keys_on_the_command_line_are_lines_of_a_file() {
        let what = ["name=gold", "dpid=0x101", "buffer=24kB", "ports=[{port=1,rate=\"1Mbit/s\"}]"].map(str::to_owned);
        let (text, file) = described(&what).unwrap();
        assert_eq!(text, "name = \"gold\"\ndpid = 0x101\nbuffer = \"24kB\"\nports = [{port=1,rate=\"1Mbit/s\"}]\n");
        assert_eq!(file, "arguments");
        assert!(described(&["buffer=1kB".to_owned(), "x".to_owned()]).unwrap_err().to_string().contains("`x`"));
    }
}
