//! A plain reference for the fields of a frame and the effect of actions on its bytes, independent of the product: it
//! walks the bytes to find headers each time, and computes every checksum anew from the whole packet.
#![expect(clippy::cast_possible_truncation, reason = "bits of header fields")]
use std::collections::HashMap;
use std::ops::Range;
use weir_openflow::model::{Action, PortNo};
use weir_packet::{Field, FlowKey};

/// A TTL expired: the packet ends here.
pub(crate) struct Expired;

/// Returns the flow key of a frame.
pub(crate) fn key(frame: &[u8], in_port: PortNo) -> FlowKey {
    let mut key = FlowKey::EMPTY;
    for (field, value) in fields(frame) {
        key.set(field, value);
    }
    key.set(Field::InPort, in_port.0.into());
    key.set(Field::InPhyPort, in_port.0.into());
    key
}

/// Offsets of a frame's headers.
struct Headers {
    /// Offset of the type field after the tags.
    type_at: usize,
    /// Value of that type field.
    eth_type: u16,
    /// Offset of the next header.
    body: usize,
}

fn headers(frame: &[u8]) -> Headers {
    let mut type_at = 12;
    while [0x8100, 0x88a8].contains(&u16_at(frame, type_at)) {
        type_at += 4;
    }
    Headers { type_at, eth_type: u16_at(frame, type_at), body: type_at + 2 }
}

fn fields(frame: &[u8]) -> HashMap<Field, u128> {
    let Headers { type_at, eth_type, body } = headers(frame);
    let mut found = HashMap::from([
        (Field::EthDst, number(&frame[..6])),
        (Field::EthSrc, number(&frame[6..12])),
        (Field::EthType, eth_type.into()),
    ]);
    if type_at > 12 {
        let tag = u16_at(frame, 14);
        found.insert(Field::VlanVid, u128::from(tag & 0xfff | 0x1000));
        found.insert(Field::VlanPcp, u128::from(tag >> 13));
    }
    let rest = &frame[body..];
    match eth_type {
        0x0806 if rest.len() >= 28 && rest[..6] == [0, 1, 8, 0, 6, 4] => {
            found.insert(Field::ArpOp, number(&rest[6..8]));
            found.insert(Field::ArpSha, number(&rest[8..14]));
            found.insert(Field::ArpSpa, number(&rest[14..18]));
            found.insert(Field::ArpTha, number(&rest[18..24]));
            found.insert(Field::ArpTpa, number(&rest[24..28]));
        }
        0x8847 | 0x8848 if rest.len() >= 4 => {
            let entry = number(&rest[..4]);
            found.insert(Field::MplsLabel, entry >> 12);
            found.insert(Field::MplsTc, entry >> 9 & 7);
            found.insert(Field::MplsBos, entry >> 8 & 1);
        }
        0x88e7 if rest.len() >= 16 => {
            found.insert(Field::PbbIsid, number(&rest[1..4]));
            found.insert(Field::PbbUca, u128::from(rest[0] >> 3 & 1));
        }
        _ => {}
    }
    if let Some(ip) = ip_at(frame, body).filter(|ip| ip.eth_type == eth_type) {
        ip_fields(frame, &ip, &mut found);
    }
    found
}

/// An IP packet in a frame.
struct Ip {
    at: usize,
    eth_type: u16,
    /// Protocol number of the transport.
    proto: u8,
    /// Range of the transport's header and payload.
    segment: Range<usize>,
    /// Presence bits of the extension headers, which are generated in order, each at most once.
    extensions: u128,
}

/// Returns the IP packet that starts at `at`, recognised by its version and length.
fn ip_at(frame: &[u8], at: usize) -> Option<Ip> {
    let rest = frame.get(at..)?;
    match rest.first()? >> 4 {
        4 if rest.len() >= 20 => {
            let end = at + usize::from(u16_at(rest, 2));
            let start = at + usize::from(rest[0] & 15) * 4;
            (start >= at + 20 && start <= end && end <= frame.len()).then(|| Ip {
                at,
                eth_type: 0x0800,
                proto: rest[9],
                segment: start..end,
                extensions: 0,
            })
        }
        6 if rest.len() >= 40 => {
            let end = at + 40 + usize::from(u16_at(rest, 4));
            let mut ip = Ip { at, eth_type: 0x86dd, proto: rest[6], segment: at + 40..end, extensions: 0 };
            if end > frame.len() {
                return None;
            }
            while let Some(bit) = [(0, 6), (60, 3), (43, 5), (44, 4)].into_iter().find(|(n, _)| *n == ip.proto) {
                let header = ip.segment.start;
                ip.extensions |= 1 << bit.1;
                let bytes = if ip.proto == 44 { 8 } else { (usize::from(*frame.get(header + 1)?) + 1) * 8 };
                (ip.proto, ip.segment.start) = (*frame.get(header)?, header + bytes);
                if ip.segment.start > end {
                    return None;
                }
            }
            Some(ip)
        }
        _ => None,
    }
}

