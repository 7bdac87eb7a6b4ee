//! Follows the link states of ports: the kernel reports changes of interfaces as they happen, and all links are
//! polled at intervals.
//!
//! Polling covers ports that are no interfaces (memory, wrapped devices), and interfaces that moved to another
//! network namespace, whose changes the kernel does not report to this engine.
use super::io::{EngineIo, PortEvent};
use super::ports::{PortSlot, speed_kbps};
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_port::netlink::{LinkEvent, LinkMonitor};
use weir_units::Instant;

/// Polling interval while some ports' changes are not reported by the kernel.
const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// Polling interval while the kernel reports the changes of all ports.
const TOLD_INTERVAL: Duration = Duration::from_secs(2);
/// Interval at which an engine that has no time to sleep reads the kernel's reports; each read is a system call.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum number of reports handled in one round, because forwarding waits for them.
const MAX_EVENTS: usize = 16;

/// Deadlines and sources for the link states of ports.
#[derive(Default)]
pub(super) struct LinkStateWatcher {
    /// Source of the kernel's reports; `None` without ports that are interfaces, or if the kernel refuses.
    monitor: Option<LinkMonitor>,
    look_at: Instant,
    ask_at: Instant,
    /// True if the last round left reports unread.
    has_more: bool,
}

impl LinkStateWatcher {
    /// Makes the kernel report changes in the calling thread's network namespace.
    pub(super) fn listen(&mut self) {
        if self.monitor.is_some() {
            return;
        }
        match LinkMonitor::new() {
            Ok(monitor) => self.monitor = Some(monitor),
            Err(error) => tracing::warn!("no news of links from the kernel ({error}); they are asked for instead"),
        }
    }

    /// Returns the monitor, which the engine sleeps on together with the ports.
    pub(super) fn monitor(&self) -> Option<&LinkMonitor> {
        self.monitor.as_ref()
    }

    /// Makes the next round read the monitor, because its descriptor was readable.
    pub(super) fn look_now(&mut self) {
        self.look_at = Instant::ZERO;
    }

    /// Latest time at which the engine must be awake for links.
    pub(super) fn due(&self) -> Instant {
        if self.has_more { Instant::ZERO } else { self.ask_at }
    }

    /// Returns the next report; `None` if there is none, or if the kernel has stopped reporting.
    fn next_event(&mut self) -> Option<LinkEvent> {
        match self.monitor.as_mut()?.next_event() {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!("no more news of links from the kernel ({error}); they are asked for instead");
                self.monitor = None;
                None
            }
        }
    }
}

impl EngineIo {
    /// Handles the kernel's reports, and polls links when the interval has passed. Changes become events for the
    /// engine.
    pub(super) fn watch_links(&mut self, now: Instant) {
        if self.links.has_more || now >= self.links.look_at {
            self.links.look_at = now + LOOK_INTERVAL;
            self.take_link_events();
        }
        if now >= self.links.ask_at {
            let all_told = self.links.monitor.is_some() && self.ports.iter().all(|slot| slot.is_interface());
            self.links.ask_at = now + if all_told { TOLD_INTERVAL } else { ASK_INTERVAL };
            self.poll_links(|_| true);
        }
    }

    fn take_link_events(&mut self) {
        self.links.has_more = true;
        for _ in 0..MAX_EVENTS {
            let Some(event) = self.links.next_event() else {
                self.links.has_more = false;
                return;
            };
            match event {
                LinkEvent::Changed { index, name, .. } => self.interface_changed(index, &name),
                // The interface may have been renamed since its port was opened. Polling a port's link detects that
                // its device is gone.
                LinkEvent::Removed { .. } => self.poll_links(PortSlot::is_interface),
                LinkEvent::Missed => {
                    self.ports.iter_mut().for_each(PortSlot::look_at_name);
                    self.poll_links(|_| true);
                    self.absent.try_now();
                }
            }
        }
    }

    fn interface_changed(&mut self, index: u32, name: &str) {
        self.ports.iter_mut().for_each(|slot| slot.note_name(index, name));
        let is_meant = |slot: &PortSlot| slot.is_interface() && (slot.name() == name || slot.is_on(index));
        if self.ports.iter().any(|slot| is_meant(slot) && slot.port.is_none()) {
            self.absent.try_now();
        }
        self.poll_links(is_meant);
    }

    /// Sets a port administratively up or down, as a controller requested.
    pub(super) fn set_admin(&mut self, number: PortNo, up: bool) {
        let Some(place) = self.ports.place(number) else { return };
        let slot = self.ports.at(place);
        let state = if up { "up" } else { "down" };
        tracing::info!("port {number} ({}): set {state} by a controller", slot.spec());
        if let Some(port) = slot.port.as_mut()
            && let Err(error) = port.set_admin(up)
        {
            // The datapath passes no frames of a port that is administratively down, whatever its device does.
            tracing::warn!("port {number} ({}): cannot set the device {state} ({error})", slot.spec());
        }
        self.poll_links(|slot| slot.number == number);
    }

    /// Polls the links of the selected ports. Changes become events for the engine.
    pub(super) fn poll_links(&mut self, is_meant: impl Fn(&PortSlot) -> bool) {
        let mut changes = Vec::new();
        for slot in self.ports.iter_mut().filter(|slot| is_meant(slot)) {
            if let Some(link) = slot.link_change() {
                tracing::info!("port {} ({}): link {}", slot.number, slot.spec(), if link.up { "up" } else { "down" });
                changes.push(PortEvent::Link(slot.number, link.up, speed_kbps(link)));
            }
        }
        changes.into_iter().for_each(|change| self.note(change));
    }
}
