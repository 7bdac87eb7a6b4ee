//! Configuration of in-band control, its state at one moment, and its decisions.
use super::hidden::HiddenEntry;
use crate::DropReason;
use std::net::SocketAddr;
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;

/// Maximum number of controllers that are reached in band. Frames are compared with an entry for each.
pub const MAX_IN_BAND_CONTROLLERS: usize = 16;

/// Configuration of in-band control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InBandConfig {
    /// Addresses of the controllers of this switch and of the switches behind it. Those beyond
    /// [`MAX_IN_BAND_CONTROLLERS`] are left out.
    pub controllers: Vec<SocketAddr>,
    /// Time without an answer after which the path to a controller counts as broken.
    pub silence: Duration,
    /// Queue of the output port that control traffic waits in, if it has one of its own.
    pub queue: Option<u32>,
    /// VLAN whose tag control traffic carries on all ports, LOCAL included; `None` if it is untagged.
    pub vlan: Option<u16>,
}

/// State of in-band control at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InBandState {
    /// Hidden entries with their counters.
    pub entries: Vec<HiddenEntry>,
    /// Stations of the control traffic with their ports: controllers, next hops, switches.
    pub stations: Vec<(MacAddr, PortNo)>,
    /// Counters of what became of the frames.
    pub counters: InBandCounters,
}

/// Counters of in-band control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InBandCounters {
    /// Number of frames sent to all ports.
    pub flooded: u64,
    /// Number of frames dropped because they are copies of others.
    pub copies: u64,
    /// Number of frames dropped because more were flooded, or more notices came, than a port may have.
    pub excess: u64,
    /// Number of times that a controller's port was forgotten because it did not answer.
    pub silences: u64,
}

/// Decision about a frame that a hidden entry takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ControlDecision {
    /// Transmission to this port.
    To(PortNo),
    /// Transmission to all ports but its input port, and to LOCAL only if this is true.
    Flood {
        /// True for frames to all stations.
        with_local: bool,
    },
    /// Drop with this reason.
    Drop(DropReason),
    /// Notices to all neighbours but the one on the input port: these stations are not reached any more.
    Tell(Vec<MacAddr>),
}
