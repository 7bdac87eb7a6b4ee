//! The device under test (RFC 8456, section 3): where a controller is, what is known of it from earlier tests, and the
//! settings of the tests.
use super::testbed::{DiscoveryState, Testbed, TestbedSettings};
use super::topology::{TestNetworkPlan, TestTopology};
use crate::controller::peers::{ComparedController, NorthboundCommands};
use serde::Serialize;
use std::net::SocketAddr;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_openflow::Version;
use weir_units::{Clock as _, Instant, SystemClock};

/// Settings of all tests.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TestSettings {
    pub(super) version: Version,
    pub(super) topology: TestTopology,
    pub(super) leaves: usize,
    pub(super) spines: usize,
    pub(super) plan: TestNetworkPlan,
    /// Frame sizes in bytes with frame check sequence.
    pub(super) frame_sizes: Vec<usize>,
    pub(super) trials: u32,
    /// Trial Duration (Td) in seconds.
    pub(super) trial_s: f64,
    /// Longest time of a test in seconds.
    pub(super) limit_s: f64,
    /// Longest wait for the discovery of all links, in seconds.
    pub(super) discovery_s: f64,
    /// Pause before each network is deployed, in seconds.
    pub(super) pause_s: f64,
    /// Reduction of the rate (STEP) as a share of the first rate, and tolerance (P) of section 5.1.3.
    pub(super) step: f64,
    pub(super) tolerance: f64,
    /// Paths a second to ask for; as many as are provisioned if `None`.
    pub(super) path_rate: Option<f64>,
    pub(super) max_paths: u32,
    pub(super) max_sessions: u32,
    pub(super) max_nodes: u32,
    pub(super) max_flows: u32,
    /// Frames a second of the tests of reliability.
    pub(super) traffic_rate: f64,
    /// Connections a second of the attack of section 5.3.2.
    pub(super) attack_rate: f64,
    /// Time between two queries of the northbound interface, in seconds.
    pub(super) query_s: f64,
    pub(super) topology_command: Option<String>,
    pub(super) provision_command: Option<String>,
    pub(super) flows_command: Option<String>,
    /// True if switches connect to active and standby controller from the start on.
    pub(super) connects_to_both: bool,
}

impl TestSettings {
    pub(super) fn trial(&self) -> Duration {
        Duration::from_secs_f64(self.trial_s)
    }

    /// Returns the settings for a controller whose northbound interface has this port. Commands that the user did not
    /// give are weir's own ones for it, if there are some.
    pub(super) fn with_northbound(&self, port: u16, own: Option<&NorthboundCommands>) -> TestSettings {
        let line = |given: &Option<String>, own: Option<&String>| {
            let given = given.as_ref().map(|line| line.replace("{northbound}", &port.to_string()));
            given.or_else(|| own.cloned())
        };
        TestSettings {
            topology_command: line(&self.topology_command, own.map(|own| &own.topology)),
            provision_command: line(&self.provision_command, own.map(|own| &own.provision)),
            flows_command: line(&self.flows_command, own.map(|own| &own.flows)),
            ..self.clone()
        }
    }

    pub(super) fn query(&self) -> Duration {
        Duration::from_secs_f64(self.query_s)
    }
}

/// Findings of earlier tests of a controller.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SubjectFindings {
    pub(super) discovery: Option<DiscoveryState>,
    /// Period of its discovery in seconds.
    pub(super) rediscovery_s: Option<f64>,
    /// Messages a second that it processed.
    pub(super) processing_rate: Option<f64>,
}

/// A controller under test.
pub(super) struct TestSubject<'a> {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    /// Standby controller that the user named.
    pub(super) standby: Option<SocketAddr>,
    /// How to start further instances; `None` for a controller that was not started here.
    pub(super) program: Option<&'a ComparedController>,
    pub(super) core: Option<usize>,
    pub(super) settings: &'a TestSettings,
    pub(super) cancel: &'a CancelHandle,
    clock: SystemClock,
    test_until: Instant,
    pub(super) found: SubjectFindings,
}

impl<'a> TestSubject<'a> {
    /// Returns a controller of which nothing is known.
    pub(super) fn new(
        name: &str,
        address: SocketAddr,
        settings: &'a TestSettings,
        cancel: &'a CancelHandle,
    ) -> TestSubject<'a> {
        TestSubject {
            name: name.to_owned(),
            address,
            standby: None,
            program: None,
            core: None,
            settings,
            cancel,
            clock: SystemClock::start(),
            test_until: Instant::FAR,
            found: SubjectFindings::default(),
        }
    }

    /// Begins a test, whose time is bounded.
    pub(super) fn begin_test(&mut self) {
        self.test_until = self.clock.now() + Duration::from_secs_f64(self.settings.limit_s);
    }

    /// Returns true if the test's time is over, or Ctrl-C was pressed.
    pub(super) fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.clock.now() >= self.test_until
    }

    /// Returns the sentence about trials that were not made; `None` if all were.
    pub(super) fn cut_short(&self, made: usize, planned: usize) -> Option<String> {
        let why =
            if self.cancel.is_cancelled() { "stopped" } else { "the test's time limit (--test-limit) was reached" };
        (made < planned && self.is_over()).then(|| format!("{made} of {planned} trials were made: {why}"))
    }

    /// Returns how to connect to this controller.
    pub(super) fn testbed_settings(&self) -> TestbedSettings {
        let limit = Duration::from_secs_f64(self.settings.discovery_s);
        let has_none = self.found.discovery == Some(DiscoveryState::None);
        TestbedSettings {
            controller: self.address,
            standby: None,
            connects_to_both: false,
            version: self.settings.version,
            discovery: (!has_none).then_some(limit),
            cancel: self.cancel.clone(),
        }
    }

    /// Deploys the settings' network.
    ///
    /// # Errors
    /// Fails for the reasons of [`Testbed::deploy`].
    pub(super) fn deploy(&mut self) -> anyhow::Result<Testbed> {
        let bed = self.deploy_plan(self.settings.plan.clone())?;
        self.found.discovery = Some(bed.discovery);
        Ok(bed)
    }

    /// Deploys another network.
    ///
    /// # Errors
    /// Fails for the reasons of [`Testbed::deploy`].
    pub(super) fn deploy_plan(&mut self, plan: TestNetworkPlan) -> anyhow::Result<Testbed> {
        self.pause();
        Testbed::deploy(&self.testbed_settings(), plan)
    }

    /// Waits until the controller's applications are up (section 5.1.1, step 1), and until it has noticed that the
    /// switches of an earlier network are gone.
    pub(super) fn pause(&self) {
        self.cancel.wait(Duration::from_secs_f64(self.settings.pause_s));
    }

    /// Notes what a deployed network has seen of the controller's discovery.
    pub(super) fn note_discovery(&mut self, bed: &Testbed) {
        self.found.rediscovery_s = bed.network.seen.rediscovery_s().or(self.found.rediscovery_s);
    }
}
