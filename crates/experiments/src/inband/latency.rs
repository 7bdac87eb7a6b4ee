//! Experiment `inband-latency`, Figs. 3.20 and 3.21: delay of the first packet of a flow through a chain whose switches
//! ask the controller in band, with entries installed switch by switch or at all switches at once.
use super::app::FlowSetup;
use super::network::{Arrangement, InBandNetwork};
use super::{CHAINS, LONGEST, can_run, case, plot};
use crate::{ExperimentError, ExperimentRun, SampledValue};
use weir_plot::short;
use weir_units::Clock as _;

pub(super) const REACTIVE: &str = "first packet, reactive";
pub(super) const PROACTIVE: &str = "first packet, proactive";
const PACKET_INS: &str = "packet-ins, proactive";
/// Published delay over ten switches, in milliseconds.
const PUBLISHED_MS: f64 = 33.0;
/// Claimed bound of the delay with entries installed at all switches at once, in milliseconds.
const PROACTIVE_MS: f64 = 5.0;

/// Measures each chain with both ways to install entries.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    if can_run(run) {
        CHAINS.clone().try_for_each(|switches| chain(run, switches))?;
    }
    claims(run);
    plot(run, "first-packet", "Delay of the first packet of a flow (Fig. 3.21)", &[REACTIVE, PROACTIVE]);
    Ok(())
}

fn chain(run: &mut ExperimentRun<'_>, switches: u32) -> Result<(), ExperimentError> {
    if run.is_stopped() {
        return Ok(());
    }
    run.tell(&case(switches));
    let mut network = InBandNetwork::start(Arrangement::Chain, switches)?;
    if network.all_up(run).is_none() {
        run.note(format!("{}: not all switches had a session in time", case(switches)));
        return Ok(());
    }
    // The entries that ask the controller arrive, and caches and threads warm up.
    for _ in 0..2 {
        network.first_packet(run);
    }
    for (setup, metric) in [(FlowSetup::Reactive, REACTIVE), (FlowSetup::Proactive, PROACTIVE)] {
        network.log.lock().setup = setup;
        let before = network.log.lock().packet_ins;
        let (begin, mut times) = (network.clock.now(), Vec::new());
        while network.clock.now().since(begin) < run.sizes.time.0 && !run.is_stopped() {
            match network.first_packet(run) {
                Some(delay) => times.push(delay.as_secs_f64() * 1e3),
                None => run.note(format!("{}: a packet did not arrive", case(switches))),
            }
        }
        if times.is_empty() {
            continue;
        }
        run.figure(&case(switches), metric, "ms", SampledValue::mean_of(&times));
        if setup == FlowSetup::Proactive {
            let asked = f64::from(network.log.lock().packet_ins - before) / times.len() as f64;
            run.figure(&case(switches), PACKET_INS, "", SampledValue::of(asked, times.len() as u64));
        }
    }
    Ok(())
}

fn claims(run: &mut ExperimentRun<'_>) {
    let longest = case(LONGEST);
    let text = "over ten switches a reactive first packet takes less than the published 33 ms (Fig. 3.21)";
    run.claim(text, [(&longest, REACTIVE)], |[ms]| (ms < PUBLISHED_MS, format!("{} ms", short(ms))));
    let text = "over ten switches a proactive first packet takes at most 5 ms (Fig. 3.21)";
    run.claim(text, [(&longest, PROACTIVE)], |[ms]| (ms <= PROACTIVE_MS, format!("{} ms", short(ms))));
    let text =
        "from one to ten switches, the reactive delay grows by more than twice what the proactive one does (Fig. 3.21)";
    let one = case(1);
    let figures = [(&*one, REACTIVE), (&*longest, REACTIVE), (&*one, PROACTIVE), (&*longest, PROACTIVE)];
    run.claim(text, figures, |[reactive_1, reactive_10, proactive_1, proactive_10]| {
        let [reactive, proactive] = [reactive_10 - reactive_1, proactive_10 - proactive_1];
        (reactive > 2.0 * proactive, format!("by {} and {} ms", short(reactive), short(proactive)))
    });
}
