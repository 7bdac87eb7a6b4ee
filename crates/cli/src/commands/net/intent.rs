//! `weir net intent`: adds, shows and removes intents.
use super::connection::NetClient;
use super::{OutputForm, many, print_intents, read, text};
use anyhow::{Context as _, bail};
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use weir_api::client::encoded;
use weir_routing::intents::{
    DelayBound, DelayKind, IntentConstraints, IntentKind, IntentSpec, IntentState, IntentStatus,
};
use weir_terminal::output;
use weir_units::{Bps, Clock as _, SystemClock, TimeSpan};

/// Time before the first question for the state of an intent that is waited for. Each further time is twice as long,
/// up to the last one: most intents are decided within milliseconds, others wait for switches.
const FIRST_POLL: Duration = Duration::from_millis(2);
const LAST_POLL: Duration = Duration::from_millis(50);
/// Exit status if an intent was not installed.
pub(super) const NOT_INSTALLED: u8 = 1;

#[derive(clap::Subcommand)]
pub(super) enum NetIntentCommand {
    /// Add an intent, or change the one with the same key; with --file, many at once
    Add(Box<AddArgs>),
    /// List the intents with their states
    List,
    /// Show an intent with its ways
    Show {
        /// Key of the intent
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        key: String,
    },
    /// Remove intents
    Remove {
        /// Keys of the intents
        #[arg(value_name = "KEY", required_unless_present = "all", conflicts_with = "all")]
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        keys: Vec<String>,
        /// Remove all intents
        #[arg(long)]
        all: bool,
    },
}

/// Options of `weir net intent add`.
#[derive(clap::Args)]
pub(super) struct AddArgs {
    #[command(flatten)]
    intent: Option<IntentArgs>,
    /// File with an intent as JSON, or with an array of intents; - for standard input. Each has a key
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Wait until it is installed, degraded or failed; the exit status is 1 unless it is installed, with --file unless
    /// all are
    #[arg(long)]
    wait: bool,
    /// Longest wait of --wait
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "wait")]
    timeout: TimeSpan,
}

/// An intent as options.
#[derive(clap::Args)]
pub(super) struct IntentArgs {
    /// Name of the intent, chosen by you
    #[arg(required = false, value_parser = NonEmptyStringValueParser::new())]
    key: String,
    /// Source: host (Ethernet address, IP address or name) or port (DPID:PORT); may be repeated
    #[arg(long, value_name = "END")]
    from: Vec<String>,
    /// Destination, as --from
    #[arg(long, value_name = "END")]
    to: Vec<String>,
    /// Form of the intent [default: host-to-host for two ends, else many-to-one or one-to-many]
    #[arg(long, value_enum)]
    kind: Option<KindName>,
    /// Packets that it is about, as a match of ovs-ofctl, such as tcp,tp_dst=80 [default: all between the ends]
    #[arg(long, value_name = "MATCH", default_value = "", hide_default_value = true)]
    traffic: String,
    /// Bandwidth to reserve, such as 10Mbit/s
    #[arg(long, value_name = "RATE")]
    bandwidth: Option<Bps>,
    /// Most delay from end to end, such as 5ms: the 99th percentile of the model's delays, unless --percentile or
    /// --worst-case says otherwise
    #[arg(long, value_name = "TIME")]
    delay: Option<TimeSpan>,
    /// Percentile of the model's delays that --delay is about, in percent
    #[arg(long, value_name = "PERCENT", default_value = "99", requires = "delay", value_parser = parse_percentile)]
    percentile: f64,
    /// --delay is about the longest possible delay, with full queues
    #[arg(long, requires = "delay", conflicts_with = "percentile")]
    worst_case: bool,
    /// Switch that the way has to pass, by datapath id; may be repeated, in order
    #[arg(long, value_name = "DPID")]
    via: Vec<String>,
    /// Switch (DPID) or link (DPID:PORT) that the way must not use; may be repeated
    #[arg(long, value_name = "DPID[:PORT]")]
    avoid: Vec<String>,
    /// Precedence over other intents about equal packets; higher is preferred
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1000))]
    priority: u16,
    /// Keep a second way without a common link ready
    #[arg(long)]
    protected: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum KindName {
    HostToHost,
    PointToPoint,
    ManyToOne,
    OneToMany,
}

fn parse_percentile(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent: &f64| *percent > 0.0 && *percent < 100.0);
    percent.ok_or_else(|| format!("found `{text}`, expected more than 0 and less than 100, such as 99"))
}

