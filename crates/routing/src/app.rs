//! The trait of applications of a network, and what they can see and do.
use crate::map::{Host, NetworkMap, SwitchPort};
use crate::tables::{DesiredEntry, EntryKey};
use std::net::IpAddr;
use std::time::Duration;
use weir_openflow::model::multipart::{ReplyBody, RequestBody};
use weir_packet::MacAddr;
use weir_units::Instant;

/// Decision on whether later applications see a packet, too.
pub use weir_controller::PacketDecision;

/// Table that admits packets. Packets of a host that come in at its port go on to [`ACCESS_TABLE`], packets from links
/// to [`FORWARDING_TABLE`]; packets of unknown sources, and what the network has to know (ARP, neighbour discovery,
/// LLDP), go to the controller.
pub const ADMISSION_TABLE: u8 = 0;
/// Table of the applications that drop packets where they enter the network. Packets that no entry matches, and those
/// that an entry permits, go on to [`REWRITE_TABLE`].
pub const ACCESS_TABLE: u8 = 1;
/// Table of the applications that rewrite packets, such as a router. Packets go on to [`FORWARDING_TABLE`]. It is a
/// table of its own so that a packet that was permitted is still rewritten.
pub const REWRITE_TABLE: u8 = 2;
/// Table of routes: sends packets to their destination.
pub const FORWARDING_TABLE: u8 = 3;

/// Application of a network, without I/O. The controller tells it of events and packets; it asks for entries, which the
/// controller keeps in the switches, and sends packets.
///
/// Applications are called in an order. A packet reaches later ones unless an earlier one has taken it; events reach
/// all.
pub trait NetworkApp: Send {
    /// Returns the application's name, for display.
    fn name(&self) -> &'static str;

    /// Returns the Ethernet and IP addresses that the application itself uses, such as those of a router. Hosts that
    /// use them are refused, and packets that entries send on with such a source are carried.
    fn own_addresses(&self) -> (Vec<MacAddr>, Vec<IpAddr>) {
        (Vec::new(), Vec::new())
    }

    /// Handles a change of the network. The map has the change already.
    fn handle_event(&mut self, _event: &NetworkEvent, _network: &mut dyn Network) {}

    /// Handles a packet of a host that a switch has sent to the controller.
    fn handle_packet(&mut self, _packet: &HostPacket<'_>, _network: &mut dyn Network) -> PacketDecision {
        PacketDecision::PassedOn
    }

    /// Handles a reply to [`Network::ask`].
    fn handle_reply(&mut self, _dpid: u64, _reply: &ReplyBody, _network: &mut dyn Network) {}

    /// Returns the time of the next call of [`NetworkApp::handle_wake`]; `None` if the application has no timer.
    fn next_wake(&self) -> Option<Instant> {
        None
    }

    /// Handles the application's timers that are due.
    fn handle_wake(&mut self, _network: &mut dyn Network) {}

    /// Returns what the application keeps over a restart of the controller; `None` if it keeps nothing. Times are given
    /// as times that are left, because a new controller counts from another start.
    fn kept(&self, _now: Instant) -> Option<serde_json::Value> {
        None
    }

    /// Returns a number that changes with what [`NetworkApp::kept`] returns, apart from times.
    fn kept_changes(&self) -> u64 {
        0
    }

    /// Takes back what [`NetworkApp::kept`] returned `elapsed` ago, before the application handles anything.
    ///
    /// # Errors
    /// The content is damaged: what was found and what was expected.
    fn restore(&mut self, _now: Instant, _elapsed: Duration, _kept: &serde_json::Value) -> Result<(), String> {
        Ok(())
    }

    /// Returns the application's counters by name.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Change of a network.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkEvent {
    /// A switch has connected.
    SwitchUp {
        /// Datapath id of the switch.
        dpid: u64,
    },
    /// A switch is no longer connected.
    SwitchDown {
        /// Datapath id of the switch.
        dpid: u64,
    },
    /// A port has come up or gone down, or is new or gone.
    PortChanged {
        /// The port.
        at: SwitchPort,
        /// True if it is up now.
        up: bool,
    },
    /// A link was found, or is up again.
    LinkUp {
        /// Ends of the link.
        ends: [SwitchPort; 2],
    },
    /// A link is gone: silent, or one of its ports is down.
    LinkDown {
        /// Ends of the link.
        ends: [SwitchPort; 2],
    },
    /// A host was seen for the first time.
    HostAdded {
        /// The host.
        host: Host,
    },
    /// A host uses other IP addresses or another name than before.
    HostChanged {
        /// The host as it is now.
        host: Host,
    },
    /// A host is at another port.
    HostMoved {
        /// The host as it is now.
        host: Host,
        /// Port at which it was.
        from: SwitchPort,
    },
    /// A host is gone.
    HostRemoved {
        /// The host as it was.
        host: Host,
    },
}

/// Packet of a host at the controller.
#[derive(Debug, Clone, Copy)]
pub struct HostPacket<'a> {
    /// Port at which it entered the network, or the switch that sent it to the controller if it came over a link.
    pub at: SwitchPort,
    /// True if the port leads to another switch.
    pub from_trunk: bool,
    /// Bytes of the packet, from the Ethernet header on. Switches send it whole.
    pub data: &'a [u8],
}

/// A network as applications see and change it. Entries asked for are kept in the switch: they are sent again after it
/// was away, and what it has besides is deleted.
pub trait Network {
    /// Returns the time.
    fn now(&self) -> Instant;

    /// Returns switches, links and hosts.
    fn map(&self) -> &NetworkMap;

    /// Asks for an entry in a table of a switch ([`ACCESS_TABLE`] or [`REWRITE_TABLE`]), in place of the one with the
    /// same table, priority and match. Without a connection the entry waits for the switch.
    fn set_entry(&mut self, dpid: u64, entry: DesiredEntry);

    /// Withdraws an entry.
    fn remove_entry(&mut self, dpid: u64, key: &EntryKey);

    /// Sends a packet out of a port.
    fn send(&mut self, to: SwitchPort, data: Vec<u8>);

    /// Sends a packet out of all ports of hosts, except one.
    fn send_to_hosts(&mut self, except: Option<SwitchPort>, data: Vec<u8>);

    /// Sends a packet through the forwarding table of a switch, as if it had come by a port.
    fn forward(&mut self, at: SwitchPort, data: Vec<u8>);

    /// Asks a switch for statistics or descriptions. The replies come to [`NetworkApp::handle_reply`] of all
    /// applications.
    fn ask(&mut self, dpid: u64, request: RequestBody);

    /// Gives a host a name.
    fn name_host(&mut self, mac: MacAddr, name: &str);

    /// Notes the load of a link's direction that begins at a port, in bit/s.
    fn set_load(&mut self, from: SwitchPort, bps: f64);

    /// Records an event for the operator.
    fn report(&mut self, kind: &'static str, text: String, alarm: bool);
}
