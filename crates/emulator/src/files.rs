//! Raises the limit of open files to what a lab needs.
use crate::LabError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_scenario::Scenario;

/// Files open in any case, and pipes to programs of hosts.
const ANYWAY: usize = 128;
/// Files of a switch: descriptors on which its threads sleep, sockets to controllers and tools, link notifications.
const SWITCH: usize = 24;
/// Files of a host: the device of its port, and either its sockets while all hosts are pinged or a thread's
/// descriptors.
const HOST: usize = 12;
/// Files of a link between switches: descriptors that wake its ends.
const LINK: usize = 4;

/// Returns an upper estimate of the files that a scenario's lab has open.
fn needed(scenario: &Scenario) -> u64 {
    let files = ANYWAY + scenario.switches.len() * SWITCH + scenario.hosts.len() * HOST + scenario.links.len() * LINK;
    files as u64
}

/// Raises this process's limit of open files if the scenario needs more.
///
/// # Errors
/// The process is not allowed to raise it far enough.
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
