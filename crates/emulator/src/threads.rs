//! Configures the threads of a scenario's switches.
use crate::LabError;
use std::str::FromStr;
use weir_scenario::ScenarioSwitch;
use weir_switch::threads::{MachineResources, ThreadsConfig, TrafficClass};

/// Default number of frame buffers of a switch at its start. Small, because a lab has many switches with little
/// traffic at a time.
const BUFFERS: usize = 512;

/// Returns the checked configuration of a switch's threads; one thread if the scenario has none.
///
/// # Errors
/// The configuration cannot work; the message says what to change.
pub(crate) fn threads(switch: &ScenarioSwitch, machine: &MachineResources) -> Result<ThreadsConfig, LabError> {
    let wrong = |problem: String| LabError::Scenario(format!("switch {}: threads: {problem}", switch.name));
    let default = ThreadsConfig { buffers: BUFFERS, ..ThreadsConfig::default() };
    let Some(said) = &switch.threads else { return Ok(default) };
    let class = |text: &String| text.parse::<TrafficClass>().map_err(wrong);
    let config = ThreadsConfig {
        mode: read(&said.mode, default.mode).map_err(wrong)?,
        hand_over: read(&said.hand_over, default.hand_over).map_err(wrong)?,
        workers: said.workers.unwrap_or(default.workers),
        deal: read(&said.deal, default.deal).map_err(wrong)?,
        bursts: read(&said.bursts, default.bursts).map_err(wrong)?,
        io_loop_count: said.io_loop_count.unwrap_or(default.io_loop_count),
        worker_loop_count: said.worker_loop_count.unwrap_or(default.worker_loop_count),
        flush_time: said.flush_time.map_or(default.flush_time, |time| time.0),
        ring_size: said.ring_size.unwrap_or(default.ring_size),
        buffers: said.buffers.unwrap_or(default.buffers),
        policy: read(&said.policy, default.policy).map_err(wrong)?,
        classes: said.class.iter().map(class).collect::<Result<_, _>>()?,
        cpus: read(&said.cpus, default.cpus).map_err(wrong)?,
    };
    config.check(machine).map_err(|error| wrong(error.to_string()))?;
    Ok(config)
}

fn read<T: FromStr<Err = String>>(said: &Option<String>, default: T) -> Result<T, String> {
    said.as_ref().map_or(Ok(default), |text| text.parse())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_switch::threads::{HandOver, ReceivePolicy, ThreadingMode};

    fn switch(threads: &str) -> ScenarioSwitch {
        let text = format!("[[switch]]\nname = 's1'\n[switch.threads]\n{threads}\n");
        let mut scenario =
            weir_scenario::Scenario::parse(&text, "threads.toml").unwrap_or_else(|error| panic!("{error}"));
        scenario.switches.remove(0)
    }

    fn machine() -> MachineResources {
        MachineResources { cpus: (0..4).collect(), memory: None, nodes: Vec::new() }
    }

    #[test]
    fn what_is_said_counts() {
        let said = "mode = 'pipeline'\nhand_over = 'always'\nworkers = 2\nbursts = '8'\nio_loop_count = 7\nworker_loop_count = 9\n\
                    flush_time = '5us'\nring_size = 64\nbuffers = 100\npolicy = 'mac'\nclass = ['icmp=>1']\ncpus = '0-2'";
        let config = threads(&switch(said), &machine()).unwrap();
        assert_eq!((config.mode, config.workers, config.bursts.tx_write), (ThreadingMode::Pipeline, 2, 8));
        assert_eq!(config.hand_over, HandOver::Always);
        assert_eq!((config.io_loop_count, config.worker_loop_count, config.flush_time.as_micros()), (7, 9, 5));
        assert_eq!((config.ring_size, config.policy, config.classes.len()), (64, ReceivePolicy::Mac, 1));
        assert_eq!(config.buffers, 100);
        assert_eq!(config.cpus.0, [0, 1, 2]);
        let several = threads(&switch("workers = 2\ndeal = '1=1'"), &machine()).unwrap();
        assert_eq!(
            (several.mode, several.workers, several.deal.to_string().as_str()),
            (ThreadingMode::RunToCompletion, 2, "1=1")
        );
        assert_eq!(
            threads(&switch(""), &machine()).unwrap(),
            ThreadsConfig { buffers: 512, ..ThreadsConfig::default() }
        );
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        for (said, problem) in [
            ("mode = 'both'", "expected rtc"),
            ("mode = 'pipeline'\nworkers = 9", "at most 4, the cores"),
            ("worker_loop_count = 0", "worker-loop-count: found 0"),
            ("hand_over = 'never'", "expected auto (when it pays) or always"),
            ("class = ['udp']", "MATCH=>WORKER"),
        ] {
            let error = threads(&switch(said), &machine()).unwrap_err().to_string();
            assert!(error.contains("switch s1: threads: ") && error.contains(problem), "{error}");
        }
    }
}
