//! Verdicts of the host tracker on packets, and changes that its owner carries out.
use crate::map::{Host, SwitchPort};
use std::time::Duration;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Verdict on a packet of an edge port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostVerdict {
    /// The source is a known host at this port. The packet may be forwarded, and entries may be made for its source.
    Accepted,
    /// The packet claims an address of a host that is elsewhere, and the claim is being checked; or the port may lead
    /// to another switch. The packet must not be forwarded, and no entries may be made for it.
    Waiting,
    /// The packet has to be dropped.
    Refused,
    /// The packet was an answer to the tracker. It goes nowhere else.
    Taken,
}

/// Change that the owner of the tracker has to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostChange {
    /// A host was seen for the first time.
    Added(Host),
    /// A host uses other IP addresses or another name than before.
    Changed(Host),
    /// A host was seen; nothing else of it has changed. Said at most once a second for a host.
    Seen {
        /// Ethernet address of the host.
        mac: MacAddr,
        /// Time of the packet.
        at: Instant,
    },
    /// A host is at another port.
    Moved {
        /// The host as it is now.
        host: Host,
        /// Port at which it was.
        from: SwitchPort,
    },
    /// A host is gone.
    Removed(Host),
    /// A frame that asks a host whether it is there has to leave by a port.
    Probe {
        /// The port.
        to: SwitchPort,
        /// Bytes of the frame.
        frame: Vec<u8>,
    },
    /// Packets of a source have to be dropped where they enter the network, for a while.
    Block {
        /// Port.
        at: SwitchPort,
        /// Source address.
        mac: MacAddr,
        /// For how long.
        time: Duration,
    },
    /// Packets of a source are no longer to be dropped, although the time is not over: the host whose address it
    /// claimed is gone, or the port leads to another switch.
    Unblock {
        /// Port.
        at: SwitchPort,
        /// Source address.
        mac: MacAddr,
    },
    /// The operator should look at something.
    Alarm {
        /// Kind of the alarm; one of [`alarm_kind`](crate::hosts::alarm_kind).
        kind: &'static str,
        /// Description of what happened.
        text: String,
    },
}

/// Kinds of alarms.
pub mod alarm_kind {
    /// A host is claimed at a port, and answers at another one.
    pub const HOST_HIJACK: &str = "host-hijack";
    /// A host moved while its port was down, and is there again: two use its address. Which one is genuine cannot be
    /// told.
    pub const HOST_CONFLICT: &str = "host-conflict";
    /// A host claims an IP address of a host that answers, or of the controller.
    pub const IP_HIJACK: &str = "ip-hijack";
    /// A port at which hosts were a moment ago seems to lead to another switch.
    pub const PORT_AMNESIA: &str = "port-amnesia";
    /// A port at which hosts are seems to lead to another switch.
    pub const LINK_AT_HOST_PORT: &str = "link-at-host-port";
    /// More hosts at a port than there may be.
    pub const HOST_FLOOD: &str = "host-flood";
}
