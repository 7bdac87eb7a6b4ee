//! Parses commands of a lab's prompt and checks them against the scenario. No network is needed.
use std::fmt::Write as _;
use std::time::Duration;
use weir_scenario::Scenario;
use weir_units::{Bps, ByteSize, TimeSpan};

/// Default time for an answer of `pingall`.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// Default length of `iperf`.
const IPERF_TIME: Duration = Duration::from_secs(3);
/// Longest delay of a link, equal to the limit of scenario files.
const MOST_DELAY: Duration = Duration::from_secs(10);

/// Text that `help` prints.
pub const HELP: &str = "\
nodes                        hosts and switches, and where switches are reached
links                        links with what they do to frames (net is the same)
pingall [TIME]               every host pings every other; TIME for an answer (1s)
HOST COMMAND...              run any command in a host; names of hosts become addresses: h1 ping -c 3 h2
HOST COMMAND... &            the same in the background, until the lab ends
on HOST COMMAND...           the same for hosts with the name of a command
iperf HOST HOST [TIME]       how much TCP brings from one to the other (3s)
link NODE NODE down|up       pull a link out, put it back
link NODE NODE SETTING...    rate 10Mbit/s, delay 5ms, buffer 64kB, jitter 1ms, loss 1%; rate none
dump SWITCH                  its flow entries
show SWITCH                  its ports and control channels
traffic                      the scenario's traffic, with a report
certificate                  how far times can be trusted so far
shell HOST                   a shell in a host (terminals only)
sleep TIME                   wait
quit                         take everything down (exit and the end of input are the same)";

/// Names of commands.
pub(super) const COMMANDS: [&str; 16] = [
    "help",
    "nodes",
    "links",
    "net",
    "pingall",
    "iperf",
    "link",
    "dump",
    "show",
    "traffic",
    "certificate",
    "shell",
    "sleep",
    "on",
    "quit",
    "exit",
];

/// Command for a lab. Hosts, switches and links are indices in the scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptCommand {
    /// No action: an empty line, or a comment.
    Nothing,
    /// Prints the commands.
    Help,
    /// Lists hosts and switches.
    Nodes,
    /// Lists links and their settings.
    Links,
    /// Pings from every host to every other.
    PingAll {
        /// Longest time for an answer.
        timeout: Duration,
    },
    /// Sends by TCP.
    Iperf {
        /// Index of the sending host.
        from: usize,
        /// Index of the receiving host.
        to: usize,
        /// Length of sending.
        duration: Duration,
    },
    /// Changes settings of links.
    Link {
        /// Links to change.
        links: Vec<LabLinkId>,
        /// Changes, in order.
        changes: Vec<LinkChange>,
    },
    /// Lists a switch's flow entries.
    Dump(usize),
    /// Shows a switch's ports and channels.
    Show(usize),
    /// Runs the scenario's traffic.
    Traffic,
    /// Prints how far times can be trusted.
    Certificate,
    /// Runs a shell in a host.
    Shell(usize),
    /// Runs a command in a host.
    Run {
        /// Index of the host.
        host: usize,
        /// Line for a shell, in which names of hosts are replaced by their addresses.
        line: String,
        /// True to return without waiting for its end.
        background: bool,
    },
    /// Waits for this time.
    Sleep(Duration),
    /// Ends the prompt.
    Quit,
}

/// Link of the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabLinkId {
    /// Link between two switches, by index.
    Between(usize),
    /// Link of a host to its switch, by the host's index.
    Access(usize),
}

/// Change of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkChange {
    /// True to put the link back, false to pull it out.
    Up(bool),
    /// Rate; `None` for no limit.
    Rate(Option<Bps>),
    /// Delay of the link.
    Delay(Duration),
    /// Most bytes that wait for the link's rate.
    Buffer(ByteSize),
    /// Size of the delay's variation, by the law that the link already has, or uniform.
    Jitter(Duration),
    /// Share of frames lost, `0.0..=1.0`, in bursts if the link already loses in bursts.
    Loss(f64),
}

