//! The ports of a datapath: their descriptions for controllers, and which of them packets may be sent to.
mod queues;

use crate::{DropReason, PortCounters, PortQueues};
use foldhash::{HashMap, HashMapExt};
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::port::{PortStats, bits};
use weir_openflow::model::{ErrorType, PortDesc, PortNo};
use weir_units::Instant;

/// Maximum number of ports of a datapath: OpenFlow 1.0 lists all ports in one message of at most 64 KiB, 48 bytes
/// each.
pub const MAX_PORTS: usize = 1024;

/// A port with its state.
#[derive(Debug)]
pub(crate) struct PortState {
    pub(crate) desc: PortDesc,
    counters: PortCounters,
    queues: PortQueues,
    added: Instant,
    /// True if packets without an Ethernet header may be sent to the port.
    any_packet_type: bool,
}

/// The ports, by number.
#[derive(Debug)]
pub(crate) struct Ports {
    states: HashMap<PortNo, PortState>,
    /// All port numbers, ascending.
    order: Vec<PortNo>,
    /// Ports that ALL sends to, ascending: ports that are up and forward.
    all: Vec<PortNo>,
    /// Ports that FLOOD and NORMAL send to: the ports of `all` without NO_FLOOD.
    flood: Vec<PortNo>,
    /// Result of [`Ports::may_send`] for small port numbers, indexed by number. Saves most packets the hash lookup.
    small: Vec<Result<(), DropReason>>,
}

/// Port numbers below this are looked up without a hash.
const SMALL: u32 = 1024;

impl Ports {
    pub(crate) fn new() -> Ports {
        Ports { states: HashMap::new(), order: Vec::new(), all: Vec::new(), flood: Vec::new(), small: Vec::new() }
    }

    pub(crate) fn get(&self, port: PortNo) -> Option<&PortState> {
        self.states.get(&port)
    }

