//! `weir bench flow-mods`: sends pre-encoded flow-mods to any OpenFlow switch, and measures the time from the first
//! byte to the barrier reply, or to the reply to a bundle's commit.
use super::PATIENCE;
use super::entries::{self, EntryMatchKind};
use anyhow::{bail, ensure};
use std::process::ExitCode;
use std::time::Duration;
use weir_client::{OpenFlowClient, SwitchAddress};
use weir_openflow::model::FlowMod;
use weir_openflow::model::bundle::{BundleCommand, BundleControl, BundleFlags, BundleId};
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::{Body, Version};
use weir_terminal::output;
use weir_units::{Clock as _, SystemClock};

#[derive(clap::Args)]
pub(crate) struct FlowModBenchArgs {
    /// The switch: tcp:HOST:PORT or unix:PATH to connect to it, ptcp:PORT to let it connect. Its flow entries are
    /// deleted
    target: SwitchAddress,
    /// Flow-mods per round
    #[arg(short = 'n', long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Fields that the entries match
    #[arg(long, value_enum, default_value_t = EntryMatchKind::Udp)]
    matching: EntryMatchKind,
    /// How flow-mods are sent
    #[arg(long, value_enum, default_value_t = FlowModBundling::Plain)]
    way: FlowModBundling,
    /// Number of rounds; the entries are deleted between them
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// OpenFlow version: 1.3, 1.4 or 1.5 [default: 1.3, in a bundle 1.4]
    #[arg(long, value_parser = parse_version)]
    openflow: Option<Version>,
    /// Maximum flow-mods per second, plain only: a steady load for measuring forwarding meanwhile. Adds the entries
    /// and deletes them one by one, in every round
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: Option<u32>,
    /// Hard timeout of the entries, in seconds; 0 for none
    #[arg(long, default_value_t = 0)]
    hard_timeout: u16,
    /// Leave the last round's entries in the switch
    #[arg(long)]
    keep: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// How flow-mods are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum FlowModBundling {
    /// Single messages, then a barrier
    Plain,
    /// In an ordered bundle
    Bundle,
    /// In an ordered, atomic bundle: packets see none or all of its changes
    Atomic,
}

impl FlowModBundling {
    fn flags(self) -> Option<BundleFlags> {
        match self {
            FlowModBundling::Plain => None,
            FlowModBundling::Bundle => Some(BundleFlags::ORDERED),
            FlowModBundling::Atomic => Some(BundleFlags(BundleFlags::ORDERED.0 | BundleFlags::ATOMIC.0)),
        }
    }
}

/// Results of all rounds.
#[derive(serde::Serialize)]
struct FlowModBenchReport {
    matching: EntryMatchKind,
    way: FlowModBundling,
    count: u32,
    /// Seconds of each round. The following lists have one value per round, too.
    seconds: Vec<f64>,
    per_second: Vec<f64>,
    median_per_second: f64,
    /// Seconds from sending the delete of all entries to the barrier reply.
    delete_seconds: Vec<f64>,
}

const BUNDLE: BundleId = BundleId(1);
/// Interval between two writes when a rate is given.
const SEND_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) fn run(args: &FlowModBenchArgs) -> anyhow::Result<ExitCode> {
    let most = args.matching.most();
    ensure!(args.count <= most, "--count {}: there are only {most} different entries of this kind", args.count);
    ensure!(args.rate.is_none() || args.way == FlowModBundling::Plain, "--rate goes with --way plain only");
    let version = args.openflow.unwrap_or(if args.way == FlowModBundling::Plain { Version::V13 } else { Version::V14 });
    ensure!(version != Version::V10, "--openflow 1.0: expected 1.3, 1.4 or 1.5");
    let clock = SystemClock::start();
    let mut link = OpenFlowClient::open(&args.target, &[version], PATIENCE, clock)?;
    let bundle = args.way.flags().map(|flags| (BUNDLE, flags));
    let adds = (0..args.count).map(|number| args.matching.add(number, args.hard_timeout));
    delete_all(&mut link, clock)?;
    if let Some(rate) = args.rate {
        let deletes = (0..args.count).map(|number| args.matching.delete(number));
        return load(args, &mut link, &entries::encode(adds.chain(deletes), version, None)?, rate, clock);
    }
    let bytes = entries::encode(adds, version, bundle)?;
    let (mut took, mut deleted) = (Vec::new(), Vec::new());
    for round in 0..args.rounds {
        took.push(add(args, &mut link, &bytes, clock)?);
        check(&mut link, args.count)?;
        if !args.keep || round + 1 < args.rounds {
            deleted.push(delete_all(&mut link, clock)?);
            check(&mut link, 0)?;
        }
    }
    print(args, &took, &deleted)?;
    Ok(ExitCode::SUCCESS)
}

