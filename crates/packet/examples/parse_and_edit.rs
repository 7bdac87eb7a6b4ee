//! Parses a frame to the fields that a flow table sees, rewrites it as a router with VLANs would, and checks its
//! checksums.
//!
//! `cargo run -p weir-packet --example parse_and_edit`
use std::net::Ipv4Addr;
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::edit::{EditEffect, EditError, dec_nw_ttl, push_vlan, set_field};
use weir_packet::field::VLAN_PRESENT;
use weir_packet::{Field, FlowMask, Frame, MacAddr, ParsedHeaders, PortNo, checksum};

/// VLAN 7 as the field has it: with the bit that says that there is a tag.
const VLAN_7: u128 = VLAN_PRESENT as u128 | 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    let tcp = TcpHeader { source: 40_000, destination: 80, flags: 2, ..TcpHeader::default() };
    let builder = FrameBuilder::ethernet(b, a).ipv4([10, 0, 0, 1].into(), [192, 0, 2, 9].into()).tcp(tcp);
    let mut frame = builder.payload(b"GET /").frame();
    show("as received", &frame)?;

    route(&mut frame)?;
    show("as sent", &frame)?;

    // The question of a flow table: does the packet have these bits?
    let parsed = ParsedHeaders::of(&frame, PortNo(1))?;
    let (mut value, mut mask) = (weir_packet::FlowKey::default(), FlowMask::default());
    for (field, bits) in [(Field::VlanVid, VLAN_7), (Field::TcpDst, 80)] {
        value.set(field, bits);
        mask.set(field, field.all_ones());
    }
    println!("matches vlan_vid=7,tcp_dst=80: {}", parsed.key.matches(&value, &mask));
    Ok(())
}

/// Changes addresses and TTL, and adds a tag. Edits need the positions of the headers, which some edits move.
fn route(frame: &mut Frame) -> Result<(), Box<dyn std::error::Error>> {
    let mut parsed = ParsedHeaders::of(frame, PortNo(1))?;
    set_field(frame, &parsed.layers, Field::EthDst, MacAddr([2, 0, 0, 0, 0, 3]).to_bits().into());
    set_field(frame, &parsed.layers, Field::Ipv4Src, Ipv4Addr::new(198, 51, 100, 1).to_bits().into());
    match dec_nw_ttl(frame, &parsed.layers) {
        Err(EditError::TtlExpired) => return Err("a router would answer with ICMP here".into()),
        result => result?,
    };
    if push_vlan(frame, &parsed.layers, 0x8100)? == EditEffect::Moved {
        parsed = ParsedHeaders::of(frame, PortNo(1))?;
    }
    set_field(frame, &parsed.layers, Field::VlanVid, VLAN_7);
    Ok(())
}

fn show(what: &str, frame: &Frame) -> Result<(), Box<dyn std::error::Error>> {
    let key = ParsedHeaders::of(frame, PortNo(1))?.key;
    let address = |field| u32::try_from(key.get(field)).map(Ipv4Addr::from_bits);
    let (source, destination) = (address(Field::Ipv4Src)?, address(Field::Ipv4Dst)?);
    let checksums = checksum::verify(frame.bytes()).map_or_else(|bad| format!("{bad:?}"), |()| "right".to_owned());
    println!(
        "{what}: {} bytes, VLAN {}, {source}:{} -> {destination}:{}, checksums {checksums}",
        frame.len(),
        key.get(Field::VlanVid) & 0xfff,
        key.get(Field::TcpSrc),
        key.get(Field::TcpDst)
    );
    Ok(())
}