    /// Returns the ports in order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PortState> {
        self.order.iter().filter_map(|port| self.states.get(port))
    }

    /// Returns the descriptions of all ports, in order of their numbers.
    pub(crate) fn descs(&self) -> Vec<PortDesc> {
        self.iter().map(|port| port.desc.clone()).collect()
    }

    /// Returns the description of one port or all ports.
    ///
    /// # Errors
    /// The port does not exist.
    pub(crate) fn descs_of(&self, wanted: PortNo) -> Result<Vec<PortDesc>, ErrorType> {
        if wanted == PortNo::ANY {
            return Ok(self.descs());
        }
        Ok(vec![self.get(wanted).ok_or(BadRequest::BadPort)?.desc.clone()])
    }

    /// Returns the statistics of one port or all ports.
    ///
    /// # Errors
    /// The port does not exist.
    pub(crate) fn stats(&self, now: Instant, wanted: PortNo) -> Result<Vec<PortStats>, ErrorType> {
        if wanted == PortNo::ANY {
            return Ok(self.iter().map(|port| port.stats(now)).collect());
        }
        Ok(vec![self.get(wanted).ok_or(BadRequest::BadPort)?.stats(now)])
    }

    /// Adds a port.
    ///
    /// # Errors
    /// The number is not a port number or is taken, or there are already [`MAX_PORTS`] ports.
    pub(crate) fn add(&mut self, now: Instant, mut desc: PortDesc) -> Result<(), String> {
        let number = desc.port_no;
        if !number.is_ordinary() && number != PortNo::LOCAL {
            return Err(format!("port {}: found number {number}, expected 1 to {} or LOCAL", desc.name, PortNo::MAX.0));
        }
        if let Some(holder) = self.states.get(&number) {
            let holder = &holder.desc.name;
            return Err(format!("port {}: number {number} is taken by {holder}; use another number", desc.name));
        }
        if self.states.len() == MAX_PORTS {
            return Err(format!("port {}: there are already {MAX_PORTS} ports, the most a datapath has", desc.name));
        }
        set_live(&mut desc);
        self.states.insert(
            number,
            PortState {
                desc,
                counters: PortCounters::default(),
                queues: PortQueues::default(),
                added: now,
                any_packet_type: false,
            },
        );
        self.relist();
        Ok(())
    }

    /// Returns the number of the port with this name.
    ///
    /// # Errors
    /// There is none; the message lists the ports.
    pub(crate) fn named(&self, name: &str) -> Result<PortNo, String> {
        let found = self.iter().find(|state| state.desc.name == name).map(|state| state.desc.port_no);
        found.ok_or_else(|| {
            let ports: Vec<String> =
                self.descs().iter().map(|desc| format!("{}={}", desc.port_no, desc.name)).collect();
            let ports = if ports.is_empty() { "none".to_owned() } else { ports.join(", ") };
            format!("no port `{name}`; there are: {ports}")
        })
    }

    /// Removes a port and returns its description.
    pub(crate) fn remove(&mut self, port: PortNo) -> Option<PortDesc> {
        let removed = self.states.remove(&port)?;
        self.relist();
        Some(removed.desc)
    }

    /// Changes a port's description. Returns the new description if it differs from the old one.
    pub(crate) fn change(&mut self, port: PortNo, change: impl FnOnce(&mut PortDesc)) -> Option<PortDesc> {
        let state = self.states.get_mut(&port)?;
        let before = state.desc.clone();
        change(&mut state.desc);
        set_live(&mut state.desc);
        let changed = (state.desc != before).then(|| state.desc.clone());
        self.relist();
        changed
    }

    pub(crate) fn set_counters(&mut self, port: PortNo, counters: PortCounters) {
        if let Some(state) = self.states.get_mut(&port) {
            state.counters = counters;
        }
    }

    pub(crate) fn set_queues(&mut self, port: PortNo, queues: PortQueues) {
        if let Some(state) = self.states.get_mut(&port) {
            state.queues = queues;
        }
    }

    /// Sets whether packets without an Ethernet header may be sent to a port.
    pub(crate) fn take_any_packet_type(&mut self, port: PortNo, any: bool) {
        if let Some(state) = self.states.get_mut(&port) {
            state.any_packet_type = any;
        }
    }

    /// Returns true if packets without an Ethernet header may be sent to a port.
    #[cold]
    pub(crate) fn takes_any_packet_type(&self, port: PortNo) -> bool {
        self.states.get(&port).is_some_and(|state| state.any_packet_type)
    }

    /// Returns an error with the drop reason if packets that arrive on a port are dropped.
    pub(crate) fn may_receive(&self, port: PortNo) -> Result<(), DropReason> {
        let config = self.states.get(&port).ok_or(DropReason::UnknownPort)?.desc.config;
        match config {
            config if config & bits::PORT_DOWN != 0 => Err(DropReason::PortDown),
            config if config & bits::NO_RECV != 0 => Err(DropReason::NoRecv),
            _ => Ok(()),
        }
    }

    /// Returns an error with the drop reason if packets sent to a port are dropped.
    #[inline]
    pub(crate) fn may_send(&self, port: PortNo) -> Result<(), DropReason> {
        match self.small.get(port.0 as usize) {
            Some(known) => *known,
            None => self.may_send_hashed(port),
        }
    }

    /// Returns an error with the drop reason if packets that arrived on `in_port` are dropped when they are output to a
    /// port. Only an output to IN_PORT sends packets back to their input port (OpenFlow 1.3.5, 4.5).
    #[inline]
    pub(crate) fn may_output(&self, in_port: PortNo, port: PortNo) -> Result<(), DropReason> {
        if port == in_port { Err(DropReason::InPortOnly) } else { self.may_send(port) }
    }

    #[inline(never)]
    fn may_send_hashed(&self, port: PortNo) -> Result<(), DropReason> {
        self.states.get(&port).ok_or(DropReason::UnknownPort)?.may_send()
    }

    /// Returns true if a port is live (`OFPPS_LIVE`): up and with link. Its configuration NO_FWD does not matter.
    pub(crate) fn is_live(&self, port: PortNo) -> bool {
        matches!(self.may_send(port), Ok(()) | Err(DropReason::NoFwd))
    }

    /// Returns the live ports, ascending.
    pub(crate) fn live(&self) -> impl Iterator<Item = PortNo> {
        self.order.iter().copied().filter(|port| self.is_live(*port))
    }

    /// Returns the ports that ALL sends to. The caller leaves out a packet's input port.
    pub(crate) fn all(&self) -> &[PortNo] {
        &self.all
    }

    /// Returns the ports that FLOOD sends to. The caller leaves out a packet's input port.
    pub(crate) fn flood(&self) -> &[PortNo] {
        &self.flood
    }

    fn relist(&mut self) {
        self.order = self.states.keys().copied().collect();
        self.order.sort_unstable();
        let usable = |port: &&PortNo| self.states[*port].may_send().is_ok();
        self.all = self.order.iter().filter(usable).copied().collect();
        let highest = self.order.iter().rev().find(|port| port.0 < SMALL).map_or(0, |port| port.0);
        let known = |number| self.states.get(&PortNo(number)).map_or(Err(DropReason::UnknownPort), PortState::may_send);
        self.small = (0..=highest).map(known).collect();
        let floods = |port: &&PortNo| self.states[*port].desc.config & bits::NO_FLOOD == 0;
        self.flood = self.all.iter().filter(floods).copied().collect();
    }
}