fn ip_fields(frame: &[u8], ip: &Ip, found: &mut HashMap<Field, u128>) {
    let rest = &frame[ip.at..];
    let class = if ip.eth_type == 0x0800 {
        found.insert(Field::Ipv4Src, number(&rest[12..16]));
        found.insert(Field::Ipv4Dst, number(&rest[16..20]));
        rest[1]
    } else {
        found.insert(Field::Ipv6Src, number(&rest[8..24]));
        found.insert(Field::Ipv6Dst, number(&rest[24..40]));
        found.insert(Field::Ipv6Flabel, number(&rest[..4]) & 0xf_ffff);
        found.insert(Field::Ipv6Exthdr, ip.extensions);
        (u16_at(rest, 0) >> 4) as u8
    };
    found.insert(Field::IpDscp, u128::from(class >> 2));
    found.insert(Field::IpEcn, u128::from(class & 3));
    found.insert(Field::IpProto, ip.proto.into());
    let segment = &frame[ip.segment.clone()];
    match ip.proto {
        6 if segment.len() >= 20 => {
            found.insert(Field::TcpSrc, number(&segment[..2]));
            found.insert(Field::TcpDst, number(&segment[2..4]));
            found.insert(Field::TcpFlags, number(&segment[12..14]) & 0xfff);
        }
        17 if segment.len() >= 8 => {
            found.insert(Field::UdpSrc, number(&segment[..2]));
            found.insert(Field::UdpDst, number(&segment[2..4]));
        }
        _ => {}
    }
}

/// Applies an action other than an output to a frame. Does nothing if the frame lacks the header.
pub(crate) fn edit(action: &Action, frame: &mut Vec<u8>) -> Result<(), Expired> {
    let Headers { type_at, eth_type, body } = headers(frame);
    match *action {
        Action::PushVlan(tpid) => {
            let tag = if type_at > 12 { u16_at(frame, 14) } else { 0 };
            frame.splice(12..12, [tpid.to_be_bytes(), tag.to_be_bytes()].concat());
        }
        Action::PopVlan if type_at > 12 => drop(frame.drain(12..16)),
        Action::PushMpls(kind) => {
            let entry: u32 = match eth_type {
                0x8847 | 0x8848 if frame.len() >= body + 4 => number(&frame[body..body + 4]) as u32 & !0x100,
                _ => 0x100 | own_ttl(frame).map_or(0, |at| frame[at].into()),
            };
            frame.splice(body..body, entry.to_be_bytes());
            frame[type_at..body].copy_from_slice(&kind.to_be_bytes());
        }
        Action::PopMpls(kind) if is_mpls(frame) => {
            frame.drain(body..body + 4);
            frame[type_at..body].copy_from_slice(&kind.to_be_bytes());
        }
        Action::PushPbb(kind) => {
            let priority = if type_at > 12 { u16_at(frame, 14) >> 13 } else { 0 };
            let service = if eth_type == 0x88e7 { number(&frame[body + 1..body + 4]) as u32 } else { 0 };
            let tag = u32::from(priority) << 29 | service;
            let front = [&frame[..12], &kind.to_be_bytes(), &tag.to_be_bytes()].concat();
            frame.splice(0..0, front);
        }
        Action::PopPbb if eth_type == 0x88e7 && frame.len() >= body + 16 => {
            let customer = frame[body + 4..body + 16].to_vec();
            frame[..12].copy_from_slice(&customer);
            frame.drain(type_at..type_at + 18);
        }
        Action::SetMplsTtl(ttl) if is_mpls(frame) => frame[body + 3] = ttl,
        Action::DecMplsTtl if is_mpls(frame) => decrement(&mut frame[body + 3])?,
        Action::SetNwTtl(ttl) => {
            if let Some(at) = own_ttl(frame) {
                frame[at] = ttl;
            }
        }
        Action::DecNwTtl => {
            if let Some(at) = own_ttl(frame) {
                decrement(&mut frame[at])?;
            }
        }
        Action::CopyTtlOut => {
            if let Some((outer, inner)) = ttl_pair(frame) {
                frame[outer] = frame[inner];
            }
        }
        Action::CopyTtlIn => {
            if let Some((outer, inner)) = ttl_pair(frame) {
                frame[inner] = frame[outer];
            }
        }
        Action::SetField { field, value } => set_field(frame, field, value),
        _ => {}
    }
    fix_checksums(frame);
    Ok(())
}

fn decrement(ttl: &mut u8) -> Result<(), Expired> {
    *ttl = ttl.checked_sub(1).filter(|left| *left > 0).ok_or(Expired)?;
    Ok(())
}

fn is_mpls(frame: &[u8]) -> bool {
    let Headers { eth_type, body, .. } = headers(frame);
    [0x8847, 0x8848].contains(&eth_type) && frame.len() >= body + 4
}

