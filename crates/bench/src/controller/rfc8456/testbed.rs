//! A deployed network: emulated switches connected to a controller, discovery awaited, connections renewed.
use super::network::TestNetwork;
use super::node::{TestChannel, TestChannelStage};
use super::northbound::NorthboundCommand;
use super::offer::{OfferedHosts, OfferedPace, OfferedStream};
use super::topology::TestNetworkPlan;
use crate::controller::engine::SwitchSockets;
use anyhow::bail;
use std::net::SocketAddr;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_openflow::Version;
use weir_units::{Clock as _, Instant};

/// Time without a message of the controller after which it has done its part.
pub(super) const QUIET: Duration = Duration::from_millis(100);
/// Longest wait for the controller to set up all switches, and to become quiet.
const SET_UP: Duration = Duration::from_secs(30);
const CALM: Duration = Duration::from_secs(10);
/// Time in which a controller that discovers links sends its first discovery message.
pub(super) const FIRST_PROBE: Duration = Duration::from_secs(10);
/// Time after which a switch whose connection ended connects again.
const RECONNECT: Duration = Duration::from_millis(50);
/// Announcements on the way at once.
const ANNOUNCED_AT_ONCE: u32 = 32;

/// Addresses and ways to connect.
#[derive(Debug, Clone)]
pub(super) struct TestbedSettings {
    pub(super) controller: SocketAddr,
    /// Controller to connect to once the first one is gone, or from the start on.
    pub(super) standby: Option<SocketAddr>,
    pub(super) connects_to_both: bool,
    pub(super) version: Version,
    /// Longest wait for the discovery of all links; `None` if the controller is known to do none.
    pub(super) discovery: Option<Duration>,
    pub(super) cancel: CancelHandle,
}

/// State of the controller's discovery of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscoveryState {
    /// Discovery messages passed each link in both directions.
    Complete,
    /// Discovery messages passed so many directions of so many.
    Partial(usize, usize),
    /// The controller sent no discovery messages.
    None,
}

/// A deployed network.
pub(super) struct Testbed {
    pub(super) network: TestNetwork,
    sockets: SwitchSockets,
    settings: TestbedSettings,
    pub(super) discovery: DiscoveryState,
    /// Number of the next stream and of the next host, so that no trial uses those of another one.
    next_stream: u32,
    next_host: u32,
    reconnect_at: Instant,
    /// True if switches whose connection ended connect again.
    pub(super) is_renewing: bool,
}

impl Testbed {
    /// Connects the switches of a network, and waits until the controller has set them up, has discovered the links and
    /// is quiet.
    ///
    /// # Errors
    /// The controller cannot be reached, or does not set up a switch in time.
    pub(super) fn deploy(settings: &TestbedSettings, plan: TestNetworkPlan) -> anyhow::Result<Testbed> {
        let mut bed = Testbed::connect(settings, plan)?;
        bed.wait_set_up()?;
        bed.wait_discovery();
        bed.wait_quiet(QUIET, CALM);
        Ok(bed)
    }

    /// Connects the switches of a network.
    ///
    /// # Errors
    /// The controller cannot be reached.
    pub(super) fn connect(settings: &TestbedSettings, plan: TestNetworkPlan) -> anyhow::Result<Testbed> {
        let nodes = plan.nodes;
        let mut bed = Testbed::unconnected(settings, plan)?;
        for node in 0..nodes {
            if bed.is_cancelled() {
                break;
            }
            bed.connect_node(node)?;
        }
        Ok(bed)
    }

    /// Returns a network whose switches are not connected.
    ///
    /// # Errors
    /// The system gives no epoll.
    pub(super) fn unconnected(settings: &TestbedSettings, plan: TestNetworkPlan) -> anyhow::Result<Testbed> {
        Ok(Testbed {
            network: TestNetwork::new(plan, settings.version),
            sockets: SwitchSockets::new(settings.controller, settings.cancel.clone())?,
            settings: settings.clone(),
            discovery: DiscoveryState::None,
            next_stream: 0,
            next_host: 0,
            reconnect_at: Instant::ZERO,
            is_renewing: true,
        })
    }

