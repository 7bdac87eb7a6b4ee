//! Keeps the engine's ports: open ones, and ones whose device is missing.
use crate::clock::{SwitchClock, machine_clock};
use crate::config::PortReopener;
use crate::snapshot::{PortSnapshot, QueueSnapshot};
use weir_datapath::PortCounters;
use weir_openflow::model::port::{bits, feature};
use weir_openflow::model::{PortDesc, PortNo};
use weir_port::queues::{PortQueueConfig, QueueState, TransmitQueues};
use weir_port::spec::PortKind;
use weir_port::{LinkState, Port, PortInfo, interface};

/// A port of the switch and its state.
pub(crate) struct PortSlot {
    /// OpenFlow number of the port.
    pub(crate) number: PortNo,
    /// The open port; `None` while its device is gone.
    pub(crate) port: Option<Box<dyn Port>>,
    /// Function that opens the port again; `None` if the port cannot be reopened, or while an attempt runs.
    pub(crate) reopen: Option<PortReopener>,
    /// Queue configurations, kept while the device is gone.
    pub(super) kept_queues: Option<Vec<PortQueueConfig>>,
    /// True if reading frames costs a system call.
    pub(super) costs_a_call: bool,
    pub(super) polling: PortPolling,
    stamps: ArrivalStamps,
    info: PortInfo,
    is_interface: bool,
    /// The interface of the port, if the kernel reports its changes.
    device: Option<PortInterface>,
    link: LinkState,
}

/// Way in which the engine learns of a port's frames; see [`super::idle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortPolling {
    /// The port is read in every round; the last `quiet_rounds` in a row had no frame.
    EachRound {
        /// Number of rounds in a row without a frame.
        quiet_rounds: u32,
    },
    /// The port is not read before its descriptor becomes readable.
    Watched,
}

/// Availability of arrival times for a port's received frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrivalStamps {
    /// Time stamps were not requested yet.
    NotRequested,
    /// Frames carry their arrival time.
    Stamped,
    /// The port cannot stamp frames.
    Unavailable,
}

/// An interface, whose name may have changed since the port was opened. The port stays on the interface.
struct PortInterface {
    index: u32,
    renamed: Option<String>,
}

impl PortInterface {
    fn of(info: &PortInfo) -> Option<PortInterface> {
        let index = is_interface(info).then(|| interface::index_of(&info.name))??;
        Some(PortInterface { index, renamed: None })
    }
}

/// All ports, ordered by number.
#[derive(Default)]
pub(crate) struct PortSlots {
    slots: Vec<PortSlot>,
}

impl PortSlot {
    /// Returns the slot of a port that was just opened.
    pub(crate) fn new(number: PortNo, mut port: Box<dyn Port>, reopen: Option<PortReopener>) -> PortSlot {
        let (info, link) = (port.info().clone(), port.link());
        let (is_interface, device) = (is_interface(&info), PortInterface::of(&info));
        let costs_a_call = info.kind().is_some_and(PortKind::costs_a_call);
        PortSlot {
            number,
            port: Some(port),
            reopen,
            kept_queues: None,
            costs_a_call,
            polling: PortPolling::EachRound { quiet_rounds: 0 },
            stamps: ArrivalStamps::NotRequested,
            info,
            is_interface,
            device,
            link,
        }
    }

    /// Puts a reopened port back after its device was gone.
    pub(crate) fn put_back(&mut self, mut port: Box<dyn Port>, reopen: PortReopener) {
        (self.info, self.link) = (port.info().clone(), port.link());
        self.device = PortInterface::of(&self.info);
        (self.port, self.reopen, self.stamps) = (Some(port), Some(reopen), ArrivalStamps::NotRequested);
        self.ask_again();
    }

    /// Returns true if received frames carry their arrival time by `clock`. The first call requests this and returns
    /// false, because frames already received have no time. It also makes the port keep a schedule, and report
    /// departure times where it can.
    pub(super) fn stamps_arrivals(&mut self, clock: SwitchClock) -> bool {
        if self.stamps == ArrivalStamps::NotRequested
            && let Some(port) = &mut self.port
        {
            let clock = machine_clock(clock);
            self.stamps = if port.stamp_arrivals(clock) { ArrivalStamps::Stamped } else { ArrivalStamps::Unavailable };
            port.stamp_departures(clock);
            port.keep_schedule();
            return false;
        }
        self.stamps == ArrivalStamps::Stamped
    }