impl IntentArgs {
    /// Returns the intent.
    ///
    /// # Errors
    /// An end is missing, or both sides have several.
    pub(super) fn intent(self) -> anyhow::Result<IntentSpec> {
        for (option, ends) in [("--from", &self.from), ("--to", &self.to)] {
            if ends.is_empty() {
                bail!("found no {option}, expected at least one END");
            }
        }
        let kind = match (self.kind, self.from.len(), self.to.len()) {
            (Some(KindName::HostToHost), ..) | (None, 1, 1) => IntentKind::HostToHost,
            (Some(KindName::PointToPoint), ..) => IntentKind::PointToPoint,
            (Some(KindName::ManyToOne), ..) | (None, _, 1) => IntentKind::ManyToOne,
            (Some(KindName::OneToMany), ..) | (None, 1, _) => IntentKind::OneToMany,
            (None, from, to) => bail!("found {from} times --from and {to} times --to, expected one of them once"),
        };
        let kind_of_delay = if self.worst_case { DelayKind::WorstCase } else { DelayKind::Percentile(self.percentile) };
        let constraints = IntentConstraints {
            bandwidth: self.bandwidth,
            delay: self.delay.map(|most| DelayBound { most, kind: kind_of_delay }),
            waypoints: self.via,
            avoid: self.avoid,
            priority: self.priority,
            protected: self.protected,
        };
        let (key, from, to, traffic) = (self.key, self.from, self.to, self.traffic);
        Ok(IntentSpec { key, kind, from, to, traffic, constraints })
    }
}

impl NetIntentCommand {
    pub(super) fn run(self, client: &NetClient, form: OutputForm) -> anyhow::Result<ExitCode> {
        match self {
            NetIntentCommand::Add(args) => return args.run(client, form),
            NetIntentCommand::List => print_intents(form, &client.get("/intents")?)?,
            NetIntentCommand::Show { key } => print_one(form, &client.get(&place(&key))?)?,
            NetIntentCommand::Remove { keys, all } => match keys.as_slice() {
                [key] if !all => {
                    client.send("DELETE", &place(key), None)?;
                    if form.json {
                        output::print(&format!("{:#}\n", json!({"removed": key})))?;
                    } else {
                        output::print(&format!("intent {key} is removed\n"))?;
                    }
                }
                keys => return many::remove(client, form, (!all).then_some(keys)),
            },
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl AddArgs {
    /// Refuses an intent beside a file.
    fn refuse_both(&self) -> anyhow::Result<()> {
        let Some((intent, _)) = self.intent.as_ref().zip(self.file.as_ref()) else { return Ok(()) };
        let key = &intent.key;
        if self.wait && key.parse::<TimeSpan>().is_ok() {
            anyhow::bail!("--wait takes no time, expected --wait --timeout {key}");
        }
        anyhow::bail!("found the intent `{key}` and --file, expected one of them");
    }

    fn run(self, client: &NetClient, form: OutputForm) -> anyhow::Result<ExitCode> {
        self.refuse_both()?;
        let AddArgs { intent, file, wait, timeout } = self;
        if let Some(file) = file {
            return many::add(client, form, &file, wait.then_some(timeout.0));
        }
        let intent = intent.context("found no intent, expected KEY --from END --to END, or --file FILE")?.intent()?;
        let path = place(&intent.key);
        let mut status = client.send("PUT", &path, Some(&json!(intent)))?;
        if wait {
            status = wait_for(client, &path, status, timeout.0)?;
        }
        print_one(form, &status)?;
        let is_installed = read::<IntentStatus>(&status)?.state == IntentState::Installed;
        Ok(if wait && !is_installed { ExitCode::from(NOT_INSTALLED) } else { ExitCode::SUCCESS })
    }
}

pub(super) fn place(key: &str) -> String {
    format!("/intents/{}", encoded(key))
}

fn print_one(form: OutputForm, status: &Value) -> anyhow::Result<()> {
    form.print(status, |status| super::rows::intents(&json!([status])), text::intent)
}

/// Asks for the state of an intent until it is decided, or time is over. Returns the last state.
fn wait_for(client: &NetClient, path: &str, mut status: Value, most: Duration) -> anyhow::Result<Value> {
    let clock = SystemClock::start();
    let deadline = clock.now() + most;
    for pause in poll_pauses() {
        if !is_undecided(&status)? || clock.now() >= deadline {
            break;
        }
        client.pause(pause);
        status = client.get(path)?;
    }
    if is_undecided(&status)? {
        let state = status["state"].as_str().unwrap_or_default();
        weir_terminal::progress::tell(&format!("the intent is still {state} after {}", TimeSpan(most)));
    }
    Ok(status)
}

/// Returns the times before one question for states after the other, without end.
pub(super) fn poll_pauses() -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(FIRST_POLL), |pause| Some((*pause * 2).min(LAST_POLL)))
}

pub(super) fn is_undecided(status: &Value) -> anyhow::Result<bool> {
    Ok(read::<IntentStatus>(status)?.state.is_undecided())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: IntentArgs,
    }