/// Parses a line.
///
/// # Errors
/// Description of what was found and what was expected.
pub fn parse(scenario: &Scenario, line: &str) -> Result<PromptCommand, String> {
    let line = line.trim();
    let words: Vec<&str> = line.split_whitespace().collect();
    let known = PromptNames(scenario);
    let command = match *words {
        [] => PromptCommand::Nothing,
        [first, ..] if first.starts_with('#') => PromptCommand::Nothing,
        ["help" | "?"] => PromptCommand::Help,
        ["nodes"] => PromptCommand::Nodes,
        ["links" | "net"] => PromptCommand::Links,
        ["pingall"] => PromptCommand::PingAll { timeout: PING_TIMEOUT },
        ["pingall", timeout] => PromptCommand::PingAll { timeout: time("pingall", timeout)? },
        ["iperf", from, to] => known.iperf(from, to, IPERF_TIME)?,
        ["iperf", from, to, duration] => known.iperf(from, to, time("iperf", duration)?)?,
        ["link", a, b, ref changes @ ..] if !changes.is_empty() => {
            PromptCommand::Link { links: known.links(a, b)?, changes: read_changes(changes)? }
        }
        ["dump", switch] => PromptCommand::Dump(known.switch(switch)?),
        ["show", switch] => PromptCommand::Show(known.switch(switch)?),
        ["traffic"] => PromptCommand::Traffic,
        ["certificate"] => PromptCommand::Certificate,
        ["shell", host] => PromptCommand::Shell(known.host(host)?),
        ["sleep", duration] => PromptCommand::Sleep(time("sleep", duration)?),
        ["quit" | "exit"] => PromptCommand::Quit,
        ["on", host, _, ..] => known.run(known.host(host)?, after(after(line)))?,
        [first, ..] if COMMANDS.contains(&first) => return Err(usage(first)),
        [first] if known.find_host(first).is_some() => {
            return Err(format!(
                "{first}: expected a command after the host, as in `{first} ip address`; `shell {first}` for a shell"
            ));
        }
        [first, ..] => match known.find_host(first) {
            Some(host) => known.run(host, after(line))?,
            None => return Err(unknown(scenario, first)),
        },
    };
    Ok(command)
}

/// Returns the rest of a line after the first word.
fn after(line: &str) -> &str {
    line.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start())
}

/// Returns a message that shows how a command is written, taken from [`HELP`].
fn usage(command: &str) -> String {
    let lines: Vec<&str> =
        HELP.lines().filter(|line| line.split([' ', '[']).next() == Some(command)).map(str::trim_end).collect();
    format!(
        "{command}: expected {}",
        lines.iter().map(|line| line.split("  ").next().unwrap_or(line)).collect::<Vec<_>>().join(", or ")
    )
}

fn unknown(scenario: &Scenario, word: &str) -> String {
    if scenario.switches.iter().any(|switch| switch.name == word) {
        return format!("{word} is a switch, which runs no commands: `show {word}` or `dump {word}`");
    }
    let hosts = listed(scenario.hosts.iter().map(|host| host.name.as_str()));
    format!("found `{word}`, expected a command ({}) or a host ({hosts})", COMMANDS.join(", "))
}

/// Joins names, at most the first twelve.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    let names: Vec<&str> = names.collect();
    let mut text = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        let _ = write!(text, " and {} more", names.len() - SHOWN);
    }
    if text.is_empty() { "there is none".to_owned() } else { text }
}

fn time(command: &str, text: &str) -> Result<Duration, String> {
    let time = text.parse::<TimeSpan>().map_err(|error| format!("{command}: {error}"))?.0;
    if time.is_zero() { Err(format!("{command}: found {text}, expected a time above zero")) } else { Ok(time) }
}