/// Returns the offset of the TTL in the IP header that the type field names.
fn own_ttl(frame: &[u8]) -> Option<usize> {
    let Headers { eth_type, body, .. } = headers(frame);
    let ip = ip_at(frame, body).filter(|ip| ip.eth_type == eth_type)?;
    Some(ip.at + if ip.eth_type == 0x0800 { 8 } else { 7 })
}

/// Returns the offsets of the TTLs of the outermost label and of the header after it.
fn ttl_pair(frame: &[u8]) -> Option<(usize, usize)> {
    let body = headers(frame).body;
    if !is_mpls(frame) {
        return None;
    }
    let next = body + 4;
    if frame[body + 2] & 1 == 0 {
        return (frame.len() >= next + 4).then_some((body + 3, next + 3));
    }
    let ip = ip_at(frame, next)?;
    Some((body + 3, next + if ip.eth_type == 0x0800 { 8 } else { 7 }))
}

fn set_field(frame: &mut [u8], field: Field, value: u128) {
    if !fields(frame).contains_key(&field) {
        return;
    }
    let body = headers(frame).body;
    let bytes = value.to_be_bytes();
    let mut write = |at: usize, count: usize| frame[at..at + count].copy_from_slice(&bytes[16 - count..]);
    match field {
        Field::EthDst => write(0, 6),
        Field::EthSrc => write(6, 6),
        Field::VlanVid => bits(frame, 14, 2, 0, 12, value),
        Field::VlanPcp => bits(frame, 14, 2, 13, 3, value),
        Field::MplsLabel => bits(frame, body, 4, 12, 20, value),
        Field::MplsTc => bits(frame, body, 4, 9, 3, value),
        Field::PbbIsid => write(body + 1, 3),
        Field::ArpOp => write(body + 6, 2),
        Field::ArpSpa => write(body + 14, 4),
        Field::Ipv4Src => write(body + 12, 4),
        Field::Ipv4Dst => write(body + 16, 4),
        Field::Ipv6Src => write(body + 8, 16),
        Field::Ipv6Dst => write(body + 24, 16),
        Field::Ipv6Flabel => bits(frame, body, 4, 0, 20, value),
        Field::IpDscp if frame[body] >> 4 == 4 => bits(frame, body, 2, 2, 6, value),
        Field::IpDscp => bits(frame, body, 2, 6, 6, value),
        Field::TcpSrc | Field::UdpSrc | Field::TcpDst | Field::UdpDst => {
            let Some(ip) = ip_at(frame, body) else { return };
            let offset = if matches!(field, Field::TcpSrc | Field::UdpSrc) { 0 } else { 2 };
            let at = ip.segment.start + offset;
            frame[at..at + 2].copy_from_slice(&bytes[14..]);
        }
        other => panic!("{other} is not generated"),
    }
}

/// Replaces `width` bits, `shift` above the low end of the number of `count` bytes at `at`.
fn bits(frame: &mut [u8], at: usize, count: usize, shift: u32, width: u32, value: u128) {
    let mask = ((1 << width) - 1) << shift;
    let new = number(&frame[at..at + count]) & !mask | value << shift & mask;
    frame[at..at + count].copy_from_slice(&new.to_be_bytes()[16 - count..]);
}

/// Computes the checksums of the IP packet in the frame, whatever headers precede it.
fn fix_checksums(frame: &mut [u8]) {
    let Some(ip) = innermost(frame) else { return };
    if ip.eth_type == 0x0800 {
        frame[ip.at + 10..ip.at + 12].fill(0);
        let checksum = !fold(sum(&frame[ip.at..ip.segment.start.min(ip.at + 20)]));
        frame[ip.at + 10..ip.at + 12].copy_from_slice(&checksum.to_be_bytes());
    }
    let addresses = if ip.eth_type == 0x0800 { ip.at + 12..ip.at + 20 } else { ip.at + 8..ip.at + 40 };
    let field = match ip.proto {
        6 => 16,
        17 => 6,
        _ => return,
    };
    let at = ip.segment.start + field;
    frame[at..at + 2].fill(0);
    let pseudo = sum(&frame[addresses]) + u64::from(ip.proto) + ip.segment.len() as u64;
    let checksum = !fold(pseudo + sum(&frame[ip.segment]));
    let checksum = if ip.proto == 17 && checksum == 0 { 0xffff } else { checksum };
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

fn innermost(frame: &[u8]) -> Option<Ip> {
    let mut start = 0;
    loop {
        let Headers { eth_type, mut body, .. } = headers(&frame[start..]);
        body += start;
        match eth_type {
            0x88e7 => start = body + 4,
            0x8847 | 0x8848 => {
                while frame.get(body + 2)? & 1 == 0 {
                    body += 4;
                }
                return ip_at(frame, body + 4);
            }
            _ => return ip_at(frame, body).filter(|ip| ip.eth_type == eth_type),
        }
    }
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}
