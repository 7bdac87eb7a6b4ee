//! Whether a process may have as many files open as a lab needs.
use crate::LabError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_scenario::Scenario;

/// Files that a process has open anyway, and that programs of hosts are talked to by.
const ANYWAY: usize = 128;
/// Of a switch: its threads' descriptors to sleep on, sockets to controllers and tools, news of links.
const SWITCH: usize = 24;
/// Of a host: the device of its port, its sockets while all are pinged, or a thread's descriptors.
const HOST: usize = 12;
/// Of a link between switches: a descriptor to wake each end.
const LINK: usize = 4;

/// Files that a scenario's lab has open at most, about.
fn needed(scenario: &Scenario) -> u64 {
    let files = ANYWAY + scenario.switches.len() * SWITCH + scenario.hosts.len() * HOST + scenario.links.len() * LINK;
    files as u64
}

/// Has the system allow as many, if that is within what this process may ask for.
///
/// # Errors
/// It is not.
pub(crate) fn allow(scenario: &Scenario) -> Result<(), LabError> {
    let needed = needed(scenario);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(most) = limit.maximum.filter(|most| *most < needed) {
        let (switches, hosts) = (scenario.switches.len(), scenario.hosts.len());
        return Err(LabError::Missing(format!(
            "{switches} switches and {hosts} hosts need about {needed} open files, found a limit of {most}: raise it (ulimit -Hn {needed})"
        )));
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|error| LabError::system("raise the limit of open files")(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_enough_for_a_small_lab() {
        let text = "[[switch]]\nname = \"s1\"\n[[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\n";
        let scenario = Scenario::parse(text, "small").unwrap();
        assert_eq!(needed(&scenario), 164);
        allow(&scenario).unwrap();
        assert!(getrlimit(Resource::Nofile).current.is_none_or(|current| current >= 164));
    }
}
