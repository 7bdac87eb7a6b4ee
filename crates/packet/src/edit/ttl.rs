//! Implements the actions on TTLs: IPv4's, IPv6's hop limit, MPLS's and the network service header's.
use super::rewrite::{HeaderBitRange, write_ipv4};
use super::{EditEffect, EditError};
use crate::bytes::write;
use crate::datagram::ip_type;
use crate::field::eth_type;
use crate::parse::NetworkProtocol;
use crate::{Frame, Layers};

/// A header with a TTL, and its offset.
#[derive(Debug, Clone, Copy)]
enum TtlHeader {
    Mpls(usize),
    Ipv4(usize),
    Ipv6(usize),
}

impl TtlHeader {
    fn ttl(self, frame: &[u8]) -> Option<u8> {
        frame.get(self.ttl_at()).copied()
    }

    fn ttl_at(self) -> usize {
        match self {
            TtlHeader::Mpls(at) => at + 3,
            TtlHeader::Ipv4(at) => at + 8,
            TtlHeader::Ipv6(at) => at + 7,
        }
    }

    fn set_ttl(self, frame: &mut Frame, ttl: u8) -> Option<()> {
        match self {
            TtlHeader::Ipv4(at) => {
                let proto = *frame.bytes().get(at + 9)?;
                write_ipv4(frame, at, 8, [ttl, proto]).map(|_| ())
            }
            _ => write(frame.bytes_mut(), self.ttl_at(), &[ttl]).then_some(()),
        }
    }

    fn network(layers: &Layers) -> Option<TtlHeader> {
        match layers.network? {
            (NetworkProtocol::Ipv4, at) => Some(TtlHeader::Ipv4(at.into())),
            (NetworkProtocol::Ipv6, at) => Some(TtlHeader::Ipv6(at.into())),
            (NetworkProtocol::Arp | NetworkProtocol::Nsh, _) => None,
        }
    }

    fn mpls(layers: &Layers) -> Option<TtlHeader> {
        layers.mpls.map(|at| TtlHeader::Mpls(at.into()))
    }

    /// Returns the header after an MPLS entry: the next entry, or after the bottom of the stack what looks like IP.
    fn behind(frame: &[u8], entry: usize) -> Option<TtlHeader> {
        let next = entry + 4;
        if frame.get(entry + 2)? & 1 == 0 {
            return frame.get(next + 3).map(|_| TtlHeader::Mpls(next));
        }
        match ip_type(frame, next)? {
            eth_type::IPV4 => Some(TtlHeader::Ipv4(next)),
            _ => Some(TtlHeader::Ipv6(next)),
        }
    }
}

/// Returns the TTL of the packet's IP header; `None` if it has none, or only behind MPLS.
pub(super) fn nw_ttl(frame: &[u8], layers: &Layers) -> Option<u8> {
    TtlHeader::network(layers)?.ttl(frame)
}

/// Sets the TTL of the outermost MPLS entry.
pub fn set_mpls_ttl(frame: &mut Frame, layers: &Layers, ttl: u8) -> EditEffect {
    set(frame, TtlHeader::mpls(layers), ttl)
}

/// Decrements the TTL of the outermost MPLS entry.
///
/// # Errors
/// [`EditError::TtlExpired`] if it was 0 or 1.
pub fn dec_mpls_ttl(frame: &mut Frame, layers: &Layers) -> Result<EditEffect, EditError> {
    decrement(frame, TtlHeader::mpls(layers))
}

/// Sets the IPv4 TTL or IPv6 hop limit.
pub fn set_nw_ttl(frame: &mut Frame, layers: &Layers, ttl: u8) -> EditEffect {
    set(frame, TtlHeader::network(layers), ttl)
}

/// Decrements the IPv4 TTL or IPv6 hop limit.
///
/// # Errors
/// [`EditError::TtlExpired`] if it was 0 or 1.
pub fn dec_nw_ttl(frame: &mut Frame, layers: &Layers) -> Result<EditEffect, EditError> {
    decrement(frame, TtlHeader::network(layers))
}

/// Decrements the TTL of the network service header.
///
/// # Errors
/// [`EditError::TtlExpired`] if it was 0 or 1.
pub fn dec_nsh_ttl(frame: &mut Frame, layers: &Layers) -> Result<EditEffect, EditError> {
    let Some((NetworkProtocol::Nsh, at)) = layers.network else { return Ok(EditEffect::Nothing) };
    let ttl = HeaderBitRange { at: at.into(), shift: 22, width: 6 };
    match ttl.get(frame) {
        None => Ok(EditEffect::Nothing),
        Some(0 | 1) => Err(EditError::TtlExpired),
        // The flow key holds this TTL, so it must be parsed again.
        Some(hops) => Ok(ttl.write(frame, u128::from(hops) - 1).map_or(EditEffect::Nothing, |()| EditEffect::Moved)),
    }
}

/// Copies the TTL from the next-to-outermost header with a TTL to the outermost one (OpenFlow 1.3.5, 5.12): between
/// MPLS entries, or from IP to MPLS. IP in IP is not supported.
pub fn copy_ttl_out(frame: &mut Frame, layers: &Layers) -> EditEffect {
    copy(frame, layers, |outer, inner| (inner, outer))
}

/// Copies the TTL from the outermost header with a TTL to the next one, between MPLS entries or from MPLS to IP.
pub fn copy_ttl_in(frame: &mut Frame, layers: &Layers) -> EditEffect {
    copy(frame, layers, |outer, inner| (outer, inner))
}

fn set(frame: &mut Frame, header: Option<TtlHeader>, ttl: u8) -> EditEffect {
    let done = header.and_then(|header| header.set_ttl(frame, ttl));
    if done.is_some() { EditEffect::InPlace } else { EditEffect::Nothing }
}

fn decrement(frame: &mut Frame, header: Option<TtlHeader>) -> Result<EditEffect, EditError> {
    let Some(header) = header else { return Ok(EditEffect::Nothing) };
    match header.ttl(frame.bytes()) {
        None => Ok(EditEffect::Nothing),
        Some(0 | 1) => Err(EditError::TtlExpired),
        Some(ttl) => Ok(set(frame, Some(header), ttl - 1)),
    }
}

/// Copies a TTL between the outermost MPLS entry and the header after it. `direction` returns (from, to).
fn copy(
    frame: &mut Frame,
    layers: &Layers,
    direction: fn(TtlHeader, TtlHeader) -> (TtlHeader, TtlHeader),
) -> EditEffect {
    let Some(at) = layers.mpls.map(usize::from) else { return EditEffect::Nothing };
    let Some(inner) = TtlHeader::behind(frame.bytes(), at) else { return EditEffect::Nothing };
    let (from, to) = direction(TtlHeader::Mpls(at), inner);
    match from.ttl(frame.bytes()) {
        Some(ttl) => set(frame, Some(to), ttl),
        None => EditEffect::Nothing,
    }
}