    /// Kind and name, as the user wrote them.
    pub(crate) fn spec(&self) -> &str {
        &self.info.spec
    }

    /// Name, as controllers see it.
    pub(crate) fn name(&self) -> &str {
        &self.info.name
    }

    /// Returns true if the port is an interface whose changes the kernel reports.
    pub(crate) fn is_interface(&self) -> bool {
        self.is_interface
    }

    /// Returns true if the port is open on the interface with this index.
    pub(crate) fn is_on(&self, index: u32) -> bool {
        self.port.is_some() && self.device.as_ref().is_some_and(|device| device.index == index)
    }

    /// Records the current name of the interface with this index, and logs a change if it is this port's.
    pub(crate) fn note_name(&mut self, index: u32, name: &str) {
        if !self.is_on(index) {
            return;
        }
        let renamed = (name != self.info.name).then(|| name.to_owned());
        if let Some(device) = self.device.as_mut().filter(|device| device.renamed != renamed) {
            tracing::warn!(
                "port {} ({}): its interface is called {name} now; the port stays on it",
                self.number,
                self.info.spec
            );
            device.renamed = renamed;
        }
    }

    /// Asks the kernel for the current name of the port's interface.
    pub(crate) fn look_at_name(&mut self) {
        let index = self.device.as_ref().map(|device| device.index);
        if let Some((index, name)) = index.and_then(|index| Some((index, interface::name_of(index)?))) {
            self.note_name(index, &name);
        }
    }

    /// Returns true if the device is present and its link is up.
    pub(crate) fn is_up(&self) -> bool {
        self.port.is_some() && self.link.up
    }

    /// Rate of the link in bit/s, if it has one.
    pub(crate) fn rate(&self) -> Option<weir_units::Bps> {
        self.link.speed
    }

    /// Returns true if the port carries packets without an Ethernet header.
    pub(crate) fn takes_any_packet_type(&self) -> bool {
        self.port.as_ref().is_some_and(|port| port.takes_any_packet_type())
    }

    /// Reads the port's link state. Returns the new state if it changed.
    pub(crate) fn link_change(&mut self) -> Option<LinkState> {
        let link = self.port.as_mut()?.link();
        // A port detects a missing device when it is read.
        self.ask_again();
        let changed = link != self.link;
        self.link = link;
        changed.then_some(link)
    }

    /// Description of the port for controllers.
    pub(crate) fn desc(&self) -> PortDesc {
        let speed = speed_kbps(self.link);
        PortDesc {
            state: if self.link.up { bits::LIVE } else { bits::LINK_DOWN },
            curr: rate_feature(speed),
            curr_speed: speed,
            max_speed: speed,
            ..PortDesc::new(self.number, self.info.mac, &self.info.name)
        }
    }

    /// Returns the port's counters in the datapath's form; all 0 while the device is gone.
    pub(crate) fn counters(&self) -> PortCounters {
        let counters = self.port.as_ref().map(|port| port.counters()).unwrap_or_default();
        PortCounters {
            rx_packets: counters.rx_packets,
            tx_packets: counters.tx_packets,
            rx_bytes: counters.rx_bytes,
            tx_bytes: counters.tx_bytes,
            rx_dropped: counters.rx_missed,
            tx_dropped: counters.tx_full + counters.tx_too_long,
            rx_errors: counters.rx_errors,
            tx_errors: counters.tx_errors,
            rx_over_err: counters.rx_missed,
        }
    }

    /// Returns the port's state at this moment.
    pub(crate) fn snapshot(&self) -> PortSnapshot {
        PortSnapshot {
            number: self.number,
            name: self.info.name.clone(),
            spec: self.info.spec.clone(),
            mac: self.info.mac.to_string(),
            renamed: self.device.as_ref().and_then(|device| device.renamed.clone()).filter(|_| self.port.is_some()),
            present: self.port.is_some(),
            link_up: self.port.is_some() && self.link.up,
            speed_bps: self.link.speed.map(|rate| rate.0),
            counters: self.port.as_ref().map(|port| port.counters()).unwrap_or_default(),
            queues: self.queues(|queues| queues.iter().map(queue_snapshot).collect()).unwrap_or_default(),
            stray_packets: self.queues(TransmitQueues::strays).unwrap_or(0),
        }
    }
}