/// Sends the flow-mods and waits until the switch has processed them. Returns the time taken.
fn add(
    args: &FlowModBenchArgs,
    link: &mut OpenFlowClient,
    bytes: &[u8],
    clock: SystemClock,
) -> anyhow::Result<Duration> {
    let started = clock.now();
    let Some(flags) = args.way.flags() else {
        link.stream_and_ask(bytes, Body::BarrierRequest)?;
        return Ok(clock.now().since(started));
    };
    let control =
        |command| Body::BundleControl(BundleControl { bundle: BUNDLE, command, flags, properties: Vec::new() });
    link.ask(control(BundleCommand::OpenRequest))?;
    let reply = link.stream_and_ask(bytes, control(BundleCommand::CommitRequest))?;
    ensure!(
        matches!(&reply, Body::BundleControl(control) if control.command == BundleCommand::CommitReply),
        "expected the reply to a commit, found {reply:?}"
    );
    Ok(clock.now().since(started))
}

/// Deletes all entries. Returns the time taken.
fn delete_all(link: &mut OpenFlowClient, clock: SystemClock) -> anyhow::Result<Duration> {
    let started = clock.now();
    link.tell(Body::FlowMod(FlowMod::delete_all()))?;
    link.ask(Body::BarrierRequest)?;
    Ok(clock.now().since(started))
}

/// Checks that the switch has `count` entries.
///
/// # Errors
/// The switch has another number of entries, or does not report it.
fn check(link: &mut OpenFlowClient, count: u32) -> anyhow::Result<()> {
    let request = MultipartRequest { more: false, body: RequestBody::Aggregate(FlowRequest::all()) };
    let Body::MultipartReply(reply) = link.ask(Body::MultipartRequest(request))? else {
        bail!("the switch does not answer a request for aggregate statistics");
    };
    let ReplyBody::Aggregate(found) = reply.body else { bail!("the switch answers another request than was asked") };
    ensure!(found.flow_count == count, "the switch has {} entries, expected {count}", found.flow_count);
    Ok(())
}

/// Sends flow-mods at a steady rate, a piece per millisecond, and prints the rate that was reached.
fn load(
    args: &FlowModBenchArgs,
    link: &mut OpenFlowClient,
    bytes: &[u8],
    rate: u32,
    clock: SystemClock,
) -> anyhow::Result<ExitCode> {
    let round = 2 * args.count as usize;
    let each = bytes.len() / round;
    let all = round * args.rounds as usize;
    let started = clock.now();
    let mut sent = 0;
    while sent < all {
        let due = clock.now().since(started).as_nanos() * u128::from(rate) / 1_000_000_000;
        let due = usize::try_from(due).unwrap_or(all).min(all);
        while sent < due {
            let from = sent % round;
            let n = (due - sent).min(round - from);
            link.write(&bytes[from * each..(from + n) * each])?;
            sent += n;
        }
        std::thread::park_timeout(SEND_INTERVAL);
    }
    link.ask(Body::BarrierRequest)?;
    let took = clock.now().since(started).as_secs_f64();
    check(link, 0)?;
    let per_second = sent as f64 / took;
    if args.json {
        let report = serde_json::json!({ "sent": sent, "asked_per_second": rate, "per_second": per_second });
        output::print(&format!("{report}\n"))?;
    } else {
        output::print(&format!("{sent} flow-mods in {took:.2} s: {per_second:.0} per second, asked for {rate}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(args: &FlowModBenchArgs, took: &[Duration], deleted: &[Duration]) -> anyhow::Result<()> {
    let seconds = |list: &[Duration]| list.iter().map(Duration::as_secs_f64).collect::<Vec<f64>>();
    let rate = |time: &Duration| f64::from(args.count) / time.as_secs_f64();
    let per_second: Vec<f64> = took.iter().map(rate).collect();
    let report = FlowModBenchReport {
        matching: args.matching,
        way: args.way,
        count: args.count,
        seconds: seconds(took),
        median_per_second: median(&per_second),
        per_second,
        delete_seconds: seconds(deleted),
    };
    if args.json {
        return output::print(&(serde_json::to_string(&report)? + "\n"));
    }
    let mut text = String::new();
    for (round, (seconds, rate)) in report.seconds.iter().zip(&report.per_second).enumerate() {
        text += &format!("round {}: {seconds:.4} s, {rate:.0} flow-mods per second\n", round + 1);
    }
    text += &format!("median: {:.0} flow-mods per second\n", report.median_per_second);
    if !report.delete_seconds.is_empty() {
        text += &format!("deleting all of them: median {:.4} s\n", median(&report.delete_seconds));
    }
    output::print(&text)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

fn parse_version(text: &str) -> Result<Version, String> {
    let found = Version::ALL.into_iter().find(|version| version.name() == text);
    found.ok_or_else(|| format!("found {text:?}, expected 1.3, 1.4 or 1.5"))
}
