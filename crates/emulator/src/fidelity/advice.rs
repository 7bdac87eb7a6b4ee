//! Computes, of what was measured, how much slower a scenario has to be for this machine to keep its times.
use super::evidence::{LabEvidence, SlowingWay};
use crate::dilate::Dilation;
use std::time::Duration;
use weir_network::certificate::MachineLoad;

/// Share of the processors' time that may be used for queues of threads to stay short.
const BUSY: f64 = 0.5;
/// Share of the processors' time from which on other programs are worth ending.
const OTHERS: f64 = 0.2;
/// Smallest share of packets that is taken as carried, so that factors stay finite.
const LEAST: f64 = 0.05;

/// Largest dilation that is advised. Later releases than it allows for come from a stop of the machine, which a slower
/// run meets just as well.
const MOST_ADVISED: f64 = 100.0;

/// Excess of a factor that comes from the resolution of histograms.
const HISTOGRAM_ERROR: f64 = 0.01;

/// Ways to make a run faithful, for this machine.
pub(super) struct Remedies {
    /// Lower rates of traffic, if the processors were too busy.
    pub(super) rates: Option<String>,
    /// No other programs, if they had much of the processors' time.
    pub(super) alone: Option<String>,
    /// Slower run, if that is possible and helps.
    pub(super) slower: Option<String>,
    /// Fewer threads, if there are as many switches as processors.
    pub(super) awake: Option<String>,
    /// Another machine.
    pub(super) machine: &'static str,
}

impl Remedies {
    /// Computes the remedies for a run of length `duration` that was dilated already by `dilation`.
    pub(super) fn of(
        evidence: &LabEvidence,
        machine: &MachineLoad,
        duration: Duration,
        dilation: Dilation,
    ) -> Remedies {
        let share = rate_share(evidence, machine);
        let rates = share.map(|share| {
            let packets =
                evidence.senders.map(|senders| senders.asked as f64 * share / duration.as_secs_f64().max(1e-3));
            let packets = packets.filter(|packets| *packets >= 1.0);
            let packets =
                packets.map_or_else(String::new, |packets| format!(" ({packets:.0} packets a second in all)"));
            format!(
                "lower the rates of traffic to {:.0} % of the file's{packets}: processors are then half busy",
                percent(share)
            )
        });
        let by_links = evidence.links.map_or(1.0, |late| late.p99_in_bounds);
        let by_devices =
            evidence.devices.map_or(1.0, |late| late.worst_p99_us / 1e6 / super::DEVICE_BOUND.as_secs_f64());
        let factor = by_links.max(by_devices).max(share.map_or(1.0, f64::recip));
        let factor = (factor * dilation.factor() - HISTOGRAM_ERROR).ceil();
        let others = machine.busy_share - machine.own_share - machine.stolen_share;
        let alone = (others > OTHERS).then(|| {
            format!("end other programs, also in hosts, which had {:.0} % of the processors' time", others * 100.0)
        });
        // How late the lab would be without other programs is not known.
        let helps = |factor: f64| factor > dilation.factor() && factor <= MOST_ADVISED && alone.is_none();
        let slower = Dilation::new(factor).ok().filter(|slower| helps(slower.factor()));
        let slower = slower.and_then(|slower| match evidence.way {
            SlowingWay::None => None,
            SlowingWay::Option => Some(format!("use --dilate {}", slower.factor())),
            SlowingWay::Emulation => Some(format!("use weir emulate --dilate {}, as root", slower.factor())),
        });
        // Without /proc the number of processors is not known.
        let sleeps = machine.processors > 0 && evidence.switches >= machine.processors;
        let awake = sleeps.then(|| {
            let processors = machine.processors;
            format!(
                "use fewer switches than the {processors} processors: with as many or more, switches sleep, and wake too late for frames"
            )
        });
        Remedies { rates, alone, slower, awake, machine: "use fewer or idler nodes, or more processors" }
    }

    /// Returns the advice against late threads, the most helpful first.
    pub(super) fn for_lateness(&self) -> Vec<&str> {
        let computed = [&self.alone, &self.awake, &self.rates, &self.slower].into_iter().flatten().map(String::as_str);
        computed.chain([self.machine]).collect()
    }

    /// Returns the advice against too much work, the most helpful first.
    pub(super) fn for_load(&self) -> Vec<&str> {
        let computed = [&self.alone, &self.rates, &self.slower].into_iter().flatten().map(String::as_str);
        computed.chain([self.machine]).collect()
    }
}

/// Returns the share of the traffic's rates at which the lab alone would leave half of the processors' time; `None` if
/// it did so at the whole rates.
fn rate_share(evidence: &LabEvidence, machine: &MachineLoad) -> Option<f64> {
    let asked = evidence.senders.map_or(0, |senders| senders.asked);
    let lost: u64 = evidence.flows.iter().map(|flow| flow.lost + flow.not_sent).sum();
    let carried = if asked > 0 { (asked.saturating_sub(lost) as f64 / asked as f64).max(LEAST) } else { 1.0 };
    // Work for packets that were lost or not sent comes on top of what was measured.
    let wanted = machine.own_share / carried;
    let share = BUSY / wanted;
    (share < 1.0).then_some(share)
}

/// Returns a share in percent, rounded down to whole ones; at least 1.
fn percent(share: f64) -> f64 {
    (share * 100.0).floor().max(1.0)
}