fn queue_snapshot(state: QueueState) -> QueueSnapshot {
    let QueueState { config, counters, waiting_bytes, .. } = state;
    QueueSnapshot {
        queue: config.id,
        min_bps: config.min.map(|min| min.0),
        max_bps: config.max.map(|max| max.0),
        buffer_bytes: config.buffer.0,
        priority: config.priority,
        waiting_bytes,
        counters,
    }
}

impl PortSlots {
    /// Inserts a port in the order of numbers.
    pub(crate) fn insert(&mut self, slot: PortSlot) {
        let place = self.slots.partition_point(|other| other.number < slot.number);
        self.slots.insert(place, slot);
    }

    /// Removes a port and returns it.
    pub(crate) fn remove(&mut self, number: PortNo) -> Option<PortSlot> {
        self.place(number).map(|place| self.slots.remove(place))
    }

    /// Returns the index of the port with this number.
    pub(crate) fn place(&self, number: PortNo) -> Option<usize> {
        self.slots.binary_search_by_key(&number, |slot| slot.number).ok()
    }

    /// Returns the open port with this number; `None` if there is none, or if its device is gone.
    #[inline]
    pub(crate) fn open_port(&mut self, number: PortNo) -> Option<&mut dyn Port> {
        let place = self.place(number)?;
        self.slots[place].port.as_deref_mut().map(|port| port as &mut dyn Port)
    }

    /// Returns the numbers and names of all ports.
    pub(crate) fn named(&self) -> Vec<(PortNo, String)> {
        self.slots.iter().map(|slot| (slot.number, slot.name().to_owned())).collect()
    }

    /// Returns the slot at index `place`, mutably. Panics if there is none.
    pub(crate) fn at(&mut self, place: usize) -> &mut PortSlot {
        &mut self.slots[place]
    }

    /// Returns the slot at index `place`. Panics if there is none.
    pub(crate) fn slot(&self, place: usize) -> &PortSlot {
        &self.slots[place]
    }

    /// Iterates over all slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PortSlot> {
        self.slots.iter()
    }

    /// Iterates mutably over all slots.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PortSlot> {
        self.slots.iter_mut()
    }

    /// Iterates over the open ports.
    pub(crate) fn open(&self) -> impl Iterator<Item = &dyn Port> {
        self.slots.iter().filter_map(|slot| slot.port.as_deref().map(|port| port as &dyn Port))
    }

    /// Number of slots.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the lowest number from 1 that no port has.
    pub(crate) fn free_number(&self) -> PortNo {
        let taken = self.slots.iter().map(|slot| slot.number.0);
        PortNo(taken.fold(1, |free, number| if number == free { free + 1 } else { free }))
    }

    /// Returns the number of the port with this name or specification.
    pub(crate) fn number_of(&self, name: &str) -> Option<PortNo> {
        self.slots.iter().find(|slot| slot.name() == name || slot.spec() == name).map(|slot| slot.number)
    }

    /// Requests a wake-up from every port. Returns true if any port has frames now.
    pub(crate) fn arm(&mut self) -> bool {
        let mut ready = false;
        for slot in &mut self.slots {
            if slot.port.as_mut().is_some_and(|port| port.arm() == weir_port::ReceiveReadiness::Now) {
                slot.ask_again();
                ready = true;
            }
        }
        ready
    }
}

/// Returns true if a port is an interface whose changes the kernel reports.
pub(crate) fn is_interface(info: &PortInfo) -> bool {
    info.kind().is_some_and(PortKind::is_interface)
}

/// Returns the link's rate in kbit/s, or 0 if it has none.
pub(crate) fn speed_kbps(link: LinkState) -> u32 {
    link.speed.map_or(0, |rate| u32::try_from(rate.0 / 1000).unwrap_or(u32::MAX))
}

/// Returns the `OFPPF_*` bit of a rate in kbit/s.
fn rate_feature(kbps: u32) -> u32 {
    match kbps {
        0 => 0,
        10_000 => feature::FD_10MB,
        100_000 => feature::FD_100MB,
        1_000_000 => feature::FD_1GB,
        10_000_000 => feature::FD_10GB,
        40_000_000 => feature::FD_40GB,
        100_000_000 => feature::FD_100GB,
        1_000_000_000 => feature::FD_1TB,
        _ => feature::OTHER,
    }
}
