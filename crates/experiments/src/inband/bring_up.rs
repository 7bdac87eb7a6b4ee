//! Experiment `inband-bring-up`, Fig. 3.19: chains of 1 to 10 switches come up by themselves, and the sessions of a
//! ring outlive the loss of a link.
use super::network::{Arrangement, InBandNetwork, PATIENCE};
use super::{CHAINS, LONGEST, can_run, case, plot};
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_plot::short;
use weir_units::Instant;

pub(super) const ALL_UP: &str = "all sessions up";
const ALL_UP_LONGEST: &str = "all sessions up, longest";
pub(super) const RING: &str = "ring of 4";
const RECOVERED: &str = "answers again";
const RECOVERED_LONGEST: &str = "answers again, longest";
pub(super) const ENDED: &str = "sessions ended";
const ENTRIES: &str = "hidden entries";
/// Case of the figures that are equal for all switches.
const EACH: &str = "each switch";
/// Number of switches in the ring.
const RING_OF: u32 = 4;
/// Interval at which the switches of the ring are asked for an answer.
const ASKING: Duration = Duration::from_millis(2);
/// Claimed bound of the time until ten switches have sessions, in milliseconds.
const UP_MS: f64 = 1000.0;
/// Claimed bound of the time until all switches answer after a lost carrier, in milliseconds.
const RECOVERED_MS: f64 = 50.0;

/// Measures chains, then rings.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    if can_run(run) {
        CHAINS.clone().try_for_each(|switches| chain(run, switches))?;
        ring(run)?;
    }
    claims(run);
    plot(run, "bring-up", "Time until all switches have a session", &[ALL_UP]);
    Ok(())
}

fn chain(run: &mut ExperimentRun<'_>, switches: u32) -> Result<(), ExperimentError> {
    let mut times = Vec::new();
    for turn in 1..=run.sizes.replications {
        if run.is_stopped() {
            return Ok(());
        }
        run.tell(&format!("{}, turn {turn} of {}", case(switches), run.sizes.replications));
        let network = InBandNetwork::start(Arrangement::Chain, switches)?;
        match network.all_up(run) {
            Some(up) => times.push(up.as_secs_f64() * 1e3),
            None if run.is_stopped() => break,
            None => {
                run.note(format!("{}: not all switches had a session in time", case(switches)));
                times.push(PATIENCE.as_secs_f64() * 1e3);
            }
        }
        if switches == 1 && turn == 1 {
            run.figure(EACH, ENTRIES, "", SampledValue::of(network.hidden_entries()? as f64, 1));
        }
    }
    figures(run, &case(switches), [ALL_UP, ALL_UP_LONGEST], &times);
    Ok(())
}

/// Cuts each link of a ring in turn, each time in a new ring.
fn ring(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let (mut times, mut ended) = (Vec::new(), 0);
    for (turn, link) in (0..run.sizes.replications).zip((1..=RING_OF).cycle()) {
        if run.is_stopped() {
            return Ok(());
        }
        run.tell(&format!("{RING}, link {link}, turn {} of {}", turn + 1, run.sizes.replications));
        let network = InBandNetwork::start(Arrangement::Ring, RING_OF)?;
        if network.all_up(run).is_none() {
            run.note(format!("{RING}: not all switches had a session in time"));
            continue;
        }
        network.log.lock().asking = Some(ASKING);
        run.options.cancel.wait(run.sizes.time.0);
        let cut = network.cut_after(link as usize)?;
        let all = || (1..=u64::from(RING_OF)).all(|number| recovered(&network, number, cut).is_some());
        let has_recovered = network.wait(&run.options.cancel, all);
        // A session that the cut ended would end by now: the controller's keepalive and TCP take notice.
        run.options.cancel.wait(run.sizes.time.0);
        ended += network.log.lock().ended;
        match has_recovered {
            Some(()) => {
                let all = (1..=u64::from(RING_OF)).filter_map(|number| recovered(&network, number, cut));
                times.push(all.max().unwrap_or_default().as_secs_f64() * 1e3);
            }
            None if run.is_stopped() => break,
            None => {
                run.note(format!("{RING}: not all switches answered again in time"));
                times.push(PATIENCE.as_secs_f64() * 1e3);
            }
        }
    }
    figures(run, RING, [RECOVERED, RECOVERED_LONGEST], &times);
    if !times.is_empty() {
        run.figure(RING, ENDED, "", SampledValue::of(f64::from(ended), times.len() as u64));
    }
    Ok(())
}

/// Adds the mean and the longest of times in milliseconds.
fn figures(run: &mut ExperimentRun<'_>, case: &str, [mean, longest]: [&'static str; 2], times: &[f64]) {
    let Some(most) = times.iter().copied().reduce(f64::max) else { return };
    run.figure(case, mean, "ms", SampledValue::mean_of(times));
    run.figure(case, longest, "ms", SampledValue::of(most, times.len() as u64));
}

/// Returns the time from the cut to the first answer to a question that was asked after the cut.
fn recovered(network: &InBandNetwork, number: u64, cut: Instant) -> Option<Duration> {
    let log = network.log.lock();
    let after = log.answers.get(&number)?.iter().find(|[asked, _]| *asked > cut)?;
    Some(after[1].since(cut))
}

fn claims(run: &mut ExperimentRun<'_>) {
    let longest = case(LONGEST);
    let text = "a chain of ten switches has all sessions within 1 s (Fig. 3.19)";
    run.claim(text, [(&longest, ALL_UP_LONGEST)], |[ms]| (ms <= UP_MS, format!("after {} ms at most", short(ms))));
    let text = "a switch more does not cost a retransmission: ten switches take less than 0.2 s longer than one";
    run.claim(text, [(&case(1), ALL_UP), (&longest, ALL_UP)], |[one, ten]| {
        (ten - one < 200.0, format!("{} and {} ms", short(ten), short(one)))
    });
    let text = "all switches of a ring answer again within 50 ms of a lost carrier";
    run.claim(text, [(RING, RECOVERED_LONGEST)], |[ms]| {
        (ms <= RECOVERED_MS, format!("after {} ms at most", short(ms)))
    });
    let text = "no session ends when a link of the ring is lost";
    run.claim(text, [(RING, ENDED)], |[ended]| (ended < 0.5, format!("{} ended", short(ended))));
}
