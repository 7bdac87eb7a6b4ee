//! `weir ctl monitor` and `weir ctl snoop`: print messages of a running switch as they come, a line for each.
use super::super::ofp::printer::{MessagePlace, json_line, text_line};
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::time::{Duration, UNIX_EPOCH};
use weir_client::OpenFlowClient;
use weir_openflow::model::config::SwitchConfig;
use weir_openflow::model::monitor::{FlowMonitor, MonitorCommand, MonitorFlags};
use weir_openflow::model::multipart::{MultipartRequest, RequestBody};
use weir_openflow::model::{GroupId, Match, PortNo, TableId};
use weir_openflow::{Body, Message, Version, codec, text};
use weir_switch::ctl::{CtlClient, CtlRequest, SnoopRecord};
use weir_terminal::output::print_line;
use weir_units::{Clock as _, Instant, SystemClock, TimeSpan};

/// Time of silence after which the switch is asked whether it is there.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for messages at a time.
const WAIT: Duration = Duration::from_millis(500);

/// Options that end the printing.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct WatchArgs {
    /// End after N messages [default: at Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time, such as 10s
    #[arg(long = "for", value_name = "TIME")]
    time: Option<TimeSpan>,
}

/// Lines printed so far, and when to end.
struct LineOutput {
    json: bool,
    left: Option<u64>,
    deadline: Option<Instant>,
    clock: SystemClock,
}

impl LineOutput {
    fn new(args: &WatchArgs, json: bool) -> LineOutput {
        let clock = SystemClock::start();
        LineOutput { json, left: args.count, deadline: args.time.map(|time| clock.now() + time.0), clock }
    }

    /// Returns the time until the end, if there is an end.
    fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.since(self.clock.now()))
    }

    /// Prints a message. Returns true if there is to be more: false after the last message, and if the reader of
    /// standard output is gone.
    fn message(&mut self, place: &MessagePlace<'_>, bytes: &[u8]) -> anyhow::Result<bool> {
        let line = if self.json { json_line(place, bytes)? } else { text_line(place, bytes) };
        self.left = self.left.map(|left| left - 1);
        Ok(print_line(&line)? && self.left != Some(0))
    }
}

/// Prints every message between the switch and its controllers.
pub(super) fn snoop(client: &mut CtlClient, request: &CtlRequest, args: &WatchArgs, json: bool) -> anyhow::Result<()> {
    let switch = switch_name(&client.ask(request)?);
    let mut lines = LineOutput::new(args, json);
    loop {
        let time = lines.time_left();
        let goes_on = match client.next_record(time)? {
            Some(SnoopRecord::Message(message)) => {
                let bytes = bytes_of(&message.bytes).context("the switch sent a message that is not hexadecimal")?;
                let (channel, switch) = (message.channel.as_str(), switch.as_str());
                let [from, to] = if message.to_switch { [channel, switch] } else { [switch, channel] };
                lines.message(&MessagePlace { time_ns: message.time_ns, from, to: Some(to) }, &bytes)?
            }
            Some(SnoopRecord::Lost(lost)) if json => print_line(&serde_json::json!({ "lost": lost }).to_string())?,
            Some(SnoopRecord::Lost(lost)) => {
                print_line(&format!("({lost} messages are left out: they came faster than they were read)"))?
            }
            None => lines.time_left().is_none_or(|left| !left.is_zero()),
        };
        if !goes_on {
            return Ok(());
        }
    }
}

