//! Tests which hosts reach each other, and how fast.
use super::command::address;
use super::{CommandError, PromptOutcome};
use crate::netns::echo::{IcmpPinger, PingRequest};
use crate::netns::parse;
use crate::{CancelHandle, Lab, LabError};
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;
use weir_network::LabProgress;
use weir_scenario::Scenario;
use weir_traffic::TimeHistogram;
use weir_units::Bps;

/// Most hosts for which each pair is listed. With more hosts, only rows with an unexpected outcome are listed.
const LISTED: usize = 32;
/// Port of the receiving program.
const PORT: &str = "5199";

/// Pair of hosts with the expected and the found outcome of a ping.
struct ReachabilityCheck {
    from: usize,
    to: usize,
    address: IpAddr,
    expected: bool,
    took: Option<Duration>,
}

impl ReachabilityCheck {
    fn is_well(&self) -> bool {
        self.took.is_some() == self.expected
    }
}

/// Pings from every host to every other, and prints the outcome.
pub(super) fn ping_all(
    lab: &Lab,
    timeout: Duration,
    cancel: &CancelHandle,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(LabProgress),
) -> Result<PromptOutcome, CommandError> {
    let scenario = lab.scenario();
    let mut pairs = pairs(scenario);
    let pinger = IcmpPinger::open(lab.namespaces()).map_err(LabError::system("open sockets in the hosts"))?;
    let pings: Vec<PingRequest> = pairs.iter().map(|pair| PingRequest { from: pair.from, to: pair.address }).collect();
    let (clock, timeout) = (lab.clock(), lab.dilation().slowed(timeout));
    let took = pinger.run(&pings, timeout, clock, cancel, &mut |done, elapsed| {
        progress(LabProgress::Pings { done, pings: pings.len(), elapsed });
    });
    pairs.iter_mut().zip(took).for_each(|(pair, took)| pair.took = took.map(|time| lab.dilation().told(time)));
    if cancel.is_cancelled() {
        writeln!(out, "stopped")?;
        return Ok(PromptOutcome::Failed);
    }
    pairs.sort_by_key(|pair| (pair.from, pair.to));
    list(scenario, &pairs, out)?;
    sum_up(&pairs, out)?;
    Ok(if pairs.iter().all(ReachabilityCheck::is_well) { PromptOutcome::Done } else { PromptOutcome::Failed })
}

/// Returns all pairs that share a version of IP, in rounds in which each host pings once. Leaves out a host of
/// another tenant if a host of the own tenant has its address, too, because that host may answer.
fn pairs(scenario: &Scenario) -> Vec<ReachabilityCheck> {
    let hosts = &scenario.hosts;
    let pair = |(from, to): (usize, usize)| {
        let address = address(scenario, from, to)?;
        let tenant = hosts[from].tenant;
        let expected = hosts[to].tenant == tenant;
        let own =
            |host: &weir_scenario::ScenarioHost| host.tenant == tenant && host.ip.iter().any(|net| net.addr == address);
        let is_told_apart = expected || !hosts.iter().any(own);
        is_told_apart.then_some(ReachabilityCheck { from, to, address, expected, took: None })
    };
    let rounds =
        (1..hosts.len()).flat_map(|step| (0..hosts.len()).map(move |from| (from, (from + step) % hosts.len())));
    rounds.filter_map(pair).collect()
}

/// Prints a line for each host with the outcome for every other host. The outcome is the name if the host was
/// reached, `X` if it was not, `.` if it was isolated as expected, and the name with `!` if it was reached
/// unexpectedly.
fn list(scenario: &Scenario, pairs: &[ReachabilityCheck], out: &mut dyn Write) -> std::io::Result<()> {
    for of_one in pairs.chunk_by(|a, b| a.from == b.from) {
        if scenario.hosts.len() > LISTED && of_one.iter().all(ReachabilityCheck::is_well) {
            continue;
        }
        write!(out, "{} ->", scenario.hosts[of_one[0].from].name)?;
        for pair in of_one {
            let name = &scenario.hosts[pair.to].name;
            match (pair.took.is_some(), pair.expected) {
                (true, true) => write!(out, " {name}")?,
                (false, true) => write!(out, " X")?,
                (false, false) => write!(out, " .")?,
                (true, false) => write!(out, " {name}!")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn sum_up(pairs: &[ReachabilityCheck], out: &mut dyn Write) -> std::io::Result<()> {
    let count = |expected: bool, reached: bool| {
        pairs.iter().filter(|pair| pair.expected == expected && pair.took.is_some() == reached).count()
    };
    let (reached, lost) = (count(true, true), count(true, false));
    write!(out, "{reached} of {} reached", reached + lost)?;
    let (isolated, leaked) = (count(false, false), count(false, true));
    if isolated + leaked > 0 {
        write!(out, ", {isolated} of {} isolated as they should be", isolated + leaked)?;
    }
    let mut delays = TimeHistogram::default();
    pairs.iter().filter_map(|pair| pair.took).for_each(|took| delays.record(took));
    if let Some(delay) = delays.summary() {
        let ms = |us: f64| us / 1000.0;
        write!(out, "; round trips {:.3} ms (p50), {:.3} ms at most", ms(delay.p50_us), ms(delay.max_us))?;
    }
    writeln!(out)
}

/// Sends by TCP from one host to another, and prints the rate.
pub(super) fn iperf(
    lab: &mut Lab,
    [from, to]: [usize; 2],
    duration: Duration,
    out: &mut dyn Write,
) -> Result<PromptOutcome, CommandError> {
    let Some(address) = address(lab.scenario(), from, to) else {
        return Err(std::io::Error::other("the hosts have no addresses of the same version of IP").into());
    };
    let dilation = lab.dilation();
    let [client_host, server_host] = [from, to].map(|host| lab.namespace(host).to_owned());
    let [from, to] = [from, to].map(|host| lab.scenario().hosts[host].name.clone());
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<String>>();
    let Some(programs) = lab.programs() else { return Ok(PromptOutcome::Failed) };
    let serve = words(&["iperf3", "--server", "--one-off", "--forceflush", "--port", PORT]);
    let server = programs.start_until(&server_host, &serve, "listening")?;
    if server.is_none() {
        let problem = "the iperf3 server did not start: apt-get install iperf3, or is one running there?";
        return Err(std::io::Error::other(problem).into());
    }
    let seconds = dilation.slowed(duration).as_millis().div_ceil(1000).max(1);
    let (target, length) = (address.to_string(), seconds.to_string());
    let client = words(&[
        "iperf3",
        "--client",
        &target,
        "--port",
        PORT,
        "--time",
        &length,
        "--json",
        "--connect-timeout",
        "3000",
    ]);
    let (output, errors) = programs.run(&client_host, &client)?;
    let measured = parse::iperf(&output, &errors);
    let took = measured.span.as_secs_f64();
    if let Some(problem) = measured.problem.filter(|_| took == 0.0) {
        writeln!(out, "{from} -> {to}: {problem}")?;
        return Ok(PromptOutcome::Failed);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate above zero, far from the limit"
    )]
    let rate = Bps((measured.payload_bytes as f64 * 8.0 / took * dilation.factor()).round() as u64);
    writeln!(
        out,
        "{from} -> {to}: {rate:.1} of payload by TCP in {:.1} s",
        dilation.told(measured.span).as_secs_f64()
    )?;
    Ok(PromptOutcome::Done)
}
