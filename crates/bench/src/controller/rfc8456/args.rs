//! Options of `weir bench rfc8456`, and the settings that they make.
use super::results::BenchmarkTest;
use super::subject::TestSettings;
use super::topology::{TestNetworkPlan, TestTopology};
use crate::controller::peers::ComparedController;
use anyhow::ensure;
use std::path::PathBuf;
use weir_openflow::Version;
use weir_units::TimeSpan;

/// Values of `--quick`: trials, Td in seconds, frame sizes, switches, paths.
const QUICK_TRIALS: u32 = 3;
const QUICK_TRIAL_S: f64 = 0.5;
const QUICK_SIZES: [usize; 1] = [128];
const QUICK_SESSIONS: u32 = 64;
const QUICK_NODES: u32 = 16;
const QUICK_PATHS: u32 = 500;
const QUICK_FLOWS: u32 = 100;
const QUICK_LIMIT_S: f64 = 30.0;
/// Values otherwise. Frame sizes are those of section 4.2, trials those of section 4.7.
const TRIALS: u32 = 10;
const TRIAL_S: f64 = 2.0;
const SIZES: [usize; 3] = [128, 512, 1508];
const SESSIONS: u32 = 512;
const NODES: u32 = 64;
const PATHS: u32 = 4000;
const FLOWS: u32 = 10_000;
const LIMIT_S: f64 = 300.0;

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("controller").required(true).args(["address", "compare"])))]
pub(crate) struct Rfc8456Args {
    /// The controller: HOST:PORT, or tcp:HOST:PORT
    pub(super) address: Option<String>,
    /// Start these controllers one after the other and test each: weir, ovs-testcontroller, os-ken (with the python3 of
    /// the PATH), or NAME=COMMAND with {port} in the command, and {northbound} for a second free port; may be repeated
    #[arg(long, value_name = "CONTROLLER")]
    pub(super) compare: Vec<ComparedController>,
    /// Make only this test; may be repeated
    #[arg(long, value_enum, value_name = "NAME")]
    test: Vec<BenchmarkTest>,
    /// Network of emulated switches. Learning switches need one without loops
    #[arg(long, value_enum, default_value_t = TestTopology::LeafSpine)]
    topology: TestTopology,
    /// Leaves, or all switches of a line or a ring
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=1000))]
    leaves: u32,
    /// Spines of a leaf-spine; more than one make loops
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    spines: u32,
    /// OpenFlow version: 1.0, 1.3 or 1.4
    #[arg(long, default_value = "1.3", value_parser = super::super::parse_version)]
    openflow: Version,
    /// Frame sizes in bytes, with frame check sequence [default: 128,512,1508]
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=9018))]
    frame_sizes: Vec<u32>,
    /// Trials of each test [default: 10]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    trials: Option<u32>,
    /// Trial Duration (Td) [default: 2s]
    #[arg(long, value_parser = super::super::parse_time)]
    trial_time: Option<TimeSpan>,
    /// Longest time of a test; trials beyond it are left out [default: 5min]
    #[arg(long, value_parser = super::super::parse_time)]
    test_limit: Option<TimeSpan>,
    /// Fewer and shorter trials with frames of 128 bytes, smaller limits: to see that everything works
    #[arg(long)]
    quick: bool,
    /// Longest wait for the discovery of all links
    #[arg(long, default_value = "15s", value_name = "TIME", value_parser = super::super::parse_time)]
    discovery: TimeSpan,
    /// Pause before each network is connected: for the controller's applications to start, and to notice that the
    /// switches of the network before are gone
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = super::super::parse_time)]
    pause: TimeSpan,
    /// Reduction of the rate from trial to trial (STEP of 5.1.3), as a part of the first rate
    #[arg(long, default_value_t = 0.1, value_parser = parse_share)]
    step: f64,
    /// Difference up to which two trials are equal (P of 5.1.3), as a part
    #[arg(long, default_value_t = 0.05, value_parser = parse_share)]
    tolerance: f64,
    /// Paths a second to ask for (5.1.6) [default: as many as are provisioned]
    #[arg(long, value_name = "PER_SECOND", value_parser = super::super::parse_rate)]
    path_rate: Option<f64>,
    /// Most paths of a trial, each with hosts of its own (5.1.6, 5.1.7) [default: 4000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_paths: Option<u32>,
    /// Most control sessions (5.2.1) [default: 512]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(super::MOST_DEVICES)))]
    max_sessions: Option<u32>,
    /// Most switches of a network to discover (5.2.2) [default: 64]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=1000))]
    max_nodes: Option<u32>,
    /// Most flows for the forwarding table (5.2.3) [default: 10000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_flows: Option<u32>,
    /// Frames a second of each generator in the tests of reliability (5.4)
    #[arg(long, default_value_t = 100.0, value_name = "PER_SECOND", value_parser = super::super::parse_rate)]
    traffic_rate: f64,
    /// Connections a second of the attack (5.3.2)
    #[arg(long, default_value_t = 1000.0, value_name = "PER_SECOND", value_parser = super::super::parse_rate)]
    attack_rate: f64,
    /// Time between two queries of the northbound interface
    #[arg(long, default_value = "3s", value_name = "TIME", value_parser = super::super::parse_time)]
    query_interval: TimeSpan,
    /// Shell command that prints the numbers of switches, links and hosts that the controller knows (5.1.1, 5.2.2).
    /// {northbound} becomes the port of a compared controller
    #[arg(long, value_name = "COMMAND")]
    topology_command: Option<String>,
    /// Shell command that provisions a path (5.1.5, 5.1.7, 5.2.3), with {src}, {dst}, {src_ip}, {dst_ip}, {src_dpid},
    /// {dst_dpid}, {src_port}, {dst_port}, {number} and {northbound}
    #[arg(long, value_name = "COMMAND")]
    provision_command: Option<String>,
    /// Shell command that prints the number of flow entries in the controller (5.2.3)
    #[arg(long, value_name = "COMMAND")]
    flows_command: Option<String>,
    /// Standby controller for the failover (5.4.1) of compared controllers [default: a second instance]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) standby: Option<String>,
    /// In the failover test, switches are connected to both controllers from the start on
    #[arg(long)]
    both: bool,
    /// Core on which compared controllers run [default: the first; any with one core]
    #[arg(long, value_name = "N")]
    pub(super) core: Option<usize>,
    /// Version of the controller, its state persistence or other settings, for the report; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(super) controller_info: Vec<String>,
    /// Do not measure the emulator itself
    #[arg(long)]
    pub(super) no_emulator: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Print the result as CSV, a line for each value
    #[arg(long, conflicts_with = "json")]
    pub(super) csv: bool,
    /// Write a page with charts to this file, too
    #[arg(long, value_name = "FILE")]
    pub(super) plot: Option<PathBuf>,
}

