//! Completes words of the prompt: commands, hosts and switches of the lab.
use super::command::COMMANDS;
use weir_scenario::Scenario;

/// Settings of `link`.
const LINK_SETTINGS: [&str; 7] = ["up", "down", "rate", "delay", "buffer", "jitter", "loss"];

/// Names that words of the prompt are completed to.
#[derive(Debug, Clone)]
pub struct PromptCompleter {
    hosts: Vec<String>,
    switches: Vec<String>,
    /// Names of the two ends of each link, those of hosts included.
    links: Vec<[String; 2]>,
}

impl PromptCompleter {
    /// Returns a completer with the names of a scenario.
    pub fn new(scenario: &Scenario) -> PromptCompleter {
        let switches: Vec<String> = scenario.switches.iter().map(|switch| switch.name.clone()).collect();
        let access = scenario.hosts.iter().map(|host| [host.name.clone(), switches[host.switch].clone()]);
        let between = scenario.links.iter().map(|link| link.ends.map(|end| switches[end.switch].clone()));
        let links = access.chain(between).collect();
        PromptCompleter { hosts: scenario.hosts.iter().map(|host| host.name.clone()).collect(), switches, links }
    }

    /// Returns what the last word of `line`, the text before the cursor, may be completed to, and where that word
    /// begins.
    pub fn complete(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let (before, word) = line.split_at(start);
        let mut found: Vec<String> =
            self.candidates(before).into_iter().filter(|name| name.starts_with(word)).map(str::to_owned).collect();
        found.sort_unstable();
        found.dedup();
        (start, found)
    }

    /// Returns all words that may follow `before`.
    fn candidates(&self, before: &str) -> Vec<&str> {
        let words: Vec<&str> = before.split_whitespace().collect();
        let hosts = || self.hosts.iter().map(String::as_str);
        let switches = || self.switches.iter().map(String::as_str);
        match words[..] {
            [] => COMMANDS.into_iter().chain(hosts()).collect(),
            ["iperf" | "shell" | "on"] => hosts().collect(),
            ["iperf", from] => hosts().filter(|host| *host != from).collect(),
            ["dump" | "show"] => switches().collect(),
            ["link"] => hosts().chain(switches()).collect(),
            ["link", node] => self.neighbours(node),
            ["link", _, _, ref settings @ ..] => link_settings(settings),
            // What a host runs: the command itself is the user's, its arguments may be hosts.
            ["on", _, _, ..] => hosts().collect(),
            [first, _, ..] if !COMMANDS.contains(&first) && self.hosts.iter().any(|host| host == first) => {
                hosts().collect()
            }
            _ => Vec::new(),
        }
    }

    fn neighbours(&self, node: &str) -> Vec<&str> {
        let other = |[one, two]: &'_ [String; 2]| match node {
            _ if one == node => Some(1),
            _ if two == node => Some(0),
            _ => None,
        };
        self.links.iter().filter_map(|link| other(link).map(|end| link[end].as_str())).collect()
    }
}

/// Returns what may follow the settings of a link so far.
fn link_settings(settings: &[&str]) -> Vec<&'static str> {
    let mut rest = settings.iter();
    while let Some(setting) = rest.next() {
        if !matches!(*setting, "up" | "down") && rest.next().is_none() {
            // A value is to follow.
            return if *setting == "rate" { vec!["none"] } else { Vec::new() };
        }
    }
    LINK_SETTINGS.to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::command::tests::NET;
    use super::*;

    #[test]
    fn words_are_completed_by_their_place() {
        let net = NET.replace("\"link\"", "\"web-server-of-zurich\"");
        let completer = PromptCompleter::new(&Scenario::parse(&net, "net").unwrap());
        for (line, start, expected) in [
            ("p", 0, "pingall"),
            ("h", 0, "h1 h2 help"),
            ("li", 0, "link links"),
            ("we", 0, "web-server-of-zurich"),
            ("h1 ping h", 8, "h1 h2"),
            ("h1 ping -c 1 we", 13, "web-server-of-zurich"),
            ("h1 pi", 3, ""),
            ("on h1 ping ", 11, "h1 h2 web-server-of-zurich"),
            ("iperf h1 ", 9, "h2 web-server-of-zurich"),
            ("iperf h1 h2 ", 12, ""),
            ("dump ", 5, "s1 s2 s3"),
            ("show s3", 5, "s3"),
            ("shell h", 6, "h1 h2"),
            ("link h1 ", 8, "s1"),
            ("link s1 ", 8, "h1 s2"),
            ("link s1 s2 d", 11, "delay down"),
            ("link s1 s2 rate ", 16, "none"),
            ("link s1 s2 delay 5ms lo", 21, "loss"),
            ("pingall ", 8, ""),
            ("x ", 2, ""),
        ] {
            let (at, found) = completer.complete(line);
            assert_eq!((at, found.join(" ").as_str()), (start, expected), "{line}");
        }
    }
}