impl PortState {
    fn may_send(&self) -> Result<(), DropReason> {
        if self.desc.config & bits::PORT_DOWN != 0 || self.desc.state & bits::LINK_DOWN != 0 {
            return Err(DropReason::PortDown);
        }
        if self.desc.config & bits::NO_FWD != 0 { Err(DropReason::NoFwd) } else { Ok(()) }
    }

    /// Returns the port's queues.
    pub(crate) fn queues(&self) -> &PortQueues {
        &self.queues
    }

    /// Returns the time when the port was added.
    pub(crate) fn added(&self) -> Instant {
        self.added
    }

    /// Returns true if packets that arrive on the port may be punted to controllers.
    pub(crate) fn allows_packet_in(&self) -> bool {
        self.desc.config & bits::NO_PACKET_IN == 0
    }

    /// Returns the port's statistics. Alignment errors, CRC errors and collisions read as unavailable, because no
    /// port kind of weir learns of them.
    pub(crate) fn stats(&self, now: Instant) -> PortStats {
        let (duration_sec, duration_nsec) = crate::types::duration(now, self.added);
        let counters = &self.counters;
        PortStats {
            port_no: self.desc.port_no,
            rx_packets: counters.rx_packets,
            tx_packets: counters.tx_packets,
            rx_bytes: counters.rx_bytes,
            tx_bytes: counters.tx_bytes,
            rx_dropped: counters.rx_dropped,
            tx_dropped: counters.tx_dropped,
            rx_errors: counters.rx_errors,
            tx_errors: counters.tx_errors,
            rx_frame_err: u64::MAX,
            rx_over_err: counters.rx_over_err,
            rx_crc_err: u64::MAX,
            collisions: u64::MAX,
            duration_sec,
            duration_nsec,
            properties: Vec::new(),
        }
    }
}

/// Sets the live bit of a port that is up and has link, and clears it otherwise (OpenFlow 1.3.5, 7.2.1:
/// `OFPPS_LIVE`).
fn set_live(desc: &mut PortDesc) {
    let is_live = desc.config & bits::PORT_DOWN == 0 && desc.state & bits::LINK_DOWN == 0;
    desc.state = desc.state & !bits::LIVE | if is_live { bits::LIVE } else { 0 };
}
