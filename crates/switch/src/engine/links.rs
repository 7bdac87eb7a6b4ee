//! Links of ports: the kernel tells about changes of interfaces as they happen; all links are asked for now and then.
//!
//! Asking is for ports that are no interfaces (memory, wrapped devices) and for interfaces the kernel does not tell this
//! engine about, since they moved to another network namespace.
use super::{Engine, ports};
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_port::link::{Event, Monitor};
use weir_units::{Clock, Instant};

/// How often links are asked for that nobody tells about.
const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// The same when the kernel tells about all of them.
const TOLD_INTERVAL: Duration = Duration::from_secs(2);
/// How often an engine that has no time to sleep looks for what the kernel tells: a system call each time.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// Changes taken in one round at most: what forwarding waits.
const MAX_EVENTS: usize = 16;

/// What an engine knows about the time of links.
#[derive(Default)]
pub(super) struct Links {
    /// None without ports that are interfaces, or if the kernel refuses.
    monitor: Option<Monitor>,
    look_at: Instant,
    ask_at: Instant,
    /// More was told than one round takes.
    has_more: bool,
}

impl Links {
    /// Makes sure that the kernel tells about the calling thread's network namespace.
    pub(super) fn listen(&mut self) {
        if self.monitor.is_some() {
            return;
        }
        match Monitor::new() {
            Ok(monitor) => self.monitor = Some(monitor),
            Err(error) => tracing::warn!("no news of links from the kernel ({error}); they are asked for instead"),
        }
    }

    /// What the engine sleeps on, besides ports.
    pub(super) fn monitor(&self) -> Option<&Monitor> {
        self.monitor.as_ref()
    }

    /// The monitor's descriptor was readable.
    pub(super) fn look_now(&mut self) {
        self.look_at = Instant::ZERO;
    }

    /// When the engine is to be awake at the latest.
    pub(super) fn due(&self) -> Instant {
        if self.has_more { Instant::ZERO } else { self.ask_at }
    }

    /// The next thing told; none at the end, or when the kernel tells no more.
    fn next_event(&mut self) -> Option<Event> {
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

impl Engine {
    /// Takes what the kernel tells, and asks when it is time to.
    pub(super) fn watch_links(&mut self, now: Instant) {
        if self.links.has_more || now >= self.links.look_at {
            self.links.look_at = now + LOOK_INTERVAL;
            self.take_link_events(now);
        }
        if now >= self.links.ask_at {
            let all_told = self.links.monitor.is_some() && self.ports.iter().all(|slot| slot.is_interface());
            self.links.ask_at = now + if all_told { TOLD_INTERVAL } else { ASK_INTERVAL };
            self.ask_links(now, |_| true);
        }
    }

    fn take_link_events(&mut self, now: Instant) {
        self.links.has_more = true;
        for _ in 0..MAX_EVENTS {
            let Some(event) = self.links.next_event() else {
                self.links.has_more = false;
                return;
            };
            match event {
                Event::Changed { index, name, .. } => self.interface_changed(now, index, &name),
                // Whatever its name was when it was opened: a port that is asked for its link finds out that it is gone.
                Event::Removed { .. } => self.ask_links(now, ports::Slot::is_interface),
                Event::Missed => {
                    self.ports.iter_mut().for_each(ports::Slot::look_at_name);
                    self.ask_links(now, |_| true);
                    self.absent.try_now();
                }
            }
        }
    }

    fn interface_changed(&mut self, now: Instant, index: u32, name: &str) {
        self.ports.iter_mut().for_each(|slot| slot.note_name(index, name));
        let is_meant = |slot: &ports::Slot| slot.is_interface() && (slot.name() == name || slot.is_on(index));
        if self.ports.iter().any(|slot| is_meant(slot) && slot.port.is_none()) {
            self.absent.try_now();
        }
        self.ask_links(now, is_meant);
    }

    /// Takes a port into or out of service, as a controller asked for.
    pub(super) fn set_admin(&mut self, now: Instant, number: PortNo, up: bool) {
        let Some(place) = self.ports.place(number) else { return };
        let slot = self.ports.at(place);
        let state = if up { "up" } else { "down" };
        tracing::info!("port {number} ({}): set {state} by a controller", slot.spec());
        if let Some(port) = slot.port.as_mut()
            && let Err(error) = port.set_admin(up)
        {
            // The datapath passes no frames of a port that is to be down, whatever its device does.
            tracing::warn!("port {number} ({}): cannot set the device {state} ({error})", slot.spec());
        }
        self.ask_links(now, |slot| slot.number == number);
    }

    /// Asks all ports for their links now.
    pub(crate) fn look_at_links(&mut self) {
        self.ask_links(self.clock.now(), |_| true);
    }

    /// Asks ports for their links, and tells what changed.
    fn ask_links(&mut self, now: Instant, is_meant: impl Fn(&ports::Slot) -> bool) {
        for slot in self.ports.iter_mut().filter(|slot| is_meant(slot)) {
            if let Some(link) = slot.link_change() {
                tracing::info!("port {} ({}): link {}", slot.number, slot.spec(), if link.up { "up" } else { "down" });
                self.logical.datapath.get().set_link(
                    now,
                    slot.number,
                    link.up,
                    ports::speed_kbps(link),
                    &mut self.logical.out,
                );
            }
        }
        self.deliver(now);
        self.follow_links(now);
    }
}