/// Prints the asynchronous messages of the switch, and with `watch` the changes of its flow entries.
pub(super) fn monitor(
    mut client: CtlClient,
    request: &CtlRequest,
    watch: Option<&str>,
    args: &WatchArgs,
    json: bool,
) -> anyhow::Result<()> {
    let monitor = watch.map(flow_monitor).transpose()?;
    let switch = switch_name(&client.ask(request)?);
    let mut lines = LineOutput::new(args, json);
    let (stream, read) = client.into_channel()?;
    let mut channel = OpenFlowClient::over(stream, &read, &Version::ALL, PATIENCE, lines.clock)?;
    let version = channel.version();
    // A tool gets asynchronous messages once it says how much of a packet it wants. The flags, which are the switch's,
    // stay as they are.
    let Body::GetConfigReply(config) = channel.ask(Body::GetConfigRequest)? else { bail!("no configuration came") };
    channel.tell(Body::SetConfig(SwitchConfig { miss_send_len: u16::MAX, ..config }))?;
    if let Some(monitor) = monitor {
        let body = RequestBody::FlowMonitor(vec![monitor]);
        channel.tell(Body::MultipartRequest(MultipartRequest { more: false, body }))?;
    }
    loop {
        while let Some((_, message)) = channel.poll()? {
            let time_ns = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
            let time_ns = u64::try_from(time_ns).unwrap_or(u64::MAX);
            let bytes = encoded(&message, version)?;
            if !lines.message(&MessagePlace { time_ns, from: &switch, to: None }, &bytes)? {
                return Ok(());
            }
        }
        match lines.time_left() {
            Some(Duration::ZERO) => return Ok(()),
            left => channel.wait_for_input(left.map_or(WAIT, |left| left.min(WAIT))),
        }
    }
}

fn encoded(message: &Message, version: Version) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    codec::encode(message, version, &mut bytes)?;
    Ok(bytes)
}

fn switch_name(reply: &Value) -> String {
    reply["switch"].as_str().unwrap_or("switch").to_owned()
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// Parses `watch:[SETTING,...]` as `ovs-ofctl` has it: `!initial`, `!add`, `!delete`, `!modify`, `!actions`, `!own`,
/// `table=N`, `out_port=N`, and a match.
fn flow_monitor(text: &str) -> anyhow::Result<FlowMonitor> {
    let mut flags = [
        ("initial", MonitorFlags::INITIAL),
        ("add", MonitorFlags::ADD),
        ("delete", MonitorFlags::REMOVED),
        ("modify", MonitorFlags::MODIFY),
        ("actions", MonitorFlags::INSTRUCTIONS),
    ]
    .to_vec();
    let (mut table, mut out_port, mut matching) = (TableId::ALL, PortNo::ANY, Vec::new());
    let settings = text.strip_prefix("watch:").unwrap_or(text);
    for word in settings.split(',').filter(|word| !word.is_empty()) {
        match (word.split_once('='), word.strip_prefix('!')) {
            // Changes of this channel's own: it makes none.
            (None, Some("own")) => {}
            (None, Some(name)) => {
                let place = flags.iter().position(|(flag, _)| *flag == name);
                let place = place.with_context(|| {
                    format!("watch: found `{word}`, expected !initial, !add, !delete, !modify, !actions or !own")
                })?;
                flags.remove(place);
            }
            (Some(("table", number)), None) => {
                let number = number.parse().ok();
                table = TableId(number.with_context(|| format!("watch: found `{word}`, expected table=0 to 254"))?);
            }
            (Some(("out_port", number)), None) => {
                let number = number.parse().ok();
                out_port = PortNo(number.with_context(|| format!("watch: found `{word}`, expected a port's number"))?);
            }
            _ => matching.push(word),
        }
    }
    let matching = match matching[..] {
        [] => Match::any(),
        _ => text::parse_match(&matching.join(",")).context("watch")?,
    };
    let flags = flags.iter().fold(MonitorFlags::default(), |all, (_, flag)| all.with(*flag));
    let out_group = GroupId::ANY;
    Ok(FlowMonitor { id: 1, out_port, out_group, flags, table, command: MonitorCommand::Add, matching })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_monitors_are_read() {
        let all = flow_monitor("watch:").unwrap();
        assert_eq!((all.flags.0, all.table, all.matching), (0b11111, TableId::ALL, Match::any()));
        let some = flow_monitor("watch:!initial,!own,table=3,tcp,tp_dst=80").unwrap();
        assert_eq!((some.flags.0, some.table), (0b11110, TableId(3)));
        assert_eq!(some.matching, text::parse_match("tcp,tp_dst=80").unwrap());
        for (wrong, said) in [("watch:!all", "expected !initial"), ("watch:table=x", "table=0"), ("watch:tpc", "tpc")] {
            let error = format!("{:#}", flow_monitor(wrong).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }
}
