//! Finds links between switches by LLDP, so that loops of them are broken.
//!
//! - Purpose: networks whose links are not configured. [`LinkProber`] finds links, and says when they come and go.
//!   [`LinkDiscovery`] makes them trunks of the [learning switches](super::learning), which keep to a spanning tree.
//! - How: a frame of LLDP, the *probe*, is sent by every port of every switch, at once when it comes up and then at an
//!   interval. A probe that arrives at another switch shows a link. A link is gone when three probes in a row are not
//!   heard, although both switches have handled later probes; with a switch that is silent altogether it gets three
//!   times as long. A pause of the controller is no silence of links. One more probe goes to each switch and back, and
//!   says how long that takes; what a probe between two switches takes longer is the link's delay. Links that are lost
//!   again and again are used only where no other way is.
//! - Parameters: [`DiscoveryConfig`].
//! - Limits: a port has one link, the first found, until it is silent or a port was down, and besides those that only
//!   broadcasts have found. Until a loop's links are found, what is flooded goes round. A host that passes a probe on
//!   at once, to a host at another switch, makes up a link between their ports. With several threads, each sends as
//!   many probes as the configuration allows.
//! - Counters: probes sent and received, links found, lost and damped, probes that were forged or sent once more, that
//!   came by ports which are down or contradict a link, and links above the limit.
//! - Place in a chain: in front, because it takes its own LLDP. LLDP of others is passed on.
//! - Source: IEEE 802.1AB-2016.
mod damping;
mod delay;
mod links;
mod lldp;
mod prober;
mod schedule;
#[cfg(test)]
mod tests;

pub use prober::{LinkProber, ProbedLink, ProbedLinkEvent, TrunkPort};

use super::learning::LearningSwitches;
use super::learning::trunks::TrunksReader;
use crate::status::LinkStatus;
use crate::{AppWaker, ConnectionId, ControllerApp, ControllerOutbox, PacketDecision};
use prober::PortDown;
use std::hash::RandomState;
use std::time::Duration;
use weir_openflow::model::FeaturesReply;
use weir_openflow::{Message, PacketInView, Version};
use weir_units::Instant;

/// Configuration of the discovery of links.
#[derive(Debug, Clone)]
pub struct DiscoveryConfig {
    /// Time between two probes by one port, at least 10 ms. Default: 5 s.
    pub interval: Duration,
    /// Most probes sent per second. With more ports than this allows the interval is longer. Default: 20,000.
    pub max_probes_per_s: u32,
    /// True if each probe is also sent as a broadcast (EtherType 0x8942), which switches of others forward. Switches
    /// have to send such frames to the controller. Not used for learning switches, whose tree knows no links that
    /// share a port. Default: false.
    pub broadcast: bool,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        DiscoveryConfig { interval: Duration::from_secs(5), max_probes_per_s: 20_000, broadcast: false }
    }
}

/// Discoveries of one network of learning switches, one for each thread of a controller.
#[derive(Debug)]
pub struct LinkDiscoveries {
    config: DiscoveryConfig,
    learning: LearningSwitches,
    /// Key of the probes, which stays in the program. All threads have the same.
    key: RandomState,
}

impl LinkDiscoveries {
    /// Returns discoveries that give what they find to `learning`.
    pub fn new(config: DiscoveryConfig, learning: &LearningSwitches) -> LinkDiscoveries {
        let config = DiscoveryConfig { broadcast: false, ..config };
        LinkDiscoveries { config, learning: learning.clone(), key: RandomState::new() }
    }

    /// Returns the application of thread number `shard`. It belongs in front of that thread's learning switch.
    pub fn make(&self, shard: usize, waker: AppWaker) -> LinkDiscovery {
        LinkDiscovery {
            prober: LinkProber::with_key(&self.config, self.key.clone(), PortDown::KeepsLinks),
            trunks: self.learning.trunks_reader(shard, waker),
        }
    }
}

/// Discovery of links at the learning switches of one thread.
#[derive(Debug)]
pub struct LinkDiscovery {
    prober: LinkProber,
    trunks: TrunksReader,
}

impl LinkDiscovery {
    /// Makes the links found trunks.
    fn apply_events(&mut self) {
        for event in self.prober.take_events() {
            match event {
                ProbedLinkEvent::Found(link) => self.trunks.add_discovered(link),
                ProbedLinkEvent::Lost(link) => self.trunks.remove_discovered(link),
                // Broadcasts are not used for learning switches.
                ProbedLinkEvent::Direct(_) => {}
                ProbedLinkEvent::Damped(link) => self.trunks.set_damped(link, true),
                ProbedLinkEvent::Released(link) => self.trunks.set_damped(link, false),
            }
        }
    }
}

impl ControllerApp for LinkDiscovery {
    fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.prober.handle_switch_up(now, switch, version, features, out);
        self.apply_events();
    }

    fn handle_packet_in(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        packet: &PacketInView<'_>,
        out: &mut ControllerOutbox,
    ) -> PacketDecision {
        let decision = self.prober.handle_packet_in(now, switch, packet, out);
        self.apply_events();
        decision
    }

    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox) {
        self.prober.handle_message(now, switch, message, out);
        self.apply_events();
    }

    fn handle_switch_down(&mut self, now: Instant, switch: ConnectionId) {
        self.prober.handle_switch_down(now, switch);
        self.apply_events();
    }

    fn next_wake(&self) -> Option<Instant> {
        self.prober.next_wake()
    }

    fn handle_wake(&mut self, now: Instant, out: &mut ControllerOutbox) {
        self.prober.handle_wake(now, out);
        self.apply_events();
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.prober.counters()
    }

    fn name(&self) -> &'static str {
        "link discovery"
    }

    fn links(&self, now: Instant) -> Option<Vec<LinkStatus>> {
        let trunks = self.trunks.newest();
        let status = |link: ProbedLink| {
            let [from, to] = link.ends;
            LinkStatus {
                from: from.0,
                from_port: from.1,
                to: to.0,
                to_port: to.1,
                heard_s: now.since(link.heard).as_secs_f64(),
                delay_us: link.delay.map(|delay| delay.as_secs_f64() * 1e6),
                blocked: trunks.is_blocked(to.0, to.1),
                down: link.ends.into_iter().any(|end| trunks.is_down(end)),
                damped: link.damped,
            }
        };
        Some(self.prober.links().map(status).collect())
    }
}