impl Rfc8456Args {
    /// Returns the tests to make, in the order of the RFC.
    pub(super) fn selected(&self) -> Vec<BenchmarkTest> {
        let is_selected = |test: &BenchmarkTest| self.test.is_empty() || self.test.contains(test);
        BenchmarkTest::ALL.into_iter().filter(is_selected).collect()
    }

    /// Returns the settings.
    ///
    /// # Errors
    /// The topology has too few switches, or a share of rates is not possible.
    pub(super) fn settings(&self) -> anyhow::Result<TestSettings> {
        let (leaves, spines) = (self.leaves as usize, self.spines as usize);
        let plan = TestNetworkPlan::new(self.topology, leaves, spines).map_err(anyhow::Error::msg)?;
        ensure!(
            plan.nodes <= super::MOST_DEVICES as usize && plan.links.len() <= 10_000,
            "--leaves {leaves} and --spines {spines} make {} switches and {} links, expected at most {} and 10000",
            plan.nodes,
            plan.links.len(),
            super::MOST_DEVICES
        );
        let quick = self.quick;
        let of = |quickly, usually| if quick { quickly } else { usually };
        let default_sizes = if quick { QUICK_SIZES.to_vec() } else { SIZES.to_vec() };
        let sizes: Vec<usize> = self.frame_sizes.iter().map(|size| *size as usize).collect();
        let seconds = |time: Option<TimeSpan>| time.map(|time| time.0.as_secs_f64());
        Ok(TestSettings {
            version: self.openflow,
            topology: self.topology,
            leaves,
            spines,
            plan,
            frame_sizes: if sizes.is_empty() { default_sizes } else { sizes },
            trials: self.trials.unwrap_or(of(QUICK_TRIALS, TRIALS)),
            trial_s: seconds(self.trial_time).unwrap_or(if quick { QUICK_TRIAL_S } else { TRIAL_S }),
            limit_s: seconds(self.test_limit).unwrap_or(if quick { QUICK_LIMIT_S } else { LIMIT_S }),
            discovery_s: self.discovery.0.as_secs_f64(),
            pause_s: self.pause.0.as_secs_f64(),
            step: self.step,
            tolerance: self.tolerance,
            path_rate: self.path_rate,
            max_paths: self.max_paths.unwrap_or(of(QUICK_PATHS, PATHS)),
            max_sessions: self.max_sessions.unwrap_or(of(QUICK_SESSIONS, SESSIONS)),
            max_nodes: self.max_nodes.unwrap_or(of(QUICK_NODES, NODES)),
            max_flows: self.max_flows.unwrap_or(of(QUICK_FLOWS, FLOWS)),
            traffic_rate: self.traffic_rate,
            attack_rate: self.attack_rate,
            query_s: self.query_interval.0.as_secs_f64(),
            topology_command: self.topology_command.clone(),
            provision_command: self.provision_command.clone(),
            flows_command: self.flows_command.clone(),
            connects_to_both: self.both,
        })
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|share| (0.001..=0.9).contains(share));
    found.ok_or_else(|| format!("found `{text}`, expected a part from 0.001 to 0.9"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: Rfc8456Args,
    }

    #[test]
    fn a_controller_is_given_by_its_address_or_started() {
        let refused =
            |flags: &[&str]| Flags::try_parse_from([&["x"], flags].concat()).err().map(|error| error.to_string());
        let none = refused(&[]).unwrap();
        assert!(none.contains("<ADDRESS|--compare <CONTROLLER>>"), "{none}");
        assert!(refused(&["127.0.0.1:1", "--compare", "weir"]).is_some());
        assert!(
            refused(&["127.0.0.1:1"]).is_none() && refused(&["--compare", "weir", "--compare", "os-ken"]).is_none()
        );
    }
}
