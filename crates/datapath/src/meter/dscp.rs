//! Raises the drop precedence in the DSCP field (OpenFlow 1.3.5, 5.7.1; RFC 2597, section 6).
use crate::effects::Effects;
use crate::packet::PipelinePacket;
use weir_openflow::model::PortNo;
use weir_packet::parse::NetworkProtocol;
use weir_packet::{Field, Frame, edit, parse};

/// Raises the drop precedence of a packet by `steps`, at most to the highest. Packets without a drop precedence stay
/// unchanged: those that are neither IPv4 nor IPv6, and those of a class other than assured forwarding.
#[cold]
pub(crate) fn remark(packet: &mut PipelinePacket, steps: u8, fx: &mut impl Effects) {
    if !matches!(packet.layers().network, Some((NetworkProtocol::Ipv4 | NetworkProtocol::Ipv6, _))) {
        return;
    }
    let dscp = packet.key().get(Field::IpDscp);
    let raised = raised(u8::try_from(dscp).unwrap_or_default(), steps);
    if dscp != u128::from(raised) {
        packet.set(Field::IpDscp, raised.into(), fx);
    }
}

/// Raises the drop precedence like [`remark`], for a frame outside the pipeline.
pub(crate) fn remark_frame(frame: &mut Frame, steps: u8) {
    let Some(parsed) = (steps > 0).then(|| parse(frame.bytes(), PortNo::ANY).ok()).flatten() else { return };
    if matches!(parsed.layers.network, Some((NetworkProtocol::Ipv4 | NetworkProtocol::Ipv6, _))) {
        let dscp = u8::try_from(parsed.key.get(Field::IpDscp)).unwrap_or_default();
        edit::set_field(frame, &parsed.layers, Field::IpDscp, raised(dscp, steps).into());
    }
}

/// Returns the code point with its drop precedence raised by `steps`. An assured forwarding code point consists of
/// class (1 to 4, three bits), drop precedence (1 to 3, two bits) and a zero bit.
pub(crate) fn raised(dscp: u8, steps: u8) -> u8 {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    match (class, precedence, dscp & 1) {
        (1..=4, 1..=3, 0) => class << 3 | precedence.saturating_add(steps).min(3) << 1,
        _ => dscp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assured_forwarding_is_raised_within_its_class() {
        // AF11 AF12 AF13, AF21.., AF31.., AF41.. (RFC 2597, section 6).
        for class in [[10, 12, 14], [18, 20, 22], [26, 28, 30], [34, 36, 38]] {
            for (at, dscp) in class.into_iter().enumerate() {
                for steps in [0, 1, 2, 3, 255] {
                    assert_eq!(raised(dscp, steps), class[(at + usize::from(steps)).min(2)], "{dscp} by {steps}");
                }
            }
        }
    }

    #[test]
    fn other_code_points_stay() {
        let assured = [10, 12, 14, 18, 20, 22, 26, 28, 30, 34, 36, 38];
        for dscp in (0..64).filter(|dscp| !assured.contains(dscp)) {
            assert_eq!(raised(dscp, 1), dscp);
        }
    }
}