    /// Connects a switch to its controllers.
    ///
    /// # Errors
    /// The controller cannot be reached.
    pub(super) fn connect_node(&mut self, node: usize) -> anyhow::Result<()> {
        let begun = self.sockets.open()?;
        self.network.connect(node, begun, false);
        if let Some(standby) = self.settings.standby.filter(|_| self.settings.connects_to_both) {
            let begun = self.sockets.open_to(standby)?;
            self.network.connect(node, begun, true);
        }
        self.sockets.flush(&mut self.network);
        let now = self.now();
        self.sockets.run(&mut self.network, now, |_| true)
    }

    /// Returns the present time.
    pub(super) fn now(&self) -> Instant {
        self.sockets.clock.now()
    }

    /// Returns the version that the switches speak.
    pub(super) fn version(&self) -> Version {
        self.settings.version
    }

    /// Returns true if Ctrl-C was pressed.
    pub(super) fn is_cancelled(&self) -> bool {
        self.sockets.is_cancelled()
    }

    /// Runs the network for a time, or until `is_done` holds. Returns true if it does. Connections that ended are
    /// renewed meanwhile.
    ///
    /// # Errors
    /// The system cannot wait for sockets.
    pub(super) fn run(
        &mut self,
        time: Duration,
        mut is_done: impl FnMut(&TestNetwork) -> bool,
    ) -> anyhow::Result<bool> {
        let until = self.now() + time;
        loop {
            let pause = self.reconnect_at.max(self.now());
            let is_renewing = self.is_renewing;
            let is_broken = |network: &TestNetwork| is_renewing && network.channels.iter().any(is_to_replace);
            let has_broken = is_broken(&self.network);
            let until_now = if has_broken { until.min(pause) } else { until };
            let mut done = false;
            self.sockets.run(&mut self.network, until_now, |network| {
                done = is_done(network);
                done || !has_broken && is_broken(network)
            })?;
            if done || self.is_cancelled() || self.now() >= until {
                return Ok(done || is_done(&self.network));
            }
            self.reconnect();
        }
    }

    /// Runs the network for a time.
    ///
    /// # Errors
    /// The system cannot wait for sockets.
    pub(super) fn run_for(&mut self, time: Duration) -> anyhow::Result<()> {
        self.run(time, |_| false).map(drop)
    }

    /// Connects those switches again whose connection ended: to the standby controller if there is one.
    fn reconnect(&mut self) {
        let now = self.now();
        if now < self.reconnect_at {
            return;
        }
        for number in 0..self.network.channels.len() {
            let channel = &self.network.channels[number];
            if !is_to_replace(channel) {
                continue;
            }
            let node = channel.node;
            let address = self.settings.standby.unwrap_or(self.settings.controller);
            if let Ok(begun) = self.sockets.open_to(address) {
                self.network.channels[number].is_replaced = true;
                self.network.connect(node, begun, self.settings.standby.is_some());
                self.network.seen.reconnects += 1;
            } else {
                self.reconnect_at = now + RECONNECT;
                return;
            }
        }
        self.reconnect_at = now + RECONNECT;
        self.sockets.flush(&mut self.network);
    }

    /// No connection to the first controller is renewed from now on if there is a channel to the standby.
    pub(super) fn give_up_first(&mut self) {
        if self.settings.connects_to_both {
            self.network.channels.iter_mut().for_each(|channel| channel.is_replaced |= !channel.is_standby);
        }
    }