/// Parses settings of a link: pairs of words, and single `up` and `down`.
fn read_changes(words: &[&str]) -> Result<Vec<LinkChange>, String> {
    let mut words = words.iter();
    let mut changes = Vec::new();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("link: expected a value after `{word}`"));
        changes.push(match *word {
            "up" => LinkChange::Up(true),
            "down" => LinkChange::Up(false),
            "rate" => LinkChange::Rate(rate(value()?)?),
            "delay" => LinkChange::Delay(delay(value()?)?),
            "buffer" => LinkChange::Buffer(value()?.parse().map_err(|error| format!("link: buffer: {error}"))?),
            "jitter" => LinkChange::Jitter(delay(value()?)?),
            "loss" => LinkChange::Loss(share(value()?)?),
            _ => return Err(format!("link: found `{word}`, expected up, down, rate, delay, buffer, jitter or loss")),
        });
    }
    Ok(changes)
}

/// Parses a rate such as `10Mbit/s` or, in short, `10M`; `none` for no limit.
fn rate(text: &str) -> Result<Option<Bps>, String> {
    if text == "none" {
        return Ok(None);
    }
    let rate = text.parse::<Bps>().or_else(|error| format!("{text}bit/s").parse().map_err(|_| error));
    rate.map(Some).map_err(|error| format!("link: rate: {error}, or none"))
}

fn delay(text: &str) -> Result<Duration, String> {
    let delay = text.parse::<TimeSpan>().map_err(|error| format!("link: delay: {error}"))?.0;
    if delay > MOST_DELAY {
        return Err(format!("link: delay: found {text}, expected at most {MOST_DELAY:?}"));
    }
    Ok(delay)
}

/// Parses a share such as `1.5%` or `0.015`.
fn share(text: &str) -> Result<f64, String> {
    let (number, of) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.parse::<f64>().ok().map(|number| number / of).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("link: loss: found `{text}`, expected a share such as 0.015 or 1.5%"))
}

/// Lookup of a scenario's names.
struct PromptNames<'a>(&'a Scenario);