    fn intent(flags: &str) -> anyhow::Result<IntentSpec> {
        Flags::try_parse_from(format!("x {flags}").split(' '))?.args.intent()
    }

    #[test]
    fn options_make_an_intent() {
        let flags = "web --from 10.0.0.1 --to alice --traffic tcp,tp_dst=80 --bandwidth 10Mbit/s --delay 5ms \
                     --via 2 --via 3 --avoid 4:1 --priority 7 --protected";
        let made = json!(intent(flags).unwrap());
        let expected = json!({
            "key": "web", "kind": "host-to-host", "from": ["10.0.0.1"], "to": ["alice"], "traffic": "tcp,tp_dst=80",
            "constraints": {
                "bandwidth": "10Mbit/s", "delay": {"most": "5ms", "percentile": 99.0}, "waypoints": ["2", "3"],
                "avoid": ["4:1"], "priority": 7, "protected": true,
            },
        });
        assert_eq!(made, expected);
        let worst = intent("a --from 1:1 --to 2:1 --kind point-to-point --delay 1ms --worst-case").unwrap();
        assert_eq!(
            (worst.kind, worst.constraints.delay.unwrap().kind),
            (IntentKind::PointToPoint, DelayKind::WorstCase)
        );
    }

    #[derive(Parser)]
    struct Command {
        #[command(subcommand)]
        command: NetIntentCommand,
    }

    #[test]
    fn an_intent_comes_from_options_or_from_a_file() {
        let read = |text: &str| Command::try_parse_from(format!("x {text}").split(' ')).map(|read| read.command);
        let add = |text: &str| match read(text) {
            Ok(NetIntentCommand::Add(args)) => (args.intent.is_some(), args.file, args.wait),
            _ => panic!("expected an intent: {text}"),
        };
        assert_eq!(add("add --file - --wait"), (false, Some(PathBuf::from("-")), true));
        assert_eq!(add("add a --from b --to c"), (true, None, false));
        assert_eq!(add("add"), (false, None, false));
        let both = |text: &str| match read(text) {
            Ok(NetIntentCommand::Add(args)) => args.refuse_both().unwrap_err().to_string(),
            Ok(_) => panic!("expected an intent: {text}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(both("add a --from b --to c --file x"), "found the intent `a` and --file, expected one of them");
        assert_eq!(both("add --file x --wait 3s"), "--wait takes no time, expected --wait --timeout 3s");
        assert!(both("add --priority 3 --file x").contains("required argument was not provided: key"));
        assert!(matches!(read("remove a b"), Ok(NetIntentCommand::Remove { keys, all: false }) if keys == ["a", "b"]));
        assert!(matches!(read("remove --all"), Ok(NetIntentCommand::Remove { all: true, .. })));
        assert!(read("remove").is_err() && read("remove a --all").is_err());
    }

    #[test]
    fn several_ends_say_the_kind() {
        let kind = |flags: &str| intent(flags).map(|intent| intent.kind).map_err(|error| error.to_string());
        assert_eq!(kind("a --from b --from c --to d"), Ok(IntentKind::ManyToOne));
        assert_eq!(kind("a --from b --to c --to d"), Ok(IntentKind::OneToMany));
        assert!(kind("a --from b --from c --to d --to e").unwrap_err().contains("expected one of them once"));
        assert!(kind("a --from b --to c --delay 1ms --percentile 100").unwrap_err().contains("such as 99"));
        assert!(kind("a --from b --to c --percentile 99").unwrap_err().contains("--delay"));
        assert!(kind("a --from b --to c --delay 1ms --percentile 95 --worst-case").is_err());
        assert!(kind("a --from b").unwrap_err().contains("--to"));
    }
}
