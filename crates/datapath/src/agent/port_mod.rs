//! Handles port-mods (OpenFlow 1.3.5, 7.3.4.3).
use super::AgentRequest;
use crate::journal::{Journal, UndoRecord};
use crate::ports::Ports;
use weir_openflow::Version;
use weir_openflow::model::error::PortModFailed;
use weir_openflow::model::port::{PortMod, bits};
use weir_openflow::model::{ErrorType, PortDesc};

/// Configuration bits in all versions.
const BOTH: u32 = bits::PORT_DOWN | bits::NO_RECV | bits::NO_FWD | bits::NO_PACKET_IN;
/// Configuration bits in 1.0. The spanning tree bits are accepted without effect, because there is no spanning tree.
const V10: u32 = BOTH | bits::NO_FLOOD | bits::NO_STP | bits::NO_RECV_STP;

/// Configures a port. Returns its new description if that differs from the old one.
///
/// # Errors
/// The error to reply with; nothing has changed.
pub(super) fn port_mod(
    ports: &mut Ports,
    journal: &mut Journal,
    change: &PortMod,
    request: &mut AgentRequest<'_>,
) -> Result<Option<PortDesc>, ErrorType> {
    let port = ports.get(change.port_no).ok_or(PortModFailed::BadPort)?;
    if port.desc.hw_addr != change.hw_addr {
        return Err(PortModFailed::BadHwAddr.into());
    }
    let known = if request.version == Version::V10 { V10 } else { BOTH };
    if (change.mask | change.config) & !known != 0 {
        return Err(PortModFailed::BadConfig.into());
    }
    if change.advertise != 0 && change.advertise != port.desc.advertised {
        return Err(PortModFailed::BadAdvertise.into());
    }
    let former = port.desc.config;
    journal.note(|| UndoRecord::Port(change.port_no, former));
    let was_down = port.desc.config & bits::PORT_DOWN;
    let changed = ports.change(change.port_no, |desc| {
        desc.config = desc.config & !change.mask | change.config & change.mask;
    });
    let Some(desc) = changed else { return Ok(None) };
    if desc.config & bits::PORT_DOWN != was_down {
        request.out.port_admin.push((desc.port_no, was_down != 0));
    }
    Ok(Some(desc))
}