impl PromptNames<'_> {
    fn find_host(&self, name: &str) -> Option<usize> {
        self.0.hosts.iter().position(|host| host.name == name)
    }

    fn find_switch(&self, name: &str) -> Option<usize> {
        self.0.switches.iter().position(|switch| switch.name == name)
    }

    fn host(&self, name: &str) -> Result<usize, String> {
        let hosts = || listed(self.0.hosts.iter().map(|host| host.name.as_str()));
        self.find_host(name).ok_or_else(|| format!("found `{name}`, expected a host: {}", hosts()))
    }

    fn switch(&self, name: &str) -> Result<usize, String> {
        let switches = || listed(self.0.switches.iter().map(|switch| switch.name.as_str()));
        self.find_switch(name).ok_or_else(|| format!("found `{name}`, expected a switch: {}", switches()))
    }

    fn iperf(&self, from: &str, to: &str, duration: Duration) -> Result<PromptCommand, String> {
        let (from, to) = (self.host(from)?, self.host(to)?);
        if from == to {
            return Err("iperf: expected two different hosts".into());
        }
        if address(self.0, from, to).is_none() {
            let [from, to] = [from, to].map(|host| &self.0.hosts[host].name);
            return Err(format!("iperf: {from} and {to} have no addresses of the same version of IP"));
        }
        Ok(PromptCommand::Iperf { from, to, duration })
    }

    /// Returns all links between two nodes.
    fn links(&self, a: &str, b: &str) -> Result<Vec<LabLinkId>, String> {
        let node = |name: &str| {
            let host = self.find_host(name).map(LabNodeId::Host);
            let node = host.or_else(|| self.find_switch(name).map(LabNodeId::Switch));
            node.ok_or_else(|| {
                format!("link: found `{name}`, expected a host or a switch of the scenario (`nodes` lists them)")
            })
        };
        let nodes = [node(a)?, node(b)?];
        let links = match nodes {
            [LabNodeId::Host(host), LabNodeId::Switch(switch)] | [LabNodeId::Switch(switch), LabNodeId::Host(host)] => {
                let is_there = self.0.hosts[host].switch == switch;
                if is_there { vec![LabLinkId::Access(host)] } else { Vec::new() }
            }
            [LabNodeId::Switch(one), LabNodeId::Switch(two)] => {
                let is_meant = |ends: [usize; 2]| ends == [one, two] || ends == [two, one];
                let links = self.0.links.iter().enumerate();
                let meant = links.filter(|(_, link)| is_meant(link.ends.map(|end| end.switch)));
                meant.map(|(index, _)| LabLinkId::Between(index)).collect()
            }
            [LabNodeId::Host(_), LabNodeId::Host(_)] => Vec::new(),
        };
        if links.is_empty() {
            return Err(format!("link: there is none from {a} to {b}; {a} is joined to {}", self.neighbours(nodes[0])));
        }
        Ok(links)
    }

    fn neighbours(&self, node: LabNodeId) -> String {
        let switch_name = |index: usize| self.0.switches[index].name.as_str();
        let switch = match node {
            LabNodeId::Host(host) => return switch_name(self.0.hosts[host].switch).to_owned(),
            LabNodeId::Switch(switch) => switch,
        };
        let hosts = self.0.hosts.iter().filter(|host| host.switch == switch).map(|host| host.name.as_str());
        let ends = self.0.links.iter().map(|link| link.ends.map(|end| end.switch));
        let others = ends.filter_map(|[one, two]| match switch {
            _ if switch == one => Some(switch_name(two)),
            _ if switch == two => Some(switch_name(one)),
            _ => None,
        });
        listed(others.chain(hosts))
    }

    fn run(&self, host: usize, line: &str) -> Result<PromptCommand, String> {
        let (line, background) = match line.strip_suffix('&') {
            Some(line) if !line.ends_with('&') => (line.trim_end(), true),
            _ => (line, false),
        };
        if line.is_empty() {
            return Err(format!("{}: expected a command before `&`", self.0.hosts[host].name));
        }
        Ok(PromptCommand::Run { host, line: with_addresses(self.0, host, line), background })
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum LabNodeId {
    Host(usize),
    Switch(usize),
}

/// Returns the address by which one host reaches another: the first of an address family that both have.
pub(crate) fn address(scenario: &Scenario, from: usize, to: usize) -> Option<std::net::IpAddr> {
    let families = |v6: bool| scenario.hosts[from].ip.iter().any(|net| net.addr.is_ipv6() == v6);
    scenario.hosts[to].ip.iter().map(|net| net.addr).find(|addr| families(addr.is_ipv6()))
}

/// Returns a line in which each word that is a host's name is replaced by the address by which `from` reaches that
/// host.
fn with_addresses(scenario: &Scenario, from: usize, line: &str) -> String {
    let name = |word: &str| {
        let host = scenario.hosts.iter().position(|host| host.name == word)?;
        address(scenario, from, host).map(|address| address.to_string())
    };
    let words = line.split_inclusive(char::is_whitespace).map(|word| {
        let bare = word.trim_end();
        name(bare).map_or_else(|| word.to_owned(), |address| address + &word[bare.len()..])
    });
    words.collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Three switches, two of them linked, with three hosts; one is named like a command.
    pub(in super::super) const NET: &str = r#"
        [[switch]]
        name = "s1"
        [[switch]]
        name = "s2"
        [[switch]]
        name = "s3"
        [[link]]
        ends = ["s1", "s2"]
        [[host]]
        name = "h1"
        switch = "s1"
        ip = ["10.0.0.1/24", "fd00::1/64"]
        [[host]]
        name = "h2"
        switch = "s2"
        ip = ["fd00::2/64", "10.0.0.2/24"]
        [[host]]
        name = "link"
        switch = "s2"
        ip = "10.0.0.3/24"
    "#;

    fn read(line: &str) -> Result<PromptCommand, String> {
        parse(&Scenario::parse(NET, "net").unwrap(), line)
    }

    #[test]
    fn what_people_type() {
        let run = |host, line: &str, background| PromptCommand::Run { host, line: line.into(), background };
        for (line, command) in [
            ("", PromptCommand::Nothing),
            ("  # nothing to do", PromptCommand::Nothing),
            ("help", PromptCommand::Help),
            ("net", PromptCommand::Links),
            ("pingall", PromptCommand::PingAll { timeout: PING_TIMEOUT }),
            ("pingall 250ms", PromptCommand::PingAll { timeout: Duration::from_millis(250) }),
            ("iperf h1 h2 10s", PromptCommand::Iperf { from: 0, to: 1, duration: Duration::from_secs(10) }),
            ("h1 ping -c 1 h2", run(0, "ping -c 1 fd00::2", false)),
            ("link ping  -c 1 h2", PromptCommand::Nothing),
            ("on link ping -c 1  h2", run(2, "ping -c 1  10.0.0.2", false)),
            ("h2 iperf3 -s &", run(1, "iperf3 -s", true)),
            ("h2 true && false", run(1, "true && false", false)),
            ("h1 echo 'h2 is not replaced in quotes'", run(0, "echo 'h2 is not replaced in quotes'", false)),
            ("dump s2", PromptCommand::Dump(1)),
            (
                "link s2 s1 down",
                PromptCommand::Link { links: vec![LabLinkId::Between(0)], changes: vec![LinkChange::Up(false)] },
            ),
            (
                "link s1 h1 rate 10M delay 5ms up",
                PromptCommand::Link {
                    links: vec![LabLinkId::Access(0)],
                    changes: vec![
                        LinkChange::Rate(Some(Bps(10_000_000))),
                        LinkChange::Delay(Duration::from_millis(5)),
                        LinkChange::Up(true),
                    ],
                },
            ),
            (
                "link s1 s2 rate none buffer 64kB",
                PromptCommand::Link {
                    links: vec![LabLinkId::Between(0)],
                    changes: vec![LinkChange::Rate(None), LinkChange::Buffer(ByteSize(64_000))],
                },
            ),
            (
                "link s1 s2 jitter 1ms loss 1.5%",
                PromptCommand::Link {
                    links: vec![LabLinkId::Between(0)],
                    changes: vec![LinkChange::Jitter(Duration::from_millis(1)), LinkChange::Loss(0.015)],
                },
            ),
            ("sleep 1.5s", PromptCommand::Sleep(Duration::from_millis(1500))),
            ("exit", PromptCommand::Quit),
        ] {
            if line.starts_with("link ping") {
                assert!(read(line).unwrap_err().contains("found `ping`, expected a host or a switch"));
                continue;
            }
            assert_eq!(read(line).unwrap(), command, "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_what_would_be_right() {
        for (line, said) in [
            ("pingal", "expected a command (help, nodes"),
            ("h9 ping h1", "or a host (h1, h2, link)"),
            ("s1 ping h1", "s1 is a switch, which runs no commands: `show s1` or `dump s1`"),
            ("h1", "expected a command after the host"),
            ("h1 &", "expected a command before `&`"),
            ("dump", "dump: expected dump SWITCH"),
            ("dump h1", "expected a switch: s1, s2, s3"),
            ("link s1 s2", "link: expected link NODE NODE down|up, or link NODE NODE SETTING..."),
            ("link s1 s3 down", "there is none from s1 to s3; s1 is joined to s2, h1"),
            ("link h1 h2 down", "there is none from h1 to h2; h1 is joined to s1"),
            ("link s1 s2 rate", "expected a value after `rate`"),
            ("link s1 s2 rate fast", "found `fast`, expected a rate above zero such as"),
            ("link s1 s2 delay 11s", "expected at most 10s"),
            ("link s1 s2 colour red", "found `colour`, expected up, down, rate, delay, buffer, jitter or loss"),
            ("link s1 s2 loss 101%", "found `101%`, expected a share such as"),
            ("iperf h1 h1", "two different hosts"),
            ("iperf h1", "iperf: expected iperf HOST HOST [TIME]"),
            ("pingall 0s", "a time above zero"),
            ("sleep", "sleep: expected sleep TIME"),
            ("shell s1", "expected a host: h1, h2, link"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn every_command_is_in_the_help() {
        for command in COMMANDS.iter().filter(|command| !["help", "exit", "net"].contains(command)) {
            assert!(HELP.lines().any(|line| line.split([' ', '[']).next() == Some(command)), "{command}");
        }
    }
}