    /// Waits until all switches are set up.
    ///
    /// # Errors
    /// The controller does not set up all of them in time, or closes a connection.
    pub(super) fn wait_set_up(&mut self) -> anyhow::Result<()> {
        let all = self.network.channels.len();
        self.run(SET_UP, |network| network.set_up() == all)?;
        let ready = self.network.set_up();
        let reason = self.network.channels.iter().find(|channel| channel.stage == TestChannelStage::Ended);
        let why = reason.map_or_else(String::new, |channel| format!(": {}", channel.reason));
        if ready < all && !self.is_cancelled() {
            bail!(
                "{ready} of {all} switches were set up within {SET_UP:?}{why}; does the controller speak this version?"
            );
        }
        Ok(())
    }

    /// Waits until discovery is complete, or until it has not begun in time.
    pub(super) fn wait_discovery(&mut self) {
        let Some(limit) = self.settings.discovery else { return };
        // A failure to wait shows at the next call.
        let _ = self.run(FIRST_PROBE.min(limit), |network| network.seen.first_probe.is_some());
        if self.network.seen.first_probe.is_some() {
            let _ = self.run(limit, TestNetwork::is_discovered);
        }
        let (found, all) = (self.network.discovered_directions(), self.network.plan.links.len() * 2);
        self.discovery = match self.network.seen.first_probe {
            None => DiscoveryState::None,
            Some(_) if found == all => DiscoveryState::Complete,
            Some(_) => DiscoveryState::Partial(found, all),
        };
    }

    /// Waits until the controller has sent nothing but discovery messages for a time, from now on. Returns true if it
    /// was quiet.
    pub(super) fn wait_quiet(&mut self, quiet: Duration, limit: Duration) -> bool {
        let begin = self.now();
        let until = begin + limit;
        while self.now() < until && !self.is_cancelled() {
            let heard = self.network.seen.last_heard.unwrap_or(begin).max(begin);
            let silent = self.now().since(heard);
            if silent >= quiet {
                return true;
            }
            let _ = self.run_for(quiet.saturating_sub(silent));
        }
        false
    }

    /// Runs a command of the user beside the network, and returns what it printed. The error is for the report.
    ///
    /// # Errors
    /// The system cannot wait for sockets.
    pub(super) fn command(&mut self, line: &str, limit: Duration) -> anyhow::Result<Result<String, String>> {
        let mut command = match NorthboundCommand::start(line) {
            Ok(command) => command,
            Err(error) => return Ok(Err(error)),
        };
        let mut ended = None;
        self.network.is_watched = true;
        let result = self.run(limit, |_| {
            ended = ended.take().or_else(|| command.ended());
            ended.is_some()
        });
        self.network.is_watched = false;
        result?;
        Ok(ended.unwrap_or_else(|| Err(format!("`{line}` did not end within {limit:?}"))))
    }

    /// Returns a new stream number, and the first of `hosts` host numbers that no stream has used.
    pub(super) fn fresh(&mut self, hosts: u32) -> (u32, u32) {
        self.next_stream += 1;
        let base = self.next_host;
        self.next_host = (base + hosts) & 0xff_ffff;
        (self.next_stream, base)
    }

    /// Makes hosts behind a generator known by announcements, and waits until the controller is quiet.
    ///
    /// # Errors
    /// The system cannot wait for sockets.
    pub(super) fn announce(&mut self, generator: usize, base: u32, count: u32) -> anyhow::Result<()> {
        let now = self.now();
        self.network.arrivals[1 - generator].announcements = 0;
        let stream = OfferedStream::new(
            now,
            (generator, 0),
            (OfferedHosts::Announcements, base),
            (OfferedPace::Window(ANNOUNCED_AT_ONCE), count),
            0,
        );
        self.network.streams.push(stream);
        // A controller that floods no announcements is given the time of a window for each.
        let limit = CALM + Duration::from_millis(10) * count;
        self.run(limit, |network| network.streams.iter().all(|stream| stream.sent >= stream.count))?;
        self.network.streams.clear();
        self.wait_quiet(QUIET, CALM);
        Ok(())
    }
}

fn is_to_replace(channel: &TestChannel) -> bool {
    channel.stage == TestChannelStage::Ended && !channel.is_replaced
}
