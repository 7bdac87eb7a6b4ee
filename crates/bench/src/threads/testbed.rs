//! Test bed: a switch whose ports always have frames to receive, and the count of packets that leave it.
use super::EgressPattern;
use anyhow::anyhow;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo};
use weir_packet::Field;
use weir_port::null::{FlowHeaderKind, FlowSequence, GeneratedFlows, NullPort};
use weir_switch::threads::{ThreadingMode, ThreadsConfig};
use weir_switch::{PortConfig, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle};
use weir_units::{Clock as _, Instant, SystemClock};

/// Flows per port, and bytes per frame.
const FLOWS: u32 = 1000;
const SIZE: usize = 60;
/// Time before a measurement starts.
const WARM_UP: Duration = Duration::from_millis(200);
/// Interval for checking whether the run was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A switch that forwards as fast as it can.
pub(super) struct ThreadTestbed {
    switch: SwitchHandle,
    clock: SystemClock,
}

impl ThreadTestbed {
    /// Starts a switch of `threads` threads with two ports for each of `most`, so that every number of threads has
    /// the same load.
    ///
    /// # Errors
    /// The switch does not start.
    pub(super) fn start(way: EgressPattern, threads: usize, most: usize) -> anyhow::Result<ThreadTestbed> {
        let most = u32::try_from(most)?;
        let ports = 2 * most;
        let config = SoftwareSwitchConfig {
            // Ports are assigned in turn: port 1 to the first thread, port 2 to the second.
            threads: ThreadsConfig {
                mode: ThreadingMode::RunToCompletion,
                workers: threads,
                ..ThreadsConfig::default()
            },
            ports: (1..=ports).map(source).collect::<Result<_, _>>()?,
            ..SoftwareSwitchConfig::default()
        };
        let switch = SoftwareSwitch::start(config)?;
        for port in 1..=ports {
            let to = way.output(port, most);
            let output = Instruction::ApplyActions(vec![Action::output(PortNo(to))]);
            let matching = Match::any().with(Field::InPort, port);
            switch.flow_mod(FlowMod::add(1, matching, vec![output]))?;
        }
        Ok(ThreadTestbed { switch, clock: SystemClock::start() })
    }

    /// Measures for `time`. Returns the packets that left and the elapsed seconds, or `None` if cancelled.
    ///
    /// # Errors
    /// The switch stopped.
    pub(super) fn measure(&self, time: Duration, cancel: &CancelHandle) -> anyhow::Result<Option<(u64, f64)>> {
        if !self.wait_for(WARM_UP, cancel) {
            return Ok(None);
        }
        let (from, before) = self.read_tx_packets()?;
        if !self.wait_for(time, cancel) {
            return Ok(None);
        }
        let (until, after) = self.read_tx_packets()?;
        Ok(Some((after - before, until.since(from).as_secs_f64())))
    }

    /// Waits for `time`. Returns false if cancelled.
    fn wait_for(&self, time: Duration, cancel: &CancelHandle) -> bool {
        let until = self.clock.now() + time;
        while self.clock.now() < until && !cancel.is_cancelled() {
            std::thread::park_timeout(until.since(self.clock.now()).min(LOOK_EVERY));
        }
        !cancel.is_cancelled()
    }

    /// Returns the time and the packets sent so far.
    fn read_tx_packets(&self) -> anyhow::Result<(Instant, u64)> {
        let ports = self.switch.snapshot()?.ports;
        // The query takes time, and its counters are those at its end.
        Ok((self.clock.now(), ports.iter().map(|port| port.counters.tx_packets).sum()))
    }
}

/// Returns a port that always has frames to receive.
fn source(number: u32) -> anyhow::Result<PortConfig> {
    let flows = GeneratedFlows::new(FlowHeaderKind::Udp, FLOWS, None, SIZE).map_err(|problem| anyhow!("{problem}"))?;
    let port = NullPort::generating(&format!("p{number}"), flows, FlowSequence::cycle(FLOWS));
    Ok(PortConfig::new(PortNo(number), Box::new(port)))
}

impl EgressPattern {
    /// Returns the output port for frames of an input port, if twice `threads` ports are assigned in turn.
    fn output(self, port: u32, threads: u32) -> u32 {
        let ports = 2 * threads;
        match self {
            // The other port of the same thread.
            EgressPattern::Own => (port - 1 + threads) % ports + 1,
            EgressPattern::Crossed => port % ports + 1,
            EgressPattern::OnePort if port == 1 => 2,
            EgressPattern::OnePort => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_of_the_same_thread_or_of_another_one() {
        for threads in [1_u32, 2, 3, 8] {
            for port in 1..=2 * threads {
                let of = |port: u32| (port - 1) % threads;
                let [own, crossed, one] = [EgressPattern::Own, EgressPattern::Crossed, EgressPattern::OnePort]
                    .map(|way| way.output(port, threads));
                assert_eq!(of(own), of(port));
                assert!(own != port && crossed != port && one != port);
                assert!(threads == 1 || of(crossed) != of(port));
                assert!((1..=2 * threads).contains(&own) && (1..=2 * threads).contains(&crossed));
            }
        }
    }

    #[test]
    fn what_comes_leaves() {
        for way in [EgressPattern::Own, EgressPattern::Crossed, EgressPattern::OnePort] {
            let bed = ThreadTestbed::start(way, 1, 1).unwrap();
            let (packets, seconds) = bed.measure(Duration::from_millis(5), &CancelHandle::default()).unwrap().unwrap();
            assert!(packets > 0 && seconds >= 0.005, "{packets} in {seconds} s");
        }
    }
}
